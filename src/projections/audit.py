"""The `audit` view: who did what when, flat, over both logs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..events.kinds import Imported, NamespaceRenamed, Recalled, Stored
from ..events.mapper import LoggedEvent
from .condition import Condition
from .view import Page, digest_of

_ALL = "log, position, id, kind, stream, revision, actor, at, namespace"


class AuditRow(NamedTuple):
    """One event as a person reads it. `at` is wall-clock microseconds; `namespace` is empty where it names none."""

    log: str
    position: int
    id: bytes
    kind: str
    stream: bytes
    revision: int
    actor: str
    at: int
    namespace: str


class Audit:
    """One row for each event."""

    name = "audit"
    version = 2
    schema = (
        "CREATE TABLE audit (log TEXT NOT NULL, position INTEGER NOT NULL, id BLOB NOT NULL, kind TEXT NOT NULL, "
        "stream BLOB NOT NULL, revision INTEGER NOT NULL, actor TEXT NOT NULL, at INTEGER NOT NULL, "
        "namespace TEXT NOT NULL, PRIMARY KEY (log, position)) STRICT, WITHOUT ROWID",
        "CREATE INDEX audit_at ON audit (at)",
    )

    def apply(self, cursor: Any, page: Page) -> None:
        """Add the rows of a page."""
        rows = [_row(page.log, logged) for logged in page.events]
        cursor.executemany("INSERT OR REPLACE INTO audit VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def clear(self, cursor: Any) -> None:
        """Remove every row."""
        cursor.execute("DELETE FROM audit")

    def digest(self, cursor: Any) -> str:
        """A hash of all rows."""
        return digest_of(cursor.execute(f"SELECT {_ALL} FROM audit ORDER BY log, position"))


def newest(cursor: Any, condition: Condition) -> Iterator[AuditRow]:
    """The events of both logs that fulfil a condition, newest first."""
    rows = cursor.execute(
        f"SELECT {_ALL} FROM audit WHERE {condition.sql} ORDER BY at DESC, log, position DESC", condition.parameters
    )
    return (AuditRow(*row) for row in rows)


def after(cursor: Any, condition: Condition, positions: Mapping[str, int]) -> list[AuditRow]:
    """The events that fulfil a condition and come after these positions of the logs, oldest first."""
    later = " OR ".join("(log = ? AND position > ?)" for _ in positions)
    rows = cursor.execute(
        f"SELECT {_ALL} FROM audit WHERE {condition.sql} AND ({later}) ORDER BY at, log DESC, position",
        (*condition.parameters, *(value for each in positions.items() for value in each)),
    )
    return [AuditRow(*row) for row in rows]


def ends(cursor: Any) -> dict[str, int]:
    """The position of the last event of each log."""
    return dict(cursor.execute("SELECT log, max(position) FROM audit GROUP BY log").fetchall())


def latest(cursor: Any, log: str, kinds: Sequence[str]) -> Iterator[int]:
    """The positions of a log's events of these kinds, the last first."""
    rows = cursor.execute(
        f"SELECT position FROM audit WHERE log = ? AND kind IN ({', '.join('?' * len(kinds))}) ORDER BY position DESC",
        (log, *kinds),
    )
    return (position for (position,) in rows)


def last_recorded(cursor: Any, at: int) -> int | None:
    """The last position of the memory log whose event was recorded at a time (microseconds) or before."""
    row = cursor.execute(
        "SELECT position FROM audit WHERE log = 'memory' AND at <= ? ORDER BY position DESC LIMIT 1", (at,)
    ).fetchone()
    return None if row is None else int(row[0])


def _row(log: str, logged: LoggedEvent) -> AuditRow:
    header, event = logged.header, logged.event
    namespace = event.namespace if isinstance(event, Stored | Imported) else ""
    if isinstance(event, Recalled):
        namespace = " ".join(event.namespaces)
    if isinstance(event, NamespaceRenamed):
        namespace = f"{event.old} {event.new}"
    return AuditRow(
        log, header.position, header.id, header.kind, header.stream, header.revision, event.actor, event.recorded_at,
        namespace,
    )  # fmt: skip
