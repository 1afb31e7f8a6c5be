"""Verify a store: every entry, root, hash, signature, key and claim, and the views against a rebuild."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from ..errors import LogBehindMark, LogDamaged, Refused, ViewsDamaged
from ..events.checkpoint import BadNote, Checkpoint, open_note
from ..events.claims import command_tag, held_tags, renamed_tag
from ..events.entries import START
from ..events.installation import Installation
from ..events.kinds import Event, Imported, LogCreated, NamespaceRenamed, Reinforced, Revised, Stored
from ..events.log import Log
from ..events.mapper import LoggedEvent
from ..events.merkle import Frontier
from ..events.portable import told
from ..events.schema import differences, strays
from ..projections.aliases import after
from ..projections.record import Status, fold, status_after
from ..projections.vector_cache import VectorCache
from ..projections.views import ViewsInForce, building

Depth = Literal["structure", "full"]
Progress = Callable[[str, int, int], None]


class LogReport(NamedTuple):
    """What was checked of one log: entries, signatures and opened payloads, and the root they come to."""

    log: str
    size: int
    root: str
    signatures: int
    payloads: int
    checkpoints: int


class Report(NamedTuple):
    """What was checked, all of it right. `views` is each view's digest, equal live and rebuilt, where asked for."""

    depth: Depth
    logs: tuple[LogReport, ...]
    views: dict[str, str]


def quiet(_what: str, _done: int, _of: int) -> None:
    """Show no progress."""


def verify(
    installation: Installation, *, depth: Depth = "full", views: ViewsInForce | None = None, progress: Progress = quiet
) -> Report:
    """Check the logs, and the views against a rebuild where they are given.

    Without the secret keys payloads stay closed: all but commitments, bodies and claims is checked. Raises
    LogDamaged or LogBehindMark with the first bad position, ViewsDamaged naming the view.
    """
    if depth not in ("structure", "full"):
        raise Refused(f"depth is {depth!r}: give `structure` or `full`.")
    _check_file(installation, depth)
    logs = tuple(_verify_log(installation, log, depth, progress) for log in installation.logs)
    _check_beside(installation)
    return Report(depth, logs, compare_views(installation, views) if views is not None else {})


def compare_views(installation: Installation, views: ViewsInForce) -> dict[str, str]:
    """The digest of each view, the same live and rebuilt from the log. Raises ViewsDamaged where one differs."""
    views.opened().check_pages()
    vectors = VectorCache(installation)
    try:
        vectors.check_pages()
    finally:
        vectors.close()
    with building(installation) as fresh:
        digests, expected = views.compared_with(fresh)
    wrong = [name for name in expected if digests[name] != expected[name]]
    if wrong:
        raise ViewsDamaged(f"The view `{wrong[0]}` is not what the log adds up to. {ViewsDamaged.remedy}")
    return digests


def verify_holdings(installation: Installation) -> None:
    """Open every event, and compare what they say with the data keys and the claims. Raises LogDamaged."""
    for log in installation.logs:
        holdings = _Holdings(installation, log)
        with installation.datastore.transaction(commit=False) as cursor:
            for logged, _ in log.opened(cursor):
                holdings.take(logged)
            holdings.compare(cursor)


def _check_file(installation: Installation, depth: Depth) -> None:
    """Raise LogDamaged where log.db is not sound as a file."""
    with installation.datastore.transaction(commit=False) as cursor:
        found = cursor.execute("PRAGMA integrity_check(1)").fetchone()[0] if depth == "full" else "ok"
    _require_none(installation, [found] if found != "ok" else [])


def _check_beside(installation: Installation) -> None:
    """Raise LogDamaged where log.db is not made as we make it, holds what is of no log, or has lost checkpoints."""
    with installation.datastore.transaction(commit=False) as cursor:
        _require_none(installation, differences(cursor) or strays(cursor, len(installation.logs)))
    missing = installation.missing_checkpoints()
    _require_none(installation, [f"{missing} signed checkpoints are gone that it had when closed"] if missing else [])


def _require_none(installation: Installation, wrong: Sequence[str]) -> None:
    if wrong:
        raise LogDamaged(f"{installation.datastore.file.path.name} is damaged: {wrong[0]}. {LogDamaged.remedy}")


