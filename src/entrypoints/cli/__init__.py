"""The command line `tallystick`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ..output import open_closed_streams
from . import bringing, changing, keeping, keys, making, models, proving, reading, writing
from .verb import At

app = typer.Typer(
    name="tallystick",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def main() -> None:
    """Run the command line. Never returns: exits with 0, with 1 where a rule said no, with 2 for wrong usage."""
    open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    app()


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


for room in (making, writing, changing, reading, proving, keeping, keys, models, bringing):
    room.join(app)
