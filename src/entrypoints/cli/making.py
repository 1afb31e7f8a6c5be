"""The commands that make a store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .. import documents, tables
from ..request import Request
from .keys import offer_backup
from .verb import verb


@verb
def init(
    request: Request,
    directory: Annotated[
        Path | None, typer.Argument(metavar="DIRECTORY", help="Where; else .tallystick.", show_default=False)
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What this project's memories are stored under.", show_default=False),
    ] = None,
    keys: Annotated[
        str | None,
        typer.Option(
            metavar="PLACE",
            help="Where its keys go: a directory, or `keyring`; `env` has them. Else your own key directory.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Make a store, and the project file that names it.

    The store is made in DIRECTORY, or in .tallystick. The project file, .tallystick.toml, is written to the current
    directory: commands given here and below find the store by it.
    """
    made = request.create(directory, namespace, keys)
    request.answer(made, documents.created, tables.created)
    offer_backup(request, made)


def join(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    for command in (init,):
        app.command()(command)
