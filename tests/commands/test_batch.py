"""Storing many at once: one transaction, a verdict for each row, decided as if the rows came one by one."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from threading import Thread
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallystick import Memory, Outcome
from tallystick.commands import session
from tallystick.errors import Busy, LogDamaged, Refused
from tallystick.events.claims import PLACES
from tallystick.events.log import Append


@pytest.fixture
def memory() -> Iterator[Memory]:
    """A memory of its own, by words alone, verified when the test is done."""
    with Memory.temporary(namespace="project:app") as opened:
        yield opened
        opened.verify(views=True)


def statuses(outcomes: list[Outcome]) -> list[str]:
    """What each row came to."""
    return [outcome.status for outcome in outcomes]


def test_rows_are_texts_or_fields(memory: Memory) -> None:
    """What all share is said once; a row may say something else."""
    outcomes = memory.store_many(["one", {"text": "two", "tags": ["b"], "namespace": "n"}], tags=["a"], author="Ana")
    records = [memory.get(outcome.id) for outcome in outcomes]
    assert [(r.text, r.tags, r.namespace, r.stored.author) for r in records] == [
        ("one", ("a",), "project:app", "Ana"),
        ("two", ("b",), "n", "Ana"),
    ]
    assert [outcome.position for outcome in outcomes] == [1, 2]


def test_no_rows_are_no_event(memory: Memory) -> None:
    """Nothing asked, nothing written."""
    assert memory.store_many([]) == []
    assert memory.status().logs["memory"] == 1


def test_a_row_that_is_refused_keeps_no_other_back(memory: Memory) -> None:
    """Its outcome says why; what stands around it is stored."""
    rows: list[Any] = ["one", " ", {"text": "x", "colour": 1}, {"text": "x", "namespace": ""}, {"tags": ["a"]}, "two"]
    outcomes = memory.store_many(rows)
    assert statuses(outcomes) == ["stored", "refused", "refused", "refused", "refused", "stored"]
    assert all(outcome.reason and not outcome.id and outcome.position == -1 for outcome in outcomes[1:5])
    assert memory.status().memories == {"current": 2}


def test_the_same_text_twice_is_one_memory(memory: Memory) -> None:
    """Within a batch as well as across."""
    memory.store("old")
    outcomes = memory.store_many(["old", "new", "new", " new\n"])
    assert statuses(outcomes) == ["reinforced", "stored", "reinforced", "reinforced"]
    assert len({outcome.id for outcome in outcomes[1:]}) == 1
    assert memory.get(outcomes[1].id).reinforced == 2


def test_the_last_value_of_a_key_stands(memory: Memory) -> None:
    """Each supersedes the one before it, in a batch or earlier."""
    first = memory.store("A", key="employer")
    outcomes = memory.store_many([{"text": text, "key": "employer"} for text in "BCD"])
    assert [outcome.superseded_id for outcome in outcomes] == [first.id, outcomes[0].id, outcomes[1].id]
    assert [hit.text for hit in memory.recall("a b c d")] == ["D"]
    assert memory.store("D", key="employer").id == outcomes[2].id


def test_a_command_id_is_carried_out_once(memory: Memory) -> None:
    """Within a batch, and when the batch is sent again."""
    rows = [{"text": "one", "command_id": "1"}, {"text": "one", "command_id": "1"}, {"text": "two", "command_id": "1"}]
    once, again, other = memory.store_many(rows)
    assert (again, other.status) == (once._replace(repeated=True), "refused")
    before = memory.status().logs["memory"]
    assert memory.store_many(rows)[0] == once._replace(repeated=True)
    assert memory.status().logs["memory"] == before


def test_a_memory_that_a_batch_reinforces_and_supersedes(memory: Memory) -> None:
    """Both events stand on it, in the order of the rows."""
    first = memory.store("A", key="employer")
    outcomes = memory.store_many([{"text": "A", "key": "employer"}, {"text": "B", "key": "employer"}])
    assert statuses(outcomes) == ["reinforced", "superseded"]
    kinds = [logged.header.kind for logged in memory.history(first.id)]
    assert kinds == ["memory.stored", "memory.reinforced", "memory.superseded"]


def test_a_batch_is_all_there_or_not_at_all(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the transaction fails in the middle, no row of it is left."""
    recorder = memory._opened.log.recorder
    signing, calls = recorder._signing, iter(range(100))

    def fail_at_the_fifth() -> Any:
        if next(calls) == 4:
            raise Refused("the signer is gone. Try again.")
        return signing()

    monkeypatch.setattr(recorder, "_signing", fail_at_the_fifth)
    with pytest.raises(Refused, match="signer is gone"):
        memory.store_many([f"row {n}" for n in range(10)])
    monkeypatch.undo()
    assert memory.status().logs["memory"] == 1
    assert statuses(memory.store_many([f"row {n}" for n in range(10)])) == ["stored"] * 10


