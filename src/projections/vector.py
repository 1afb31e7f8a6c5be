"""The `vector` view: which text of which memory is to be found by meaning."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

from .record import Record
from .shelves import NAMED, held_of, held_under
from .view import Page, digest_of

_ROWS = f"SELECT number, vector.stream, input, {NAMED} FROM vector JOIN memories USING (number)"
_IN_ORDER = "ORDER BY vector.position"


class Wanted(NamedTuple):
    """A memory's number, its stream, the hash of the text its vector is of, and the name it is held under.

    No hash where it has no vector any more. The name is that of its namespace, or see `shelves`.
    """

    number: int
    stream: bytes
    input: bytes | None
    namespace: str


class Vector:
    """One row for each memory, under the position of its last event, so that what has changed is read in order.

    The vectors themselves come from a cache, since no fold can make them.
    """

    name = "vector"
    version = 3
    schema = (
        "CREATE TABLE vector (position INTEGER PRIMARY KEY, number INTEGER NOT NULL, stream BLOB NOT NULL, input BLOB) "
        "STRICT",
    )

    def apply(self, cursor: Any, page: Page) -> None:
        """Say which text each changed memory is now found by."""
        cursor.executemany(
            "DELETE FROM vector WHERE position = ?",
            [(c.before.position,) for c in page.changes if c.before is not None],
        )
        cursor.executemany(
            "INSERT OR REPLACE INTO vector VALUES (?, ?, ?, ?)",
            [(c.after.position, c.number, c.after.stream, _input(c.after)) for c in page.changes],
        )

    def clear(self, cursor: Any) -> None:
        """Remove every row."""
        cursor.execute("DELETE FROM vector")

    def digest(self, cursor: Any) -> str:
        """A hash of all rows."""
        return digest_of(cursor.execute("SELECT number, stream, input, position FROM vector ORDER BY number"))


def last_change(cursor: Any) -> int:
    """The position of the memory log at which a memory was last changed."""
    return int(cursor.execute("SELECT coalesce(max(position), 0) FROM vector").fetchone()[0])


def changed_after(cursor: Any, position: int) -> list[Wanted]:
    """What has changed after a position of the memory log, in order."""
    return [Wanted(*row) for row in cursor.execute(f"{_ROWS} WHERE vector.position > ? {_IN_ORDER}", (position,))]


def all_of(cursor: Any, name: str) -> list[Wanted]:
    """The memories that are held under a name, in order of their last changes."""
    namespace, _ = held_of(name)
    rows = cursor.execute(f"{_ROWS} WHERE namespace = ? AND {NAMED} = ? {_IN_ORDER}", (namespace, name))
    return [Wanted(*row) for row in rows]


def wanted(cursor: Any) -> set[tuple[bytes, bytes]]:
    """What there is to have a vector of: each current memory's stream, and the hash of the text it is found by."""
    rows = cursor.execute(
        "SELECT vector.stream, input FROM vector JOIN memories USING (number) "
        "WHERE input IS NOT NULL AND status = 'current'"
    )
    return set(rows.fetchall())


def document_of(record: Record) -> str:
    """The text that stands for a memory in the embedding space: its author, where known, and its words."""
    return f"{record.stored.author}: {record.text}" if record.stored.author else record.text


def input_hash(document: str) -> bytes:
    """The 16-byte hash by which a document's vector is kept."""
    return hashlib.blake2b(document.encode(), digest_size=16, person=b"tally.document").digest()


def _input(record: Record) -> bytes | None:
    return None if held_under(record) is None else input_hash(document_of(record))
