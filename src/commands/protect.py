"""Protect a memory from any change, and pin it into every context of its namespace."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..errors import Refused
from ..events.kinds import Pinned, Protected
from ..projections.record import Record
from .change import Change, Wish, change
from .outcome import Outcome
from .session import Session

PINNED_BYTES = 8192
"""How much text may be pinned in one namespace: about 2,000 tokens of every context."""


PinnedIn = Callable[[str], Iterable[Record]]
"""Tells which memories of a namespace are pinned."""


def protect(session: Session, wish: Wish, *, on: bool, reason: str | None = None) -> Outcome:
    """Append that nothing may change a memory, or that this is over. Raises NotFound, or Refused where it is so."""
    event = session.event(Protected, on=on, reason=reason)

    def decide(record: Record) -> Change:
        if record.protected == on:
            raise Refused(
                f"The memory {record.id} is {'' if on else 'not '}protected already. Look at it with `tallystick get`."
            )
        return Change("protected" if on else "unprotected", event)

    return change(session, wish, event, decide)


def pin(session: Session, wish: Wish, pinned: PinnedIn, *, on: bool) -> Outcome:
    """Append that a memory belongs to every context, or no longer does; `pinned` tells those of a namespace that do.

    Raises NotFound, or Refused where it is so already, or where the pinned texts would be more than 8 KiB together.
    """
    event = session.event(Pinned, on=on)

    def decide(record: Record) -> Change:
        if record.pinned == on:
            raise Refused(
                f"The memory {record.id} is {'' if on else 'not '}pinned already. Look at it with `tallystick get`."
            )
        if on and record.status != "current":
            raise Refused(f"The memory {record.id} is {record.status}, not current. Restore it before it is pinned.")
        if on:
            require_room(record, record.text, pinned)
        return Change("pinned" if on else "unpinned", event, alone=on)

    return change(session, wish, event, decide)


def require_room(record: Record, text: str, pinned: PinnedIn) -> None:
    """Raise Refused where this text, as that memory's, and the others that are pinned are too much for a context."""
    others = [other.text for other in pinned(record.namespace) if other.id != record.id]
    size = sum(len(each.encode()) for each in (text, *others))
    if size > PINNED_BYTES:
        raise Refused(
            f"With this text {size:,} bytes would be pinned in {record.namespace}, and {PINNED_BYTES:,} is the most. "
            f"Choose a shorter text, or unpin another memory first."
        )
