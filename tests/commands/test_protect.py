"""Protection and pins: what nothing may change, and what belongs to every context."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import Thread
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


def test_a_restored_memory_is_pinned_only_where_there_is_room(memory: Memory) -> None:
    """Its place may have been taken meanwhile."""
    first, second = (memory.store(letter * PINNED_BYTES).id for letter in "ab")
    memory.pin(first)
    memory.forget(first)
    memory.pin(second)
    with pytest.raises(Refused, match="8,192 is the most"):
        memory.restore(first)
    memory.pin(second, on=False)
    assert memory.restore(first).status == "restored"


def test_pins_that_race_leave_the_limit_whole(memory: Memory) -> None:
    """Each is decided on what the others have pinned."""
    ids = [memory.store(f"{n}" * 3000).id for n in range(6)]

    def pin(memory_id: str) -> None:
        with suppress(Refused):
            memory.pin(memory_id)

    racing = [Thread(target=pin, args=(memory_id,)) for memory_id in ids]
    for thread in racing:
        thread.start()
    for thread in racing:
        thread.join()
    assert len(memory._opened.pinned("project:app")) == 2


COMMANDS: dict[str, Callable[[Memory, str], Any]] = {
    "revise": lambda memory, id: memory.revise(id, text="cherry", command_id="c"),
    "forget": lambda memory, id: memory.forget(id, command_id="c"),
    "pin": lambda memory, id: memory.pin(id, command_id="c"),
    "unpin": lambda memory, id: memory.pin(id, on=False, command_id="c"),
    "protect": lambda memory, id: memory.protect(id, command_id="c"),
}


@pytest.mark.parametrize("act", COMMANDS)
def test_a_command_id_that_was_used_for_something_else_is_refused(memory: Memory, act: str) -> None:
    """Nothing is said to be done that was not."""
    stored = memory.store("apple", tags=["a", "b"])
    revised = memory.revise(stored.id, text="banana", tags_added=["c", "a"], command_id="c")
    with pytest.raises(Refused, match="used for something else"):
        COMMANDS[act](memory, stored.id)
    again = memory.revise(stored.id, text="banana", tags_added=["c", "a"], command_id="c")
    assert again == revised._replace(repeated=True)


# ---- a newer value of a pinned key


def pinned_texts(memory: Memory) -> list[str]:
    """What is pinned in the namespace of a memory, sorted."""
    return sorted(record.text for record in memory._opened.pinned(memory.namespace))


def test_what_takes_the_place_of_a_pinned_memory_is_pinned(memory: Memory) -> None:
    """A pin stays with the key: whoever reads the context reads its newest value, after a rebuild too."""
    memory.pin(memory.store("Works at A", key="employer").id)
    newer = memory.store("Works at B", key="employer")
    assert newer.status == "superseded"
    assert [event.header.kind for event in memory.history(newer.id)] == ["memory.stored", "memory.pinned"]
    memory.rebuild()
    assert pinned_texts(memory) == ["Works at B"]
    assert "Works at B" in memory.recall("anything at all").context().text


def test_a_pin_goes_through_all_the_values_of_a_batch(memory: Memory) -> None:
    """Each in its turn; a repeated command pins nothing once more."""
    memory.pin(memory.store("0", key="k").id)
    rows = [{"text": str(number), "key": "k", "command_id": f"c{number}"} for number in range(1, 4)]
    for _ in range(2):
        assert {outcome.status for outcome in memory.store_many(rows)} == {"superseded"}
        assert pinned_texts(memory) == ["3"]


def test_an_unpinned_key_has_unpinned_values(memory: Memory) -> None:
    """Who takes a pin out has taken it out for good."""
    first = memory.store("0", key="k").id
    memory.pin(first)
    memory.pin(first, on=False)
    memory.store("1", key="k")
    assert pinned_texts(memory) == []


def test_a_newer_value_has_to_fit_into_the_context(memory: Memory) -> None:
    """One that is too long is refused, alone, as a revision is; in one batch each sees what the others have taken."""
    half = PINNED_BYTES // 2
    for key in ("a", "b"):
        memory.pin(memory.store(f"{key} short", key=key).id)
    rows = [{"text": "x" * half, "key": "a"}, {"text": "y" * (half + 1), "key": "b"}, {"text": "z" * half, "key": "b"}]
    assert [outcome.status for outcome in memory.store_many(rows)] == ["superseded", "refused", "superseded"]
    with pytest.raises(Refused, match="would be pinned"):
        memory.store("x" * (half + 1), key="a")
    assert pinned_texts(memory) == ["x" * half, "z" * half]


def test_a_text_that_expired_is_pinned_again_with_its_pin(memory: Memory) -> None:
    """Stored again it is a new memory, in the place of the expired one."""
    memory.pin(memory.store("Said again", expires_at="2026-01-01T00:00:00Z").id)
    assert memory.store("Said again").status == "superseded"
    assert len(memory._opened.pinned(memory.namespace)) == 1


def test_newer_values_that_race_leave_the_limit_whole(memory: Memory) -> None:
    """Whichever threads come first: what is pinned together never is more than fits."""
    for number in range(8):
        memory.pin(memory.store(f"{number}", key=f"k{number}").id)

    def grow(number: int) -> None:
        with suppress(Refused):
            memory.store(str(number) * 3000, key=f"k{number}")

    threads = [Thread(target=grow, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    texts = pinned_texts(memory)
    assert len(texts) == 8
    assert sum(len(text) for text in texts) <= PINNED_BYTES
    assert sum(len(text) == 3000 for text in texts) == 2
