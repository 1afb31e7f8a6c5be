"""Valid time: since when a memory holds, and until when."""

from collections.abc import Iterator
from typing import Any

import pytest

from tallystick import Memory

BEFORE, FIRST, SECOND, THIRD, AFTER = (f"20{year}-01-01T00:00:00Z" for year in (19, 20, 21, 22, 23))
A_MOMENT_BEFORE_SECOND = "2020-12-31T23:59:59.999999Z"


@pytest.fixture
def memory() -> Iterator[Memory]:
    """A memory of its own."""
    with Memory.temporary() as opened:
        yield opened


def valid(memory: Memory, as_of: str, **asked: Any) -> list[str]:
    """The texts that were valid then, oldest first."""
    return [record.text for record in memory.search(as_of=as_of, sort="recorded_at", **asked)]


@pytest.mark.parametrize(
    ("fields", "since"),
    [
        ({"valid_from": SECOND}, SECOND),
        ({"valid_from": SECOND, "occurred_at": FIRST}, SECOND),
        ({"valid_from": SECOND, "occurred_at": THIRD}, SECOND),
        ({"occurred_at": SECOND}, SECOND),
    ],
)
def test_since_when(memory: Memory, fields: dict[str, str], since: str) -> None:
    """From `valid_from`, else from when it occurred: at that very microsecond, and not before."""
    memory.store("x", **fields)
    assert since == SECOND
    assert (valid(memory, A_MOMENT_BEFORE_SECOND), valid(memory, SECOND)) == ([], ["x"])


def test_since_it_was_recorded(memory: Memory) -> None:
    """Where nothing else is said of when it holds."""
    at = memory.get(memory.store("x").id).recorded_at
    assert (valid(memory, AFTER), valid(memory, at.isoformat())) == ([], ["x"])


def test_until_it_expires(memory: Memory) -> None:
    """Not at the very microsecond; also if it has expired by now."""
    memory.store("x", valid_from=FIRST, expires_at=SECOND)
    assert [valid(memory, at) for at in (BEFORE, FIRST, A_MOMENT_BEFORE_SECOND, SECOND)] == [[], ["x"], ["x"], []]


def test_until_its_successor_holds(memory: Memory) -> None:
    """One value of a key at a time, each from when it begins."""
    for text, since in (("one", FIRST), ("two", SECOND), ("three", THIRD)):
        memory.store(text, key="k", valid_from=since)
    found = [valid(memory, at) for at in (BEFORE, FIRST, A_MOMENT_BEFORE_SECOND, SECOND, THIRD, AFTER)]
    assert found == [[], ["one"], ["one"], ["two"], ["three"], ["three"]]


def test_a_correction_of_what_held_before(memory: Memory) -> None:
    """A successor that holds from the same time or earlier leaves nothing of what it corrects."""
    memory.store("one", key="k", valid_from=FIRST)
    memory.store("two", key="k", valid_from=THIRD)
    memory.store("three", key="k", valid_from=SECOND)
    assert [valid(memory, at) for at in (FIRST, SECOND, THIRD)] == [["one"], ["three"], ["three"]]
    memory.store("four", key="k", valid_from=BEFORE)
    assert [valid(memory, at) for at in (BEFORE, FIRST, AFTER)] == [["four"]] * 3


def test_a_successor_that_begins_later_than_now(memory: Memory) -> None:
    """Superseded already, it holds until then."""
    memory.store("old price", key="price", valid_from=FIRST)
    memory.store("new price", key="price", valid_from="2999-01-01T00:00:00Z")
    assert (valid(memory, AFTER), valid(memory, "2999-01-01T00:00:00Z")) == (["old price"], ["new price"])


def test_what_is_forgotten_held_at_no_time(memory: Memory) -> None:
    """Nor what it replaced from when it would have held: that stays superseded."""
    memory.store("one", key="k", valid_from=FIRST)
    two = memory.store("two", key="k", valid_from=SECOND)
    memory.forget(two.id)
    assert (valid(memory, FIRST), valid(memory, SECOND)) == (["one"], [])
    memory.restore(two.id)
    assert valid(memory, SECOND) == ["two"]
    memory.store("three", key="k", valid_from=THIRD)
    memory.forget(two.id)
    assert [valid(memory, at) for at in (FIRST, SECOND, THIRD)] == [["one"], [], ["three"]]


def test_a_revision_is_known_for_all_times(memory: Memory) -> None:
    """Valid time is that of the memory as it is known now: its text, and since when it holds."""
    one = memory.store("one", key="k", valid_from=FIRST)
    memory.revise(one.id, text="one, put right", valid_from=SECOND)
    assert (valid(memory, FIRST), valid(memory, SECOND)) == ([], ["one, put right"])
    memory.revise(one.id, cleared=["valid_from"], occurred_at=FIRST)
    assert valid(memory, FIRST) == ["one, put right"]


def test_a_long_history_of_one_key(memory: Memory) -> None:
    """One value of a thousand, whichever time is asked."""
    memory.store_many([{"text": f"v{n}", "key": "k", "valid_from": f"{1000 + n}-01-01T00:00:00Z"} for n in range(1000)])
    for n in (0, 1, 499, 998, 999):
        assert valid(memory, f"{1000 + n}-06-01T00:00:00Z") == [f"v{n}"]
