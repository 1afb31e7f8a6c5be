"""Revising: what changes, what stays, what is kept of it, and what is refused."""

from collections.abc import Iterator
from threading import Thread
from typing import Any

import pytest

from tallystick import Memory
from tallystick.commands.revise import FIELDS
from tallystick.errors import NotFound, Refused, RevisionConflict
from tallystick.events.kinds import Revised, Stored
from tallystick.projections.record import CLEARABLE, REVISABLE


@pytest.fixture
def memory() -> Iterator[Memory]:
    """A memory of its own, by words alone, verified when the test is done."""
    with Memory.temporary(namespace="project:app", actor="agent:planner") as opened:
        yield opened
        opened.verify(views=True)


WHOLE: dict[str, Any] = {
    "text": "Use WAL mode", "kind": "fact", "source": "human", "subject": "user:ana", "importance": 0.25,
    "confidence": 0.75, "author": "Ana", "occurred_at": "2023-05-08T13:56:00Z", "valid_from": "2023-05-08T00:00:00Z",
    "expires_at": "2100-01-01T00:00:00Z", "evidence": ("commit 1",), "label": "secret", "trust": "low",
    "metadata": {"path": "src/a.py"},
}  # fmt: skip


def found(memory: Memory, question: str) -> list[str]:
    """The ids of what is recalled."""
    return [hit.id for hit in memory.recall(question)]


def test_a_revised_text_takes_the_place_of_the_old_one(memory: Memory) -> None:
    """It is what is read and recalled, under the id it had; the old words lead nowhere."""
    stored = memory.store("The office is in Lisbon", tags=["place"])
    memory.store("Something else")
    outcome = memory.revise(stored.id, text="The office is in Porto", reason="it moved")
    assert (outcome.status, outcome.id, outcome.position) == ("revised", stored.id, 3)
    record = memory.get(stored.id)
    assert (record.text, record.tags, record.revision) == ("The office is in Porto", ("place",), 1)
    assert (found(memory, "Porto"), found(memory, "Lisbon")) == ([stored.id], [])


@pytest.mark.parametrize("field", REVISABLE)
def test_every_field_can_be_revised(memory: Memory, field: str) -> None:
    """One field is given and changes; the others stay; which revision wrote it is known."""
    stored = memory.store("Use a journal", author="Bo", metadata={"a": 1})
    before = memory.get(stored.id)
    memory.revise(stored.id, **{field: WHOLE[field]})
    after = memory.get(stored.id)
    changed = {name for name in Stored.model_fields if getattr(before.stored, name) != getattr(after.stored, name)}
    assert (changed, dict(after.provenance)) == ({field}, {field: 1})


@pytest.mark.parametrize("field", CLEARABLE)
def test_a_field_can_be_left_without_a_value(memory: Memory, field: str) -> None:
    """What may be absent can be taken away again."""
    stored = memory.store("Use a journal", **{field: WHOLE[field]})
    memory.revise(stored.id, cleared=[field])
    assert getattr(memory.get(stored.id).stored, field) is None


def test_tags_come_and_go_one_by_one(memory: Memory) -> None:
    """What is there already or was not there changes nothing."""
    stored = memory.store("Use WAL mode", tags=["a", "b"])
    memory.revise(stored.id, tags_added=["c", "a", "c"], tags_removed=["b", "z"])
    event = memory.history(stored.id)[-1].event
    assert isinstance(event, Revised)
    assert (event.tags_added, event.tags_removed, memory.get(stored.id).tags) == (("c",), ("b",), ("a", "c"))


def test_every_version_is_kept(memory: Memory) -> None:
    """The history tells each text, by whom and why."""
    stored = memory.store("one")
    for text in ("two", "three"):
        memory.revise(stored.id, text=text, reason=f"now {text}")
    texts = [getattr(logged.event, "text", None) for logged in memory.history(stored.id)]
    reasons = [getattr(logged.event, "reason", None) for logged in memory.history(stored.id)]
    assert (texts, reasons) == (["one", "two", "three"], [None, "now two", "now three"])


