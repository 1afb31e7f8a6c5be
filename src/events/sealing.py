"""Sealing of payloads: only the holder of a stream's data key reads them, and deleting it is for ever."""

from __future__ import annotations

import os
from hashlib import blake2b, sha256
from typing import Any

from . import sodium
from .sodium import KEY_BYTES, NONCE_BYTES, TAG_BYTES

EVENT_ID_BYTES = 16
ORIGIN_BYTES = 32
STREAM_BYTES = 16
GENERATION_BYTES = 4

DATA_KEY_CONTEXT = b"tallystick/data-key/v1\0"
PAYLOAD_CONTEXT = b"tallystick/payload/v1\0"
COMMITMENT_CONTEXT = b"tallystick/commitment/v1\0"
EVENT_SECRETS_PERSON = b"tally.event.v1"

_BROKEN = "the sealed bytes were changed, moved, or sealed with another key: run `tallystick verify`"


class SealBroken(ValueError):
    """Sealed bytes were changed, belong to another place, or were sealed with another key."""


def new_data_key() -> bytes:
    """Return 32 random bytes, the data key of one stream."""
    return os.urandom(KEY_BYTES)


def wrap(kek: bytes, data_key: bytes, *, origin: bytes, stream: bytes, generation: int) -> bytes:
    """Return the 32-byte data key sealed under the 32-byte key-encryption key, for this stream only.

    nonce24 || ciphertext || tag of XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03), 72 bytes. Associated
    data: DATA_KEY_CONTEXT || origin || stream || uint32be generation. Raises ValueError for a wrong length.
    """
    if len(data_key) != KEY_BYTES:
        raise _wrong_length(data_key, KEY_BYTES, "data key")
    return _encrypt(kek, data_key, _stream_context(origin, stream, generation))


def unwrap(kek: bytes, wrapped: bytes, *, origin: bytes, stream: bytes, generation: int) -> bytes:
    """Return the data key that `wrap` sealed for this stream and generation.

    Raises SealBroken if it was changed, is of another place or under another key, and ValueError
    for an argument of a wrong length.
    """
    data_key = _decrypt(kek, wrapped, _stream_context(origin, stream, generation))
    if len(data_key) != KEY_BYTES:
        raise SealBroken(f"a data key is {KEY_BYTES} bytes, not {len(data_key)}: restore it from a backup")
    return data_key


def event_secrets(data_key: bytes, event_id: bytes) -> tuple[bytes, bytes]:
    """Return the key and the salt of one event, 32 bytes each; nothing of them is stored.

    The two halves of BLAKE2b-512 (RFC 7693) of the 16-byte event id, keyed with the data key and
    personalised with EVENT_SECRETS_PERSON. Raises ValueError for a wrong length.
    """
    if len(data_key) != KEY_BYTES or len(event_id) != EVENT_ID_BYTES:
        raise _wrong_length(data_key, KEY_BYTES, "data key", event_id, EVENT_ID_BYTES, "event id")
    secrets = blake2b(event_id, key=data_key, person=EVENT_SECRETS_PERSON).digest()
    return secrets[:KEY_BYTES], secrets[KEY_BYTES:]


def commitment(salt: bytes, plaintext: bytes) -> bytes:
    """Return the 32 bytes that bind a plaintext without telling it.

    SHA-256(COMMITMENT_CONTEXT || salt || plaintext): a hash commitment. The cipher does not commit to
    its key, so one ciphertext can be made to open as two texts; this can't. Raises ValueError if the
    salt is not 32 bytes.
    """
    if len(salt) != KEY_BYTES:
        raise _wrong_length(salt, KEY_BYTES, "salt")
    return sha256(COMMITMENT_CONTEXT + salt + plaintext).digest()


