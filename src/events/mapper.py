"""Between events and what the log stores of them: id, data key, commitment and sealed payload."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from eventsourcing.persistence import Mapper, Notification, StoredEvent, Transcoder

from ..errors import LogDamaged, Refused, StreamErased
from .canonical import NotCanonical, decode_body, encode_body
from .entries import Entry
from .envelope import CLEAR, XCHACHA20_POLY1305, Header, stream_of
from .kinds import REGISTRY, Event, body_of, event_from
from .sealing import SealBroken, seal, unseal
from .vault import DataKey, FindKey

NEXT = -1  # the revision of a draft that goes wherever the stream ends


class Draft(NamedTuple):
    """An event about to be appended: to which stream, at which revision (or NEXT), sealed with which key.

    `wrapped` is the wrapped data key of a stream that this event opens, `id` the event's own where it has one already.
    """

    stream: bytes
    revision: int
    event: Event
    data_key: DataKey | None = None
    wrapped: bytes | None = None
    id: bytes | None = None

    @property
    def originator_id(self) -> UUID:
        """The stream, as the library names it."""
        return UUID(bytes=self.stream)

    @property
    def originator_version(self) -> int:
        """The revision, as the library names it."""
        return self.revision


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """An event as it stands in a log: its signed header, its leaf hash and its body."""

    log: str
    header: Header
    leaf: bytes
    event: Event

    def __str__(self) -> str:
        at = datetime.fromtimestamp(self.event.recorded_at // 1_000_000, UTC)
        reason = getattr(self.event, "reason", None)
        return f"{at:%Y-%m-%d %H:%M:%SZ}  {self.header.kind} by {self.event.actor}{f': {reason}' if reason else ''}"

    @property
    def originator_id(self) -> UUID:
        """The stream, as the library names it."""
        return UUID(bytes=self.header.stream)

    @property
    def originator_version(self) -> int:
        """The revision, as the library names it."""
        return self.header.revision


@dataclass(frozen=True)
class SealedEvent(StoredEvent):
    """What the recorder signs: a stored event (topic is the kind, state the payload) and our header fields."""

    stream: bytes
    id: bytes
    schema: int
    cipher: int
    commitment: bytes
    wrapped: bytes | None


@dataclass(frozen=True)
class EntryRead(Notification):
    """An entry as the library names it: its id is the position, its topic the kind, its state the payload."""

    entry: Entry

    @classmethod
    def of(cls, entry: Entry) -> EntryRead:
        """The entry under the library's names."""
        header = entry.header
        stream = UUID(bytes=header.stream)
        return cls(stream, header.revision, header.kind, entry.payload, header.position, entry)


class CanonicalTranscoder(Transcoder):
    """Bodies as canonical MessagePack: no types looked up by name, nothing imported."""

    def encode(self, obj: Any) -> bytes:
        """The canonical bytes of a body. Raises Refused for a value they can't hold."""
        try:
            return encode_body(obj)
        except NotCanonical as error:
            raise Refused(
                f"{_culprit(obj)} can't be kept: {error}. Give another value; nothing was written."
            ) from error

    def decode(self, data: bytes) -> Any:
        """The body in these bytes. Raises NotCanonical for any other encoding of it."""
        return decode_body(data)


class EventMapper(Mapper[UUID]):
    """Seals drafts and opens what the recorder read, for one log and the closed registry of kinds."""

    def __init__(self, log: str, origin: bytes, find_key: FindKey) -> None:
        super().__init__(CanonicalTranscoder())
        self._log = log
        self._origin = origin
        self._find_key = find_key

    def to_stored_event(self, domain_event: Any) -> SealedEvent:
        """The draft as the recorder signs it. Raises Refused for an unregistered kind or a body that can't be kept."""
        draft: Draft = domain_event
        event = draft.event
        if REGISTRY.get((event.KIND, event.SCHEMA)) is not type(event):
            raise Refused(f"{type(event).__name__} is not a registered kind of event. Add it to the registry.")
        event_id = draft.id or new_id()
        payload, commitment = self._close(draft, event_id, self.encode(event))
        return SealedEvent(
            originator_id=draft.originator_id,
            originator_version=draft.revision,
            topic=event.KIND,
            state=payload,
            stream=draft.stream,
            id=event_id,
            schema=event.SCHEMA,
            cipher=CLEAR if event.CLEAR else XCHACHA20_POLY1305,
            commitment=commitment,
            wrapped=draft.wrapped,
        )

    def encode(self, event: Event) -> bytes:
        """The canonical body of an event. Raises Refused, naming the field, for a value that can't be kept."""
        return bytes(self.transcoder.encode(body_of(event)))

    def to_domain_event(self, stored_event: StoredEvent) -> LoggedEvent:
        """The event the recorder read. Raises LogDamaged, naming the position, where it does not open."""
        read: EntryRead = stored_event  # type: ignore[assignment]
        return self.open(read.entry)

    def open(self, entry: Entry, find_key: FindKey | None = None) -> LoggedEvent:
        """The event of an entry. Raises LogDamaged, naming the position, where it does not open."""
        header = entry.header
        try:
            body = self.transcoder.decode(_plaintext(entry, find_key or self._find_key))
            event = event_from(header.kind, header.schema, body)
        except (SealBroken, NotCanonical, LogDamaged) as error:
            raise self._damaged(header, str(error)) from error
        if header.revision == 0 and (event.nonce is None or stream_of(header.origin, event.nonce) != header.stream):
            raise self._damaged(header, "the stream's id is not that of its first event")
        return LoggedEvent(self._log, header, entry.leaf, event)

    def _close(self, draft: Draft, event_id: bytes, plaintext: bytes) -> tuple[bytes, bytes]:
        if draft.event.CLEAR:
            return plaintext, b""
        if draft.data_key is None:
            raise StreamErased(f"The memory {draft.stream.hex()} was erased. It can't come back; store a new one.")
        generation, key = draft.data_key
        return seal(key, plaintext, event_id=event_id, origin=self._origin, stream=draft.stream, generation=generation)

    def _damaged(self, header: Header, what: str) -> LogDamaged:
        return LogDamaged(
            f"{self._log} log, position {header.position}: {what}. {LogDamaged.remedy}",
            log=self._log,
            position=header.position,
        )


def _plaintext(entry: Entry, find_key: FindKey) -> bytes:
    """The body of an entry, opened with its stream's key where it is sealed."""
    header = entry.header
    if header.cipher == CLEAR:
        return entry.payload
    data_key = find_key(header.stream)
    if data_key is None:
        raise SealBroken("its data key is gone")
    return unseal(
        data_key.key,
        entry.payload,
        event_id=header.id,
        origin=header.origin,
        stream=header.stream,
        commitment=header.commitment,
    )


def _culprit(body: dict[str, Any]) -> str:
    """The first field of a body that has no canonical form."""
    for name, value in body.items():
        try:
            encode_body({name: value})
        except NotCanonical:
            return name
    return "The event"


def new_id() -> bytes:
    """A UUIDv7 (RFC 9562 section 5.7): 48 bit milliseconds, then random."""
    value = bytearray((time.time_ns() // 1_000_000).to_bytes(6, "big") + os.urandom(10))
    value[6] = 0x70 | value[6] & 0x0F
    value[8] = 0x80 | value[8] & 0x3F
    return bytes(value)
