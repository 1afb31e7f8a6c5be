"""The recorder of one log: gives each event clock, position, root and signature, and reads entries back checked."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from threading import Lock
from typing import Any, NamedTuple
from uuid import UUID
from weakref import WeakSet

from eventsourcing.persistence import ListenNotifySubscription, StoredEvent
from eventsourcing.sqlite import SQLiteApplicationRecorder

from ..errors import LogBehindMark, LogDamaged, Refused, RevisionConflict, StreamErased
from .canonical import NotCanonical
from .claims import PLACES
from .clock import milliseconds, tick
from .commit import GroupCommit
from .driver import Datastore
from .envelope import CLEAR, Header, is_signed_by, payload_hash, read_entry, sign_entry
from .mapper import NEXT, EntryRead, SealedEvent, new_id
from .merkle import Frontier, leaf_hash
from .signing import Signer, key_id

PAGE = 1000
SIGNATURES_REMEMBERED = 65536
POLL_SECONDS = 0.1

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS entry (place INTEGER PRIMARY KEY, log INTEGER NOT NULL, id BLOB NOT NULL, "
    "stream BLOB NOT NULL, revision INTEGER NOT NULL, entry BLOB NOT NULL) STRICT",
    "CREATE UNIQUE INDEX IF NOT EXISTS entry_id ON entry (log, id)",
    "CREATE UNIQUE INDEX IF NOT EXISTS entry_stream ON entry (log, stream, revision)",
    "CREATE TRIGGER IF NOT EXISTS entry_kept BEFORE DELETE ON entry "
    "BEGIN SELECT RAISE(ABORT, 'entries are append-only'); END",
    "CREATE TRIGGER IF NOT EXISTS entry_unchanged BEFORE UPDATE ON entry "
    "BEGIN SELECT RAISE(ABORT, 'entries are append-only'); END",
    "CREATE TABLE IF NOT EXISTS payload (place INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT",
    "CREATE TRIGGER IF NOT EXISTS payload_unchanged BEFORE UPDATE ON payload "
    "BEGIN SELECT RAISE(ABORT, 'payloads are never changed'); END",
    "CREATE TABLE IF NOT EXISTS data_key (log INTEGER NOT NULL, stream BLOB NOT NULL, generation INTEGER NOT NULL, "
    "wrapped BLOB NOT NULL, PRIMARY KEY (log, stream)) STRICT, WITHOUT ROWID",
)

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


class LogRecorder(SQLiteApplicationRecorder):
    """One log in log.db, through the library's recorder interface. Genesis is position 0 and not a notification.

    What others appended is verified before anything is built on it. A tip moves only when the transaction
    that moves it has committed.
    """

    def __init__(self, datastore: Datastore, identity: Identity, commits: GroupCommit, signer: Signer | None) -> None:
        super().__init__(datastore, "entry")
        self.datastore: Datastore = datastore
        self.identity = identity
        self.tip = START
        self._moving = Lock()
        self._key_id = key_id(identity.writer)
        base = identity.number * PLACES
        self._size_query = ("SELECT max(place) FROM entry WHERE place >= ? AND place < ?", (base, base + PLACES))
        self._pending: Tip | None = None
        self._commits = commits
        self._signer = signer
        self._signatures: OrderedDict[bytes, None] = OrderedDict()
        self._subscriptions: WeakSet[LogSubscription] = WeakSet()
        commits.join(self)

    def construct_create_table_statements(self) -> list[str]:
        """The tables that hold entries, payloads and data keys of every log."""
        return list(SCHEMA)

    # ---- appending

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int]:
        """Sign these events, give them the next positions, and make them durable. Returns the positions.

        Raises the library's IntegrityError where a revision is taken; nothing of the call is then written.
        """
        return self._commits.run(lambda cursor: self.insert_within(cursor, stored_events))

    def insert_within(self, c: Any, stored_events: Sequence[StoredEvent]) -> Sequence[int]:
        """As insert_events, inside a transaction of the group commit."""
        tip = self.advance(c, self._pending or self.tip)
        first, base = tip.size, self.identity.number * PLACES
        entries, payloads = [], []
        ends: dict[bytes, int] = {}
        for stored in stored_events:
            sealed = stored if isinstance(stored, SealedEvent) else _in_clear(stored)
            header = self._header(c, sealed, tip, ends)
            entry = sign_entry(header, self._signing())
            place = base + header.position
            entries.append((place, self.identity.number, header.id, header.stream, header.revision, entry))
            payloads.append((place, sealed.state))
            ends[header.stream] = header.revision
            tip = Tip(tip.frontier.append(leaf_hash(entry)), header.time)
            if sealed.wrapped is not None:
                self._admit_data_key(c, header, sealed.wrapped)
        c.executemany("INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?)", entries)
        c.executemany("INSERT INTO payload VALUES (?, ?)", payloads)
        self._pending = tip
        return list(range(first, tip.size))

    def _header(self, c: Any, sealed: SealedEvent, tip: Tip, ends: dict[bytes, int]) -> Header:
        stream = _stream(sealed.originator_id)
        return Header(
            v=1,
            id=sealed.id,
            origin=self.identity.origin,
            position=tip.size,
            root=tip.frontier.root(),
            key=self._key_id,
            time=tick(tip.time, time.time_ns() // 1_000_000),
            kind=sealed.topic,
            schema=sealed.schema,
            stream=stream,
            revision=self._revision(c, sealed, stream, ends),
            cipher=sealed.cipher,
            commitment=sealed.commitment,
            payload_hash=payload_hash(sealed.state),
            payload_length=len(sealed.state),
        )

    def _revision(self, c: Any, sealed: SealedEvent, stream: bytes, ends: dict[bytes, int]) -> int:
        if sealed.originator_version == 0 or type(sealed) is _Clear:
            return sealed.originator_version
        if stream not in ends:
            self._refuse_without_key(c, sealed, stream)
            ends[stream] = self._end(c, stream)
        end = ends[stream]
        if sealed.originator_version not in (NEXT, end + 1):
            raise RevisionConflict(
                f"Stream {stream.hex()} is at revision {end} and not at {sealed.originator_version - 1}: "
                f"it has changed since you read it. Read it again, then repeat the command."
            )
        return end + 1

    def _refuse_without_key(self, c: Any, sealed: SealedEvent, stream: bytes) -> None:
        """A sealed event joins a stream only while the stream's data key is there, whoever still remembers it."""
        if (
            sealed.cipher != CLEAR
            and not c.execute(
                "SELECT 1 FROM data_key WHERE log = ? AND stream = ?", (self.identity.number, stream)
            ).fetchone()
        ):
            raise StreamErased(f"The memory {stream.hex()} was erased. It can't come back; store a new one.")

    def _admit_data_key(self, c: Any, header: Header, wrapped: bytes) -> None:
        """A data key comes with the first event of its stream, and never again."""
        if header.revision != 0 or self._end(c, header.stream) >= 0:
            raise StreamErased(
                f"The stream {header.stream.hex()} began before and takes no new data key. Store a new memory."
            )
        c.execute("INSERT INTO data_key VALUES (?, ?, ?, ?)", (self.identity.number, header.stream, 1, wrapped))

    def _end(self, c: Any, stream: bytes) -> int:
        row = c.execute(
            "SELECT max(revision) FROM entry WHERE log = ? AND stream = ?", (self.identity.number, stream)
        ).fetchone()
        return -1 if row[0] is None else int(row[0])

    def _signing(self) -> Signer:
        if self._signer is None:
            raise Refused("This log was opened to be read, without the key that signs. Open it with its keys to write.")
        return self._signer

    # ---- what the group commit tells

    def begin(self) -> Tip | None:
        """What to go back to if a part of the transaction fails."""
        return self._pending

    def reached(self) -> Tip:
        """Up to where the log is on the disk once this transaction is: others wrote what was before it."""
        return self._pending or self.tip

    def back_to(self, pending: Tip | None) -> None:
        """A part of the transaction failed."""
        self._pending = pending

    def committed(self) -> None:
        """The transaction committed: the tip moves, subscribers wake."""
        if self._pending is not None:
            with self._moving:
                self.tip, self._pending = self._pending, None
            for subscription in list(self._subscriptions):
                subscription.wake()

    # ---- verifying what is new

    def size(self, c: Any) -> int:
        """How many entries the log has."""
        return self._size(c.execute(*self._size_query).fetchall())

    def _size(self, rows: list[tuple[Any, ...]]) -> int:
        last = rows[0][0]
        return 0 if last is None else int(last) % PLACES + 1

    def follow(self) -> Tip:
        """Verify what others have appended, and move the tip past it. One indexed read where nothing is new."""
        before = self.tip  # read before the log is, so that it can't be ahead of what is read
        if self._size(self.datastore.rows(*self._size_query)) == before.size:
            return before
        with self.datastore.transaction(commit=False) as c:
            tip = self.advance(c, before)
        with self._moving:
            if tip.size > self.tip.size:
                self.tip = tip
        return tip

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

    # ---- reading

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        """The events of one stream in order of revision, each with its signature, hashes and columns checked."""
        with self.datastore.transaction(commit=False) as c:
            return self.stream_events(c, _stream(originator_id), gt=gt, lte=lte, desc=desc, limit=limit)

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
            _COLUMNS + "WHERE log = ? AND stream = ? AND revision > ? AND revision <= ? "
            f"ORDER BY revision {'DESC' if desc else 'ASC'} LIMIT ?",
            (
                self.identity.number,
                stream,
                -1 if gt is None else gt,
                PLACES if lte is None else lte,
                -1 if limit is None else limit,
            ),
        ).fetchall()
        return [self._read_signed(row) for row in rows]

    def at(self, c: Any, position: int) -> EntryRead | None:
        """The entry at a position, its signature, hashes and columns checked; None where the log ends before it."""
        for row in self._rows(c, position, 1):
            return self._read_signed(row) if row[0] % PLACES == position else None
        return None

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[EntryRead]:
        """Events by position, from 1, verified, at most `limit`, `stop` included; `topics` are kinds.

        Hashes and columns are checked; signatures were when the tip passed.
        """
        first = max(1, (start or 0) + (0 if inclusive_of_start or start is None else 1))
        found: list[EntryRead] = []
        size = self.follow().size
        with self.datastore.transaction(commit=False) as c:
            end = size if stop is None else min(stop + 1, size)
            while first < end and len(found) < limit:
                rows = self._rows(c, first, min(limit if not topics else PAGE, end - first))
                reads = [self._read(row, first + n)[0] for n, row in enumerate(rows)]
                found += [read for read in reads if not topics or read.topic in topics]
                first += len(rows) or end
        return found[:limit]

    def max_notification_id(self) -> int | None:  # type: ignore[override]
        """The position of the last event, or None where there is none after genesis."""
        return self.follow().size - 1 or None

    def _rows(self, c: Any, position: int, limit: int) -> list[tuple[Any, ...]]:
        base = self.identity.number * PLACES
        return list(
            c.execute(
                _COLUMNS + "WHERE place >= ? AND place < ? ORDER BY place LIMIT ?",
                (base + position, base + PLACES, limit),
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

    # ---- following

    def subscribe(self, gt: int | None = None, topics: Sequence[str] = ()) -> LogSubscription:
        """Events after a position, and then each new one: of this process at once, of others within 100 ms."""
        subscription = LogSubscription(self, gt, topics)
        self._subscriptions.add(subscription)
        return subscription

    def stop_subscriptions(self) -> None:
        """End every subscription of this log."""
        for subscription in list(self._subscriptions):
            subscription.end()


class LogSubscription(ListenNotifySubscription[LogRecorder]):
    """The library's subscription, woken by commits of this process and looking for those of others."""

    def end(self) -> None:
        """Stop, and wait until the log is no longer read."""
        self.stop()
        self._pull_thread.join()

    def wake(self) -> None:
        """Look for new events now."""
        self._has_been_notified.set()

    def _pull(self) -> None:
        super()._pull()
        if not self._has_been_stopped:
            self._has_been_notified.wait(POLL_SECONDS)
            self._has_been_notified.set()


class _Clear(SealedEvent):
    """A stored event that did not come from our mapper: kept as it is, in clear."""


def _in_clear(stored: StoredEvent) -> SealedEvent:
    return _Clear(
        stored.originator_id,
        stored.originator_version,
        stored.topic,
        stored.state,
        new_id(),
        1,
        CLEAR,
        b"",
        None,
    )


def _stream(originator_id: UUID | str) -> bytes:
    return originator_id.bytes if isinstance(originator_id, UUID) else UUID(originator_id).bytes
