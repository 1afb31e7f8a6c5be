"""The commands that store memories, and give them other values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .. import documents, tables
from ..request import Request
from ..rows import read_rows, read_text
from .fields import CHANGED, SHARED, STORED, THREAD, takes
from .proving import make_vectors
from .verb import Identifier, Namespace, verb

if TYPE_CHECKING:
    from ...commands.outcome import Outcome
    from ...memory import Memory

File = Annotated[Path, typer.Argument(metavar="FILE", help="A file of JSON lines; - or nothing: standard input.")]
STANDARD_INPUT = Path("-")
BY_A_PERSON = {"source": "human"}

Old = Annotated[str, typer.Argument(metavar="OLD", help="The namespace, by the name it has or had.")]
New = Annotated[str, typer.Argument(metavar="NEW", help="The name it gets.")]
Into = Annotated[str, typer.Argument(metavar="INTO", help="The one they go to.")]


@verb
@takes(*STORED)
def store(
    request: Request,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text; - reads it from standard input.")],
    fields: dict[str, Any],
    namespace: Namespace = None,
) -> None:
    """Store a text. It is signed and on the disk when this ends.

    Its source is `human` where nothing is said.
    """
    text = read_text(text)
    with request.memory(namespace=namespace) as memory:
        outcome = memory.store(text, **BY_A_PERSON | fields)
    request.answer(outcome, documents.outcome, tables.outcome)


@verb
@takes(*SHARED, THREAD)
def store_many(
    request: Request, fields: dict[str, Any], rows: File = STANDARD_INPUT, namespace: Namespace = None
) -> None:
    """Store many memories in one transaction.

    All are on the disk when this ends, or none is there. Each line is a text in quotes, or an object, such as
    {"text": ..., "tags": [...], "occurred_at": ...}, with the fields that `get --json` shows. The options are for
    every line that says nothing else. A line that a rule says no to is refused and keeps no other from being stored;
    then this ends with 1.
    """
    read = read_rows(rows)
    request.bar.show(f"storing {len(read):,} memories", 0, 0)
    with request.memory(namespace=namespace) as memory:
        _complete(request, memory, memory.store_many(read, **fields))


@verb
@takes(*SHARED)
def store_conversation(
    request: Request,
    fields: dict[str, Any],
    thread: Annotated[str, typer.Option(metavar="NAME", help="The conversation's name.")],
    turns: File = STANDARD_INPUT,
    preceding: Annotated[int, typer.Option(min=0, metavar="N", help="How many turns of it came before these.")] = 0,
    namespace: Namespace = None,
) -> None:
    """Store the turns of a conversation, in order.

    Each is found by its own words and by those around it. Each line is a turn: a text in quotes, or an object with
    `text` (or `content`), `author` (or `role`, `speaker`) and other fields. Stored again, a conversation changes
    nothing, so one that broke off goes on. A place that holds another text is refused; then this ends with 1.
    """
    read = read_rows(turns)
    request.bar.show(f"storing {len(read):,} turns", 0, 0)
    with request.memory(namespace=namespace) as memory:
        outcomes = memory.store_conversation(read, thread=thread, preceding=preceding, **fields)
        _complete(request, memory, outcomes)


def _complete(request: Request, memory: Memory, outcomes: Sequence[Outcome]) -> None:
    """Make the vectors as well, since the model is loaded once for all; and say what was stored, come what may."""
    try:
        make_vectors(memory, request.bar.show)
    finally:
        request.answer(outcomes, documents.outcomes, tables.outcomes)
    if any(outcome.status == "refused" for outcome in outcomes):
        raise typer.Exit(1)


@verb
@takes(*CHANGED)
def revise(
    request: Request,
    identifier: Identifier,
    fields: dict[str, Any],
    text: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="The new text; - reads it from standard input.", show_default=False),
    ] = None,
    if_revision: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Only while the memory is at this revision.", show_default=False),
    ] = None,
) -> None:
    """Give some fields of a memory other values.

    Every version is kept: see `history`. What is given takes the place of what was there: --meta of all metadata,
    --evidence of all evidence. Tags come and go one by one.
    """
    if text is not None:
        fields = {"text": read_text(text), **fields}
    if not fields.keys() - {"reason", "command_id"}:
        raise typer.BadParameter("Name at least one field and its new value, such as --text TEXT.")
    with request.memory() as memory:
        outcome = memory.revise(identifier, if_revision=if_revision, **fields)
    request.answer(outcome, documents.outcome, tables.outcome)


@verb
def rename(request: Request, old: Old, new: New) -> None:
    """Give a namespace another name. The old one leads there too, and can be given back."""
    with request.memory() as memory:
        outcome = memory.rename(old, new)
    request.answer(outcome, documents.renamed, tables.renamed)


@verb
def merge(request: Request, old: Old, into: Into) -> None:
    """Make the memories of a namespace those of another one. Nothing undoes it.

    Where both hold a value of one key, or one text, the newer supersedes the older.
    """
    with request.memory() as memory:
        outcome = memory.merge(old, into)
    request.answer(outcome, documents.renamed, tables.renamed)


def join(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    for command in (store, store_many, store_conversation, revise, rename, merge):
        app.command()(command)
