"""Storing: what comes of it, what is kept of it, and what is refused."""

import json
import os
import re
import unicodedata
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields as fields_of
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tallystick import Memory, Outcome
from tallystick.commands.store import Store
from tallystick.errors import NotFound, Refused
from tallystick.events.kinds import MAX_TEXT_BYTES, Reinforced, Stored, Superseded
from tallystick.events.mapper import LoggedEvent

AT_HOME, AT_WORK = timezone(timedelta(hours=2)), timezone(-timedelta(hours=5, minutes=30))
LEAF = bytes(range(32))


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


def appended(memory: Memory, act: Callable[[], Any]) -> list[str]:
    """The kinds of the events that an act appends to the memory log."""
    before = size(memory)
    act()
    return [logged.header.kind for logged in memory.events(after=before - 1)]


def current(memory: Memory) -> int:
    """How many memories are current."""
    return memory.status().memories.get("current", 0)


# ---- what comes of it


def test_a_new_text_is_stored(memory: Memory) -> None:
    """A text that nobody stored before becomes a memory: one event, whose stream is the memory's id."""
    outcome = memory.store("Use WAL mode")
    (logged,) = memory.events()
    assert outcome == Outcome("stored", logged.header.stream.hex(), logged.header.position, None)
    assert isinstance(logged.event, Stored)
    assert memory.get(outcome.id).text == "Use WAL mode"


@pytest.mark.parametrize(
    "again",
    [
        "Caf\u00e9 au lait",
        "Cafe\u0301 au lait",
        "  Caf\u00e9 au lait\n",
        "\t\u00a0\u2003Cafe\u0301 au lait\u3000",
    ],
    ids=["same bytes", "decomposed", "outer white space", "both"],
)
def test_the_same_text_is_reinforced(memory: Memory, again: str) -> None:
    """Texts that are equal after NFC and outer white space are one memory, which keeps the first spelling."""
    first = memory.store("Caf\u00e9 au lait")
    assert appended(memory, lambda: memory.store(again)) == ["memory.reinforced"]
    second = memory.store(again)
    assert (second.status, second.id, second.superseded_id) == ("reinforced", first.id, None)
    record = memory.get(first.id)
    assert (record.reinforced, record.text, record.status) == (2, "Caf\u00e9 au lait", "current")


@pytest.mark.parametrize("other", ["use wal mode", "Use  WAL mode", "Use WAL mode.", "Use WAL modе"])
def test_a_text_that_differs_inside_is_another_memory(memory: Memory, other: str) -> None:
    """Case, inner white space, punctuation and look-alike letters make another text."""
    first, second = memory.store("Use WAL mode"), memory.store(other)
    assert (second.status, second.id != first.id) == ("stored", True)


@pytest.mark.parametrize(
    "other",
    [{"namespace": "project:app2"}, {"subject": "user:ana"}, {"key": "mode"}, {"thread": "s1"}],
    ids=lambda other: str(*other),
)
def test_the_same_text_elsewhere_is_another_memory(memory: Memory, other: dict[str, Any]) -> None:
    """A text is compared within its namespace, subject and key only, and never with a turn of a conversation."""
    first, second = memory.store("Use WAL mode"), memory.store("Use WAL mode", **other)
    assert (second.status, second.id != first.id) == ("stored", True)
    assert memory.store("Use WAL mode").id == first.id


def test_turns_of_a_thread_are_never_deduplicated(memory: Memory) -> None:
    """Who says yes twice has said it twice."""
    turns = [memory.store("Yes", thread="s1", place=place) for place in (0, 1)] + [memory.store("Yes", thread="s1")]
    assert [turn.status for turn in turns] == ["stored"] * 3
    assert len({turn.id for turn in turns}) == 3


