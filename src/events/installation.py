"""One installation on disk: log.db with its two logs, the keys and the mark; created, opened, verified, closed."""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

from ..errors import KeysMissing, LogBehindMark, LogDamaged, NotFound, Refused, StoreExists, StoreIsNewer, Unavailable
from . import claims, settings
from .canonical import NotCanonical, decode_body
from .checkpoint import Checkpoint, sign
from .commit import GroupCommit
from .driver import Datastore, File
from .entries import START, Identity, Tip
from .envelope import is_signed_by, origin_of, payload_hash, read_entry, stream_of
from .key_places import KeySource, find_keys, place_of, provide_keys, refuse_losing_place, state_directory
from .keys import Keys
from .kinds import LogCreated, event_from
from .lease import Lease, refuse_network
from .log import Log
from .mapper import Draft
from .mark import NOTHING, Mark, Marked
from .merkle import Frontier
from .recorder import LogRecorder
from .schema import SCHEMA, intruders
from .signing import admit_public_key, key_id, verify

FORMAT = 1
FILE = "log.db"
LOGS = ("memory", "access")

_ROOT_CONTEXT = b"tallystick/root-key/v1\0"
_POSSESSION_CONTEXT = b"tallystick/possession/v1\0"


class Opening(NamedTuple):
    """How an installation is opened: with the secret keys, or with the root public key only; to write or to read.

    `marked` says whether the log is held against the mark, and moves it; `still` that nobody changes it meanwhile.
    """

    store: bytes
    keys: Keys | None
    root: bytes
    read_only: bool
    marked: bool = True
    still: bool = False


