"""Verify a store: every entry, root, hash, signature, key and claim, and the views against a rebuild."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from ..errors import LogBehindMark, LogDamaged, ViewsDamaged
from ..events import recorder
from ..events.checkpoint import BadNote, Checkpoint, open_note
from ..events.claims import command_tag, content_tag, key_tag
from ..events.installation import Installation
from ..events.kinds import LogCreated
from ..events.log import Log
from ..events.mapper import LoggedEvent
from ..events.merkle import Frontier
from ..projections.record import fold
from ..projections.vectors import VectorCache
from ..projections.views import GROUPS, ViewsInForce, building

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
    logs = tuple(_verify_log(installation, log, depth, progress) for log in installation.logs)
    return Report(depth, logs, compare_views(installation, views) if views is not None else {})


def compare_views(installation: Installation, views: ViewsInForce) -> dict[str, str]:
    """The digest of each view, the same live and rebuilt from the log. Raises ViewsDamaged where one differs."""
    live = views.opened()
    live.check_pages()
    vectors = VectorCache(installation)
    try:
        vectors.check_pages()
    finally:
        vectors.close()
    with building(installation) as fresh:
        for group in GROUPS:
            live.catch_up(group)
            fresh.catch_up(group)
        digests, expected = live.digests(), fresh.digests()
    wrong = [name for name in expected if digests[name] != expected[name]]
    if wrong:
        raise ViewsDamaged(f"The view `{wrong[0]}` is not what the log adds up to. {ViewsDamaged.remedy}")
    return digests


def _verify_log(installation: Installation, log: Log, depth: Depth, progress: Progress) -> LogReport:
    opens = depth == "full" and installation.keys is not None
    tip, payloads, roots = recorder.START, 0, {}
    checkpoints = _checkpoints(installation, log)
    with installation.datastore.transaction(commit=False) as cursor:
        size = log.recorder.size(cursor)
        _require_mark(installation, log, size)
        state = _Holdings(installation, log)
        for read, tip in log.recorder.walk(cursor, tip, size, signed=depth == "full"):
            if tip.size in checkpoints:
                roots[tip.size] = tip.frontier.root()
            if opens:
                state.take(log.open_read(read))
                payloads += 1
            if tip.size % 1000 == 0:
                progress(log.name, tip.size, size)
        if opens:
            state.compare(cursor)
    _compare_mark(installation, log, tip.frontier, roots)
    for at, checkpoint in checkpoints.items():
        if roots.get(at) != checkpoint.root:
            raise log.recorder.damaged(at - 1, "the signed checkpoint of this size has another root")
    signatures = tip.size if depth == "full" else 0
    return LogReport(log.name, tip.size, tip.frontier.root().hex(), signatures, payloads, len(checkpoints))


class _Holdings:
    """What the events say must be in the tables beside them: data keys and claims."""

    def __init__(self, installation: Installation, log: Log) -> None:
        self._index = installation.keys.index if installation.keys else b""
        self._log = log
        self._streams: dict[bytes, list[LoggedEvent]] = {}
        self._sealed: set[bytes] = set()
        self._commands: dict[bytes, bytes] = {}

    def take(self, logged: LoggedEvent) -> None:
        """Note what one event says."""
        stream = logged.header.stream
        if not logged.event.CLEAR:
            self._sealed.add(stream)
        if self._log.name == "memory":
            self._streams.setdefault(stream, []).append(logged)

    def compare(self, cursor: Any) -> None:
        """Raise LogDamaged where the tables say otherwise."""
        streams = set(self._log.data_keys(cursor))
        for stream in sorted(self._sealed ^ streams):
            raise LogDamaged(
                f"The data key of stream {stream.hex()} is missing or not accounted for. {LogDamaged.remedy}"
            )
        if self._log.name == "memory":
            self._compare_claims(cursor)

    def _compare_claims(self, cursor: Any) -> None:
        held = dict(cursor.execute("SELECT tag, stream FROM claim LEFT JOIN entry USING (place)").fetchall())
        expected: dict[bytes, bytes] = {}
        for stream, events in self._streams.items():
            expected |= {tag: stream for tag in self._claims_of(events)}
        for tag in sorted(set(held) | set(expected)):
            if held.get(tag) != expected.get(tag):
                raise LogDamaged(f"The claim {tag.hex()} is not held as the events say. {LogDamaged.remedy}")

    def _claims_of(self, events: list[LoggedEvent]) -> list[bytes]:
        record = fold(events)
        if record is None:
            return []
        tags = [command_tag(self._index, record.namespace, logged.event.command_id) for logged in events]
        if record.status == "current":
            tags += [content_tag(self._index, record.stored), key_tag(self._index, record.stored)]
        return [tag for tag in tags if tag is not None]


def _checkpoints(installation: Installation, log: Log) -> dict[int, Checkpoint]:
    """The signed checkpoints of a log, each opened with the checkpoint key its first event names."""
    created = log.event_at(0).event
    assert isinstance(created, LogCreated)
    with installation.datastore.transaction(commit=False) as cursor:
        rows = cursor.execute(
            "SELECT size, note FROM checkpoint WHERE log = ? ORDER BY size", (log.recorder.identity.number,)
        ).fetchall()
    found = {}
    for size, note in rows:
        try:
            checkpoint = open_note(note.decode(), log.origin.hex(), created.checkpoint)
        except (BadNote, UnicodeDecodeError, AttributeError) as error:
            raise LogDamaged(
                f"{log.name} log: the checkpoint of size {size} does not open: {error}. {LogDamaged.remedy}"
            ) from error
        if checkpoint.size != size or checkpoint.origin != log.origin.hex():
            raise LogDamaged(
                f"{log.name} log: the checkpoint of size {size} is one of size {checkpoint.size}. {LogDamaged.remedy}"
            )
        found[size] = checkpoint
    return found


def _require_mark(installation: Installation, log: Log, size: int) -> None:
    marked = _marked(installation, log)
    if marked is not None and size < marked.size:
        raise LogBehindMark(
            f"The {log.name} log has {size} entries and this installation has verified {marked.size}: it was cut, or an "
            f"older copy was put in its place. {LogDamaged.remedy}",
            log=log.name,
            position=size,
        )


def _compare_mark(installation: Installation, log: Log, frontier: Frontier, roots: dict[int, bytes]) -> None:
    marked = _marked(installation, log)
    if marked is not None and marked.size == frontier.size and marked.root() != frontier.root():
        raise log.recorder.damaged(frontier.size - 1, "the log is not the one this installation verified before")


def _marked(installation: Installation, log: Log) -> Frontier | None:
    return None if installation.mark is None else installation.mark.read().frontiers.get(log.origin)
