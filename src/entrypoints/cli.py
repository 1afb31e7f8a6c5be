"""The command line `tallystick`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from ..errors import Refused, TallystickError
from . import documents, git_history, tables
from .output import Bar, Progress, one_line, print_document
from .request import Request

if TYPE_CHECKING:
    from ..memory import Memory
    from ..queries.verify import Depth

KEY_BYTES = 32

app = typer.Typer(
    name="tallystick",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)
importing = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
app.add_typer(importing, name="import", help="Store what was written elsewhere.")

At = Annotated[
    Path | None,
    typer.Option(
        "-C",
        metavar="PATH",
        help="The store's directory; else TALLYSTICK_PATH, else the store of the project around this directory.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document, for programs.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback when something goes wrong.")]
Identifier = Annotated[str, typer.Argument(metavar="ID", help="A memory's id, or the beginning of it.")]
Reason = Annotated[str | None, typer.Option(help="Why. It is put on record.", show_default=False)]
Namespace = Annotated[str | None, typer.Option(help="Instead of the project's namespace.", show_default=False)]
Model = Annotated[
    str | None,
    typer.Option(metavar="MODEL", help="`auto`, `none`, or the folder of an ONNX model.", show_default=False),
]

_KEYWORD, _EITHER = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
_COMMON = (
    inspect.Parameter("at", _KEYWORD, default=None, annotation=At),
    inspect.Parameter("as_json", _KEYWORD, default=False, annotation=AsJson),
    inspect.Parameter("debug", _KEYWORD, default=False, annotation=Debug),
)


def main() -> None:
    """Run the command line. Never returns: exits with 0, with 1 where a rule said no, with 2 for wrong usage."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    app()


def verb(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that all have, as its Request; a known error becomes one line and exit code 1."""
    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]

    @wraps(command)
    def run(context: typer.Context, *, at: Path | None, as_json: bool, debug: bool, **options: Any) -> None:
        request = Request(at or context.find_object(Path), as_json, debug, Bar())
        try:
            with _explained(request):
                command(request, **options)
        finally:
            request.bar.close()

    parameters = [inspect.Parameter("context", _EITHER, annotation=typer.Context), *own, *_COMMON]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what typer reads
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


@contextmanager
def _explained(request: Request) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except (TallystickError, OSError) as error:
        if request.debug:
            raise
        request.bar.close()
        if request.as_json:
            print_document(documents.failed(error))
        _fail(str(error))


def _fail(message: str) -> NoReturn:
    print(f"tallystick: {one_line(message)}", file=sys.stderr)
    raise typer.Exit(1)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415  slow to import, and needed here alone

        print(f"tallystick {version('tallystick')}")
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    at: At = None,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and leave.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Memory for AI agents that can be held to account: it finds what was stored, and proves what it knew.

    Begin with `tallystick init`. Every command has --help.
    """
    context.obj = at


# ---- making a store


@app.command()
@verb
def init(
    request: Request,
    directory: Annotated[
        Path | None, typer.Argument(metavar="DIRECTORY", help="Where; else .tallystick.", show_default=False)
    ] = None,
    namespace: Annotated[
        str | None, typer.Option(help="What this project's memories are stored under.", show_default=False)
    ] = None,
    keys: Annotated[
        Path | None, typer.Option(help="Where its keys go; else your own key directory.", show_default=False)
    ] = None,
) -> None:
    """Make a store, and the project file that names it.

    The store is made in DIRECTORY, or in .tallystick. The project file, .tallystick.toml, is written to the current
    directory: commands given here and below find the store by it.
    """
    made = request.create(directory, namespace, keys)
    request.answer(made, documents.created, tables.created)


# ---- what may be asked to happen


@app.command()
@verb
def store(  # noqa: PLR0913  a command's options are its parameters
    request: Request,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text; - reads it from standard input.")],
    tag: Annotated[list[str] | None, typer.Option(help="A tag. Can be repeated.", show_default=False)] = None,
    key: Annotated[
        str | None, typer.Option(help="What it is the value of: it takes an older value's place.", show_default=False)
    ] = None,
    kind: Annotated[str, typer.Option(help="What kind of memory it is.")] = "note",
    source: Annotated[str, typer.Option(help="human, agent, tool, consolidated or imported.")] = "human",
    importance: Annotated[float, typer.Option(help="From 0 to 1.")] = 0.5,
    author: Annotated[str | None, typer.Option(help="Who wrote it.", show_default=False)] = None,
    subject: Annotated[str | None, typer.Option(help="Whose data it is.", show_default=False)] = None,
    thread: Annotated[str | None, typer.Option(help="The conversation it is a turn of.", show_default=False)] = None,
    occurred_at: Annotated[
        str | None, typer.Option(metavar="TIME", help="When it happened: 2026-05-08T13:56:00Z.", show_default=False)
    ] = None,
    expires_at: Annotated[
        str | None, typer.Option(metavar="TIME", help="From when on it is not recalled.", show_default=False)
    ] = None,
    command_id: Annotated[
        str | None, typer.Option(help="Names this command: repeated, it changes nothing.", show_default=False)
    ] = None,
    meta: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Metadata. Can be repeated.", show_default=False)
    ] = None,
    namespace: Namespace = None,
) -> None:
    """Store a text. It is signed and on the disk when this ends."""
    fields: dict[str, Any] = {
        "tags": tag or [],
        "key": key,
        "kind": kind,
        "source": source,
        "importance": importance,
        "author": author,
        "subject": subject,
        "thread": thread,
        "occurred_at": occurred_at,
        "expires_at": expires_at,
        "command_id": command_id,
        "metadata": dict(_pair(pair) for pair in meta or []),
    }
    with request.memory(namespace=namespace) as memory:
        outcome = memory.store(_standard_input() if text == "-" else text, **fields)
    request.answer(outcome, documents.outcome, tables.outcome)


