"""Conversations: turns in order, once each, found by the words around them."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tallystick import Memory
from tallystick.commands import conversation
from tallystick.errors import Refused

TURNS: list[Any] = [
    {"role": "ana", "content": "Where did you leave the bicycle?"},
    {"role": "bo", "content": "In the cellar, I think."},
    "Yes",
    {"speaker": "ana", "text": "Thanks!", "occurred_at": "2023-05-09T08:00:00Z"},
]


@pytest.fixture
def memory() -> Iterator[Memory]:
    """A memory of its own, by words alone, verified when the test is done."""
    with Memory.temporary(namespace="project:app") as opened:
        yield opened
        opened.verify(views=True)


def test_turns_are_stored_in_order(memory: Memory) -> None:
    """Each with its place, its author, and what all share unless it says something else."""
    outcomes = memory.store_conversation(TURNS, thread="s1", occurred_at="2023-05-08T13:56:00Z", tags=["chat"])
    stored = [memory.get(outcome.id).stored for outcome in outcomes]
    assert [(s.place, s.author, s.thread, s.kind, s.tags) for s in stored] == [
        (n, author, "s1", "turn", ("chat",)) for n, author in enumerate(("ana", "bo", None, "ana"))
    ]
    assert len({s.occurred_at for s in stored[:3]}) == 1
    assert stored[3].occurred_at != stored[0].occurred_at


def test_a_turn_is_found_by_the_words_around_it(memory: Memory) -> None:
    """An answer by its question, a question by its answer; the turn's own words weigh most."""
    ids = [outcome.id for outcome in memory.store_conversation(TURNS, thread="s1")]
    memory.store("The cellar of the museum")
    assert [hit.id for hit in memory.recall("bicycle")] == ids[:2]
    assert {hit.id for hit in memory.recall("cellar")} >= set(ids[:3])


def test_a_conversation_that_is_stored_again_is_stored_once(memory: Memory) -> None:
    """So one that broke off goes on where it was."""
    first = memory.store_conversation(TURNS[:2], thread="s1")
    whole = memory.store_conversation(TURNS, thread="s1")
    assert [outcome.repeated for outcome in whole] == [True, True, False, False]
    assert [outcome.id for outcome in whole[:2]] == [outcome.id for outcome in first]
    assert memory.status().memories == {"current": 4}


def test_what_comes_later_is_placed_after_the_preceding_turns(memory: Memory) -> None:
    """With their number; without it the places are taken, and the turns are refused by name."""
    memory.store_conversation(TURNS, thread="s1")
    later = memory.store_conversation(["And the pump?", "There too."], thread="s1", preceding=4)
    assert [memory.get(outcome.id).stored.place for outcome in later] == [4, 5]
    taken = memory.store_conversation(["And the pump?"], thread="s1")
    assert (taken[0].status, "turn 0 of s1" in (taken[0].reason or "")) == ("refused", True)


def test_long_conversations_are_stored_in_portions(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is there when one portion fails is there, and the next call goes on."""
    monkeypatch.setattr(conversation, "CHUNK", 3)
    recorder = memory._opened.log.recorder
    signing, calls = recorder._signing, iter(range(100))

    def fail_at_the_fifth() -> Any:
        if next(calls) == 4:
            raise Refused("the signer is gone. Try again.")
        return signing()

    monkeypatch.setattr(recorder, "_signing", fail_at_the_fifth)
    turns = [f"turn {n}" for n in range(7)]
    with pytest.raises(Refused, match="signer is gone"):
        memory.store_conversation(turns, thread="s1")
    assert memory.status().memories == {"current": 3}
    assert [outcome.repeated for outcome in memory.store_conversation(turns, thread="s1")] == [True] * 3 + [False] * 4


@pytest.mark.parametrize(
    ("turns", "options", "words"),
    [
        ("one turn", {}, "one turn"),
        ({"text": "one turn"}, {}, "one turn"),
        (["a"], {"thread": ""}, "name the conversation"),
        (["a"], {"preceding": -1}, "preceding"),
        (["a"], {"preceding": "3"}, "preceding"),
    ],
)
def test_what_is_no_conversation_is_refused(memory: Memory, turns: Any, options: dict[str, Any], words: str) -> None:
    """With a word of what is expected."""
    with pytest.raises(Refused, match=words):
        memory.store_conversation(turns, **{"thread": "s1", **options})


def test_the_same_words_in_two_turns_are_two_turns(memory: Memory) -> None:
    """Also where they were just recalled."""
    memory.store("Yes")
    memory.recall("yes")
    outcomes = memory.store_conversation(["Yes", "Yes"], thread="s1")
    assert [outcome.status for outcome in outcomes] == ["stored", "stored"]


WAYS: dict[str, Callable[[Memory], Any]] = {
    "store": lambda memory: memory.store("A note", command_id="turn 0 of s1"),
    "another place": lambda memory: memory.store("A turn", thread="s1", place=1, command_id="turn 0 of s1"),
    "forget": lambda memory: memory.forget(memory.store("A note").id, command_id="turn 0 of s1"),
    "a turn": lambda memory: memory.store_conversation(["A turn"], thread="s2", command_id="turn 0 of s1"),
}


@pytest.mark.parametrize("way", WAYS)
def test_no_command_takes_the_place_of_a_turn(memory: Memory, way: str) -> None:
    """The command ids of turns are the conversation's own."""
    try:
        outcomes = WAYS[way](memory)
        assert [outcome.status for outcome in outcomes] == ["refused"]
        assert "turn of a conversation" in outcomes[0].reason
    except Refused as error:
        assert "turn of a conversation" in str(error)
    assert memory.store_conversation(["Hello"], thread="s1")[0].status == "stored"


def test_a_turn_that_is_stored_by_itself_is_the_turn(memory: Memory) -> None:
    """With its thread, its place and its command id it is the same as a turn of a conversation."""
    stored = memory.store("Hello", thread="s1", place=0, kind="turn", command_id="turn 0 of s1")
    again = memory.store_conversation(["Hello"], thread="s1")[0]
    assert (again.id, again.repeated, again.reason) == (stored.id, True, None)


def test_what_is_said_otherwise_the_second_time_is_named(memory: Memory) -> None:
    """The stored turn stays as it is, and the outcome says in what the new one differs."""
    memory.store_conversation([{"text": "Hello", "author": "Ana"}], thread="s1", occurred_at="2026-05-08T13:56:00Z")
    again = memory.store_conversation(
        [{"text": "Hello", "author": "Ben"}], thread="s1", occurred_at="2027-05-08T13:56:00Z", tags=["x"]
    )[0]
    assert (again.status, again.repeated) == ("stored", True)
    assert again.reason is not None
    assert "another tags, author, occurred_at, which stays. Revise the memory" in again.reason
    assert memory.get(again.id).stored.author == "Ana"
    assert memory.store_conversation(["Hello"], thread="s1")[0].reason is None
    batch = [{"text": "Hi", "command_id": "c", "author": author} for author in ("Ana", "Ben")]
    assert "another author" in str(memory.store_many(batch)[1].reason)


def test_a_thread_is_one_on_every_keyboard(memory: Memory) -> None:
    """Its name in another form of Unicode is no other thread."""
    memory.store_conversation(["Hello"], thread="café")
    assert memory.store_conversation(["Hello"], thread="cafe\u0301")[0].repeated
