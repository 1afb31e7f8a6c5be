"""The `memories` view: one row for each memory, as its events say."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tallystick import Memory
from tallystick.projections import memories
from tallystick.projections.record import Record, fold
from tallystick.projections.views import RECALL
from tallystick.queries.filters import Filters

FIELDS: dict[str, Any] = {
    "kind": "fact", "source": "human", "author": "Ana", "subject": "user:ana", "key": "office", "importance": 0.75,
    "confidence": 0.5, "thread": "s1", "place": 4, "occurred_at": "2023-05-08T13:56:00Z", "label": "internal",
    "valid_from": "2023-05-09T00:00:00Z", "expires_at": "2999-01-01T00:00:00Z", "trust": "low",
    "tags": ["office", "größe"], "metadata": {"colour": "vermilion"},
}  # fmt: skip


@pytest.fixture
def memory() -> Iterator[Memory]:
    """A memory of its own, by words alone."""
    with Memory.temporary(namespace="project:app", actor="agent:planner") as opened:
        yield opened


def rows(memory: Memory) -> list[dict[str, Any]]:
    """The rows of the view, caught up, in order of their numbers."""
    with memory._opened.views.current(RECALL).reading() as cursor:
        found = cursor.execute("SELECT * FROM memories ORDER BY number")
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def record_of(memory: Memory, id: str) -> Record:
    """A memory as its events say it is."""
    record = fold(memory._opened.installation.memory.events_of(bytes.fromhex(id)))
    assert record is not None
    return record


def ask(memory: Memory, *namespaces: str, now: int = 0) -> list[int]:
    """The numbers of what can be recalled from these namespaces at a time."""
    with memory._opened.views.current(RECALL).reading() as cursor:
        return memories.recallable(cursor, namespaces, Filters().of_current(now))


def test_a_row_holds_what_a_memory_began_with(memory: Memory) -> None:
    """Every field that is filtered on is in the row as it was stored."""
    stored = memory.store("The office is in Lisbon", **FIELDS)
    record, (row,) = record_of(memory, stored.id), rows(memory)
    for name in ("kind", "source", "author", "subject", "key", "importance", "confidence", "thread", "place", "label"):
        assert row[name] == FIELDS[name]
    for name in ("recorded_at", "occurred_at", "valid_from", "expires_at", "trust", "actor", "namespace"):
        assert row[name] == getattr(record.stored, name)
    assert json.loads(row["tags"]) == FIELDS["tags"]
    assert (row["stream"], row["status"], row["revision"], row["reinforced"]) == (record.stream, "current", 0, 0)
    assert (row["position"], row["text_position"]) == (stored.position, stored.position)


def test_a_row_holds_no_text(memory: Memory) -> None:
    """What is read is read from the log: the text stands in no view. Metadata do, since they are filtered on."""
    memory.store("The office is in Lisbon", **FIELDS)
    for name, cell in rows(memory)[0].items():
        assert "Lisbon" not in str(cell)
        assert ("vermilion" in str(cell)) == (name == "metadata")


def test_a_row_follows_its_memory(memory: Memory) -> None:
    """Each event of a memory rewrites its row: status, head, count and what superseded it."""
    older = memory.store("Company A", key="employer")
    memory.store("Company A", key="employer")
    newer = memory.store("Company B", key="employer")
    memory.forget(newer.id)
    first, second = rows(memory)
    assert (first["status"], first["reinforced"], first["superseded_by"].hex()) == ("superseded", 1, newer.id)
    assert (first["revision"], first["text_position"]) == (2, older.position)
    assert (second["status"], second["revision"], second["superseded_by"]) == ("forgotten", 1, None)
    for row in (first, second):
        record = record_of(memory, row["stream"].hex())
        assert tuple(row.values()) == memories.row_of(row["number"], record)


def test_numbers_follow_the_log(memory: Memory) -> None:
    """Memories are numbered from 1 in the order in which they were stored, also after a rebuild."""
    ids = [memory.store(f"Note {number}").id for number in range(5)]
    memory.forget(ids[2])
    for _ in range(2):
        assert [(row["number"], row["stream"].hex()) for row in rows(memory)] == list(enumerate(ids, 1))
        memory.rebuild()


def test_what_can_be_recalled_is_current_and_of_the_namespaces_asked(memory: Memory) -> None:
    """Other namespaces, forgotten memories and superseded ones are not candidates."""
    memory.store("Note 1")
    memory.store("Note 2", namespace="user:ana")
    memory.forget(memory.store("Note 3").id)
    memory.store("Company A", key="employer")
    memory.store("Company B", key="employer")
    assert ask(memory, "project:app") == [1, 5]
    assert ask(memory, "user:ana") == [2]
    assert ask(memory, "user:ana", "project:app") == [1, 2, 5]
    assert ask(memory, "project", "project:app/x", "PROJECT:APP", "project:ap_", "project:%") == []


def test_what_expires_at_a_time_is_gone_at_that_time(memory: Memory) -> None:
    """A memory can be recalled before the instant at which it expires, and not from then on."""
    memory.store("Note 1", expires_at="1970-01-01T00:00:00.000100Z")
    memory.store("Note 2")
    assert [ask(memory, "project:app", now=now) for now in (99, 100, 101)] == [[1, 2], [2], [2]]


def test_rows_come_in_the_order_they_are_asked_for(memory: Memory) -> None:
    """Looking rows up by number keeps the order of the numbers: that is the rank."""
    ids = [memory.store(f"Note {number}").id for number in range(3)]
    with memory._opened.views.current(RECALL).reading() as cursor:
        assert [row[1].hex() for row in memories.rows_of(cursor, [3, 1, 2])] == [ids[2], ids[0], ids[1]]


def test_counts_are_by_status(memory: Memory) -> None:
    """How many memories are current, forgotten and superseded; a status that none has is left out."""
    with memory._opened.views.current(RECALL).reading() as cursor:
        assert memories.counts(cursor) == {}
    memory.forget(memory.store("Note 1").id)
    for name in "ABC":
        memory.store(f"Company {name}", key="employer")
    with memory._opened.views.current(RECALL).reading() as cursor:
        assert memories.counts(cursor) == {"current": 1, "forgotten": 1, "superseded": 2}
