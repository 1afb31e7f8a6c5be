"""The `access` view: which memories were recalled or read, how often, when and by whom."""

from collections.abc import Iterator
from typing import Any

import pytest

from tallystick import Memory
from tallystick.projections.access import use_of
from tallystick.projections.views import TRAIL


@pytest.fixture
def memory() -> Iterator[Memory]:
    """A memory of its own, by words alone."""
    with Memory.temporary(actor="agent:planner") as opened:
        yield opened


def rows(memory: Memory) -> list[dict[str, Any]]:
    """The rows of the view, caught up, in order of the log."""
    with memory._opened.views.current(TRAIL).reading() as cursor:
        found = cursor.execute("SELECT * FROM access ORDER BY position, rank")
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def use(memory: Memory, id: str) -> tuple[int, int | None]:
    """How often a memory was recalled, and when last."""
    with memory._opened.views.current(TRAIL).reading() as cursor:
        return use_of(cursor, bytes.fromhex(id))


def test_a_recall_leaves_a_row_for_each_hit(memory: Memory) -> None:
    """Each hit has a row with its rank, the receipt, and who asked when."""
    ids = {memory.store(text).id for text in ("The office in Lisbon", "Lisbon is on the Tagus")}
    recall = memory.recall("office Lisbon")
    found = rows(memory)
    assert [(row["memory"].hex(), row["rank"]) for row in found] == [(hit.id, n) for n, hit in enumerate(recall, 1)]
    assert {row["memory"].hex() for row in found} == ids
    assert {(row["receipt"].hex(), row["verb"], row["actor"]) for row in found} == {
        (recall.receipt, "recall", "agent:planner")
    }


def test_reading_by_name_leaves_a_row(memory: Memory) -> None:
    """Whoever reads a memory or its history by its id is listed with the verb."""
    stored = memory.store("The office in Lisbon")
    memory.get(stored.id)
    memory.history(stored.id)
    assert [(row["memory"].hex(), row["rank"], row["verb"]) for row in rows(memory)] == [
        (stored.id, 1, "get"),
        (stored.id, 1, "history"),
    ]


def test_what_was_not_read_has_no_row(memory: Memory) -> None:
    """A memory that nobody asked for was used never."""
    stored = memory.store("The office in Lisbon")
    memory.recall("zebra")
    memory.forget(stored.id)
    assert rows(memory) == []
    assert use(memory, stored.id) == (0, None)


def test_recalls_are_counted_and_other_reads_are_not(memory: Memory) -> None:
    """How often a memory was recalled, and when last, is known from its rows."""
    stored = memory.store("The office in Lisbon")
    for _ in range(3):
        memory.recall("office")
    last = rows(memory)[-1]["at"]
    memory.get(stored.id)
    assert use(memory, stored.id) == (3, last)


def test_rows_stay_when_a_memory_is_forgotten(memory: Memory) -> None:
    """Who read it is known after a memory was forgotten."""
    stored = memory.store("The office in Lisbon")
    memory.recall("office")
    memory.forget(stored.id)
    assert use(memory, stored.id)[0] == 1
