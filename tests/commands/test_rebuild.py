"""Rebuilding the views: on record, beside the old ones, followed by everybody who has the store open."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tallystick import Memory
from tallystick.errors import Refused
from tallystick.events.kinds import ViewsRebuilt
from tallystick.projections.views import ALL_VIEWS, Group, Positions, Views


@pytest.fixture
def memory() -> Iterator[Memory]:
    """A memory of its own, by words alone, with a little history."""
    with Memory.temporary(namespace="project:app", actor="agent:planner") as opened:
        for number in range(3):
            opened.store(f"Note number {number}", tags=["note"])
        opened.forget(opened.store("The office is in Lisbon").id)
        opened.recall("which note?")
        yield opened


def files(memory: Memory) -> list[str]:
    """The views files of a store."""
    return sorted(file.name for file in Path(memory.status().store).glob("views-*.db"))


def test_a_rebuild_is_an_event_with_the_digests_before_and_after(memory: Memory) -> None:
    """The event says who rebuilt the views and why, and what they were and are; equal where nothing was wrong."""
    rebuilt = memory.rebuild(reason="checking")
    last = list(memory.events())[-1]
    assert isinstance(last.event, ViewsRebuilt)
    assert (last.event.reason, last.event.actor) == ("checking", "agent:planner")
    assert (last.event.before, last.event.after) == (rebuilt.before, rebuilt.after)
    assert rebuilt.before == rebuilt.after
    assert set(rebuilt.after) == {view.name for view in ALL_VIEWS}


def test_a_rebuild_puts_a_new_file_in_the_place_of_the_old(memory: Memory) -> None:
    """After a rebuild another file is in force, and the old one is gone."""
    (old,) = files(memory)
    memory.rebuild()
    (new,) = files(memory)
    assert new != old
    assert memory.status().views == new


def test_another_opening_follows_the_switch(memory: Memory) -> None:
    """Who has the store open when somebody rebuilds goes on with the new views, seeing what is stored since."""
    status = memory.status()
    with Memory.open(status.store, keys=status.keys, model="none", namespace="project:app") as other:
        assert len(other.recall("note number")) == 3
        memory.rebuild()
        memory.store("Note number 3")
        assert len(other.recall("note number")) == 4
        assert other.status().views == memory.status().views
        other.rebuild()
        assert len(memory.recall("note number")) == 4
        assert len(files(memory)) == 1


def test_rebuilding_mends_a_view_that_was_changed(memory: Memory) -> None:
    """The event of a rebuild shows which view was not what the log adds up to."""
    with memory._opened.views.opened().datastore.transaction(commit=True) as cursor:
        cursor.execute("DELETE FROM vector WHERE number = 1")
    rebuilt = memory.rebuild(reason="a row is missing")
    changed = {name for name in rebuilt.after if rebuilt.before[name] != rebuilt.after[name]}
    assert changed == {"vector"}
    last = list(memory.events())[-1].event
    assert isinstance(last, ViewsRebuilt)
    assert (last.before, last.after) == (rebuilt.before, rebuilt.after)
    memory.verify(views=True)


def test_a_rebuild_that_cannot_read_the_old_views_says_nothing_of_them(memory: Memory) -> None:
    """Where the old views can't be read there is no digest before, and the rebuild goes on."""
    with memory._opened.views.opened().datastore.transaction(commit=True) as cursor:
        cursor.execute("DROP TABLE audit")
    rebuilt = memory.rebuild(reason="a table is missing")
    assert rebuilt.before == {}
    assert set(rebuilt.after) == {view.name for view in ALL_VIEWS}
    memory.verify(views=True)


@pytest.mark.parametrize("reason", ["", "because " * 65])
def test_a_rebuild_that_cannot_be_put_on_record_changes_nothing(memory: Memory, reason: str) -> None:
    """No view is replaced without an event that says so."""
    before, in_force = memory.status().logs["memory"], files(memory)
    with pytest.raises(Refused, match="reason"):
        memory.rebuild(reason=reason)
    assert (memory.status().logs["memory"], files(memory)) == (before, in_force)


def overtake(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let somebody store and recall each time that views have caught up, eight times: the store is in use."""
    catch_up, left = Views.catch_up, list(range(8))

    def catch_up_and_be_overtaken(self: Views, *groups: Group, upto: Positions | None = None) -> int:
        folded = catch_up(self, *groups, upto=upto)
        if left:
            number, left[:] = left[0], []
            memory.store(f"Stored meanwhile {number}")
            memory.recall("meanwhile")
            left[:] = range(number + 1, 8)
        return folded

    monkeypatch.setattr(Views, "catch_up", catch_up_and_be_overtaken)


def test_digests_of_a_store_in_use_are_taken_at_one_position(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is stored and recalled during a rebuild does not make sound views look damaged on record."""
    overtake(memory, monkeypatch)
    rebuilt = memory.rebuild()
    monkeypatch.undo()
    assert rebuilt.before == rebuilt.after
    assert len(memory.recall("stored meanwhile")) > 0


def test_recall_is_the_same_after_a_rebuild(memory: Memory) -> None:
    """A rebuild changes no answer: the same hits, in the same order, with the same scores."""
    before = memory.recall("note number", limit=10)
    memory.rebuild()
    after = memory.recall("note number", limit=10)
    assert [(hit.id, hit.scores) for hit in after] == [(hit.id, hit.scores) for hit in before]
