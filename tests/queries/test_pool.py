"""The pool of a recall: what is known of its memories, and which turns stand around them."""

from collections.abc import Iterator

import pytest

from tallystick import Memory
from tallystick.projections.cues import ASKS, TELLS_A_NUMBER
from tallystick.projections.views import RECALL
from tallystick.queries.pool import Around, Candidate, around, before, candidates


@pytest.fixture
def memory() -> Iterator[Memory]:
    """A thread of five turns, by number 1 to 5, which were stored from the last to the first."""
    with Memory.temporary() as opened:
        for place in (4, 3, 2, 1, 0):
            opened.store(f"Turn {place}?", thread="t", place=place, author="Ana", command_id=str(place))
        opened.store("Turn of another thread", thread="u")
        opened.store("Turn of another namespace", thread="t", place=2, namespace="other")
        opened.store("No turn")
        yield opened


def pooled(memory: Memory, numbers: list[int]) -> list[Candidate]:
    """What is known of these memories."""
    with memory._opened.views.current(RECALL).reading() as cursor:
        return candidates(cursor, numbers)


def back(memory: Memory, numbers: list[int], steps: int = 2) -> list[list[int | None]]:
    """The turns before these memories."""
    with memory._opened.views.current(RECALL).reading() as cursor:
        return before(cursor, numbers, steps)


def beside(memory: Memory, numbers: list[int]) -> Around:
    """The turns around these memories."""
    with memory._opened.views.current(RECALL).reading() as cursor:
        return around(cursor, numbers)


def test_what_ranking_looks_at_is_what_was_stored(memory: Memory) -> None:
    """In order of numbers, each once, and what there is not is left out."""
    memory.store("9 words", importance=0.7, confidence=0.2, occurred_at="1970-01-01T00:00:01Z", kind="fact")
    stored = memory.search(sort="recorded_at").records
    first, last = pooled(memory, [9, 99, 1, 9])
    assert (first.number, first.thread, first.author, first.cues) == (1, "t", "Ana", ASKS | TELLS_A_NUMBER)
    assert (last.stream, last.at, last.importance, last.confidence, last.kind, last.words) == (
        stored[-1].stream, 1_000_000, 0.7, 0.2, "fact", 2
    )  # fmt: skip
    assert pooled(memory, []) == []


def test_turns_before_are_those_of_the_thread_in_order_of_places(memory: Memory) -> None:
    """One and two steps back, None where a thread begins, in no thread, and for what there is not."""
    assert back(memory, [1, 2, 4, 5, 6, 7, 8, 99]) == [
        [2, 3, 5, None, None, None, None, None], [3, 4, None, None, None, None, None, None]
    ]  # fmt: skip
    assert back(memory, []) == [[], []]
    assert back(memory, [1], 4) == [[2], [3], [4], [5]]


def test_turns_around_are_those_of_the_thread(memory: Memory) -> None:
    """Before and after; what stands alone has none."""
    assert beside(memory, [3, 5, 6, 7, 8, 99]) == {3: (4, 2), 5: (None, 4)}


def test_what_is_forgotten_is_no_turn_before(memory: Memory) -> None:
    """The one before it takes its place, until it is restored."""
    (third,) = memory.search(where={"place": 3}, namespaces=["default"]).records
    memory.forget(third.id)
    assert back(memory, [1]) == [[3], [4]]
    assert beside(memory, [2]) == {}
    memory.restore(third.id)
    assert back(memory, [1]) == [[2], [3]]
