"""The `vector` view: which text of which memory is to be found by meaning."""

from collections.abc import Iterator

import pytest

from tallystick import Memory
from tallystick.projections.record import Record, fold
from tallystick.projections.shelves import superseded_in
from tallystick.projections.vector import Wanted, all_of, changed_after, document_of, input_hash, last_change
from tallystick.projections.views import RECALL


@pytest.fixture
def memory() -> Iterator[Memory]:
    """A memory of its own, by words alone."""
    with Memory.temporary() as opened:
        yield opened


def wanted(memory: Memory, after: int = 0) -> list[Wanted]:
    """What changed after a position."""
    with memory._opened.views.current(RECALL).reading() as cursor:
        return changed_after(cursor, after)


def position(memory: Memory) -> int:
    """The position of the last change."""
    with memory._opened.views.current(RECALL).reading() as cursor:
        return last_change(cursor)


def of(memory: Memory, namespace: str) -> list[Wanted]:
    """The memories of a namespace."""
    with memory._opened.views.current(RECALL).reading() as cursor:
        return all_of(cursor, namespace)


def record_of(memory: Memory, id: str) -> Record:
    """A memory as its events say it is."""
    record = fold(memory._opened.installation.memory.events_of(bytes.fromhex(id)))
    assert record is not None
    return record


def test_the_document_of_a_memory_is_who_said_what(memory: Memory) -> None:
    """What stands for a memory in the embedding space is its text, after its author where there is one."""
    said, noted = memory.store("I moved to Lisbon", author="Ana"), memory.store("Use WAL mode")
    assert document_of(record_of(memory, said.id)) == "Ana: I moved to Lisbon"
    assert document_of(record_of(memory, noted.id)) == "Use WAL mode"


def test_the_hash_of_a_document_never_changes() -> None:
    """Vectors on disk are filed under it."""
    assert input_hash("Use WAL mode").hex() == "c0bc1ce1ba0df7dd0cb707feb7ee826b"
    assert len({input_hash(text) for text in ("", "a", "A", "a ", "á", "a\0")}) == 6


def test_each_current_memory_wants_the_vector_of_its_text(memory: Memory) -> None:
    """A row names the memory, the document its vector is of, and the namespace it was stored in."""
    here, there = memory.store("Use WAL mode"), memory.store("Use WAL mode", namespace="there")
    assert wanted(memory) == [
        Wanted(1, bytes.fromhex(here.id), input_hash("Use WAL mode"), "default"),
        Wanted(2, bytes.fromhex(there.id), input_hash("Use WAL mode"), "there"),
    ]


def test_a_memory_that_is_forgotten_wants_none(memory: Memory) -> None:
    """What nobody recalls is not to be found by meaning either; what is restored is, what is superseded elsewhere."""
    stored = memory.store("Use WAL mode")
    memory.forget(stored.id)
    assert [row.input for row in wanted(memory)] == [None]
    memory.restore(stored.id)
    assert [row.input for row in wanted(memory)] == [input_hash("Use WAL mode")]
    memory.store("Company A", key="employer")
    newer = memory.store("Company B", key="employer")
    assert {row.number: row.input for row in wanted(memory)} == {
        1: input_hash("Use WAL mode"),
        2: input_hash("Company A"),
        3: input_hash("Company B"),
    }
    assert wanted(memory)[1].stream.hex() == newer.id
    assert {row.number: row.namespace for row in wanted(memory)} == {
        1: "default",
        2: superseded_in("default"),
        3: "default",
    }


def test_changes_come_in_order_from_a_position_on(memory: Memory) -> None:
    """Who has taken in the view up to a position sees each memory that changed since, once, oldest change first."""
    ids = [memory.store(f"Note {number}").id for number in range(4)]
    upto = position(memory)
    assert wanted(memory, upto) == []
    memory.forget(ids[2])
    memory.store("Note 0")
    assert [(row.stream.hex(), row.input is None) for row in wanted(memory, upto)] == [(ids[2], True), (ids[0], False)]


def test_the_last_change_is_where_a_memory_last_changed(memory: Memory) -> None:
    """Storing and forgetting in any namespace count; 0 where there is no memory."""
    assert position(memory) == 0
    first = memory.store("Note 1")
    assert position(memory) == first.position
    second = memory.store("Note 2", namespace="there")
    assert position(memory) == second.position
    forgotten = memory.forget(first.id)
    assert position(memory) == forgotten.position
    memory.rename("there", "elsewhere")
    assert position(memory) == forgotten.position


def test_a_namespace_has_its_own_in_order_of_their_last_changes(memory: Memory) -> None:
    """Each once, also one that wants no vector any more, by the name it was stored under: a rename changes nothing."""
    ids = [memory.store(f"Note {number}", namespace=("here", "there")[number % 2]).id for number in range(5)]
    memory.forget(ids[0])
    for name in ("before", "after"):
        assert [(row.number, row.input is None) for row in of(memory, "here")] == [(3, False), (5, False), (1, True)]
        assert [row.stream.hex() for row in of(memory, "there")] == [ids[1], ids[3]]
        assert {row.namespace for row in wanted(memory)} == {"here", "there"}
        assert {*of(memory, "here"), *of(memory, "there")} == {*wanted(memory)}
        assert of(memory, "elsewhere") == of(memory, "HERE") == []
        if name == "before":
            memory.rename("here", "elsewhere")
