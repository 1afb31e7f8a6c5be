"""Where things lie in the log.db of a closed store: entries, payloads and data keys, and the rows of small tables."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from tallystick.errors import LogDamaged
from tallystick.events.claims import PLACES
from tallystick.events.driver import Datastore, File
from tallystick.events.installation import LOGS

PAGE = 4096
_FREE_PAGES = 36  # where the file's header counts unused pages, https://www.sqlite.org/fileformat2.html
_TABLE_LEAF, _INDEX_LEAF, _INDEX_INTERIOR = 0x0D, 0x0A, 0x02
_POINTERS = {_TABLE_LEAF: 8, _INDEX_LEAF: 8, _INDEX_INTERIOR: 12}
# Payloads up to this many bytes lie whole on one page, https://www.sqlite.org/fileformat2.html section 1.6
_LARGEST_LOCAL = {_TABLE_LEAF: 4061, _INDEX_LEAF: 1002, _INDEX_INTERIOR: 1002}


class Structure(NamedTuple):
    """Bytes of log.db that hold one thing: its sort (`entry`, `payload`, `data key`) and its name."""

    start: int
    end: int
    sort: str
    name: str


def structures(file: Path) -> list[Structure]:
    """Every entry, payload and data key of a closed log.db, by place. Each is found exactly once."""
    content = file.read_bytes()
    if content[_FREE_PAGES : _FREE_PAGES + 4] != bytes(4):
        raise AssertionError("log.db has unused pages: what lies on them can't be told from what is in use")
    used = list(cells(content))
    return sorted(_located(content, used, *blob) for blob in _blobs(file))


def cells(content: bytes) -> Iterator[tuple[int, int]]:
    """The first byte and the end of every row of a database file: what lies between them is not in use."""
    for page in range(0, len(content), PAGE):
        yield from _cells(content, page)


def small_rows(file: Path) -> list[tuple[int, int]]:
    """The first byte and the end of every claim, setting and checkpoint of a closed log.db; each table has one page."""
    content = file.read_bytes()
    with _copied(file) as cursor:
        found = cursor.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name IN ('claim', 'setting', 'checkpoint')"
        ).fetchall()
    return [cell for (page,) in found for cell in _cells(content, (page - 1) * PAGE)]


@contextmanager
def _copied(file: Path) -> Iterator[Any]:
    """A cursor on a copy of a database file, so that the file itself is never open in two ways."""
    with TemporaryDirectory() as folder:
        datastore = Datastore(File(Path(shutil.copy(file, folder)), LogDamaged))
        try:
            with datastore.transaction(commit=False) as cursor:
                yield cursor
        finally:
            datastore.close()


def _blobs(file: Path) -> Iterator[tuple[str, str, bytes]]:
    with _copied(file) as cursor:
        for sort, column in (("entry", "entry"), ("payload", "body")):
            for place, blob in cursor.execute(f"SELECT place, {column} FROM {sort}"):
                yield sort, f"{sort} of the {LOGS[place // PLACES]} log, position {place % PLACES}", blob
        for place, blob in cursor.execute("SELECT place, wrapped FROM data_key"):
            yield "data key", f"data key of the {LOGS[place // PLACES]} log, position {place % PLACES}", blob


def _located(content: bytes, used: list[tuple[int, int]], sort: str, name: str, blob: bytes) -> Structure:
    """Where a blob lies: pages keep stale copies in their free space, and one copy lies in a cell."""
    found = [at for at in _occurrences(content, blob) if any(c <= at and at + len(blob) <= end for c, end in used)]
    if len(found) != 1:
        raise AssertionError(f"the {name} is in use {len(found)} times in log.db")
    return Structure(found[0], found[0] + len(blob), sort, name)


def _occurrences(content: bytes, blob: bytes) -> Iterator[int]:
    at = content.find(blob)
    while at >= 0:
        yield at
        at = content.find(blob, at + 1)


def _cells(content: bytes, page: int) -> Iterator[tuple[int, int]]:
    """The cells with a payload on the b-tree page that begins at a byte of the file: first byte and end of each."""
    header = page + (100 if page == 0 else 0)
    kind = content[header]
    for n in range(_number(content, header + 3) if kind in _POINTERS else 0):
        start = page + _number(content, header + _POINTERS[kind] + 2 * n)
        size, at = _varint(content, start + (4 if kind == _INDEX_INTERIOR else 0))
        if kind == _TABLE_LEAF:
            _, at = _varint(content, at)
        if size <= _LARGEST_LOCAL[kind]:
            yield start, at + size


def _number(content: bytes, at: int) -> int:
    return int.from_bytes(content[at : at + 2], "big")


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """The number of up to four bytes that begins here, and where it ends."""
    value = 0
    for n in range(at, at + 9):
        value = value << 7 | content[n] & 0x7F
        if content[n] < 0x80:
            break
    return value, n + 1
