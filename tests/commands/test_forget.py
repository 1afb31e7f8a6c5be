"""Forgetting and restoring: from current to forgotten and back, and what is refused on the way."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallystick import Memory, Outcome
from tallystick.errors import NotFound, Refused
from tallystick.events.kinds import Forgotten, Restored
from tallystick.events.mapper import LoggedEvent

TEXT = "The office is in Lisbon"


@pytest.fixture
def memory() -> Iterator[Memory]:
    """A memory of its own, by words alone."""
    with Memory.temporary(namespace="project:app", actor="agent:planner") as opened:
        yield opened


@pytest.fixture(scope="module")
def common() -> Iterator[Memory]:
    """One memory for the examples of a property, verified after all of them."""
    with Memory.temporary() as opened:
        yield opened
        opened.verify(views=True)


def size(memory: Memory) -> int:
    """How many events the memory log has."""
    return memory.status().logs["memory"]


def found(memory: Memory) -> list[str]:
    """The ids of what is recalled about the office."""
    return [hit.id for hit in memory.recall("where is the office?")]


def test_what_is_forgotten_is_kept_and_recalled_by_nobody(memory: Memory) -> None:
    """A forgotten memory is no longer found; by its id it can still be read."""
    stored = memory.store(TEXT)
    memory.forget(stored.id, reason="they moved")
    assert found(memory) == []
    record = memory.get(stored.id)
    assert (record.status, record.text, record.forgotten_for) == ("forgotten", TEXT, "they moved")
    assert memory.status().memories == {"forgotten": 1}


def test_forgetting_is_one_event_that_says_why(memory: Memory) -> None:
    """The retraction names actor, reason and the event it follows; where it stands is returned."""
    stored = memory.store(TEXT)
    outcome = memory.forget(stored.id, reason="they moved")
    first, last = memory.history(stored.id)
    assert outcome == Outcome("forgotten", stored.id, last.header.position)
    assert (last.header.revision, size(memory)) == (1, last.header.position + 1)
    assert isinstance(last.event, Forgotten)
    assert (last.event.reason, last.event.actor, last.event.parents) == ("they moved", "agent:planner", (first.leaf,))


def test_what_is_restored_is_recalled_again(memory: Memory) -> None:
    """Restoring undoes forgetting, with an event of its own that says why."""
    stored = memory.store(TEXT)
    memory.forget(stored.id)
    outcome = memory.restore(stored.id, reason="they did not")
    assert found(memory) == [stored.id]
    record = memory.get(stored.id)
    assert (record.status, record.forgotten_for) == ("current", None)
    before, last = memory.history(stored.id)[1:]
    assert isinstance(last.event, Restored)
    assert (last.event.reason, last.event.parents) == ("they did not", (before.leaf,))
    assert outcome == Outcome("restored", stored.id, last.header.position)
    assert last.header.revision == 2


def test_a_reason_is_not_needed(memory: Memory) -> None:
    """Whoever forgets or restores need not say why."""
    stored = memory.store(TEXT)
    memory.forget(stored.id)
    memory.restore(stored.id)
    assert [getattr(logged.event, "reason", None) for logged in memory.history(stored.id)[1:]] == [None, None]


@pytest.mark.parametrize("reason", ["", "because " * 65, "half a \ud83c pair", "nothing\0"])
@pytest.mark.parametrize("verb", ["forget", "restore"])
def test_a_reason_that_cannot_be_kept_is_refused(memory: Memory, verb: str, reason: str) -> None:
    """A reason is 1 to 512 characters of valid Unicode; another one changes nothing."""
    stored = memory.store(TEXT)
    if verb == "restore":
        memory.forget(stored.id)
    before, status = size(memory), memory.get(stored.id).status
    with pytest.raises(Refused, match="reason"):
        getattr(memory, verb)(stored.id, reason=reason)
    assert (size(memory), memory.get(stored.id).status) == (before, status)


def test_forgetting_twice_is_refused(memory: Memory) -> None:
    """What is forgotten can't be forgotten again; nothing is appended."""
    stored = memory.store(TEXT)
    memory.forget(stored.id)
    before = size(memory)
    with pytest.raises(Refused, match=rf"{stored.id} is forgotten already"):
        memory.forget(stored.id)
    assert size(memory) == before


def test_only_what_is_forgotten_can_be_restored(memory: Memory) -> None:
    """A current memory and a superseded one are not forgotten: restoring them is refused, saying what they are."""
    older = memory.store("Company A", key="employer")
    newer = memory.store("Company B", key="employer")
    before = size(memory)
    for outcome, status in ((older, "superseded"), (newer, "current")):
        with pytest.raises(Refused, match=f"{outcome.id} is {status}"):
            memory.restore(outcome.id)
    assert size(memory) == before


@pytest.mark.parametrize("verb", ["forget", "restore"])
def test_an_unknown_memory_is_not_found(memory: Memory, verb: str) -> None:
    """There is nothing to forget or restore under an id that no memory has."""
    memory.store(TEXT)
    with pytest.raises(NotFound):
        getattr(memory, verb)("0" * 32)


