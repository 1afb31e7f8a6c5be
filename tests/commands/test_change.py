"""Changing a memory: others may come in between, a command id is carried out once, and the log alone decides."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from tallystick import Memory, Outcome
from tallystick.commands import session
from tallystick.commands.change import current
from tallystick.errors import Busy, NotFound, Refused
from tallystick.events.log import Append


@pytest.fixture
def memory() -> Iterator[Memory]:
    """A memory of its own, by words alone, verified when the test is done."""
    with Memory.temporary(namespace="project:app", actor="agent:planner") as opened:
        yield opened
        opened.verify(views=True)


REPEATABLE: dict[str, Callable[[Memory, str, str], Outcome]] = {
    "revised": lambda memory, one, two: memory.revise(one, text="changed", command_id="c"),
    "forgotten": lambda memory, one, two: memory.forget(one, command_id="c"),
    "restored": lambda memory, one, two: memory.restore(one, command_id="c"),
    "linked": lambda memory, one, two: memory.link(one, two, command_id="c"),
    "unlinked": lambda memory, one, two: memory.unlink(one, two, command_id="c"),
    "protected": lambda memory, one, two: memory.protect(one, command_id="c"),
    "unprotected": lambda memory, one, two: memory.protect(one, on=False, command_id="c"),
    "pinned": lambda memory, one, two: memory.pin(one, command_id="c"),
    "unpinned": lambda memory, one, two: memory.pin(one, on=False, command_id="c"),
}
BEFORE: dict[str, Callable[[Memory, str, str], Outcome]] = {
    "restored": lambda memory, one, two: memory.forget(one),
    "unlinked": lambda memory, one, two: memory.link(one, two),
    "unprotected": lambda memory, one, two: memory.protect(one),
    "unpinned": lambda memory, one, two: memory.pin(one),
}


@pytest.mark.parametrize("came", REPEATABLE)
def test_a_repeated_command_says_what_came_of_it(memory: Memory, came: str) -> None:
    """Whichever it was; it is on record once, and its id is no other command's."""
    one, two = memory.store("one").id, memory.store("two").id
    if came in BEFORE:
        BEFORE[came](memory, one, two)
    first = REPEATABLE[came](memory, one, two)
    size = memory.status().logs["memory"]
    again = REPEATABLE[came](memory, one, two)
    assert (first.status, again) == (came, first._replace(repeated=True))
    with pytest.raises(Refused, match="used for something else"):
        memory.pin(two, command_id="c")
    assert memory.status().logs["memory"] == size


def another(memory: Memory) -> Memory:
    """The same store, opened once more, as another process has it."""
    status = memory.status()
    return Memory.open(status.store, namespace="project:app", keys=status.keys, model="none")


def overtaken(memory: Memory, monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any], times: int = 1) -> None:
    """Act so many times, each between a command's look at a memory and its append."""
    log = memory._opened.installation.memory
    append = log.append

    def append_and_be_overtaken(request: Append, *, durable: bool = True) -> Any:
        nonlocal times
        if times:
            times -= 1
            act()
        return append(request, durable=durable)

    monkeypatch.setattr(log, "append", append_and_be_overtaken)


def test_a_command_id_that_another_takes_meanwhile_is_done_once(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever comes second is told what came of it, or that it was used for something else; nothing is done twice."""
    one, two = memory.store("one"), memory.store("two")
    with another(memory) as other:
        overtaken(memory, monkeypatch, lambda: other.revise(one.id, text="one, revised", command_id="c1"))
        outcome = memory.revise(one.id, text="one, revised", command_id="c1")
        assert (outcome.status, outcome.repeated, memory.get(one.id).revision) == ("revised", True, 1)
        monkeypatch.undo()
        overtaken(memory, monkeypatch, lambda: other.revise(one.id, text="one again", command_id="c2"))
        with pytest.raises(Refused, match=f"'c2' was used for something else, the memory {one.id}"):
            memory.revise(two.id, text="two, revised", command_id="c2")
        assert memory.get(two.id).revision == 0


def test_a_command_that_others_always_overtake_is_busy(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gives up after a while, says so, and has changed nothing."""
    stored, numbers = memory.store("one"), count()
    monkeypatch.setattr(session, "PATIENCE_SECONDS", 0.1)
    with another(memory) as other:
        overtaken(memory, monkeypatch, lambda: other.revise(stored.id, text=f"text {next(numbers)}"), times=9999)
        with pytest.raises(Busy, match="keep changing this memory. Try again"):
            memory.revise(stored.id, text="mine")
    assert all(hit.text != "mine" for hit in memory.recall("mine text"))
    assert memory.get(stored.id).revision == next(numbers)


def test_a_command_id_of_a_stored_memory_changes_nothing(memory: Memory) -> None:
    """An id that was given to store is no id of a change, not even of the same memory."""
    stored = memory.store("one", command_id="c1")
    with pytest.raises(Refused, match="used for something else"):
        memory.revise(stored.id, text="two", command_id="c1")
    with pytest.raises(Refused, match="used for something else"):
        memory.forget(stored.id, command_id="c1")
    assert (memory.get(stored.id).revision, memory.get(stored.id).status) == (0, "current")


def test_a_stream_that_is_no_memory_is_not_changed(memory: Memory) -> None:
    """By the log itself, whatever a view may say there is."""
    log = memory._opened.installation.memory
    with pytest.raises(NotFound, match=f"There is no memory {'6d' * 16}"):
        current(log, b"m" * 16)
