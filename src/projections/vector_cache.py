"""vectors.db: every vector once, with its tokens' codes, as a cache by embedding space, stream and input."""

from __future__ import annotations

import math
import struct
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from ..errors import Busy, KeysMissing, Unavailable, ViewsDamaged
from ..events.driver import Datastore, File, rows_in
from ..events.installation import Installation
from .views import check_pages, delete

FILE = "vectors.db"
SCAN_FROM = 64

Key = tuple[bytes, bytes]
"""A memory's stream, and the hash of the document the vector is of."""

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS space (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE) STRICT",
    "CREATE TABLE IF NOT EXISTS runtime (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT",
    "CREATE TABLE IF NOT EXISTS made (space INTEGER NOT NULL, stream BLOB NOT NULL, input BLOB NOT NULL, "
    "number INTEGER NOT NULL, PRIMARY KEY (space, stream, input)) STRICT, WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS vector (number INTEGER PRIMARY KEY AUTOINCREMENT, value BLOB NOT NULL, "
    "runtime INTEGER NOT NULL) STRICT",
    "CREATE TABLE IF NOT EXISTS tokens (number INTEGER PRIMARY KEY, codes BLOB NOT NULL) STRICT",
)
_TABLES = ("space", "runtime", "made", "vector", "tokens")
_VALUES = (
    "SELECT space, value, 4 * coalesce(length(codes), 0) FROM made JOIN vector USING (number) "
    "LEFT JOIN tokens USING (number)"
)
"""Each vector, and how many bytes float16 would need for its tokens' values."""
_MADE = "SELECT stream, input, number FROM made WHERE space = ?"
_KEYS = "SELECT stream, input FROM made"
_KEYS_IN = "SELECT stream, input FROM made WHERE space = (SELECT number FROM space WHERE id = ?)"
_NUMBERS_IN = "SELECT made.number FROM made WHERE space = (SELECT number FROM space WHERE id = ?)"
_SPACES = "SELECT id, count(*) FROM space JOIN made ON made.space = space.number GROUP BY id"


class Made(NamedTuple):
    """What was made of a document: its vector as float16, its tokens' codes (empty where it has none), and by what."""

    vector: bytes
    tokens: bytes
    runtime: str


class VectorCache:
    """The vectors of all memories, as the bytes of float16, and the codes of their tokens, in one encrypted file."""

    def __init__(self, installation: Installation) -> None:
        if installation.keys is None:
            raise KeysMissing("The vectors are encrypted: they open with this store's keys only. Supply them.")
        path = installation.derived / FILE
        there = [] if installation.derived == installation.path else _everything(installation)
        self._datastore = Datastore(File(path, ViewsDamaged, installation.keys.views, durable=False))
        with self._datastore.transaction(commit=True) as cursor:
            for statement in _SCHEMA:
                cursor.execute(statement)
            for table, rows in there:
                if rows:
                    marks = ", ".join("?" * len(rows[0]))
                    cursor.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", rows)

    def find(self, space: str, asked: Collection[Key]) -> dict[Key, int]:
        """The numbers of the vectors that were made already, of those asked for: one by one, or in one scan of many."""
        with self._datastore.transaction(commit=False) as cursor:
            number = cursor.execute("SELECT number FROM space WHERE id = ?", (space,)).fetchone()
            if number is None:
                return {}
            if len(asked) > SCAN_FROM:
                rows = cursor.execute(_MADE, number)
                return {(stream, made_of): made for stream, made_of, made in rows if (stream, made_of) in asked}
            one = f"{_MADE} AND stream = ? AND input = ?"
            return {row[:2]: row[2] for key in asked for row in cursor.execute(one, (*number, *key)).fetchall()}

    def vectors(self, numbers: Sequence[int]) -> dict[int, bytes]:
        """The vectors with these numbers, as the bytes of float16."""
        with self._datastore.transaction(commit=False) as cursor:
            return dict(rows_in(cursor, "SELECT number, value FROM vector WHERE number IN ({})", numbers))

    def tokens(self, numbers: Sequence[int]) -> dict[int, bytes]:
        """The codes of the tokens of these vectors, by number; of those that have them."""
        with self._datastore.transaction(commit=False) as cursor:
            return dict(rows_in(cursor, "SELECT number, codes FROM tokens WHERE number IN ({})", numbers))

    def keys(self, space: str | None = None) -> set[Key]:
        """What there is a vector of, in a space or in whatever one."""
        return kept(self._datastore, space)

    def spaces(self) -> dict[str, int]:
        """How many vectors there are of each space."""
        return spaces_of(self._datastore)

    def drop(self, space: str) -> int:
        """Throw the vectors of a space away, and give the room back, unless others write. Returns how many there were.

        Their numbers are not given out again: who still holds some finds nothing, and nothing of another space.
        """
        with self._datastore.transaction(commit=True) as cursor:
            gone = cursor.execute(_NUMBERS_IN, (space,)).fetchall()
            for table in ("vector", "tokens"):
                cursor.executemany(f"DELETE FROM {table} WHERE number = ?", gone)
            cursor.execute("DELETE FROM made WHERE space = (SELECT number FROM space WHERE id = ?)", (space,))
            cursor.execute("DELETE FROM space WHERE id = ?", (space,))
        with suppress(Busy):
            self._datastore.rows("VACUUM")
        return len(gone)

    def put(self, space: str, key: Key, made: Made) -> int:
        """Keep what was made of a document of a memory, in place of what there is. Returns its number in this file."""
        (number,) = self.put_many(space, [(key, made)])
        return number

    def put_many(self, space: str, rows: Iterable[tuple[Key, Made]]) -> list[int]:
        """As `put`, in one transaction."""
        with self._datastore.transaction(commit=True) as cursor:
            where = _number(cursor, "space", "id", space)
            return [_put(cursor, where, key, made) for key, made in rows]

    def check_pages(self) -> None:
        """Check the authentication code of every page. Raises ViewsDamaged."""
        check_pages(self._datastore)

    def check_values(self) -> None:
        """Check that each value can be a vector as long as others of its space, and codes fit. Raises ViewsDamaged."""
        lengths: dict[int, int] = {}
        for space, value, codes in self._datastore.rows(_VALUES):
            length = lengths.setdefault(space, len(value))
            if len(value) != length or not _can_be_vector(value) or codes % length:
                raise ViewsDamaged(f"{FILE} is damaged: it holds what is no vector. {ViewsDamaged.remedy}")

    def close(self) -> None:
        """Close the file."""
        self._datastore.close()