class Installation:
    """The two logs of one installation, verified up to their tips. Close it; or use it as a context manager."""

    def __init__(self, path: Path, opening: Opening) -> None:
        self.path = path
        self.store = opening.store
        self._root = opening.root
        self.derived = path  # where views and vectors lie
        self.keys = opening.keys
        self.read_only = opening.read_only
        self.datastore = Datastore(File(path / FILE, LogDamaged, read_only=opening.read_only, still=opening.still))
        self.commits = GroupCommit(self.datastore, self._move_mark, self._admit)
        self.checked = "new"
        self.unmarked = False
        self.closed_with: Mapping[str, Any] = {}
        self.alone = True
        self.mark: Mark | None = None
        self.until: int | None = None
        self._lease: Lease | None = None
        try:
            self.memory, self.access = (self._log(number, name, opening) for number, name in enumerate(LOGS))
            if opening.keys is not None and opening.marked:
                self.mark = mark_beside(opening.keys, opening.store)
        except BaseException:
            self.datastore.close()
            raise

    @classmethod
    def create(cls, path: Path, keys: KeySource) -> Self:
        """Make a new store in a directory that holds none. Raises Refused where it can't or should not.

        Of several processes that create at once, one does.
        """
        store = secrets.token_bytes(16)
        key_directory = place_of(keys, store).directory
        if key_directory is not None:
            refuse_losing_place(key_directory, path)
        refuse_network(path)
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise Refused(f"{path} can't be a store's directory ({error.strerror}). Name another one.") from error
        with _creating(path):
            if exists(path):
                raise StoreExists(f"{path} already holds a store: open it.")
            found = provide_keys(keys, store)
            try:
                write_store(path, store, found)
            except BaseException:
                _undo_creation(path, found)
                raise
        return cls.open(path, keys)

    @classmethod
    def open(cls, path: Path, keys: KeySource) -> Self:
        """Open the store in a directory with its keys, and verify what is new, or all where that is due.

        Raises NotFound where there is no store, KeysMissing, StoreIsNewer, LogDamaged or LogBehindMark, and Busy
        where another host has it open.
        """
        store = store_of(path)
        found = find_keys(keys, store)
        lease = Lease.take(path)
        found_as = stamp(path / FILE)
        try:
            installation = cls(path, Opening(store, found, found.root.public, False))
        except BaseException:
            lease.release()
            raise
        installation._lease = lease
        try:
            installation._verify_at_open(found_as)
        except BaseException:
            installation.abandon()
            raise
        return installation

    @classmethod
    def read(cls, path: Path, keys: KeySource, until: int | None = None) -> Self:
        """Open the store in a directory to be read only: verified as by `open`, and nothing of it is written to.

        `until` is a position of the memory log: what is before it is verified in full and served, whatever follows;
        of the access log as much as verifies. Raises as `open`, and Refused where the log ends before `until`.
        """
        store = store_of(path)
        found = find_keys(keys, store)
        found_as = stamp(path / FILE)
        installation = cls(path, Opening(store, found, found.root.public, True, marked=False))
        try:
            if until is None:
                installation._verify_to(marked_beside(found, store), found_as)
            else:
                installation._verify_before(until)
        except BaseException:
            installation.abandon()
            raise
        return installation

    @classmethod
    def audit(cls, path: Path, root: bytes | None, keys: KeySource, *, marked: bool = True) -> Self:
        """Open a store to be verified, nothing checked yet: with its keys, or with the root public key alone."""
        store = store_of(path)
        if root is not None:
            return cls(path, Opening(store, None, root, True))
        found = find_keys(keys, store)
        return cls(path, Opening(store, found, found.root.public, True, marked))

    @property
    def signs(self) -> bool:
        """Whether events can be appended: it was opened to be written, with keys that sign."""
        return self.keys is not None and self.keys.sign and not self.read_only

    @property
    def logs(self) -> tuple[Log, Log]:
        """The memory log and the access log."""
        return self.memory, self.access

    # ---- opening

    def _log(self, number: int, name: str, opening: Opening) -> Log:
        with self.datastore.transaction(commit=False) as cursor:
            identity, created = _identity(cursor, number, name, opening.root)
        if created.store != opening.store:
            raise LogDamaged(
                f"{FILE} says that it is the store {opening.store.hex()}, and its first entry that it is "
                f"{created.store.hex()}. {LogDamaged.remedy}"
            )
        if opening.keys is not None:
            _refuse_other_keys(opening.keys, identity, created)
        signer = opening.keys.writer if opening.keys is not None and self.signs else None
        return Log(self.datastore, identity, self.commits, signer, opening.keys)

    def _verify_at_open(self, found_as: list[int] | None) -> None:
        """Trust the log up to the mark where nobody can have changed it since; else read and check it all."""
        marked, alone = NOTHING, True
        mark = self.mark
        if mark is not None:
            alone = mark.hold()
            marked = mark.read()
        self._verify_to(marked, found_as, shared=not alone)
        self.closed_with, self.alone = marked.closed, alone
        if mark is not None and not marked.frontiers:
            self.commits.flush()

    def _verify_to(self, marked: Marked, found_as: list[int] | None, *, shared: bool = False) -> None:
        trusted = shared or (found_as is not None and marked.closed.get("log") == found_as)
        self.hold_against(marked, trusted=trusted)
        if not trusted:
            self._check_what_acts()
        self.checked = "new" if trusted else "structure"
        self.unmarked = not marked.frontiers and any(log.tip.size > 1 for log in self.logs)

    def _check_what_acts(self) -> None:
        """Raise LogDamaged where the next append could be decided, or changed, by what is not ours."""
        with self.datastore.transaction(commit=False) as cursor:
            if found := intruders(cursor):
                raise LogDamaged(f"{FILE} is damaged: {found[0]}. {LogDamaged.remedy}")
            self.memory.check_claims(cursor)

    def hold_against(self, marked: Marked, *, trusted: bool) -> None:
        """Verify the logs to their ends: in full what is past the mark, by structure what is before, unless `trusted`.

        Raises LogDamaged or LogBehindMark.
        """
        for log in self.logs:
            log.recorder.tip = self._verified(log.recorder, marked, trusted=trusted)
            log.follow()

    def at(self, position: int) -> Self:
        """The same store as it was when the memory log ended with a position: read only, verified up to there.

        Of the access log, what was there before the next event of the memory log. Raises NotFound for a position that
        the log has not, LogDamaged.
        """
        if type(position) is not int or position < 0 or position >= self.memory.follow().size:
            raise NotFound(f"The memory log has no position {position!r}. Give one below {self.memory.tip.size}.")
        past = type(self)(self.path, Opening(self.store, self.keys, self._root, True, marked=False))
        try:
            past.access.recorder.end_at(self._access_before(position + 1))
            past._verify_before(position + 1)
        except BaseException:
            past.abandon()
            raise
        return past

    def go_on_to(self, position: int) -> None:
        """Let a store of the past end with a later position of the memory log: what lies between is verified first."""
        self.memory.recorder.end_at(position + 1)
        self.memory.follow()
        self.until = position + 1

    def _access_before(self, position: int) -> int:
        """How many events of the access log come before a position of the memory log.

        By the clock: of two processes that append in one millisecond, or whose wall clocks go back, either may come
        first.
        """
        low, high = 1, self.access.follow().size
        if position >= self.memory.tip.size:
            return high
        end = self.memory.event_at(position).header.time
        while low < high:
            middle = (low + high) // 2
            if self.access.event_at(middle).header.time < end:
                low = middle + 1
            else:
                high = middle
        return low

    def _verify_before(self, until: int) -> None:
        """Verify the memory log up to a position, and the access log as far as it goes; serve that and no more."""
        if type(until) is not int or abs(until) >= claims.PLACES:
            raise Refused(f"until is {until!r}. Give a position of the memory log.")
        self.memory.recorder.end_at(until)
        with self.datastore.transaction(commit=False) as cursor:
            size = self.memory.recorder.size(cursor)
        if until < 1 or size < until:
            raise Refused(f"The memory log has {size} entries, so none before position {until}. Give a lower position.")
        try:
            self.access.follow()
        except LogDamaged as damage:
            self.access.recorder.end_at(damage.position or 0)
        self.memory.follow()
        self.checked, self.until = "full", until

    def _verified(self, log: LogRecorder, marked: Marked, *, trusted: bool) -> Tip:
        frontier = marked.frontiers.get(log.identity.origin)
        if frontier is None and marked.frontiers:
            raise _given_up(log)
        with self.datastore.transaction(commit=False) as cursor:
            size = log.size(cursor)
            if frontier is not None and size < frontier.size:
                log.refuse_bad(cursor, size)
                raise _behind(log, size, frontier.size)
            if trusted and frontier is not None and frontier.size:
                last = log.at(cursor, frontier.size - 1)
                return Tip(frontier, last.header.time if last else 0)
            return _walk_to_mark(cursor, log, frontier)

    @contextmanager
    def excluding(self) -> Iterator[bool]:
        """Whether no other process has the store open, whosever it is; if so, none opens it until the block ends."""
        if self._lease is None:
            yield False
            return
        with self._lease.excluding() as alone:
            yield alone

    def share(self) -> None:
        """Let other processes open the store: what this one serves is checked."""
        if self.mark is not None:
            self.mark.share()

    # ---- closing

    def close(self, views: Mapping[str, Any]) -> None:
        """Flush, sign a checkpoint of what was added, and leave stamps by which the next open knows the files."""
        try:
            self.commits.close()
            self._sign_what_was_added()
            self.require_in_place()
        except BaseException:
            self.abandon()
            raise
        signed = self._checkpoints()
        self._shut()
        if self.mark is not None:
            if self.mark.hold():
                self.mark.close({"log": stamp(self.path / FILE), "checkpoints": signed, **views})
            self.mark.release()
        self._let_go()

    def abandon(self) -> None:
        """Close the files and leave no stamp."""
        self._shut()
        if self.mark is not None:
            self.mark.release()
        self._let_go()

    def _let_go(self) -> None:
        if self._lease is not None:
            self._lease.release()
            self._lease = None

    def _shut(self) -> None:
        self.commits.stop()
        for log in self.logs:
            log.recorder.stop_subscriptions()
        self.datastore.close()

    def require_writable(self) -> None:
        """Raise Refused where the store was opened to be read."""
        if self.read_only:
            raise Refused("This store was opened to be read. Open it without read_only=True to change it.")

    @property
    def in_place(self) -> bool:
        """Whether log.db is still the file that was opened."""
        return self.datastore.pool.in_place()

    def require_in_place(self) -> None:
        """Raise LogDamaged where log.db was deleted or replaced meanwhile: what is written is lost with the old one."""
        if not self.in_place:
            raise LogDamaged(
                f"{self.path / FILE} was deleted or replaced while it was open, and what is written now goes with the "
                f"old file. Stop writing; Memory.snapshot(DIRECTORY) of this Memory still copies all it holds. Then "
                f"close it, and put that back with `tallystick snapshot restore SNAPSHOT --over`."
            )

    def _admit(self, cursor: Any) -> None:
        """Raise StoreIsNewer where the store has gone over to a format that this process does not know."""
        check_format(self.path, settings.read_setting_within(cursor, "format"))

    def _move_mark(self, reached: Sequence[Tip]) -> None:
        self.require_in_place()
        if self.mark is not None:
            self.mark.advance({log.origin: tip.frontier for log, tip in zip(self.logs, reached, strict=True)})

    def _sign_what_was_added(self) -> None:
        signed = dict(
            self.datastore.rows("SELECT log, max(size) FROM checkpoint WHERE typeof(size) = 'integer' GROUP BY log")
        )
        if self.signs and any(log.tip.size > signed.get(log.recorder.identity.number, 0) for log in self.logs):
            self.commits.run(self._checkpoint)

    def _checkpoints(self) -> int:
        """How many signed checkpoints there are: none is ever deleted."""
        return int(self.datastore.rows("SELECT count(*) FROM checkpoint")[0][0])

    def missing_checkpoints(self) -> int:
        """How many of the checkpoints are gone that were there at the last close, where that is known."""
        closed = self.closed_with or (self.mark.read().closed if self.mark is not None else {})
        return max(0, int(closed.get("checkpoints", 0)) - self._checkpoints())

    def _checkpoint(self, cursor: Any) -> None:
        assert self.keys is not None
        for log in self.logs:
            frontier = log.tip.frontier
            note = sign(Checkpoint(log.origin.hex(), frontier.size, frontier.root()), log.origin.hex(), self.keys.log)
            cursor.execute(
                "INSERT OR IGNORE INTO checkpoint VALUES (?, ?, ?)",
                (log.recorder.identity.number, frontier.size, note.encode()),
            )


