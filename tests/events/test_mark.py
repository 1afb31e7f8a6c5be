"""The mark says up to where the logs were verified: it never moves back, and a crash leaves one good slot."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.errors import LogBehindMark, LogDamaged
from tallystick.events.mark import NOTHING, SLOT_BYTES, Mark
from tallystick.events.merkle import Frontier

MEMORY, ACCESS = b"m" * 32, b"a" * 32


def frontier(size: int, seed: int = 0) -> Frontier:
    """The frontier of a tree of so many leaves; another seed makes another history."""
    made = Frontier()
    for n in range(size):
        made = made.append(n.to_bytes(31, "big") + bytes([seed]))
    return made


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[Mark]:
    """A mark that was never written."""
    made = Mark(tmp_path)
    yield made
    made.release()


def sizes(mark: Mark) -> tuple[int, int]:
    """The sizes of the two logs that the mark says."""
    frontiers = mark.read().frontiers
    return tuple(frontiers[o].size if o in frontiers else 0 for o in (MEMORY, ACCESS))  # type: ignore[return-value]


def corrupt(directory: Path, slot: int, offset: int = 20) -> None:
    """Change one byte of a slot."""
    with (directory / "mark").open("r+b") as file:
        file.seek(slot * SLOT_BYTES + offset)
        byte = file.read(1) or b"\0"
        file.seek(slot * SLOT_BYTES + offset)
        file.write(bytes([byte[0] ^ 0xFF]))


def again(directory: Path) -> Mark:
    """The mark as another process finds it."""
    return Mark(directory)


def test_a_mark_that_was_never_written_says_nothing(mark: Mark) -> None:
    """And is no error."""
    assert mark.read() == NOTHING


def test_the_mark_is_private(mark: Mark, tmp_path: Path) -> None:
    """Its files are the owner's alone."""
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {
        "mark": 0o600,
        "held": 0o600,
    }


@pytest.mark.parametrize("name", ["mark", "held"])
def test_a_link_in_its_place_is_not_followed(tmp_path: Path, name: str) -> None:
    """Nobody can make it write elsewhere."""
    keys = tmp_path / "keys"
    keys.mkdir()
    (tmp_path / "elsewhere").write_bytes(b"precious")
    (keys / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        Mark(keys)
    assert (tmp_path / "elsewhere").read_bytes() == b"precious"


def test_what_was_marked_is_read_back(mark: Mark, tmp_path: Path) -> None:
    """Size, root and edge of each log, by this process and the next."""
    mark.advance({MEMORY: frontier(5), ACCESS: frontier(3)})
    for reader in (mark, again(tmp_path)):
        found = reader.read().frontiers
        assert {o: (f.size, f.root()) for o, f in found.items()} == {
            MEMORY: (5, frontier(5).root()),
            ACCESS: (3, frontier(3).root()),
        }


def test_the_mark_never_moves_back(mark: Mark) -> None:
    """What is not further is left as it is, log by log."""
    mark.advance({MEMORY: frontier(5), ACCESS: frontier(3)})
    mark.advance({MEMORY: frontier(4)})
    mark.advance({MEMORY: frontier(2), ACCESS: frontier(4)})
    assert sizes(mark) == (5, 4)


def test_an_unchanged_mark_is_not_written(mark: Mark) -> None:
    """Nor is its number spent."""
    mark.advance({MEMORY: frontier(5)})
    number = mark.read().number
    mark.advance({MEMORY: frontier(5)})
    mark.advance({})
    assert mark.read().number == number


def test_a_second_history_of_one_size_is_damage(mark: Mark) -> None:
    """The same number of entries with another root is another log."""
    mark.advance({MEMORY: frontier(5)})
    with pytest.raises(LogBehindMark, match="two histories"):
        mark.advance({MEMORY: frontier(5, seed=1)})
    assert mark.read().frontiers[MEMORY].root() == frontier(5).root()


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=12))
def test_it_says_the_furthest_of_all(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int]]) -> None:
    """Whatever the order in which processes move it."""
    directory = tmp_path_factory.mktemp("mark")
    marks = [Mark(directory) for _ in range(3)]
    for n, (memory, access) in enumerate(steps):
        moved = {o: frontier(s) for o, s in ((MEMORY, memory), (ACCESS, access)) if s}
        marks[n % 3].advance(moved)
    assert {sizes(mark) for mark in marks} == {
        (max((m for m, _ in steps), default=0), max((a for _, a in steps), default=0))
    }
    for mark in marks:
        mark.release()


