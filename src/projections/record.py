"""What one memory has come to: the fold of its stream's events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Literal

from ..events.kinds import Event, Forgotten, Reinforced, Restored, Stored, Superseded
from ..events.mapper import LoggedEvent

Status = Literal["current", "forgotten", "superseded"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, repr=False)
class Record:
    """A materialised memory: what was stored, and what has happened to it since.

    `revision`, `position` and `leaf` are those of the last event that was folded, `text_position`
    is where the text stands in the memory log.
    """

    stream: bytes
    stored: Stored
    text_position: int
    revision: int
    position: int
    leaf: bytes
    status: Status = "current"
    reinforced: int = 0
    superseded_by: bytes | None = None
    forgotten_for: str | None = None

    def __repr__(self) -> str:
        return f"Record({self.id[:12]}, {self.status}, {self.text[:60]!r})"

    @property
    def id(self) -> str:
        """The memory's id, 32 hexadecimal digits."""
        return self.stream.hex()

    @property
    def text(self) -> str:
        """The text as it was stored, byte for byte."""
        return self.stored.text

    @property
    def namespace(self) -> str:
        """The namespace the memory belongs to."""
        return self.stored.namespace

    @property
    def tags(self) -> tuple[str, ...]:
        """The memory's tags."""
        return self.stored.tags

    @property
    def recorded_at(self) -> datetime:
        """When it was stored, by the writer's wall clock (UTC)."""
        return moment(self.stored.recorded_at)

    @property
    def occurred_at(self) -> datetime | None:
        """When what it tells happened, where that was said (UTC)."""
        return None if self.stored.occurred_at is None else moment(self.stored.occurred_at)


def moment(microseconds: int) -> datetime:
    """The instant of an event's time, in UTC."""
    return _EPOCH + timedelta(microseconds=microseconds)


def fold(events: Sequence[LoggedEvent]) -> Record | None:
    """The memory that a stream's events, in order of revision, add up to; None where the stream is no memory."""
    record: Record | None = None
    for logged in events:
        record = _after(record, logged)
        if record is None:
            return None
    return record


def _after(record: Record | None, logged: LoggedEvent) -> Record | None:
    event, header = logged.event, logged.header
    if isinstance(event, Stored):
        return Record(header.stream, event, header.position, header.revision, header.position, logged.leaf)
    if record is None:
        return None
    at = replace(
        record,
        revision=header.revision,
        position=header.position,
        leaf=logged.leaf,
        status=status_after(record.status, event),
    )
    match event:
        case Reinforced():
            return replace(at, reinforced=record.reinforced + 1)
        case Superseded():
            return replace(at, superseded_by=event.by)
        case Forgotten():
            return replace(at, forgotten_for=event.reason)
        case Restored():
            return replace(at, forgotten_for=None)
        case _:
            return at


def status_after(status: Status, event: Event) -> Status:
    """What an event makes of a memory's status."""
    match event:
        case Superseded():
            return "superseded"
        case Forgotten():
            return "forgotten"
        case Stored() | Restored():
            return "current"
        case _:
            return status
