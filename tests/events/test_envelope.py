"""A log entry is a canonical header and a signature over it, read as it stands or not at all."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgpack  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl.signing import VerifyKey

from tallystick.events.canonical import NotCanonical
from tallystick.events.envelope import (
    CLEAR,
    SIGNATURE_BYTES,
    XCHACHA20_POLY1305,
    Header,
    is_signed_by,
    origin_of,
    payload_hash,
    read_entry,
    sign_entry,
    stream_of,
)
from tallystick.events.signing import SMALL_ORDER_KEYS, SeedSigner

SIGNER = SeedSigner(bytes(range(32)))
HEADER = Header(
    v=1,
    id=b"i" * 16,
    origin=b"o" * 32,
    position=7,
    root=b"r" * 32,
    key=b"k" * 8,
    time=(1_767_225_600_000 << 16) + 3,
    kind="memory.stored",
    schema=1,
    stream=b"s" * 16,
    revision=2,
    cipher=XCHACHA20_POLY1305,
    commitment=b"c" * 32,
    payload_hash=b"p" * 32,
    payload_length=123,
)

uints = st.integers(0, 2**64 - 1)
headers = st.builds(
    Header,
    v=st.just(1),
    id=st.binary(min_size=16, max_size=16),
    origin=st.binary(min_size=32, max_size=32),
    position=uints,
    root=st.binary(min_size=32, max_size=32),
    key=st.binary(min_size=8, max_size=8),
    time=uints,
    kind=st.text(max_size=40),
    schema=uints,
    stream=st.binary(min_size=16, max_size=16),
    revision=uints,
    cipher=st.just(XCHACHA20_POLY1305),
    commitment=st.binary(min_size=32, max_size=32),
    payload_hash=st.binary(min_size=32, max_size=32),
    payload_length=uints,
)


@given(headers, st.booleans())
def test_an_entry_is_read_as_it_was_signed(header: Header, clear: bool) -> None:
    """Every field, at every size, sealed or in clear; and the signature holds."""
    if clear:
        header = header._replace(cipher=CLEAR, commitment=b"")
    entry = sign_entry(header, SIGNER)
    assert read_entry(entry) == header
    assert is_signed_by(entry, SIGNER.public)


def test_an_entry_is_laid_out_as_specified() -> None:
    """Another MessagePack and another Ed25519 read it, by the specification alone."""
    entry = sign_entry(HEADER, SIGNER)
    encoded, signature = entry[:-64], entry[-64:]
    assert msgpack.unpackb(encoded, use_list=False) == tuple(HEADER)
    assert len(HEADER) == 15
    VerifyKey(SIGNER.public).verify(b"tallystick/event/v1\0" + encoded, signature)


def test_signing_is_deterministic() -> None:
    """The same header has the same entry."""
    assert sign_entry(HEADER, SIGNER) == sign_entry(HEADER, SIGNER)


@given(st.data())
def test_any_changed_byte_is_found(data: st.DataObject) -> None:
    """In the header or in the signature: it is no entry any more, or not a signed one."""
    changed = bytearray(sign_entry(HEADER, SIGNER))
    changed[data.draw(st.integers(0, len(changed) - 1))] ^= data.draw(st.integers(1, 255))
    assert not is_signed_by(bytes(changed), SIGNER.public)


@given(st.binary(max_size=400))
def test_bytes_that_are_no_entry_are_refused(data: bytes) -> None:
    """Whatever they are, and with one error."""
    assert not is_signed_by(data, SIGNER.public)
    with pytest.raises(NotCanonical):
        read_entry(data)


@pytest.mark.parametrize("length", [0, 1, 63, 64, 65, 100])
def test_an_entry_that_was_cut_is_refused(length: int) -> None:
    """However little is left of it."""
    with pytest.raises(NotCanonical):
        read_entry(sign_entry(HEADER, SIGNER)[:length])


@pytest.mark.parametrize(
    "change",
    [
        {"v": 0},
        {"v": 2},
        {"cipher": 2},
        {"cipher": CLEAR},
        {"commitment": b""},
        {"commitment": b"c" * 31},
        {"id": b"i" * 15},
        {"id": b"i" * 17},
        {"origin": b"o" * 31},
        {"root": b""},
        {"key": b"k" * 9},
        {"stream": b"s" * 32},
        {"payload_hash": b"p" * 20},
        {"kind": b"memory.stored"},
        {"position": b"7"},
        {"id": "i" * 16},
    ],
    ids=str,
)
def test_a_header_of_another_form_is_refused(change: dict[str, Any]) -> None:
    """Another version, an unknown cipher, a wrong length or type: signed or not, it is no entry of this release."""
    entry = sign_entry(HEADER._replace(**change), SIGNER)
    with pytest.raises(NotCanonical):
        read_entry(entry)


def raw_entry(fields: Any) -> bytes:
    """An entry with a validly signed header in any encoding."""
    encoded = fields if isinstance(fields, bytes) else msgpack.packb(fields)
    return encoded + SIGNER.sign(b"tallystick/event/v1\0" + encoded)


@pytest.mark.parametrize(
    "fields",
    [
        tuple(HEADER)[:-1],
        (*HEADER, 1),
        (),
        {"v": 1},
        "memory.stored",
        (True, *tuple(HEADER)[1:]),
        (*tuple(HEADER)[:-1], 123.0),
        (*tuple(HEADER)[:-1], None),
        (*tuple(HEADER)[:-1], -1),
        msgpack.packb(tuple(HEADER)).replace(b"\x07", b"\xcc\x07", 1),
        msgpack.packb(tuple(HEADER)) + b"\0",
    ],
    ids=["one less", "one more", "none", "map", "text", "bool", "float", "nil", "negative", "longer form", "followed"],
)
def test_a_signature_does_not_make_a_header(fields: Any) -> None:
    """Whoever holds the key can't write one event in two ways."""
    entry = raw_entry(fields)
    assert is_signed_by(entry, SIGNER.public)
    with pytest.raises(NotCanonical):
        read_entry(entry)


