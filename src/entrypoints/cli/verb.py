"""What every command has: the options they share, and errors as one line."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from ...border import in_our_words
from ...errors import TallystickError
from ...visible import one_line
from .. import documents
from ..output import Bar, give_up_output, print_document
from ..request import Request

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
ReadOnly = Annotated[bool, typer.Option("--read-only", help="Write nothing to the store, not even what was read.")]
Until = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="POSITION", help="Read only what is before this position of the memory log.", show_default=False
    ),
]
Identifier = Annotated[str, typer.Argument(metavar="ID", help="A memory's id, or the beginning of it.")]
Reason = Annotated[str | None, typer.Option(metavar="REASON", help="Why. It is put on record.", show_default=False)]
CommandId = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Names this command: repeated, it changes nothing.", show_default=False),
]
Namespace = Annotated[
    str | None, typer.Option(metavar="NAME", help="Instead of the project's namespace.", show_default=False)
]
Model = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL", help="`auto`, `none`, a name from `models list`, or a model's folder.", show_default=False
    ),
]

_KEYWORD, _EITHER = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
_COMMON = (
    inspect.Parameter("at", _KEYWORD, default=None, annotation=At),
    inspect.Parameter("as_json", _KEYWORD, default=False, annotation=AsJson),
    inspect.Parameter("debug", _KEYWORD, default=False, annotation=Debug),
)


_READING = (
    inspect.Parameter("read_only", _KEYWORD, default=False, annotation=ReadOnly),
    inspect.Parameter("until", _KEYWORD, default=None, annotation=Until),
)


def verb(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that all have, as its Request; a known error becomes one line and exit code 1."""
    return _given(command, _COMMON)


def reading(command: Callable[..., None]) -> Callable[..., None]:
    """As `verb`, for a command that only reads: it can be asked to write nothing to the store."""
    return _given(command, (*_READING, *_COMMON))


def _given(command: Callable[..., None], common: tuple[inspect.Parameter, ...]) -> Callable[..., None]:
    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]

    @wraps(command)
    def run(context: typer.Context, *, at: Path | None, as_json: bool, debug: bool, **options: Any) -> None:
        how = {name: options.pop(name) for name in ("read_only", "until") if name in options}
        request = Request(at or context.find_object(Path), as_json, debug, Bar(), **how)
        try:
            with _explained(request):
                command(request, **options)
        finally:
            request.bar.close()

    parameters = [inspect.Parameter("context", _EITHER, annotation=typer.Context), *own, *common]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what typer reads
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


@contextmanager
def _explained(request: Request) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except (TallystickError, OSError, RecursionError) as error:
        if request.debug:
            raise
        request.bar.close()
        known = error if isinstance(error, TallystickError) else in_our_words(error)
        with suppress(OSError):
            if request.as_json:
                print_document(documents.failed(known))
        give_up_output()
        _fail(str(known))


def _fail(message: str) -> NoReturn:
    with suppress(OSError):
        print(f"tallystick: {one_line(message)}", file=sys.stderr)
    raise typer.Exit(1)
