"""What is the matter with log.db: the file, its tables, its entries, and what is kept beside them."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from typing import Any

from ...errors import LogBehindMark, LogDamaged, NotFound, Refused, StoreIsNewer, Unavailable
from ...events.claims import held_tags
from ...events.clock import milliseconds
from ...events.installation import FILE
from ...events.key_places import own_directories
from ...events.kinds import SnapshotTaken
from ...events.log import Log
from ...events.schema import DEFINITIONS, made
from ...projections.aliases import aliases
from ...projections.memories import newest_current
from ...projections.record import fold
from ...projections.views import RECALL, Views
from ..verify import verify_holdings
from .patient import SAMPLE, WHOLE, Patient, Sign

MOST_AHEAD_BYTES = 16 << 20
MOST_AHEAD_MS = 5 * 60 * 1000
DAY_MS = 24 * 3600 * 1000
OLD_DAYS = 30


def unreadable(patient: Patient) -> Iterator[Sign]:
    """A log.db that is no database, is cut short, or can't be opened."""
    try:
        patient.store  # noqa: B018  its reading opens the file
    except LogDamaged as damage:
        way = _back(patient)
        if patient.asked.keys is None:
            way += f" For that, name the directory of its keys with `TALLYSTICK_KEYS=DIRECTORY`: {_own_directories()}."
        yield Sign(said(damage), way)
    except (NotFound, StoreIsNewer, Refused):
        return
    except Unavailable as error:
        what, _, way = str(error).partition(" Nothing was written: ")
        yield Sign(what, f"{way[0].upper()}{way[1:]}" if way else "Try again.")


def other_format(patient: Patient) -> Iterator[Sign]:
    """A store format that this release does not know."""
    try:
        patient.store  # noqa: B018  as above
    except StoreIsNewer as error:
        yield Sign(str(error).partition(" Nothing was")[0], "Run `pip install --upgrade tallystick`.")
    except Refused as error:
        yield Sign(str(error).partition(", and ")[0] + ".", "Use a release that reads that format.")
    except (NotFound, LogDamaged, Unavailable):
        return


def changed_tables(patient: Patient) -> Iterator[Sign]:
    """Tables, indexes and triggers of log.db that are not those that were made: one that is gone guards nothing."""
    patient.store  # noqa: B018  a file that is no store's has no tables of one
    new, found = made(), {(kind, name): sql for kind, name, sql in patient.log.rows(DEFINITIONS)}
    gone = [f"{sql};" for key, sql in new.items() if found.get(key) != sql]
    added = [f"DROP {kind} {name};" for (kind, name), sql in found.items() if new.get((kind, name)) != sql]
    if gone or added:
        names = sorted({name for (_, name), _ in new.items() ^ found.items()})
        mend = shlex.quote(" ".join([*added, *gone]))
        yield Sign(
            f"In {patient.path / FILE} the definition of {', '.join(names)} is not the one that was made: somebody "
            f"has changed the file by other means.",
            f"Put them back while nobody has the store open: `sqlite3 {shlex.quote(str(patient.path / FILE))} {mend}`. "
            f"Then run {patient.run('verify')}, which tells whether that was all.",
        )


def damaged_entries(patient: Patient) -> Iterator[Sign]:
    """An entry that is missing or is not the one that was signed."""
    patient.marked  # noqa: B018  what is wrong with it is told elsewhere
    try:
        _verify(patient)
    except LogBehindMark:
        return
    except LogDamaged as damage:
        yield Sign(said(damage), _back(patient))


def behind_the_mark(patient: Patient) -> Iterator[Sign]:
    """A log that is shorter than what was verified before, or another one."""
    patient.marked  # noqa: B018  as above
    try:
        _verify(patient)
    except LogBehindMark as damage:
        what = str(damage).partition(LogDamaged.remedy)[0].partition(" Open the store")[0].strip()
        older = (
            f"If you put an older copy there, run {patient.run('recover --reason WHY')}; if not, find out who did, or "
            f"put a newer snapshot in its place: {patient.run('snapshot restore SNAPSHOT --over')}."
        )
        given_up = f"Open the store that it became; or read this one: {patient.run('recall QUERY --until POSITION')}."
        yield Sign(what, given_up if damage.position is None else older)
    except LogDamaged:
        return


def broken_holdings(patient: Patient) -> Iterator[Sign]:
    """Claims that are not held as the events say, or a data key that is gone: a command or a read trips over it."""
    _verify(patient)
    try:
        if patient.is_long():
            _sample_holdings(patient)
        else:
            verify_holdings(patient.installation)
    except LogDamaged as damage:
        yield Sign(said(damage), _back(patient))


def long_write_ahead(patient: Patient) -> Iterator[Sign]:
    """A write-ahead log that has outgrown log.db, since somebody keeps it from being taken over."""
    file, ahead = patient.path / FILE, patient.path / f"{FILE}-wal"
    size = ahead.stat().st_size if ahead.exists() else 0
    if size > max(MOST_AHEAD_BYTES, file.stat().st_size):
        yield Sign(
            f"{ahead} has {size / 1e6:,.0f} MB and {FILE} {file.stat().st_size / 1e6:,.0f} MB: a process has been "
            f"reading for long, or was killed.",
            f"Close the processes that have the store open; then {patient.run('status')} takes it over.",
        )


