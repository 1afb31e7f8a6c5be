"""The commands that prove, mend and complete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .. import documents, tables
from ..output import Progress
from ..request import Request
from .verb import Model, Reason, verb

if TYPE_CHECKING:
    from ...memory import Memory
    from ...queries.verify import Depth

KEY_BYTES = 32


@verb
def verify(
    request: Request,
    quick: Annotated[bool, typer.Option("--quick", help="Leave signatures and payloads closed.")] = False,
    views: Annotated[bool, typer.Option("--views", help="Compare the views with a rebuild too.")] = False,
    root_key: Annotated[
        str | None,
        typer.Option(
            metavar="HEX", help="Audit with this root public key alone: no secret is needed.", show_default=False
        ),
    ] = None,
) -> None:
    """Check every entry, root, hash, signature and key.

    Exits with 1 at the first that is wrong, and names its position.
    """
    if root_key is not None and views:
        raise typer.BadParameter("The views open with the store's keys only.", param_hint="--views")
    depth: Depth = "structure" if quick else "full"
    if root_key is not None:
        request.answer(request.audit(_key(root_key), depth), documents.verified, tables.audited)
    elif not views:  # the log alone, whatever state the views are in
        request.answer(request.audit(None, depth), documents.verified, tables.verified)
    else:
        with request.memory() as memory:
            report = memory.verify(depth=depth, views=True, progress=request.bar.show)
        request.answer(report, documents.verified, tables.verified)


def _key(digits: str) -> bytes:
    try:
        key = bytes.fromhex(digits)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise typer.BadParameter(f"A root key has {2 * KEY_BYTES} hexadecimal digits.", param_hint="--root-key")
    return key


@verb
def doctor(request: Request) -> None:
    """Look for all that can be wrong with a store, its keys and what is around it, and say what mends each.

    Changes nothing, and needs no store that opens. Logs of up to 5,000 entries are read whole, of longer ones what is
    new and a sample: `tallystick verify` proves every entry. Ends with 1 when something is wrong, with 0 when there
    are warnings at most.
    """
    found = request.diagnose()
    request.answer(found, documents.diagnosed, tables.diagnosed)
    if not found.healthy:
        raise typer.Exit(1)


@verb
def replay(request: Request, reason: Reason = None) -> None:
    """Rebuild every view from the log.

    The way back when a view is damaged or gone. The new views are put in force, and that is put on record.
    """
    request.answer(request.replay(reason), documents.rebuilt, tables.rebuilt)


@verb
def embed(request: Request, model: Model = None) -> None:
    """Make the vectors that are missing.

    By them memories are found by meaning. A recall makes them as well, for three seconds at most.
    """
    with request.memory(model=model) as memory:
        made = make_vectors(memory, request.bar.show), memory.status().model
    request.answer(made, documents.embedded, tables.embedded)


def make_vectors(memory: Memory, tell: Progress, seconds: float | None = None) -> int:
    """Make the vectors that are missing, for so long at most, and tell how far it is. Returns how many were made."""
    most = 0

    def missing(vectors: int) -> None:
        nonlocal most
        most = max(most, vectors)
        tell("making vectors", most - vectors, most)

    return memory.embed(missing, seconds=seconds)


def join(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    for command in (verify, doctor, replay, embed):
        app.command()(command)
