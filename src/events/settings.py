"""The few facts log.db keeps about itself, each with a checksum: format, store, the views in force."""

from __future__ import annotations

import hashlib
from typing import Any

from ..errors import LogDamaged
from .driver import Datastore

SCHEMA = ("CREATE TABLE IF NOT EXISTS setting (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID",)
CHECKSUM_BYTES = 16
_ONE = "SELECT value FROM setting WHERE name = ?"


def read_setting(datastore: Datastore, name: str) -> bytes | None:
    """The value under a name, or None. Raises LogDamaged where it is not what was written."""
    return _checked(name, datastore.rows(_ONE, (name,)))


def read_setting_within(cursor: Any, name: str) -> bytes | None:
    """As read_setting, inside a transaction."""
    return _checked(name, cursor.execute(_ONE, (name,)).fetchall())


def _checked(name: str, rows: list[tuple[Any, ...]]) -> bytes | None:
    if not rows:
        return None
    value, checksum = rows[0][0][:-CHECKSUM_BYTES], rows[0][0][-CHECKSUM_BYTES:]
    if checksum != _checksum(name, value):
        raise LogDamaged(f"The setting {name!r} of log.db is not what was written. {LogDamaged.remedy}")
    return bytes(value)


def write_setting(cursor: Any, name: str, value: bytes) -> None:
    """Write a value under a name."""
    cursor.execute("INSERT OR REPLACE INTO setting VALUES (?, ?)", (name, value + _checksum(name, value)))


def _checksum(name: str, value: bytes) -> bytes:
    return hashlib.blake2b(name.encode() + b"\0" + value, digest_size=CHECKSUM_BYTES).digest()
