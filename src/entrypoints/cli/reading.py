"""The commands that read."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any

import typer

from .. import documents, tables
from ..request import Request
from .filters import filtered, trailed
from .proving import make_vectors
from .verb import Identifier, Model, reading

Without = Annotated[
    list[str] | None,
    typer.Option(metavar="STAGE", help="Leave a stage of the ranking out; see `why`.", show_default=False),
]
EMBEDDING_SECONDS = 3.0
"""How long a recall makes vectors that are missing before it answers."""


@reading
@filtered
def recall(  # noqa: PLR0913  each is an option
    request: Request,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="A question, or a few words.")],
    filters: dict[str, Any],
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="How many memories at most.")] = 10,
    tokens: Annotated[
        int | None,
        typer.Option(
            "--context",
            min=100,
            metavar="TOKENS",
            show_default=False,
            help="Print them for a prompt, at most so long, with what is pinned.",
        ),
    ] = None,
    without: Without = None,
    rerank: Annotated[
        bool, typer.Option("--rerank", help="Have the first 20 read together with QUERY, and judged; takes longer.")
    ] = False,
    model: Model = None,
) -> None:
    """Find the memories that answer a question.

    Ends with the receipt, which names the signed event that says what was asked and what was answered.
    """
    with request.memory(model=model) as memory:
        make_vectors(memory, request.bar.show, seconds=EMBEDDING_SECONDS)
        found = memory.recall(query, limit=limit, without=without or (), rerank=rerank, **filters)
        rendered = None if tokens is None else found.context(tokens)
    if rendered is None:
        request.answer(found, documents.recalled, tables.recalled)
    else:
        request.answer(rendered, documents.context, tables.context)


@reading
@filtered
def search(
    request: Request,
    filters: dict[str, Any],
    sort: Annotated[
        str, typer.Option(metavar="FIELD", help="recorded_at, importance ...; a - before it: the greatest first.")
    ] = "-recorded_at",
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="How many memories on a page.")] = 50,
    after: Annotated[
        str | None, typer.Option(metavar="CURSOR", help="Go on where a page ended.", show_default=False)
    ] = None,
) -> None:
    """List the memories that fulfil filters, a page at a time, without a question.

    Ends with how many there are, and with the cursor of the next page.
    """
    with request.memory() as memory:
        found = memory.search(sort=sort, limit=limit, after=after, **filters)
    request.answer(found, documents.listed, tables.listed)


@reading
def get(request: Request, identifier: Identifier) -> None:
    """Show one memory, whatever its status."""
    with request.memory() as memory:
        found = memory.get(identifier)
    request.answer(found, documents.record, tables.record)


@reading
def history(request: Request, identifier: Identifier) -> None:
    """Show every event of a memory, each verified."""
    with request.memory() as memory:
        events = memory.history(identifier)
    request.answer(events, documents.history, tables.history)


@reading
def blame(request: Request, identifier: Identifier) -> None:
    """Show who gave each field of a memory the value it has, when, and which key signed it."""
    with request.memory() as memory:
        found = memory.blame(identifier)
    request.answer(found, documents.blamed, tables.blamed)


@reading
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


@reading
def namespaces(request: Request) -> None:
    """Show every namespace that has memories: how many, what it was called before, when it was last used."""
    with request.memory() as memory:
        found = memory.namespaces()
    request.answer(found, documents.namespaces, tables.namespaces)


@reading
@trailed
def log(
    request: Request,
    filters: dict[str, Any],
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="How many events at most.")] = 20,
    follow: Annotated[bool, typer.Option("--follow", help="Oldest first, and then each event as it happens.")] = False,
    kind: Annotated[
        str | None, typer.Option(metavar="KIND", help="Only this kind: stored, recalled ...", show_default=False)
    ] = None,
    which: Annotated[
        str | None, typer.Option("--log", metavar="LOG", help="Only this log: memory or access.", show_default=False)
    ] = None,
) -> None:
    """Show who did what when, newest first, over both logs.

    With --follow it goes on until it is stopped; with --json as well it prints one document to a line.
    """
    filters |= {name: value for name, value in (("kind", kind), ("log", which)) if value is not None}
    with request.memory() as memory:
        if follow:
            with suppress(KeyboardInterrupt):
                for row in memory.follow(limit=limit, **filters):
                    request.tell(row, documents.audit_row, tables.audit_row)
            return
        rows = memory.log(limit=limit, **filters)
    request.answer(rows, documents.log, tables.log)


@reading
@trailed
def receipts(
    request: Request,
    filters: dict[str, Any],
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="How many at most.")] = 20,
    by: Annotated[
        str | None, typer.Option("--verb", metavar="VERB", help="Only this: recall, search ...", show_default=False)
    ] = None,
) -> None:
    """Show what was read, newest first: by whom, what was asked, how many memories were handed out.

    `tallystick why RECEIPT` shows the rest of a recall.
    """
    with request.memory() as memory:
        found = memory.receipts(verb=by, limit=limit, **filters)
    request.answer(found, documents.receipts, tables.receipts)


@reading
def evaluate(
    request: Request,
    from_log: Annotated[
        bool, typer.Option("--from-log", help="Ask the recalls of this store's access log; there are no others yet.")
    ] = False,
    model: Model = None,
    without: Without = None,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="How many of the newest recalls at most.")] = 100,
) -> None:
    """Ask recalls that are on record again, and show what changed.

    Each is asked as the store stood then: under another model, without stages of the ranking, or, with neither, as it
    was. What `used` named says how well memories are found, before and now. Changes nothing.
    """
    if not from_log:
        raise typer.BadParameter("say which recalls: those on record.", param_hint="--from-log")
    with request.memory() as memory:
        found = memory.evaluate(model=model, without=without or (), limit=limit, progress=request.bar.show)
    request.answer(found, documents.evaluated, tables.evaluated)


@reading
def sql(
    request: Request,
    statement: Annotated[str, typer.Argument(metavar="STATEMENT", help="One select.")],
) -> None:
    """Ask the views in SQL: the tables memories, alias, access and audit, which hold no text.

    The statement reads a copy in memory and can change nothing.
    """
    with request.memory() as memory:
        found = memory.sql(statement)
    request.answer(found, documents.selected, tables.selected)


@reading
def status(request: Request) -> None:
    """Show what is there, and whether it is clean."""
    with request.memory() as memory:
        found = memory.status()
    request.answer(found, documents.status, tables.status)


def join(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    for command in (recall, search, get, history, blame, why, namespaces, log, receipts, sql, status):
        app.command()(command)
    app.command("eval")(evaluate)