def _pair(pair: str) -> tuple[str, str]:
    name, equals, value = pair.partition("=")
    if not (name and equals):
        raise typer.BadParameter(f"{pair!r} is not NAME=VALUE.", param_hint="--meta")
    return name, value


def _standard_input() -> str:
    try:
        return sys.stdin.buffer.read().decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise Refused(
            f"What came on standard input is not UTF-8 ({error.reason} at byte {error.start}). Give UTF-8."
        ) from error


@app.command()
@verb
def forget(request: Request, identifier: Identifier, reason: Reason = None) -> None:
    """Retract a memory: nobody recalls it any more. It is kept, and can be restored."""
    with request.memory() as memory:
        outcome = memory.forget(identifier, reason=reason)
    request.answer(outcome, documents.outcome, tables.outcome)


@app.command()
@verb
def restore(request: Request, identifier: Identifier, reason: Reason = None) -> None:
    """Bring a forgotten memory back."""
    with request.memory() as memory:
        outcome = memory.restore(identifier, reason=reason)
    request.answer(outcome, documents.outcome, tables.outcome)


# ---- what can be asked


@app.command()
@verb
def recall(
    request: Request,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="A question, or a few words.")],
    limit: Annotated[int, typer.Option(min=1, help="How many memories at most.")] = 10,
    namespace: Annotated[
        list[str] | None,
        typer.Option(help="Where to look, instead of the project's namespace. Can be repeated.", show_default=False),
    ] = None,
    model: Model = None,
) -> None:
    """Find the memories that answer a question.

    Ends with the receipt, which names the signed event that says what was asked and what was answered.
    """
    with request.memory(model=model) as memory:
        found = memory.recall(query, limit=limit, namespaces=namespace)
    request.answer(found, documents.recalled, tables.recalled)


@app.command()
@verb
def get(request: Request, identifier: Identifier) -> None:
    """Show one memory, whatever its status."""
    with request.memory() as memory:
        found = memory.get(identifier)
    request.answer(found, documents.record, tables.record)


@app.command()
@verb
def history(request: Request, identifier: Identifier) -> None:
    """Show every event of a memory, each verified."""
    with request.memory() as memory:
        events = memory.history(identifier)
    request.answer(events, documents.history, tables.history)