def test_reinforcing_changes_no_field(memory: Memory) -> None:
    """A text said again counts once more; its tags and importance stay as they were stored."""
    first = memory.store("Use WAL mode", tags=["sqlite"], importance=0.9)
    memory.store("Use WAL mode", tags=["other"], importance=0.1)
    record = memory.get(first.id)
    assert (record.tags, record.stored.importance, record.reinforced) == (("sqlite",), 0.9, 1)


def test_a_newer_value_of_a_key_supersedes_the_older(memory: Memory) -> None:
    """Of the values of one key the newest is current; the older ones are kept and name what replaced them."""
    values = [memory.store(f"The user works at Company {name}", key="employer") for name in "ABC"]
    assert [value.status for value in values] == ["stored", "superseded", "superseded"]
    assert [value.superseded_id for value in values] == [None, values[0].id, values[1].id]
    records = [memory.get(value.id) for value in values]
    assert [record.status for record in records] == ["superseded", "superseded", "current"]
    assert [record.superseded_by for record in records] == [records[1].stream, records[2].stream, None]
    assert [hit.text for hit in memory.recall("where does the user work, at which company?")] == [records[2].text]


def test_superseding_is_one_act(memory: Memory) -> None:
    """The new memory and the end of the older one are appended together, the new one first."""
    older = memory.store("Company A", key="employer")
    assert appended(memory, lambda: memory.store("Company B", key="employer")) == ["memory.stored", "memory.superseded"]
    last = memory.history(older.id)[-1]
    assert isinstance(last.event, Superseded)
    assert last.event.parents == (memory.history(older.id)[0].leaf,)


def test_a_memory_that_is_named_is_superseded(memory: Memory) -> None:
    """Without a key that both are the value of: by its id or the beginning of it, in one act, alone or among many."""
    first = memory.store("The office is in Lisbon")
    second = memory.store("The office moved to Porto", supersedes=first.id[:8])
    assert (second.status, second.superseded_id) == ("superseded", first.id)
    third, other = memory.store_many([{"text": "The office is in Faro now", "supersedes": second.id}, "Use WAL mode"])
    assert (third.superseded_id, other.status) == (second.id, "stored")
    assert [memory.get(each.id).status for each in (first, second, third)] == ["superseded", "superseded", "current"]
    assert [hit.id for hit in memory.recall("where is the office?")] == [third.id]
    assert memory.store("The office is in Lisbon").status == "stored"  # the superseded one holds its text no more
    memory.verify(views=True)


def test_a_named_memory_can_have_a_key_and_give_it_up(memory: Memory) -> None:
    """What takes its place takes the key as well where it asks for it, and releases it where it does not."""
    first = memory.store("Company A", key="employer")
    second = memory.store("Company B", key="employer", supersedes=first.id)
    third = memory.store("No company", supersedes=second.id)
    assert [second.superseded_id, third.superseded_id] == [first.id, second.id]
    assert memory.store("Company C", key="employer").status == "stored"
    memory.verify(views=True)


def test_a_pinned_memory_that_is_named_is_pinned_instead(memory: Memory) -> None:
    """As with a key: the pin goes to what takes its place."""
    first = memory.store("Always answer in Portuguese")
    memory.pin(first.id)
    second = memory.store("Always answer in English", supersedes=first.id)
    assert memory.get(second.id).pinned


@pytest.mark.parametrize(
    "name", ["superseded", "forgotten", "elsewhere", "protected", "same text", "other key", "none"]
)
def test_what_can_not_give_up_its_place_is_refused(memory: Memory, name: str) -> None:
    """Not current, in another namespace, protected, of the very text, not the holder of the key, or not there."""
    named = memory.store("The office is in Lisbon", namespace="user:ben" if name == "elsewhere" else None).id
    wish: dict[str, Any] = {"text": "The office moved to Porto", "supersedes": "abcd" * 8 if name == "none" else named}
    if name == "superseded":
        memory.store("The office is in Faro", supersedes=named)
    if name == "forgotten":
        memory.forget(named)
    if name == "protected":
        memory.protect(named)
    if name == "same text":
        wish["text"] = "The office is in Lisbon "
    if name == "other key":
        memory.store("Rua Augusta", key="office")
        wish["key"] = "office"
    before = size(memory)
    with pytest.raises(NotFound if name == "none" else Refused):
        memory.store(**wish)
    assert [row.status for row in memory.store_many([wish])] == ["refused"]
    assert size(memory) == before


