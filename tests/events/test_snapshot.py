"""Snapshots are copies that verified, of the log alone, taken while others write; they are rotated and put back."""

from __future__ import annotations

import json
import shutil
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from tallystick import Memory
from tallystick.errors import Busy, LogDamaged, NotFound, Refused
from tallystick.events import snapshot as snapshot_module
from tallystick.events.driver import Datastore
from tallystick.events.installation import Installation
from tallystick.events.kinds import SnapshotTaken
from tallystick.events.snapshot import MANIFEST, Snapshot, hash_of, read_snapshot, rotate, snapshots_in
from tallystick.queries.verify import verify


class Kept(NamedTuple):
    """A store, its keys, and a directory for its snapshots."""

    store: Path
    keys: Path
    snapshots: Path

    def open(self, store: Path | None = None) -> Memory:
        """The memory that is there, or in another place with the same keys."""
        return Memory.open(store or self.store, keys=self.keys, model="none")


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    """A closed store with some memories, one of them forgotten."""
    place = Kept(tmp_path / "store", tmp_path / "keys", tmp_path / "snapshots")
    with place.open() as memory:
        memory.store("the first text", tags=["a"])
        memory.forget(memory.store("a text to forget").id)
        memory.recall("first text")
    return place


def test_a_snapshot_is_a_whole_store_of_the_log_alone(kept: Kept) -> None:
    """One file and its manifest: sizes, roots, length and hash are those of the copy, which an auditor verifies."""
    with kept.open() as memory:
        before = memory.status()
        taken = memory.snapshot(kept.snapshots)
        root = memory.status().root
    assert sorted(file.name for file in taken.path.iterdir()) == ["log.db", MANIFEST]
    assert {name: state.size for name, state in taken.logs.items()} == before.logs
    assert {name: state.root for name, state in taken.logs.items()} == before.roots
    assert (taken.bytes, taken.sha256) == ((taken.path / "log.db").stat().st_size, hash_of(taken.path / "log.db"))
    assert read_snapshot(taken.path) == taken
    audited = Installation.audit(taken.path, bytes.fromhex(root), None)
    assert [log.size for log in verify(audited).logs] == list(before.logs.values())
    audited.abandon()
    assert sorted(file.name for file in taken.path.iterdir()) == ["log.db", MANIFEST]


def test_it_is_on_record(kept: Kept) -> None:
    """The event names the snapshot, its hash and how both logs stood in it."""
    with kept.open() as memory:
        taken = memory.snapshot(kept.snapshots)
        event = list(memory.events())[-1].event
    assert isinstance(event, SnapshotTaken)
    assert (event.name, event.sha256.hex(), event.memory_size) == (taken.name, taken.sha256, taken.logs["memory"].size)
    assert event.access_root.hex() == taken.logs["access"].root


def test_it_is_taken_while_others_write(kept: Kept) -> None:
    """Writers don't wait for the copy, and the copy is one moment of the log: it verifies whatever they do."""
    stop, written = threading.Event(), 0
    with kept.open() as memory, kept.open() as other:

        def write() -> None:
            nonlocal written
            while not stop.is_set():
                other.store(f"meanwhile {written}")
                written += 1

        writer = threading.Thread(target=write)
        writer.start()
        try:
            taken = [memory.snapshot(kept.snapshots) for _ in range(3)]
        finally:
            stop.set()
            writer.join()
    assert written > 0
    sizes = [each.logs["memory"].size for each in taken]
    assert sizes == sorted(set(sizes))


