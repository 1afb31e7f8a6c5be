"""The store of the test vectors, made by our own code from fixed keys, nonces and times."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast
from unittest.mock import patch

from tallystick.events import settings
from tallystick.events.canonical import encode_body
from tallystick.events.checkpoint import Checkpoint, sign
from tallystick.events.claim_seal import ClaimSeal
from tallystick.events.claims import PLACES, command_tag, content_tag, key_tag
from tallystick.events.clock import tick
from tallystick.events.envelope import Header, origin_of, payload_hash, sign_entry, stream_of
from tallystick.events.kinds import Event, Forgotten, LogCreated, Recalled, Revised, Stored, body_of
from tallystick.events.mark import Mark
from tallystick.events.merkle import Frontier, leaf_hash
from tallystick.events.sealing import event_secrets, seal, wrap
from tallystick.events.signing import SeedSigner, key_id

NOW = 1_767_225_600_000  # 2026-01-01T00:00:00Z, in milliseconds
SLOT = 8192


def fixed(start: int, length: int) -> bytes:
    """Bytes that count up: what is random in a real store."""
    return bytes((start + n) % 256 for n in range(length))


@contextmanager
def random(value: bytes) -> Iterator[None]:
    """Let the operating system's next random bytes be these."""
    with patch("os.urandom", lambda length: value[:length]):
        yield


ROOT, WRITER, CHECKPOINT = (SeedSigner(fixed(start, 32)) for start in (0x00, 0x20, 0x40))
KEK, INDEX, STORE = fixed(0x60, 32), fixed(0x80, 32), fixed(0xA0, 16)
SECRETS = {"root": ROOT.seed, "writer": WRITER.seed, "log": CHECKPOINT.seed, "kek": KEK, "index": INDEX}


@dataclass
class Made:
    """One log as it is made: its rows, and what led to them."""

    name: str
    number: int
    nonce: bytes
    frontiers: list[Frontier] = field(default_factory=lambda: [Frontier()])
    time: int = 0
    revisions: dict[bytes, int] = field(default_factory=dict)
    entries: list[list[Any]] = field(default_factory=list)
    payloads: list[list[Any]] = field(default_factory=list)
    keys: list[list[Any]] = field(default_factory=list)
    workings: list[dict[str, Any]] = field(default_factory=list)

    @property
    def origin(self) -> bytes:
        """The id of the log."""
        return origin_of(ROOT.public, self.name, self.nonce)

    def begin(self) -> None:
        """Append position 0."""
        origin = self.origin
        self.append(log_created(self.name, self.nonce, origin, WRITER.public, b""), stream_of(origin, self.nonce), 0)

    def append(self, event: Event, stream: bytes, wait: int) -> None:
        """Append an event, `wait` milliseconds after the others began."""
        position = len(self.entries)
        event_id = (
            (NOW + wait).to_bytes(6, "big") + b"\x70" + fixed(16 * self.number + position, 1) + b"\x80" + bytes(7)
        )
        body = encode_body(body_of(event))
        payload, commitment, working = self._seal(event, event_id, stream, body)
        self.time = tick(self.time, NOW + wait)
        header = Header(
            v=1,
            id=event_id,
            origin=self.origin,
            position=position,
            root=self.frontiers[-1].root(),
            key=key_id(WRITER.public),
            time=self.time,
            kind=event.KIND,
            schema=event.SCHEMA,
            stream=stream,
            revision=self.revisions.get(stream, -1) + 1,
            cipher=0 if event.CLEAR else 1,
            commitment=commitment,
            payload_hash=payload_hash(payload),
            payload_length=len(payload),
        )
        self.revisions[stream] = header.revision
        entry = sign_entry(header, WRITER)
        self.frontiers.append(self.frontiers[-1].append(leaf_hash(entry)))
        self.entries.append(row(header, entry, self.number))
        self.payloads.append([self.number * PLACES + position, payload])
        after = {"leaf": leaf_hash(entry), "root_after": self.frontiers[-1].root()}
        self.workings.append(
            {"log": self.name, "position": position, "now": NOW + wait, "body": body, **working, **after}
        )

    def _seal(self, event: Event, event_id: bytes, stream: bytes, body: bytes) -> tuple[bytes, bytes, dict[str, bytes]]:
        if event.CLEAR:
            return body, b"", {}
        data_key, nonce = fixed(stream[0], 32), fixed(event_id[7], 24)
        if stream not in self.revisions:
            with random(fixed(0xF0, 24)):
                wrapped = wrap(KEK, data_key, origin=self.origin, stream=stream, generation=1)
            self.keys.append([self.number * PLACES + len(self.entries), 1, wrapped])
        with random(nonce):
            payload, commitment = seal(
                data_key, body, event_id=event_id, origin=self.origin, stream=stream, generation=1
            )
        event_key, salt = event_secrets(data_key, event_id)
        return payload, commitment, {"data_key": data_key, "nonce": nonce, "event_key": event_key, "salt": salt}