def test_a_repeated_command_that_named_a_memory_says_so_again(memory: Memory) -> None:
    """The command id makes it harmless: nothing is superseded twice."""
    first = memory.store("The office is in Lisbon")
    wish = {"text": "The office moved to Porto", "supersedes": first.id, "command_id": "c1"}
    once, again = memory.store(**wish), memory.store(**wish)
    assert (again.id, again.superseded_id, again.repeated) == (once.id, first.id, True)


def test_a_key_belongs_to_its_namespace(memory: Memory) -> None:
    """The same key in another namespace is another key."""
    memory.store("Company A", key="employer")
    assert memory.store("Company B", key="employer", namespace="user:ben").status == "stored"
    assert current(memory) == 2


def test_the_present_value_of_a_key_said_again_is_reinforced(memory: Memory) -> None:
    """A key that is given the value it has keeps its memory."""
    first = memory.store("Company A", key="employer")
    second = memory.store("Company A ", key="employer")
    assert (second.status, second.id) == ("reinforced", first.id)


def test_a_value_that_was_superseded_can_come_back(memory: Memory) -> None:
    """Who returns to an older value gets a new memory that supersedes the present one."""
    first, second = memory.store("Company A", key="employer"), memory.store("Company B", key="employer")
    third = memory.store("Company A", key="employer")
    assert (third.status, third.superseded_id) == ("superseded", second.id)
    assert third.id != first.id


def test_a_forgotten_text_can_be_stored_anew(memory: Memory) -> None:
    """After forget the same text is a new memory with a new id; the forgotten one stays forgotten."""
    first = memory.store("The office is in Lisbon")
    memory.forget(first.id)
    second = memory.store("The office is in Lisbon")
    assert (second.status, second.id != first.id) == ("stored", True)
    assert [memory.get(each.id).status for each in (first, second)] == ["forgotten", "current"]
    assert [hit.id for hit in memory.recall("where is the office")] == [second.id]


def test_a_forgotten_value_of_a_key_is_not_superseded(memory: Memory) -> None:
    """A key whose value was forgotten has none; the next one is simply stored."""
    memory.forget(memory.store("Company A", key="employer").id)
    assert memory.store("Company B", key="employer").status == "stored"


def test_a_text_that_has_expired_can_be_stored_anew(memory: Memory) -> None:
    """A memory that nobody can recall any more does not swallow the same text when it is stored again."""
    memory.store("The office is closed today", expires_at="2020-01-01T18:00:00Z")
    memory.store("The office is closed today", expires_at="2999-01-01T18:00:00Z")
    assert [hit.text for hit in memory.recall("is the office closed?")] == ["The office is closed today"]
    memory.verify(views=True)


# ---- command ids


def test_a_repeated_command_stores_once(memory: Memory) -> None:
    """A command id makes a repetition harmless: the same outcome, and nothing is appended."""
    first = memory.store("Use WAL mode", command_id="c1")
    assert appended(memory, lambda: memory.store("Use WAL mode", command_id="c1")) == []
    assert memory.store("Use WAL mode", command_id="c1") == first._replace(repeated=True)


def test_a_repeated_command_reinforces_once(memory: Memory) -> None:
    """A reinforcement that is sent twice counts once."""
    stored = memory.store("Use WAL mode")
    first = memory.store("Use WAL mode", command_id="c1")
    assert memory.store("Use WAL mode", command_id="c1") == first._replace(repeated=True)
    assert memory.get(stored.id).reinforced == 1


