"""An event goes into the log sealed, and comes out only where it opens to what was committed to."""

from __future__ import annotations

import time
from typing import Any
from uuid import UUID

import pytest
from eventsourcing.persistence import StoredEvent

from tallystick.errors import LogDamaged, Refused
from tallystick.events.entries import Entry
from tallystick.events.envelope import CLEAR, XCHACHA20_POLY1305, Header, payload_hash, stream_of
from tallystick.events.kinds import Event, Forgotten, Stored
from tallystick.events.mapper import CanonicalTranscoder, Draft, EntryRead, EventMapper, SealedEvent, new_id
from tallystick.events.sealing import commitment, event_secrets, generation_of, new_data_key
from tallystick.events.vault import DataKey

from .conftest import NOW, forgotten, log_created, stored

ORIGIN, NONCE = b"o" * 32, b"n" * 16
STREAM = stream_of(ORIGIN, NONCE)
KEY = DataKey(1, new_data_key())
TEXT = "a text that nobody may read"


class Keyring:
    """Data keys by stream, as the vault would find them."""

    def __init__(self) -> None:
        self.keys: dict[bytes, DataKey] = {STREAM: KEY}

    def __call__(self, stream: bytes) -> DataKey | None:
        """The key of a stream, or None."""
        return self.keys.get(stream)


@pytest.fixture
def keyring() -> Keyring:
    """The keys that can be found."""
    return Keyring()


@pytest.fixture
def mapper(keyring: Keyring) -> EventMapper:
    """The mapper of one log."""
    return EventMapper("memory", ORIGIN, keyring)


def first(text: str = TEXT) -> Draft:
    """A draft that opens the stream."""
    return Draft(STREAM, 0, stored(text, NONCE), KEY, b"wrapped")


def as_read(sealed: SealedEvent, **changes: Any) -> EntryRead:
    """What the recorder reads of a sealed event, once it has signed it."""
    fields: dict[str, Any] = {
        "v": 1, "id": sealed.id, "origin": ORIGIN, "position": 5, "root": b"r" * 32, "key": b"k" * 8, "time": 1,
        "kind": sealed.topic, "schema": sealed.schema, "stream": STREAM, "revision": sealed.originator_version,
        "cipher": sealed.cipher, "commitment": sealed.commitment, "payload_hash": payload_hash(sealed.state),
        "payload_length": len(sealed.state),
    }  # fmt: skip
    header = Header(**{**fields, **{name: value for name, value in changes.items() if name != "state"}})
    state = changes.get("state", sealed.state)
    return EntryRead.of(Entry(header, b"l" * 32, b"", state))


def test_an_event_comes_back_as_it_went_in(mapper: EventMapper) -> None:
    """With its header and the name of its log."""
    draft = first()
    logged = mapper.to_domain_event(as_read(mapper.to_stored_event(draft)))
    assert (logged.event, logged.log, logged.header.position, logged.leaf) == (draft.event, "memory", 5, b"l" * 32)
    assert (logged.originator_id, logged.originator_version) == (UUID(bytes=STREAM), 0)


def test_what_is_stored_is_sealed(mapper: EventMapper) -> None:
    """Neither text, actor nor namespace stands in what the recorder gets; kind, stream and revision do."""
    sealed = mapper.to_stored_event(first())
    assert isinstance(sealed, StoredEvent)
    assert (sealed.originator_id, sealed.originator_version, sealed.topic) == (UUID(bytes=STREAM), 0, "memory.stored")
    assert (sealed.cipher, sealed.schema, sealed.wrapped) == (XCHACHA20_POLY1305, 1, b"wrapped")
    assert generation_of(sealed.state) == KEY.generation
    shown = repr(sealed).encode() + sealed.state
    assert not [word for word in (b"nobody", b"agent:test", b"namespace") if word in shown]


def test_the_commitment_is_to_the_body(mapper: EventMapper) -> None:
    """Anyone who is given the body and the salt checks it with SHA-256 alone."""
    sealed = mapper.to_stored_event(first())
    body = mapper.transcoder.encode(first().event.model_dump(exclude_defaults=True))
    _, salt = event_secrets(KEY.key, sealed.id)
    assert sealed.commitment == commitment(salt, body)


def test_the_same_event_is_sealed_differently_each_time(mapper: EventMapper) -> None:
    """Equal texts can't be told from their payloads, commitments or ids."""
    one, two = (mapper.to_stored_event(first()) for _ in range(2))
    assert (one.state, one.commitment, one.id) != (two.state, two.commitment, two.id)
    assert not {one.state, one.commitment, one.id} & {two.state, two.commitment, two.id}


def test_an_event_in_clear_is_not_sealed(mapper: EventMapper) -> None:
    """It needs no key, has no commitment, and is read without one."""
    event = log_created(NONCE)
    sealed = mapper.to_stored_event(Draft(STREAM, 0, event))
    assert (sealed.cipher, sealed.commitment, sealed.wrapped) == (CLEAR, b"", None)
    assert mapper.to_domain_event(as_read(sealed)).event == event


def test_an_event_that_is_to_be_sealed_needs_a_key(mapper: EventMapper) -> None:
    """It is never written in clear instead."""
    with pytest.raises(Refused, match="was erased"):
        mapper.to_stored_event(Draft(STREAM, 1, forgotten()))


class Surprise(Event):
    """A kind that nobody has registered."""

    KIND = "memory.surprise"


class Impostor(Stored):
    """A subclass that goes by a registered name."""