def stamp(path: Path) -> list[int] | None:
    """What the file system says of a closed file; None while a write-ahead log with something in it lies beside it."""
    ahead = path.with_name(path.name + "-wal")
    if not path.exists() or (ahead.exists() and ahead.stat().st_size):
        return None
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def _walk_to_mark(cursor: Any, log: LogRecorder, frontier: Frontier | None) -> Tip:
    tip, marked = START, frontier.size if frontier else 0
    try:
        for _, tip in log.walk(cursor, tip, marked, signed=False):
            pass
    except LogDamaged:
        log.refuse_bad(cursor, marked)  # what was forged to fit is the first bad one, and not what it was put before
        raise
    if frontier is not None and tip.frontier.root() != frontier.root():
        log.refuse_bad(cursor, marked)
        raise LogBehindMark(
            f"The {log.identity.name} log is not the one this installation verified before: its first {marked} "
            f"entries have another root. {LogDamaged.remedy}",
            log=log.identity.name,
            position=marked - 1,
        )
    return tip


def _given_up(log: LogRecorder) -> LogBehindMark:
    return LogBehindMark(
        f"This {log.identity.name} log ({log.identity.origin.hex()[:12]}...) is not the one that this installation "
        f"goes on with: that one was recovered or salvaged to a new origin, or the mark is another store's. Open the "
        f"store that it became; or open this one to be read, with until=.",
        log=log.identity.name,
    )


