"""Search: filtered, sorted and counted; pages that stay right while others write; verified, and on record."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallystick import Listing, Memory
from tallystick.errors import Refused, ViewsDamaged
from tallystick.queries.search import SORTS


@pytest.fixture
def memory() -> Iterator[Memory]:
    """A memory of its own, by words alone."""
    with Memory.temporary(namespace="project:app") as opened:
        yield opened


def pages(memory: Memory, **asked: Any) -> Iterator[Listing]:
    """Every page of a search."""
    listing = memory.search(**asked)
    yield listing
    while listing.cursor is not None:
        listing = memory.search(after=listing.cursor, **asked)
        yield listing


def texts(memory: Memory, **asked: Any) -> list[str]:
    """The texts on all pages of a search, in order."""
    return [record.text for listing in pages(memory, **asked) for record in listing]


def test_the_newest_come_first(memory: Memory) -> None:
    """Without a word about order the last that was stored is the first that is listed."""
    for text in "abc":
        memory.store(text)
    listing = memory.search()
    assert [record.text for record in listing] == ["c", "b", "a"]
    assert (len(listing), listing.total, listing.cursor) == (3, 3, None)
    assert list(listing)[0] == memory.get(listing.records[0].id)


def test_every_status_can_be_listed(memory: Memory) -> None:
    """Each status lists its own, several list all of theirs, and nothing said lists what is current."""
    memory.forget(memory.store("forgotten").id)
    memory.store("superseded", key="k")
    memory.store("current", key="k")
    memory.store("expired", expires_at="2020-01-01T00:00:00Z")
    for status in ("current", "expired", "forgotten", "superseded"):
        assert texts(memory, status=status) == [status]
    assert texts(memory, status=["forgotten", "expired"]) == ["expired", "forgotten"]
    assert texts(memory) == ["current"]


@pytest.mark.parametrize("sort", [sign + field for field in SORTS for sign in ("", "-")])
def test_pages_are_the_whole_in_order(memory: Memory, sort: str) -> None:
    """Whatever the order, pages of any size together are one page of all; what has no value comes last."""
    for n in range(7):
        fields: dict[str, Any] = {"importance": n % 3 / 2, "thread": "s", "place": n % 4}
        if n % 2:
            fields |= {
                "confidence": n / 10,
                "occurred_at": f"195{n}-01-01T00:00:00Z",
                "expires_at": "2999-01-01T00:00:00Z",
            }
        memory.store(f"text {n}", **fields)
    memory.revise(memory.search(sort="place").records[0].id, importance=0.125)
    whole = memory.search(sort=sort, limit=100)
    for size in (1, 2, 3, 7):
        found = list(pages(memory, sort=sort, limit=size))
        assert [record for listing in found for record in listing] == list(whole)
        assert {listing.total for listing in found} == {7}
        assert {len(listing) for listing in found[:-1]} <= {size}
    values = [_value(record, sort.removeprefix("-")) for record in whole]
    there = [value for value in values if value is not None]
    assert values == sorted(there, reverse=sort.startswith("-")) + [None] * (len(values) - len(there))


def _value(record: Any, field: str) -> Any:
    return getattr(record, field) if field in ("revised_at", "reinforced") else getattr(record.stored, field)


ACTS = st.lists(st.tuples(st.sampled_from(["store", "forget", "revise", "reinforce"]), st.integers(0, 9)), max_size=4)


ORDERS = st.sampled_from(["recorded_at", "-recorded_at", "-importance"])


@settings(max_examples=15)
@given(between=st.lists(ACTS, min_size=4, max_size=4), sort=ORDERS)
def test_pages_stay_right_while_others_write(between: list[list[tuple[str, int]]], sort: str) -> None:
    """What was there at the first page and nobody touched is listed once, in order; what came later is not."""
    with Memory.temporary() as memory:
        ids = [memory.store(f"text {n}", importance=n % 3 / 2).id for n in range(10)]
        before = [record.id for record in memory.search(sort=sort)]
        touched, seen = set(), []
        cursor: str | None = None
        for acts in between:
            listing = memory.search(sort=sort, limit=4, after=cursor)
            seen += [record.id for record in listing]
            cursor = listing.cursor
            if cursor is None:
                break
            for act, n in acts:
                _perform(memory, act, ids[n], n)
                touched.add(ids[n] if act in ("forget", "revise") else None)
        assert [id for id in seen if id not in touched] == [id for id in before if id not in touched]
        assert set(seen) <= set(ids)


def _perform(memory: Memory, act: str, id: str, n: int) -> None:
    try:
        if act == "store":
            memory.store("another", importance=n / 9, thread="t")
        elif act == "forget":
            memory.forget(id)
        elif act == "revise":
            memory.revise(id, importance=n / 9)
        else:
            memory.store(f"text {n}")
    except Refused:
        pass


def test_namespaces_are_exact(memory: Memory) -> None:
    """A search lists what is in the namespaces named, or in a subtree, and counts no other."""
    for name in ("a", "a/b", "a_b", "a%", "A"):
        memory.store(f"of {name}", namespace=name)
    assert texts(memory) == []
    assert texts(memory, namespaces=["a_b"]) == ["of a_b"]
    assert texts(memory, namespaces=["a%"]) == ["of a%"]
    assert texts(memory, under="a") == ["of a/b", "of a"]
    assert memory.search(namespaces=["a", "A"], limit=1).total == 2


def test_a_page_is_on_record(memory: Memory) -> None:
    """The receipt leads to the filters, the order, and each memory that was handed out."""
    ids = [memory.store(text, tags=["t"]).id for text in "ab"]
    listing = memory.search(tags=["t"], limit=1)
    why = memory.why(listing.receipt)
    recalled = why.recalled
    assert (recalled.verb, recalled.query, recalled.limit) == ("search", "", 1)
    assert recalled.filters == {"tags": ["t"], "sort": "-recorded_at"}
    assert [hit.record.id for hit in why.hits] == [ids[1]]
    assert why.hits[0].scores == {}


def test_what_search_has_handed_out_is_no_new_memory(memory: Memory) -> None:
    """A text that comes back from a page, stored again, reinforces the one it came from."""
    stored = memory.store("The office is in Lisbon", thread="s1")
    memory.search()
    again = memory.store("The office is in Lisbon")
    assert (again.status, again.id) == ("reinforced", stored.id)


@pytest.mark.parametrize("cursor", ["", "x", "AAAA", "W10", "bnVsbA", "é", "WyJhIiwgMSwgMCwgMWU5OTksIDFd"])
def test_what_is_no_cursor_is_refused(memory: Memory, cursor: str) -> None:
    """A cursor that no page gave is refused, not obeyed."""
    memory.store("a")
    with pytest.raises(Refused, match="cursor"):
        memory.search(after=cursor)


def test_a_cursor_goes_with_its_search(memory: Memory) -> None:
    """A cursor with other filters, another order or elsewhere would skip memories: it is refused."""
    for text in "abc":
        memory.store(text)
    cursor = memory.search(limit=1).cursor
    for asked in ({"sort": "recorded_at"}, {"tags": ["a"]}, {"namespaces": ["b"]}, {"under": "b"}):
        with pytest.raises(Refused, match="another search"):
            memory.search(after=cursor, **asked)
    assert len(memory.search(after=cursor, limit=5)) == 2


@pytest.mark.parametrize("sort", ["", "text", "-", "--importance", "importance DESC", 3, None])
def test_what_is_no_order_is_refused(memory: Memory, sort: Any) -> None:
    """Only what is in every row can be sorted by."""
    with pytest.raises(Refused, match="sort"):
        memory.search(sort=sort)


def test_a_row_that_was_edited_hands_out_nothing(memory: Memory) -> None:
    """Views are not trusted: a row must be what its events add up to."""
    memory.store("a secret", namespace="b")
    with memory._opened.views.opened().datastore.transaction(commit=True) as cursor:
        cursor.execute("UPDATE memories SET namespace = 'project:app'")
    with pytest.raises(ViewsDamaged):
        memory.search()
