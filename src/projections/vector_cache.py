"""vectors.db: every vector once, as a cache by embedding space, stream and input."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ..errors import KeysMissing, Unavailable, ViewsDamaged
from ..events.driver import Datastore, File
from ..events.installation import Installation
from .views import check_pages, delete

FILE = "vectors.db"
SCAN_FROM = 64

Key = tuple[bytes, bytes]
"""A memory's stream, and the hash of the document the vector is of."""

_ONE = "SELECT value FROM vector WHERE space = ? AND stream = ? AND input = ?"

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS vector (space TEXT NOT NULL, stream BLOB NOT NULL, input BLOB NOT NULL, "
    "value BLOB NOT NULL, runtime TEXT NOT NULL, PRIMARY KEY (space, stream, input)) STRICT, WITHOUT ROWID"
)


class VectorCache:
    """The vectors of all memories, as the bytes of float16, in one encrypted file."""

    def __init__(self, installation: Installation) -> None:
        if installation.keys is None:
            raise KeysMissing("The vectors are encrypted: they open with this store's keys only. Supply them.")
        path = installation.derived / FILE
        there = [] if installation.derived == installation.path else _rows_of(installation)
        self._datastore = Datastore(File(path, ViewsDamaged, installation.keys.views, durable=False))
        with self._datastore.transaction(commit=True) as cursor:
            cursor.execute(_SCHEMA)
            cursor.executemany("INSERT OR IGNORE INTO vector VALUES (?, ?, ?, ?, ?)", there)

    def find(self, space: str, asked: Collection[Key]) -> dict[Key, bytes]:
        """The vectors that were made already, of those asked for: one by one, or in one scan where many are."""
        if len(asked) > SCAN_FROM:
            rows = self._datastore.rows("SELECT stream, input, value FROM vector WHERE space = ?", (space,))
            return {(stream, document): value for stream, document, value in rows if (stream, document) in asked}
        return {key: row[0] for key in asked for row in self._datastore.rows(_ONE, (space, *key))}

    def keys(self) -> set[Key]:
        """What there is a vector of, in whatever space."""
        return set(self._datastore.rows("SELECT stream, input FROM vector"))

    def put(self, space: str, stream: bytes, document: bytes, vector: bytes, runtime: str) -> None:
        """Keep the vector of a document of a memory, and say which runtime made it."""
        with self._datastore.transaction(commit=True) as cursor:
            cursor.execute(
                "INSERT OR REPLACE INTO vector VALUES (?, ?, ?, ?, ?)", (space, stream, document, vector, runtime)
            )

    def check_pages(self) -> None:
        """Check the authentication code of every page. Raises ViewsDamaged."""
        check_pages(self._datastore)

    def close(self) -> None:
        """Close the file."""
        self._datastore.close()


def _rows_of(installation: Installation) -> list[tuple[Any, ...]]:
    """The vectors of a store that is only read, where they can be read; the others are made again."""
    source = installation.path / FILE
    if not source.exists():
        return []
    assert installation.keys is not None
    datastore = Datastore(File(source, ViewsDamaged, installation.keys.views, read_only=True))
    try:
        return datastore.rows("SELECT space, stream, input, value, runtime FROM vector")
    except (ViewsDamaged, Unavailable):
        return []
    finally:
        datastore.close()


def seen_vectors(installation: Installation, *, still: bool) -> Datastore | None:
    """vectors.db, opened to be read and as it is; None where there is none. `still` is that of a File."""
    path = installation.path / FILE
    if installation.keys is None or not path.exists():
        return None
    return Datastore(File(path, ViewsDamaged, installation.keys.views, True, durable=False, still=still))


def kept(vectors: Datastore) -> tuple[set[Key], int]:
    """What there is a vector of, and from how many embedding spaces they are."""
    spaces = vectors.rows("SELECT count(DISTINCT space) FROM vector")[0][0]
    return set(vectors.rows("SELECT stream, input FROM vector")), spaces


def discard_damaged(installation: Installation) -> bool:
    """Delete vectors.db where it can't be read, whole: it is made again. Says whether it was."""
    try:
        cache = VectorCache(installation)
        try:
            cache.check_pages()
        finally:
            cache.close()
    except ViewsDamaged:
        delete(installation.path / FILE)
        return True
    return False
