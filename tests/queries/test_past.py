"""The past: every question answered as of a position, nothing changed, and what was read there on record."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tallystick import Memory
from tallystick.errors import NotFound, Refused, Unavailable


@pytest.fixture
def memory() -> Iterator[Memory]:
    """A memory of its own, by words alone."""
    with Memory.temporary(namespace="a", actor="agent:planner") as opened:
        yield opened


def texts(memory: Memory, **asked: Any) -> list[str]:
    """What is in the namespace, oldest first."""
    return [record.text for record in memory.search(sort="recorded_at", **asked)]


def test_every_question_is_answered_as_of_then(memory: Memory) -> None:
    """What came later is not known: not a text, a revision, a forgetting, a name, a read, nor the time."""
    expires = datetime.now(UTC) + timedelta(seconds=0.3)
    first = memory.store("The office is in Lisbon", key="office", expires_at=expires)
    recall = memory.recall("office")
    memory.revise(first.id, text="The office is in Porto")
    second = memory.store("Use WAL mode")
    memory.rename("a", "b")
    memory.forget(second.id)
    memory.recall("WAL")
    while datetime.now(UTC) <= expires:
        pass
    with memory.at(first.position) as past:
        assert [hit.text for hit in past.recall("where is the office")] == ["The office is in Lisbon"]
        assert texts(past) == ["The office is in Lisbon"]
        assert (past.get(first.id).text, past.get(first.id).namespace) == ("The office is in Lisbon", "a")
        assert len(past.history(first.id)) == len(list(past.events())) == 1
        assert past.blame(first.id)[0].revision == 0
        assert [each.name for each in past.namespaces()] == ["a"]
        assert past.sql("select count(*) from memories").rows == ((1,),)
        assert {row.kind for row in past.log()} == {"memory.stored", "memory.recalled"}
        assert [receipt.query for receipt in past.receipts()] == ["office"]
        assert past.why(recall.receipt).hits[0].record.text == "The office is in Lisbon"
        assert "Lisbon" in past.recall("office").context().text
        assert past.status().memories == {"current": 1}
        with pytest.raises(NotFound):
            past.get(second.id)
    assert texts(memory, namespaces=["a"]) == []
    assert memory.get(second.id).status == "forgotten"


def test_each_position_has_its_own_past(memory: Memory) -> None:
    """Several can be open at once, while others write; the present is the last of them."""
    positions = [memory.store(text).position for text in ("one", "two", "three")]
    pasts = [memory.at(position) for position in (0, *positions)]
    memory.store("four")
    assert [texts(past) for past in pasts] == [[], ["one"], ["one", "two"], ["one", "two", "three"]]
    assert texts(memory) == ["one", "two", "three", "four"]


def test_what_is_read_in_the_past_is_on_record_now(memory: Memory) -> None:
    """The receipt names the log of then, and is explained by the present; nothing else is written."""
    position = memory.store("The office is in Lisbon").position
    memory.store("Use WAL mode")
    before = memory.status().logs
    past = memory.at(position)
    recall = past.recall("office")
    past.get(recall.hits[0].id)
    why = memory.why(recall.receipt)
    assert (why.recalled.log_size, why.recalled.query) == (position + 1, "office")
    assert why.recalled.log_root == memory._opened.log.event_at(position + 1).header.root
    assert memory.status().logs == {"memory": before["memory"], "access": before["access"] + 3}
    assert not any("record" in said for said in recall.degraded)


COMMANDS: dict[str, Callable[[Memory, str], Any]] = {
    "store": lambda past, _: past.store("x"),
    "store_many": lambda past, _: past.store_many(["x"]),
    "store_conversation": lambda past, _: past.store_conversation(["x"], thread="t"),
    "revise": lambda past, id: past.revise(id, text="x"),
    "forget": lambda past, id: past.forget(id),
    "restore": lambda past, id: past.restore(id),
    "link": lambda past, id: past.link(id, id),
    "unlink": lambda past, id: past.unlink(id, id),
    "protect": lambda past, id: past.protect(id),
    "pin": lambda past, id: past.pin(id),
    "rename": lambda past, _: past.rename("a", "b"),
    "merge": lambda past, _: past.merge("a", "b"),
    "rebuild": lambda past, _: past.rebuild(),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_reaches_the_past(memory: Memory, command: str) -> None:
    """What happened has happened: every command is refused, and nothing is written."""
    stored = memory.store("one")
    memory.forget(memory.store("two").id)
    past = memory.at(stored.position)
    with pytest.raises(Refused, match="opened to be read"):
        COMMANDS[command](past, stored.id)
    assert memory.status().logs["memory"] == 4


@pytest.mark.parametrize("position", [-1, 2, 99, 1.0, "1", None])
def test_a_position_that_is_none(memory: Memory, position: Any) -> None:
    """Only what the log has can be gone back to."""
    memory.store("one")
    with pytest.raises((NotFound, Refused), match="position"):
        memory.at(position)


def test_a_past_leaves_nothing_behind(memory: Memory) -> None:
    """Its folder goes when it is closed, and with the memory at the latest; nothing is added to the store's."""
    position = memory.store("one").position
    store = Path(memory.status().store)
    before = sorted(file.name for file in store.iterdir())
    pasts = [memory.at(position), memory.at(position)]
    folders = [past._opened.installation.derived for past in pasts]
    assert all(texts(past) == ["one"] for past in pasts)
    pasts[0].close()
    assert [folder.exists() for folder in folders] == [False, True]
    assert sorted(file.name for file in store.iterdir()) == before
    memory.close()
    assert not folders[1].exists()
    with pytest.raises(Unavailable, match="closed"):
        pasts[1].search()