def seal(
    data_key: bytes, plaintext: bytes, *, event_id: bytes, origin: bytes, stream: bytes, generation: int
) -> tuple[bytes, bytes]:
    """Return the payload that only `data_key` opens, in this place only, and the commitment to its plaintext.

    Payload: uint32be generation || nonce24 || ciphertext || tag, 44 bytes longer than the plaintext.
    Associated data: PAYLOAD_CONTEXT || event_id || origin || stream || uint32be generation.
    Raises ValueError for an argument of a wrong length.
    """
    key, salt = event_secrets(data_key, event_id)
    prefix = _uint32(generation)
    context = _event_context(event_id, origin, stream) + prefix
    return prefix + _encrypt(key, plaintext, context), commitment(salt, plaintext)


def unseal(
    data_key: bytes, payload: bytes, *, event_id: bytes, origin: bytes, stream: bytes, commitment: bytes
) -> bytes:
    """Return the plaintext that `seal` sealed for this place and this commitment.

    Raises SealBroken if the payload was changed, is of another place, under another key or not
    what the commitment binds, and ValueError for an argument of a wrong length.
    """
    key, salt = event_secrets(data_key, event_id)
    context = _event_context(event_id, origin, stream) + payload[:GENERATION_BYTES]
    plaintext = _decrypt(key, payload[GENERATION_BYTES:], context)
    if not _opens(commitment, salt, plaintext):
        raise SealBroken("the payload opens, but to another text than was committed to: do not use it")
    return plaintext


def generation_of(payload: bytes) -> int:
    """Return the generation of the data key that sealed the payload; SealBroken if it is too short."""
    if len(payload) < GENERATION_BYTES + NONCE_BYTES + TAG_BYTES:
        raise SealBroken(f"{len(payload)} bytes are too few for a sealed payload: restore it from a backup")
    return int.from_bytes(payload[:GENERATION_BYTES], "big")


def _opens(expected: bytes, salt: bytes, plaintext: bytes) -> bool:
    return commitment(salt, plaintext) == expected


def _stream_context(origin: bytes, stream: bytes, generation: int) -> bytes:
    if len(origin) != ORIGIN_BYTES or len(stream) != STREAM_BYTES:
        raise _wrong_length(origin, ORIGIN_BYTES, "origin", stream, STREAM_BYTES, "stream")
    return DATA_KEY_CONTEXT + origin + stream + _uint32(generation)


def _event_context(event_id: bytes, origin: bytes, stream: bytes) -> bytes:
    if len(origin) != ORIGIN_BYTES or len(stream) != STREAM_BYTES:
        raise _wrong_length(origin, ORIGIN_BYTES, "origin", stream, STREAM_BYTES, "stream")
    return PAYLOAD_CONTEXT + event_id + origin + stream


def _encrypt(key: bytes, plaintext: bytes, context: bytes) -> bytes:
    nonce = os.urandom(NONCE_BYTES)
    return nonce + sodium.encrypt(plaintext, context, nonce, key)


def _decrypt(key: bytes, sealed: bytes, context: bytes) -> bytes:
    if len(sealed) < NONCE_BYTES + TAG_BYTES:
        raise SealBroken(f"{len(sealed)} sealed bytes are too few to open: restore them from a backup")
    plaintext = sodium.decrypt(sealed[NONCE_BYTES:], context, sealed[:NONCE_BYTES], key)
    if plaintext is None:
        raise SealBroken(_BROKEN)
    return plaintext


def _uint32(generation: int) -> bytes:
    if not 0 <= generation < 1 << 8 * GENERATION_BYTES:
        raise ValueError(f"generation {generation} does not fit in 32 bits: generations count up from 0")
    return generation.to_bytes(GENERATION_BYTES, "big")


def _wrong_length(*given: Any) -> ValueError:
    """What is wrong with the first of some (value, length, name) that is not of its length."""
    values = zip(given[::3], given[1::3], given[2::3], strict=True)
    value, length, name = next(each for each in values if len(each[0]) != each[1])
    return ValueError(f"the {name} is {len(value)} bytes, not {length}: check where it was read from")
