"""What goes wrong around one installation: a person is told, nothing acknowledged is lost, and there is a way on."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tallystick import Memory
from tallystick.errors import KeysMissing, LogBehindMark, LogDamaged, Refused, ViewsDamaged
from tallystick.events.clock import milliseconds
from tallystick.events.mark import Mark
from tallystick.projections.vector_cache import Made, VectorCache

from .conftest import Place, Start, Worker

WORKER = Path(__file__).with_name("disk_worker.py")
DAY = 24 * 3600
UNWRITABLE = "can't be written to"


def spoken(worker: Worker) -> dict[str, list[Any]]:
    """What a worker said last under each name, once it has ended well."""
    return {line[0]: line[1:] for line in worker.succeed()}


def in_namespace(mount: str, place: Place, case: str) -> dict[str, list[Any]]:
    """What a worker says that runs where something else is mounted. Skips where that is not allowed."""
    script = f"{mount} && exec {sys.executable} -W error {WORKER} {place.store} {place.keys} {case}"
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
        pytest.skip("this user may not mount anything here: unshare -rm is refused")
    done = subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True)
    if done.returncode == 32:  # of mount(8)
        pytest.skip(f"mounting is refused here: {done.stderr}")
    assert done.returncode == 0, done.stderr
    return {line[0]: line[1:] for line in map(json.loads, done.stdout.splitlines())}


# ---- the disk


def test_a_disk_quota_that_is_used_up(place: Place, start: Start) -> None:
    """What has no room is refused and named; what was acknowledged stays, and with room again writing goes on."""
    said = spoken(start("disk_worker.py", place.store, place.keys, "limited"))
    assert said["store"][0] == "Unavailable"
    assert "Nothing was written" in said["store"][1]
    assert "try again" in said["store"][1]
    assert said["store again"][0] == "done"
    assert said["kept"][0] == said["kept"][1] > 1
    assert "verified" in said


def test_a_creation_without_room(tmp_path: Path, home: Path, start: Start) -> None:
    """Nothing is left of it, keys included, wherever they would have gone; the next one is made in the same place."""
    lines = start("disk_worker.py", tmp_path / "store", tmp_path / "keys", "refused").succeed()
    refusals, left = [line for line in lines if line[0] == "create"], [line[1] for line in lines if line[0] == "left"]
    assert [line[1] for line in refusals] == ["Unavailable", "Unavailable"]
    assert left == [["keys", "store"], ["keys", "store"]]
    assert not list(home.rglob("*.key"))
    assert lines[-1] == ["stored", "stored"]


def test_a_creation_that_was_killed(tmp_path: Path, start: Start) -> None:
    """The keys it left refuse the next one, which names each file to delete; without them it is made."""
    store, keys = tmp_path / "store", tmp_path / "keys"
    start("disk_worker.py", store, keys, "killed").finish()
    with pytest.raises(Refused, match="If a creation broke off here and no store goes by these keys, delete") as said:
        Memory.open(store, keys=keys, model="none")
    left = re.findall(r"[^ ,]+/keys/\w+\.key", str(said.value))
    assert len(left) == 6
    for file in left:
        Path(file).unlink()
    with Memory.open(store, keys=keys, model="none") as memory:
        memory.store("a text")
    shutil.rmtree(store)
    with pytest.raises(Refused, match="already holds keys") as said:
        Memory.open(store, keys=keys, model="none")
    assert "delete" not in str(said.value)


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """On a real file system with no room left: the same."""
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    place = Place(mounted / "store", mounted / "keys")
    said = in_namespace(f"mount -t tmpfs -o size=3m none {mounted}", place, "full")
    assert said["store"][0] == "Unavailable"
    assert "has no room left" in said["store"][1]
    assert said["store again"][0] == "done"
    assert said["kept"][0] == said["kept"][1] > 1
    assert "verified" in said


def require_read_only(said: dict[str, list[Any]]) -> None:
    """It is said that nothing can be written, and everything can be read."""
    assert said["open"][0] == "Unavailable"
    assert UNWRITABLE in said["open"][1]
    assert "read_only=True" in said["open"][1]
    assert said["read"][:2] == [["a text"], None]
    assert "opened to be read: this recall is not on record" in said["read"][2]
    assert {said[verb][0] for verb in ("store", "forget", "used", "rebuild")} == {"Refused"}
    assert "Open it without read_only=True to change it" in said["store"][1]
    assert "verified" in said


def test_a_medium_that_cant_be_written_to(place: Place) -> None:
    """Opening says how it can be read; read, it answers as ever, with no receipt, and takes no command."""
    with place.open() as memory:
        memory.store("a text")
    before = {file.name: file.read_bytes() for file in place.store.iterdir()}
    both = place.store.parent
    require_read_only(in_namespace(f"mount --bind {both} {both} && mount -o remount,bind,ro {both}", place, "fixed"))
    assert {file.name: file.read_bytes() for file in place.store.iterdir()} == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to any directory")
def test_a_directory_that_may_not_be_written_to(place: Place, start: Start) -> None:
    """Whose owner took the right away: the same."""
    with place.open() as memory:
        memory.store("a text")
    (place.store / "lease").unlink()
    place.store.chmod(0o500)
    try:
        require_read_only(spoken(start("disk_worker.py", place.store, place.keys, "fixed")))
    finally:
        place.store.chmod(0o700)


# ---- the clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The wall clock: the first item of this list, in seconds since 1970."""
    at = [1_800_000_000.0]

    class Clock:
        """What the modules see of the clock."""

        monotonic = staticmethod(time.monotonic)

        @staticmethod
        def time_ns() -> int:
            """The time that the test has set."""
            return int(at[0] * 1e9)

    monkeypatch.setattr("tallystick.events.recorder.time", Clock)
    monkeypatch.setattr("tallystick.opened.time", Clock)
    yield at


