"""The filters of recall and search: masked before the best are picked, exact, and refused where they make no sense."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallystick import Memory
from tallystick.errors import Refused
from tallystick.events.kinds import Recalled

FIRST: dict[str, Any] = {
    "tags": ["a", "b"], "kind": "fact", "source": "human", "subject": "user:ana", "importance": 0.9,
    "author": "Ana", "occurred_at": "2023-05-08T00:00:00Z", "confidence": 0.25, "key": "office",
    "metadata": {"n": 3, "ok": True, "name": "x", "in": {"side": ["p", "q"]}, "kind": "odd", 'a"b\\': 1.5,
                 "none": None},
}  # fmt: skip
SECOND: dict[str, Any] = {
    "tags": ["b", "%"],
    "importance": 0.1,
    "metadata": {"n": 10, "name": "y", "ok": False, "text": "3"},
}


@pytest.fixture(scope="module")
def memory() -> Iterator[Memory]:
    """Three memories that one question finds, by words alone."""
    with Memory.temporary(actor="user:bo") as opened:
        opened.store("office one", **FIRST)
        opened.store("office two", **SECOND)
        opened.store("office three")
        opened.store("office four", expires_at="2020-01-01T00:00:00Z")
        yield opened


def found(memory: Memory, **filters: Any) -> set[str]:
    """The last words of what is recalled under these filters."""
    return {hit.text.split()[-1] for hit in memory.recall("office", **filters)}


FILTERS: list[tuple[Mapping[str, Any], set[str]]] = [
    ({}, {"one", "two", "three"}),
    ({"tags": ["a"]}, {"one"}),
    ({"tags": ["a", "b"]}, {"one"}),
    ({"tags": {"b"}}, {"one", "two"}),
    ({"tags": ["%"]}, {"two"}),
    ({"tags": ["_"]}, set()),
    ({"kinds": ["fact", "x"]}, {"one"}),
    ({"actors": ["user:bo"]}, {"one", "two", "three"}),
    ({"actors": ["user:b"]}, set()),
    ({"sources": ["agent"]}, {"two", "three"}),
    ({"subject": "user:ana"}, {"one"}),
    ({"until": "2023-05-08T00:00:00Z"}, set()),
    ({"until": datetime(2023, 5, 8, 0, 0, 1, tzinfo=UTC)}, {"one"}),
    ({"since": "2023-05-08T00:00:00Z", "until": "2023-05-08T02:00:01+02:00"}, {"one"}),
    ({"since": "2023-05-08T00:00:01Z"}, {"two", "three"}),
    ({"min_importance": 0.5}, {"one", "three"}),
    ({"status": "expired"}, {"four"}),
    ({"status": ["expired", "current"]}, {"one", "two", "three", "four"}),
    ({"where": {"author": "Ana"}}, {"one"}),
    ({"where": {"author": None}}, {"two", "three"}),
    ({"where": {"author": {"$ne": "Ana"}}}, {"two", "three"}),
    ({"where": {"importance": {"$gt": 0.1, "$lt": 0.9}}}, {"three"}),
    ({"where": {"importance": {"$gte": 0.1, "$lte": 0.5}}}, {"two", "three"}),
    ({"where": {"importance": {"$in": [0.1, 0.9]}}}, {"one", "two"}),
    ({"where": {"importance": {"$in": []}}}, set()),
    ({"where": {"occurred_at": {"$lt": "2024-01-01T00:00:00Z"}}}, {"one"}),
    ({"where": {"confidence": {"$lt": 1}}}, {"one"}),
    ({"where": {"kind": "note"}}, {"two", "three"}),
    ({"where": {"metadata.kind": "odd"}}, {"one"}),
    ({"where": {"key": "office", "tags": "a"}}, {"one"}),
    ({"where": {"tags": {"$ne": "a"}}}, {"two", "three"}),
    ({"where": {"pinned": False}}, {"one", "two", "three"}),
    ({"where": {"n": 3}}, {"one"}),
    ({"where": {"n": 3.0}}, {"one"}),
    ({"where": {"n": "3"}}, set()),
    ({"where": {"metadata.text": "3"}}, {"two"}),
    ({"where": {"n": {"$gt": 3}}}, {"two"}),
    ({"where": {"n": {"$gte": 3, "$ne": 10}}}, {"one"}),
    ({"where": {"n": {"$ne": 3}}}, {"two", "three"}),
    ({"where": {"n": None}}, {"three"}),
    ({"where": {"none": None}}, {"one", "two", "three"}),
    ({"where": {"n": {"$in": [3, 10, 99]}}}, {"one", "two"}),
    ({"where": {"ok": True}}, {"one"}),
    ({"where": {"ok": False}}, {"two"}),
    ({"where": {"name": {"$gt": "x"}}}, {"two"}),
    ({"where": {"name": {"$gt": 0}}}, set()),
    ({"where": {"n": {"$gt": "0"}}}, set()),
    ({"where": {"in.side": "q"}}, {"one"}),
    ({"where": {"in": "q"}}, set()),
    ({"where": {'a"b\\': 1.5}}, {"one"}),
    ({"where": {"n": 2**70}}, set()),
]  # fmt: skip


@pytest.mark.parametrize(("filters", "expected"), FILTERS, ids=[str(n) for n in range(len(FILTERS))])
def test_what_a_filter_leaves(memory: Memory, filters: Mapping[str, Any], expected: set[str]) -> None:
    """Each filter keeps what it says, by value and by type, and never by pattern."""
    assert found(memory, **filters) == expected


BAD: list[tuple[Mapping[str, Any], str]] = [
    ({"colour": 1}, "colour is not a filter"),
    ({"tags": "a"}, "tags"),
    ({"tags": [1]}, "tags"),
    ({"tags": {"a": 1}}, "tags"),
    ({"kinds": ["\ud800"]}, "surrogate"),
    ({"kinds": ["a\0"]}, "U\\+0000"),
    ({"subject": 1}, "subject"),
    ({"since": "yesterday"}, "since"),
    ({"until": "2023-05-08T00:00:00"}, "time zone"),
    ({"min_importance": "high"}, "min_importance"),
    ({"min_importance": True}, "min_importance"),
    ({"min_importance": float("nan")}, "min_importance"),
    ({"status": "gone"}, "status"),
    ({"status": []}, "status"),
    ({"status": "forgotten"}, "search"),
    ({"where": []}, "where"),
    ({"where": {1: 2}}, "where"),
    ({"where": {"namespace": "a"}}, "namespaces="),
    ({"where": {"status": "current"}}, "status="),
    ({"where": {"text": "a"}}, "recall"),
    ({"where": {"n": {}}}, "operators"),
    ({"where": {"n": {"$regex": "."}}}, "\\$regex"),
    ({"where": {"n": {"a": 1}}}, "operators"),
    ({"where": {"n": [1]}}, "number"),
    ({"where": {"n": {"$in": "abc"}}}, "list"),
    ({"where": {"n": {"$gt": None}}}, "number"),
    ({"where": {"n": float("inf")}}, "number"),
    ({"where": {"importance": "high"}}, "importance"),
    ({"where": {"importance": {"$gt": None}}}, "importance"),
    ({"where": {"pinned": 1}}, "pinned"),
    ({"where": {"pinned": {"$gt": False}}}, "no order"),
    ({"where": {"tags": {"$gt": "a"}}}, "no order"),
    ({"where": {"author": 3}}, "author"),
    ({"where": {"occurred_at": "now"}}, "occurred_at"),
    ({"where": {"occurred_at": {"$gt": None}}}, "occurred_at"),
    ({"where": {"n": {"$in": list(range(5000))}}}, "parts"),
    ({"namespaces": ["a"], "under": "a"}, "both"),
    ({"under": "a/"}, "namespace"),
    ({"under": 7}, "under"),
]  # fmt: skip


@pytest.mark.parametrize(("filters", "said"), BAD, ids=[str(n) for n in range(len(BAD))])
def test_what_is_no_filter_is_refused(memory: Memory, filters: Mapping[str, Any], said: str) -> None:
    """A filter that can't be asked is refused with its name, and nothing is put on record."""
    before = memory.status().logs["access"]
    with pytest.raises(Refused, match=said):
        memory.recall("office", **filters)
    assert memory.status().logs["access"] == before


