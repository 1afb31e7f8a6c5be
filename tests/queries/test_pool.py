"""The pool of a recall: what is known of its memories, and which turns stand around them."""

from collections.abc import Iterator

import numpy
import pytest

from tallystick import Memory
from tallystick.projections.cues import ASKS, TELLS_A_NUMBER
from tallystick.projections.views import RECALL
from tallystick.queries.pool import Pool, Searched, back, neighbours, pooled

OWN, OTHER = "default", "other"


@pytest.fixture
def memory() -> Iterator[Memory]:
    """A thread of five turns, by number 1 to 5, which were stored from the last to the first."""
    with Memory.temporary() as opened:
        for place in (4, 3, 2, 1, 0):
            opened.store(f"Turn {place}?", thread="t", place=place, author="Ana", command_id=str(place))
        opened.store("Turn of another thread", thread="u", author="Ben", kind="turn")
        opened.store("Turn of another namespace", thread="t", place=2, namespace=OTHER, author="Ben")
        opened.store("No turn")
        yield opened


def searched(memory: Memory, *namespaces: str) -> list[Searched]:
    """These namespaces, with all that is current."""
    views = memory._opened.views.current(RECALL)
    with views.reading() as cursor:
        found = views.columns.of(cursor, namespaces or [OWN])
    return [Searched(each, each.until > 0, each.until > 0) for each in found]


def whole(memory: Memory, *namespaces: str) -> Pool:
    """All that is known of these namespaces."""
    found = searched(memory, *namespaces)
    return pooled(found, [numpy.arange(len(each.columns)) for each in found])


def stands_back(memory: Memory, numbers: list[int], steps: int = 2) -> list[list[int | None]]:
    """The turns before these memories of one namespace, by number."""
    (found,) = searched(memory)
    known = [*found.columns.numbers.tolist(), None]
    places = found.columns.places(numpy.array(numbers))
    return [[known[place] for place in at.tolist()] for at in back(found, places, steps)]


def test_what_ranking_looks_at_is_what_was_stored(memory: Memory) -> None:
    """In order of numbers: time, importance and the like, who said it and of which kind it is."""
    memory.store("9 words", importance=0.7, confidence=0.2, occurred_at="1970-01-01T00:00:01Z", kind="fact")
    pool = whole(memory)
    first, last = pool.rows[0], pool.rows[-1]
    assert (pool.numbers[0], pool.authors[first["author"]], first["cues"]) == (1, "Ana", ASKS | TELLS_A_NUMBER)
    assert last["stream"].astype(">u8").tobytes().hex() == memory.search(kinds=["fact"]).records[0].id
    assert (last["at"], last["importance"], last["confidence"], last["words"]) == (1_000_000, 0.7, 0.2, 2)
    assert (pool.kinds[last["kind"]], last["author"], numpy.isnan(first["confidence"])) == ("fact", -1, True)


def test_namespaces_share_authors_and_kinds_and_no_thread(memory: Memory) -> None:
    """Who is called alike counts as one; a thread of the same name elsewhere is another."""
    pool = whole(memory, OTHER, OWN)
    said = {number: (pool.authors[row["author"]] if row["author"] >= 0 else None, pool.kinds[row["kind"]])
            for number, row in zip(pool.numbers.tolist(), pool.rows, strict=True)}  # fmt: skip
    assert said[7] == ("Ben", "note")
    assert said[6] == ("Ben", "turn")
    assert said[1] == ("Ana", "note")
    assert said[8] == (None, "note")
    threads = dict(zip(pool.numbers.tolist(), pool.threads.tolist(), strict=True))
    assert threads[1] == threads[5] != threads[6]
    assert threads[7] not in (threads[1], threads[6], -1)
    assert threads[8] == -1
    assert len(pooled([], [])) == 0


def test_turns_before_are_those_of_the_thread_in_order_of_places(memory: Memory) -> None:
    """One and two steps back, none where a thread begins and in no thread."""
    assert stands_back(memory, [1, 2, 4, 5, 6, 8]) == [[2, 3, 5, None, None, None], [3, 4, None, None, None, None]]
    assert stands_back(memory, []) == [[], []]
    assert stands_back(memory, [1], 4) == [[2], [3], [4], [5]]


def test_turns_around_are_those_of_the_thread_that_may_be_found(memory: Memory) -> None:
    """Before and after; what stands alone has none."""
    (found,) = searched(memory)

    def beside(*numbers: int) -> list[int]:
        places = neighbours(found, found.columns.places(numpy.array(numbers)))
        return sorted(int(number) for number in found.columns.numbers[places])

    assert beside(3) == [2, 4]
    assert beside(5, 6, 8) == [4]
    found.allowed[found.columns.numbers == 4] = False
    assert beside(3) == [2]


def test_what_is_forgotten_or_has_expired_is_no_turn_before(memory: Memory) -> None:
    """The one before what is forgotten takes its place, until it is restored; nobody that of what has expired."""
    (third,) = memory.search(where={"place": 3}, namespaces=[OWN]).records
    memory.forget(third.id)
    assert stands_back(memory, [1]) == [[3], [4]]
    memory.restore(third.id)
    assert stands_back(memory, [1]) == [[2], [3]]
    (found,) = searched(memory)
    found.current[found.columns.numbers == 2] = False
    places = found.columns.places(numpy.array([1]))
    assert [at.tolist() for at in back(found, places, 1)] == [[-1]]
