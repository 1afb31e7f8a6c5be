"""Links between memories: made, listed, taken away, and refused where they make no sense."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tallystick import Memory
from tallystick.errors import NotFound, Refused
from tallystick.projections.record import Link


@pytest.fixture
def memory() -> Iterator[Memory]:
    """A memory of its own, by words alone, verified when the test is done."""
    with Memory.temporary() as opened:
        yield opened
        opened.verify(views=True)


def test_a_memory_points_to_others(memory: Memory) -> None:
    """By kind, in the order in which it was said; the other one is unchanged."""
    one, two = memory.store("The cable broke").id, memory.store("The site was down").id
    memory.link(one[:8], two[:8], kind="causes")
    memory.link(one, two)
    assert memory.get(one).links == (Link("causes", bytes.fromhex(two)), Link("related", bytes.fromhex(two)))
    assert memory.get(two).links == ()
    memory.unlink(one, two, kind="causes")
    assert memory.get(one).links == (Link("related", bytes.fromhex(two)),)


def test_links_that_make_no_sense_are_refused(memory: Memory) -> None:
    """To itself, twice the same, of no kind, to nothing, and taking away what is not there."""
    one, two = memory.store("one").id, memory.store("two").id
    memory.link(one, two)
    cases: list[tuple[Callable[[], Any], str]] = [
        (lambda: memory.link(one, one), "to itself"),
        (lambda: memory.link(one, two), "already"),
        (lambda: memory.link(one, two, kind="No Word"), "kind"),
        (lambda: memory.unlink(two, one), "no such link"),
    ]
    for act, words in cases:
        with pytest.raises(Refused, match=words):
            act()
    with pytest.raises(NotFound):
        memory.link(one, "0" * 32)
    assert len(memory.history(one)) == 2


def test_a_forgotten_memory_keeps_its_links(memory: Memory) -> None:
    """Restored it points where it did."""
    one, two = memory.store("one").id, memory.store("two").id
    memory.link(one, two)
    memory.forget(one)
    memory.restore(one)
    assert len(memory.get(one).links) == 1
