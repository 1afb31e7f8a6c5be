"""Who did what when: filtered, followed as it happens; and the record of reads."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tallystick import AuditRow, Memory
from tallystick.errors import NotFound, Refused, Unavailable
from tallystick.queries.trail import VERBS


@pytest.fixture
def memory() -> Iterator[Memory]:
    """A memory of its own, by words alone, with two memories of which one was read."""
    with Memory.temporary(namespace="project:app", actor="agent:planner") as opened:
        opened.store("The office is in Lisbon", key="a")
        opened.store("Use WAL mode", key="b")
        opened.recall("office")
        opened.get(id_of(opened, "a"))
        yield opened


def id_of(memory: Memory, key: str) -> str:
    """The id of the memory with a key, without leaving a trace."""
    events = (memory._opened.log.event_at(n) for n in range(1, memory._opened.log.tip.size))
    return next(logged.header.stream.hex() for logged in events if getattr(logged.event, "key", None) == key)


def kinds(rows: list[AuditRow]) -> list[str]:
    """The kinds of the rows, without what is before the dot."""
    return [row.kind.partition(".")[2] for row in rows]


def test_the_log_is_filtered(memory: Memory) -> None:
    """By kind, log, actor, memory and time; filters hold together."""
    a, b = id_of(memory, "a"), id_of(memory, "b")
    assert kinds(memory.log()) == ["read", "recalled", "stored", "stored"]
    for filters, expected in (
        ({"kind": "stored"}, ["stored", "stored"]),
        ({"kind": "memory.read"}, ["read"]),
        ({"log": "access"}, ["read", "recalled"]),
        ({"actor": "agent:planner", "log": "memory"}, ["stored", "stored"]),
        ({"actor": "agent:%"}, []),
        ({"memory": a}, ["read", "recalled", "stored"]),
        ({"memory": b[:8]}, ["stored"]),
        ({"memory": a, "kind": "recalled"}, ["recalled"]),
        ({"since": datetime.now(UTC) - timedelta(hours=1), "limit": 1}, ["read"]),
        ({"until": datetime.now(UTC) - timedelta(hours=1)}, []),
        ({"since": None, "kind": None}, ["read", "recalled", "stored", "stored"]),
    ):
        assert kinds(memory.log(**filters)) == expected, filters


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        ({"kind": "sold"}, "not a kind"), ({"log": "views"}, "memory` or `access"), ({"colour": 1}, "not a filter"),
        ({"since": "now"}, "since"), ({"actor": 3}, "actor"), ({"limit": 0}, "limit"),
    ],
)  # fmt: skip
def test_what_is_no_filter_is_refused(memory: Memory, filters: dict[str, Any], said: str) -> None:
    """A filter that can't be asked is refused with its name."""
    with pytest.raises(Refused, match=said):
        memory.log(**filters)
    with pytest.raises(NotFound):
        memory.log(memory="0000")


def test_the_log_is_followed_as_it_happens(memory: Memory) -> None:
    """First what there is, oldest first; then each event once, of this process and of others, in order."""
    status = memory.status()
    rows = memory.follow(limit=2, log="memory")
    assert [next(rows).position, next(rows).position] == [1, 2]
    with Memory.open(status.store, keys=status.keys, model="none", actor="user:bo") as other:
        writer = Thread(target=lambda: (other.store("three"), memory.store("four"), other.recall("three")))
        writer.start()
        found = [next(rows), next(rows)]
        writer.join()
        memory.recall("four")
        memory.store("five")
        found.append(next(rows))
    assert [(row.position, row.actor) for row in found] == [(3, "user:bo"), (4, "agent:planner"), (5, "agent:planner")]


def test_following_ends_with_the_store(memory: Memory) -> None:
    """Whoever follows a store that is closed is told."""
    rows = memory.follow(limit=1)
    next(rows)
    memory.close()
    with pytest.raises(Unavailable, match="closed"):
        next(rows)


def test_receipts_list_what_was_read(memory: Memory) -> None:
    """Each read with its verb, its question, who and when, and the memories it handed out: the newest first."""
    a = id_of(memory, "a")
    listing = memory.search(limit=1)
    used = memory.used(memory.recall("WAL").receipt or "", [id_of(memory, "b")])
    found = memory.receipts()
    assert [receipt.verb for receipt in found] == ["used", "recall", "search", "get", "recall"]
    assert [receipt.query for receipt in found] == ["", "WAL", "", "", "office"]
    assert (found[0].receipt, found[0].of) == (used, found[1].receipt)
    assert found[2].receipt == listing.receipt
    assert (found[3].memories, found[4].memories) == ((a,), (a,))
    assert {receipt.actor for receipt in found} == {"agent:planner"}
    for receipt in (found[1], found[2], found[4]):
        assert memory.why(receipt.receipt).recalled.query == receipt.query


def test_receipts_are_filtered(memory: Memory) -> None:
    """By verb, memory, actor and time: which memories did this question return, and who has read that memory."""
    memory.recall("WAL")
    assert [receipt.query for receipt in memory.receipts(verb="recall")] == ["WAL", "office"]
    assert [receipt.verb for receipt in memory.receipts(memory=id_of(memory, "a"))] == ["get", "recall"]
    assert [receipt.query for receipt in memory.receipts(verb="recall", limit=1)] == ["WAL"]
    assert memory.receipts(actor="user:ana") == []


def test_every_verb_that_reads_can_be_asked_for(memory: Memory, tmp_path: Path) -> None:
    """Each leaves a receipt of its verb, and another word is refused with those there are, not answered with none."""
    recall = memory.recall("WAL")
    recall.context()
    first = recall.hits[0].id
    memory.used(str(recall.receipt), [first])
    memory.why(str(recall.receipt))
    for read in (memory.get, memory.history, memory.blame):
        read(first)
    memory.search()
    memory.sql("select 1")
    memory.evaluate()
    memory.export(tmp_path / "out")
    memory.receipts()
    assert {receipt.verb for receipt in memory.receipts(limit=100)} == set(VERBS)
    for verb in VERBS:
        assert {receipt.verb for receipt in memory.receipts(verb=verb)} == {verb}
    with pytest.raises(Refused, match="Give one of recall, search"):
        memory.receipts(verb="recalled")


def test_to_list_receipts_is_a_read(memory: Memory) -> None:
    """Questions are texts too: whoever lists them is on record."""
    assert memory.receipts(verb="receipts") == []
    memory.receipts()
    assert [receipt.verb for receipt in memory.receipts(limit=1)] == ["receipts"]