def _verify_log(installation: Installation, log: Log, depth: Depth, progress: Progress) -> LogReport:
    opens = depth == "full" and installation.keys is not None
    checkpoints, holdings = _checkpoints(installation, log), _Holdings(installation, log)
    marked = _marked(installation, log)  # read before the log is, so that it can't be ahead of what is read
    tip, roots = START, {}
    with installation.datastore.transaction(commit=False) as cursor:
        size = log.recorder.size(cursor)
        walk = log.opened(cursor) if opens else log.recorder.walk(cursor, tip, size, signed=depth == "full")
        for done, (found, tip) in enumerate(walk, 1):
            if done in checkpoints or done == marked.size:
                roots[done] = tip.frontier.root()
            if isinstance(found, LoggedEvent):
                holdings.take(found)
            if done % 1000 == 0:
                progress(log.name, done, size)
        _compare_mark(log, marked, size, roots)
        _compare_checkpoints(log, checkpoints, roots)
        if opens:
            holdings.compare(cursor)
    signatures, payloads = tip.size if depth == "full" else 0, tip.size if opens else 0
    return LogReport(log.name, tip.size, tip.frontier.root().hex(), signatures, payloads, len(checkpoints))


# By place, so that each page of entries is read once: tags are in no order that entries know.
_HELD = "SELECT tag, stream FROM (SELECT tag, place FROM claim ORDER BY place) LEFT JOIN entry USING (place)"


class _Holdings:
    """What the events say must be in the tables beside them: data keys and claims."""

    def __init__(self, installation: Installation, log: Log) -> None:
        self._index = installation.keys.index if installation.keys else b""
        self._log = log
        self._sealed: set[int] = set()
        self._memories: dict[bytes, _Holder] = {}
        self._commands: dict[bytes | None, bytes] = {}
        self._revised: dict[bytes, int] = {}
        self._names: dict[str, str] = {}
        self._renames: dict[str, bytes] = {}

    def take(self, logged: LoggedEvent) -> None:
        """Note what one event says."""
        stream, event = logged.header.stream, logged.event
        if logged.header.revision == 0 and not event.CLEAR:
            self._sealed.add(logged.header.position)
        if isinstance(event, NamespaceRenamed):
            self._rename(stream, event)
        if isinstance(event, Stored) and self._log.name == "memory":
            named = (event.namespace, event.key, event.subject, event.thread)
            self._memories[stream] = _Holder(*named, self._tags(event), "current")
        elif (holder := self._memories.get(stream)) is not None:
            self._memories[stream] = holder._replace(status=status_after(holder.status, event))
        if event.command_id is not None and stream in self._memories:
            self._take_command(stream, event)
        if isinstance(event, Imported):
            self._take_import(stream, logged.header.revision, event)
        if isinstance(event, Revised):
            self._revise(stream, event, logged.header.revision)

    def _revise(self, stream: bytes, event: Revised, revision: int) -> None:
        """What a revised memory claims, by its new text; where its subject is new as well, both are read at the end."""
        holder = self._memories.get(stream)
        subject = event.subject is not None or "subject" in event.cleared
        if subject or stream in self._revised or holder is None:
            self._revised[stream] = revision
        elif event.text is not None:
            said = {name: getattr(holder, name) for name in ("namespace", "key", "subject", "thread")}
            tags = self._tags(Stored.model_construct(text=event.text, **said))
            self._memories[stream] = holder._replace(tags=tags)

    def _take_command(self, stream: bytes, event: Event) -> None:
        name = self._memories[stream].namespace
        if isinstance(event, Reinforced):  # claimed by who stored, under the name the namespace had by then
            name = self._names.get(name, name)
        self._commands[command_tag(self._index, name, event.command_id)] = stream

    def _take_import(self, stream: bytes, revision: int, event: Imported) -> None:
        """What came in holds what it told of as long as nobody here held it."""
        record = fold(self._log.events_of(stream, upto=revision))
        assert record is not None
        stored = record.stored
        named = (record.namespace, stored.key, stored.subject, stored.thread)
        self._memories[stream] = _Holder(*named, self._tags(stored), record.status)
        for each in event.events:
            tag = command_tag(self._index, record.namespace, told(each).command_id)
            if tag:
                self._commands.setdefault(tag, stream)

    def _rename(self, stream: bytes, event: NamespaceRenamed) -> None:
        self._names = after(self._names, event)
        self._renames[event.old] = stream
        self._renames.pop(event.new, None)

    def _tags(self, stored: Stored) -> tuple[bytes, ...]:
        return held_tags(self._index, stored, self._names.get(stored.namespace, stored.namespace))

    def _take_changes(self, cursor: Any) -> None:
        """What was revised or renamed claims what it says in the end, under the name it has in the end."""
        moved = [stream for stream, holder in self._memories.items() if holder.namespace in self._names]
        for stream in dict.fromkeys([*self._revised, *moved]):
            record = fold(self._log.events_within(cursor, stream, self._revised.get(stream)))
            if record is not None:
                self._memories[stream] = self._memories[stream]._replace(tags=self._tags(record.stored))

    def compare(self, cursor: Any) -> None:
        """Raise LogDamaged where the tables say otherwise."""
        for position in sorted(self._sealed ^ self._log.positions_with_key(cursor)):
            raise self._log.recorder.damaged(position, "the data key there is missing or not accounted for")
        if self._log.name == "memory":
            self._compare_claims(cursor)

    def _compare_claims(self, cursor: Any) -> None:
        self._take_changes(cursor)
        held = dict(cursor.execute(_HELD).fetchall())
        current = {s: holder for s, holder in self._memories.items() if holder.status == "current"}
        expected = self._commands | {tag: s for s, holder in current.items() for tag in holder.tags}
        expected |= {renamed_tag(self._index, name): stream for name, stream in self._renames.items()}
        if held != expected:
            tag = min((tag for tag, _ in held.items() ^ expected.items()), key=repr)
            name = tag.hex() if isinstance(tag, bytes) else repr(tag)
            raise _damaged(self._log, f"the claim {name} is not held as the events say")
        self._log.check_claims(cursor)


