"""The kinds of events are a closed list; a body is exactly one of them, and nothing is lost or added on the way."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tallystick.errors import LogDamaged
from tallystick.events.canonical import decode_body, encode_body
from tallystick.events.kinds import (
    REGISTRY,
    Event,
    Exported,
    Forgotten,
    Imported,
    KeyBackupDeclined,
    KeysBackedUp,
    Linked,
    LogCreated,
    Named,
    NamespaceRenamed,
    Pinned,
    Positions,
    Protected,
    Read,
    Recalled,
    Recovered,
    Reinforced,
    Rendered,
    Restored,
    Revised,
    SnapshotTaken,
    Stored,
    Superseded,
    Told,
    Unlinked,
    Used,
    ViewsRebuilt,
    body_of,
    event_from,
)

from .conftest import NOW

WHO: dict[str, Any] = {"recorded_at": NOW, "actor": "agent:planner"}
HASH, STREAM, NONCE = b"h" * 32, b"s" * 16, b"n" * 16

WHOLE: dict[type[Event], Event] = {
    type(event): event
    for event in (
        LogCreated(
            **WHO, nonce=NONCE, log="memory", store=b"s" * 16, root=HASH, writer=HASH, checkpoint=HASH, kek=b"k" * 8,
            index=b"i" * 8, root_signature=b"1", writer_signature=b"2", checkpoint_signature=b"3",
        ),
        Stored(
            **WHO, via={"process": "1", "user": "ana"}, nonce=NONCE, parents=(HASH,), command_id="c1",
            text="Prefer WAL mode\0 é", namespace="org/acme/user:ana", kind="fact", source="human", subject="user:ana",
            key="k", tags=("a", "b"), importance=0.25, confidence=1.0, author="Ana", thread="s1", place=3,
            occurred_at=-1, valid_from=0, expires_at=2**62, evidence=("e",), label="secret", trust="low",
            screening=({"rule": "x", "score": 0.5},), metadata={"a": [1, 2.5, None, {"b": "c"}], "é": True},
            derived_from=(HASH, HASH),
        ),
        Revised(
            **WHO, parents=(HASH,), text="Prefer WAL\0", kind="fact", source="human", subject="user:ana",
            tags_added=("a",), tags_removed=("b",), importance=0.0, confidence=1.0, author="Ana", occurred_at=-1,
            valid_from=0, expires_at=2**62, evidence=(), label="secret", trust="low", screening=({"rule": "x"},),
            metadata={}, derived_from=(HASH,), cleared=("label",), reason="it was wrong",
        ),
        Reinforced(**WHO, parents=(HASH,)),
        Superseded(**WHO, by=STREAM),
        Forgotten(**WHO, reason="outdated"),
        Restored(**WHO, reason="it was right"),
        Linked(**WHO, to=STREAM, kind="causes"),
        Unlinked(**WHO, to=STREAM, kind="causes"),
        Protected(**WHO, on=True, reason="approved"),
        Pinned(**WHO, on=False),
        Imported(
            **WHO, nonce=NONCE, namespace="a", origin=HASH, memory=STREAM, through=HASH, yields_to=STREAM,
            events=(Told(id=STREAM, kind="memory.stored", version=1, body=b"\x80"),),
            others=(Named(here=STREAM, origin=HASH, memory=STREAM),),
        ),
        NamespaceRenamed(**WHO, nonce=NONCE, old="a", new="b"),
        ViewsRebuilt(**WHO, nonce=NONCE, reason="asked for", before={"memories": "00"}, after={"memories": "01"}),
        KeysBackedUp(**WHO, nonce=NONCE, backup=b"b" * 16, digest=HASH, root=b"r" * 8, kek=b"k" * 8),
        KeyBackupDeclined(**WHO, root=b"r" * 8, kek=b"k" * 8, reason="a test store"),
        SnapshotTaken(
            **WHO, nonce=NONCE, name="20260508T135600Z", sha256=HASH, memory_size=7, memory_root=HASH, access_size=2,
            access_root=HASH,
        ),
        Recovered(
            **WHO, nonce=NONCE, origin=HASH, size=9, root=HASH, lost=(Positions(first=3, last=4),), events=6,
            reason="the disk died",
        ),
        Recalled(
            **WHO, verb="search", filters={"tags": ["a"]}, query="", namespaces=("a", "b"), limit=10,
            memories=(STREAM,), heads=(1,), scores=b"\0<\0<",
            stages=("fused", "dense"), pipeline="p", degraded=("no model",), log_size=7, log_root=HASH,
        ),
        Used(**WHO, receipt=STREAM, memories=(STREAM,)),
        Rendered(**WHO, receipt=STREAM, memories=(STREAM,), max_tokens=9, sha256=HASH, log_size=3, log_root=HASH),
        Read(**WHO, memory=STREAM, verb="get", log_size=7, log_root=HASH),
        Exported(**WHO, after=1, upto=7, log_size=8, log_root=HASH),
    )
}  # fmt: skip

kinds = pytest.mark.parametrize("event", WHOLE.values(), ids=lambda event: event.KIND)


def test_every_registered_kind_is_tried_here() -> None:
    """Who adds a kind adds an example of it, with every field of it filled."""
    assert set(REGISTRY.values()) == set(WHOLE)
    for event in WHOLE.values():
        empty = {name for name in type(event).model_fields if name not in event.model_dump(exclude_defaults=True)}
        assert empty <= set(Event.model_fields), type(event).__name__


def test_the_registry_names_each_kind_once() -> None:
    """By its own name and schema: a subclass does not take its parent's."""
    assert {(kind.KIND, kind.SCHEMA): kind for kind in WHOLE} == REGISTRY
    assert len({kind.KIND for kind in WHOLE}) == len(WHOLE)


