"""Checkpoints: a log's size and root as a signed note that any C2SP tool reads."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Iterator
from hashlib import sha256
from typing import NamedTuple

from .merkle import EMPTY_ROOT, HASH_BYTES
from .signing import Signer, admit_public_key, verify

MAX_NOTE_CHARACTERS = 1 << 18

_ED25519 = b"\x01"
_KEY_HASH_BYTES = 4
_SIZE_LIMIT = 1 << 64
_SIZE = re.compile(r"0|[1-9][0-9]{0,19}", re.ASCII)
_KEY_HASH = re.compile(r"[0-9a-f]{8}", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\ud800-\udfff]")
_DASH = "\u2014 "


class BadNote(ValueError):
    """A note or a verifier key is malformed, or a note is not signed by the key it should be. Refuse it."""


class Checkpoint(NamedTuple):
    """What a log says of itself: its origin, its number of entries, and their 32-byte Merkle root."""

    origin: str
    size: int
    root: bytes

    def text(self) -> str:
        """Return the three lines that are signed: the note text of C2SP tlog-checkpoint, not extended.

        Raises BadNote if the origin is empty or not one line, the size is not a uint64, the root is
        not 32 bytes, or the size is 0 and the root not that of the empty tree.
        """
        if not self.origin or "\n" in self.origin or _CONTROL.search(self.origin):
            raise BadNote(f"the origin {self.origin!r} is not one line of text: give the log's own")
        if not 0 <= self.size < _SIZE_LIMIT:
            raise BadNote(f"the size {self.size} is not from 0 to 2**64 - 1: give the number of entries")
        if len(self.root) != HASH_BYTES or (self.size == 0 and self.root != EMPTY_ROOT):
            raise BadNote(f"the root is not that of a tree of {self.size} entries: recompute it")
        return f"{self.origin}\n{self.size}\n{_base64(self.root)}\n"


def sign(checkpoint: Checkpoint, name: str, signer: Signer) -> str:
    """Return the checkpoint as a note signed by the key `name` (C2SP signed-note, "Ed25519 signatures").

    Never sign two checkpoints of one log that contradict each other. Raises BadNote if the
    checkpoint can't be written, or the name is empty or holds a space, a plus or a control character.
    """
    _require_name(name)
    text = checkpoint.text()
    signature = _key_hash(name, signer.public) + signer.sign(text.encode())
    return f"{text}\n{_DASH}{name} {_base64(signature)}\n"


def open_note(note: str, name: str, public: bytes) -> Checkpoint:
    """Return the checkpoint in a note, once the signature by the key `name`, `public` is checked.

    Signatures by other keys are ignored (C2SP signed-note, "Signatures"). Raises BadNote unless
    this key's is there and holds, every signature line is well formed, and the text is exactly
    the three lines of C2SP tlog-checkpoint in their only spelling.
    """
    _require_name(name)
    if len(note) > MAX_NOTE_CHARACTERS or _CONTROL.search(note):
        raise BadNote("the note is too long or holds characters that no note has: fetch it again")
    text, blank, signatures = note.rpartition("\n\n")
    text += "\n"
    if not blank or not _signed(text, signatures, name, public):
        raise BadNote(f"the note has no signature by {name}: fetch it again, or check the key")
    return _parse_text(text)


def parse_vkey(vkey: str) -> tuple[str, bytes]:
    """Return the name and the 32-byte public key in a verifier key `name+hash+base64(0x01 || public key)`.

    The form is that of golang.org/x/mod/sumdb/note; the hash is the key ID of C2SP signed-note in
    hexadecimal. Raises BadNote if it is malformed, of another algorithm, has another hash or
    encodes a key of small order.
    """
    parts = vkey.split("+", 2)
    if len(parts) != 3 or not _KEY_HASH.fullmatch(parts[1]):
        raise BadNote(f"{vkey!r} is not a verifier key: it reads name+hash+key")
    name, key_hash, encoded = parts
    _require_name(name)
    key = _from_base64(encoded)
    if key[:1] != _ED25519:
        raise BadNote(f"the verifier key of {name} is not for Ed25519: ask for one that is")
    try:
        public = admit_public_key(key[1:])
    except ValueError as refused:
        raise BadNote(f"the verifier key of {name} can't be trusted: {refused}") from refused
    if _key_hash(name, public).hex() != key_hash:
        raise BadNote(f"the verifier key of {name} does not have the hash {key_hash}: copy it again")
    return name, public


def _signed(text: str, signatures: str, name: str, public: bytes) -> bool:
    """Tell whether the key's signature is among the lines; BadNote if one of its signatures does not hold."""
    key_hash, found = _key_hash(name, public), False
    for signer, signature in _signature_lines(signatures):
        if signer != name or signature[:_KEY_HASH_BYTES] != key_hash:
            continue
        if not verify(public, text.encode(), signature[_KEY_HASH_BYTES:]):
            raise BadNote(f"the note was changed after {name} signed it, or never signed: refuse it")
        found = True
    return found


def _signature_lines(signatures: str) -> Iterator[tuple[str, bytes]]:
    """Yield the key name and the decoded key ID and signature of each line."""
    *lines, rest = signatures.split("\n")
    for line in lines:
        name, space, encoded = line.removeprefix(_DASH).partition(" ")
        signature = _from_base64(encoded)
        if rest or not space or not line.startswith(_DASH) or len(signature) <= _KEY_HASH_BYTES:
            raise BadNote(f"{line[:80]!r} is not a signature line: fetch the note again")
        _require_name(name)
        yield name, signature


def _parse_text(text: str) -> Checkpoint:
    lines = text.split("\n")
    if len(lines) != 4 or not _SIZE.fullmatch(lines[1]):
        raise BadNote("the note is not a checkpoint of origin, size and root: fetch it again")
    checkpoint = Checkpoint(lines[0], int(lines[1]), _from_base64(lines[2]))
    if checkpoint.text() != text:
        raise BadNote("the checkpoint is not in its only spelling: refuse it")
    return checkpoint


def _key_hash(name: str, public: bytes) -> bytes:
    """Return SHA-256(name || 0x0A || 0x01 || public key)[:4], the key ID of C2SP signed-note for Ed25519."""
    return sha256(name.encode() + b"\n" + _ED25519 + public).digest()[:_KEY_HASH_BYTES]


def _require_name(name: str) -> None:
    if not name or "+" in name or any(map(str.isspace, name)) or _CONTROL.search(name):
        raise BadNote(f"{name!r} can't name a key: use text without spaces or plus signs")


def _base64(data: bytes) -> str:
    return b64encode(data).decode()


def _from_base64(encoded: str) -> bytes:
    """Return the bytes if `encoded` is the one standard base64 of them (RFC 4648 section 4)."""
    try:
        data = b64decode(encoded, validate=True)
    except ValueError as malformed:
        raise BadNote(f"{encoded[:80]!r} is not base64: copy it again") from malformed
    if _base64(data) != encoded:
        raise BadNote(f"{encoded[:80]!r} is not the canonical base64 of its bytes: refuse it")
    return data
