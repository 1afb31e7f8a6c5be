"""Commands that wait at the same time share one transaction; each of them stands or fails alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from eventsourcing.persistence import IntegrityError

from tallystick.errors import LogDamaged, RevisionConflict, Unavailable
from tallystick.events import commit, settings
from tallystick.events.commit import GroupCommit
from tallystick.events.driver import Datastore, File
from tallystick.events.entries import Tip
from tallystick.events.installation import Installation
from tallystick.events.log import Append
from tallystick.events.mark import Mark

from .conftest import Place, forgotten, read, store

FOLLOWERS = 7
PATIENCE = 5.0


class Counting(Datastore):
    """A datastore that keeps count of its transactions, and of those that waited for the disk."""

    def __init__(self, file: File) -> None:
        super().__init__(file)
        self.waits: list[bool] = []

    @contextmanager
    def transaction(self, *, commit: bool, durable: bool | None = None) -> Iterator[Any]:
        """Count, and go on."""
        with super().transaction(commit=commit, durable=durable) as cursor:
            yield cursor
        if commit:
            self.waits.append(durable is not False)


class Witness:
    """A member of the transactions that remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.pending = 0

    def begin(self) -> int:
        """What to go back to."""
        return self.pending

    def reached(self) -> int:
        """Up to where it is on the disk once the transaction is."""
        return self.pending

    def latest(self) -> int:
        """It counts instead of reading a clock."""
        return self.pending

    def back_to(self, pending: int | None) -> None:
        """A part failed."""
        self.pending = pending or 0
        self.told.append(f"back to {pending}")

    def committed(self) -> None:
        """All is well."""
        self.told.append(f"committed {self.pending}")
        self.pending = 0


class Group:
    """A group commit over a table of numbers, with what it did on record."""

    def __init__(self, path: Path) -> None:
        self.datastore = Counting(File(path, LogDamaged))
        with self.datastore.transaction(commit=True) as cursor:
            cursor.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, body BLOB) STRICT")
            cursor.execute(settings.SCHEMA[0])
            settings.write_setting(cursor, "format", b"\0\0\0\1")
        self.durable: list[list[int]] = []
        self.commits = GroupCommit(self.datastore, lambda _: self.durable.append(self.numbers()))
        self.witness = Witness()
        self.commits.join(self.witness)
        self.datastore.waits.clear()

    def numbers(self) -> list[int]:
        """What is committed."""
        return [n for (n,) in self.datastore.rows("SELECT n FROM t ORDER BY n")]

    def insert(self, n: int, error: Exception | None = None) -> Callable[[Any], int]:
        """A part that inserts a number, or fails after it did."""

        def part(cursor: Any) -> int:
            cursor.execute("INSERT INTO t (n) VALUES (?)", (n,))
            self.witness.pending += 1
            if error is not None:
                raise error
            return n

        return part

    @contextmanager
    def together(self, parts: list[Callable[[Any], int]], *, durable: bool = True) -> Iterator[list[Future[int]]]:
        """Run parts that all come while another command is being committed; yields what becomes of each."""
        entered, leave = threading.Event(), threading.Event()

        def first(cursor: Any) -> int:
            entered.set()
            leave.wait(PATIENCE)
            return self.insert(1000)(cursor)

        with ThreadPoolExecutor(len(parts) + 1) as pool:
            leading = pool.submit(self.commits.run, first)
            assert entered.wait(PATIENCE)
            futures = [pool.submit(self.commits.run, part, durable=durable) for part in parts]
            until = time.monotonic() + PATIENCE
            while len(self.commits._waiting) < len(parts) and time.monotonic() < until:
                time.sleep(0.001)
            leave.set()
            assert leading.result() == 1000
            yield futures


@pytest.fixture
def group(tmp_path: Path) -> Iterator[Group]:
    """A group commit over a fresh file."""
    made = Group(tmp_path / "log.db")
    yield made
    made.commits.close()
    made.datastore.close()


def test_a_lone_command_is_committed_by_itself(group: Group) -> None:
    """One transaction, one wait for the disk, and then the mark may move."""
    assert group.commits.run(group.insert(1)) == 1
    assert group.datastore.waits == [True]
    assert group.durable == [[1]]
    assert group.witness.told == ["committed 1"]


