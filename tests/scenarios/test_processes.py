"""Several processes use one store at once: each acknowledged command stands, and each claim has one holder."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import pytest

from tallystick.events.kinds import Stored

from .conftest import Place, Start

PROCESSES = 4
ROUNDS = 12
OPENINGS = 4

Said = dict[str, list[dict[str, Any]]]


@pytest.fixture
def said(place: Place, start: Start) -> Said:
    """What four processes said of the stores they made at once, by case."""
    place.open().close()
    workers = [start("store_worker.py", place.store, place.keys, f"w{n}", ROUNDS) for n in range(PROCESSES)]
    for worker in workers:
        assert worker.hear() == "open"
    for worker in workers:
        worker.say()
    outcomes: Said = defaultdict(list)
    for outcome in (outcome for worker in workers for outcome in worker.succeed()):
        outcomes[outcome["case"]].append(outcome)
    assert sum(map(len, outcomes.values())) == PROCESSES * ROUNDS * 5
    return outcomes


def statuses(outcomes: Iterable[dict[str, Any]]) -> Counter[str]:
    """How many outcomes there are of each kind."""
    return Counter(outcome["status"] for outcome in outcomes)


def test_four_processes_store_at_once(place: Place, said: Said) -> None:
    """Nothing acknowledged is lost, positions are gapless, each claim has one holder, and all of it verifies."""
    with place.open() as memory:
        report = memory.verify(views=True)
        events = list(memory.events())
        records = {outcome["id"]: memory.get(outcome["id"]) for group in said.values() for outcome in group}
    assert [event.header.position for event in events] == list(range(1, report.logs[0].size))
    at = {event.header.position: event for event in events}
    for outcome in (outcome for group in said.values() for outcome in group):
        assert at[outcome["position"]].header.stream.hex() == outcome["id"]
    one_memory_holds_each_text(said)
    one_memory_holds_each_key(said, records)
    each_command_is_carried_out_once(said, [event.event for event in events])


def one_memory_holds_each_text(said: Said) -> None:
    """The same text from several processes is stored once, and reinforced by all the others."""
    for n in range(ROUNDS):
        outcomes = said[f"text {n}"]
        assert statuses(outcomes) == {"stored": 1, "reinforced": PROCESSES - 1}
        assert len({outcome["id"] for outcome in outcomes}) == 1
        assert len({outcome["position"] for outcome in outcomes}) == PROCESSES
    assert statuses(said["own"]) == {"stored": PROCESSES * ROUNDS}


def one_memory_holds_each_key(said: Said, records: dict[str, Any]) -> None:
    """Values of one key follow each other in one chain, whose last one is the only one in force."""
    for case in ("key", *(f"key w{n}" for n in range(PROCESSES))):
        outcomes = sorted(said[case], key=lambda outcome: outcome["position"])
        assert [o["superseded_id"] for o in outcomes] == [None, *(o["id"] for o in outcomes[:-1])]
        assert statuses(outcomes) == {"stored": 1, "superseded": len(outcomes) - 1}
        assert [o["id"] for o in outcomes if records[o["id"]].status == "current"] == [outcomes[-1]["id"]]


def each_command_is_carried_out_once(said: Said, events: list[Any]) -> None:
    """Whoever repeats a command id is told what came of it the first time."""
    carried_out = Counter(event.command_id for event in events if isinstance(event, Stored))
    for n in range(ROUNDS):
        assert len({(o["id"], o["position"], o["status"]) for o in said[f"command {n}"]}) == 1
        assert carried_out[f"command-{n}"] == 1


@pytest.mark.parametrize("keys", ["named", "default"])
def test_processes_that_open_an_empty_place_make_one_store(place: Place, start: Start, keys: str) -> None:
    """Of several processes that open an empty place at once one makes the store, and all of them use it."""
    directory = place.keys if keys == "named" else ""
    workers = [start("open_worker.py", place.store, directory, f"w{n}") for n in range(OPENINGS)]
    for worker in workers:
        assert worker.hear() == "ready"
    for worker in workers:
        worker.say()
    said = [worker.hear() for worker in workers]
    for worker in workers:
        worker.say()
        assert worker.succeed() == []
    assert [answer for answer in said if "error" in answer] == []
    assert len({answer["keys"] for answer in said}) == 1
    with place._replace(keys=said[0]["keys"]).open() as memory:
        assert memory.verify(views=True).logs[0].size == 1 + OPENINGS
        assert {memory.get(answer["id"]).id for answer in said} == {answer["id"] for answer in said}
    assert len(list(place.store.glob("views-*.db"))) == 1