def test_filters_are_masked_before_the_best_are_picked() -> None:
    """The one memory that fulfils a filter is found, however many others answer better."""
    with Memory.temporary() as memory:
        memory.store_many([{"text": f"office office {n}", "tags": ["many"]} for n in range(700)])
        memory.store("somewhere else, far away and long ago, there was an office too", metadata={"wanted": 1})
        (hit,) = memory.recall("office", where={"wanted": 1}, limit=1)
        assert hit.text.startswith("somewhere")


def test_filters_are_on_record(memory: Memory) -> None:
    """The receipt says which filters there were, as they were meant; without any it says nothing of them."""
    recall = memory.recall("office", since="2023-05-08T02:00:00+02:00", tags={"b", "a"}, where={"n": {"$in": (1, 3)}})
    recalled = memory.why(recall.receipt).recalled
    assert isinstance(recalled, Recalled)
    assert recalled.filters == {"since": 1683504000000000, "tags": ["a", "b"], "where": {"n": {"$in": [1, 3]}}}
    assert memory.why(memory.recall("office", tags=None, status="current").receipt).recalled.filters == {}


def test_a_subtree_is_the_exact_namespaces_in_it() -> None:
    """`under=` takes the namespace itself and those below it, and none that only begins like it."""
    names = ["org/acme", "org/acme/user:ana", "org/acme2", "org", "org/acme%", "Org/acme", "org/acme/a/b"]
    with Memory.temporary() as memory:
        for name in names:
            memory.store("office", namespace=name)
        recall = memory.recall("office", under="org/acme")
        assert {hit.record.namespace for hit in recall} == {"org/acme", "org/acme/user:ana", "org/acme/a/b"}
        assert memory.why(recall.receipt).recalled.namespaces == ("org/acme", "org/acme/a/b", "org/acme/user:ana")
        assert memory.recall("office", under="org/ac").hits == ()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text("ab%_'\"\\é🏡.", max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("ab\"'\\é", max_size=3), inner, max_size=2),
    max_leaves=4,
)  # fmt: skip


@settings(max_examples=60)
@given(name=st.text("ab\"'\\é$", min_size=1, max_size=4), value=JSON, other=JSON)
def test_any_metadata_is_found_by_its_value(memory: Memory, name: str, value: Any, other: Any) -> None:
    """Whatever scalar stands in metadata, a memory is found by it exactly where Python says that they are equal."""
    memory.store("probe", thread="t", metadata={"m": {name: value}})
    for asked in (value, other):
        if asked is not None and isinstance(asked, bool | int | float | str):
            found: list[Any] = [hit.record for hit in memory.recall("probe", where={f"m.{name}": asked})]
            assert all(holds(record.stored.metadata["m"].get(name), asked) for record in found)
            assert found or not holds(value, asked)


def holds(value: Any, asked: Any) -> bool:
    """Whether a value is the one asked for, or a list that holds it."""
    return any(holds(each, asked) for each in value) if isinstance(value, list) else bool(value == asked)
