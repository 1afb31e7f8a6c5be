"""A payload opens with its own key, in its own place, to the text that was committed to; or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from Crypto.Cipher import ChaCha20_Poly1305
from hypothesis import given
from hypothesis import strategies as st
from nacl.bindings import (
    crypto_aead_xchacha20poly1305_ietf_encrypt,
    crypto_generichash_blake2b_salt_personal,
)

from tallystick.events import sodium
from tallystick.events.sealing import (
    SealBroken,
    commitment,
    event_secrets,
    generation_of,
    new_data_key,
    seal,
    unseal,
    unwrap,
    wrap,
)

KEK = bytes(range(32))
DATA_KEY = bytes(range(32, 64))
EVENT_ID = b"e" * 16
ORIGIN = b"o" * 32
STREAM = b"s" * 16
GENERATION = 3
TEXT = b"Prefer WAL mode"

STREAM_PLACE: dict[str, Any] = {"origin": ORIGIN, "stream": STREAM, "generation": GENERATION}
EVENT_PLACE: dict[str, Any] = {"event_id": EVENT_ID, "origin": ORIGIN, "stream": STREAM}


def sealed() -> tuple[bytes, bytes]:
    """A payload and the commitment to its text."""
    return seal(DATA_KEY, TEXT, **EVENT_PLACE, generation=GENERATION)


def opened_elsewhere(key: bytes, sealed_bytes: bytes, context: bytes) -> bytes:
    """The plaintext according to another library."""
    nonce, ciphertext, tag = sealed_bytes[:24], sealed_bytes[24:-16], sealed_bytes[-16:]
    cipher = ChaCha20_Poly1305.new(key=key, nonce=nonce)
    cipher.update(context)
    return cipher.decrypt_and_verify(ciphertext, tag)


def test_a_payload_opens_to_its_text() -> None:
    """What was sealed is read back, whatever its length."""
    payload, committed = sealed()
    assert unseal(DATA_KEY, payload, **EVENT_PLACE, commitment=committed) == TEXT
    assert len(payload) == len(TEXT) + 44
    assert generation_of(payload) == GENERATION


@given(st.binary(max_size=2000), st.integers(0, 2**32 - 1))
def test_every_text_round_trips(text: bytes, generation: int) -> None:
    """Any bytes, under any generation."""
    payload, committed = seal(DATA_KEY, text, **EVENT_PLACE, generation=generation)
    assert unseal(DATA_KEY, payload, **EVENT_PLACE, commitment=committed) == text
    assert generation_of(payload) == generation


def test_the_payload_is_laid_out_as_specified() -> None:
    """Another library opens it, by the specification alone."""
    payload, committed = sealed()
    secrets = crypto_generichash_blake2b_salt_personal(EVENT_ID, digest_size=64, key=DATA_KEY, person=b"tally.event.v1")
    context = b"tallystick/payload/v1\x00" + EVENT_ID + ORIGIN + STREAM + b"\x00\x00\x00\x03"
    assert event_secrets(DATA_KEY, EVENT_ID) == (secrets[:32], secrets[32:])
    assert payload[:4] == b"\x00\x00\x00\x03"
    assert opened_elsewhere(secrets[:32], payload[4:], context) == TEXT
    assert committed == sha256(b"tallystick/commitment/v1\x00" + secrets[32:] + TEXT).digest()


def test_the_wrapped_key_is_laid_out_as_specified() -> None:
    """Another library opens it, by the specification alone."""
    wrapped = wrap(KEK, DATA_KEY, **STREAM_PLACE)
    context = b"tallystick/data-key/v1\x00" + ORIGIN + STREAM + b"\x00\x00\x00\x03"
    assert opened_elsewhere(KEK, wrapped, context) == DATA_KEY
    assert unwrap(KEK, wrapped, **STREAM_PLACE) == DATA_KEY


@pytest.mark.parametrize("moved", [{"event_id": b"f" * 16}, {"origin": b"p" * 32}, {"stream": b"t" * 16}], ids=str)
def test_a_payload_in_another_place_is_refused(moved: dict[str, bytes]) -> None:
    """Two payloads can't be swapped, not even under one data key."""
    payload, committed = sealed()
    with pytest.raises(SealBroken):
        unseal(DATA_KEY, payload, **{**EVENT_PLACE, **moved}, commitment=committed)


@pytest.mark.parametrize("moved", [{"origin": b"p" * 32}, {"stream": b"t" * 16}, {"generation": 4}], ids=str)
def test_a_wrapped_key_in_another_place_is_refused(moved: dict[str, Any]) -> None:
    """Two data keys can't be swapped."""
    with pytest.raises(SealBroken):
        unwrap(KEK, wrap(KEK, DATA_KEY, **STREAM_PLACE), **{**STREAM_PLACE, **moved})


def test_any_changed_byte_is_refused() -> None:
    """Generation, nonce, ciphertext, tag: all of a payload and of a wrapped key is authenticated."""
    payload, committed = sealed()
    wrapped = wrap(KEK, DATA_KEY, **STREAM_PLACE)
    for changed in _changed(payload):
        with pytest.raises(SealBroken):
            unseal(DATA_KEY, changed, **EVENT_PLACE, commitment=committed)
    for changed in _changed(wrapped):
        with pytest.raises(SealBroken):
            unwrap(KEK, changed, **STREAM_PLACE)


def test_any_shorter_payload_is_refused() -> None:
    """Cut anywhere, also within what comes before the ciphertext."""
    payload, committed = sealed()
    for length in range(len(payload)):
        with pytest.raises(SealBroken):
            unseal(DATA_KEY, payload[:length], **EVENT_PLACE, commitment=committed)
    with pytest.raises(SealBroken, match="43 bytes are too few"):
        generation_of(payload[:43])


