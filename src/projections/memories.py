"""The `memories` view: one row for each memory, without its text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..events.driver import rows_in
from ..events.kinds import Stored
from .condition import Condition
from .cues import cues_of
from .record import Record, Status
from .view import Page, digest_of

_COLUMNS = (
    "number", "stream", "namespace", "status", "kind", "source", "actor", "author", "subject", "key", "tags",
    "importance", "confidence", "thread", "place", "occurred_at", "recorded_at", "valid_from", "expires_at",
    "label", "trust", "revision", "position", "text_position", "reinforced", "superseded_by", "turn", "revised_at",
    "protected", "pinned", "metadata", "words", "cues", "length",
)  # fmt: skip
UNPLACED = 2**53
_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True).encode
WITHIN = "memories.namespace IN (SELECT value FROM json_each(?))"
"""The row is of one of the namespaces, given as JSON: any number of them."""
REVISION = _COLUMNS.index("revision")
_ALL = ", ".join(_COLUMNS)


class Memories:
    """The rows that recall filters by, and the positions that lead to each memory's events."""

    name = "memories"
    version = 5
    schema = (
        "CREATE TABLE memories (number INTEGER PRIMARY KEY, stream BLOB NOT NULL UNIQUE, namespace TEXT NOT NULL, "
        "status TEXT NOT NULL, kind TEXT NOT NULL, source TEXT NOT NULL, actor TEXT NOT NULL, author TEXT, "
        "subject TEXT, key TEXT, tags TEXT NOT NULL, importance REAL NOT NULL, confidence REAL, thread TEXT, "
        "place INTEGER, occurred_at INTEGER, recorded_at INTEGER NOT NULL, valid_from INTEGER, expires_at INTEGER, "
        "label TEXT, trust TEXT, revision INTEGER NOT NULL, position INTEGER NOT NULL, "
        "text_position INTEGER NOT NULL, reinforced INTEGER NOT NULL, superseded_by BLOB, turn INTEGER, "
        "revised_at INTEGER, protected INTEGER NOT NULL, pinned INTEGER NOT NULL, metadata TEXT NOT NULL, "
        "words INTEGER NOT NULL, cues INTEGER NOT NULL, length INTEGER NOT NULL) STRICT",
        "CREATE INDEX memories_namespace ON memories (namespace, status)",
        "CREATE INDEX memories_pinned ON memories (namespace) WHERE pinned",
    )

    def apply(self, cursor: Any, page: Page) -> None:
        """Write the row of each changed memory anew."""
        cursor.executemany(
            f"INSERT OR REPLACE INTO memories ({_ALL}) VALUES ({', '.join('?' * len(_COLUMNS))})",
            [row_of(change.number, change.after) for change in page.changes],
        )

    def clear(self, cursor: Any) -> None:
        """Remove every row."""
        cursor.execute("DELETE FROM memories")

    def digest(self, cursor: Any) -> str:
        """A hash of all rows."""
        return digest_of(cursor.execute(f"SELECT {_ALL} FROM memories ORDER BY number"))


def row_of(number: int, record: Record) -> tuple[Any, ...]:
    """The row of a memory, as the events say it must be."""
    s = record.stored
    return (
        number, record.stream, s.namespace, record.status, s.kind, s.source, s.actor, s.author, s.subject, s.key,
        _encode(s.tags) if s.tags else "[]", s.importance, s.confidence, s.thread, s.place, s.occurred_at,
        s.recorded_at, s.valid_from, s.expires_at, s.label, s.trust, record.revision, record.position,
        record.text_position, record.reinforced, record.superseded_by, _turn(number, s), record.revised_at,
        int(record.protected), int(record.pinned), flat(s.metadata) if s.metadata else "{}", *cues_of(record),
    )  # fmt: skip


def flat(metadata: Mapping[str, Any]) -> str:
    """What can be filtered on: by name, `a.b` for what is inside another, every text, number and flag there is."""
    found: dict[str, list[Any]] = {}

    def take(name: str, value: Any) -> None:
        if isinstance(value, Mapping):
            for inner, each in value.items():
                take(f"{name}.{inner}", each)
        elif isinstance(value, list | tuple):
            for each in value:
                take(name, each)
        else:
            found.setdefault(name, []).append(value)

    for name, value in metadata.items():
        take(name, value)
    return _encode(found)


def _turn(number: int, stored: Stored) -> int | None:
    """What orders the turns of a thread: the place; those without one come after those with one, in log order."""
    if stored.thread is None:
        return None
    return UNPLACED + number if stored.place is None else stored.place


def pinned(cursor: Any, namespaces: Sequence[str]) -> list[bytes]:
    """The current memories of these namespaces that are pinned, oldest first."""
    rows = cursor.execute(
        f"SELECT stream FROM memories WHERE {WITHIN} AND pinned AND status = 'current' ORDER BY number",
        (json.dumps(namespaces),),
    )
    return [stream for (stream,) in rows]