def test_a_repeated_command_supersedes_once_and_says_so(memory: Memory) -> None:
    """The outcome of a repetition is that of the first time, with the memory that was superseded."""
    memory.store("Company A", key="employer")
    first = memory.store("Company B", key="employer", command_id="c1")
    assert memory.store("Company B", key="employer", command_id="c1") == first._replace(repeated=True)


def test_a_repeated_command_survives_forgetting(memory: Memory) -> None:
    """A command that is sent again after its memory was forgotten does not bring it back."""
    first = memory.store("Use WAL mode", command_id="c1")
    memory.forget(first.id)
    assert memory.store("Use WAL mode", command_id="c1") == first._replace(repeated=True)
    assert memory.get(first.id).status == "forgotten"


def test_a_command_id_of_another_command_is_refused(memory: Memory) -> None:
    """A command id that was used for another text is a mistake of the caller: the new text is not lost silently."""
    memory.store("Use WAL mode", command_id="c1")
    before = size(memory)
    with pytest.raises(Refused, match="c1"):
        memory.store("The office is in Lisbon", command_id="c1")
    assert size(memory) == before


def test_a_command_id_belongs_to_its_namespace(memory: Memory) -> None:
    """Agents of two namespaces may number their commands alike."""
    first = memory.store("Use WAL mode", command_id="c1")
    second = memory.store("Use WAL mode", command_id="c1", namespace="user:ana")
    assert (second.status, second.id != first.id, second.repeated) == ("stored", True, False)


# ---- several writers


def test_threads_that_store_one_text_make_one_memory(memory: Memory) -> None:
    """Of concurrent writers of one text one stores it and the others reinforce it."""
    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(lambda _: memory.store("Use WAL mode"), range(24)))
    assert sorted(outcome.status for outcome in outcomes) == ["reinforced"] * 23 + ["stored"]
    assert {outcome.id for outcome in outcomes} == {outcomes[0].id}
    assert memory.get(outcomes[0].id).reinforced == 23


def test_threads_that_store_one_key_are_put_in_order(memory: Memory) -> None:
    """Concurrent values of one key each get an outcome, and exactly one of them is current in the end."""
    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(lambda n: memory.store(f"Company {n}", key="employer"), range(24)))
    assert sorted(outcome.status for outcome in outcomes) == ["stored"] + ["superseded"] * 23
    assert memory.status().memories == {"current": 1, "superseded": 23}


def meanwhile(memory: Memory, monkeypatch: pytest.MonkeyPatch, act: Callable[[Memory], Any]) -> None:
    """Let another opening act once, between a command's look at a memory and its append."""
    log, status = memory._opened.installation.memory, memory.status()
    look = log.events_of

    def look_and_be_overtaken(stream: bytes, *, upto: int | None = None) -> list[LoggedEvent]:
        events = look(stream, upto=upto)
        monkeypatch.undo()
        with Memory.open(status.store, namespace="project:app", keys=status.keys, model="none") as other:
            act(other)
        return events

    monkeypatch.setattr(log, "events_of", look_and_be_overtaken)


