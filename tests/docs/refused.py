"""Changes to the store of the test vectors that a verifier must refuse, each for one reason only."""

from __future__ import annotations

from typing import Any

import msgpack  # type: ignore[import-untyped]

from tallystick.events.canonical import encode_body
from tallystick.events.checkpoint import Checkpoint, sign
from tallystick.events.claims import key_tag
from tallystick.events.envelope import Header, payload_hash, read_entry, sign_entry
from tallystick.events.kinds import body_of
from tallystick.events.merkle import Frontier, leaf_hash
from tallystick.events.sealing import seal, wrap
from tallystick.events.signing import key_id

from .fixed import (
    CHECKPOINT,
    INDEX,
    KEK,
    WRITER,
    Made,
    badge,
    claim_seal,
    fixed,
    log_created,
    mark_of,
    random,
    row,
    setting,
)

STRUCTURE, FULL, SECRETS = ["structure", "full", "secrets"], ["full", "secrets"], ["secrets"]
LAST = 4  # position of the last entry of the memory log: nothing is signed over it
IDENTITY = b"\1" + bytes(31)  # a key of small order
HOLDS_FOR_ANYTHING = IDENTITY + bytes(32)  # a signature under it, of any message


def refused(memory: Made, access: Made) -> list[dict[str, Any]]:
    """Every change, with the step that refuses it and the depths at which that is."""
    return [
        *at_opening(memory),
        *by_structure(memory, access),
        *by_mark(memory),
        *by_signatures(memory),
        *inside(memory),
    ]


def case(name: str, step: str, depths: list[str], **change: Any) -> dict[str, Any]:
    """One change: rows by table, rows `without` by table, or slots of the `mark`."""
    return {"name": name, "step": step, "depths": depths, "change": change}


def at_opening(memory: Made) -> list[dict[str, Any]]:
    """Settings, and the first entry."""
    small = log_created("memory", memory.nonce, memory.origin, IDENTITY, HOLDS_FOR_ANYTHING)
    body = encode_body(body_of(small))
    header = read_entry(memory.entries[0][5])._replace(
        key=key_id(IDENTITY), payload_hash=payload_hash(body), payload_length=len(body)
    )
    entry = sign_entry(header, WRITER)[:-64] + HOLDS_FOR_ANYTHING
    return [
        case("a setting without its checksum", "setting", STRUCTURE, setting=[["format", bytes(20)]]),
        case("a writer key of small order", "genesis", STRUCTURE, entry=[row(header, entry, 0)], payload=[[0, body]]),
    ]


def by_structure(memory: Made, access: Made) -> list[dict[str, Any]]:
    """What shows without checking a signature."""
    header = read_entry(memory.entries[LAST][5])
    encoded = sign_entry(header, WRITER)[:-64]
    at = encoded.index(header.origin) + 32
    long = encoded[:at] + b"\xcc" + encoded[at:]
    unshort = long + WRITER.sign(b"tallystick/event/v1\0" + long)
    copies = [*memory.entries[LAST][:4], 5, memory.entries[LAST][5]]
    elsewhere, its_payload = access.entries[1], access.payloads[1][1]
    before = read_entry(memory.entries[LAST - 1][5]).time
    name = memory.origin.hex()
    other = sign(Checkpoint(name, 3, memory.frontiers[2].root()), name, CHECKPOINT).encode()
    return [
        case("an entry that is missing", "missing", STRUCTURE, without={"entry": [[1]], "payload": [[1]]}),
        case("a payload that is missing", "missing", STRUCTURE, without={"payload": [[LAST]]}),
        case("a position not in its shortest form", "entry", STRUCTURE, entry=[row(header, unshort, 0)]),
        case("a version that is not 1", "entry", STRUCTURE, entry=[signed(header._replace(v=2))]),
        case(
            "an entry of the other log",
            "place",
            STRUCTURE,
            entry=[[LAST, 0, *elsewhere[2:]]],
            payload=[[LAST, its_payload]],
        ),
        case(
            "a copy of the revision that differs",
            "columns",
            STRUCTURE,
            entry=[copies],
        ),
        case(
            "payloads of two entries, swapped",
            "payload",
            STRUCTURE,
            payload=[[1, memory.payloads[2][1]], [2, memory.payloads[1][1]]],
        ),
        case(
            "the root of fewer entries",
            "root",
            STRUCTURE,
            entry=[signed(header._replace(root=memory.frontiers[2].root()))],
        ),
        case("a clock that stands still", "clock", STRUCTURE, entry=[signed(header._replace(time=before))]),
        case("a checkpoint with another root", "checkpoint", STRUCTURE, checkpoint=[[0, 3, other]]),
        case("a checkpoint of a log that is not there", "checkpoint", STRUCTURE, checkpoint=[[2, 3, other]]),
    ]


