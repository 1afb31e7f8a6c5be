"""Claims: what only one memory may hold at a time, decided in the append transaction."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..errors import Claimed, RevisionConflict
from .claim_seal import Changed
from .driver import rows_in
from .kinds import Stored

SCHEMA = ("CREATE TABLE IF NOT EXISTS claim (tag BLOB PRIMARY KEY, place INTEGER NOT NULL) STRICT, WITHOUT ROWID",)

PLACES = 1 << 48  # the place of an entry is log number * PLACES + position
_CONTEXT = b"tally.claim.v1"
_NONE = bytes(8)  # a part stands after its length plus one


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


class Holder(NamedTuple):
    """Which stream holds a tag, and the place of the entry that took it."""

    stream: bytes
    place: int


def claim_tag(index_key: bytes, namespace: str, kind: str, *values: str | None) -> bytes:
    """The 16-byte tag of a claim: BLAKE2b keyed with the installation's index key, over unambiguous parts.

    Keyed, so that a reader of log.db can't guess a text from its tag.
    """
    parts = [None if value is None else value.encode() for value in (namespace, kind, *values)]
    message = b"".join([_NONE if part is None else (len(part) + 1).to_bytes(8, "big") + part for part in parts])
    return hashlib.blake2b(message, key=index_key, digest_size=16, person=_CONTEXT).digest()


def composed(name: str) -> str:
    """A name as it is kept and compared: NFC, so that it does not matter on which keyboard it is typed."""
    return unicodedata.normalize("NFC", name)


def essence(text: str) -> str:
    """What of a text makes it the same as another: NFC, without outer white space."""
    return composed(text).strip()


def content_tag(index_key: bytes, stored: Stored) -> bytes | None:
    """The claim on a text: equal after NFC and outer space, in one namespace, key, subject. Turns have none."""
    if stored.thread is not None:
        return None
    return claim_tag(index_key, stored.namespace, "content", stored.key, stored.subject, essence(stored.text))


def key_tag(index_key: bytes, stored: Stored) -> bytes | None:
    """The claim on a `key=`: its current value is one memory. None for a memory without a key."""
    return None if stored.key is None else claim_tag(index_key, stored.namespace, "key", stored.key)


def held_tags(index_key: bytes, stored: Stored, namespace: str) -> tuple[bytes, ...]:
    """The claims of a memory while it is current, in the namespace as it is called now: on its text, and on its key."""
    named = stored if stored.namespace == namespace else stored.model_copy(update={"namespace": namespace})
    return tuple(tag for tag in (content_tag(index_key, named), key_tag(index_key, named)) if tag is not None)


def command_tag(index_key: bytes, namespace: str, command_id: str | None) -> bytes | None:
    """The claim on a command id: what was done under it is done once. None for a command without one."""
    return None if command_id is None else claim_tag(index_key, namespace, "command", command_id)


def renamed_tag(index_key: bytes, namespace: str) -> bytes:
    """The claim on a namespace's name by the rename that made it an old one. Free while the name is the one in use."""
    return claim_tag(index_key, namespace, "renamed")


def holders_of(cursor: Any, tags: Sequence[bytes]) -> dict[bytes, Holder]:
    """Who holds these tags; free ones are left out."""
    held = "SELECT tag, entry.stream, claim.place FROM claim JOIN entry USING (place) WHERE tag IN ({})"
    return {tag: Holder(stream, place) for tag, stream, place in rows_in(cursor, held, tags)}


def settle(cursor: Any, releases: Sequence[Release], claims: Sequence[tuple[Claim, Holder]]) -> Changed:
    """Give up the tags that are held by who gives them up; then take those claimed, each for the holder beside it.

    Returns the rows there were of these tags and those there are now. Raises Claimed where somebody else than expected
    holds one.
    """
    held = holders_of(cursor, [given.tag for given in releases] + [claim.tag for claim, _ in claims])
    before = [(tag, holder.place) for tag, holder in held.items()]
    for given in releases:
        if given.tag in held and held[given.tag].stream == given.holder:
            del held[given.tag]
            cursor.execute("DELETE FROM claim WHERE tag = ?", (given.tag,))
    for claim, holder in claims:
        other = held.get(claim.tag)
        if (other.stream if other else None) != claim.instead_of:
            raise Claimed(claim.tag, other.stream if other else None, other.place % PLACES if other else None)
        held[claim.tag] = holder
    cursor.executemany(
        "INSERT OR REPLACE INTO claim VALUES (?, ?)", [(claim.tag, holder.place) for claim, holder in claims]
    )
    return Changed(before, ((tag, holder.place) for tag, holder in held.items()))


def moved(cursor: Any, moves: Sequence[Move]) -> tuple[list[Release], list[tuple[Claim, Holder]]]:
    """What settles these moves: tags that are held by who moves them are given up, and the others taken instead."""
    held = holders_of(cursor, [given.tag for given in moves])
    given = [each for each in moves if each.tag in held and held[each.tag].stream == each.holder]
    return (
        [Release(each.tag, each.holder) for each in given],
        [(Claim(each.to, 0), held[each.tag]) for each in given],
    )


def require_free(cursor: Any, tags: Sequence[bytes]) -> None:
    """Raise RevisionConflict where one of these names of namespaces is one no more."""
    if tags and holders_of(cursor, tags):
        raise RevisionConflict("The namespace has been renamed since it was looked up. Repeat the command.")
