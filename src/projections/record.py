"""What one memory has come to: the fold of its stream's events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, NamedTuple

from ..events.instants import moment
from ..events.kinds import (
    Event,
    Forgotten,
    Imported,
    Linked,
    Pinned,
    Protected,
    Reinforced,
    Restored,
    Revised,
    Stored,
    Superseded,
    Unlinked,
)
from ..events.mapper import LoggedEvent
from ..events.portable import told

Status = Literal["current", "forgotten", "superseded"]


REVISABLE = (
    "text", "kind", "source", "subject", "importance", "confidence", "author", "occurred_at", "valid_from",
    "expires_at", "evidence", "label", "trust", "metadata",
)  # fmt: skip
"""The fields that a revision gives whole; tags come and go one by one."""
CLEARABLE = ("subject", "confidence", "author", "occurred_at", "valid_from", "expires_at", "label", "trust")
"""The fields that a revision can leave without a value."""


class Link(NamedTuple):
    """A memory points to another: how, and to which stream."""

    kind: str
    to: bytes


class Arrival(NamedTuple):
    """How a memory came in from an export: where and as what it began, and who the file says stored it.

    `through` is the log that was exported. What is told here is a claim of the file, never an act in this store.
    """

    origin: bytes
    memory: bytes
    through: bytes
    actor: str
    source: str


class _Place(NamedTuple):
    """Where an event stands."""

    stream: bytes
    revision: int
    position: int
    leaf: bytes


@dataclass(frozen=True, slots=True, repr=False)
class Record:
    """A materialised memory: what it says now, and what has happened to it.

    `stored` holds each field as it is after the last revision; `provenance` the revision that wrote it, for those
    that are no longer the first. `revision`, `position` and `leaf` are those of the last event that was folded,
    `text_position` is where the text stands in the memory log. `imported` says how it came in from an export.
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
    revised_at: int | None = None
    protected: bool = False
    pinned: bool = False
    links: tuple[Link, ...] = ()
    provenance: Mapping[str, int] = field(default_factory=dict)
    imported: Arrival | None = None
    renamed_to: str | None = None

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
        """The namespace the memory belongs to, by the name it has now; `stored` holds the one it had then."""
        return self.renamed_to or self.stored.namespace

    def renamed(self, namespace: str) -> Record:
        """The same memory, its namespace having this name now."""
        return self if namespace == self.namespace else replace(self, renamed_to=namespace)

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


def fold(events: Sequence[LoggedEvent], record: Record | None = None) -> Record | None:
    """The memory that a stream's events, in order of revision, add up to, or make of a memory that was folded before.

    None where the stream is no memory.
    """
    for logged in events:
        header = logged.header
        record = _after(record, logged.event, _Place(header.stream, header.revision, header.position, logged.leaf))
        if record is None:
            return None
    return record


def would_be(record: Record | None, event: Imported, stream: bytes) -> Record:
    """The memory as it will be after an import that has no place in the log yet."""
    return _imported(record, event, _Place(stream, 0 if record is None else record.revision + 1, -1, b""))


def _after(record: Record | None, event: Event, place: _Place) -> Record | None:
    if isinstance(event, Imported):
        return _imported(record, event, place)
    if isinstance(event, Stored):
        return Record(place.stream, event, place.position, place.revision, place.position, place.leaf)
    if record is None:
        return None
    at = replace(
        record,
        revision=place.revision,
        position=place.position,
        leaf=place.leaf,
        status=status_after(record.status, event),
    )
    changes = _CHANGES.get(type(event))
    return at if changes is None else replace(at, **changes(at, event))


def _imported(record: Record | None, event: Imported, place: _Place) -> Record:
    """What the file tells, as told; but who acted here is the importer, and what was judged elsewhere counts not."""
    arrival = None if record is None else record.imported
    for each in event.events:
        record = _after(record, told(each), place)
        assert record is not None  # an import begins with what was stored
    assert record is not None
    if arrival is None:
        arrival = Arrival(event.origin, event.memory, event.through, record.stored.actor, record.stored.source)
    here = {"actor": event.actor, "via": event.via, "source": "imported", "trust": None, "screening": ()}
    record = replace(record, stored=record.stored.model_copy(update=here), imported=arrival)
    if event.yields_to is None:
        return record
    return replace(record, status="superseded", superseded_by=event.yields_to)


def _revised(record: Record, event: Revised) -> dict[str, Any]:
    written = revision_of(record.stored, event)
    return {
        "stored": record.stored.model_copy(update=written),
        "text_position": record.position if "text" in written else record.text_position,
        "revised_at": event.recorded_at,
        "provenance": {**record.provenance, **dict.fromkeys(written, record.revision)},
    }


_CHANGES: dict[type[Event], Callable[[Record, Any], dict[str, Any]]] = {
    Revised: _revised,
    Reinforced: lambda record, _: {"reinforced": record.reinforced + 1},
    Superseded: lambda _, event: {"superseded_by": event.by},
    Forgotten: lambda _, event: {"forgotten_for": event.reason},
    Restored: lambda _, __: {"forgotten_for": None},
    Linked: lambda record, event: {"links": (*record.links, Link(event.kind, event.to))},
    Unlinked: lambda record, event: {"links": tuple(link for link in record.links if link != (event.kind, event.to))},
    Protected: lambda _, event: {"protected": event.on},
    Pinned: lambda _, event: {"pinned": event.on},
}
"""What each kind of event changes of a memory, besides its status and the place of its last event."""


def revision_of(stored: Stored, event: Revised) -> dict[str, Any]:
    """The fields that a revision writes, with the values they then have."""
    changes = {name: value for name in REVISABLE if (value := getattr(event, name)) is not None}
    changes |= {name: None for name in event.cleared if name in CLEARABLE}
    if event.tags_added or event.tags_removed:
        kept = tuple(tag for tag in stored.tags if tag not in event.tags_removed)
        changes["tags"] = kept + tuple(tag for tag in event.tags_added if tag not in kept)
    if event.derived_from:
        changes["derived_from"] = stored.derived_from + event.derived_from
    return changes


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
