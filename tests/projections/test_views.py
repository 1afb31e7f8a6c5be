"""The views file in force: folded once, switched by a rebuild, and stopped where it can't go on."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tallystick import Memory
from tallystick.errors import ViewsDamaged
from tallystick.events.entries import Tip
from tallystick.events.log import Log
from tallystick.projections.keyword import Keyword
from tallystick.projections.view import Page
from tallystick.projections.views import ALL_VIEWS, GROUPS, RECALL, TRAIL, Views, ViewsInForce, building, schema_hash

NOTES = 5


@pytest.fixture
def memory() -> Iterator[Memory]:
    """A memory of its own, by words alone, with a few notes; its views are caught up."""
    with Memory.temporary(namespace="project:app") as opened:
        for number in range(NOTES):
            opened.store(f"Note number {number}")
        yield opened


def open_again(memory: Memory) -> Memory:
    """The same store, opened a second time."""
    status = memory.status()
    return Memory.open(status.store, keys=status.keys, model="none", namespace="project:app")


def count(views: Views) -> int:
    """How many memories the view has."""
    with views.reading() as cursor:
        return int(cursor.execute("SELECT count(*) FROM memories").fetchone()[0])


def files(memory: Memory) -> list[Path]:
    """The views files of a store."""
    return sorted(memory._opened.installation.path.glob("views-*.db*"))


# ---- folding


def test_every_view_is_in_one_group() -> None:
    """Each view is folded by exactly one group, and has a name of its own."""
    assert [view.name for group in GROUPS for view in group.views] == [view.name for view in ALL_VIEWS]
    assert len({view.name for view in ALL_VIEWS}) == len(ALL_VIEWS)


def test_catching_up_folds_what_is_new_once(memory: Memory) -> None:
    """What was folded is not folded again; how many events were is said."""
    views = memory._opened.views.opened()
    assert (views.catch_up(RECALL), views.position(RECALL, "memory")) == (0, NOTES)
    with open_again(memory) as other:
        for number in range(3):
            other.store(f"Other note {number}")
    assert (views.catch_up(RECALL), views.position(RECALL, "memory"), count(views)) == (0, NOTES + 3, NOTES + 3)
    assert (views.catch_up(TRAIL), views.position(TRAIL, "memory")) == (NOTES + 3, NOTES + 3)
    assert views.catch_up(TRAIL) == 0


def test_a_new_file_is_at_genesis(memory: Memory) -> None:
    """Before anything is folded every group stands at position 0 of every log, which is no event."""
    views = Views.create(memory._opened.installation)
    try:
        assert {views.position(group, log) for group in GROUPS for log in group.logs} == {0}
        assert views.catch_up(RECALL) == NOTES
    finally:
        views.remove()


def test_rows_and_position_move_together(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A view that fails in the middle of a page leaves neither rows nor position of that page."""
    views = Views.create(memory._opened.installation)
    apply = Keyword.apply

    def fail(self: Keyword, cursor: Any, page: Page) -> None:
        apply(self, cursor, page)
        raise ViewsDamaged

    try:
        monkeypatch.setattr(Keyword, "apply", fail)
        with pytest.raises(ViewsDamaged):
            views.catch_up(RECALL)
        assert (count(views), views.position(RECALL, "memory")) == (0, 0)
        monkeypatch.undo()
        assert (views.catch_up(RECALL), count(views)) == (NOTES, NOTES)
        assert views.digests()["keyword"] == memory._opened.views.current(RECALL).digests()["keyword"]
    finally:
        views.remove()


def test_views_that_are_ahead_of_the_log_are_damaged(memory: Memory) -> None:
    """Views that claim to have folded events which the log does not have are not those of this log."""
    views = memory._opened.views.opened()
    with views.datastore.transaction(commit=True) as cursor:
        cursor.execute("UPDATE tracking SET notification_id = 1000 WHERE application_name = 'recall/memory'")
    with pytest.raises(ViewsDamaged, match="1000"), open_again(memory) as other:
        other._opened.views.current(RECALL)