def test_a_text_that_is_forgotten_meanwhile_is_stored(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text that was there when the command looked, and is not when it appends, is a new memory."""
    first = memory.store("Use WAL mode")
    meanwhile(memory, monkeypatch, lambda other: other.forget(first.id))
    second = memory.store("Use WAL mode")
    assert (second.status, second.id != first.id) == ("stored", True)


@pytest.mark.parametrize(
    ("act", "status", "of"),
    [
        (lambda other, id: other.forget(id), "stored", "forgotten"),
        (lambda other, id: other.store("Company A", key="employer"), "superseded", "superseded"),
        (lambda other, id: other.store("Company C", key="employer"), "superseded", "superseded"),
    ],
    ids=["forgotten", "reinforced", "superseded"],
)
def test_a_value_that_changes_meanwhile_is_looked_at_again(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, act: Callable[[Memory, str], Any], status: str, of: str
) -> None:
    """A key's value that others forget, confirm or replace between look and append is superseded as it then is."""
    first = memory.store("Company A", key="employer")
    meanwhile(memory, monkeypatch, lambda other: act(other, first.id))
    assert memory.store("Company B", key="employer").status == status
    assert memory.get(first.id).status == of
    assert [hit.text for hit in memory.recall("which company?")] == ["Company B"]
    memory.verify(views=True)


def test_a_second_opening_sees_what_the_first_has_stored(memory: Memory) -> None:
    """The log, not a process, decides whether a text is new."""
    first = memory.store("Use WAL mode")
    status = memory.status()
    with Memory.open(status.store, namespace="project:app", keys=status.keys, model="none") as other:
        assert other.store("Use WAL mode") == Outcome("reinforced", first.id, first.position + 1)


# ---- what is kept

TIMES: dict[Any, int] = {
    "2023-05-08T13:56:00Z": 1683554160_000000,
    "2023-05-08T15:56:00+02:00": 1683554160_000000,
    "2023-05-08T13:56:00.000001+00:00": 1683554160_000001,
    "1969-12-31T23:59:59Z": -1_000000,
    datetime(2023, 5, 8, 13, 56, tzinfo=UTC): 1683554160_000000,
    datetime(2023, 5, 8, 15, 56, tzinfo=AT_HOME): 1683554160_000000,
    datetime(2023, 5, 8, 8, 26, tzinfo=AT_WORK): 1683554160_000000,
}

EXAMPLES: dict[str, tuple[Any, Any]] = {
    # field: what is given, what is kept
    "text": ("Use WAL mode", "Use WAL mode"),
    "namespace": ("org/acme/user:ana", "org/acme/user:ana"),
    "kind": ("fact", "fact"),
    "source": ("human", "human"),
    "subject": ("user:ana", "user:ana"),
    "key": ("journal mode", "journal mode"),
    "tags": (["sqlite", "größe", "b"], ("sqlite", "größe", "b")),
    "importance": (0.8125, 0.8125),
    "confidence": (0.25, 0.25),
    "author": ("Ana", "Ana"),
    "thread": ("session 1", "session 1"),
    "place": (2**53 - 1, 2**53 - 1),
    "occurred_at": ("2023-05-08T15:56:00+02:00", 1683554160_000000),
    "valid_from": (datetime(2023, 5, 8, 15, 56, tzinfo=AT_HOME), 1683554160_000000),
    "expires_at": ("2999-01-01T00:00:00Z", 32472144000_000000),
    "evidence": (["https://example.org/a#b", "page 7"], ("https://example.org/a#b", "page 7")),
    "label": ("confidential", "confidential"),
    "trust": ("low", "low"),
    "metadata": ({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}),
    "derived_from": ([LEAF, LEAF[::-1]], (LEAF, LEAF[::-1])),
    "command_id": ("c1", "c1"),
}


def test_every_field_has_an_example() -> None:
    """A field that a caller can set is checked below, and what an event holds beyond those the session sets."""
    assert {*EXAMPLES, "supersedes"} == {field.name for field in fields_of(Store)}  # which is no field of the event
    by_session = {"recorded_at", "actor", "via", "nonce", "parents", "screening"}
    assert set(Stored.model_fields) == set(EXAMPLES) | by_session


@pytest.mark.parametrize("field", EXAMPLES)
def test_a_field_comes_back_as_it_was_stored(common: Memory, field: str) -> None:
    """Each field that is set alone is kept, and the others keep their defaults."""
    given_value, kept = EXAMPLES[field]
    arguments = {"text": f"With {field}", field: given_value}
    stored = common.get(common.store(**arguments).id).stored
    expected = {"text": f"With {field}", "namespace": "default", field: kept}
    fields = Stored.model_fields.items()
    defaults = {name: info.get_default(call_default_factory=True) for name, info in fields if name in EXAMPLES}
    assert {name: getattr(stored, name) for name in EXAMPLES} == {**defaults, **expected}


def test_all_fields_together_come_back(memory: Memory) -> None:
    """A memory with every field set is kept whole, and is the same after the store was opened again."""
    outcome = memory.store(**{name: value for name, (value, _) in EXAMPLES.items()})
    status = memory.status()
    with Memory.open(status.store, keys=status.keys, model="none") as other:
        stored = other.get(outcome.id).stored
    assert {name: getattr(stored, name) for name in EXAMPLES} == {name: kept for name, (_, kept) in EXAMPLES.items()}


def test_who_stored_it_and_when_is_kept(memory: Memory) -> None:
    """An event names the actor as claimed, the process and user it came from, and the wall clock in UTC."""
    before = datetime.now(UTC)
    record = memory.get(memory.store("Use WAL mode").id)
    assert before - timedelta(milliseconds=1) <= record.recorded_at <= datetime.now(UTC)
    assert record.recorded_at.utcoffset() == timedelta(0)
    assert record.stored.actor == "agent:planner"
    assert record.stored.via["process"] == str(os.getpid())
    assert set(record.stored.via) == {"process", "user"}


@pytest.mark.parametrize(
    "text",
    [
        "a\0b\0",
        "🏡 👩‍👩‍👧‍👦 🇵🇹",
        "שלום עולם \u202bمرحبا\u202c",
        "Cafe\u0301 stays decomposed",
        " \t outer white space stays \r\n",
        "line\r\nline\rline\u2028line\x85line",
        "\ufeffbyte order mark, \ufffe\uffff\U0010ffff no characters",
        "\u200b",
        "word " * 40_000,
        "a" * MAX_TEXT_BYTES,
        "🏡" * (MAX_TEXT_BYTES // 4),
        "'; DROP TABLE memories; -- \" * ( NEAR",
    ],
    ids=lambda text: ascii(text[:4]),
)
def test_a_text_comes_back_byte_for_byte(common: Memory, text: str) -> None:
    """The text of a memory is kept exactly as it was given, up to 1 MiB of UTF-8."""
    outcome = common.store(text)
    assert outcome.status == "stored"
    assert common.get(outcome.id).text == text


@settings(max_examples=100)
@given(text=st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_text_comes_back_byte_for_byte(common: Memory, text: str) -> None:
    """Whatever is valid Unicode and not white space alone is kept exactly."""
    assume(text.strip())
    assert common.get(common.store(text, thread="property").id).text == text


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda children: (
        st.lists(children, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), children)
    ),
    max_leaves=12,
)


@settings(max_examples=60)
@given(metadata=st.dictionaries(st.text(st.characters(codec="ascii", exclude_characters="\0")), JSON, max_size=5))
def test_any_json_metadata_comes_back(common: Memory, metadata: dict[str, Any]) -> None:
    """Metadata is kept with its JSON types: a number, a text or a truth value stays what it was."""
    kept = common.get(common.store("With metadata", thread="property", metadata=metadata).id).stored.metadata
    assert kept == metadata
    assert json.dumps(kept, sort_keys=True) == json.dumps(_without_negative_zero(metadata), sort_keys=True)


def _without_negative_zero(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_negative_zero(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_without_negative_zero(each) for each in value]
    return value + 0.0 if isinstance(value, float) else value


@pytest.mark.parametrize("moment", TIMES, ids=str)
@pytest.mark.parametrize("field", ["occurred_at", "valid_from", "expires_at"])
def test_times_are_kept_in_utc(common: Memory, field: str, moment: datetime | str) -> None:
    """A time with a zone, as a datetime or as ISO 8601, is kept as microseconds since 1970 in UTC."""
    dated: dict[str, Any] = {field: moment}
    record = common.get(common.store("Dated", thread="times", **dated).id)
    assert getattr(record.stored, field) == TIMES[moment]


@settings(max_examples=100)
@given(
    moment=st.datetimes(
        min_value=datetime(1, 1, 3),
        max_value=datetime(9999, 12, 29),
        timezones=st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes))),
    )
)
def test_any_time_comes_back_to_the_microsecond(common: Memory, moment: datetime) -> None:
    """A time of any century comes back as the same instant, in UTC."""
    occurred_at = common.get(common.store("Dated", thread="property", occurred_at=moment).id).occurred_at
    assert occurred_at == moment
    assert occurred_at is not None
    assert occurred_at.utcoffset() == timedelta(0)


