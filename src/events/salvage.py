"""What can still be read of a log that is damaged or behind its mark: every event that verifies, and what is lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from eventsourcing.persistence import PersistenceError

from ..errors import LogDamaged, StreamErased
from .canonical import NotCanonical
from .claims import PLACES
from .driver import Datastore
from .entries import Entry
from .envelope import Header, is_signed_by, payload_hash, read_entry
from .keys import Keys
from .mapper import EventMapper, LoggedEvent
from .mark import Marked
from .merkle import leaf_hash
from .vault import Vault

_UNREADABLE = (LogDamaged, PersistenceError, NotCanonical, TypeError, StreamErased)


class Lost(NamedTuple):
    """A position that does not come over, and whose event it was, where that can still be told."""

    position: int
    stream: bytes | None


class Remains(NamedTuple):
    """What is left of a log: the newest state of it that is known, which positions are lost, which streams come over.

    `end` is the first position after the last one that holds anything. `revisions` are those that come over, by stream.
    `marked` says whether the mark tells how far the log went.
    """

    origin: bytes
    size: int
    root: bytes
    end: int
    lost: tuple[Lost, ...]
    revisions: Mapping[bytes, tuple[int, ...]]
    marked: bool

    @property
    def whole(self) -> bool:
        """Whether nothing is lost, as far as the mark knows the log."""
        return self.marked and not self.lost

    @property
    def events(self) -> int:
        """How many events come over."""
        return sum(map(len, self.revisions.values()))


class OldLog:
    """One log of a store that can't go on, read position by position. It trusts the keys, and nothing in the file."""

    def __init__(self, datastore: Datastore, number: int, name: str, keys: Keys) -> None:
        self.name = name
        self._datastore = datastore
        self._base = number * PLACES
        self._keys = keys
        self.origin = self._find_origin()
        vault = Vault(datastore, keys.kek, name, number, self.origin)
        self._mapper = EventMapper(name, self.origin, vault.find)

    def survey(self, marked: Marked) -> Remains:
        """Read everything once, and say what comes over. An event comes over with the first one of its stream only."""
        frontier = marked.frontiers.get(self.origin)
        end = max(self._end(), 1)
        size, root = (frontier.size, frontier.root()) if frontier else (0, bytes(32))
        lost: list[Lost] = []
        revisions: dict[bytes, list[int]] = {}
        for position in range(1, max(end, size)):
            found = self._read(position)
            if isinstance(found, Lost) or (found.header.revision and found.header.stream not in revisions):
                lost.append(found if isinstance(found, Lost) else Lost(position, found.header.stream))
                continue
            revisions.setdefault(found.header.stream, []).append(found.header.revision)
            if position > size:
                size, root = position, found.header.root
        return Remains(
            self.origin, size, root, end, tuple(lost), {s: tuple(r) for s, r in revisions.items()}, bool(frontier)
        )

    def events(self, remains: Remains) -> Iterator[LoggedEvent]:
        """The events that come over, in order."""
        lost = {each.position for each in remains.lost}
        for position in range(1, remains.end):
            if position not in lost:
                found = self._read(position)
                if isinstance(found, Lost):
                    raise LogDamaged(
                        f"{self.name} log, position {position}: it could be read a moment ago. {LogDamaged.remedy}",
                        log=self.name,
                        position=position,
                    )
                yield found

    def claims(self) -> dict[bytes, int]:
        """The position of the entry that took each claim, as far as that table can be read."""
        try:
            return {tag: place % PLACES for tag, place in self._datastore.rows("SELECT tag, place FROM claim")}
        except _UNREADABLE:
            return {}

    def _end(self) -> int:
        try:
            rows = self._datastore.rows(
                "SELECT max(place) FROM entry WHERE place >= ? AND place < ?", (self._base, self._base + PLACES)
            )
        except _UNREADABLE:
            return 0
        return 0 if rows[0][0] is None else int(rows[0][0]) % PLACES + 1

    def _find_origin(self) -> bytes:
        """The log's id, from the first entry that this installation has signed."""
        for position in range(max(self._end(), 1)):
            row = self._row("entry", "entry, stream", position)
            header = None if row is None else self._signed(row[0], position)
            if header is not None:
                return header.origin
        raise LogDamaged(
            f"No entry of the {self.name} log can be read and was signed with these keys. Restore a snapshot.",
            log=self.name,
        )

    def _read(self, position: int) -> LoggedEvent | Lost:
        row = self._row("entry", "entry, stream", position)
        if row is None:
            return Lost(position, None)
        header = self._signed(row[0], position)
        if header is None or header.origin != self.origin:
            return Lost(position, row[1] if type(row[1]) is bytes else None)
        payload = self._row("payload", "body", position)
        if payload is None or type(payload[0]) is not bytes or payload_hash(payload[0]) != header.payload_hash:
            return Lost(position, header.stream)
        try:
            return self._opened(header, row[0], payload[0])
        except _UNREADABLE:
            return Lost(position, header.stream)

    def _opened(self, header: Header, entry: bytes, payload: bytes) -> LoggedEvent:
        return self._mapper.open(Entry(header, leaf_hash(entry), entry, payload))

    def _signed(self, entry: Any, position: int) -> Header | None:
        """The header of an entry that this installation has signed for this position."""
        try:
            header = read_entry(entry)
        except (NotCanonical, TypeError):
            return None
        signed = header.position == position and is_signed_by(entry, self._keys.writer.public)
        return header if signed else None

    def _row(self, table: str, columns: str, position: int) -> tuple[Any, ...] | None:
        try:
            rows = self._datastore.rows(f"SELECT {columns} FROM {table} WHERE place = ?", (self._base + position,))
        except _UNREADABLE:
            return None
        return rows[0] if rows else None
