"""The recorder of one log: gives each event clock, position, root and signature, through the library's interface."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any
from uuid import UUID
from weakref import WeakSet

from eventsourcing.persistence import ListenNotifySubscription, StoredEvent
from eventsourcing.sqlite import SQLiteApplicationRecorder

from ..errors import Refused, RevisionConflict, StreamErased
from .claims import PLACES
from .clock import tick
from .commit import GroupCommit
from .driver import Datastore, rows_in
from .entries import PAGE, START, EntryReader, Identity, Tip
from .envelope import CLEAR, Header, payload_hash, sign_entry
from .mapper import NEXT, EntryRead, SealedEvent, new_id
from .merkle import leaf_hash
from .signing import Signer
from .vault import FIRST_GENERATION, KEY_OF

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
    "CREATE TABLE IF NOT EXISTS data_key (place INTEGER PRIMARY KEY, generation INTEGER NOT NULL, "
    "wrapped BLOB NOT NULL) STRICT",
)


class LogRecorder(EntryReader, SQLiteApplicationRecorder):
    """One log in log.db, through the library's recorder interface. Genesis is position 0 and not a notification.

    What others appended is verified before anything is built on it. A tip moves only when the transaction
    that moves it has committed.
    """

    def __init__(self, datastore: Datastore, identity: Identity, commits: GroupCommit, signer: Signer | None) -> None:
        EntryReader.__init__(self, identity)
        SQLiteApplicationRecorder.__init__(self, datastore, "entry")
        self.datastore: Datastore = datastore
        self.tip = START
        self._moving = Lock()
        self._pending: Tip | None = None
        self._commits = commits
        self._signer = signer
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
        entries, payloads, data_keys = [], [], []
        events = [stored if isinstance(stored, SealedEvent) else _in_clear(stored) for stored in stored_events]
        ends = self._ends(c, events)
        seen = self._commits.latest()
        for sealed in events:
            header = self._header(sealed, tip, tick(max(tip.time, seen), time.time_ns() // 1_000_000), ends)
            entry = sign_entry(header, self._signing())
            place = base + header.position
            entries.append((place, self.identity.number, header.id, header.stream, header.revision, entry))
            payloads.append((place, sealed.state))
            ends[header.stream] = header.revision
            tip = Tip(tip.frontier.append(leaf_hash(entry)), header.time)
            if sealed.wrapped is not None:
                data_keys.append((place, *_data_key(header, sealed.wrapped)))
        c.executemany("INSERT INTO data_key VALUES (?, ?, ?)", data_keys)
        c.executemany("INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?)", entries)
        c.executemany("INSERT INTO payload VALUES (?, ?)", payloads)
        self._pending = tip
        return list(range(first, tip.size))

    def _header(self, sealed: SealedEvent, tip: Tip, clock: int, ends: dict[bytes, int]) -> Header:
        stream = sealed.stream
        return Header(
            v=1,
            id=sealed.id,
            origin=self.identity.origin,
            position=tip.size,
            root=tip.frontier.root(),
            key=self._key_id,
            time=clock,
            kind=sealed.topic,
            schema=sealed.schema,
            stream=stream,
            revision=_revision(sealed, stream, ends),
            cipher=sealed.cipher,
            commitment=sealed.commitment,
            payload_hash=payload_hash(sealed.state),
            payload_length=len(sealed.state),
        )

    def _ends(self, c: Any, events: Sequence[SealedEvent]) -> dict[bytes, int]:
        """The last revision of each stream that these events join or open; none for one that is not there."""
        firsts: dict[bytes, SealedEvent] = {}
        for sealed in events:
            firsts.setdefault(sealed.stream, sealed)
        for stream, sealed in firsts.items():
            if sealed.originator_version != 0:
                self._refuse_without_key(c, sealed, stream)
        last = "SELECT stream, max(revision) FROM entry WHERE log = ? AND stream IN ({}) GROUP BY stream"
        return dict(rows_in(c, last, list(firsts), self.identity.number))

    def _refuse_without_key(self, c: Any, sealed: SealedEvent, stream: bytes) -> None:
        """A sealed event joins a stream only while the stream's data key is there, whoever still remembers it."""
        if sealed.cipher != CLEAR and not c.execute(KEY_OF, (self.identity.number, stream)).fetchone():
            raise StreamErased(f"The memory {stream.hex()} was erased. It can't come back; store a new one.")

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

    def latest(self) -> int:
        """The time of the last event, of this transaction too."""
        return self.reached().time

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
            entries = self.stream_events(c, _stream(originator_id), gt=gt, lte=lte, desc=desc, limit=limit)
        return [EntryRead.of(entry) for entry in entries]

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
                entries = self.between(c, first, min(first + (PAGE if topics else limit), end))
                found += [EntryRead.of(entry) for entry in entries if not topics or entry.header.kind in topics]
                first += len(entries) or end
        return found[:limit]

    def max_notification_id(self) -> int | None:  # type: ignore[override]
        """The position of the last event, or None where there is none after genesis."""
        return self.follow().size - 1 or None

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
        _stream(stored.originator_id),
        new_id(),
        1,
        CLEAR,
        b"",
        None,
    )


def _data_key(header: Header, wrapped: bytes) -> tuple[int, bytes]:
    """What is kept of a data key, which comes with the first event of its stream and never again."""
    if header.revision != 0:
        raise StreamErased(f"The stream {header.stream.hex()} takes no new data key. Store a new memory.")
    return FIRST_GENERATION, wrapped


def _revision(sealed: SealedEvent, stream: bytes, ends: Mapping[bytes, int]) -> int:
    if type(sealed) is _Clear:
        return sealed.originator_version
    end = ends.get(stream, -1)
    if sealed.originator_version == 0 and end >= 0:
        raise StreamErased(f"The stream {stream.hex()} began before and can't begin again. Store a new memory.")
    if sealed.originator_version not in (NEXT, end + 1):
        raise RevisionConflict(
            f"Stream {stream.hex()} is at revision {end} and not at {sealed.originator_version - 1}: "
            f"it has changed since you read it. Read it again, then repeat the command."
        )
    return end + 1


def _stream(originator_id: UUID | str) -> bytes:
    return originator_id.bytes if isinstance(originator_id, UUID) else UUID(originator_id).bytes