class _Holder(NamedTuple):
    """What one memory claims while it is current."""

    namespace: str
    key: str | None
    subject: str | None
    thread: str | None
    tags: tuple[bytes, ...]
    status: Status


def _checkpoints(installation: Installation, log: Log) -> dict[int, Checkpoint]:
    """The signed checkpoints of a log, each opened with the checkpoint key its first event names."""
    created = log.event_at(0).event
    assert isinstance(created, LogCreated)
    with installation.datastore.transaction(commit=False) as cursor:
        rows = cursor.execute(
            "SELECT size, note FROM checkpoint WHERE log = ? ORDER BY size", (log.recorder.identity.number,)
        ).fetchall()
    return {size: _opened(log, created, size, note) for size, note in rows}


def _opened(log: Log, created: LogCreated, size: int, note: Any) -> Checkpoint:
    name = log.origin.hex()
    try:
        checkpoint = open_note(note.decode(), name, created.checkpoint)
    except (BadNote, UnicodeDecodeError, AttributeError) as error:
        raise _damaged(log, f"the checkpoint of size {size} does not open: {error}") from error
    if (checkpoint.size, checkpoint.origin) != (size, name):
        raise _damaged(log, f"the checkpoint of size {size} is one of size {checkpoint.size}")
    return checkpoint


def _damaged(log: Log, what: str) -> LogDamaged:
    return LogDamaged(f"{log.name} log: {what}. {LogDamaged.remedy}", log=log.name)


def _compare_mark(log: Log, marked: Frontier, size: int, roots: dict[int, bytes]) -> None:
    if size < marked.size:
        raise LogBehindMark(
            f"The {log.name} log has {size} entries and this installation has verified {marked.size}: it was cut, "
            f"or an older copy was put in its place. {LogDamaged.remedy}",
            log=log.name,
            position=size,
        )
    if marked.size and roots.get(marked.size) != marked.root():
        raise log.recorder.damaged(marked.size - 1, "the log is not the one this installation verified before")


def _compare_checkpoints(log: Log, checkpoints: dict[int, Checkpoint], roots: dict[int, bytes]) -> None:
    for size, checkpoint in checkpoints.items():
        if roots.get(size) != checkpoint.root:
            raise log.recorder.damaged(size - 1, f"the signed checkpoint of size {size} has another root")


def _marked(installation: Installation, log: Log) -> Frontier:
    """What this installation has verified of a log: nothing, where there is no mark."""
    return (None if installation.mark is None else installation.mark.read().frontiers.get(log.origin)) or Frontier()