def test_another_key_opens_nothing() -> None:
    """Once the key is gone, so is the text."""
    payload, committed = sealed()
    with pytest.raises(SealBroken):
        unseal(new_data_key(), payload, **EVENT_PLACE, commitment=committed)
    with pytest.raises(SealBroken):
        unwrap(new_data_key(), wrap(KEK, DATA_KEY, **STREAM_PLACE), **STREAM_PLACE)


def test_a_text_that_was_not_committed_to_is_refused() -> None:
    """A payload that opens must also be the one that was signed for."""
    payload, committed = sealed()
    other = seal(DATA_KEY, TEXT + b"!", **EVENT_PLACE, generation=GENERATION)[1]
    for wrong in (other, b"", committed[:31], bytes(32)):
        with pytest.raises(SealBroken, match="committed"):
            unseal(DATA_KEY, payload, **EVENT_PLACE, commitment=wrong)


def test_the_commitment_binds_salt_and_text() -> None:
    """It tells whether a disclosed text is the one, and nothing without the salt."""
    salt = bytes(32)
    assert commitment(salt, TEXT) == commitment(salt, TEXT)
    assert len({commitment(salt, TEXT), commitment(salt, TEXT + b"!"), commitment(b"\x01" * 32, TEXT)}) == 3


def test_sealing_twice_shows_no_likeness() -> None:
    """A new nonce each time; the commitment, which must be checked later, is the same."""
    (one, committed), (other, again) = sealed(), sealed()
    assert one[4:28] != other[4:28]
    assert committed == again
    assert len({new_data_key() for _ in range(8)}) == 8


def test_each_event_has_its_own_secrets() -> None:
    """Disclosing one event's salt or key discloses no other's."""
    secrets = [
        *event_secrets(DATA_KEY, EVENT_ID),
        *event_secrets(DATA_KEY, b"f" * 16),
        *event_secrets(KEK, EVENT_ID),
    ]
    assert {len(each) for each in secrets} == {32}
    assert len(set(secrets)) == 6


@pytest.mark.parametrize(
    "call",
    [
        lambda: wrap(KEK[:31], DATA_KEY, **STREAM_PLACE),
        lambda: wrap(KEK, DATA_KEY[:31], **STREAM_PLACE),
        lambda: wrap(KEK, DATA_KEY, **{**STREAM_PLACE, "origin": ORIGIN[:31]}),
        lambda: wrap(KEK, DATA_KEY, **{**STREAM_PLACE, "stream": STREAM[:15]}),
        lambda: wrap(KEK, DATA_KEY, **{**STREAM_PLACE, "generation": -1}),
        lambda: wrap(KEK, DATA_KEY, **{**STREAM_PLACE, "generation": 2**32}),
        lambda: unwrap(KEK[:31], bytes(72), **STREAM_PLACE),
        lambda: event_secrets(DATA_KEY[:31], EVENT_ID),
        lambda: event_secrets(DATA_KEY, EVENT_ID[:15]),
        lambda: commitment(bytes(31), TEXT),
        lambda: seal(DATA_KEY, TEXT, **{**EVENT_PLACE, "origin": b""}, generation=0),
        lambda: seal(DATA_KEY, TEXT, **EVENT_PLACE, generation=2**32),
        lambda: unseal(DATA_KEY, bytes(60), **{**EVENT_PLACE, "stream": b""}, commitment=bytes(32)),
    ],
)
def test_arguments_of_another_length_are_refused(call: Callable[[], object]) -> None:
    """Fixed lengths keep the parts of the associated data apart; a wrong one is the caller's mistake."""
    with pytest.raises(ValueError, match=": ") as refused:
        call()
    assert not isinstance(refused.value, SealBroken)


def test_a_sealed_key_of_another_length_is_refused() -> None:
    """What was wrapped must be a data key."""
    context = b"tallystick/data-key/v1\x00" + ORIGIN + STREAM + b"\x00\x00\x00\x03"
    nonce = bytes(24)
    wrapped = nonce + crypto_aead_xchacha20poly1305_ietf_encrypt(DATA_KEY[:16], context, nonce, KEK)
    with pytest.raises(SealBroken, match="32 bytes, not 16"):
        unwrap(KEK, wrapped, **STREAM_PLACE)


def test_wycheproof(shared: Path) -> None:
    """The cipher we stand on agrees with all 315 XChaCha20-Poly1305 cases of Wycheproof."""
    path = shared / "vectors" / "wycheproof_xchacha20_poly1305.json"
    vectors = json.loads(path.read_text(encoding="utf-8"))
    cases = [case for group in vectors["testGroups"] for case in group["tests"]]
    disagreeing = [case["tcId"] for case in cases if not _agrees(case)]
    assert (len(cases), disagreeing) == (315, [])


def _agrees(case: dict[str, str]) -> bool:
    key, nonce, context, text, ciphertext, tag = (
        bytes.fromhex(case[name]) for name in ("key", "iv", "aad", "msg", "ct", "tag")
    )
    try:
        plaintext = sodium.decrypt(ciphertext + tag, context, nonce, key)
    except ValueError:
        plaintext = None
    if plaintext is None:
        return case["result"] == "invalid"
    return case["result"] == "valid" and sodium.encrypt(text, context, nonce, key) == ciphertext + tag


def _changed(data: bytes) -> list[bytes]:
    return [data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :] for place in range(len(data))]
