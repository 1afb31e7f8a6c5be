"""What was just recalled and comes back as a text to store is no new memory."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from time import sleep

import pytest

from tallystick import Memory
from tallystick.commands import echo


@pytest.fixture
def memory() -> Iterator[Memory]:
    """A memory of its own, by words alone."""
    with Memory.temporary() as opened:
        yield opened


@pytest.mark.parametrize("field", [{"thread": "s1"}, {"key": "office"}, {"subject": "user:ana"}], ids=str)
@pytest.mark.parametrize("verb", ["recall", "get"])
def test_a_recalled_text_reinforces_where_it_came_from(memory: Memory, field: dict[str, str], verb: str) -> None:
    """Whatever thread, key or subject it was stored with, so that an agent's notes do not pile up."""
    stored = memory.store("The office is in Lisbon", **field)
    _ = memory.recall("office") if verb == "recall" else memory.get(stored.id)
    for _ in range(5):
        again = memory.store(" The office is in Lisbon\n")
        assert (again.status, again.id) == ("reinforced", stored.id)
    assert memory.status().memories == {"current": 1}
    memory.verify(views=True)


def test_what_was_not_recalled_is_new(memory: Memory) -> None:
    """A text that somebody else says for the first time is a memory of its own."""
    memory.store("The office is in Lisbon", subject="user:ana")
    assert memory.store("The office is in Lisbon").status == "stored"


def test_an_explicit_wish_is_no_echo(memory: Memory) -> None:
    """Who gives a key, a subject or a thread says something new about the text."""
    memory.store("The office is in Lisbon", subject="user:bo")
    memory.recall("office")
    for field in ({"key": "office"}, {"subject": "user:ana"}, {"thread": "s1"}, {"namespace": "other"}):
        assert memory.store("The office is in Lisbon", **field).status == "stored"


def test_a_forgotten_memory_has_no_echo(memory: Memory) -> None:
    """Its text stored again is a new memory."""
    stored = memory.store("The office is in Lisbon", subject="user:ana")
    memory.recall("office")
    memory.forget(stored.id)
    assert memory.store("The office is in Lisbon").status == "stored"


def test_a_process_remembers_some_of_what_it_recalled(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest: a process that runs for ever does not grow, and what it has forgotten is stored as said anew."""
    monkeypatch.setattr(echo, "REMEMBERED", 2)
    texts = [f"The office number {n} is in Lisbon" for n in range(3)]
    for text in texts:
        memory.get(memory.store(text, subject="user:ana").id)
    assert [memory.store(text).status for text in texts] == ["stored", "reinforced", "reinforced"]


def test_an_expired_memory_has_no_echo(memory: Memory) -> None:
    """Its text said again is a new memory, and its key stays its own."""
    soon = datetime.now(UTC) + timedelta(milliseconds=300)
    old = memory.store("The office is in Lisbon", key="office", expires_at=soon)
    memory.get(old.id)
    sleep(0.4)
    assert memory.store("The office is in Lisbon").superseded_id is None
    assert memory.store("The office is in Porto", key="office").superseded_id == old.id
