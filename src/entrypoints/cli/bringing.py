"""The commands that bring in what was written elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .. import documents, git_history, tables
from ..request import Request
from .proving import make_vectors
from .verb import Model, Namespace, verb

importing = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


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
        vectors = make_vectors(memory, request.bar.show)
    request.answer((imported, vectors), documents.imported, tables.imported)
    if imported.refused:
        raise typer.Exit(1)


def join(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    app.add_typer(importing, name="import", help="Store what was written elsewhere.")