@kinds
def test_a_body_gives_the_event_back(event: Event) -> None:
    """Through the canonical bytes, field by field."""
    body = decode_body(encode_body(body_of(event)))
    assert event_from(event.KIND, event.SCHEMA, dict(body)) == event


@kinds
def test_a_body_has_no_field_that_says_nothing(event: Event) -> None:
    """A field at its default is left out, and comes back as the default."""
    fields = type(event).model_fields
    for name, value in body_of(event).items():
        assert fields[name].is_required() or value != fields[name].get_default()


@kinds
def test_an_event_is_frozen(event: Event) -> None:
    """A fact does not change."""
    with pytest.raises(ValidationError, match="frozen"):
        event.actor = "somebody else"


@kinds
def test_an_unknown_field_is_an_error(event: Event) -> None:
    """In code and in a log."""
    with pytest.raises(ValidationError, match="Extra inputs"):
        type(event)(**{**event.model_dump(), "surprise": 1})
    with pytest.raises(LogDamaged, match=f"the body of a {event.KIND} event is not one"):
        event_from(event.KIND, event.SCHEMA, {**body_of(event), "surprise": 1})


@kinds
def test_a_missing_field_is_an_error(event: Event) -> None:
    """Each that has no default."""
    for name, field in type(event).model_fields.items():
        if field.is_required():
            with pytest.raises(LogDamaged):
                event_from(event.KIND, event.SCHEMA, {n: v for n, v in body_of(event).items() if n != name})


@kinds
def test_types_are_not_converted(event: Event) -> None:
    """A text that looks like a number is a text: what was signed is what is read."""
    wrong_values: tuple[Any, ...] = ("1", 1.5, b"x", None, [], {}, True)
    for name in ("recorded_at", "actor"):
        for wrong in wrong_values:
            if type(wrong) is not type(getattr(event, name)):
                with pytest.raises(LogDamaged):
                    event_from(event.KIND, event.SCHEMA, {**body_of(event), name: wrong})


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        ("memory.stored", 2),
        ("memory.stored", 0),
        ("memory.exploded", 1),
        ("", 1),
        ("os.system", 1),
        ("tallystick.events.kinds:Stored", 1),
        ("Stored", 1),
    ],
)
def test_an_unregistered_kind_is_refused(kind: str, schema: int) -> None:
    """The registry is closed: nothing is looked up by name or imported."""
    with pytest.raises(LogDamaged, match="is not a kind of event this release writes"):
        event_from(kind, schema, body_of(WHOLE[Stored]))