@app.command()
@verb
def why(
    request: Request,
    receipt: Annotated[str, typer.Argument(metavar="RECEIPT", help="The receipt that a recall printed.")],
    identifier: Annotated[
        str | None, typer.Argument(metavar="ID", help="One of its hits; all without.", show_default=False)
    ] = None,
) -> None:
    """Show why a recall answered as it did.

    Its question, the scores of every stage, and the signed events behind each hit.
    """
    with request.memory() as memory:
        explained = memory.why(receipt, identifier)
    request.answer(explained, documents.explained, tables.explained)


@app.command()
@verb
def log(request: Request, limit: Annotated[int, typer.Option(min=1, help="How many events at most.")] = 20) -> None:
    """Show who did what when, newest first, over both logs."""
    with request.memory() as memory:
        rows = memory.log(limit=limit)
    request.answer(rows, documents.log, tables.log)


@app.command()
@verb
def status(request: Request) -> None:
    """Show what is there, where it lies, and whether it is clean."""
    with request.memory() as memory:
        found = memory.status()
    request.answer(found, documents.status, tables.status)


# ---- proving and mending


@app.command()
@verb
def verify(
    request: Request,
    quick: Annotated[bool, typer.Option("--quick", help="Leave signatures and payloads closed.")] = False,
    views: Annotated[bool, typer.Option("--views", help="Compare the views with a rebuild too.")] = False,
    root_key: Annotated[
        str | None,
        typer.Option(
            metavar="HEX", help="Audit with this root public key alone: no secret is needed.", show_default=False
        ),
    ] = None,
) -> None:
    """Check every entry, root, hash, signature and key.

    Exits with 1 at the first that is wrong, and names its position.
    """
    if root_key is not None and views:
        raise typer.BadParameter("The views open with the store's keys only.", param_hint="--views")
    depth: Depth = "structure" if quick else "full"
    if root_key is not None:
        request.answer(request.audit(_key(root_key), depth), documents.verified, tables.audited)
    elif not views:  # the log alone, whatever state the views are in
        request.answer(request.audit(None, depth), documents.verified, tables.verified)
    else:
        with request.memory() as memory:
            report = memory.verify(depth=depth, views=True, progress=request.bar.show)
        request.answer(report, documents.verified, tables.verified)


def _key(digits: str) -> bytes:
    try:
        key = bytes.fromhex(digits)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise typer.BadParameter(f"A root key has {2 * KEY_BYTES} hexadecimal digits.", param_hint="--root-key")
    return key


@app.command()
@verb
def replay(request: Request) -> None:
    """Rebuild every view from the log.

    The way back when a view is damaged or gone. The new views are put in force, and that is put on record.
    """
    request.answer(request.replay(), documents.rebuilt, tables.rebuilt)


# ---- bringing in


@importing.command("git")
@verb
def import_git(
    request: Request,
    repository: Annotated[Path, typer.Argument(metavar="REPO", help="A git repository, bare or not.")] = Path("."),
    newest: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="The newest N commits only.", show_default=False)
    ] = None,
    namespace: Namespace = None,
    model: Model = None,
) -> None:
    """Store each commit of a git repository as a memory.

    Commits that are there already are left as they are. Then the vectors that are missing are made.
    """
    total = git_history.count_commits(repository)
    if newest is not None:
        total = min(total, newest)
    with request.memory(model="none") as memory:
        commits = git_history.read_commits(repository, newest) if total else iter(())
        imported = git_history.import_commits(
            memory, commits, namespace, lambda done: request.bar.show("storing commits", done, total)
        )
    with request.memory(model=model) as memory:
        vectors = _embed(memory, request.bar.show)
    request.answer((imported, vectors), documents.imported, tables.imported)
    if imported.refused:
        raise typer.Exit(1)


def _embed(memory: Memory, tell: Progress) -> int:
    most = 0

    def missing(vectors: int) -> None:
        nonlocal most
        most = max(most, vectors)
        tell("making vectors", most - vectors, most)

    return memory.embed(missing)