def ahead_of_the_clock(patient: Patient) -> Iterator[Sign]:
    """An event that is later than this machine's clock: the clock was set back, or was wrong."""
    now = time.time_ns() // 1_000_000
    newest = max(_time(log, size) for log, size in patient.sizes())
    if newest - now > MOST_AHEAD_MS:
        when = time.strftime("%Y-%m-%d %H:%M", time.gmtime(newest / 1000))
        yield Sign(
            f"The newest event is of {when} UTC, and this machine's clock shows "
            f"{time.strftime('%Y-%m-%d %H:%M', time.gmtime(now / 1000))}.",
            "Set the clock, if it is wrong. If it was wrong then, nothing mends the times that were recorded: new "
            "events follow the newest, and this ends when the clock has passed it.",
        )


def old_snapshot(patient: Patient) -> Iterator[Sign]:
    """Snapshots that were taken, and none for long."""
    log, size = patient.sizes()[0]
    with patient.log.transaction(commit=False) as cursor:
        entries = log.recorder.between(cursor, max(1, size - WHOLE), size)
    taken = [entry.header for entry in entries if entry.header.kind == SnapshotTaken.KIND]
    days = (time.time_ns() // 1_000_000 - milliseconds(taken[-1].time)) // DAY_MS if taken else 0
    if days > OLD_DAYS and taken[-1].position < size - 1:
        yield Sign(
            f"The last snapshot was taken {days} days ago, and the store has been written to since.",
            f"Run {patient.run('snapshot create DIRECTORY')}.",
        )


def said(damage: LogDamaged) -> str:
    """What an error says happened, without the way out that stands in every one."""
    return str(damage).partition(LogDamaged.remedy)[0].strip()


def _back(patient: Patient) -> str:
    return (
        f"Keep the files. Put a snapshot in its place: {patient.run('snapshot restore SNAPSHOT --over')}; or save "
        f"what verifies: {patient.run('salvage --out NEW')}."
    )


def _own_directories() -> str:
    """The directories of the user's own keys, one of which are a store's that does not say which it is."""
    return " or ".join(map(str, own_directories())) or "there is none of your own"


def _verify(patient: Patient) -> None:
    """Hold the logs against the mark, once. Raises LogDamaged or LogBehindMark, each time."""
    patient.part("verified", lambda: _hold(patient))


def _hold(patient: Patient) -> None:
    """Hold the logs against the mark: whole; or of longer ones what is new, and a sample of what is before."""
    installation, long = patient.installation, patient.is_long()
    marked = patient.marked
    if not long or marked.frontiers:
        installation.hold_against(marked, trusted=long)
    if long:
        with installation.datastore.transaction(commit=False) as cursor:
            for log, size in patient.sizes():
                _sample(cursor, log, size)


def _sample(cursor: Any, log: Log, size: int) -> None:
    """Check entries that are spread over a log, each by itself: signature, hashes and columns."""
    for position in range(0, size, max(1, size // SAMPLE)):
        if log.recorder.at(cursor, position) is None:
            raise log.recorder.damaged(position, "the entry is missing")


def _sample_holdings(patient: Patient) -> None:
    """Of long logs: each claim leads to an entry, each stream has its data key, the newest hold what they claim."""
    lost = patient.log.rows(
        "SELECT count(*) FROM claim WHERE NOT EXISTS (SELECT 1 FROM entry WHERE entry.place = claim.place)"
    )
    if lost != [(0,)]:
        raise LogDamaged(f"{lost[0][0]:,} claims are held by no entry. {LogDamaged.remedy}", log="memory")
    with patient.log.transaction(commit=False) as cursor:
        for log in patient.installation.logs:
            for position in log.begun_without_key(cursor):
                raise log.recorder.damaged(position, "the data key there is missing")
    views = patient.views
    if views is not None and views.position(RECALL, "memory") == _size(patient) - 1:
        _sample_claims(patient, views)


def _sample_claims(patient: Patient, views: Views) -> None:
    """Of a long log: that the newest memories hold what they claim."""
    log, index, size = patient.installation.memory, patient.keys.index, _size(patient)
    with views.reading() as cursor:
        names, newest = aliases(cursor), newest_current(cursor, SAMPLE // 2)
    for stream in newest:
        record = fold(patient.events_of(stream))
        tags = held_tags(index, record.stored, names.get(record.namespace, record.namespace)) if record else ()
        held = log.holders(tags)
        broken = any(tag not in held or held[tag][0] != stream for tag in tags)
        if broken and _size(patient) == size:  # nobody has changed what it holds meanwhile
            raise LogDamaged(
                f"The memory {stream.hex()} does not hold what it claims. {LogDamaged.remedy}", log=log.name
            )


def _size(patient: Patient) -> int:
    """How many entries the memory log has."""
    return patient.sizes()[0][1]


def _time(log: Log, size: int) -> int:
    return milliseconds(log.event_at(size - 1).header.time) if size else 0
