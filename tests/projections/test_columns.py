"""The columns of a namespace: whatever happened, they say what the views say, and a memory keeps its place."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import count, pairwise
from typing import Any

import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tallystick import Memory
from tallystick.errors import Refused
from tallystick.projections import columns as module
from tallystick.projections.columns import FOR_EVER, GONE, NOWHERE, Columns, KeptColumns
from tallystick.projections.views import RECALL, Views

PATIENCE = 20.0


@pytest.fixture
def memory() -> Iterator[Memory]:
    """A memory of its own, by words alone."""
    with Memory.temporary() as opened:
        yield opened


@pytest.fixture(scope="module")
def common() -> Iterator[Memory]:
    """One memory for all examples of a property, each in a namespace of its own."""
    with Memory.temporary() as opened:
        yield opened


def views_of(memory: Memory) -> Views:
    """The views, caught up."""
    return memory._opened.views.current(RECALL)


def columns_of(memory: Memory, *namespaces: str, kept: KeptColumns | None = None) -> list[Columns]:
    """What is kept of these namespaces, as they are now."""
    views = views_of(memory)
    with views.reading() as cursor:
        return (kept or views.columns).of(cursor, namespaces)


def rows_of(memory: Memory, namespace: str) -> list[dict[str, Any]]:
    """The rows of a namespace, as plain SQL gives them."""
    with views_of(memory).reading() as cursor:
        found = cursor.execute("SELECT * FROM memories WHERE namespace = ? ORDER BY number", (namespace,))
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def texts(codes: Sequence[int], known: Sequence[str]) -> list[str | None]:
    """What the numbers stand for."""
    return [None if code == NOWHERE else known[code] for code in codes]


def turns_around(rows: list[dict[str, Any]]) -> tuple[list[int], list[int]]:
    """The places of the turns before and after each, found thread by thread."""
    before, after = [NOWHERE] * len(rows), [NOWHERE] * len(rows)
    current = [place for place, row in enumerate(rows) if row["status"] == "current" and row["thread"] is not None]
    for thread in {rows[place]["thread"] for place in current}:
        turns = [place for place in current if rows[place]["thread"] == thread]
        turns.sort(key=lambda place: (rows[place]["turn"], rows[place]["number"]))
        for first, second in pairwise(turns):
            before[second], after[first] = first, second
    return before, after


def assert_says(columns: Columns, rows: list[dict[str, Any]]) -> None:
    """The columns say what the rows do, of each memory and of all together."""
    assert columns.numbers.tolist() == [row["number"] for row in rows]
    until = [(row["expires_at"] or FOR_EVER) if row["status"] == "current" else GONE for row in rows]
    assert columns.until.tolist() == until
    assert_says_of_each(columns, rows)
    before, after = turns_around(rows)
    assert columns.previous.tolist() == before
    assert columns.following.tolist() == after
    lengths = [*(row["length"] for row in rows), 0]
    windows = [lengths[at] + lengths[before[at]] + lengths[after[at]] for at in range(len(rows))]
    assert columns.windows.tolist() == windows
    current = [window for window, row in zip(windows, rows, strict=True) if row["status"] == "current"]
    assert columns.current == len(current)
    assert columns.mean_window == pytest.approx(sum(current) / len(current) if current else 0.0)


def assert_says_of_each(columns: Columns, rows: list[dict[str, Any]]) -> None:
    """What is looked at of some memories only; threads are told apart, and no more."""
    names = {code: row["thread"] for code, row in zip(columns.threads.tolist(), rows, strict=True)}
    assert len({*names.values()}) == len(names)
    assert [names[code] for code in columns.threads.tolist()] == [row["thread"] for row in rows]
    assert names.get(NOWHERE) is None
    found = columns.rows
    assert [stream.tobytes() for stream in found["stream"]] == [row["stream"] for row in rows]
    assert texts(found["author"].tolist(), columns.authors) == [row["author"] for row in rows]
    assert texts(found["kind"].tolist(), columns.kinds) == [row["kind"] for row in rows]
    assert found["turn"].tolist() == [row["turn"] or 0 for row in rows]
    assert found["at"].tolist() == [
        row["recorded_at"] if row["occurred_at"] is None else row["occurred_at"] for row in rows
    ]
    confidence = [None if numpy.isnan(each) else each for each in found["confidence"].tolist()]
    assert confidence == [row["confidence"] for row in rows]
    for name in ("importance", "reinforced", "words", "cues"):
        assert found[name].tolist() == [row[name] for row in rows]


# ---- whatever happens

AUTHORS, THREADS, KEYS = ("Ana", "Ben", None), ("t1", "t1", "t2", None), ("employer", None, None, None)
SENTENCES = st.lists(st.sampled_from("tea cat dog seven June café 漢字 ?".split()), min_size=1, max_size=6).map(
    " ".join
)
SHARES = st.none() | st.sampled_from((0.0, 0.25, 1.0))
EXPIRIES = st.sampled_from((None, None, "2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z"))
STORED = st.fixed_dictionaries(
    {"text": SENTENCES, "thread": st.sampled_from(THREADS)},
    optional={
        "author": st.sampled_from(AUTHORS),
        "place": st.none() | st.integers(0, 6),
        "key": st.sampled_from(KEYS),
        "kind": st.sampled_from(("note", "fact", "turn")),
        "tags": st.lists(st.sampled_from(("tea", "cat food")), max_size=2),
        "importance": st.sampled_from((0.0, 0.5, 1.0)),
        "confidence": SHARES,
        "occurred_at": st.sampled_from((None, "2023-05-08T13:56:00Z")),
        "expires_at": EXPIRIES,
    },
)
REVISED = st.fixed_dictionaries(
    {"importance": st.sampled_from((0.1, 0.2, 0.3))},
    optional={
        "text": SENTENCES,
        "author": st.sampled_from(("Ana", "Cem", "Dora")),
        "kind": st.sampled_from(("fact", "pattern")),
        "expires_at": st.sampled_from(("2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z")),
        "tags_added": st.just(["dog"]),
    },
)
ACTS = st.one_of(
    st.tuples(st.just("store"), STORED),
    st.tuples(st.just("store"), STORED),
    st.tuples(st.just("forget"), st.integers(0, 99)),
    st.tuples(st.just("restore"), st.integers(0, 99)),
    st.tuples(st.just("revise"), st.tuples(st.integers(0, 99), REVISED)),
    st.tuples(st.just("elsewhere"), SENTENCES),
    st.tuples(st.just("look"), st.none()),
)
NAMES = count()


def act(memory: Memory, namespace: str, ids: list[str], act: str, given: Any) -> None:
    """Do one thing, where no rule says no to it."""
    if act == "elsewhere":
        memory.store(given, namespace=f"{namespace}/elsewhere")
    elif act == "store":
        ids.append(memory.store(namespace=namespace, **{k: v for k, v in given.items() if v is not None}).id)
    elif act == "revise" and ids:
        memory.revise(ids[given[0] % len(ids)], **given[1])
    elif ids and act != "look":
        getattr(memory, act)(ids[given % len(ids)])


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(acts=st.lists(ACTS, max_size=25))
def test_columns_say_what_the_views_say(common: Memory, acts: list[tuple[str, Any]]) -> None:
    """After any history, seen at any moments between, and as if seen for the first time; places stay what they were."""
    namespace = f"history-{next(NAMES)}"
    ids: list[str] = []
    numbers: list[int] = []
    for name, given_ in [*acts, ("look", None)]:
        with suppress(Refused):
            act(common, namespace, ids, name, given_)
        if name == "look":
            (columns,), rows = columns_of(common, namespace), rows_of(common, namespace)
            assert_says(columns, rows)
            assert columns.numbers[: len(numbers)].tolist() == numbers
            numbers = columns.numbers.tolist()
    (fresh,) = columns_of(common, namespace, kept=KeptColumns())
    assert_says(fresh, rows)


def test_columns_grow_with_a_namespace(memory: Memory) -> None:
    """By one and by many, beyond any room there was, with changes to old ones in between."""
    ids: list[str] = []
    for size in (2, 1, 61, 1, 200, 300):
        first = len(ids)
        turns = [
            {"text": f"turn {n} of many", "thread": f"t{n % 7}", "place": -n % 50} for n in range(first, first + size)
        ]
        rows = [{**row, "place": None} if n % 5 == 0 else row for n, row in enumerate(turns)]
        ids += [outcome.id for outcome in memory.store_many(rows)]
        memory.forget(ids[-1])
        memory.revise(ids[0], text=f"said otherwise when there were {len(ids)}")
        memory.store(f"beside {size}", namespace="another")
        assert_says(columns_of(memory, "default")[0], rows_of(memory, "default"))
    assert len(columns_of(memory, "default")[0]) == 565


def test_turns_out_of_order_stand_where_their_places_say(memory: Memory) -> None:
    """Turns arrive in any order; those without a place come last; one that is forgotten is stepped over."""
    said = {"c": 3, "a": 1, "d": 4, "b": 2, "none": None}
    ids = {text: memory.store(text, thread="t", place=place).id for text, place in said.items()}
    memory.store("of another thread", thread="other", place=2)
    memory.store("of no thread")

    def around(text: str) -> tuple[int, int]:
        (columns,) = columns_of(memory, "default")
        place = list(said).index(text)
        return int(columns.previous[place]), int(columns.following[place])

    assert [around(text) for text in said] == [(3, 2), (NOWHERE, 3), (0, 4), (1, 0), (2, NOWHERE)]
    memory.forget(ids["c"])
    assert [around(text) for text in said] == [(NOWHERE, NOWHERE), (NOWHERE, 3), (3, 4), (1, 2), (2, NOWHERE)]
    memory.restore(ids["c"])
    for outermost in ("a", "none"):
        memory.forget(ids[outermost])
    assert [around(text) for text in ("b", "c", "d")] == [(NOWHERE, 0), (3, 2), (0, NOWHERE)]


def test_what_expires_is_there_until_then(memory: Memory) -> None:
    """The columns do not change with the clock: each memory says until when it is there."""
    memory.store("Note 1", expires_at="1970-01-01T00:00:00.000100Z")
    memory.store("Note 2")
    memory.forget(memory.store("Note 3").id)
    (columns,) = columns_of(memory, "default")
    assert columns.until.tolist() == [100, FOR_EVER, GONE]
    assert [(columns.until > now).tolist() for now in (99, 100)] == [[True, True, False], [False, True, False]]
    assert columns.current == 2


def test_places_of_numbers(memory: Memory) -> None:
    """Each known number's place, in order; unknown ones and those of other namespaces are left out."""
    for number in range(6):
        memory.store(f"Note {number}", namespace=("here", "there")[number % 2])
    here, there, nowhere = columns_of(memory, "here", "there", "nowhere")
    numbers = numpy.array([0, 1, 2, 3, 5, 6, 99], dtype=numpy.int64)
    assert here.places(numbers).tolist() == [0, 1, 2]
    assert there.places(numbers).tolist() == [0, 2]
    assert nowhere.places(numbers).tolist() == []
    assert here.places(numbers[:0]).tolist() == []
    assert here.places(here.numbers).tolist() == [0, 1, 2]


