"""vectors.db: every vector once, as a cache by embedding space, stream and input."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

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
        if installation.derived != installation.path:
            _copy(installation, path)
        self._datastore = Datastore(File(path, ViewsDamaged, installation.keys.views, durable=False))
        with self._datastore.transaction(commit=True) as cursor:
            cursor.execute(_SCHEMA)

    def find(self, space: str, asked: Collection[Key]) -> dict[Key, bytes]:
        """The vectors that were made already, of those asked for: one by one, or in one scan where many are."""
        if len(asked) > SCAN_FROM:
            rows = self._datastore.rows("SELECT stream, input, value FROM vector WHERE space = ?", (space,))
            return {(stream, document): value for stream, document, value in rows if (stream, document) in asked}
        return {key: row[0] for key in asked for row in self._datastore.rows(_ONE, (space, *key))}

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


def _copy(installation: Installation, target: Path) -> None:
    """Take over the vectors of a store that is only read, where they can be read; the others are made again."""
    source = installation.path / FILE
    if target.exists() or not source.exists():
        return
    assert installation.keys is not None
    datastore = Datastore(File(source, ViewsDamaged, installation.keys.views, read_only=True))
    try:
        datastore.rows("VACUUM INTO ?", (str(target),))
    except (ViewsDamaged, Unavailable):
        delete(target)
    finally:
        datastore.close()


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
