"""Questions of the past: as the store stood at a position, or at a time."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from tallystick import Memory
from tallystick.errors import NotFound, Refused
from tallystick.events.instants import moment
from tallystick.past import KEPT

LONG_AGO = "2001-01-01T00:00:00Z"


@pytest.fixture
def memory() -> Iterator[Memory]:
    """A memory of its own, by words alone."""
    with Memory.temporary(namespace="a") as opened:
        yield opened


def recalled(memory: Memory, question: str = "office", **asked: Any) -> list[str]:
    """The texts that a question finds, in order of the alphabet."""
    return sorted(hit.text for hit in memory.recall(question, **asked))


def a_moment_later() -> datetime:
    """The time between what happened before and what happens after."""
    sleep(0.002)
    now = datetime.now(UTC)
    sleep(0.002)
    return now


def test_a_position_and_a_time_answer_as_the_store_stood(memory: Memory) -> None:
    """Neither knows what came later: not a text, a revision, a forgetting, nor a name."""
    first = memory.store("The office is in Lisbon")
    then = a_moment_later()
    memory.revise(first.id, text="The office is in Porto")
    memory.store("The office has a garden")
    memory.rename("a", "b")
    memory.forget(first.id)
    pasts: list[dict[str, Any]] = [
        {"at_position": first.position},
        {"known_at": then},
        {"known_at": then.isoformat()},
    ]
    for past in pasts:
        assert recalled(memory, **past) == ["The office is in Lisbon"]
        listing = memory.search(**past)
        assert ([r.text for r in listing], [r.namespace for r in listing]) == (["The office is in Lisbon"], ["a"])
    assert recalled(memory) == ["The office has a garden"]


def test_each_position_answers_as_at_does(memory: Memory) -> None:
    """Asking of a position is asking what `at` returns."""
    for n in range(4):
        memory.store(f"office {n}", key=f"k{n % 2}")
    for position in range(memory.status().logs["memory"]):
        with memory.at(position) as past:
            assert recalled(memory, at_position=position) == recalled(past)
            assert memory.search(at_position=position).total == past.search().total


def test_a_time_is_the_last_event_recorded_by_then(memory: Memory) -> None:
    """To the microsecond; before the first memory nothing is found, before the log began there is nothing to ask."""
    stored = [memory.get(memory.store(f"office {n}").id).recorded_at for n in range(3)]
    for n, at in enumerate(stored):
        assert len(recalled(memory, known_at=at)) == n + 1
        assert len(recalled(memory, known_at=at - timedelta(microseconds=1))) == n
    began = moment(memory._opened.log.event_at(0).event.recorded_at)
    assert recalled(memory, known_at=began) == []
    with pytest.raises(NotFound, match=r"log begins at .*Ask for later"):
        memory.recall("office", known_at=began - timedelta(microseconds=1))


def test_what_had_expired_by_then(memory: Memory) -> None:
    """A time is asked as of that time; a position as of when its event was recorded."""
    expires = datetime.now(UTC) + timedelta(seconds=0.05)
    position = memory.store("The office is open", expires_at=expires).position
    sleep(0.06)
    assert recalled(memory) == recalled(memory, known_at=expires) == []
    assert recalled(memory, known_at=expires - timedelta(microseconds=1)) == ["The office is open"]
    assert recalled(memory, at_position=position) == ["The office is open"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"at_position": 1, "known_at": LONG_AGO}, "both"),
        ({"at_position": -1}, "no position -1"),
        ({"at_position": 2}, "no position 2"),
        ({"at_position": True}, "at_position is True"),
        ({"at_position": "1"}, "at_position is '1'"),
        ({"known_at": "yesterday"}, "known_at"),
        ({"known_at": 5}, "known_at"),
        ({"known_at": "2023-05-08T00:00:00"}, "time zone"),
        ({"known_at": "2999-01-01T00:00:00Z"}, "yet to come"),
        ({"known_at": LONG_AGO}, "log begins"),
    ],
)
def test_what_is_no_past_is_refused(memory: Memory, asked: dict[str, Any], said: str) -> None:
    """A past that can't be meant is named, with a way out, and nothing is put on record."""
    memory.store("office")
    reads = memory.status().logs["access"]
    for verb in (lambda: memory.recall("office", **asked), lambda: memory.search(**asked)):
        with pytest.raises((Refused, NotFound), match=said):
            verb()
    assert memory.status().logs["access"] == reads