def current_in(cursor: Any, namespaces: Sequence[str]) -> dict[bytes, int]:
    """The current memories of these namespaces, in order of numbers, and the revision each row was folded from."""
    rows = cursor.execute(
        f"SELECT stream, revision FROM memories WHERE {WITHIN} AND status = 'current' ORDER BY number",
        (json.dumps(namespaces),),
    )
    return dict(rows.fetchall())


def newest_current(cursor: Any, limit: int) -> list[bytes]:
    """The current memories that were stored last, newest first."""
    rows = cursor.execute("SELECT stream FROM memories WHERE status = 'current' ORDER BY number DESC LIMIT ?", (limit,))
    return [stream for (stream,) in rows]


def number_and_revision(cursor: Any, stream: bytes) -> tuple[int, int] | None:
    """A memory's number and the revision its row was folded from, or None."""
    row = cursor.execute("SELECT number, revision FROM memories WHERE stream = ?", (stream,)).fetchone()
    return None if row is None else (row[0], row[1])


def numbers_and_revisions(cursor: Any, streams: Sequence[bytes]) -> dict[bytes, tuple[int, int]]:
    """As `number_and_revision`, of those of many streams that have a row."""
    marks = ", ".join("?" * len(streams))
    rows = cursor.execute(f"SELECT stream, number, revision FROM memories WHERE stream IN ({marks})", tuple(streams))
    return {stream: (number, revision) for stream, number, revision in rows}


def stream_and_revision(cursor: Any, number: int) -> tuple[bytes, int]:
    """A memory's stream and the revision its row was folded from, by its number."""
    stream, revision = cursor.execute("SELECT stream, revision FROM memories WHERE number = ?", (number,)).fetchone()
    return stream, revision


def next_number(cursor: Any) -> int:
    """The number for the next new memory; numbers follow the order of the log."""
    return int(cursor.execute("SELECT coalesce(max(number), 0) + 1 FROM memories").fetchone()[0])


def recallable(cursor: Any, namespaces: Sequence[str], condition: Condition, status: Status = "current") -> list[int]:
    """The numbers of the memories of these namespaces that have a status and fulfil a condition, ascending."""
    rows = cursor.execute(
        f"SELECT number FROM memories WHERE {WITHIN} AND status = ? AND {condition.sql} ORDER BY number",
        (json.dumps(namespaces), status, *condition.parameters),
    )
    return [number for (number,) in rows]


def count(cursor: Any, namespaces: Sequence[str], condition: Condition) -> int:
    """How many memories of these namespaces fulfil a condition, whatever their status."""
    asked = (json.dumps(namespaces), *condition.parameters)
    return int(cursor.execute(f"SELECT count(*) FROM memories WHERE {WITHIN} AND {condition.sql}", asked).fetchone()[0])


def sorted_rows(
    cursor: Any, namespaces: Sequence[str], condition: Condition, order: str, limit: int
) -> list[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """The first rows in this order that fulfil a condition, each with the values that it is sorted by."""
    rows = cursor.execute(
        f"SELECT {order}, {_ALL} FROM memories WHERE {WITHIN} AND {condition.sql} ORDER BY {order} LIMIT ?",
        (json.dumps(namespaces), *condition.parameters, limit),
    ).fetchall()
    return [(row[: -len(_COLUMNS)], row[-len(_COLUMNS) :]) for row in rows]


def rows_of(cursor: Any, numbers: Sequence[int]) -> list[tuple[Any, ...]]:
    """The full rows of these numbers, in the order given."""
    rows = {row[0]: row for row in rows_in(cursor, f"SELECT {_ALL} FROM memories WHERE number IN ({{}})", numbers)}
    return [rows[number] for number in numbers]


def streams_like(cursor: Any, low: bytes, high: bytes) -> list[bytes]:
    """The ids of memories from `low` to `high`, at most three: enough to know whether a prefix is unambiguous."""
    rows = cursor.execute("SELECT stream FROM memories WHERE stream BETWEEN ? AND ? LIMIT 3", (low, high))
    return [stream for (stream,) in rows]


def counts(cursor: Any) -> dict[str, int]:
    """How many memories there are, by status."""
    return dict(cursor.execute("SELECT status, count(*) FROM memories GROUP BY status ORDER BY status").fetchall())


def by_namespace(cursor: Any) -> list[tuple[str, int, int, int]]:
    """Each namespace as it was named in storing: memories, current ones, and when one was last stored or revised."""
    return list(
        cursor.execute(
            "SELECT namespace, count(*), sum(status = 'current'), max(coalesce(revised_at, recorded_at)) "
            "FROM memories GROUP BY namespace ORDER BY namespace"
        )
    )
