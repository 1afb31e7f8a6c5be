"""Looking things up by name: ids by an unambiguous beginning, one memory, its history."""

from collections.abc import Iterator

import pytest

from tallystick import Memory
from tallystick.errors import LogDamaged, NotFound, Refused, ViewsDamaged
from tallystick.events.envelope import stream_of
from tallystick.events.kinds import Forgotten, Reinforced, Stored
from tallystick.events.log import Log
from tallystick.projections.views import RECALL
from tallystick.queries import lookup


@pytest.fixture
def memory() -> Iterator[Memory]:
    """A memory of its own, by words alone."""
    with Memory.temporary(namespace="project:app") as opened:
        yield opened


def resolve(memory: Memory, prefix: str) -> str:
    """The id of the memory whose id begins like this."""
    return lookup.resolve(memory._opened.log, memory._opened.views.opened(), prefix).hex()


@pytest.fixture
def twins(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Two memories whose ids begin with the same six digits or more."""
    origin, seen = memory._opened.installation.memory.origin, dict[bytes, bytes]()
    number = 0
    while True:
        nonce = number.to_bytes(16, "big")
        stream = stream_of(origin, nonce)
        if stream[:3] in seen:
            break
        seen[stream[:3]] = nonce
        number += 1
    made = iter([(stream_of(origin, seen[stream[:3]]), seen[stream[:3]]), (stream, nonce)])
    monkeypatch.setattr(Log, "new_stream", lambda self: next(made))
    ids = memory.store("The office is in Lisbon").id, memory.store("Use WAL mode").id
    monkeypatch.undo()
    return ids


def common_digits(one: str, other: str) -> int:
    """How many digits two ids have in common at their beginning."""
    return next(n for n in range(33) if one[: n + 1] != other[: n + 1])


@pytest.mark.parametrize("digits", [4, 5, 7, 12, 31, 32])
def test_the_beginning_of_an_id_names_a_memory(memory: Memory, digits: int) -> None:
    """Four digits or more do, in either case, with white space around them."""
    stored = memory.store("The office is in Lisbon")
    prefix = stored.id[:digits]
    assert resolve(memory, prefix) == resolve(memory, f" {prefix.upper()}\n") == stored.id


def test_a_beginning_that_two_ids_have_is_refused(memory: Memory, twins: tuple[str, str]) -> None:
    """What could mean either of two memories is not guessed: more digits are asked for."""
    digits = common_digits(*twins)
    for prefix in (twins[0][:4], twins[0][:digits]):
        with pytest.raises(Refused, match="add digits"):
            resolve(memory, prefix)
    assert [resolve(memory, id[: digits + 1]) for id in twins] == list(twins)


def test_verbs_refuse_what_is_ambiguous(memory: Memory, twins: tuple[str, str]) -> None:
    """No verb acts on one of two memories by chance."""
    for verb in (memory.get, memory.forget, memory.history):
        with pytest.raises(Refused, match="add digits"):
            verb(twins[0][:5])
    assert memory.status().memories == {"current": 2}


@pytest.mark.parametrize(
    "prefix", ["", "abc", "0" * 33, "xyzw", "12 34", "0x1234", "１２３４", "1234%", "----", "\0\0\0\0"]
)
def test_what_is_no_id_is_refused(memory: Memory, prefix: str) -> None:
    """Anything but 4 to 32 hexadecimal digits is refused, saying what an id is."""
    memory.store("The office is in Lisbon")
    with pytest.raises(Refused, match="4 to 32"):
        resolve(memory, prefix)


def test_an_id_that_no_memory_has_is_not_found(memory: Memory) -> None:
    """The streams of recalls and rebuilds are no memories, and neither is what nobody stored."""
    memory.store("The office is in Lisbon")
    memory.rebuild()
    recalls = memory.why(memory.recall("office").receipt).logged.header.stream.hex()
    rebuilt = list(memory.events())[-1].header.stream.hex()
    for id in ("0" * 32, "f" * 32, recalls, rebuilt):
        with pytest.raises(NotFound, match=id):
            memory.get(id)


def test_a_memory_that_another_has_just_stored_is_found(memory: Memory) -> None:
    """Looking up takes in what others have appended."""
    status = memory.status()
    with Memory.open(status.store, keys=status.keys, model="none") as other:
        stored = other.store("The office is in Lisbon", namespace="project:app")
        assert memory.get(stored.id[:8]).text == "The office is in Lisbon"


def test_get_gives_the_present_state(memory: Memory) -> None:
    """A memory is given as its events say, whatever its status and namespace."""
    stored = memory.store("The office is in Lisbon", namespace="user:ana")
    memory.store("The office is in Lisbon", namespace="user:ana")
    memory.forget(stored.id, reason="they moved")
    record = memory.get(stored.id)
    assert (record.text, record.status, record.reinforced, record.revision) == ("The office is in Lisbon",
        "forgotten", 1, 2)  # fmt: skip


def test_history_is_every_event_oldest_first(memory: Memory) -> None:
    """All that happened to a memory is listed, in order, as it is in the log."""
    stored = memory.store("The office is in Lisbon")
    memory.store("Something else")
    memory.store("The office is in Lisbon")
    memory.forget(stored.id)
    events = memory.history(stored.id)
    assert [type(logged.event) for logged in events] == [Stored, Reinforced, Forgotten]
    assert [logged.header.revision for logged in events] == [0, 1, 2]
    assert [logged.header.position for logged in events] == [1, 3, 4]
    assert {logged.header.stream.hex() for logged in events} == {stored.id}
    assert events[0].event.recorded_at <= events[1].event.recorded_at <= events[2].event.recorded_at


def test_an_end_that_is_missing_from_the_log_is_noticed(memory: Memory) -> None:
    """Where the view has seen more of a memory than the log now holds, nothing is handed out."""
    stored = memory.store("The office is in Lisbon")
    views = memory._opened.views.current(RECALL)
    with views.datastore.transaction(commit=True) as cursor:
        cursor.execute("UPDATE memories SET revision = 3")
    with pytest.raises(ViewsDamaged):
        lookup.history(memory._opened.installation.memory, views, bytes.fromhex(stored.id))


def test_an_event_that_was_changed_is_not_handed_out(memory: Memory) -> None:
    """What does not verify is refused with its position, by get and by history alike."""
    stored = memory.store("The office is in Lisbon")
    with memory._opened.installation.datastore.transaction(commit=True) as cursor:
        cursor.execute("DROP TRIGGER payload_unchanged")
        cursor.execute("UPDATE payload SET body = zeroblob(length(body)) WHERE place = ?", (stored.position,))
    for verb in (memory.get, memory.history):
        with pytest.raises(LogDamaged) as damage:
            verb(stored.id)
        assert (damage.value.log, damage.value.position) == ("memory", stored.position)
