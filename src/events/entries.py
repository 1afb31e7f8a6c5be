"""The entries of one log as they stand in log.db: read back, and checked on their own and against the tree."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import LogBehindMark, LogDamaged
from .canonical import NotCanonical
from .claims import PLACES
from .clock import milliseconds
from .driver import rows_in
from .envelope import Header, is_signed_by, payload_hash, read_entry
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


class Entry(NamedTuple):
    """An entry that was read: its header and leaf hash, the bytes that were signed and the payload beside them."""

    header: Header
    leaf: bytes
    data: bytes
    payload: bytes


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
        for _, tip in self.walk(c, tip, size):
            pass
        return tip

    def walk(self, c: Any, tip: Tip, stop: int, *, signed: bool = True) -> Iterator[tuple[Entry, Tip]]:
        """Each entry from the tip to `stop`, checked on its own and against the tree, with the tip after it.

        `signed=False` leaves the signatures out: root, hashes, columns and completeness are checked.
        """
        while tip.size < stop:
            for entry in self._page(c, tip.size, min(PAGE, stop - tip.size), signed=signed):
                self._check_against(tip, entry)
                tip = Tip(tip.frontier.append(entry.leaf), entry.header.time)
                yield entry, tip

    def refuse_bad(self, c: Any, stop: int) -> None:
        """Raise LogDamaged at the first position before `stop` that does not verify, its signature included."""
        for _ in self.walk(c, START, stop):
            pass

    def _page(self, c: Any, first: int, limit: int, *, signed: bool) -> list[Entry]:
        """The entries from `first` on, up to one that is bad in itself; raises where that is the first.

        One loop reads and one checks signatures: in turns, each would push the other out of the processor's cache.
        """
        page: list[Entry] = []
        try:
            for position, row in enumerate(self._rows(c, first, limit), first):
                page.append(self._read(row, position))
            for count, entry in enumerate(page if signed else ()):
                if not self._is_signed(entry):
                    page = page[:count]
                    raise self._unsigned(entry)
        except LogDamaged:
            if not page:
                raise
        if not page:
            raise self.damaged(first, "the entry is missing")
        return page

    def _check_against(self, tip: Tip, entry: Entry) -> None:
        header = entry.header
        if header.root != tip.frontier.root():
            if not self._is_signed(entry):
                raise self._unsigned(entry)
            if tip.size:  # every root up to here was right, so it is the entry before this one that is not
                raise self.damaged(tip.size - 1, "it is not the entry that later ones were signed over")
            raise self.damaged(0, "its root is not that of an empty log")
        if header.time <= tip.time:
            raise self.damaged(header.position, f"its clock ({milliseconds(header.time)} ms) runs backwards")

    def _is_signed(self, entry: Entry) -> bool:
        if entry.leaf in self._signatures:
            return True
        if entry.header.key != self._key_id or not is_signed_by(entry.data, self.identity.writer):
            return False
        self._signatures[entry.leaf] = None
        if len(self._signatures) > SIGNATURES_REMEMBERED:
            self._signatures.popitem(last=False)
        return True

    def _unsigned(self, entry: Entry) -> LogDamaged:
        return self.damaged(entry.header.position, "it is not signed by the key in force")

    def stream_events(
        self,
        c: Any,
        stream: bytes,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> list[Entry]:
        """The entries of one stream in order of revision, each with its signature, hashes and columns checked."""
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

    def events_of_each(self, c: Any, streams: Sequence[bytes]) -> dict[bytes, list[Entry]]:
        """As `stream_events`, of each of some streams, whole."""
        found: dict[bytes, list[Entry]] = {stream: [] for stream in streams}
        asked = _COLUMNS + "WHERE log = ? AND place < ? AND stream IN ({}) ORDER BY stream, revision"
        for row in rows_in(c, asked, streams, self.identity.number, self._stop):
            entry = self._read_signed(row)  # which tells where an index leads to another stream
            found[entry.header.stream].append(entry)
        return found

    def earlier(self, c: Any, revisions: Mapping[bytes, int]) -> dict[bytes, list[Entry]]:
        """The entries of streams, each up to a revision that the tip has passed: signatures were checked then."""
        found: dict[bytes, list[Entry]] = {stream: [] for stream in revisions}
        asked = _COLUMNS + "WHERE log = ? AND place < ? AND stream IN ({}) ORDER BY stream, revision"
        for row in rows_in(c, asked, list(revisions), self.identity.number, self._stop):
            if row[4] <= revisions[row[3]]:
                found[row[3]].append(self._read(row, row[0] % PLACES))
        return found

    def between(self, c: Any, first: int, stop: int) -> list[Entry]:
        """The entries from `first` to before `stop`, which the tip must have passed: signatures were checked then."""
        rows = self._rows(c, first, max(0, stop - first))
        return [self._read(row, position) for position, row in enumerate(rows, first)]

    def at(self, c: Any, position: int) -> Entry | None:
        """The entry at a position, its signature, hashes and columns checked; None where the log ends before it."""
        for row in self._rows(c, position, 1):
            return self._read_signed(row) if row[0] % PLACES == position else None
        return None

    def _rows(self, c: Any, position: int, limit: int) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = c.execute(
            _COLUMNS + "WHERE place >= ? AND place < ? ORDER BY place LIMIT ?",
            (self._base + position, self._stop, limit),
        ).fetchall()
        return rows

    def _read_signed(self, row: tuple[Any, ...]) -> Entry:
        entry = self._read(row, row[0] % PLACES)
        if not self._is_signed(entry):
            raise self._unsigned(entry)
        return entry

    def _read(self, row: tuple[Any, ...], position: int) -> Entry:
        place, log, event_id, stream, revision, data, payload = row
        if place != self.identity.number * PLACES + position:
            raise self.damaged(position, "the entry is missing")
        if type(payload) is not bytes:
            raise self.damaged(position, "its payload is gone without an erasure")
        try:
            header = read_entry(data)
        except (NotCanonical, TypeError) as error:
            raise self.damaged(position, f"it is not an entry: {error}") from error
        if header.position != position or header.origin != self.identity.origin:
            raise self.damaged(position, "it belongs to another place or log")
        if (self.identity.number, header.id, header.stream, header.revision) != (log, event_id, stream, revision):
            raise self.damaged(position, "its index columns are not those of its header")
        if header.payload_hash != payload_hash(payload) or header.payload_length != len(payload):
            raise self.damaged(position, "its payload is not the one that was signed")
        return Entry(header, leaf_hash(data), data, payload)

    def damaged(self, position: int, what: str) -> LogDamaged:
        """The error for a position that does not verify."""
        return LogDamaged(
            f"{self.identity.name} log, position {position}: {what}. {LogDamaged.remedy}",
            log=self.identity.name,
            position=position,
        )
