"""The commands that retract a memory, bring it back, link, protect and pin it, and say that it was used."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import documents, tables
from ..request import Request
from .verb import CommandId, Identifier, Reason, verb

To = Annotated[str, typer.Argument(metavar="TO", help="The other memory's id, or the beginning of it.")]
LinkKind = Annotated[str, typer.Option(metavar="KIND", help="How: causes, contradicts, or a word of your own.")]
Off = Annotated[bool, typer.Option("--off", help="Take it back.")]


@verb
def forget(request: Request, identifier: Identifier, reason: Reason = None, command_id: CommandId = None) -> None:
    """Retract a memory: nobody recalls it any more.

    It is kept, and can be restored.
    """
    with request.memory() as memory:
        outcome = memory.forget(identifier, reason=reason, command_id=command_id)
    request.answer(outcome, documents.outcome, tables.outcome)


@verb
def restore(request: Request, identifier: Identifier, reason: Reason = None, command_id: CommandId = None) -> None:
    """Bring a forgotten memory back."""
    with request.memory() as memory:
        outcome = memory.restore(identifier, reason=reason, command_id=command_id)
    request.answer(outcome, documents.outcome, tables.outcome)


@verb
def link(
    request: Request, identifier: Identifier, to: To, kind: LinkKind = "related", command_id: CommandId = None
) -> None:
    """Say that a memory points to another one, and how."""
    with request.memory() as memory:
        outcome = memory.link(identifier, to, kind=kind, command_id=command_id)
    request.answer(outcome, documents.outcome, tables.outcome)


@verb
def unlink(
    request: Request, identifier: Identifier, to: To, kind: LinkKind = "related", command_id: CommandId = None
) -> None:
    """Take a link away."""
    with request.memory() as memory:
        outcome = memory.unlink(identifier, to, kind=kind, command_id=command_id)
    request.answer(outcome, documents.outcome, tables.outcome)


@verb
def protect(
    request: Request, identifier: Identifier, off: Off = False, reason: Reason = None, command_id: CommandId = None
) -> None:
    """Let nothing change a memory.

    Not forget, not revise, not a newer value of its key.
    """
    with request.memory() as memory:
        outcome = memory.protect(identifier, on=not off, reason=reason, command_id=command_id)
    request.answer(outcome, documents.outcome, tables.outcome)


@verb
def pin(request: Request, identifier: Identifier, off: Off = False, command_id: CommandId = None) -> None:
    """Make a memory part of every context.

    Of those of its namespace; 8 KiB of text may be pinned together at most.
    """
    with request.memory() as memory:
        outcome = memory.pin(identifier, on=not off, command_id=command_id)
    request.answer(outcome, documents.outcome, tables.outcome)


@verb
def used(
    request: Request,
    receipt: Annotated[str, typer.Argument(metavar="RECEIPT", help="The receipt that a recall printed.")],
    identifiers: Annotated[list[str], typer.Argument(metavar="ID...", help="The hits that were relied on.")],
) -> None:
    """Put on record which hits of a recall were relied on."""
    with request.memory() as memory:
        own = memory.used(receipt, identifiers)
    request.answer(own, documents.receipt, tables.receipt)


def join(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    for command in (forget, restore, link, unlink, protect, pin, used):
        app.command()(command)