@pytest.mark.parametrize("kind", [Surprise, Impostor])
def test_an_unregistered_kind_is_refused(mapper: EventMapper, kind: type[Event]) -> None:
    """The registry is closed when writing too, and a subclass does not slip in under its parent's name."""
    fields: dict[str, Any] = {"text": "t", "namespace": "n"} if kind is Impostor else {}
    with pytest.raises(Refused, match=f"{kind.__name__} is not a registered kind"):
        mapper.to_stored_event(Draft(STREAM, 0, kind(recorded_at=NOW, actor="a", **fields), KEY))


@pytest.mark.parametrize("metadata", [{"a": float("nan")}, {"a": 2**65}, {"a\0": 1}, {"a": "b\0"}])
def test_a_body_that_cannot_be_kept_is_refused(mapper: EventMapper, metadata: dict[str, Any]) -> None:
    """Values without canonical bytes are refused when writing, and not found damaged when reading."""
    event = Stored(recorded_at=NOW, actor="a", text="t", namespace="n", metadata=metadata)
    with pytest.raises(Refused, match="can't be kept"):
        mapper.to_stored_event(Draft(STREAM, 0, event, KEY))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"commitment": b"c" * 32}, "another text than was committed to"),
        ({"id": b"x" * 16}, "changed, moved, or sealed with another key"),
        ({"origin": b"p" * 32}, "changed, moved, or sealed with another key"),
        ({"kind": "memory.forgotten"}, "the body of a memory.forgotten event is not one"),
        ({"kind": "memory.exploded"}, "is not a kind of event this release writes"),
        ({"schema": 2}, "is not a kind of event this release writes"),
        ({"state": b""}, "too few to open"),
        ({"cipher": CLEAR}, "position 5: "),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_does_not_open_is_damage_at_its_position(mapper: EventMapper, change: dict[str, Any], what: str) -> None:
    """Even with a header that somebody has signed: it names log and position, and what to do."""
    read = as_read(mapper.to_stored_event(first()), **change)
    with pytest.raises(LogDamaged, match=what) as damage:
        mapper.to_domain_event(read)
    assert (damage.value.log, damage.value.position) == ("memory", 5)
    assert "memory log, position 5" in str(damage.value)
    assert "tallystick verify" in str(damage.value)


def test_any_changed_byte_of_a_payload_is_found(mapper: EventMapper) -> None:
    """Generation, nonce, ciphertext and tag."""
    sealed = mapper.to_stored_event(first())
    for place in range(len(sealed.state)):
        changed = bytearray(sealed.state)
        changed[place] ^= 1
        with pytest.raises(LogDamaged):
            mapper.to_domain_event(as_read(sealed, state=bytes(changed)))


def test_a_payload_without_its_key_is_damage(mapper: EventMapper, keyring: Keyring) -> None:
    """A key that is gone is named, and so is one that is another's."""
    sealed = mapper.to_stored_event(first())
    keyring.keys[STREAM] = DataKey(1, new_data_key())
    with pytest.raises(LogDamaged, match="sealed with another key"):
        mapper.to_domain_event(as_read(sealed))
    keyring.keys.clear()
    with pytest.raises(LogDamaged, match="its data key is gone"):
        mapper.to_domain_event(as_read(sealed))


@pytest.mark.parametrize("nonce", [None, b"m" * 16])
def test_a_stream_is_opened_by_its_nonce_alone(mapper: EventMapper, nonce: bytes | None) -> None:
    """A first event whose nonce does not give the stream's id is not that stream's first event."""
    sealed = mapper.to_stored_event(Draft(STREAM, 0, stored(TEXT, nonce), KEY))
    with pytest.raises(LogDamaged, match="the stream's id is not that of its first event"):
        mapper.to_domain_event(as_read(sealed))


def test_a_later_event_needs_no_nonce(mapper: EventMapper) -> None:
    """Only the first one fixes the stream's id."""
    sealed = mapper.to_stored_event(Draft(STREAM, 1, forgotten("why"), KEY))
    event = mapper.to_domain_event(as_read(sealed)).event
    assert isinstance(event, Forgotten)
    assert event.reason == "why"


def test_nothing_is_decoded_by_name() -> None:
    """What the library's transcoder would turn into an object, or into a poison, is plain data here."""
    transcoder = CanonicalTranscoder()
    for trap in ({"_type_": "uuid_hex", "_data_": "0" * 32}, {"_type_": "nothing", "_data_": 1}, {"__class__": "os"}):
        assert transcoder.decode(transcoder.encode({"metadata": trap})) == {"metadata": trap}


def test_ids_are_uuids_of_version_7(monkeypatch: pytest.MonkeyPatch) -> None:
    """RFC 9562: 48 bits of milliseconds, version, variant, and 74 random bits."""
    monkeypatch.setattr(time, "time_ns", lambda: 1_767_225_600_123_456_789)
    ids = [new_id() for _ in range(100)]
    assert len(set(ids)) == 100
    for each in ids:
        read = UUID(bytes=each)
        assert (read.version, read.variant) == (7, "specified in RFC 4122")
        assert int.from_bytes(each[:6], "big") == 1_767_225_600_123
    differing = 0
    for each in ids:
        differing |= int.from_bytes(each, "big") ^ int.from_bytes(ids[0], "big")
    assert differing.bit_count() == 74


def test_an_event_says_in_a_line_what_happened(mapper: EventMapper) -> None:
    """When, what, by whom and, where there is one, why."""
    stored_event = mapper.to_domain_event(as_read(mapper.to_stored_event(first())))
    assert str(stored_event) == "2026-01-01 00:00:00Z  memory.stored by agent:test"
    draft = Draft(STREAM, 1, forgotten("outdated"), KEY)
    sealed = mapper.to_stored_event(draft)
    logged = mapper.to_domain_event(as_read(sealed))
    assert str(logged) == "2026-01-01 00:00:00Z  memory.forgotten by agent:test: outdated"
    assert (draft.originator_id, draft.originator_version) == (sealed.originator_id, sealed.originator_version)
