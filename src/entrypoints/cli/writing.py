"""The commands that change memories."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from ...errors import Refused
from .. import documents, tables
from ..request import Request
from .verb import Identifier, Namespace, Reason, verb

Old = Annotated[str, typer.Argument(help="The namespace, by the name it has or had.")]


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


@verb
def forget(request: Request, identifier: Identifier, reason: Reason = None) -> None:
    """Retract a memory: nobody recalls it any more. It is kept, and can be restored."""
    with request.memory() as memory:
        outcome = memory.forget(identifier, reason=reason)
    request.answer(outcome, documents.outcome, tables.outcome)


@verb
def restore(request: Request, identifier: Identifier, reason: Reason = None) -> None:
    """Bring a forgotten memory back."""
    with request.memory() as memory:
        outcome = memory.restore(identifier, reason=reason)
    request.answer(outcome, documents.outcome, tables.outcome)


@verb
def rename(request: Request, old: Old, new: Annotated[str, typer.Argument(help="The name it gets.")]) -> None:
    """Give a namespace another name. The old one leads there too, and can be given back."""
    with request.memory() as memory:
        outcome = memory.rename(old, new)
    request.answer(outcome, documents.renamed, tables.renamed)


@verb
def merge(request: Request, old: Old, into: Annotated[str, typer.Argument(help="The one they go to.")]) -> None:
    """Make the memories of a namespace those of another one. Nothing undoes it.

    Where both hold a value of one key, or one text, the newer supersedes the older.
    """
    with request.memory() as memory:
        outcome = memory.merge(old, into)
    request.answer(outcome, documents.renamed, tables.renamed)


def join(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    for command in (store, forget, restore, rename, merge):
        app.command()(command)
