"""Link one memory to another, and take the link away."""

from __future__ import annotations

from ..errors import Refused
from ..events.kinds import Linked, Unlinked
from ..projections.record import Link, Record
from .change import Change, Wish, change, current
from .outcome import Outcome
from .session import Session


def link(session: Session, wish: Wish, link: Link) -> Outcome:
    """Append that a memory points to another one. Raises NotFound for either, Refused where it does already."""
    current(session.installation.memory, link.to)
    event = session.event(Linked, to=link.to, kind=link.kind)

    def decide(record: Record) -> Change:
        if link.to == record.stream:
            raise Refused("A memory is not linked to itself. Name another one.")
        if link in record.links:
            raise Refused(f"The memory {record.id} is linked so already. Give another kind of link.")
        return Change("linked", event)

    return change(session, wish, event, decide)


def unlink(session: Session, wish: Wish, link: Link) -> Outcome:
    """Append that a memory points to another one no longer. Raises NotFound, or Refused where there is no such link."""
    event = session.event(Unlinked, to=link.to, kind=link.kind)

    def decide(record: Record) -> Change:
        if link not in record.links:
            raise Refused(f"The memory {record.id} has no such link. Look at its links with `tallystick get`.")
        return Change("unlinked", event)

    return change(session, wish, event, decide)