def test_the_receipt_says_of_which_past_it_is(memory: Memory) -> None:
    """How it was asked for, and the log it was answered from: also of what `at` returns."""
    position = memory.store("office").position
    then = a_moment_later()
    memory.store("office two")
    for recall, said in (
        (memory.recall("office", at_position=position), {"at_position": position}),
        (memory.recall("office", known_at=then), {"known_at": (then - moment(0)) // timedelta(microseconds=1)}),
        (memory.at(position).recall("office"), {"at_position": position}),
    ):
        why = memory.why(recall.receipt)
        assert (why.recalled.filters, why.recalled.log_size) == (said, position + 1)
        assert why.recalled.log_root == memory._opened.log.event_at(position + 1).header.root
    listing = memory.search(at_position=position)
    assert memory.why(listing.receipt).recalled.filters == {"sort": "-recorded_at", "at_position": position}


def test_the_last_pasts_stay_folded(memory: Memory) -> None:
    """A second question of a position folds nothing; what was not asked lately leaves nothing behind."""
    positions = [memory.store(f"office {n}").position for n in range(KEPT + 1)]
    folders: list[Path] = []
    for position in positions:
        memory.recall("office", at_position=position)
        folders.append(memory._pasts._kept[position].installation.derived)
    assert [folder.exists() for folder in folders] == [False] + [True] * KEPT
    before = dict(memory._pasts._kept)
    for position in positions[1:]:
        memory.recall("garden", at_position=position)
        memory.search(known_at=memory.get(memory.search(at_position=position).records[0].id).recorded_at)
    assert dict(memory._pasts._kept) == before
    memory.close()
    assert not any(folder.exists() for folder in folders)


def test_a_context_is_of_the_past_that_was_asked(memory: Memory) -> None:
    """What was pinned then stands in it, also when the past was folded away meanwhile."""
    pinned = memory.store("The garden is green")
    memory.pin(pinned.id)
    position = memory.store("The office is in Lisbon").position
    recall = memory.recall("office", at_position=position)
    memory.revise(pinned.id, text="The garden is brown")
    for n in range(KEPT + 1):
        memory.recall("office", at_position=memory.store(f"office {n}").position)
    context = recall.context()
    assert "green" in context.text
    assert "brown" not in context.text
    rendered = memory.why(context.receipt).context
    assert rendered is not None
    assert rendered.log_size == position + 1


def test_a_text_of_the_past_is_no_echo(memory: Memory) -> None:
    """What the past said, stored now, is a memory of its own and reinforces none that says otherwise by now."""
    first = memory.store("The office is in Lisbon")
    memory.revise(first.id, text="The office is in Porto")
    memory.recall("office", at_position=first.position).context()
    memory.search(at_position=first.position)
    again = memory.store("The office is in Lisbon")
    assert (again.status, again.id == first.id) == ("stored", False)


def test_pages_of_the_past(memory: Memory) -> None:
    """A cursor goes on in its own past and in no other."""
    positions = [memory.store(f"office {n}").position for n in range(5)]
    page = memory.search(limit=3, at_position=positions[3])
    rest = memory.search(limit=3, at_position=positions[3], after=page.cursor)
    assert ([r.text for r in (*page, *rest)], rest.cursor) == ([f"office {n}" for n in (3, 2, 1, 0)], None)
    others: list[dict[str, Any]] = [{}, {"at_position": positions[4]}]
    for other in others:
        with pytest.raises(Refused, match="cursor"):
            memory.search(limit=3, after=page.cursor, **other)


def test_many_threads_ask_of_many_pasts(memory: Memory) -> None:
    """More pasts than stay folded, asked at once: each answers for itself."""
    positions = [memory.store(f"office {n}").position for n in range(KEPT + 2)]

    def ask(n: int) -> tuple[int, int]:
        place = n % len(positions)
        return place + 1, len(memory.recall("office", at_position=positions[place], limit=99).hits)

    with ThreadPoolExecutor(4) as threads:
        for expected, found in threads.map(ask, range(24)):
            assert found == expected


def test_the_past_of_a_store_that_is_only_read(tmp_path: Path) -> None:
    """It is folded beside the store, which stays as it is; it is not on record, and says so."""
    with Memory.open(tmp_path / "store", keys=tmp_path / "keys", model="none") as memory:
        position = memory.store("office one").position
        then = a_moment_later()
        memory.store("office two")
    views = sorted((tmp_path / "store").glob("views-*"))
    with Memory.open(tmp_path / "store", keys=tmp_path / "keys", model="none", read_only=True) as memory:
        pasts: list[dict[str, Any]] = [{"at_position": position}, {"known_at": then}]
        for past in pasts:
            recall = memory.recall("office", **past)
            assert ([hit.text for hit in recall], recall.receipt) == (["office one"], None)
            assert any("not on record" in said for said in recall.degraded)
    assert sorted((tmp_path / "store").glob("views-*")) == views
