"""The `access` view: which memories were recalled or read, how often, when and by whom."""

from __future__ import annotations

from typing import Any

from ..events.kinds import Read, Recalled, Rendered
from ..events.mapper import LoggedEvent
from .view import Page, digest_of

_ALL = "memory, position, rank, receipt, verb, actor, at"


class Access:
    """One row for each memory that an answer held, with the receipt of that answer."""

    name = "access"
    version = 2
    schema = (
        "CREATE TABLE access (memory BLOB NOT NULL, position INTEGER NOT NULL, rank INTEGER NOT NULL, "
        "receipt BLOB NOT NULL, verb TEXT NOT NULL, actor TEXT NOT NULL, at INTEGER NOT NULL, "
        "PRIMARY KEY (memory, position, rank)) STRICT, WITHOUT ROWID",
    )

    def apply(self, cursor: Any, page: Page) -> None:
        """Add the rows of the recalls and reads of a page."""
        rows = [row for logged in page.events for row in _rows(logged)]
        cursor.executemany("INSERT OR REPLACE INTO access VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def clear(self, cursor: Any) -> None:
        """Remove every row."""
        cursor.execute("DELETE FROM access")

    def digest(self, cursor: Any) -> str:
        """A hash of all rows."""
        return digest_of(cursor.execute(f"SELECT {_ALL} FROM access ORDER BY memory, position, rank"))


def use_of(cursor: Any, memory: bytes) -> tuple[int, int | None]:
    """How often a memory was recalled, and when last (microseconds)."""
    row = cursor.execute(
        "SELECT count(*), max(at) FROM access WHERE memory = ? AND verb = 'recall'", (memory,)
    ).fetchone()
    return row[0], row[1]


def last_by_namespace(cursor: Any) -> list[tuple[str, int]]:
    """Each namespace as it was named in storing, and when a memory of it was last handed out (microseconds)."""
    return list(
        cursor.execute("SELECT namespace, max(at) FROM access JOIN memories ON stream = memory GROUP BY namespace")
    )


def _rows(logged: LoggedEvent) -> list[tuple[Any, ...]]:
    event, header = logged.event, logged.header
    tail = (event.actor, event.recorded_at)
    if isinstance(event, Recalled | Rendered):
        verb = event.verb if isinstance(event, Recalled) else "context"
        return [(memory, header.position, n, header.id, verb, *tail) for n, memory in enumerate(event.memories, 1)]
    if isinstance(event, Read):
        return [(event.memory, header.position, 1, header.id, event.verb, *tail)]
    return []
