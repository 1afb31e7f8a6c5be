"""The export format: a memory's life as JSON, readable without its store, and which events are part of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from .canonical import decode_body, encode_body
from .kinds import (
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
    Told,
    Unlinked,
    body_of,
    event_from,
)

VERSION = 1
"""The version of the format."""
MAX_ROW_BYTES = 64 << 20
"""A longer line is not read."""
LIFE: dict[str, type[Event]] = {
    kind.KIND: kind
    for kind in (
        Stored, Revised, Reinforced, Superseded, Forgotten, Restored, Linked, Unlinked, Protected, Pinned,
    )
}  # fmt: skip
"""The kinds of events that a memory's life is told by."""
TIMES = ("occurred_at", "valid_from", "expires_at")
HASHES = ("parents", "derived_from")
REFERENCES = ("by", "to")
"""The fields that name another memory."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Began(NamedTuple):
    """In which log a memory began, and as which stream: its name wherever it is moved to."""

    origin: bytes
    memory: bytes

    def __str__(self) -> str:
        return f"{self.origin.hex()}/{self.memory.hex()}"


def header(log: bytes, size: int, root: bytes, at: int, actor: str) -> dict[str, Any]:
    """The first line of an export: of which log, and of which state of it."""
    return {
        "tallystick": "export",
        "version": VERSION,
        "log": log.hex(),
        "size": size,
        "root": root.hex(),
        "at": moment(at),
        "actor": actor,
    }


def footer(rows: int) -> dict[str, Any]:
    """The last line of an export: how many lines of memories came before it."""
    return {"end": rows}


def document(event_id: bytes, event: Event, name: Callable[[bytes], Began]) -> dict[str, Any]:
    """One event of a memory's life. `name` tells where a stream that it points to began."""
    body = body_of(event)
    for each in ("nonce", "recorded_at", "actor"):
        body.pop(each, None)
    body |= {each: moment(body[each]) for each in TIMES if body.get(each) is not None}
    body |= {each: [value.hex() for value in body[each]] for each in HASHES if each in body}
    body |= {each: str(name(body[each])) for each in REFERENCES if each in body}
    return {
        "event": event.KIND,
        "schema": event.SCHEMA,
        "id": event_id.hex(),
        "at": moment(event.recorded_at),
        "actor": event.actor,
        **body,
    }


def moment(microseconds: int) -> str:
    """An instant in ISO 8601, UTC, to the microsecond."""
    return (_EPOCH + timedelta(microseconds=microseconds)).isoformat().replace("+00:00", "Z")


def telling(event_id: bytes, event: Event) -> Told:
    """An event as an import keeps it."""
    return Told(id=event_id, kind=event.KIND, version=event.SCHEMA, body=encode_body(body_of(event)))


def told(each: Told) -> Event:
    """The event that an import keeps. Raises LogDamaged for a body that is not one."""
    return event_from(each.kind, each.version, decode_body(each.body))


def done_under(event: Event, command_id: str | None) -> Event:
    """The event that a command came to: of an import, that which its file tells of it."""
    if not isinstance(event, Imported):
        return event
    return next((each for each in map(told, event.events) if each.command_id == command_id), event)