def test_a_lone_command_does_not_wait(group: Group) -> None:
    """Nobody waits for company, which would be up to the 100 ms of grouped commits."""
    seconds = []
    for n in range(20):
        began = time.perf_counter()
        group.commits.run(group.insert(n), durable=False)
        seconds.append(time.perf_counter() - began)
    assert median(seconds) < commit.GROUPED_SECONDS / 4


def test_concurrent_commands_share_one_transaction(group: Group) -> None:
    """What comes while another command is being committed goes into one transaction, with one wait for the disk."""
    with group.together([group.insert(n) for n in range(FOLLOWERS)]) as futures:
        assert [future.result() for future in futures] == list(range(FOLLOWERS))
    assert group.datastore.waits == [True, True]
    assert group.durable == [[1000], [*range(FOLLOWERS), 1000]]
    assert group.witness.told == ["committed 1", f"committed {FOLLOWERS}"]


@pytest.mark.parametrize("error", [RevisionConflict("somebody was faster"), IntegrityError("taken")])
@pytest.mark.parametrize("place", [0, 3, FOLLOWERS - 1])
def test_the_conflict_of_one_fails_only_that_one(group: Group, place: int, error: Exception) -> None:
    """What it had written is undone; the others commit, in the same transaction."""
    parts = [group.insert(n, error if n == place else None) for n in range(FOLLOWERS)]
    with group.together(parts) as futures:
        for n, future in enumerate(futures):
            if n == place:
                with pytest.raises(type(error)):
                    future.result()
            else:
                assert future.result() == n
    assert group.datastore.waits == [True, True]
    assert group.numbers() == [*(n for n in range(FOLLOWERS) if n != place), 1000]
    assert group.witness.told[-1] == f"committed {FOLLOWERS - 1}"


def test_a_driver_error_of_one_fails_only_that_one(group: Group) -> None:
    """A duplicate that SQLite finds is one command's trouble, and is raised as what it means."""
    with group.together([group.insert(n) for n in (1, 2, 1, 3)]) as futures:
        results = [future.exception() for future in futures]
    assert sum(result is None for result in results) == 3
    assert [type(result) for result in results if result] == [IntegrityError]
    assert group.numbers() == [1, 2, 3, 1000]


def test_where_all_fail_nothing_is_written(group: Group) -> None:
    """Each is told its own reason."""
    reasons = [RevisionConflict(f"reason {n}") for n in range(3)]
    with group.together([group.insert(n, reason) for n, reason in enumerate(reasons)]) as futures:
        assert [future.exception() for future in futures] == reasons
    assert group.numbers() == [1000]


def test_a_lone_conflict_is_rolled_back(group: Group) -> None:
    """Nothing of it stays, the logs are told, and the next command goes on."""
    with pytest.raises(RevisionConflict):
        group.commits.run(group.insert(1, RevisionConflict("no")))
    assert group.witness.told == ["back to None"]
    assert group.durable == []
    assert group.commits.run(group.insert(2)) == 2
    assert group.numbers() == [2]


def test_an_unexpected_error_of_a_lone_command_is_its_own(group: Group) -> None:
    """It is not hidden behind an error of ours."""
    with pytest.raises(ZeroDivisionError, match="a mistake"):
        group.commits.run(group.insert(1, ZeroDivisionError("a mistake")))
    assert group.numbers() == []
    assert group.commits.run(group.insert(2)) == 2


def test_an_unexpected_error_breaks_the_transaction_and_says_so(group: Group) -> None:
    """No part stays half written: the culprit gets its own error, the others are told that nothing was written."""
    with group.together([group.insert(0), group.insert(1, ZeroDivisionError("a mistake")), group.insert(2)]) as futures:
        errors = [future.exception() for future in futures]
    assert group.numbers() == [1000]
    assert [type(error) for error in errors] == [Unavailable, ZeroDivisionError, Unavailable]
    assert group.commits.run(group.insert(3)) == 3


def fill(cursor: Any) -> int:
    """A part that needs more room than there is."""
    cursor.execute("INSERT INTO t VALUES (2000, zeroblob(2000000))")
    return 2000


