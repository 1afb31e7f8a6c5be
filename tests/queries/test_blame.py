"""Blame: the event, the actor and the key behind each field of a memory."""

from collections.abc import Iterator

import pytest

from tallystick import Memory
from tallystick.errors import NotFound


@pytest.fixture
def memory() -> Iterator[Memory]:
    """A memory of its own, by words alone."""
    with Memory.temporary(actor="agent:planner") as opened:
        yield opened


def test_each_field_names_the_event_that_wrote_it(memory: Memory) -> None:
    """A field is blamed on the last revision that gave it a value, whoever made that, or on its first event."""
    stored = memory.store("one", tags=["a"], importance=0.9, author="Ana", metadata={"n": 1})
    memory.revise(stored.id, text="two", tags_added=["b"])
    status = memory.status()
    with Memory.open(status.store, keys=status.keys, model="none", actor="user:bo") as other:
        revised = other.revise(stored.id, text="three", cleared=["author"])
    memory.protect(stored.id)
    found = {blame.field: blame for blame in memory.blame(stored.id)}
    assert {name: (blame.value, blame.revision, blame.actor) for name, blame in found.items()} == {
        "text": ("three", 2, "user:bo"),
        "namespace": ("default", 0, "agent:planner"),
        "tags": (("a", "b"), 1, "agent:planner"),
        "importance": (0.9, 0, "agent:planner"),
        "author": (None, 2, "user:bo"),
        "metadata": ({"n": 1}, 0, "agent:planner"),
    }
    logged = memory._opened.log.event_at(revised.position)
    text = found["text"]
    assert (text.position, text.kind, text.at) == (revised.position, "memory.revised", logged.event.recorded_at)
    assert text.signed_by == logged.header.key


def test_blame_reads_what_is_forgotten_too(memory: Memory) -> None:
    """Whoever wrote it is on record, whatever became of the memory; what is no memory has nobody to blame."""
    stored = memory.store("one")
    memory.forget(stored.id)
    assert [blame.field for blame in memory.blame(stored.id)] == ["text", "namespace"]
    with pytest.raises(NotFound):
        memory.blame("0" * 32)
