"""Rebuild the views of a store from its log and compare: for an operator, with nothing running."""

from __future__ import annotations

import time
from typing import Annotated, NamedTuple

import typer

from tallystick.commands.rebuild import Rebuilt
from tallystick.entrypoints import documents, tables
from tallystick.entrypoints.cli.verb import verb
from tallystick.entrypoints.output import Screen
from tallystick.entrypoints.request import Request
from tallystick.events.installation import Installation
from tallystick.projections.views import ViewsInForce
from tallystick.queries.verify import compare_views, verify

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


class Replayed(NamedTuple):
    """Each view's digest before and after, of how many events, and in how many seconds they were folded."""

    rebuilt: Rebuilt
    events: int
    seconds: float


@app.command()
@verb
def replay(
    request: Request,
    keys: Annotated[
        str | None, typer.Option(metavar="DIR", help="The store's keys; else TALLYSTICK_KEYS, else your own.")
    ] = None,
    compare: Annotated[bool, typer.Option("--compare", help="Only compare: put nothing in force.")] = False,
) -> None:
    """Verify the log, rebuild every view beside the one in force, compare the digests, put the new ones in force.

    No service and no model needs to run. Others may have the store open: they go over to the new views. Exits with 0
    where the views were what the log adds up to, with 1 where they were not or where the log does not verify.
    """
    events = _verified(request, keys)
    started = time.perf_counter()
    rebuilt = _compared(request, keys) if compare else request.replay(keys=keys)
    request.answer(Replayed(rebuilt, events, time.perf_counter() - started), _document, _table)
    if rebuilt.before != rebuilt.after:
        raise typer.Exit(1)


def _verified(request: Request, keys: str | None) -> int:
    """How many events the logs hold, each verified in full."""
    request.bar.show("verifying the log", 0, 0)
    installation = _opened(request, keys)
    try:
        report = verify(installation, progress=request.bar.show)
    finally:
        installation.abandon()
    return sum(log.size for log in report.logs)


def _compared(request: Request, keys: str | None) -> Rebuilt:
    request.bar.show("comparing the views", 0, 0)
    installation = _opened(request, keys)
    views = ViewsInForce(installation)
    try:
        digests = compare_views(installation, views)
    finally:
        views.close()
        installation.abandon()
    return Rebuilt(digests, digests)


def _opened(request: Request, keys: str | None) -> Installation:
    settings = request.settings()
    installation = Installation.open(settings.path, keys or settings.keys)
    installation.share()
    return installation


def _document(done: Replayed) -> dict[str, object]:
    return {**documents.rebuilt(done.rebuilt), "events": done.events, "seconds": round(done.seconds, 3)}


def _table(screen: Screen, done: Replayed) -> None:
    tables.rebuilt(screen, done.rebuilt)
    screen.say(f"{done.events:,} events in {done.seconds:.2f} s: {done.events / done.seconds:,.0f} events/s")


if __name__ == "__main__":
    app(prog_name="python tools/replay")