def limit(group: Group, pages: int) -> None:
    """Leave this much room in the file, for every connection that may write."""
    with group.datastore.transaction(commit=True) as cursor:
        cursor.execute(f"PRAGMA max_page_count={cursor.execute('PRAGMA page_count').fetchone()[0] + pages}")
    group.datastore.waits.clear()


def test_a_full_disk_is_no_damage(group: Group) -> None:
    """A command alone, and commands in a group, are told that there is no room, and nothing of them stays."""
    limit(group, 8)
    with pytest.raises(Unavailable, match="no room left"):
        group.commits.run(fill)
    with group.together([group.insert(1), fill, group.insert(2)]) as futures:
        errors = [future.exception() for future in futures]
    assert isinstance(errors[1], Unavailable)
    assert "no room left" in str(errors[1])
    assert {type(error) for error in (errors[0], errors[2])} <= {type(None), Unavailable}
    kept = [n for n, error in ((1, errors[0]), (2, errors[2])) if error is None]
    assert group.numbers() == [*kept, 1000]
    assert group.commits.run(group.insert(3)) == 3


# ---- commits that need not wait for the disk


def until(condition: Callable[[], bool], seconds: float = PATIENCE) -> float:
    """How long it takes until a condition holds; the test fails where it takes too long."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds
        time.sleep(0.002)
    return time.monotonic() - began


def test_a_grouped_commit_is_durable_within_100_ms(group: Group) -> None:
    """It is committed at once without waiting for the disk, and flushed by a timer soon after."""
    group.commits.run(group.insert(1), durable=False)
    assert (group.numbers(), group.datastore.waits, group.durable) == ([1], [False], [])
    seconds = until(lambda: bool(group.durable))
    assert commit.GROUPED_SECONDS == 0.1
    assert seconds < 0.1 + 0.9  # a busy machine's threads start late
    assert group.datastore.waits == [False, True]
    assert group.durable == [[1]]


def test_many_grouped_commits_share_one_flush(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are within the time."""
    monkeypatch.setattr(commit, "GROUPED_SECONDS", 0.5)
    for n in range(20):
        group.commits.run(group.insert(n), durable=False)
    assert group.durable == []
    until(lambda: bool(group.durable))
    assert group.datastore.waits == [False] * 20 + [True]


def test_a_durable_commit_takes_the_grouped_ones_with_it(group: Group) -> None:
    """They are on the disk with it, and no flush follows."""
    group.commits.run(group.insert(1), durable=False)
    group.commits.run(group.insert(2))
    time.sleep(3 * commit.GROUPED_SECONDS)
    assert group.datastore.waits == [False, True]
    assert group.durable == [[1, 2]]


def test_one_durable_command_makes_its_whole_group_durable(group: Group) -> None:
    """A group waits for the disk if any of its members does."""
    with group.together([group.insert(1), group.insert(2)], durable=False) as futures:
        assert [future.result() for future in futures] == [1, 2]
    assert group.datastore.waits[:2] == [True, False]


def test_closing_flushes_what_was_grouped(group: Group) -> None:
    """And leaves no timer behind."""
    group.commits.run(group.insert(1), durable=False)
    threads = threading.active_count()
    group.commits.close()
    assert group.durable == [[1]]
    until(lambda: threading.active_count() < threads)


def test_closing_with_nothing_to_flush_writes_nothing(group: Group) -> None:
    """No wait for the disk without a reason."""
    group.commits.run(group.insert(1))
    group.commits.close()
    assert group.datastore.waits == [True]