@pytest.mark.parametrize("jumps", [(-DAY, 60), (3653 * DAY, -3653 * DAY), (-DAY, 3653 * DAY, -3654 * DAY)])
def test_a_clock_that_jumps(place: Place, clock: list[float], jumps: Sequence[int]) -> None:
    """Set back a day, or forward ten years and back: the log's clock never runs backwards, and recorded_at is true."""
    wall: list[int] = []
    for jump in (0, *jumps):
        clock[0] += jump
        with place.open() as memory:
            for n in range(3):
                clock[0] += 1
                memory.store(f"text {n} after a jump of {jump}")
                wall.append(int(clock[0] * 1e6))
    with place.open() as memory:
        events = list(memory.events())
        times = [logged.header.time for logged in events]
        assert times == sorted(set(times))
        assert milliseconds(times[-1]) >= max(wall) // 1000
        assert [logged.event.recorded_at for logged in events] == wall
        assert memory.get(events[-1].header.stream.hex()).stored.recorded_at == wall[-1]
        memory.verify(views=True)


def test_what_expires_goes_by_the_wall_clock(place: Place, clock: list[float]) -> None:
    """After a jump forward and back, what is not yet over is still recalled."""
    with place.open() as memory:
        memory.store("valid for a year", expires_at="2028-01-15T00:00:00Z")
        clock[0] += 3653 * DAY
        memory.store("written in the future")
        assert [hit.text for hit in memory.recall("valid for a year")] == []
        clock[0] -= 3653 * DAY
        assert [hit.text for hit in memory.recall("valid for a year")] == ["valid for a year"]


# ---- files that are gone, damaged or elsewhere


def test_a_log_that_is_gone(place: Place) -> None:
    """No new store is made beside its remains; a snapshot put in its place opens once it is recovered."""
    with place.open() as memory:
        memory.store("a text")
        taken = memory.snapshot(place.store.with_name("snapshots"))
        memory.store("a later text")
    for file in place.store.glob("log.db*"):
        file.unlink()
    with pytest.raises(LogDamaged, match=r"no log.db: the log is gone.*`tallystick snapshot restore SNAPSHOT --over`"):
        place.open()
    assert not (place.store / "log.db").exists()
    Memory.restore_snapshot(taken.path, place.store, over=True, keys=place.keys)
    with pytest.raises(LogBehindMark, match="`tallystick recover`"):
        place.open()
    Memory.recover(place.store, reason="log.db was deleted", keys=place.keys)
    with place.open() as memory:
        assert [hit.text for hit in memory.recall("text")] == ["a text"]