def by_mark(memory: Made) -> list[dict[str, Any]]:
    """What only somebody who has the mark can see."""
    other = Frontier()
    for n in range(LAST + 1):
        other = other.append(leaf_hash(bytes(n)))
    shorter = mark_of([{memory.origin: Frontier().append(leaf_hash(b"another beginning"))}])
    return [
        case("a log that was cut off", "mark", SECRETS, without={"entry": [[LAST]], "payload": [[LAST]]}),
        case("a log that is not the one marked", "mark", SECRETS, mark=mark_of([{memory.origin: other}])),
        case("a log that goes on from another than the one marked", "mark", SECRETS, mark=shorter),
    ]


def by_signatures(memory: Made) -> list[dict[str, Any]]:
    """What a signature shows."""
    *copies, entry = memory.entries[LAST]
    header, flipped = read_entry(entry), entry[:-1] + bytes([entry[-1] ^ 1])
    other = header._replace(key=key_id(CHECKPOINT.public))
    return [
        case("a flipped bit of a signature", "signature", FULL, entry=[[*copies, flipped]]),
        case("the id of another key", "signature", FULL, entry=[signed(other)]),
    ]


def inside(memory: Made) -> list[dict[str, Any]]:
    """What shows to who has the secrets."""
    header = read_entry(memory.entries[LAST][5])
    payload = bytes(memory.payloads[LAST][1])
    flipped = payload[:-1] + bytes([payload[-1] ^ 1])
    body: dict[str, Any] = {"recorded_at": 1, "actor": "user:ana"}
    unsorted = msgpack.packb(body)
    nul = msgpack.packb({"actor": "user:ana", "reason": "\0", "recorded_at": 1})
    wordy = encode_body({**body, "text": ""})
    anonymous = encode_body({"recorded_at": 1})
    stranger, key = fixed(0x10, 16), fixed(0x11, 32)
    with random(fixed(0x12, 24)):
        wrapped = wrap(KEK, key, origin=memory.origin, stream=stranger, generation=1)
    opening = encode_body(body_of(badge(fixed(0xD0, 16))))
    strange = resealed(header._replace(kind="memory.stored", stream=stranger, revision=0), key, opening)
    mine = fixed(header.stream[0], 32)
    return [
        case("a payload that does not open", "seal", SECRETS, **replaced(header, flipped)),
        case("another commitment", "commitment", SECRETS, entry=[signed(header._replace(commitment=bytes(32)))]),
        case("a body with unsorted keys", "body", SECRETS, **resealed(header, mine, unsorted)),
        case("a body with U+0000 where none may be", "body", SECRETS, **resealed(header, mine, nul)),
        case("a body with a field too many", "body", SECRETS, **resealed(header, mine, wordy)),
        case("a body without its actor", "body", SECRETS, **resealed(header, mine, anonymous)),
        case("a stream under an id not its own", "stream", SECRETS, data_key=[[LAST, 1, wrapped]], **strange),
        case("a data key of no stream", "data_key", SECRETS, data_key=[[LAST + 1, 1, wrapped]]),
        case("a claim that nobody holds", "claim", SECRETS, claim=[[key_tag(INDEX, badge(b"n" * 16)), 1]]),
        case("a seal of no claims", "claim_seal", SECRETS, setting=[setting("claims", claim_seal(memory, []))]),
    ]


def signed(header: Header) -> list[Any]:
    """The row of an entry of the memory log with this header."""
    return row(header, sign_entry(header, WRITER), 0)


def replaced(header: Header, payload: bytes) -> dict[str, Any]:
    """The last entry with another payload, properly signed."""
    header = header._replace(payload_hash=payload_hash(payload), payload_length=len(payload))
    return {"entry": [signed(header)], "payload": [[header.position, payload]]}


def resealed(header: Header, key: bytes, plaintext: bytes) -> dict[str, Any]:
    """The last entry with another plaintext, properly sealed and signed."""
    with random(fixed(0x13, 24)):
        payload, commitment = seal(
            key, plaintext, event_id=header.id, origin=header.origin, stream=header.stream, generation=1
        )
    return replaced(header._replace(commitment=commitment), payload)