@pytest.mark.parametrize("moment", ["9999-12-31T23:00:00-05:00", "0001-01-01T01:00:00+05:00"])
def test_a_time_that_has_no_utc_is_refused(memory: Memory, moment: str) -> None:
    """At the ends of the calendar a zone leads out of it: such a time could not be read back."""
    with pytest.raises(Refused, match="occurred_at"):
        memory.store("Use WAL mode", occurred_at=moment)


# ---- what is refused

DEEP: Any = []
for _ in range(40):
    DEEP = [DEEP]

REFUSED: list[tuple[str, Any]] = [
    ("text", ""),
    ("text", " \t\n\u00a0\u3000"),
    ("text", "half a \ud83c pair"),
    ("text", "a" * (MAX_TEXT_BYTES + 1)),
    ("text", "é" * (MAX_TEXT_BYTES // 2) + "a"),
    ("namespace", "a b"),
    ("namespace", "/a"),
    ("namespace", "a/"),
    ("namespace", "a//b"),
    ("namespace", "/".join("abcdefghi")),
    ("namespace", "a" * 65),
    ("namespace", "a\n"),
    ("namespace", "a\0"),
    ("namespace", "a\u200b"),
    ("namespace", "a\u202e"),
    ("namespace", "Cafe\u0301"),
    ("namespace", "\ud800"),
    ("namespace", "\u212a"),
    ("namespace", ""),
    ("kind", "Two Words"),
    ("kind", ""),
    ("source", "hearsay"),
    ("subject", ""),
    ("subject", "a" * 513),
    ("key", ""),
    ("key", "a\0b"),
    ("key", 3),
    ("tags", ["a", ""]),
    ("tags", ["a\0"]),
    ("tags", ["\ud800"]),
    ("tags", [1]),
    ("tags", "sqlite"),
    ("tags", None),
    ("importance", 1.01),
    ("importance", -0.01),
    ("importance", float("nan")),
    ("importance", "high"),
    ("importance", None),
    ("confidence", 2.0),
    ("confidence", float("inf")),
    ("author", ""),
    ("thread", ""),
    ("thread", 3),
    ("place", -1),
    ("place", 2**53),
    ("place", "first"),
    ("occurred_at", datetime(2023, 5, 8)),  # naive
    ("occurred_at", "2023-05-08T13:56:00"),
    ("occurred_at", "2023-05-08"),
    ("occurred_at", "yesterday"),
    ("occurred_at", ""),
    ("occurred_at", 1683554160),
    ("valid_from", "2023-05-08T13:56:00"),
    ("expires_at", datetime(2023, 5, 8)),
    ("evidence", [""]),
    ("evidence", "page 7"),
    ("label", "Top Secret"),
    ("trust", "LOW"),
    ("metadata", {"a": float("nan")}),
    ("metadata", {"a": [float("-inf")]}),
    ("metadata", {"a": b"bytes"}),
    ("metadata", {"a": object()}),
    ("metadata", {"a": {1, 2}}),
    ("metadata", {"a": datetime(2023, 5, 8, tzinfo=UTC)}),
    ("metadata", {"a": 2**64}),
    ("metadata", {"a": "\0"}),
    ("metadata", {"a": "\ud800"}),
    ("metadata", {"a\0": 1}),
    ("metadata", {1: 2}),
    ("metadata", {"a": {1: 2}}),
    ("metadata", {"a": DEEP}),
    ("metadata", None),
    ("metadata", "a"),
    ("derived_from", [b"short"]),
    ("derived_from", ["ab" * 32]),
    ("command_id", ""),
    ("command_id", "\ud800"),
    ("colour", "red"),
    ("recorded_at", 5),
    ("session", "s1"),
]


def _named(value: Any) -> str:
    return re.sub(r" at 0x\w+", "", ascii(value))[:24].strip("'")


@pytest.mark.parametrize(("field", "value"), REFUSED, ids=[f"{field}-{_named(value)}" for field, value in REFUSED])
def test_a_value_that_is_not_allowed_is_refused(
    common: Memory, field: str, value: Any, request: pytest.FixtureRequest
) -> None:
    """A value that can't be kept is refused with a message that names its field, and leaves nothing behind."""
    before, name = size(common), request.node.name
    good: dict[str, Any] = {"text": name, "key": ascii(name), "command_id": ascii(name)}
    with pytest.raises(Refused, match=field) as refusal:
        common.store(**{**good, field: value})
    assert len(str(refusal.value)) < 1000
    assert size(common) == before
    assert common.store(**good).status == "stored"


def test_an_unknown_field_is_answered_with_the_known_ones(memory: Memory) -> None:
    """Who mistypes a field is told which ones there are."""
    with pytest.raises(Refused) as refusal:
        memory.store("Use WAL mode", tag=["sqlite"])
    for name in set(EXAMPLES) - {"text", "namespace"}:
        assert name in str(refusal.value)


@settings(max_examples=100)
@given(namespace=st.text(st.characters(codec="utf-8"), max_size=70))
def test_a_namespace_is_kept_exactly_or_refused(common: Memory, namespace: str) -> None:
    """No namespace is changed on the way: it is taken as it is, or refused."""
    try:
        outcome = common.store("Somewhere", namespace=namespace, thread="property")
    except Refused:
        return
    assert common.get(outcome.id).namespace == namespace
    assert unicodedata.is_normalized("NFC", namespace)
    assert namespace.isprintable()
    assert " " not in namespace
    assert all(0 < len(segment) <= 64 for segment in namespace.split("/"))


def test_a_reinforcement_is_an_event_of_its_own(memory: Memory) -> None:
    """What was seen when a text was said again is recorded with it."""
    outcome = memory.store("Use WAL mode")
    memory.store("Use WAL mode", command_id="c2")
    first, second = memory.history(outcome.id)
    assert isinstance(second.event, Reinforced)
    assert (second.event.parents, second.event.command_id) == ((first.leaf,), "c2")


NFC, NFD = "café", "cafe\u0301"


def test_names_are_one_on_every_keyboard() -> None:
    """Keys, tags, subjects, authors and command ids are compared and found in NFC; texts are kept as they are."""
    with Memory.temporary() as memory:
        first = memory.store("one", key=NFC, command_id=NFC)
        assert memory.store("one", key=NFC, command_id=NFD).repeated
        second = memory.store(f"two {NFD}", key=NFD, tags=[NFD], subject=NFD, author=NFD)
        assert (second.status, second.superseded_id) == ("superseded", first.id)
        assert memory.get(second.id).text == f"two {NFD}"
        for name in (NFC, NFD):
            asked: dict[str, Any] = {"tags": [name], "subject": name, "where": {"key": name, "author": name}}
            assert [record.id for record in memory.search(**asked)] == [second.id]
        memory.revise(second.id, tags_removed=[NFC], tags_added=["tea"], command_id=NFC + "2")
        assert memory.get(second.id).tags == ("tea",)
        memory.verify(views=True)