def test_views_that_another_has_folded_further_meanwhile_are_not_damaged(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between looking at the log and at the views another writer may append and fold: that is no damage."""
    with open_again(memory) as other:
        views, log = other._opened.views.current(RECALL), other._opened.installation.memory
        seen, follow = log.follow(), Log.follow
        memory.store("Note that came in between")
        answers = iter([seen])

        def first_as_it_was(self: Log) -> Tip:
            return next(answers, None) or follow(self)

        monkeypatch.setattr(Log, "follow", first_as_it_was)
        views._folded.clear()
        views.catch_up(RECALL)
        monkeypatch.undo()
        assert len(other.recall("note", limit=10)) == NOTES + 1


def test_threads_that_catch_up_together_fold_each_event_once(memory: Memory) -> None:
    """Readers and writers of one store may meet in the views at any moment."""

    def act(number: int) -> int:
        memory.store(f"Thread note {number}")
        return len(memory.recall("note", limit=100))

    with ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(act, range(24)))
    assert max(seen) == NOTES + 24
    memory.verify(views=True)


def test_two_openings_fold_each_event_once(memory: Memory) -> None:
    """Two that have the store open share the views file: what one has folded the other does not."""
    with open_again(memory) as other:
        for number in range(6):
            (memory if number % 2 else other).store(f"Note of two {number}")
        assert count(other._opened.views.current(RECALL)) == count(memory._opened.views.current(RECALL)) == NOTES + 6
        memory.verify(views=True)
        other.verify(views=True)


# ---- which file


def test_a_store_has_one_views_file_which_the_log_names(memory: Memory) -> None:
    """The file in force carries the schema in its name, and is the only one."""
    (name,) = {file.name.removesuffix("-wal").removesuffix("-shm") for file in files(memory)}
    assert name == memory._opened.views.name() == memory.status().views
    assert name.startswith(f"views-{schema_hash()}-")


def test_the_views_are_encrypted(memory: Memory) -> None:
    """Whoever copies the views file without the keys learns nothing from it."""
    memory.rebuild()
    with memory._opened.views.opened().datastore.transaction(commit=False) as cursor:
        cursor.execute("PRAGMA wal_checkpoint")
    content = b"".join(file.read_bytes() for file in files(memory) if not file.name.endswith("-shm"))
    assert len(content) > 4096
    for clear in (b"SQLite format 3", b"project:app", b"CREATE TABLE", b"number"):
        assert clear not in content


def test_building_leaves_no_file_behind(memory: Memory) -> None:
    """A scratch file is deleted when it has been compared, and when that fails."""
    before = files(memory)
    with building(memory._opened.installation) as fresh:
        assert fresh.path in files(memory)
        assert fresh.digests() == {**memory._opened.views.opened().digests(), **_trail_of(memory)}
    assert files(memory) == before
    with pytest.raises(ZeroDivisionError), building(memory._opened.installation):
        raise ZeroDivisionError
    assert files(memory) == before


def _trail_of(memory: Memory) -> dict[str, str]:
    digests = memory._opened.views.current(TRAIL).digests()
    return {view.name: digests[view.name] for view in TRAIL.views}


def test_a_file_that_nobody_named_is_cleared_away_at_the_next_opening(memory: Memory, tmp_path: Path) -> None:
    """What a killed rebuild left behind is deleted by who opens the store alone; the file in force stays."""
    where = {"keys": tmp_path / "keys", "model": "none"}
    with Memory.open(tmp_path / "store", **where) as first:  # type: ignore[arg-type]
        first.store("Note")
        in_force = first.status().views
        Views.create(first._opened.installation).close()
    assert len(list((tmp_path / "store").glob("views-*.db"))) == 2
    with Memory.open(tmp_path / "store", **where) as second:  # type: ignore[arg-type]
        assert [file.name for file in files(second) if file.suffix == ".db"] == [in_force]
        assert len(second.recall("note")) == 1


def test_a_file_of_another_schema_is_left_to_the_release_that_made_it(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two releases may have one store open: each has its own views, and sees what the other stores."""
    old = memory.status().views
    with monkeypatch.context() as patch:
        patch.setattr(Keyword, "version", Keyword.version + 1)
        schema_hash.cache_clear()
        with open_again(memory) as newer:
            newer.store("Note of a newer release")
            assert newer.status().views != old
            assert len(newer.recall("note", limit=10)) == NOTES + 1
    schema_hash.cache_clear()
    assert memory.status().views == old
    assert len(memory.recall("note", limit=10)) == NOTES + 1


@pytest.mark.parametrize("part", ["name", "version", "schema"])
def test_what_changes_a_view_changes_the_schema(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    """A view of another name, version or table gives another file."""
    before = schema_hash()
    monkeypatch.setattr(Keyword, part, {"name": "words", "version": 99, "schema": ()}[part])
    schema_hash.cache_clear()
    changed = schema_hash()
    monkeypatch.undo()
    schema_hash.cache_clear()
    assert (changed != before, schema_hash()) == (True, before)


def test_a_views_file_that_is_gone_is_damage(memory: Memory) -> None:
    """A file that the log names and that is not there is not quietly made anew."""
    status = memory.status()
    for file in files(memory):
        file.rename(file.with_name(f"moved-{file.name}"))
    views = ViewsInForce(memory._opened.installation)
    with pytest.raises(ViewsDamaged, match=rf"{status.views} is gone.*tallystick replay"):
        views.opened()
    assert files(memory) == []


@pytest.mark.parametrize("number", [0, 1])
def test_a_changed_byte_is_found(tmp_path: Path, number: int) -> None:
    """Every page of the views has an authentication code: a byte that was changed on disk is named as damage."""
    where = {"keys": tmp_path / "keys", "model": "none"}
    with Memory.open(tmp_path / "store", **where) as memory:  # type: ignore[arg-type]
        memory.store("Note")
        name = memory.status().views
    file = tmp_path / "store" / name
    content = bytearray(file.read_bytes())
    content[4096 * number + 2000] ^= 1
    file.write_bytes(content)
    with pytest.raises(ViewsDamaged, match=rf"{name}.*tallystick replay"):
        Memory.open(tmp_path / "store", **where)  # type: ignore[arg-type]


@pytest.mark.parametrize("mark", [True, False])
def test_views_that_another_builds_are_left_alone(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, mark: bool
) -> None:
    """Whoever opens the store meanwhile, with no mark to tell that somebody has; what nobody builds is deleted."""
    with Memory.open(tmp_path / "store", keys=tmp_path / "keys", model="none") as memory:
        memory.store("a text")
    for key in (tmp_path / "keys").glob("*.key"):
        monkeypatch.setenv(f"TALLYSTICK_KEY_{key.stem.upper()}", key.read_text().strip())
    if not mark:
        (tmp_path / "file").touch()
        monkeypatch.setenv("HOME", str(tmp_path / "file"))
    with Memory.open(tmp_path / "store", keys="env", model="none") as memory:
        assert (memory._opened.installation.mark is not None) is mark
        fresh = Views.create(memory._opened.installation)
        for _ in range(2):
            Memory.open(tmp_path / "store", keys="env", model="none").close()
            assert fresh.path.exists()
        fresh.close()
    Memory.open(tmp_path / "store", keys="env", model="none").close()
    assert not fresh.path.exists()