def event_id_at(milliseconds: int, number: int) -> bytes:
    """A UUIDv7 that is not random."""
    return milliseconds.to_bytes(6, "big") + bytes([0x70, number, 0x80]) + bytes(7)


def row(header: Header, entry: bytes, number: int) -> list[Any]:
    """The row of an entry."""
    place = number * PLACES + header.position
    return [place, number, header.id, header.stream, header.revision, entry]


def log_created(name: str, nonce: bytes, origin: bytes, writer: bytes, possession: bytes) -> LogCreated:
    """The first event of a log: ours, or that of a writer key that proves nothing."""
    return LogCreated(
        recorded_at=NOW * 1000,
        actor="tallystick",
        nonce=nonce,
        log=cast("Any", name),
        store=STORE,
        root=ROOT.public,
        writer=writer,
        checkpoint=CHECKPOINT.public,
        kek=key_id(KEK),
        index=key_id(INDEX),
        root_signature=ROOT.sign(b"tallystick/root-key/v1\0" + origin + writer + CHECKPOINT.public),
        writer_signature=possession or WRITER.sign(b"tallystick/possession/v1\0" + origin),
        checkpoint_signature=CHECKPOINT.sign(b"tallystick/possession/v1\0" + origin),
    )


def badge(nonce: bytes) -> Stored:
    """A memory with something of everything that a body can hold."""
    return Stored(
        recorded_at=NOW * 1000 + 1_000_001,
        actor="agent:planner",
        via={"os_user": "ana"},
        nonce=nonce,
        command_id="c-1",
        text=" Zoe\u0308's badge opens door 7.\0 ",
        namespace="org/acme/user:ana",
        subject="user:ana",
        key="badge",
        tags=("badge", "door"),
        importance=1.0,
        occurred_at=-1,
        metadata={"z": None, "größe": [200, 300, 70_000, -33, -129], "a": {"b": -0.0, "a": True}, "ratio": 2.5},
    )


def friday() -> Stored:
    """A memory that stays."""
    return Stored(
        recorded_at=NOW * 1000 + 1_000_002,
        actor="user:ana",
        nonce=fixed(0xD1, 16),
        text=" Zoe\u0308 changes the code of the door on Fridays.",
        namespace="org/acme/user:ana",
        key="door-code",
        source="human",
    )


def sunday() -> Revised:
    """What becomes of the memory that stays."""
    return Revised(
        recorded_at=NOW * 1000 + 1_200_000,
        actor="user:ana",
        text=" Zoe\u0308 changes the code of the door on Sundays.\u2003",
        subject="door",
        tags_added=("door",),
    )


