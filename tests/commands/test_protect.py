"""Protection and pins: what nothing may change, and what belongs to every context."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tallystick import Memory
from tallystick.commands.protect import PINNED_BYTES
from tallystick.errors import Refused


@pytest.fixture
def memory() -> Iterator[Memory]:
    """A memory of its own, by words alone, verified when the test is done."""
    with Memory.temporary(namespace="project:app") as opened:
        yield opened
        opened.verify(views=True)


CHANGES: dict[str, Callable[[Memory, str], Any]] = {
    "forget": lambda memory, id: memory.forget(id),
    "revise": lambda memory, id: memory.revise(id, text="B"),
    "supersede": lambda memory, _: memory.store("B", key="employer"),
}


@pytest.mark.parametrize("way", CHANGES)
def test_nothing_changes_a_protected_memory(memory: Memory, way: str) -> None:
    """Each way is refused and leaves nothing, also after a rebuild; lifted, each works again."""
    stored = memory.store("A", key="employer")
    memory.protect(stored.id, reason="approved")
    memory.rebuild()
    with pytest.raises(Refused, match="is protected"):
        CHANGES[way](memory, stored.id)
    assert (memory.get(stored.id).text, memory.get(stored.id).status) == ("A", "current")
    assert len(memory.history(stored.id)) == 2
    memory.protect(stored.id, on=False)
    CHANGES[way](memory, stored.id)


def test_a_row_that_would_supersede_a_protected_memory_is_refused_alone(memory: Memory) -> None:
    """The rest of the batch is stored."""
    memory.protect(memory.store("A", key="employer").id)
    outcomes = memory.store_many([{"text": "B", "key": "employer"}, "C"])
    assert [outcome.status for outcome in outcomes] == ["refused", "stored"]


def test_a_protected_memory_can_be_said_again_and_linked(memory: Memory) -> None:
    """Neither changes what it says."""
    stored, other = memory.store("A"), memory.store("B")
    memory.protect(stored.id)
    assert memory.store("A").status == "reinforced"
    assert memory.link(stored.id, other.id).status == "linked"


@pytest.mark.parametrize("verb", ["protect", "pin"])
def test_what_is_so_already_is_refused(memory: Memory, verb: str) -> None:
    """On or off: an event says that something changed."""
    stored = memory.store("A")
    act = getattr(memory, verb)
    with pytest.raises(Refused, match="not"):
        act(stored.id, on=False)
    assert act(stored.id).status.startswith(verb)
    with pytest.raises(Refused, match="already"):
        act(stored.id)
    assert act(stored.id, on=False).status.startswith("un")


def test_a_repeated_command_is_carried_out_once(memory: Memory) -> None:
    """With a command id, whatever has happened since."""
    stored = memory.store("A")
    first = memory.pin(stored.id, command_id="c")
    memory.pin(stored.id, on=False)
    assert memory.pin(stored.id, command_id="c") == first._replace(repeated=True)
    assert not memory.get(stored.id).pinned


def test_the_pinned_memories_of_a_namespace(memory: Memory) -> None:
    """Those that are current, oldest first, of that namespace alone."""
    ids = [memory.store(text).id for text in "ABC"]
    elsewhere = memory.store("D", namespace="project:app2").id
    for id in (*reversed(ids), elsewhere):
        memory.pin(id)
    memory.forget(ids[1])
    assert [record.id for record in memory._opened.pinned("project:app")] == [ids[0], ids[2]]


def test_pinned_texts_have_a_size_limit(memory: Memory) -> None:
    """It is for all of a namespace, and for a text that is revised after it was pinned."""
    half = PINNED_BYTES // 2
    one, two, three = (memory.store(letter * half).id for letter in "abc")
    memory.pin(one)
    memory.pin(two)
    with pytest.raises(Refused, match="8,192 is the most"):
        memory.pin(three)
    with pytest.raises(Refused, match="8,192 is the most"):
        memory.revise(one, text="é" * half)
    memory.revise(one, text="é" * (half // 2))
    memory.pin(two, on=False)
    memory.pin(three)


def test_what_is_not_current_is_not_pinned(memory: Memory) -> None:
    """A forgotten memory is in no context."""
    stored = memory.store("A")
    memory.forget(stored.id)
    with pytest.raises(Refused, match="not current"):
        memory.pin(stored.id)
