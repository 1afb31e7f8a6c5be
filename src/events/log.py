"""A log of events: drafts are sealed and appended, events are read back opened and checked."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from eventsourcing.persistence import IntegrityError

from ..errors import KeysMissing, LogDamaged, NotFound, RevisionConflict
from .claim_seal import Changed, ClaimSeal
from .claims import PLACES, Claim, Holder, Move, Release, holders_of, moved, require_free, settle
from .commit import GroupCommit
from .driver import Datastore
from .entries import START, Entry, Identity, Tip
from .envelope import CLEAR, stream_of
from .keys import Keys
from .kinds import Event
from .mapper import NEXT, Draft, EventMapper, LoggedEvent, SealedEvent
from .merkle import leaf_hash
from .recorder import LogRecorder
from .signing import Signer
from .vault import DataKey, FindKey, Vault

PAGE = 500
CLAIMING = "memory"
"""The log whose streams hold claims."""


class Append(NamedTuple):
    """What one command asks to happen: drafts, what they claim, give up and hold under another tag, all or nothing.

    It happens only while the tags in `free` are held by nobody, and the log has this size, where one is given.
    """

    drafts: tuple[Draft, ...]
    claims: tuple[Claim, ...] = ()
    releases: tuple[Release, ...] = ()
    moves: tuple[Move, ...] = ()
    free: tuple[bytes, ...] = ()
    size: int | None = None


class Appended(NamedTuple):
    """Where an event of an append now stands, and its id."""

    position: int
    id: bytes


class Log:
    """One log of this installation. Events come out only after they were verified.

    `keys` open its payloads and seal its claims.
    """

    def __init__(
        self,
        datastore: Datastore,
        identity: Identity,
        commits: GroupCommit,
        signer: Signer | None,
        keys: Keys | None,
    ) -> None:
        self.name = identity.name
        self.origin = identity.origin
        self.recorder = LogRecorder(datastore, identity, commits, signer)
        self._datastore = datastore
        self._commits = commits
        self._vault: Vault | None = None
        self._seal: ClaimSeal | None = None
        if keys is not None:
            self._vault = Vault(datastore, keys.kek, identity.name, identity.number, identity.origin)
            self._seal = ClaimSeal(keys.index) if identity.name == CLAIMING else None
        self._mapper = EventMapper(identity.name, identity.origin, self._data_key)

    @property
    def tip(self) -> Tip:
        """Up to where this process has verified the log."""
        return self.recorder.tip

    def follow(self) -> Tip:
        """Verify what others have appended, and return the tip after it."""
        return self.recorder.follow()

    def tip_at(self, size: int, since: Tip) -> Tip:
        """The tip when the log had so many entries, from one that it had before; what lies between is verified."""
        if size == since.size:
            return since
        with self._datastore.transaction(commit=False) as cursor:
            for _, since in self.recorder.walk(cursor, since, size):
                pass
        return since

    # ---- appending

    def new_stream(self) -> tuple[bytes, bytes]:
        """The id of a stream that does not exist yet, and the nonce its first event must carry."""
        nonce = secrets.token_bytes(16)
        return stream_of(self.origin, nonce), nonce

    def opening(self, stream: bytes, event: Event) -> Draft:
        """A draft that opens a stream: at revision 0, with a data key of its own unless the event is in clear."""
        if event.CLEAR or self._vault is None:
            return Draft(stream, 0, event)
        key, wrapped = self._vault.create(stream)
        return Draft(stream, 0, event, key, wrapped)

    def following(self, stream: bytes, event: Event, revision: int = NEXT) -> Draft:
        """A draft for an existing stream, at this revision or wherever the stream ends."""
        return Draft(stream, revision, event, None if event.CLEAR else self._data_key(stream))

    def require_writable(self, event: Event) -> None:
        """Raise Refused, naming the field, for an event that holds what can't be kept."""
        self._mapper.encode(event)

    def append(self, request: Append, *, durable: bool = True) -> list[Appended]:
        """Append the drafts, all or none, and say where each now stands.

        Raises Claimed, RevisionConflict or StreamErased where the state of the log says no.
        """
        sealed = [self._mapper.to_stored_event(draft) for draft in request.drafts]
        try:
            positions = self._commits.run(lambda cursor: self._append(cursor, sealed, request), durable=durable)
        except BaseException:
            self._forget_new_keys(request.drafts)
            raise
        return [Appended(position, event.id) for position, event in zip(positions, sealed, strict=True)]

    def begin(self, cursor: Any, created: Draft) -> None:
        """Append the first event of the log, in the transaction that makes its store."""
        self.recorder.insert_within(cursor, [self._mapper.to_stored_event(created)])
        self.hold(cursor, ())

    def append_within(self, cursor: Any, draft: Draft) -> tuple[int, bytes]:
        """Append a draft to a log that is being made, inside a transaction. Returns where it stands, its leaf hash.

        What it claims is nobody's before `hold` has said who holds what.
        """
        position = self.recorder.insert_within(cursor, [self._mapper.to_stored_event(draft)])[0]
        place = self.recorder.identity.number * PLACES + position
        entry = cursor.execute("SELECT entry FROM entry WHERE place = ?", (place,)).fetchone()[0]
        return position, leaf_hash(entry)

    def hold(self, cursor: Any, claims: Sequence[tuple[Claim, Holder]]) -> None:
        """Let streams of a log that is being made hold what they claim, once, after its last event."""
        settle(cursor, (), claims)
        if self._seal is not None:
            self._seal.renew(cursor, *self._end(cursor))

    def _forget_new_keys(self, drafts: Sequence[Draft]) -> None:
        for draft in drafts:
            if draft.wrapped is not None and self._vault is not None:
                self._vault.forget(draft.stream)

    def _append(self, cursor: Any, sealed: list[SealedEvent], request: Append) -> Sequence[int]:
        require_free(cursor, request.free)
        if request.size not in (None, self.recorder.size(cursor)):
            raise RevisionConflict("The log has grown since the command was decided on. Repeat the command.")
        try:
            positions = self.recorder.insert_within(cursor, sealed)
        except self._datastore.driver_errors as error:
            raise self._index_damaged(error) from error
        base = self.recorder.identity.number * PLACES
        holders = [Holder(request.drafts[c.draft].stream, base + positions[c.draft]) for c in request.claims]
        given_up, taken = moved(cursor, request.moves)
        releases, claims = [*request.releases, *given_up], [*zip(request.claims, holders, strict=True), *taken]
        changed = settle(cursor, releases, claims) if releases or claims else Changed((), ())
        if self._seal is not None and sealed:
            self._seal.move(cursor, positions[0], (positions[-1], sealed[-1].id), changed)
        return positions

    def _index_damaged(self, error: BaseException) -> BaseException:
        """What it means that an insert failed: every place, id and revision in it was free by the index."""
        meaning = self._datastore.translate(error)
        if not isinstance(meaning, IntegrityError):
            return meaning
        return LogDamaged(
            f"{self.name} log: the index of {self._datastore.file.path.name} is damaged: it did not show an entry that "
            f"is there ({meaning}). {LogDamaged.remedy}",
            log=self.name,
        )

    # ---- reading

    def check_claims(self, cursor: Any) -> None:
        """Raise LogDamaged where the claims are not those that were sealed with the last event of the log."""
        if self._seal is not None:
            self._seal.check(cursor, *self._end(cursor))

    def _end(self, cursor: Any) -> tuple[int, bytes]:
        """The position and the id of the last event."""
        position = self.recorder.size(cursor) - 1
        place = self.recorder.identity.number * PLACES + position
        return position, cursor.execute("SELECT id FROM entry WHERE place = ?", (place,)).fetchone()[0]

    def holders(self, tags: Sequence[bytes]) -> dict[bytes, tuple[bytes, int]]:
        """Who holds these claims: the stream, and the position of the event that took it. Free ones are left out."""
        with self._datastore.transaction(commit=False) as cursor:
            held = holders_of(cursor, tags)
        return {tag: (stream, place % PLACES) for tag, (stream, place) in held.items()}

    def events_of(self, stream: bytes, *, upto: int | None = None) -> list[LoggedEvent]:
        """The events of a stream in order, signatures and commitments checked; up to a revision where one is given."""
        self.follow()
        with self._datastore.transaction(commit=False) as cursor:
            return self.events_within(cursor, stream, upto)

    def events_of_each(self, streams: Sequence[bytes]) -> dict[bytes, list[LoggedEvent]]:
        """As `events_of`, of each of some streams, whole."""
        self.follow()
        with self._datastore.transaction(commit=False) as cursor:
            found = self.recorder.events_of_each(cursor, streams)
            find_key = self._opening().of(cursor, streams)
        return {stream: self._in_order(entries, find_key) for stream, entries in found.items()}

    def events_within(self, cursor: Any, stream: bytes, upto: int | None) -> list[LoggedEvent]:
        """As `events_of`, inside a transaction, of what is verified already."""
        return self._in_order(self.recorder.stream_events(cursor, stream, lte=upto))

    def earlier(self, revisions: Mapping[bytes, int]) -> dict[bytes, list[LoggedEvent]]:
        """The events of some streams, each up to a revision that the tip has passed: signatures were checked then."""
        if not revisions:
            return {}
        with self._datastore.transaction(commit=False) as cursor:
            found = self.recorder.earlier(cursor, revisions)
            find_key = self._opening().of(cursor, list(revisions))
        return {stream: self._in_order(entries, find_key) for stream, entries in found.items()}

    def _in_order(self, entries: Sequence[Entry], find_key: FindKey | None = None) -> list[LoggedEvent]:
        for revision, entry in enumerate(entries):
            if entry.header.revision != revision:
                missing = f"revision {revision} of its stream is missing before it"
                raise self.recorder.damaged(entry.header.position, missing)
        return [self._mapper.open(entry, find_key) for entry in entries]

    def event_at(self, position: int) -> LoggedEvent:
        """The event at a position, signature and commitment checked. Raises NotFound past the end."""
        with self._datastore.transaction(commit=False) as cursor:
            entry = self.recorder.at(cursor, position)
        if entry is None:
            raise NotFound(f"The {self.name} log has no position {position}. Give one below its size.")
        return self._mapper.open(entry)

    def pages(self, after: int, upto: int) -> Iterator[list[LoggedEvent]]:
        """The events from position `after` + 1 to `upto`, which must be verified, a page at a time."""
        while after < upto:
            stop = min(self.follow().size, upto + 1, after + 1 + PAGE)
            with self._datastore.transaction(commit=False) as cursor:
                entries = self.recorder.between(cursor, after + 1, stop)
                find_key = self._keys_between(cursor, after + 1, stop)
            if not entries:
                raise self.recorder.damaged(after + 1, "the entry is missing")
            yield [self._mapper.open(entry, find_key) for entry in entries]
            after += len(entries)

    def opened(self, cursor: Any) -> Iterator[tuple[LoggedEvent, Tip]]:
        """Every event from position 0, opened with the key that log.db has, and the tip after it.

        All is checked of each: signature, root, hashes and columns, then key, commitment and body.
        """
        tip, size = START, self.recorder.size(cursor)
        while tip.size < size:
            stop = min(size, tip.size + PAGE)
            find_key = self._keys_between(cursor, tip.size, stop)
            for entry, tip in self.recorder.walk(cursor, tip, stop):
                yield self._mapper.open(entry, find_key), tip

    def find(self, event_id: bytes) -> LoggedEvent:
        """The event with this id. Raises NotFound."""
        with self._datastore.transaction(commit=False) as cursor:
            row = cursor.execute(
                "SELECT place FROM entry WHERE log = ? AND id = ?", (self.recorder.identity.number, event_id)
            ).fetchone()
        if row is None:
            raise NotFound(f"The {self.name} log has no event {event_id.hex()}. Look it up with `tallystick log`.")
        return self.event_at(row[0] % PLACES)

    def positions_with_key(self, cursor: Any) -> set[int]:
        """The positions at which log.db has a data key."""
        base = self.recorder.identity.number * PLACES
        rows = cursor.execute("SELECT place FROM data_key WHERE place >= ? AND place < ?", (base, base + PLACES))
        return {place - base for (place,) in rows.fetchall()}

    def begun_without_key(self, cursor: Any) -> Iterator[int]:
        """The positions at which a sealed stream begins that has no data key in log.db."""
        rows = cursor.execute(
            "SELECT place FROM entry WHERE log = ? AND revision = 0 "
            "AND NOT EXISTS (SELECT 1 FROM data_key WHERE data_key.place = entry.place)",
            (self.recorder.identity.number,),
        ).fetchall()
        for position in (place % PLACES for (place,) in rows):
            entry = self.recorder.at(cursor, position)
            if entry is not None and entry.header.cipher != CLEAR:
                yield position

    def _keys_between(self, cursor: Any, first: int, stop: int) -> FindKey:
        """How to find the data keys of the streams that have events from `first` to before `stop`."""
        base = self.recorder.identity.number * PLACES
        return self._opening().between(cursor, base + first, base + stop)

    def _opening(self) -> Vault:
        """What opens payloads. Raises KeysMissing where the log was opened without."""
        if self._vault is None:
            raise KeysMissing("This log was opened without the key that opens its payloads. Supply the keys.")
        return self._vault

    def _data_key(self, stream: bytes) -> DataKey | None:
        return None if self._vault is None else self._vault.find(stream)