@pytest.mark.parametrize(
    "change",
    [
        {"text": ""},
        {"namespace": ""},
        {"namespace": "n" * 513},
        {"actor": ""},
        {"importance": 1.01},
        {"importance": -0.01},
        {"importance": float("nan")},
        {"confidence": 2.0},
        {"place": -1},
        {"place": 2**53},
        {"kind": "Note"},
        {"kind": ""},
        {"kind": "a" * 33},
        {"kind": "with space"},
        {"source": "nobody"},
        {"tags": ("",)},
        {"tags": ["a", 1]},
        {"occurred_at": 2**62 + 1},
        {"recorded_at": -(2**62) - 1},
        {"nonce": b"n" * 15},
        {"parents": (b"h" * 31,)},
        {"derived_from": (b"",)},
        {"key": ""},
        {"label": "Secret"},
        {"metadata": []},
        {"via": {"process": 1}},
    ],
    ids=str,
)
def test_a_value_outside_its_limits_is_refused(change: dict[str, Any]) -> None:
    """The limits of a memory's fields hold in code and in a log."""
    body = {**body_of(WHOLE[Stored]), **change}
    with pytest.raises(LogDamaged):
        event_from("memory.stored", 1, body)
    with pytest.raises(ValidationError):
        Stored(**body)


@given(
    text=st.text(min_size=1),
    metadata=st.dictionaries(
        st.text(alphabet=st.characters(exclude_characters="\0", codec="utf-8"), max_size=10),
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers(-(2**63), 2**63 - 1)
            | st.floats(allow_nan=False, allow_infinity=False),
            lambda inner: st.lists(inner, max_size=3),
            max_leaves=8,
        ),
        max_size=4,
    ),
    importance=st.floats(0, 1),
    when=st.integers(-(2**62), 2**62),
)
def test_every_memory_comes_back(text: str, metadata: dict[str, Any], importance: float, when: int) -> None:
    """Any text, metadata, share and instant, through the canonical bytes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    event = Stored(**WHO, text=text, namespace="n", metadata=metadata, importance=importance, occurred_at=when)
    found = event_from("memory.stored", 1, dict(decode_body(encode_body(body_of(event)))))
    assert isinstance(found, Stored)
    assert (found.text, found.importance, found.occurred_at) == (text, importance, when)
    assert found.metadata == metadata


def test_two_sealed_kinds_do_not_share_mutable_defaults() -> None:
    """What one event holds another does not change."""
    first, second = Stored(**WHO, text="a", namespace="n"), Stored(**WHO, text="b", namespace="n")
    first.metadata["x"] = 1
    assert second.metadata == {}
    assert Stored(**WHO, text="c", namespace="n").metadata == {}


def test_what_is_in_clear_holds_no_content() -> None:
    """Only the beginning of a log is written unsealed."""
    assert {kind for kind in WHOLE if kind.CLEAR} == {LogCreated}


@pytest.mark.parametrize("odd", [{"heads": ()}, {"heads": (1, 2)}, {"scores": b"\0"}, {"memories": ()}, {"stages": ()}])
def test_a_recall_whose_columns_are_not_of_the_same_hits_is_none(odd: dict[str, Any]) -> None:
    """As many revisions as memories, and a score of each for every stage."""
    recalled = WHOLE[Recalled]
    assert isinstance(recalled, Recalled)
    assert [(hit.memory, hit.head, hit.scores) for hit in recalled.hits] == [(STREAM, 1, b"\0<\0<")]
    with pytest.raises(LogDamaged, match="not of the same hits"):
        event_from(Recalled.KIND, 1, body_of(recalled) | odd)