def test_a_signature_is_by_one_key_over_one_context() -> None:
    """Another key, or the same bytes signed for another purpose, is no signature of an event."""
    entry = sign_entry(HEADER, SIGNER)
    assert not is_signed_by(entry, SeedSigner(bytes(32)).public)
    encoded = entry[:-SIGNATURE_BYTES]
    assert not is_signed_by(encoded + SIGNER.sign(encoded), SIGNER.public)
    assert not is_signed_by(encoded + SIGNER.sign(b"tallystick/checkpoint/v1\0" + encoded), SIGNER.public)


def test_a_key_that_anybody_can_sign_for_is_no_key() -> None:
    """Under a key of small order some verifiers accept signatures that nobody made."""
    encoded = sign_entry(HEADER, SIGNER)[:-SIGNATURE_BYTES]
    for public in SMALL_ORDER_KEYS:
        assert not is_signed_by(encoded + public + bytes(32), public)


def test_ids_are_hashes_as_specified() -> None:
    """Origin, stream and payload hash, each with its context, computed anew."""
    root, nonce = SIGNER.public, b"n" * 16
    origin = sha256(b"tallystick/origin/v1\0" + root + b"memory\0" + nonce).digest()
    assert origin_of(root, "memory", nonce) == origin
    assert stream_of(origin, nonce) == sha256(b"tallystick/stream/v1\0" + origin + nonce).digest()[:16]
    assert payload_hash(b"payload") == sha256(b"payload").digest()


def test_ids_differ_with_all_they_are_made_of() -> None:
    """Nobody else can open a log or a stream under an id that is taken."""
    origins = {
        origin_of(SIGNER.public, "memory", b"n" * 16),
        origin_of(SIGNER.public, "access", b"n" * 16),
        origin_of(SIGNER.public, "memory", b"m" * 16),
        origin_of(SeedSigner(bytes(32)).public, "memory", b"n" * 16),
    }
    assert len(origins) == 4
    assert len({stream_of(origin, b"n" * 16) for origin in origins}) == 4
    assert stream_of(b"o" * 32, b"n" * 16) != stream_of(b"o" * 32, b"m" * 16)


def test_nothing_in_a_header_is_content() -> None:
    """Who adds a field must think about what it tells a reader of the disk."""
    assert Header._fields == (
        "v", "id", "origin", "position", "root", "key", "time", "kind", "schema", "stream", "revision", "cipher",
        "commitment", "payload_hash", "payload_length",
    )  # fmt: skip