def test_threads_with_marks_of_their_own_do_not_lose_a_step(tmp_path: Path) -> None:
    """A lock serialises the writers."""

    def work(number: int) -> None:
        own = Mark(tmp_path)
        origin = bytes([number]) * 32
        for size in range(1, 31):
            own.advance({origin: frontier(size)})
        own.release()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    found = again(tmp_path)
    assert {origin: f.size for origin, f in found.read().frontiers.items()} == {bytes([n]) * 32: 30 for n in range(6)}
    found.release()


ADVANCING = """
import sys
from pathlib import Path
from tallystick.events.mark import Mark
from tallystick.events.merkle import Frontier

mark, tree = Mark(Path(sys.argv[1])), Frontier()
for n in range(1, int(sys.argv[3]) + 1):
    tree = tree.append(n.to_bytes(32, "big"))
    mark.advance({sys.argv[2].encode() * 32: tree})
    print(n, flush=True)
"""


def test_a_process_killed_while_it_moves_the_mark_leaves_a_good_one(tmp_path: Path) -> None:
    """The mark says the last acknowledged step or the one that was under way, and the lock is free."""
    random = Random(1)
    for round_number in range(5):
        keys = tmp_path / str(round_number)
        keys.mkdir()
        process = subprocess.Popen(
            [sys.executable, "-c", ADVANCING, str(keys), "x", "100000"], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        last = process.stdout.readline()
        for _ in range(random.randrange(400)):
            last = process.stdout.readline()
        process.kill()
        last = (process.stdout.read().split() or [last])[-1]
        process.wait()
        process.stdout.close()
        mark = Mark(keys)
        assert mark.read().frontiers[b"x" * 32].size in (int(last), int(last) + 1)
        mark.advance({ACCESS: frontier(1)})
        mark.release()


# ---- slots


@pytest.mark.parametrize("slot", [0, 1])
def test_a_slot_torn_by_a_crash_leaves_the_other(mark: Mark, tmp_path: Path, slot: int) -> None:
    """The mark then says the last step or the one before, and goes on from there."""
    for size in (1, 2, 3):
        mark.advance({MEMORY: frontier(size)})
    corrupt(tmp_path, slot)
    found = again(tmp_path)
    assert sizes(found)[0] in (2, 3)
    found.advance({MEMORY: frontier(4)})
    found.advance({MEMORY: frontier(5)})
    assert sizes(again(tmp_path)) == (5, 0)
    found.release()


@pytest.mark.parametrize("steps", [2, 3])
def test_after_a_torn_slot_the_good_one_is_kept(mark: Mark, tmp_path: Path, steps: int) -> None:
    """The next step is written over the torn slot: a second crash there still leaves the good one."""
    for size in range(1, steps + 1):
        mark.advance({MEMORY: frontier(size)})
    corrupt(tmp_path, steps % 2)
    next_one = again(tmp_path)
    next_one.advance({MEMORY: frontier(10)})
    corrupt(tmp_path, steps % 2)
    assert sizes(again(tmp_path)) == (steps - 1, 0)
    next_one.release()


@given(st.data())
def test_any_one_changed_byte_leaves_the_last_step_or_the_one_before(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Never anything that was not marked, wherever in the file it is."""
    directory = tmp_path_factory.mktemp("mark")
    mark = Mark(directory)
    last = data.draw(st.integers(2, 6))
    for size in range(1, last + 1):
        mark.advance({MEMORY: frontier(size), ACCESS: frontier(size)})
    mark.release()
    content = bytearray((directory / "mark").read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    (directory / "mark").write_bytes(content)
    found = again(directory)
    assert sizes(found) in ((last, last), (last - 1, last - 1))
    found.advance({MEMORY: frontier(9)})
    assert sizes(found)[0] == 9
    found.release()


@pytest.mark.parametrize("length", [1, 8, 100, SLOT_BYTES - 1, SLOT_BYTES, SLOT_BYTES + 50])
def test_a_file_that_was_cut_says_what_is_left(mark: Mark, tmp_path: Path, length: int) -> None:
    """A whole slot counts; where none is left the mark is damaged and says what to do."""
    mark.advance({MEMORY: frontier(1)})
    mark.advance({MEMORY: frontier(2)})
    os.truncate(tmp_path / "mark", length)
    found = again(tmp_path)
    if length >= 200:  # the second step went to the first slot
        assert sizes(found) == (2, 0)
    else:
        with pytest.raises(LogDamaged, match="delete the file"):
            found.read()
    found.release()


def test_both_slots_torn_is_damage(mark: Mark, tmp_path: Path) -> None:
    """A mark that says nothing would hide that the log was cut: it is named, with what to do."""
    mark.advance({MEMORY: frontier(1)})
    mark.advance({MEMORY: frontier(2)})
    corrupt(tmp_path, 0)
    corrupt(tmp_path, 1)
    found = again(tmp_path)
    with pytest.raises(LogDamaged, match=f"The mark {tmp_path}/mark is damaged"):
        found.read()
    with pytest.raises(LogDamaged):
        found.advance({MEMORY: frontier(3)})
    with pytest.raises(LogDamaged):
        found.close({})
    found.release()


def test_a_log_of_any_size_fits_into_its_slot(mark: Mark) -> None:
    """The edge of a tree of 2**63 - 1 entries, for both logs, and what is said at the close."""
    size = 2**63 - 1
    edge = Frontier(size, [bytes([n]) * 32 for n in range(63)])
    mark.advance({MEMORY: edge, ACCESS: edge})
    mark.close({"log": [2**62] * 4, "views": ["views-12345678-12345678.db", [2**62] * 4, [2**62] * 4]})
    assert sizes(mark) == (size, size)


# ---- how the files were left


def test_what_is_said_at_the_close_is_read_at_the_next_opening(mark: Mark, tmp_path: Path) -> None:
    """With the frontiers as they are."""
    mark.advance({MEMORY: frontier(2)})
    mark.close({"log": [1, 2, 3], "views": ["name", None]})
    found = again(tmp_path)
    assert (sizes(found), found.read().closed) == ((2, 0), {"log": [1, 2, 3], "views": ["name", None]})
    found.release()


def test_a_step_takes_back_what_was_said_at_the_close(mark: Mark) -> None:
    """The files are in use again: whoever is killed now leaves nothing that would be trusted."""
    mark.advance({MEMORY: frontier(2)})
    mark.close({"log": [1, 2, 3]})
    mark.advance({MEMORY: frontier(3)})
    assert mark.read().closed == {}


# ---- who has the store open

HOLDING = """
import sys
from pathlib import Path
from tallystick.events.mark import Mark

mark = Mark(Path(sys.argv[1]))
print(mark.hold(), flush=True)
if sys.argv[2] == "share":
    mark.share()
    print("shared", flush=True)
sys.stdin.readline()
if sys.argv[3] == "release":
    mark.release()
    print("released", flush=True)
    sys.stdin.readline()
"""


def holder(directory: Path, *how: str) -> subprocess.Popen[str]:
    """Another process that holds the mark."""
    return subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(directory), *how], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def line(process: subprocess.Popen[str]) -> str:
    """What the other process says next."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize("end", ["release", "exit", "kill"])
def test_who_opens_learns_whether_it_is_alone(mark: Mark, tmp_path: Path, end: str) -> None:
    """True for the first, false while another has the store open, true again when that one is gone, however it went."""
    with holder(tmp_path, "share", "release" if end == "release" else "no") as other:
        assert (line(other), line(other)) == ("True", "shared")
        assert mark.hold() is False
        mark.share()
        assert other.stdin is not None
        if end == "kill":
            other.kill()
            other.wait()
        else:
            other.stdin.write("\n")
            other.stdin.flush()
            assert end == "exit" or line(other) == "released"
            if end == "exit":
                other.wait()
        assert mark.hold() is True
        other.kill()


def test_who_opens_waits_while_another_checks(mark: Mark, tmp_path: Path) -> None:
    """Until the first has checked the files and shares them, nobody else serves from them."""
    with holder(tmp_path, "keep", "no") as other:
        assert line(other) == "True"
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(mark.hold)
            with pytest.raises(TimeoutError):
                waiting.result(0.2)
            other.kill()
            other.wait()
            waiting.result(5)


def test_a_mark_that_is_released_holds_nothing_in_a_forked_child(tmp_path: Path) -> None:
    """A child that inherited the files keeps nobody from opening."""
    first = Mark(tmp_path)
    assert first.hold()
    inherited = os.dup(first._holding)  # what a forked child has: the same open file
    first.release()
    second = Mark(tmp_path)
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(second.hold)
        try:
            assert held.result(2) is True
        finally:
            os.close(inherited)
    second.release()


# ---- where it can't be kept, or can't be read


def test_where_no_mark_can_be_kept_there_is_none(tmp_path: Path) -> None:
    """As beside a mounted secret: the caller goes on without one, and says so."""
    (tmp_path / "file").touch()
    assert Mark.in_directory(tmp_path / "file" / "keys") is None


def test_a_mark_that_is_a_trap_is_no_missing_mark(tmp_path: Path) -> None:
    """Only a place that can't be written to may lack one; a link in its place stops the opening."""
    (tmp_path / "mark").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        Mark.in_directory(tmp_path)
    assert not (tmp_path / "elsewhere").exists()


def test_a_mark_that_can_be_opened_by_half_leaves_no_file_open(tmp_path: Path) -> None:
    """Where the second of its files can't be opened the first is closed again."""
    (tmp_path / "held").mkdir()
    before = len(os.listdir("/dev/fd"))
    for _ in range(3):
        with pytest.raises(OSError, match="directory"):
            Mark.in_directory(tmp_path)
    assert len(os.listdir("/dev/fd")) == before


def test_a_look_at_a_mark_makes_none(mark: Mark, tmp_path: Path) -> None:
    """Who only reads finds what is there, and leaves nothing behind where nothing is."""
    mark.advance({MEMORY: frontier(3)})
    assert Mark.seen(tmp_path).frontiers[MEMORY].size == 3
    assert Mark.seen(tmp_path / "nowhere") == NOTHING
    assert not (tmp_path / "nowhere").exists()


def test_a_step_that_does_not_fit_leaves_the_mark_as_it_was(mark: Mark, tmp_path: Path) -> None:
    """A slot is never written into the next one: what was marked before still counts, here and for others."""
    mark.advance({MEMORY: frontier(5)})
    edge = Frontier(2**63 - 1, [bytes([n]) * 32 for n in range(63)])
    with pytest.raises(ValueError, match="outgrew its slot"):
        mark.advance({bytes([n]) * 32: edge for n in range(8)})
    assert (sizes(mark), sizes(again(tmp_path))) == ((5, 0), (5, 0))
    mark.advance({MEMORY: frontier(6)})
    assert sizes(again(tmp_path)) == (6, 0)


@pytest.mark.parametrize("body", [b"\x81\xa4logs\x01", b"\x80", b"\xc1"], ids=["no list", "empty", "not canonical"])
def test_a_slot_of_another_shape_is_no_slot(mark: Mark, tmp_path: Path, body: bytes) -> None:
    """Its checksum holds and it says nothing: the other slot counts, and two such are damage."""
    mark.advance({MEMORY: frontier(1)})  # to the second slot
    framed = (2).to_bytes(8, "big") + len(body).to_bytes(4, "big") + body
    strange = framed + hashlib.sha256(b"tallystick/mark/v1\0" + framed).digest()
    with (tmp_path / "mark").open("r+b") as file:
        file.write(strange)
    assert sizes(again(tmp_path)) == (1, 0)
    with (tmp_path / "mark").open("r+b") as file:
        file.seek(SLOT_BYTES)
        file.write(strange)
    with pytest.raises(LogDamaged, match="delete the file"):
        again(tmp_path).read()


def test_a_mark_under_what_is_no_directory_is_none(tmp_path: Path) -> None:
    """A place where none can be kept says nothing."""
    (tmp_path / "file").touch()
    assert Mark.seen(tmp_path / "file" / "keys") == NOTHING