def test_a_namespace_without_memories_is_empty(memory: Memory) -> None:
    """One that nobody stored in has no place, and has some once somebody does."""
    assert_says(columns_of(memory, "default")[0], [])
    memory.store("Note 1")
    assert len(columns_of(memory, "default")[0]) == 1
    assert_says(columns_of(memory, "DEFAULT")[0], [])


def test_a_rename_keeps_what_was_stored_under_its_name(memory: Memory) -> None:
    """The columns go by the names that were stored: what is stored under the new name stands beside them."""
    for name in ("Ana", "Ben"):
        memory.store("Company A", namespace=name, key="employer")
    before = [each.numbers.tolist() for each in columns_of(memory, "Ana", "Ben")]
    memory.rename("Ana", "Cem")
    memory.merge("Ben", "Cem")
    memory.store("A note", namespace="Cem")
    names = ["Ana", "Ben", "Cem"]
    columns = columns_of(memory, *names)
    assert [each.numbers.tolist() for each in columns[:2]] == before
    for each, name in zip(columns, names, strict=True):
        assert_says(each, rows_of(memory, name))
    assert sum(each.current for each in columns) == 2  # of two employers one was superseded
    assert sum(map(len, columns)) == 3


def test_a_rebuild_changes_nothing(memory: Memory) -> None:
    """New views have columns of their own, which are the same."""
    for number in range(9):
        memory.store(f"Turn {number}", thread="t", place=-number % 4)
    (before,) = columns_of(memory, "default")
    memory.rebuild()
    (after,) = columns_of(memory, "default")
    assert after is not before
    for name in ("numbers", "until", "threads", "previous", "following", "windows", "rows"):
        assert getattr(after, name).tobytes() == getattr(before, name).tobytes()
    assert (after.current, after.mean_window) == (before.current, before.mean_window)


