"""Claims: what only one memory may hold at a time, decided in the append transaction."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..errors import Claimed, RevisionConflict
from .kinds import Stored

SCHEMA = ("CREATE TABLE IF NOT EXISTS claim (tag BLOB PRIMARY KEY, place INTEGER NOT NULL) STRICT, WITHOUT ROWID",)

PLACES = 1 << 48  # the place of an entry is log number * PLACES + position
_CONTEXT = b"tally.claim.v1"


class Claim(NamedTuple):
    """A tag to be held by the stream of one draft of an append, instead of nobody or of a named holder."""

    tag: bytes
    draft: int
    instead_of: bytes | None = None


class Release(NamedTuple):
    """A tag that a stream gives up, where it holds it."""

    tag: bytes
    holder: bytes


class Move(NamedTuple):
    """A tag that its holder gives up for another one, which it then holds as long as it has held the first."""

    tag: bytes
    to: bytes
    holder: bytes


def claim_tag(index_key: bytes, namespace: str, kind: str, *values: str | None) -> bytes:
    """The 16-byte tag of a claim: BLAKE2b keyed with the installation's index key, over unambiguous parts.

    Keyed, so that a reader of log.db can't guess a text from its tag.
    """
    mac = hashlib.blake2b(key=index_key, digest_size=16, person=_CONTEXT)
    for value in (namespace, kind, *values):
        encoded = b"" if value is None else value.encode()
        mac.update((0 if value is None else len(encoded) + 1).to_bytes(8, "big") + encoded)
    return mac.digest()


def essence(text: str) -> str:
    """What of a text makes it the same as another: NFC, without outer white space."""
    return unicodedata.normalize("NFC", text).strip()


def content_tag(index_key: bytes, stored: Stored) -> bytes | None:
    """The claim on a text: equal after NFC and outer space, in one namespace, key, subject. Turns have none."""
    if stored.thread is not None:
        return None
    return claim_tag(index_key, stored.namespace, "content", stored.key, stored.subject, essence(stored.text))


def key_tag(index_key: bytes, stored: Stored) -> bytes | None:
    """The claim on a `key=`: its current value is one memory. None for a memory without a key."""
    return None if stored.key is None else claim_tag(index_key, stored.namespace, "key", stored.key)


def command_tag(index_key: bytes, namespace: str, command_id: str | None) -> bytes | None:
    """The claim on a command id: what was done under it is done once. None for a command without one."""
    return None if command_id is None else claim_tag(index_key, namespace, "command", command_id)


def renamed_tag(index_key: bytes, namespace: str) -> bytes:
    """The claim on a namespace's name by the rename that made it an old one. Free while the name is the one in use."""
    return claim_tag(index_key, namespace, "renamed")


def holder_of(cursor: Any, tag: bytes) -> tuple[bytes, int] | None:
    """The stream that holds a tag and the place of the entry that took it, or None."""
    row = cursor.execute(
        "SELECT entry.stream, claim.place FROM claim JOIN entry USING (place) WHERE tag = ?", (tag,)
    ).fetchone()
    return None if row is None else (row[0], row[1])


def take(cursor: Any, claim: Claim, place: int) -> None:
    """Hold a tag from this place on. Raises Claimed where somebody else than expected holds it."""
    held = holder_of(cursor, claim.tag)
    if (held[0] if held else None) != claim.instead_of:
        raise Claimed(claim.tag, held[0] if held else None, held[1] % PLACES if held else None)
    cursor.execute("INSERT OR REPLACE INTO claim VALUES (?, ?)", (claim.tag, place))


def release(cursor: Any, given: Release) -> None:
    """Give up a tag, where this holder has it."""
    held = holder_of(cursor, given.tag)
    if held and held[0] == given.holder:
        cursor.execute("DELETE FROM claim WHERE tag = ?", (given.tag,))


def move(cursor: Any, given: Move) -> None:
    """Hold another tag instead, where this holder has the first. Raises Claimed where somebody else has the other."""
    held, other = holder_of(cursor, given.tag), holder_of(cursor, given.to)
    if other is not None:
        raise Claimed(given.to, other[0], other[1] % PLACES)
    if held and held[0] == given.holder:
        cursor.execute("UPDATE claim SET tag = ? WHERE tag = ?", (given.to, given.tag))


def require_free(cursor: Any, tags: Sequence[bytes]) -> None:
    """Raise RevisionConflict where one of these names of namespaces is one no more."""
    if any(holder_of(cursor, tag) for tag in tags):
        raise RevisionConflict("The namespace has been renamed since it was looked up. Repeat the command.")
