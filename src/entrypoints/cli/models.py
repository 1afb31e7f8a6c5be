"""The commands for models: list them, choose one for the store, bring them here, and check them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...errors import NotFound
from .. import documents, tables
from ..request import Request
from .verb import verb

models = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

Name = Annotated[str, typer.Argument(metavar="MODEL", help="A name from `models list`, or the folder of a model.")]


@models.command("list")
@verb
def list_(request: Request) -> None:
    """Show every model that is known or here: where it is, its space, and what the store has of it.

    Without a store it shows what is here.
    """
    from ...queries.models import models as found  # noqa: PLC0415  as in the others

    try:
        with request.memory() as memory:
            listed = memory.models()
    except NotFound:
        listed = found(None)
    request.answer(listed, documents.models, tables.models)


@models.command()
@verb
def use(request: Request, model: Name) -> None:
    """Choose the model of the store, and make its vectors.

    `auto` is the default model, `none` goes by words alone. Until every vector is made recall answers from the model
    before; then from the new one. Stopped, it goes on when it is called again, or with `tallystick embed`. The old
    vectors are kept: `models drop` throws them away.
    """
    with request.memory(model="auto") as memory:
        switch = memory.use_model(model, progress=lambda done, of: request.bar.show("making vectors", done, of))
    request.answer((switch, request.settings().model), documents.switched, tables.switched)


@models.command()
@verb
def drop(
    request: Request,
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A name, folder or space from `models list`.")],
) -> None:
    """Throw away the store's vectors of a model that is not in force."""
    with request.memory() as memory:
        request.bar.show("dropping vectors", 0, 0)
        dropped = memory.drop_model(model)
    request.answer((model, dropped), documents.dropped, tables.dropped)


@models.command()
@verb
def fetch(
    request: Request,
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A name, OWNER/NAME@COMMIT of the hub, or what `models pack` wrote.")
    ],
) -> None:
    """Bring a model into your cache, from the hub or from a pack: every file verified, or none of it kept.

    The one command that uses the network, and only where MODEL is neither a file nor a folder.
    """
    from ...memory import Memory  # noqa: PLC0415  the store and its libraries; --help needs none of it

    request.bar.show("fetching", 0, 0)
    fetched = Memory.fetch_model(model, progress=lambda done, of: request.bar.show("fetching", done, of))
    request.answer(fetched, documents.packed, tables.fetched)


@models.command()
@verb
def pack(
    request: Request,
    model: Name,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A folder, or a file that ends in .zip, to be made.")],
) -> None:
    """Write a model, with a manifest of hashes, for where there is no network.

    There, `tallystick models fetch OUT` puts it into the cache.
    """
    from ...memory import Memory  # noqa: PLC0415  as above

    request.bar.show("packing", 0, 0)
    request.answer(Memory.pack_model(model, out), documents.packed, tables.packed)


@models.command()
@verb
def verify(
    request: Request,
    model: Annotated[
        str | None, typer.Argument(metavar="MODEL", help="One model; all that are here without.", show_default=False)
    ] = None,
) -> None:
    """Compare every file of the models that are here with its pinned SHA-256, or its manifest's.

    Ends with 1 when one is not what it must be.
    """
    from ...memory import Memory  # noqa: PLC0415  as above

    request.bar.show("hashing", 0, 0)
    checked = Memory.verify_models(model)
    request.answer(checked, documents.models_verified, tables.models_verified)
    if not all(each.good for each in checked):
        raise typer.Exit(1)


def join(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    app.add_typer(models, name="models", help="List the models, choose one, bring and check them.")
