"""The commands that bring in what was written elsewhere, and take out what is here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .. import documents, git_history, tables
from ..request import Request
from .proving import make_vectors
from .verb import Model, Namespace, verb


class _Importing(TyperGroup):
    """`import FILE` is short for `import file FILE`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the name of the command where none is given."""
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            args = ["file", *args]
        return super().parse_args(ctx, args)


importing = typer.Typer(cls=_Importing, no_args_is_help=True, rich_markup_mode=None)


@importing.command("file")
@verb
def import_file(
    request: Request,
    path: Annotated[Path, typer.Argument(metavar="FILE", help="What `tallystick export` has written.")],
    model: Model = None,
) -> None:
    """Bring in the memories of an export; `import FILE` does the same.

    What is there already stays as it is, and what was forgotten stays so. A row that a rule says no to goes to
    FILE.rejected.jsonl with the reason; the rest comes in, and the command ends with 1.
    """
    with request.memory(model="none") as memory:
        arrivals = memory.import_(path, progress=lambda done, of: request.bar.show("importing", done, of))
    with request.memory(model=model) as memory:
        vectors = make_vectors(memory, request.bar.show)
    request.answer((arrivals, vectors), documents.arrived, tables.arrived)
    if arrivals.refused:
        raise typer.Exit(1)


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


@verb
def export(
    request: Request,
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Where to; an older export there is replaced.")],
    markdown: Annotated[
        bool, typer.Option("--markdown", help="A new folder of Markdown files for people instead, of what is current.")
    ] = False,
) -> None:
    """Write every memory, whole, to a file that `tallystick import` reads.

    What was forgotten or superseded is part of it. The file is in clear: keep it as you keep the store.
    """
    with request.memory(model="none") as memory:
        count = memory.export(path, markdown=markdown, progress=lambda n, of: request.bar.show("exporting", n, of))
    request.answer((path, count), documents.exported, tables.exported)


def join(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    app.command()(export)
    app.add_typer(importing, name="import", help="Store what was written elsewhere.")