def test_batches_of_two_writers_are_put_in_order(memory: Memory) -> None:
    """The same texts and keys from two threads: each text is one memory, each key has one value."""
    rows = [f"text {n}" for n in range(30)] + [{"text": f"value {n}", "key": "k"} for n in range(5)]
    writers = [Thread(target=memory.store_many, args=(rows,)) for _ in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len([hit for hit in memory.recall("text", limit=100) if hit.text.startswith("text")]) == 30
    assert len([hit for hit in memory.recall("value", limit=100) if hit.record.stored.key]) == 1


ROWS = st.lists(
    st.fixed_dictionaries(
        {"text": st.sampled_from(["a", "b", " a", "c"])},
        optional={
            "key": st.sampled_from(["k", "l"]),
            "subject": st.just("user:ana"),
            "command_id": st.sampled_from(["1", "2", "3"]),
            "thread": st.just("s1"),
            "expires_at": st.just("2020-01-01T00:00:00Z"),
        },
    ),
    max_size=8,
)


@settings(max_examples=60)
@given(before=ROWS, rows=ROWS)
def test_a_batch_comes_to_what_its_rows_come_to_one_by_one(
    before: list[dict[str, Any]], rows: list[dict[str, Any]]
) -> None:
    """The same outcomes, the same memories, the same views; only in one transaction."""
    with Memory.temporary() as together, Memory.temporary() as apart:
        for memory in (together, apart):
            memory.store_many(before)
        many = together.store_many(rows)
        ones = [apart.store_many([row])[0] for row in rows]
        assert [plain(outcome, together) for outcome in many] == [plain(outcome, apart) for outcome in ones]
        assert state(together) == state(apart)
        together.verify(views=True)


def plain(outcome: Outcome, memory: Memory) -> tuple[Any, ...]:
    """An outcome without what differs from store to store."""
    text = memory.get(outcome.id).stored.text if outcome.id else None
    return outcome.status, outcome.position, outcome.repeated, text, bool(outcome.superseded_id)


def state(memory: Memory) -> list[tuple[Any, ...]]:
    """Every memory in the order of the log, as it is now."""
    streams = [logged.header.stream.hex() for logged in memory.events() if logged.header.kind == "memory.stored"]
    records = [memory.get(stream) for stream in streams]
    return [(r.text, r.status, r.revision, r.reinforced, r.stored.key, r.superseded_by is None) for r in records]


# ---- rows that depend on each other, and rows that are no rows


@pytest.mark.parametrize("expired", [True, False])
def test_an_echo_of_what_the_same_batch_supersedes_is_a_new_memory(memory: Memory, *, expired: bool) -> None:
    """The older value of the key is gone by then: its text said again is not lost, and no claim is."""
    past = datetime.now(UTC) + timedelta(milliseconds=300)
    old = memory.store("apple one", key="k", expires_at=past if expired else None)
    memory.recall("apple")
    if expired:
        time.sleep(0.4)
    first, second = memory.store_many([{"text": "banana two", "key": "k"}, "apple one"])
    assert (first.superseded_id, second.status) == (old.id, "stored")
    memory.verify(views=True)
    assert memory.store("cherry three", key="k").superseded_id == first.id
    assert {hit.text for hit in memory.recall("apple banana cherry")} == {"apple one", "cherry three"}


def test_an_echo_that_races_a_forget_is_not_lost(memory: Memory) -> None:
    """Whichever comes first: the text is current in the end, or its memory was forgotten after it was said again."""
    for n in range(30):
        stored = memory.store(f"text {n}", key=f"k{n}")
        memory.get(stored.id)
        racing = Thread(target=memory.forget, args=(stored.id,))
        racing.start()
        outcome = memory.store(f"text {n}")
        racing.join()
        kinds = [logged.header.kind for logged in memory.history(outcome.id)]
        assert outcome.status == "stored" or kinds[-1] == "memory.forgotten", kinds


NO_ROWS: dict[str, Any] = {
    "a number": 5,
    "nothing": None,
    "a list": ["x"],
    "NUL in metadata": {"text": "b", "metadata": {"a": "\0"}},
    "NUL in a tag": {"text": "b", "tags": ["\0"]},
    "a number too big": {"text": "b", "metadata": {"a": 1 << 64}},
    "no number": {"text": "b", "metadata": {"a": float("nan")}},
    "a lone surrogate": {"text": "b", "metadata": {"a": "\ud83c"}},
    "no namespace": {"text": "b", "namespace": None},
}


@pytest.mark.parametrize("row", NO_ROWS.values(), ids=NO_ROWS)
def test_what_can_not_be_kept_is_refused_alone(memory: Memory, row: Any) -> None:
    """The rows around it are stored, whatever is wrong with it."""
    assert statuses(memory.store_many(["a", row, "c"])) == ["stored", "refused", "stored"]
    assert statuses(memory.store_conversation(["a", row, "c"], thread="t")) == ["stored", "refused", "stored"]


def test_a_command_id_of_another_kind_of_command_is_refused(memory: Memory) -> None:
    """What was forgotten under an id is not stored under it; the rows around it are."""
    first = memory.store("one")
    memory.forget(first.id, command_id="c1")
    outcomes = memory.store_many([{"text": "two", "command_id": "c1"}, "three"])
    assert statuses(outcomes) == ["refused", "stored"]
    assert "'c1' was used for something else" in str(outcomes[0].reason)
    assert memory.status().memories == {"forgotten": 1, "current": 1}


def test_a_text_of_another_type_is_refused(memory: Memory) -> None:
    """By the name of its type; a batch goes on."""
    rows: list[Any] = [{"text": 5}, {"text": None}, "one"]
    outcomes = memory.store_many(rows)
    assert statuses(outcomes) == ["refused", "refused", "stored"]
    assert [outcome.reason for outcome in outcomes[:2]] == [
        "text is a int. Give a str.", "text is a NoneType. Give a str.",
    ]  # fmt: skip


def test_a_batch_that_others_always_overtake_is_busy(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gives up after a while, says so, and has written nothing."""
    log, status, numbers = memory._opened.installation.memory, memory.status(), count()
    monkeypatch.setattr(session, "PATIENCE_SECONDS", 0.1)
    append = log.append
    with Memory.open(status.store, namespace="project:app", keys=status.keys, model="none") as other:

        def append_and_be_overtaken(request: Append, *, durable: bool = True) -> Any:
            other.store(f"value {next(numbers)}", key="k")
            return append(request, durable=durable)

        monkeypatch.setattr(log, "append", append_and_be_overtaken)
        with pytest.raises(Busy, match="keep changing the same memory. Try again"):
            memory.store_many([{"text": "mine", "key": "k"}, "beside it"])
    assert {hit.text for hit in memory.recall("mine beside value")} == {f"value {next(numbers) - 1}"}


def test_a_claim_that_leads_to_no_memory_is_not_followed() -> None:
    """Of a table that nobody signed a row may say anything: the text is refused, and the log grows by nothing."""
    with Memory.temporary() as memory:
        memory.store("one")
        memory.recall("one")
        with memory._opened.installation.datastore.transaction(commit=True) as cursor:
            cursor.execute("UPDATE claim SET place = ?", (PLACES + 1,))
        with pytest.raises(Refused, match="is not a memory. Run `tallystick verify`"):
            memory.store("one")
        assert statuses(memory.store_many(["one", "two"])) == ["refused", "stored"]
        with pytest.raises(LogDamaged):
            memory.verify()
