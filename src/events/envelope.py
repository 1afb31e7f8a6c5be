"""One event as canonical bytes: a positional header and a signature over it."""

from __future__ import annotations

import hashlib
from typing import NamedTuple, cast

from .canonical import NotCanonical, decode_header, encode_header
from .signing import Signer, verify

VERSION = 1
SIGNATURE_BYTES = 64
CLEAR = 0
XCHACHA20_POLY1305 = 1

_SIGNATURE_CONTEXT = b"tallystick/event/v1\0"
_ORIGIN_CONTEXT = b"tallystick/origin/v1\0"
_STREAM_CONTEXT = b"tallystick/stream/v1\0"
_TYPES = (int, bytes, bytes, int, bytes, bytes, int, str, int, bytes, int, int, bytes, bytes, int)


class Header(NamedTuple):
    """The signed part of a log entry, in the order it is written.

    `time` is a hybrid logical clock (48 bit milliseconds, 16 bit counter), `root` the RFC 6962
    root over the entries 0..position-1, `commitment` empty where the payload is in clear.
    """

    v: int
    id: bytes
    origin: bytes
    position: int
    root: bytes
    key: bytes
    time: int
    kind: str
    schema: int
    stream: bytes
    revision: int
    cipher: int
    commitment: bytes
    payload_hash: bytes
    payload_length: int


def origin_of(root_public: bytes, log_name: str, nonce: bytes) -> bytes:
    """The self-certifying id of a log: SHA-256(context, root public key, log name, nonce), 32 bytes."""
    return hashlib.sha256(_ORIGIN_CONTEXT + root_public + log_name.encode() + b"\0" + nonce).digest()


def stream_of(origin: bytes, nonce: bytes) -> bytes:
    """The id of a stream: the first 16 bytes of SHA-256(context, origin, nonce).

    The nonce stands in the stream's first event, so nobody else can open a stream under its id.
    """
    return hashlib.sha256(_STREAM_CONTEXT + origin + nonce).digest()[:16]


def payload_hash(payload: bytes) -> bytes:
    """SHA-256 of the stored payload bytes."""
    return hashlib.sha256(payload).digest()


def sign_entry(header: Header, signer: Signer) -> bytes:
    """The log entry: the canonical header followed by its Ed25519 signature."""
    encoded = encode_header(header)
    return encoded + signer.sign(_SIGNATURE_CONTEXT + encoded)


def read_entry(entry: bytes) -> Header:
    """The header of a log entry; the signature is not checked here.

    Raises NotCanonical for any byte string that is not exactly one version 1 entry.
    """
    fields = decode_header(entry[:-SIGNATURE_BYTES])
    if tuple(map(type, fields)) != _TYPES:
        raise NotCanonical("the header's fields are not those of version 1")
    header = Header._make(cast("tuple[int, bytes, bytes, int, bytes, bytes, int, str, int]", fields))
    if header.v != VERSION or header.cipher not in (CLEAR, XCHACHA20_POLY1305):
        raise NotCanonical(f"version {header.v} with cipher {header.cipher} is not known to this release")
    if not _lengths_hold(header):
        raise NotCanonical("an id or hash in the header has the wrong length")
    return header


def is_signed_by(entry: bytes, public: bytes) -> bool:
    """Whether the entry carries a valid signature by this public key."""
    return verify(public, _SIGNATURE_CONTEXT + entry[:-SIGNATURE_BYTES], entry[-SIGNATURE_BYTES:])


def _lengths_hold(header: Header) -> bool:
    return (
        len(header.id) == len(header.stream) == 16
        and len(header.origin) == len(header.root) == len(header.payload_hash) == 32
        and len(header.key) == 8
        and len(header.commitment) == (0 if header.cipher == CLEAR else 32)
    )
