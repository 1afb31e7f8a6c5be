"""Blame: for each field of a memory the event that gave it the value it has, and who signed that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..errors import NotFound
from ..events.kinds import Event, Stored, body_of
from ..events.mapper import LoggedEvent
from ..projections.record import fold


class Blame(NamedTuple):
    """One field of a memory, its value, and the event that wrote it.

    `actor` is who acted, as claimed, `signed_by` the id of the key that signed; `at` is wall-clock microseconds.
    """

    field: str
    value: Any
    revision: int
    position: int
    kind: str
    actor: str
    at: int
    signed_by: bytes


def blame(events: Sequence[LoggedEvent]) -> list[Blame]:
    """Every field that a memory has a value of, or had and lost, in the order in which they are stored."""
    record = fold(events)
    if record is None:
        raise NotFound("That stream is not a memory. Look for the id of one with `tallystick recall`.")
    written = {*body_of(record.stored), *record.provenance} - set(Event.model_fields)
    fields = [name for name in Stored.model_fields if name in written]
    return [_blame(name, getattr(record.stored, name), events[record.provenance.get(name, 0)]) for name in fields]


def _blame(name: str, value: Any, logged: LoggedEvent) -> Blame:
    header, event = logged.header, logged.event
    return Blame(name, value, header.revision, header.position, header.kind, event.actor, event.recorded_at, header.key)