def unlink(place: Place) -> None:
    """Delete the log."""
    (place.store / "log.db").unlink()


def replace(place: Place) -> None:
    """Put another file in the place of the log."""
    with Place(place.store.with_name("other"), place.keys.with_name("other-keys")).open() as other:
        other.store("another log")
    place.store.with_name("other").joinpath("log.db").replace(place.store / "log.db")


def move(place: Place) -> None:
    """Take the whole store elsewhere."""
    place.store.rename(place.store.with_name("elsewhere"))


GONE = "log.db was deleted or replaced while it was open.*Memory.snapshot"


@pytest.mark.parametrize("happens", [unlink, replace, move])
def test_a_log_that_goes_while_it_is_open(place: Place, happens: Callable[[Place], None]) -> None:
    """Nothing is acknowledged that would be lost, nothing is answered; a snapshot saves all that was acknowledged."""
    memory = place.open()
    stored = memory.store("a text")
    happens(place)
    for act in (lambda: memory.store("another"), lambda: memory.recall("text"), lambda: memory.get(stored.id)):
        with pytest.raises(LogDamaged, match=GONE):
            act()
    taken = memory.snapshot(place.store.with_name("snapshots"))
    with pytest.raises(LogDamaged, match=GONE):
        memory.close()
    shutil.rmtree(place.store, ignore_errors=True)
    Memory.restore_snapshot(taken.path, place.store, keys=place.keys)
    with place.open() as again:
        assert again.get(stored.id).text == "a text"


def test_a_log_that_goes_during_a_commit(place: Place) -> None:
    """It is looked for once the commit is on the disk, and everybody who waited for that commit is told."""
    memory = place.open()
    commits, told = memory._opened.installation.commits, list[str]()

    def write(cursor: Any) -> None:
        cursor.execute("UPDATE setting SET value = value")

    def wait() -> None:
        with pytest.raises(LogDamaged, match=GONE) as error:
            commits.run(write)
        told.append(str(error.value))

    threads = [threading.Thread(target=wait) for _ in range(3)]

    def unlink_when_all_wait(cursor: Any) -> None:
        for thread in threads:
            thread.start()
        while len(commits._waiting) < len(threads):
            time.sleep(0.001)
        unlink(place)
        write(cursor)

    with pytest.raises(LogDamaged, match=GONE):
        commits.run(unlink_when_all_wait)
    for thread in threads:
        thread.join()
    assert len(told) == len(threads)
    with pytest.raises(LogDamaged, match=GONE):
        memory.close()


def test_a_log_that_goes_is_no_reason_to_trust_another(place: Place) -> None:
    """A store that was only read, and whose log was replaced, leaves no word that the file was left so."""
    with place.open() as memory:
        memory.store("a text")
    before = Mark.seen(place.keys).closed
    with pytest.raises(LogDamaged, match=GONE), place.open():
        replace(place)
    assert Mark.seen(place.keys).closed == before


def test_a_directory_that_was_emptied(place: Place) -> None:
    """Where nothing at all is left, the keys say that a store was here: none is made under them."""
    with place.open() as memory:
        memory.store("a text")
    shutil.rmtree(place.store)
    with pytest.raises(Refused, match="already holds keys"):
        place.open()
    assert not (place.store / "log.db").exists()


def test_views_that_are_gone(place: Place) -> None:
    """They are named with the way back, and made again from the log by replay, on record."""
    with place.open() as memory:
        memory.store("a text")
    for file in place.store.glob("views-*"):
        file.unlink()
    with pytest.raises(ViewsDamaged, match=r"is gone.*`tallystick replay`"):
        place.open()
    Memory.replay(place.store, keys=place.keys)
    with place.open() as memory:
        assert [hit.text for hit in memory.recall("text")] == ["a text"]
        assert [row.kind for row in memory.log(limit=50)].count("views.rebuilt") == 1


