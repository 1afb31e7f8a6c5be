"""The `audit` view: who did what when, flat, over both logs."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice

import pytest

from tallystick import Memory
from tallystick.projections.audit import AuditRow, newest
from tallystick.projections.condition import ALWAYS
from tallystick.projections.views import TRAIL


@pytest.fixture
def memory() -> Iterator[Memory]:
    """A memory of its own, by words alone."""
    with Memory.temporary(namespace="project:app", actor="agent:planner") as opened:
        yield opened


def rows(memory: Memory, limit: int = 1000) -> list[AuditRow]:
    """The newest rows, caught up, newest first."""
    with memory._opened.views.current(TRAIL).reading() as cursor:
        return list(islice(newest(cursor, ALWAYS), limit))


def test_every_event_of_both_logs_has_one_row(memory: Memory) -> None:
    """What was stored, retracted, asked and read is listed, each once, as its header says."""
    stored = memory.store("The office is in Lisbon")
    memory.recall("office")
    memory.store("The office is in Lisbon")
    memory.get(stored.id)
    memory.forget(stored.id)
    found = {(row.log, row.position): row for row in rows(memory)}
    assert {key: row.kind for key, row in found.items()} == {
        ("memory", 1): "memory.stored",
        ("memory", 2): "memory.reinforced",
        ("memory", 3): "memory.forgotten",
        ("access", 1): "memory.recalled",
        ("access", 2): "memory.read",
    }
    for log in memory._opened.installation.logs:
        for logged in next(log.pages(0, log.tip.size - 1)):
            header, row = logged.header, found[log.name, logged.header.position]
            assert (row.id, row.stream, row.revision) == (header.id, header.stream, header.revision)
            assert (row.actor, row.at) == (logged.event.actor, logged.event.recorded_at)


def test_a_row_says_which_namespaces_were_used(memory: Memory) -> None:
    """A text's namespace and the namespaces of a question are listed; other events name none."""
    stored = memory.store("The office is in Lisbon", namespace="user:ana")
    memory.recall("office", namespaces=["user:ana", "project:app"])
    memory.forget(stored.id)
    namespaces = {row.kind: row.namespace for row in rows(memory)}
    assert namespaces == {
        "memory.stored": "user:ana",
        "memory.recalled": "user:ana project:app",
        "memory.forgotten": "",
    }


def test_the_newest_come_first(memory: Memory) -> None:
    """Rows of both logs are in order of the wall clock, newest first, as many as are asked for."""
    for number in range(3):
        memory.store(f"Note {number}")
        memory.recall("note")
    found = rows(memory)
    assert [row.at for row in found] == sorted((row.at for row in found), reverse=True)
    assert [(row.log, row.position) for row in found][:2] == [("access", 3), ("memory", 3)]
    assert rows(memory, 2) == found[:2]
    assert rows(memory, 0) == []


def test_a_row_holds_no_text(memory: Memory) -> None:
    """The list is about who and when: neither texts nor questions nor reasons are in it."""
    stored = memory.store("zanzibar", tags=["xylophone"])
    memory.recall("kinkajou")
    memory.forget(stored.id, reason="wombat")
    assert not any(word in str(rows(memory)) for word in ("zanzibar", "xylophone", "kinkajou", "wombat"))


def test_times_are_wall_clock_microseconds(memory: Memory) -> None:
    """A row's time is when it happened by the writer's clock."""
    before = datetime.now(UTC).timestamp() * 1_000_000
    memory.store("The office is in Lisbon")
    (row,) = rows(memory)
    assert before - 1000 <= row.at <= datetime.now(UTC).timestamp() * 1_000_000
