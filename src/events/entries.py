"""The entries of one log as they stand in log.db: read back, and checked on their own and against the tree."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, NamedTuple
from uuid import UUID

from ..errors import LogBehindMark, LogDamaged
from .canonical import NotCanonical
from .claims import PLACES
from .clock import milliseconds
from .envelope import is_signed_by, payload_hash, read_entry
from .mapper import EntryRead
from .merkle import Frontier, leaf_hash
from .signing import key_id

PAGE = 1000
SIGNATURES_REMEMBERED = 65536

_COLUMNS = "SELECT place, log, id, stream, revision, entry, body FROM entry LEFT JOIN payload USING (place) "


class Identity(NamedTuple):
    """Which log this is, and by whom it may be signed."""

    name: str
    number: int
    origin: bytes
    writer: bytes


class Tip(NamedTuple):
    """Up to where this process has verified the log: the tree's frontier, and the clock of the last entry."""

    frontier: Frontier
    time: int

    @property
    def size(self) -> int:
        """How many entries are verified."""
        return self.frontier.size


START = Tip(Frontier(), 0)


class EntryReader:
    """Reads entries through a cursor: each with its place, columns, hashes and, where said, its signature checked."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self._key_id = key_id(identity.writer)
        self._base = identity.number * PLACES
        self._signatures: OrderedDict[bytes, None] = OrderedDict()
        self.end_at(PLACES)

    def end_at(self, position: int) -> None:
        """Take the log for one that ends before this position."""
        self._stop = self._base + position
        self._size_query = ("SELECT max(place) FROM entry WHERE place >= ? AND place < ?", (self._base, self._stop))

    def size(self, c: Any) -> int:
        """How many entries the log has."""
        return self._size(c.execute(*self._size_query).fetchall())

    def _size(self, rows: list[tuple[Any, ...]]) -> int:
        last = rows[0][0]
        return 0 if last is None else int(last) % PLACES + 1

    def advance(self, c: Any, tip: Tip) -> Tip:
        """Verify what was appended after a tip: signature, key, root, payload hash. Returns the new tip.

        Raises LogDamaged at the first bad position, LogBehindMark where entries that were there are gone.
        """
        size = self.size(c)
        if size < tip.size:
            raise LogBehindMark(
                f"The {self.identity.name} log has {size} entries and had {tip.size}: it was cut or rolled back. "
                f"{LogDamaged.remedy}",
                log=self.identity.name,
                position=size,
            )
        for read in self.walk(c, tip, size):
            tip = read[1]
        return tip

    def walk(self, c: Any, tip: Tip, stop: int, *, signed: bool = True) -> Iterator[tuple[EntryRead, Tip]]:
        """Each entry from the tip to `stop`, checked on its own and against the tree, with the tip after it.

        `signed=False` leaves the signatures out: root, hashes, columns and completeness are checked.
        """
        while tip.size < stop:
            before = tip.size
            for row in self._rows(c, tip.size, min(PAGE, stop - tip.size)):
                read, entry = self._read(row, tip.size)
                if signed:
                    self._check_signature(read, entry)
                self._check_against(tip, read, entry)
                tip = Tip(tip.frontier.append(read.leaf), read.header.time)
                yield read, tip
            if tip.size == before:
                raise self.damaged(before, "the entry is missing")

    def _check_against(self, tip: Tip, read: EntryRead, entry: bytes) -> None:
        header = read.header
        if header.root != tip.frontier.root():
            self._check_signature(read, entry)
            if tip.size:  # every root up to here was right, so it is the entry before this one that is not
                raise self.damaged(tip.size - 1, "it is not the entry that later ones were signed over")
            raise self.damaged(0, "its root is not that of an empty log")
        if header.time <= tip.time:
            raise self.damaged(header.position, f"its clock ({milliseconds(header.time)} ms) runs backwards")

    def _check_signature(self, read: EntryRead, entry: bytes) -> None:
        if read.leaf in self._signatures:
            return
        if read.header.key != self._key_id or not is_signed_by(entry, self.identity.writer):
            raise self.damaged(read.header.position, "it is not signed by the key in force")
        self._signatures[read.leaf] = None
        if len(self._signatures) > SIGNATURES_REMEMBERED:
            self._signatures.popitem(last=False)

    def stream_events(
        self,
        c: Any,
        stream: bytes,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> list[EntryRead]:
        """As select_events, inside a transaction."""
        rows = c.execute(
            _COLUMNS + "WHERE log = ? AND stream = ? AND revision > ? AND revision <= ? AND place < ? "
            f"ORDER BY revision {'DESC' if desc else 'ASC'} LIMIT ?",
            (
                self.identity.number,
                stream,
                -1 if gt is None else gt,
                PLACES if lte is None else lte,
                self._stop,
                -1 if limit is None else limit,
            ),
        ).fetchall()
        return [self._read_signed(row) for row in rows]

    def at(self, c: Any, position: int) -> EntryRead | None:
        """The entry at a position, its signature, hashes and columns checked; None where the log ends before it."""
        for row in self._rows(c, position, 1):
            return self._read_signed(row) if row[0] % PLACES == position else None
        return None

    def _rows(self, c: Any, position: int, limit: int) -> list[tuple[Any, ...]]:
        return list(
            c.execute(
                _COLUMNS + "WHERE place >= ? AND place < ? ORDER BY place LIMIT ?",
                (self._base + position, self._stop, limit),
            ).fetchall()
        )

    def _read_signed(self, row: tuple[Any, ...]) -> EntryRead:
        read, entry = self._read(row, row[0] % PLACES)
        self._check_signature(read, entry)
        return read

    def _read(self, row: tuple[Any, ...], position: int) -> tuple[EntryRead, bytes]:
        place, log, event_id, stream, revision, entry, payload = row
        if place != self.identity.number * PLACES + position:
            raise self.damaged(position, "the entry is missing")
        if type(payload) is not bytes:
            raise self.damaged(position, "its payload is gone without an erasure")
        try:
            header = read_entry(entry)
        except (NotCanonical, TypeError) as error:
            raise self.damaged(position, f"it is not an entry: {error}") from error
        if (header.position, header.origin) != (position, self.identity.origin):
            raise self.damaged(position, "it belongs to another place or log")
        columns = (self.identity.number, header.id, header.stream, header.revision)
        if columns != (log, event_id, stream, revision):
            raise self.damaged(position, "its index columns are not those of its header")
        if header.payload_hash != payload_hash(payload) or header.payload_length != len(payload):
            raise self.damaged(position, "its payload is not the one that was signed")
        return EntryRead(UUID(bytes=stream), revision, header.kind, payload, position, header, leaf_hash(entry)), entry

    def damaged(self, position: int, what: str) -> LogDamaged:
        """The error for a position that does not verify."""
        return LogDamaged(
            f"{self.identity.name} log, position {position}: {what}. {LogDamaged.remedy}",
            log=self.identity.name,
            position=position,
        )
