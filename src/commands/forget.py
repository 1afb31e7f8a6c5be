"""Forget a memory, and restore it: retracted it is recalled by nobody, and kept."""

from __future__ import annotations

from ..errors import Refused
from ..events.claims import held_tags
from ..events.kinds import Forgotten, Restored
from ..projections.record import Record
from .change import Change, Wish, change, refuse_protected
from .outcome import Outcome
from .protect import PinnedIn, require_room
from .session import Session


def forget(session: Session, wish: Wish, reason: str | None = None) -> Outcome:
    """Append the retraction. Raises NotFound, or Refused where it is forgotten already or protected."""
    event = session.event(Forgotten, reason=reason)

    def decide(record: Record) -> Change:
        if record.status == "forgotten":
            raise Refused(f"The memory {record.id} is forgotten already. Restore it first to forget it again.")
        refuse_protected(record)
        return Change("forgotten", event, gives_up=held_tags(session.index_key, record.stored, record.namespace))

    return change(session, wish, event, decide)


def restore(session: Session, wish: Wish, pinned: PinnedIn, reason: str | None = None) -> Outcome:
    """Append the restoration. Raises NotFound, or Refused where there is nothing to restore, or no room for its pin."""
    event = session.event(Restored, reason=reason)

    def decide(record: Record) -> Change:
        if record.status != "forgotten":
            raise Refused(f"The memory {record.id} is {record.status}, not forgotten. Give the id of a forgotten one.")
        if record.superseded_by is not None:
            raise Refused(f"The memory {record.id} was superseded by {record.superseded_by.hex()}. Recall that one.")
        if record.pinned:
            require_room(record, record.text, pinned)
        takes = held_tags(session.index_key, record.stored, record.namespace)
        return Change("restored", event, takes=takes, alone=record.pinned)

    return change(session, wish, event, decide)