def _behind(log: LogRecorder, size: int, marked: int) -> LogBehindMark:
    return LogBehindMark(
        f"The {log.identity.name} log has {size} entries and this installation has verified {marked}: it was cut, "
        f"or an older copy was put in its place. {LogDamaged.remedy} If it is an older copy to go on "
        f"from, run `tallystick recover`.",
        log=log.identity.name,
        position=size,
    )


def exists(path: Path) -> bool:
    """Whether a store is in a directory. Raises LogDamaged or StoreIsNewer where it can't be told which."""
    try:
        store_of(path)
    except NotFound:
        return False
    return True


def store_of(path: Path) -> bytes:
    """The id of the store in a directory, read before its keys are known.

    A log.db without any table is what a creation left that was killed: no store.
    """
    try:
        return _store_in(path, read_only=True)
    except Unavailable:
        if not (path / f"{FILE}-journal").exists():
            raise
        return _store_in(path, read_only=False)  # rolls back what a killed creation had begun


def seen_store(path: Path, *, still: bool) -> bytes:
    """As `store_of`, and nothing is written, whatever was left of a creation; `still` is that of a File."""
    return _store_in(path, read_only=True, still=still)


def _store_in(path: Path, *, read_only: bool, still: bool = False) -> bytes:
    datastore = Datastore(File(path / FILE, LogDamaged, read_only=read_only, still=still))
    try:
        if not (path / FILE).is_file() or datastore.rows("SELECT count(*) FROM sqlite_master") == [(0,)]:
            raise NotFound(
                f"There is no store in {str(path)!r}. Create one with `tallystick init` or Memory.open({str(path)!r})."
            )
        form, store = settings.read_setting(datastore, "format"), settings.read_setting(datastore, "store")
    finally:
        datastore.close()
    if form is None or store is None:
        raise LogDamaged(f"{path / FILE} does not say which store it is. {LogDamaged.remedy}")
    check_format(path, form)
    return store


