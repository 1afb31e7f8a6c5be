"""A backup of keys: one small file, sealed under a passphrase."""

from __future__ import annotations

import os
import unicodedata
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, Self

from nacl.exceptions import CryptoError
from nacl.pwhash import argon2id
from nacl.secret import Aead

from ..errors import KeysMissing, Refused, Unavailable
from .canonical import NotCanonical, decode_body, encode_body
from .key_places import sync_directory, write_new
from .keys import ENTRIES, KEY_BYTES

FAMILY, VERSION = b"tallystick/key-backup/v", b"1\0"
MAGIC = FAMILY + VERSION
ID_BYTES, LENGTH_BYTES, DIGEST_BYTES = 16, 2, 32
MOST_BYTES = 64 * 1024
LEAST_CHARACTERS = 12

_AGAIN = "Use another copy of the file, or make a new backup where the keys are."


class Effort(NamedTuple):
    """What each guess of a passphrase costs (argon2id): passes, and bytes of memory."""

    passes: int
    memory: int


ENOUGH = Effort(argon2id.OPSLIMIT_MODERATE, argon2id.MEMLIMIT_MODERATE)
MOST = Effort(argon2id.OPSLIMIT_SENSITIVE, argon2id.MEMLIMIT_SENSITIVE)
"""What a file may ask of whoever opens it: a file must not be able to take all memory."""


class Backup(NamedTuple):
    """A file of sealed keys as it lies there: what is in clear, and what a passphrase opens.

    The file is MAGIC, the length of the head, the head, the sealed keys, and the SHA-256 of all before it. The head,
    with MAGIC and its length, is bound to the sealed keys.
    """

    id: bytes
    store: bytes
    made_at: int
    effort: Effort
    salt: bytes
    sealed: bytes

    @classmethod
    def seal(cls, entries: dict[str, bytes], passphrase: str, *, store: bytes, made_at: int, effort: Effort) -> Self:
        """Seal keys under a passphrase. Raises Refused for one that is too short."""
        if len(passphrase) < LEAST_CHARACTERS:
            raise Refused(
                f"The passphrase has {len(passphrase)} characters, and whoever has the file can guess for as long as "
                f"they like. Choose one of at least {LEAST_CHARACTERS}: four words will do."
            )
        head = cls(os.urandom(ID_BYTES), store, made_at, effort, os.urandom(argon2id.SALTBYTES), b"")
        key = _key(passphrase, head)
        return head._replace(sealed=bytes(Aead(key).encrypt(encode_body(dict(entries)), head._head())))

    def open(self, passphrase: str) -> dict[str, bytes]:
        """The keys in it, by entry. Raises Refused where the passphrase is not the one it was sealed under."""
        try:
            content: Any = decode_body(Aead(_key(passphrase, self)).decrypt(self.sealed, self._head()))
        except (CryptoError, NotCanonical) as error:
            raise Refused("The passphrase is not the one this backup was sealed under. Try another one.") from error
        if not set(content) <= set(ENTRIES) or any(len(key) != KEY_BYTES for key in content.values()):
            raise Refused(
                f"The backup holds what no key of this release is ({sorted(content)}). Upgrade and try again."
            )
        return dict(content)

    def encode(self) -> bytes:
        """The file."""
        framed = self._head() + self.sealed
        return framed + sha256(framed).digest()

    def _head(self) -> bytes:
        head = encode_body(
            {
                "backup": self.id,
                "made_at": self.made_at,
                "memory": self.effort.memory,
                "passes": self.effort.passes,
                "salt": self.salt,
                "store": self.store,
            }
        )
        return MAGIC + len(head).to_bytes(LENGTH_BYTES, "big") + head


def write_backup(path: Path, backup: Backup) -> bytes:
    """Write a backup to a file that is not there yet, on the disk when this returns. Returns the file's SHA-256."""
    content = backup.encode()
    try:
        write_new(path, content)
        sync_directory(path.parent)
    except FileExistsError as error:
        raise Refused(f"{path} is there already, and a backup never replaces a file. Name another one.") from error
    except OSError as error:
        raise Refused(f"The backup can't be written to {path} ({error.strerror}). Name another file.") from error
    if path.read_bytes() != content:
        raise Refused(f"What was written to {path} does not read back. Name a file on another disk.")
    return sha256(content).digest()


def read_backup(path: Path) -> Backup:
    """Read a backup, still sealed. Raises KeysMissing where there is none, Refused where it is not whole."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise KeysMissing(f"The backup {path} can't be read ({error.strerror}). Name the file.") from error
    if not content.startswith(FAMILY):
        raise Refused(f"{path} is not a backup of keys. Name a file that `tallystick keys backup` has written.")
    framed, digest = content[:-DIGEST_BYTES], content[-DIGEST_BYTES:]
    if len(content) > MOST_BYTES or sha256(framed).digest() != digest:
        raise Refused(f"The backup {path} was cut or altered. {_AGAIN}")
    if not framed.startswith(MAGIC):
        raise Refused(f"The backup {path} was written by another release. Upgrade, and try again.")
    try:
        return _decode(framed)
    except (NotCanonical, KeyError, TypeError, ValueError) as error:
        raise Refused(f"The backup {path} was altered: its head is none ({error}). {_AGAIN}") from error


def _decode(framed: bytes) -> Backup:
    start = len(MAGIC) + LENGTH_BYTES
    end = start + int.from_bytes(framed[len(MAGIC) : start], "big")
    head: Any = decode_body(framed[start:end])
    effort = Effort(head["passes"], head["memory"])
    backup = Backup(head["backup"], head["store"], head["made_at"], effort, head["salt"], framed[end:])
    if not argon2id.OPSLIMIT_MIN <= effort.passes <= MOST.passes:
        raise ValueError("passes out of bounds")
    if not argon2id.MEMLIMIT_MIN <= effort.memory <= MOST.memory:
        raise ValueError("memory out of bounds")
    if len(backup.salt) != argon2id.SALTBYTES or backup._head() != framed[:end]:
        raise ValueError("fields of another shape")
    return backup


def _key(passphrase: str, backup: Backup) -> bytes:
    """The key that a passphrase gives. NFC, so that it does not matter on which keyboard it is typed."""
    typed = unicodedata.normalize("NFC", passphrase).encode("utf-8", "surrogatepass")
    try:
        return argon2id.kdf(KEY_BYTES, typed, backup.salt, backup.effort.passes, backup.effort.memory)
    except (RuntimeError, MemoryError) as error:
        raise Unavailable(
            f"Checking the passphrase takes {backup.effort.memory >> 20} MiB of memory, which can't be had now. "
            f"Free it and try again."
        ) from error