def test_only_what_differs_is_written(memory: Memory) -> None:
    """A field that is given its own value is left out of the event."""
    stored = memory.store("Use WAL mode", importance=0.9)
    memory.revise(stored.id, text="Use WAL mode", importance=0.9, author="Ana")
    event = memory.history(stored.id)[-1].event
    assert isinstance(event, Revised)
    assert (event.text, event.importance, event.author) == (None, None, "Ana")


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, "says that already"),
    "the same": ({"text": "Use WAL mode"}, "says that already"),
    "an empty text": ({"text": " "}, "no text"),
    "a text too long": ({"text": "x" * (1 << 20) + "x"}, "at most"),
    "a lone surrogate": ({"text": "a \ud83c"}, "surrogate"),
    "a naive time": ({"occurred_at": "2023-05-08T13:56:00"}, "no time zone"),
    "an unknown field": ({"colour": "red"}, "colour is not a field"),
    "a key": ({"key": "mode"}, "key is not a field"),
    "a namespace": ({"namespace": "b"}, "namespace is not a field"),
    "a place": ({"place": 3}, "place is not a field"),
    "an importance too big": ({"importance": 2}, "importance"),
    "a text taken away": ({"cleared": ["text"]}, "can't be left without"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_can_not_be_is_refused_and_leaves_nothing(memory: Memory, case: str) -> None:
    """With a word that says why; no event is written."""
    fields, words = REFUSED[case]
    stored = memory.store("Use WAL mode")
    with pytest.raises(Refused, match=words):
        memory.revise(stored.id, **fields)
    assert len(memory.history(stored.id)) == 1


def test_what_can_be_said_is_listed() -> None:
    """The fields that a refusal names are those of the event."""
    assert set(FIELDS) <= set(Revised.model_fields)


def test_what_is_not_there_is_not_revised(memory: Memory) -> None:
    """An id of nothing is NotFound."""
    with pytest.raises(NotFound):
        memory.revise("0" * 32, text="x")


def test_what_is_not_current_is_not_revised(memory: Memory) -> None:
    """A forgotten or superseded memory has to be restored first, or left."""
    forgotten, old = memory.store("forgotten"), memory.store("A", key="employer")
    memory.forget(forgotten.id)
    memory.store("B", key="employer")
    for stored in (forgotten, old):
        with pytest.raises(Refused, match="not current"):
            memory.revise(stored.id, text="x")


def test_only_at_the_revision_that_was_read(memory: Memory) -> None:
    """Who says which revision was read learns that somebody else was faster."""
    stored = memory.store("one")
    memory.revise(stored.id, text="two", if_revision=0)
    with pytest.raises(RevisionConflict, match="at revision 1 and not at 0"):
        memory.revise(stored.id, text="three", if_revision=0)
    assert memory.get(stored.id).text == "two"


def test_a_repeated_command_is_carried_out_once(memory: Memory) -> None:
    """The second time says what came of it the first time, whatever the memory is at by then."""
    stored = memory.store("one")
    first = memory.revise(stored.id, text="two", if_revision=0, command_id="c1")
    memory.revise(stored.id, text="three")
    again = memory.revise(stored.id, text="two", if_revision=0, command_id="c1")
    assert again == first._replace(repeated=True)
    assert memory.get(stored.id).text == "three"
    with pytest.raises(Refused, match="used for something else"):
        memory.revise(memory.store("other").id, text="x", command_id="c1")


def test_a_text_that_another_memory_has_is_refused(memory: Memory) -> None:
    """Two memories never say the same; the old text is free for another one."""
    one, two = memory.store("one"), memory.store("two")
    with pytest.raises(Refused, match=f"{one.id} holds it now"):
        memory.revise(two.id, text="one")
    memory.revise(one.id, text="uno")
    assert memory.store("one").status == "stored"
    assert memory.store("uno") == memory.store("uno")._replace(position=memory.status().logs["memory"] - 2)


def test_the_new_text_is_known_when_it_is_stored_again(memory: Memory) -> None:
    """It reinforces the revised memory, also after a rebuild."""
    stored = memory.store("one")
    memory.revise(stored.id, text="two")
    memory.rebuild()
    assert (memory.store("two").id, memory.store("one").status) == (stored.id, "stored")


def test_revisions_of_two_writers_come_one_after_the_other(memory: Memory) -> None:
    """Without `if_revision` nothing is lost: each decides on what the other has written."""
    stored = memory.store("one")
    writers = [
        Thread(target=lambda n=n: [memory.revise(stored.id, tags_added=[f"{n}-{i}"]) for i in range(8)])
        for n in range(3)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(memory.get(stored.id).tags) == 24