def make() -> tuple[Made, Made]:
    """The two logs."""
    memory, access = Made("memory", 0, fixed(0xB0, 16)), Made("access", 1, fixed(0xC0, 16))
    memory.begin()
    access.begin()
    first, second = (stream_of(memory.origin, fixed(start, 16)) for start in (0xD0, 0xD1))
    memory.append(badge(fixed(0xD0, 16)), first, 1000)
    memory.append(friday(), second, 1000)
    memory.append(sunday(), second, 1200)
    asked = Recalled(
        recorded_at=NOW * 1000 + 1_500_000,
        actor="agent:planner",
        nonce=fixed(0xE0, 16),
        query="Which door does the badge open?",
        namespaces=("org/acme/user:ana",),
        limit=5,
        memories=(first,),
        heads=(1,),
        scores=bytes.fromhex("003c007e"),
        stages=("keyword", "vector"),
        pipeline="words-1",
        degraded=("no model",),
        log_size=3,
        log_root=memory.frontiers[3].root(),
    )
    access.append(asked, stream_of(access.origin, fixed(0xE0, 16)), 1500)
    forgotten = Forgotten(
        recorded_at=NOW * 1000 + 500_000,
        actor="user:ana",
        reason="lost",
        parents=(bytes(memory.workings[1]["leaf"]),),
    )
    memory.append(forgotten, first, 500)
    return memory, access


def store() -> dict[str, Any]:
    """The vectors, but for what must be refused."""
    memory, access = make()
    moves = [
        {memory.origin: memory.frontiers[3]},
        {memory.origin: memory.frontiers[5], access.origin: access.frontiers[2]},
    ]
    return {
        "root": ROOT.public,
        "secrets": SECRETS,
        "tables": tables(memory, access),
        "mark": mark_of(moves),
        "workings": memory.workings + access.workings,
    }


def tables(memory: Made, access: Made) -> dict[str, list[list[Any]]]:
    """The rows of log.db. The memory log was closed at size 3, and then added to."""
    current = friday().model_copy(update={"text": sunday().text, "subject": sunday().subject})
    tags = {
        command_tag(INDEX, current.namespace, "c-1"): 1,
        content_tag(INDEX, current): 3,
        key_tag(INDEX, current): 2,
    }
    claims = sorted(cast("dict[bytes, int]", tags).items())
    return {
        "entry": memory.entries + access.entries,
        "payload": memory.payloads + access.payloads,
        "data_key": sorted(memory.keys + access.keys),
        "claim": [[tag, place] for tag, place in claims],
        "checkpoint": [[log.number, size, note(log, size)] for log, size in ((memory, 3), (access, 2))],
        "setting": [setting("claims", claim_seal(memory, claims)), *settings_of_a_store()],
    }


def settings_of_a_store() -> list[list[Any]]:
    """The settings that name the format and the store."""
    return [setting("format", (1).to_bytes(4, "big")), setting("store", STORE)]


def claim_seal(memory: Made, claims: list[tuple[bytes, int]]) -> bytes:
    """The seal of these claims, with the last event of the log."""
    last = memory.entries[-1]
    return ClaimSeal(INDEX).of(claims, last[0], last[2])


def note(log: Made, size: int) -> bytes:
    """The checkpoint of a log at a size."""
    name = log.origin.hex()
    return sign(Checkpoint(name, size, log.frontiers[size].root()), name, CHECKPOINT).encode()


def setting(name: str, value: bytes) -> list[Any]:
    """The row of a setting, as our code writes it."""
    written: list[Any] = []

    class Cursor:
        """Takes the row that would be inserted."""

        def execute(self, _statement: str, parameters: tuple[Any, ...]) -> None:
            written.extend(parameters)

    settings.write_setting(Cursor(), name, value)
    return written


def mark_of(moves: list[dict[bytes, Frontier]]) -> dict[str, bytes]:
    """The slots of a mark after it was moved to these frontiers, one after the other."""
    with TemporaryDirectory() as folder:
        mark = Mark(Path(folder))
        for frontiers in moves:
            mark.advance(frontiers)
        mark.release()
        data = mark.path.read_bytes()
    return {str(place): framed(data[place : place + SLOT]) for place in (0, SLOT)}


def framed(slot: bytes) -> bytes:
    """A slot without what is left over behind it."""
    return slot[: 12 + int.from_bytes(slot[8:12], "big") + 32]