def test_a_copy_that_does_not_verify_does_not_count(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is wrong with the copy is raised; nothing of it is left, and nothing is put on record."""
    genuine = snapshot_module.copy_log

    def spoilt(source: Datastore, target: Path) -> None:
        genuine(source, target)
        content = bytearray(target.read_bytes())
        content[content.index(b"memory.stored") - 60] ^= 1
        target.write_bytes(content)

    monkeypatch.setattr(snapshot_module, "copy_log", spoilt)
    with kept.open() as memory:
        size = memory.status().logs["memory"]
        with pytest.raises(LogDamaged):
            memory.snapshot(kept.snapshots)
        assert memory.status().logs["memory"] == size
    assert list(kept.snapshots.iterdir()) == []
    assert snapshots_in(kept.snapshots) == []


def test_a_snapshot_inside_the_store_is_refused(kept: Kept) -> None:
    """It would be lost with the store."""
    with kept.open() as memory, pytest.raises(Refused, match="would be lost with it"):
        memory.snapshot(kept.store / "snapshots")


def test_a_directory_that_is_none_is_refused(kept: Kept) -> None:
    """Which one, and why."""
    kept.snapshots.touch()
    with kept.open() as memory, pytest.raises(Refused, match=r"can't hold snapshots.*Name another"):
        memory.snapshot(kept.snapshots)


def test_what_is_no_snapshot_is_not_listed(kept: Kept) -> None:
    """A folder without a manifest, and one that a killed snapshot left, are none."""
    with kept.open() as memory:
        taken = memory.snapshot(kept.snapshots)
    (kept.snapshots / "something").mkdir()
    shutil.copytree(taken.path, kept.snapshots / f".{taken.name}-aa.partial")
    assert snapshots_in(kept.snapshots) == [taken]
    with pytest.raises(NotFound, match="is not a snapshot"):
        read_snapshot(kept.snapshots / "something")
    with pytest.raises(NotFound, match="no directory"):
        snapshots_in(kept.snapshots / "nowhere")


@pytest.mark.parametrize("change", [{"version": 2}, {"at": "yesterday"}, {"logs": []}, {"store": None, "bytes": None}])
def test_a_manifest_that_is_not_one_is_named(kept: Kept, change: dict[str, object]) -> None:
    """A person learns which file, and what to do."""
    with kept.open() as memory:
        taken = memory.snapshot(kept.snapshots)
    manifest = taken.path / MANIFEST
    written = {**json.loads(manifest.read_text()), **change}
    for name in [name for name, value in change.items() if value is None]:
        del written[name]
    manifest.write_text(json.dumps(written))
    with pytest.raises((NotFound, Refused), match=MANIFEST):
        read_snapshot(taken.path)


# ---- rotating


def described(directory: Path, at: datetime, store: str = "00" * 16) -> Snapshot:
    """A snapshot with nothing in it, as far as rotating it goes."""
    path = directory / f"{at:%Y%m%dT%H%M%S}-{store[:4]}"
    path.mkdir(parents=True)
    (path / "log.db").write_bytes(b"")
    taken = Snapshot(path, store, at, {}, 0, "")
    snapshot_module._write_manifest(taken)
    return taken


def test_rotating_keeps_the_newest_of_days_and_weeks(tmp_path: Path) -> None:
    """Of each of the last days and weeks that have one, the newest; everything else is deleted and said."""
    start = datetime(2026, 3, 2, 9, tzinfo=UTC)  # a Monday
    taken = [described(tmp_path, start + timedelta(hours=8 * n)) for n in range(3 * 28)]
    gone = rotate(tmp_path, daily=3, weekly=2)
    left = snapshots_in(tmp_path)
    assert {s.path for s in gone} | {s.path for s in left} == {s.path for s in taken}
    assert [f"{s.at:%a %d %H}" for s in left] == ["Mon 30 01", "Sun 29 17", "Sat 28 17"]
    assert not any(s.path.exists() for s in gone)


def test_the_newest_of_each_store_stays(tmp_path: Path) -> None:
    """Nobody is left without a copy, whatever is asked for, and stores don't count for each other."""
    start = datetime(2026, 3, 2, 9, tzinfo=UTC)
    ours = [described(tmp_path, start + timedelta(days=n)) for n in range(3)]
    theirs = [described(tmp_path, start + timedelta(days=n - 9), "ff" * 16) for n in range(3)]
    rotate(tmp_path, daily=0, weekly=0)
    assert {s.path for s in snapshots_in(tmp_path)} == {ours[-1].path, theirs[-1].path}
    with pytest.raises(Refused, match="0 or more"):
        rotate(tmp_path, daily=-1, weekly=0)


# ---- putting back


def test_a_snapshot_is_put_into_an_empty_directory(kept: Kept, tmp_path: Path) -> None:
    """While it is the newest state that was verified, it opens at once, and says what it said."""
    with kept.open() as memory:
        taken = memory.snapshot(kept.snapshots)
    (kept.keys / "mark").unlink()
    assert Memory.restore_snapshot(taken.path, tmp_path / "new", keys=kept.keys) is None
    with kept.open(tmp_path / "new") as memory:
        assert [hit.text for hit in memory.recall("first text")] == ["the first text"]
        assert memory.status().memories == {"current": 1, "forgotten": 1}
        memory.verify(views=True)


def test_it_is_not_put_where_something_is(kept: Kept, tmp_path: Path) -> None:
    """Only over a store, and only when asked."""
    with kept.open() as memory:
        taken = memory.snapshot(kept.snapshots)
    before = (kept.store / "log.db").read_bytes()
    with pytest.raises(Refused, match="has something in it"):
        Memory.restore_snapshot(taken.path, kept.store, keys=kept.keys)
    assert (kept.store / "log.db").read_bytes() == before
    other = Kept(tmp_path / "other", tmp_path / "other-keys", kept.snapshots)
    other.open().close()
    with pytest.raises(Refused, match="another store"):
        Memory.restore_snapshot(taken.path, other.store, over=True, keys=kept.keys)


def test_over_a_store_the_old_log_is_kept(kept: Kept) -> None:
    """And what was derived from it is deleted. A log that was behind the mark stays behind it."""
    with kept.open() as memory:
        taken = memory.snapshot(kept.snapshots)
    before = (kept.store / "log.db").read_bytes()
    where = Memory.restore_snapshot(taken.path, kept.store, over=True, keys=kept.keys)
    assert where is not None
    assert (where / "log.db").read_bytes() == before
    assert list(kept.store.glob("views-*")) == []
    assert sorted(file.name for file in kept.store.iterdir()) == sorted(["lease", "log.db", where.name])


def test_a_store_that_is_open_is_not_replaced(kept: Kept) -> None:
    """In this process or another."""
    with kept.open() as memory:
        taken = memory.snapshot(kept.snapshots)
        with pytest.raises(Busy, match="open in"):
            Memory.restore_snapshot(taken.path, kept.store, over=True, keys=kept.keys)


@pytest.mark.parametrize("damage", ["a byte", "its end", "all of it"])
def test_a_snapshot_that_was_changed_is_refused(kept: Kept, tmp_path: Path, damage: str) -> None:
    """By the hash in its manifest, before anything is written."""
    with kept.open() as memory:
        taken = memory.snapshot(kept.snapshots)
    file = taken.path / "log.db"
    content = bytearray(file.read_bytes())
    content[5000] ^= 1
    if damage == "all of it":
        file.unlink()
    else:
        file.write_bytes(content if damage == "a byte" else content[:-4096])
    with pytest.raises(LogDamaged, match="not the one that was taken"):
        Memory.restore_snapshot(taken.path, tmp_path / "new", keys=kept.keys)
    assert not (tmp_path / "new" / "log.db").exists()


def test_a_forged_snapshot_is_refused(kept: Kept, tmp_path: Path) -> None:
    """A manifest can be made to fit: what counts in the end is that the log verifies with the keys."""
    with kept.open() as memory:
        taken = memory.snapshot(kept.snapshots)
    file = taken.path / "log.db"
    content = bytearray(file.read_bytes())
    content[content.index(b"memory.stored") - 60] ^= 1
    file.write_bytes(content)
    written = {**json.loads((taken.path / MANIFEST).read_text()), "sha256": hash_of(file)}
    (taken.path / MANIFEST).write_text(json.dumps(written))
    with pytest.raises(LogDamaged):
        Memory.restore_snapshot(taken.path, tmp_path / "new", keys=kept.keys)
    assert not (tmp_path / "new" / "log.db").exists()


def test_a_snapshot_that_can_not_be_read_hides_no_other(kept: Kept) -> None:
    """It is left out of the list, kept by `rotate`, and refused by name; another one goes into the same folder."""
    with kept.open() as memory:
        bad, good = (memory.snapshot(kept.snapshots) for _ in range(2))
    content = bytearray((bad.path / "log.db").read_bytes())
    content[9000] ^= 1
    (bad.path / "log.db").write_bytes(content)
    new = kept.snapshots.parent / "new"
    with pytest.raises(LogDamaged, match="not the one that was taken"):
        Memory.restore_snapshot(bad.path, new, keys=kept.keys)
    for manifest in ("{", '{"version": 1, "store": 5}'):
        (bad.path / "manifest.json").write_text(manifest)
        assert [snapshot.path for snapshot in Memory.snapshots(kept.snapshots)] == [good.path]
        assert Memory.rotate_snapshots(kept.snapshots) == []
        with pytest.raises(NotFound, match="not a snapshot"):
            Memory.restore_snapshot(bad.path, new, keys=kept.keys)
    assert Memory.restore_snapshot(good.path, new, keys=kept.keys) is None
