"""Ed25519 signatures: who may sign, and whether a signature holds."""

from __future__ import annotations

import os
from hashlib import sha256
from typing import Protocol

from nacl.bindings import crypto_sign, crypto_sign_seed_keypair

from .sodium import PUBLIC_KEY_BYTES, SIGNATURE_BYTES, is_signed

SEED_BYTES = 32

_KEY_ID_CONTEXT = b"tallystick/key/v1\0"

# The y coordinates of the eight points whose order divides 8, little-endian, canonical and (the
# last two: p and p + 1) not: the list of ge25519_has_small_order in libsodium, and of table 6 in
# Chalkias, Garillot and Nikolaenko, "Taming the many EdDSAs" (2020).
_SMALL_ORDER_Y = (
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
)


def _with_sign_of_x(y: bytes) -> bytes:
    return y[:31] + bytes([y[31] | 0x80])


SMALL_ORDER_KEYS = frozenset(key for y in map(bytes.fromhex, _SMALL_ORDER_Y) for key in (y, _with_sign_of_x(y)))


class Signer(Protocol):
    """Anything that signs with one Ed25519 key, wherever the secret is kept."""

    @property
    def public(self) -> bytes:
        """The public key, 32 bytes."""

    def sign(self, message: bytes) -> bytes:
        """Return the 64-byte Ed25519 signature of `message` (RFC 8032 section 5.1.6)."""


class SeedSigner:
    """A signer that holds its secret in memory, as the 32-byte seed of RFC 8032 section 5.1.5.

    Raises ValueError if the seed is not 32 bytes. Its repr shows the public key only.
    """

    __slots__ = ("_public", "_secret")

    def __init__(self, seed: bytes) -> None:
        """Derive the key pair from its 32 secret bytes."""
        if len(seed) != SEED_BYTES:
            raise ValueError(f"a signing seed is {SEED_BYTES} bytes, not {len(seed)}: check the key file")
        self._public, self._secret = crypto_sign_seed_keypair(seed)

    @classmethod
    def generate(cls) -> SeedSigner:
        """Return a signer with a new random seed."""
        return cls(os.urandom(SEED_BYTES))

    @property
    def seed(self) -> bytes:
        """The 32 secret bytes: whoever has them can sign in this key's name."""
        return self._secret[:SEED_BYTES]

    @property
    def public(self) -> bytes:
        """The public key, 32 bytes."""
        return self._public

    def sign(self, message: bytes) -> bytes:
        """Return the 64-byte Ed25519 signature of `message` (RFC 8032 section 5.1.6)."""
        return crypto_sign(message, self._secret)[:SIGNATURE_BYTES]

    def __repr__(self) -> str:
        """Show the public key, never the seed."""
        return f"SeedSigner(public={self._public.hex()})"


def verify(public: bytes, message: bytes, signature: bytes) -> bool:
    """Tell whether `signature` over `message` is by the key `public` (RFC 8032 section 5.1.7).

    False, never an error, for a key that is not 32 bytes or of small order, or a signature that
    is not 64 bytes.
    """
    if len(public) != PUBLIC_KEY_BYTES or len(signature) != SIGNATURE_BYTES or public in SMALL_ORDER_KEYS:
        return False
    return is_signed(message, signature, public)


def admit_public_key(public: bytes) -> bytes:
    """Return `public` if it may be trusted to identify one signer.

    Raises ValueError if it is not 32 bytes, or one of the 14 encodings of a point of small order,
    under which some verifiers accept signatures nobody made.
    """
    if len(public) != PUBLIC_KEY_BYTES:
        raise ValueError(
            f"a public key is {PUBLIC_KEY_BYTES} bytes, not {len(public)}: ask its owner for the Ed25519 key"
        )
    if public in SMALL_ORDER_KEYS:
        raise ValueError(
            f"public key {public.hex()} has small order, so anyone can sign for it: "
            "refuse it and ask its owner for a newly generated one"
        )
    return public


def key_id(public: bytes) -> bytes:
    """Return the 8 bytes by which entries name a key: SHA-256(b"tallystick/key/v1\\0" || public)[:8].

    A hint for finding the key, never a proof of it.
    """
    return sha256(_KEY_ID_CONTEXT + public).digest()[:8]
