"""The calls of libsodium that every event needs, without the checks and copies that PyNaCl puts around them."""

from __future__ import annotations

from nacl._sodium import ffi, lib  # type: ignore[import-not-found]
from nacl.bindings import sodium_init

KEY_BYTES = 32
NONCE_BYTES: int = lib.crypto_aead_xchacha20poly1305_ietf_npubbytes()
TAG_BYTES: int = lib.crypto_aead_xchacha20poly1305_ietf_abytes()
PUBLIC_KEY_BYTES = 32
SIGNATURE_BYTES = 64

_NULL, _buffer = ffi.NULL, ffi.from_buffer
_encrypt, _decrypt = lib.crypto_aead_xchacha20poly1305_ietf_encrypt, lib.crypto_aead_xchacha20poly1305_ietf_decrypt
_open = lib.crypto_sign_open

sodium_init()


def encrypt(plaintext: bytes, context: bytes, nonce: bytes, key: bytes) -> bytes:
    """Return ciphertext || tag of XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03). ValueError for a wrong length."""
    _require_lengths(nonce, key)
    sealed = bytearray(len(plaintext) + TAG_BYTES)
    _encrypt(_buffer(sealed), _NULL, plaintext, len(plaintext), context, len(context), _NULL, nonce, key)
    return bytes(sealed)


def decrypt(sealed: bytes, context: bytes, nonce: bytes, key: bytes) -> bytes | None:
    """Return what `encrypt` sealed, or None where it was changed. ValueError for a wrong length."""
    _require_lengths(nonce, key)
    if len(sealed) < TAG_BYTES:
        return None
    plaintext = bytearray(len(sealed) - TAG_BYTES)
    failed = _decrypt(_buffer(plaintext), _NULL, _NULL, sealed, len(sealed), context, len(context), nonce, key)
    return None if failed else bytes(plaintext)


def is_signed(message: bytes, signature: bytes, public: bytes) -> bool:
    """Tell whether the 64-byte Ed25519 signature is by this key (RFC 8032 section 5.1.7). ValueError for a length."""
    if len(signature) != SIGNATURE_BYTES or len(public) != PUBLIC_KEY_BYTES:
        raise ValueError(f"a signature has {SIGNATURE_BYTES} bytes and a public key {PUBLIC_KEY_BYTES}: give those")
    signed = signature + message
    return not _open(_NULL, _NULL, signed, len(signed), public)


def _require_lengths(nonce: bytes, key: bytes) -> None:
    """libsodium reads as many bytes as it needs, whether they are there or not."""
    if len(nonce) != NONCE_BYTES or len(key) != KEY_BYTES:
        raise ValueError(f"a nonce has {NONCE_BYTES} bytes and a key {KEY_BYTES}: check where they were read from")