# ---- what is kept


def test_what_has_not_changed_is_not_read_again(memory: Memory) -> None:
    """The same columns are given while nothing happens to a namespace, whatever happens to others."""
    memory.store("Note 1", namespace="here")
    (before,) = columns_of(memory, "here")
    memory.store("Note 1", namespace="there")
    here, there = columns_of(memory, "here", "there")
    assert here is before
    assert columns_of(memory, "there", "here", "there") == [there, here, there]
    memory.store("Note 2", namespace="here")
    assert len(columns_of(memory, "here")[0]) == 2


def test_the_namespaces_asked_last_stay(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """While there is room; those of one question stay together without any. What made room is read again, whole."""
    names = ["a", "b", "c"]
    for number in range(6):
        memory.store(f"Note {number}", namespace=names[number % 3])
    columns_of(memory, "a")
    one = KeptColumns()
    (first,) = columns_of(memory, "a", kept=one)
    arrays = ("numbers", "until", "threads", "previous", "following", "windows", "windows", "rows")
    size = 32 * sum(getattr(first, name).nbytes for name in arrays)  # there is room for 64 from the start
    monkeypatch.setattr(module, "KEPT_BYTES", 2 * size)
    kept = KeptColumns()
    a, b = columns_of(memory, "a", "b", kept=kept)
    assert columns_of(memory, "a", kept=kept)[0] is a
    (c,) = columns_of(memory, "c", kept=kept)  # b was asked least lately
    assert columns_of(memory, "a", "c", kept=kept) == [a, c]
    assert columns_of(memory, "b", kept=kept)[0] is not b
    monkeypatch.setattr(module, "KEPT_BYTES", 0)
    together = columns_of(memory, *names, kept=kept)
    assert all(again is each for again, each in zip(columns_of(memory, *names, kept=kept), together, strict=True))
    columns_of(memory, "c", kept=kept)
    memory.store("Note 6", namespace="a")
    for name in names:
        assert_says(columns_of(memory, name, kept=kept)[0], rows_of(memory, name))


def test_what_was_given_leads_nowhere_that_it_does_not_know(memory: Memory) -> None:
    """Whoever looks at columns while others go on sees no place that came later, and knows each author and kind."""
    ids = [memory.store(f"turn {place}", thread="t", place=place, author="Ana").id for place in (0, 2, 4, 6)]
    (given,) = columns_of(memory, "default")
    around = given.previous.tolist(), given.following.tolist()
    for place in (1, 3, 5, 7):
        memory.store(f"turn {place}", thread="t", place=place, author="Ben")
        columns_of(memory, "default")
    memory.revise(ids[0], author="Cem", kind="fact")
    columns_of(memory, "default")
    assert (given.previous.tolist(), given.following.tolist()) == around
    assert len(given) == 4
    first, *others = texts(given.rows["author"].tolist(), given.authors)
    assert first in {"Ana", "Cem"}
    assert others == ["Ana"] * 3
    assert texts(given.rows["kind"].tolist(), given.kinds)[0] in {"note", "fact"}


def assert_fits(columns: Columns) -> None:
    """Nothing leads beyond the columns."""
    assert int(numpy.max(columns.previous, initial=NOWHERE)) < len(columns)
    assert int(numpy.max(columns.following, initial=NOWHERE)) < len(columns)
    assert (numpy.diff(columns.numbers) > 0).all()
    assert len(texts(columns.rows["author"].tolist(), columns.authors)) == len(columns)


def test_threads_that_ask_while_others_store(memory: Memory) -> None:
    """Each gets columns that fit together, none older than what it had, and in the end what the views say."""
    wrong: list[object] = []
    done = threading.Event()

    def ask() -> None:
        size = 0
        try:
            while not done.is_set():
                here, there = columns_of(memory, "default", "another")
                assert_fits(here)
                assert_fits(there)
                assert len(here) >= size
                size = len(here)
        except (AssertionError, IndexError) as error:
            wrong.append(error)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(20):
        place: dict[str, Any] = {"thread": "t", "place": -number % 9, "author": f"author {number}"}
        stored = memory.store(f"turn {number}", **place)
        memory.store(f"turn {number}", namespace="another", **place)
        memory.revise(stored.id, author=f"another author {number}")
        memory.forget(stored.id)
        memory.restore(stored.id)
    done.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert not wrong
    for name in ("default", "another"):
        assert_says(columns_of(memory, name)[0], rows_of(memory, name))
