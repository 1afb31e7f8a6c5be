"""The commands that keep copies of a store, and go on from what is left of one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .. import documents, tables
from ..request import Request
from .verb import verb

snapshot = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

Directory = Annotated[Path, typer.Argument(metavar="DIRECTORY", help="Where the snapshots are, outside the store.")]
Why = Annotated[str, typer.Option(help="Why. It is put on record.")]


@snapshot.command("create")
@verb
def create_snapshot(request: Request, directory: Directory) -> None:
    """Copy the log into a folder of its own in DIRECTORY, while others go on writing.

    The copy is verified in full before it counts. It holds no views, no vectors and no keys.
    """
    with request.memory(model="none") as memory:
        request.bar.show("taking a snapshot", 0, 0)
        taken = memory.snapshot(directory)
    request.answer([taken], documents.snapshots, tables.snapshots)


@snapshot.command("list")
@verb
def list_snapshots(request: Request, directory: Directory) -> None:
    """Show the snapshots in DIRECTORY, newest first."""
    from ...memory import Memory  # noqa: PLC0415  --help needs none of it

    request.answer(Memory.snapshots(directory), documents.snapshots, tables.snapshots)


@snapshot.command("rotate")
@verb
def rotate_snapshots(
    request: Request,
    directory: Directory,
    daily: Annotated[int, typer.Option(min=0, help="How many days to keep one of.")] = 7,
    weekly: Annotated[int, typer.Option(min=0, help="How many weeks to keep one of.")] = 4,
) -> None:
    """Delete all snapshots but the newest of each of the last days and weeks that have one.

    The newest of all is kept in any case. Shows what was deleted.
    """
    from ...memory import Memory  # noqa: PLC0415  as above

    gone = Memory.rotate_snapshots(directory, daily=daily, weekly=weekly)
    request.answer(gone, documents.snapshots, tables.rotated)


@snapshot.command("restore")
@verb
def restore_snapshot(
    request: Request,
    folder: Annotated[Path, typer.Argument(metavar="SNAPSHOT", help="The folder of one snapshot.")],
    out: Annotated[Path | None, typer.Option(help="The empty directory it goes to.", show_default=False)] = None,
    over: Annotated[bool, typer.Option("--over", help="Put it over the store, whose own log is kept.")] = False,
) -> None:
    """Put a snapshot's log into an empty directory, or over a damaged store.

    It is verified first. If it is older than what was verified last, it opens only after `tallystick recover`.
    """
    if (out is None) is not over:
        raise typer.BadParameter("Say where it goes: --out DIRECTORY, or --over the store.", param_hint="--out")
    request.answer(request.restore(folder, out), documents.put_back, tables.put_back)


@verb
def recover(request: Request, reason: Why) -> None:
    """Go on from an older copy of the store, as the start of a new origin.

    The log that was there is kept. Memories get new ids; their old ones, given whole, still lead to them.
    """
    request.answer(request.recover(reason), documents.recovered, tables.recovered)


@verb
def salvage(
    request: Request,
    out: Annotated[Path, typer.Option(help="The empty directory that the new store goes to.")],
    reason: Why = "salvaged",
) -> None:
    """Make a new store of every event of a damaged one that verifies.

    The damaged one is only read. A memory that may have been forgotten in a lost event comes over forgotten.
    """
    request.answer(request.salvage(out, reason), documents.recovered, tables.recovered)


@verb
def take_over(request: Request) -> None:
    """Let this host open a store that another host had open.

    Only when nothing there uses it any more: two hosts that write to one store overwrite each other.
    """
    request.answer(request.take_over(), documents.taken_over, tables.taken_over)


def join(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    app.add_typer(snapshot, name="snapshot", help="Keep verified copies of the log.")
    for command in (recover, salvage, take_over):
        app.command()(command)