def test_a_flush_that_fails_is_raised_by_the_next_command(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes wrong on the timer's thread is not lost."""

    def broken(_cursor: Any) -> None:
        raise Unavailable("the disk is gone")

    monkeypatch.setattr(commit, "_touch", broken)
    group.commits.run(group.insert(1), durable=False)
    until(lambda: len([t for t in threading.enumerate() if isinstance(t, threading.Timer)]) == 0)
    with pytest.raises(Unavailable, match="the disk is gone"):
        group.commits.run(group.insert(2))
    assert group.commits.run(group.insert(2)) == 2


# ---- the logs in a group


def test_the_mark_moves_only_after_durable_commits(installation: Installation) -> None:
    """It is never ahead of what is on the disk, for either log."""
    assert installation.mark is not None
    mark, memory, access = installation.mark, installation.memory, installation.access

    def marked() -> list[int]:
        frontiers = mark.read().frontiers
        return [frontiers[log.origin].size if log.origin in frontiers else 0 for log in (memory, access)]

    store(memory, "one")
    assert marked() == [2, 1]
    read(access)
    assert (marked(), access.tip.size) == ([2, 1], 2)
    until(lambda: marked() == [2, 2])
    read(access)
    read(access)
    assert marked() == [2, 2]
    store(memory, "two")
    assert marked() == [3, 4]
    frontiers = mark.read().frontiers
    assert {log.origin: log.tip.frontier.root() for log in installation.logs} == {
        origin: frontier.root() for origin, frontier in frontiers.items()
    }


def test_the_mark_is_not_moved_by_what_another_process_has_not_flushed(
    place: Place, installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that takes in another's grouped commit, just as the mark is about to move, does not take it there."""
    monkeypatch.setattr(commit, "GROUPED_SECONDS", 60.0)
    other = place.open()
    assert installation.mark is not None
    move = installation.commits._on_durable

    def interleaved(reached: Sequence[Tip]) -> None:
        read(other.access)
        installation.access.follow()
        move(reached)

    monkeypatch.setattr(installation.commits, "_on_durable", interleaved)
    store(installation.memory, "durable")
    assert installation.access.tip.size == 2
    frontiers = installation.mark.read().frontiers
    assert [frontiers[log.origin].size for log in installation.logs] == [2, 1]
    other.abandon()


def test_the_mark_does_not_move_with_a_command_that_fails(installation: Installation) -> None:
    """Nor does the tip."""
    assert installation.mark is not None
    stream = store(installation.memory, "one")
    before = installation.mark.read()
    with pytest.raises(RevisionConflict):
        installation.memory.append(Append((installation.memory.following(stream, forgotten(), 7),)))
    assert installation.mark.read() == before
    assert installation.memory.tip.size == 2


def test_concurrent_appends_are_one_chain(installation: Installation) -> None:
    """Events of one group follow each other, and so do those of the next; the log verifies as a whole."""
    with ThreadPoolExecutor(8) as pool:
        streams = list(pool.map(lambda n: store(installation.memory, f"text {n}"), range(80)))
    positions = [installation.memory.events_of(stream)[0].header.position for stream in streams]
    assert sorted(positions) == list(range(1, 81))
    assert installation.memory.tip.size == 81
    assert installation.memory.follow() == installation.memory.tip


def test_a_timer_that_comes_late_touches_nothing(
    place: Place, installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its thread may have begun before it was stopped, and go on while the files are being closed."""
    late: list[threading.Thread] = []
    closing, moving, closed = threading.Event(), threading.Event(), threading.Event()
    advance, checkpoints, release = Mark.advance, Installation._checkpoints, Mark.release

    class Late(threading.Timer):
        """A timer whose thread is held up after its time has come, until the store is nearly closed."""

        def run(self) -> None:
            late.append(self)
            closing.wait(PATIENCE)
            self.function()

    def move(mark: Mark, frontiers: Any) -> None:
        if threading.current_thread() in late:
            moving.set()
            closed.wait(PATIENCE)
        advance(mark, frontiers)

    def near_the_end(opened: Installation) -> int:
        closing.set()
        moving.wait(0.2)
        return checkpoints(opened)

    def end(mark: Mark) -> None:
        release(mark)
        closed.set()

    monkeypatch.setattr(commit, "Timer", Late)
    opened = place.open()
    read(opened.access)
    for of, name, instead in (
        (Mark, "advance", move), (Installation, "_checkpoints", near_the_end), (Mark, "release", end)
    ):  # fmt: skip
        monkeypatch.setattr(of, name, instead)
    opened.close({})
    for thread in late:
        thread.join(PATIENCE)
    assert late
    assert not moving.is_set()


def test_no_thread_dies_when_a_store_is_closed_while_it_flushes(
    place: Place, installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A timer that fires at the moment of closing finds nothing to do, or is waited for."""
    monkeypatch.setattr(commit, "GROUPED_SECONDS", 0.002)
    for n in range(40):
        opened = place.open()
        read(opened.access)
        time.sleep(n % 8 / 2000)
        opened.close({})