@pytest.mark.parametrize("damage", ["a page", "its beginning", "its end", "another file"])
def test_vectors_that_are_damaged(place: Place, damage: str) -> None:
    """Nothing crashes on them: they are named, and replay throws them away to be made again."""
    with place.open() as memory:
        memory.store("a text")
        cache = VectorCache(memory._opened.installation)
        cache.put("space", (b"s" * 16, b"d" * 16), Made(bytes(4000), b"", "runtime"))
        cache.close()
    file = place.store / "vectors.db"
    content = bytearray(file.read_bytes())
    middle = len(content) // 2
    file.write_bytes(
        {
            "a page": bytes(content[:middle]) + bytes([content[middle] ^ 1]) + bytes(content[middle + 1 :]),
            "its beginning": bytes(100) + bytes(content[100:]),
            "its end": bytes(content[:-4096]),
            "another file": b"this is not a database",
        }[damage]
    )
    with pytest.raises(ViewsDamaged, match=r"vectors.db.*`tallystick replay`"):
        place.open()
    with place.open(read_only=True) as memory:
        assert [hit.text for hit in memory.recall("text")] == ["a text"]
    Memory.replay(place.store, keys=place.keys)
    with place.open() as memory:
        assert [hit.text for hit in memory.recall("text")] == ["a text"]


def test_a_store_that_was_moved(place: Place, home: Path) -> None:
    """With keys in the user's own directory, which go by the store's id, it opens wherever it lies."""
    with Memory.open(place.store, model="none") as memory:
        stored = memory.store("a text")
    moved = place.store.with_name("elsewhere") / "deeper"
    moved.parent.mkdir()
    place.store.rename(moved)
    with Memory.open(moved, model="none") as memory:
        assert memory.get(stored.id).text == "a text"
        memory.verify(views=True)


@pytest.fixture
def twins(tmp_path: Path) -> tuple[Place, Place]:
    """Two stores with keys of their own."""
    places = tuple(Place(tmp_path / f"store-{n}", tmp_path / f"keys-{n}") for n in range(2))
    for place in places:
        with place.open() as memory:
            memory.store(f"a text of {place.store.name}")
    return places[0], places[1]


def test_two_stores_that_were_swapped(twins: tuple[Place, Place]) -> None:
    """Under named keys the other's store is refused, the message says what does not fit, and nothing is written."""
    first, second = twins
    first.store.rename(first.store.with_name("between"))
    second.store.rename(first.store)
    first.store.with_name("between").rename(second.store)
    for place in twins:
        before = (place.store / "log.db").read_bytes()
        with pytest.raises(LogDamaged, match="the keys given are another store's"):
            place.open()
        assert (place.store / "log.db").read_bytes() == before


def test_two_stores_that_were_swapped_under_the_users_own_keys(home: Path, tmp_path: Path) -> None:
    """There keys go by the store's id, so each opens with its own, wherever it lies."""
    for name in ("one", "two"):
        with Memory.open(tmp_path / name, model="none") as memory:
            memory.store(f"a text of {name}")
    (tmp_path / "one").rename(tmp_path / "between")
    (tmp_path / "two").rename(tmp_path / "one")
    (tmp_path / "between").rename(tmp_path / "two")
    with Memory.open(tmp_path / "one", model="none") as memory:
        assert [hit.text for hit in memory.recall("text")] == ["a text of two"]


def test_two_copies_under_one_key_directory(place: Place) -> None:
    """One goes on; the other is behind the mark then, and is refused until a person decides."""
    with place.open() as memory:
        memory.store("a text")
    copy = place._replace(store=place.store.with_name("copy"))
    shutil.copytree(place.store, copy.store)
    with place.open() as memory:
        memory.store("a text of the one")
    with pytest.raises(LogBehindMark, match="an older copy was put in its place"):
        copy.open()
    place.open().close()


def test_keys_of_another_store_are_named(twins: tuple[Place, Place]) -> None:
    """A single key that does not fit is named with its file."""
    first, second = twins
    shutil.copy(second.keys / "kek.key", first.keys / "kek.key")
    with pytest.raises(KeysMissing, match=r"kek.key is not this store's key"):
        first.open()
