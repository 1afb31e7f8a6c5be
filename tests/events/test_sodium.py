"""The direct calls of libsodium give what PyNaCl's own bindings give, and never read past what they were given."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl.bindings import (
    crypto_aead_xchacha20poly1305_ietf_decrypt,
    crypto_aead_xchacha20poly1305_ietf_encrypt,
    crypto_sign,
    crypto_sign_seed_keypair,
)

from tallystick.events import sodium

NONCE, KEY = bytes(range(24)), bytes(range(32))


@given(st.binary(max_size=300), st.binary(max_size=120))
def test_what_one_seals_the_other_opens(plaintext: bytes, context: bytes) -> None:
    """The same bytes both ways, empty ones included."""
    sealed = sodium.encrypt(plaintext, context, NONCE, KEY)
    assert sealed == crypto_aead_xchacha20poly1305_ietf_encrypt(plaintext, context, NONCE, KEY)
    assert sodium.decrypt(sealed, context, NONCE, KEY) == plaintext
    assert crypto_aead_xchacha20poly1305_ietf_decrypt(sealed, context, NONCE, KEY) == plaintext


@pytest.mark.parametrize("length", [0, 1, 15, 16, 17, 40])
def test_what_was_not_sealed_does_not_open(length: int) -> None:
    """Random bytes of any length, shorter than a tag too, are None."""
    assert sodium.decrypt(os.urandom(length), b"", NONCE, KEY) is None


@pytest.mark.parametrize(("nonce", "key"), [(NONCE[:23], KEY), (NONCE + b"n", KEY), (NONCE, KEY[:31]), (NONCE, b"")])
def test_a_wrong_length_is_refused_before_libsodium_reads(nonce: bytes, key: bytes) -> None:
    """Both ways."""
    for call in (sodium.encrypt, sodium.decrypt):
        with pytest.raises(ValueError, match="24 bytes and a key 32"):
            call(bytes(40), b"", nonce, key)


@given(st.binary(max_size=600))
def test_signatures_are_those_of_pynacl(message: bytes) -> None:
    """What PyNaCl signed is signed; with one bit another way it is not."""
    public, secret = crypto_sign_seed_keypair(KEY)
    signature = crypto_sign(message, secret)[:64]
    assert sodium.is_signed(message, signature, public)
    assert not sodium.is_signed(message + b"\0", signature, public)
    assert not sodium.is_signed(message, signature[:-1] + bytes([signature[-1] ^ 1]), public)


@pytest.mark.parametrize(("signature", "public"), [(63, 32), (65, 32), (64, 31), (64, 33), (0, 0)])
def test_a_signature_or_key_of_a_wrong_length_is_refused(signature: int, public: int) -> None:
    """Before libsodium reads."""
    with pytest.raises(ValueError, match="64 bytes and a public key 32"):
        sodium.is_signed(b"", bytes(signature), bytes(public))