def test_a_text_that_somebody_stored_since_is_not_restored(memory: Memory) -> None:
    """Two current memories never have the same text: restoring is refused and names the one that holds it."""
    first = memory.store(TEXT)
    memory.forget(first.id)
    second = memory.store(TEXT)
    before = size(memory)
    with pytest.raises(Refused, match=second.id):
        memory.restore(first.id)
    assert size(memory) == before
    memory.forget(second.id)
    memory.restore(first.id)
    assert found(memory) == [first.id]


def test_a_key_that_has_a_newer_value_is_not_restored(memory: Memory) -> None:
    """A key has one current value: restoring an older one is refused and names the present one."""
    first = memory.store("Company A", key="employer")
    memory.forget(first.id)
    second = memory.store("Company B", key="employer")
    with pytest.raises(Refused, match=second.id):
        memory.restore(first.id)
    memory.forget(second.id)
    memory.restore(first.id)
    assert memory.get(first.id).status == "current"
    assert memory.store("Company C", key="employer").superseded_id == first.id


def test_a_superseded_memory_can_be_forgotten(memory: Memory) -> None:
    """An older value of a key can be retracted too, and does not come back while the key has a newer one."""
    older = memory.store("Company A", key="employer")
    newer = memory.store("Company B", key="employer")
    memory.forget(older.id)
    assert memory.get(older.id).status == "forgotten"
    with pytest.raises(Refused, match=newer.id):
        memory.restore(older.id)
    assert memory.get(newer.id).status == "current"


def test_a_restored_text_is_reinforced_again(memory: Memory) -> None:
    """What was restored holds its text: storing it once more makes no second memory."""
    stored = memory.store(TEXT)
    memory.forget(stored.id)
    memory.restore(stored.id)
    again = memory.store(TEXT)
    assert (again.status, again.id) == ("reinforced", stored.id)


def test_the_beginning_of_an_id_is_enough(memory: Memory) -> None:
    """Ids are named by an unambiguous beginning, as git does."""
    stored = memory.store(TEXT)
    memory.forget(stored.id[:6])
    memory.restore(stored.id[:6].upper())
    assert memory.get(stored.id).status == "current"


def test_of_several_that_forget_at_once_one_does(memory: Memory) -> None:
    """Concurrent retractions of one memory append one event; the others are told that it is forgotten."""
    stored = memory.store(TEXT)

    def attempt(_: int) -> str:
        try:
            memory.forget(stored.id)
        except Refused:
            return "refused"
        return "forgotten"

    with ThreadPoolExecutor(6) as pool:
        outcomes = list(pool.map(attempt, range(6)))
    assert sorted(outcomes) == ["forgotten"] + ["refused"] * 5
    assert len(memory.history(stored.id)) == 2


@pytest.mark.parametrize("verb", ["forget", "restore"])
def test_what_others_did_meanwhile_is_not_done_again(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """Whoever is overtaken between looking at a memory and appending is told what it has become."""
    stored = memory.store(TEXT)
    if verb == "restore":
        memory.forget(stored.id)
    log, look, status = (
        memory._opened.installation.memory,
        memory._opened.installation.memory.events_of,
        memory.status(),
    )

    def look_and_be_overtaken(stream: bytes, *, upto: int | None = None) -> list[LoggedEvent]:
        events = look(stream, upto=upto)
        monkeypatch.undo()
        with Memory.open(status.store, keys=status.keys, model="none") as other:
            getattr(other, verb)(stored.id)
        return events

    monkeypatch.setattr(log, "events_of", look_and_be_overtaken)
    with pytest.raises(Refused, match=stored.id):
        getattr(memory, verb)(stored.id)
    assert len(memory.history(stored.id)) == {"forget": 2, "restore": 3}[verb]


@settings(max_examples=25)
@given(acts=st.lists(st.sampled_from(["store", "forget", "restore"]), max_size=8), key=st.sampled_from([None, "k"]))
def test_a_history_of_one_text_follows_the_rules(common: Memory, acts: list[str], key: str | None) -> None:
    """Whatever the order of acts, each does what the state before it allows, and the state after it is seen."""
    namespace = f"property:{size(common)}"
    first = common.store(TEXT, namespace=namespace, key=key)
    state = {first.id: "current"}
    for act in acts:
        holder = next((id for id, status in state.items() if status == "current"), None)
        if act == "store":
            outcome = common.store(TEXT, namespace=namespace, key=key)
            assert outcome.status == ("stored" if holder is None else "reinforced")
            state[outcome.id] = "current"
        elif act == "forget" and state[first.id] == "current":
            common.forget(first.id)
            state[first.id] = "forgotten"
        elif act == "restore" and state[first.id] == "forgotten" and holder is None:
            common.restore(first.id)
            state[first.id] = "current"
        else:
            with pytest.raises(Refused):
                getattr(common, act)(first.id)
    assert {id: common.get(id).status for id in state} == state
    recalled = {hit.id for hit in common.recall("where is the office?", namespaces=[namespace])}
    assert recalled == {id for id, status in state.items() if status == "current"}
