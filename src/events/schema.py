"""The tables of log.db: how a store is made, and what of a store is not so."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from . import claims, recorder, settings
from .claims import PLACES
from .driver import Scratch

SCHEMA = (
    *recorder.SCHEMA,
    *claims.SCHEMA,
    *settings.SCHEMA,
    "CREATE TABLE IF NOT EXISTS checkpoint (log INTEGER NOT NULL, size INTEGER NOT NULL, note BLOB NOT NULL, "
    "PRIMARY KEY (log, size)) STRICT, WITHOUT ROWID",
)
DEFINITIONS = "SELECT type, name, sql FROM sqlite_schema WHERE name NOT GLOB 'sqlite_*'"
"""What asks a database file for its tables, indexes and triggers."""
_OUTSIDE = "place < 0 OR place >= :end"
_STRAYS = (
    ("an entry of no log", f"SELECT place FROM entry WHERE {_OUTSIDE}"),
    ("a payload of no entry", "SELECT place FROM payload WHERE place NOT IN (SELECT place FROM entry)"),
    ("a data key of no log", f"SELECT place FROM data_key WHERE {_OUTSIDE}"),
    ("a checkpoint of no log", "SELECT log FROM checkpoint WHERE log < 0 OR log >= :logs"),
    (
        "an unknown setting",
        "SELECT name FROM setting WHERE name NOT IN ('format', 'store', 'claims') AND name NOT GLOB :views",
    ),
)


def differences(cursor: Any) -> list[str]:
    """The tables, indexes and triggers of log.db that are missing, changed, or of no store; each in words."""
    return [f"the {kind} {name} is {how}" for kind, name, how in _compared(cursor)]


def intruders(cursor: Any) -> list[str]:
    """Of the differences those that are there, and so can act when something is appended."""
    return [f"the {kind} {name} is {how}" for kind, name, how in _compared(cursor) if how != "missing"]


def _compared(cursor: Any) -> Iterator[tuple[str, str, str]]:
    found, new = {(kind, name): sql for kind, name, sql in cursor.execute(DEFINITIONS).fetchall()}, made()
    for key in sorted(found.keys() | new.keys()):
        if found.get(key) != new.get(key):
            yield *key, "missing" if key not in found else "unknown" if key not in new else "changed"


def strays(cursor: Any, logs: int) -> list[str]:
    """What is in log.db and belongs to none of its logs: the first of each sort, in words."""
    bounds = {"end": logs * PLACES, "logs": logs, "views": "views-????????"}
    rows = ((what, cursor.execute(f"{statement} LIMIT 1", bounds).fetchone()) for what, statement in _STRAYS)
    return [f"it holds {what} ({row[0]!r})" for what, row in rows if row]


@cache
def made() -> dict[tuple[str, str], str]:
    """The tables, indexes and triggers of a new log.db, by sort and name: how each is defined."""
    scratch = Scratch()
    try:
        for statement in SCHEMA:
            scratch.execute(statement)
        _, rows = scratch.select(DEFINITIONS, (), 1.0, 1000)
    finally:
        scratch.close()
    return {(kind, name): sql for kind, name, sql in rows}
