"""vectors.db: every vector once, as a cache by embedding space, stream and input."""

from __future__ import annotations

from ..errors import KeysMissing, ViewsDamaged
from ..events.driver import Datastore, File
from ..events.installation import Installation
from .views import check_pages

FILE = "vectors.db"

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS vector (space TEXT NOT NULL, stream BLOB NOT NULL, input BLOB NOT NULL, "
    "value BLOB NOT NULL, runtime TEXT NOT NULL, PRIMARY KEY (space, stream, input)) STRICT, WITHOUT ROWID"
)


class VectorCache:
    """The vectors of all memories, as the bytes of float16, in one encrypted file."""

    def __init__(self, installation: Installation) -> None:
        if installation.keys is None:
            raise KeysMissing("The vectors are encrypted: they open with this store's keys only.")
        path = installation.path / FILE
        self._datastore = Datastore(File(path, ViewsDamaged, installation.keys.views, durable=False))
        with self._datastore.transaction(commit=True) as cursor:
            cursor.execute(_SCHEMA)

    def find(self, space: str, stream: bytes, document: bytes) -> bytes | None:
        """The vector of the document with this hash, or None where it was not made yet."""
        rows = self._datastore.rows(
            "SELECT value FROM vector WHERE space = ? AND stream = ? AND input = ?", (space, stream, document)
        )
        return rows[0][0] if rows else None

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