def _put(cursor: Any, space: int, key: Key, made: Made) -> int:
    cursor.execute("SELECT number FROM made WHERE space = ? AND stream = ? AND input = ?", (space, *key))
    before = cursor.fetchone()
    runtime = _number(cursor, "runtime", "name", made.runtime)
    cursor.execute("INSERT OR REPLACE INTO vector VALUES (?, ?, ?)", (before and before[0], made.vector, runtime))
    number = int(cursor.lastrowid)
    cursor.execute("INSERT OR REPLACE INTO made VALUES (?, ?, ?, ?)", (space, *key, number))
    if made.tokens:
        cursor.execute("INSERT OR REPLACE INTO tokens VALUES (?, ?)", (number, made.tokens))
    return number


def _number(cursor: Any, table: str, column: str, name: str) -> int:
    """The number of a name, given to it when it is first met."""
    cursor.execute(f"INSERT OR IGNORE INTO {table} ({column}) VALUES (?)", (name,))
    return int(cursor.execute(f"SELECT number FROM {table} WHERE {column} = ?", (name,)).fetchone()[0])


def _everything(installation: Installation) -> list[tuple[str, list[tuple[Any, ...]]]]:
    """The tables of a store that is only read, of one moment, where they can be read; else all is made again."""
    source = installation.path / FILE
    if not source.exists():
        return []
    assert installation.keys is not None
    datastore = Datastore(File(source, ViewsDamaged, installation.keys.views, read_only=True))
    try:
        with datastore.transaction(commit=False) as cursor:
            return [(table, cursor.execute(f"SELECT * FROM {table}").fetchall()) for table in _TABLES]
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


def kept(vectors: Datastore, space: str | None) -> set[Key]:
    """What there is a vector of, in a space or in whatever one."""
    return set(vectors.rows(_KEYS) if space is None else vectors.rows(_KEYS_IN, (space,)))


def spaces_of(vectors: Datastore) -> dict[str, int]:
    """How many vectors there are of each space."""
    return dict(vectors.rows(_SPACES))


def _can_be_vector(value: bytes) -> bool:
    if len(value) % 2:
        return False
    numbers = struct.unpack(f"<{len(value) // 2}e", value)
    return any(numbers) and all(map(math.isfinite, numbers))


def discard_damaged(installation: Installation) -> bool:
    """Delete vectors.db where it can't be read, whole: it is made again. Says whether it was."""
    try:
        cache = VectorCache(installation)
        try:
            cache.check_pages()
            cache.check_values()
        finally:
            cache.close()
    except ViewsDamaged:
        delete(installation.path / FILE)
        return True
    return False