def check_format(path: Path, form: bytes | None) -> None:
    """Raise StoreIsNewer for a store format above the one this release writes, Refused for one below it."""
    number = int.from_bytes(form or b"", "big")
    if number > FORMAT:
        raise StoreIsNewer(
            f"{path} has store format {number} and this release knows {FORMAT}. Nothing was written: upgrade."
        )
    if number < FORMAT:
        raise Refused(
            f"{path} has store format {number}, and this release has no way from there to its own, {FORMAT}. Nothing "
            f"was changed. Use a release that reads format {number}."
        )


@contextmanager
def _creating(path: Path) -> Iterator[None]:
    """Hold the lock that lets one process make a store in this directory. The lock file is the directory's own."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _undo_creation(path: Path, keys: Keys) -> None:
    """Delete what was written of a store that could not be made; its keys only once nothing is left to go by them."""
    for suffix in ("-wal", "-shm", "-journal", ""):
        (path / f"{FILE}{suffix}").unlink(missing_ok=True)
    if not keys.place.given:
        keys.place.remove()


def write_store(path: Path, store: bytes, keys: Keys) -> None:
    """Write log.db, its tables, settings and the first event of both logs, in one transaction."""
    datastore = Datastore(File(path / FILE, LogDamaged))
    commits = GroupCommit(datastore, lambda _: None)

    def write(cursor: Any) -> None:
        for statement in SCHEMA:
            cursor.execute(statement)
        settings.write_setting(cursor, "format", FORMAT.to_bytes(4, "big"))
        settings.write_setting(cursor, "store", store)
        for number, name in enumerate(LOGS):
            event = _log_created(store, name, keys)
            nonce = event.nonce or b""
            identity = Identity(name, number, origin_of(keys.root.public, name, nonce), keys.writer.public)
            log = Log(datastore, identity, commits, keys.writer, keys)
            log.begin(cursor, Draft(stream_of(log.origin, nonce), 0, event))

    try:
        commits.run(write)
    finally:
        datastore.close()


def _log_created(store: bytes, name: str, keys: Keys) -> LogCreated:
    nonce = secrets.token_bytes(16)
    origin = origin_of(keys.root.public, name, nonce)
    return LogCreated(
        recorded_at=time.time_ns() // 1000,
        actor="tallystick",
        nonce=nonce,
        log=name,  # type: ignore[arg-type]
        store=store,
        root=keys.root.public,
        writer=keys.writer.public,
        checkpoint=keys.log.public,
        kek=key_id(keys.kek),
        index=key_id(keys.index),
        root_signature=keys.root.sign(_ROOT_CONTEXT + origin + keys.writer.public + keys.log.public),
        writer_signature=keys.writer.sign(_POSSESSION_CONTEXT + origin),
        checkpoint_signature=keys.log.sign(_POSSESSION_CONTEXT + origin),
    )


def root_named(cursor: Any) -> bytes:
    """The root public key that the first entry of the memory log names, proven by nothing."""
    return _first(cursor, 0, LOGS[0])[1].root


def _first(cursor: Any, number: int, name: str) -> tuple[bytes, LogCreated]:
    """The first entry of a log, and what it says."""
    row = cursor.execute(
        "SELECT entry, body FROM entry JOIN payload USING (place) WHERE place = ?",
        (number * claims.PLACES,),
    ).fetchone()
    if row is None:
        raise LogDamaged(f"The {name} log has no first entry. {LogDamaged.remedy}", log=name, position=0)
    try:
        if read_entry(row[0]).payload_hash != payload_hash(row[1]):
            raise NotCanonical("its payload is not the one that was signed")
        created = event_from(LogCreated.KIND, LogCreated.SCHEMA, decode_body(row[1]))
    except (NotCanonical, TypeError, LogDamaged) as error:
        what = str(error).partition("\n")[0]
        raise LogDamaged(f"{name} log, position 0: {what}. {LogDamaged.remedy}", log=name, position=0) from error
    assert isinstance(created, LogCreated)
    return row[0], created


def _identity(cursor: Any, number: int, name: str, root: bytes) -> tuple[Identity, LogCreated]:
    """Who may sign a log, from its first entry, proven by the pinned root key."""
    entry, created = _first(cursor, number, name)
    origin = origin_of(root, name, created.nonce or b"")
    if not _is_proven(created, origin, root) or not is_signed_by(entry, created.writer):
        raise LogDamaged(
            f"{name} log, position 0: it was not begun by the root key {root.hex()}: either the keys given are "
            f"another store's, or the log was replaced. {LogDamaged.remedy}",
            log=name,
            position=0,
        )
    return Identity(name, number, origin, created.writer), created


def _is_proven(created: LogCreated, origin: bytes, root: bytes) -> bool:
    try:
        for public in (root, created.writer, created.checkpoint):
            admit_public_key(public)
    except ValueError:
        return False
    return (
        created.root == root
        and verify(root, _ROOT_CONTEXT + origin + created.writer + created.checkpoint, created.root_signature)
        and verify(created.writer, _POSSESSION_CONTEXT + origin, created.writer_signature)
        and verify(created.checkpoint, _POSSESSION_CONTEXT + origin, created.checkpoint_signature)
    )


def _refuse_other_keys(keys: Keys, identity: Identity, created: LogCreated) -> None:
    fitting = {
        "writer.key": keys.writer.public == identity.writer,
        "log.key": keys.log.public == created.checkpoint,
        "kek.key": key_id(keys.kek) == created.kek,
        "index.key": key_id(keys.index) == created.index,
    }
    for name, fits in fitting.items():
        if not fits:
            raise KeysMissing(
                f"{keys.place.where(name)} is not this store's key; nothing was written. {KeysMissing.remedy}"
            )


def require_fitting(path: Path, keys: Keys) -> None:
    """Raise KeysMissing or LogDamaged unless these are the keys of the store in a directory, by its first events."""
    datastore = Datastore(File(path / FILE, LogDamaged, read_only=True))
    try:
        with datastore.transaction(commit=False) as cursor:
            for number, name in enumerate(LOGS):
                _refuse_other_keys(keys, *_identity(cursor, number, name, keys.root.public))
    finally:
        datastore.close()


def mark_beside(keys: Keys, store: bytes) -> Mark | None:
    """The mark beside the keys, or in the user's own state directory where they lie in no directory to write to."""
    found = (Mark.in_directory(directory) for directory in mark_directories(keys, store))
    return next((mark for mark in found if mark is not None), None)


def marked_beside(keys: Keys, store: bytes) -> Marked:
    """What the mark says that would be used, without making or writing one."""
    first, *others = mark_directories(keys, store)
    found = NOTHING if os.access(first, os.W_OK) else next((Mark.seen(directory) for directory in others), NOTHING)
    return found if found.number else Mark.seen(first)


def mark_directories(keys: Keys, store: bytes) -> list[Path]:
    """Where the mark can be, the first that can be written to before the others."""
    beside = keys.place.directory
    return [*([beside] if beside is not None else []), state_directory(store)]
