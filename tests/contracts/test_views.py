"""What every view promises, asked of each: it is a fold, it can be thrown away, and its digest tells it apart."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallystick import Memory
from tallystick.errors import NotFound, Refused
from tallystick.events import log as log_module
from tallystick.events.installation import Installation
from tallystick.projections.changes import changes_of, record_of
from tallystick.projections.view import Page, View
from tallystick.projections.views import ALL_VIEWS, GROUPS, Group, Views, building

IDEMPOTENT = ("memories", "vector", "aliases", "access", "audit")
"""Views that write their rows anew: a page folded twice is a page folded once. `keyword` counts."""

TEXTS = ("The office is in Lisbon", "Use WAL mode", "Prefiro café", "猫が好き")
PAGES = (1, 2, 3, 7)

Act = tuple[str, int]


def perform(memory: Memory, act: Act) -> None:
    """One act of a history; what the rules refuse leaves no event."""
    name, number = act
    text, namespace = TEXTS[number % len(TEXTS)], f"n{number % 2}"
    try:
        if name == "store":
            memory.store(text, namespace=namespace, tags=[f"tag {number}"], importance=number / 10)
        elif name == "turn":
            memory.store(text, namespace=namespace, thread="s1", author="Ana", occurred_at="2023-05-08T13:56:00Z")
        elif name == "key":
            memory.store(f"{text} {number}", namespace=namespace, key="k")
        elif name == "rename":
            memory.rename(namespace, f"n{number + 7}")
        elif name == "recall":
            memory.recall(text, namespaces=["n0", "n1"])
        else:
            _perform_on_a_memory(memory, name, number)
    except (Refused, NotFound):
        pass


def _perform_on_a_memory(memory: Memory, name: str, number: int) -> None:
    streams = [logged.header.stream.hex() for logged in memory.events() if logged.header.kind == "memory.stored"]
    if streams:
        getattr(memory, name)(streams[number % len(streams)])


ACTS = st.tuples(
    st.sampled_from(["store", "store", "turn", "key", "recall", "forget", "restore", "get", "rename"]),
    st.integers(0, 9),
)

HISTORY: tuple[Act, ...] = (
    ("store", 0), ("store", 1), ("key", 2), ("turn", 0), ("recall", 0), ("key", 4), ("store", 0), ("forget", 1),
    ("turn", 0), ("get", 0), ("restore", 1), ("forget", 2), ("recall", 1), ("store", 3), ("rename", 0), ("recall", 3),
    ("store", 4), ("rename", 1),
)  # fmt: skip


@pytest.fixture(scope="module")
def memory() -> Iterator[Memory]:
    """A memory with a history in which every kind of event occurs."""
    with Memory.temporary() as opened:
        for act in HISTORY:
            perform(opened, act)
        yield opened


@pytest.fixture
def fresh(memory: Memory) -> Iterator[Views]:
    """Views of that history that a test may spoil, folded from zero."""
    with building(memory._opened.installation) as views:
        yield views


each_view = pytest.mark.parametrize("view", ALL_VIEWS, ids=lambda view: view.name)


def group_of(view: View) -> Group:
    """The group that folds a view."""
    return next(group for group in GROUPS if view in group.views)


def live(memory: Memory) -> dict[str, str]:
    """The digests of the views as they were folded, act by act."""
    for group in GROUPS:
        memory._opened.views.current(group)
    return memory._opened.views.opened().digests()


def rebuilt(installation: Installation) -> dict[str, str]:
    """The digests of views folded from zero."""
    with building(installation) as views:
        return views.digests()


def changed(views: Views, view: View, change: Callable[[Any], None]) -> bool:
    """Whether a change of the rows changes a view's digest."""
    with views.datastore.transaction(commit=True) as cursor:
        before = view.digest(cursor)
        change(cursor)
        return view.digest(cursor) != before


def tables_of(view: View) -> list[str]:
    """The ordinary tables of a view."""
    return [words.split()[2] for words in view.schema if words.startswith("CREATE TABLE")]


@each_view
def test_the_history_gives_a_view_something_to_fold(fresh: Views, view: View) -> None:
    """A contract over empty views would hold for anything."""
    assert changed(fresh, view, view.clear)


@each_view
def test_live_folding_equals_a_rebuild(memory: Memory, view: View) -> None:
    """What was folded act by act is what is folded from zero."""
    assert live(memory)[view.name] == rebuilt(memory._opened.installation)[view.name]


@each_view
@pytest.mark.parametrize("size", PAGES)
def test_the_size_of_a_page_does_not_matter(
    memory: Memory, view: View, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a history is cut into pages leaves no trace in a view."""
    expected = rebuilt(memory._opened.installation)[view.name]
    monkeypatch.setattr(log_module, "PAGE", size)
    assert rebuilt(memory._opened.installation)[view.name] == expected


@each_view
def test_a_cleared_view_is_a_new_one(memory: Memory, fresh: Views, view: View) -> None:
    """Clearing removes every trace: the view is as one that has folded nothing."""
    new = Views.create(memory._opened.installation)
    try:
        with fresh.datastore.transaction(commit=True) as cursor:
            view.clear(cursor)
        assert fresh.digests()[view.name] == new.digests()[view.name]
    finally:
        new.remove()


def test_views_that_were_cleared_fold_again_to_the_same(memory: Memory, fresh: Views) -> None:
    """After clearing everything the same events give the same views."""
    expected = fresh.digests()
    with fresh.datastore.transaction(commit=True) as cursor:
        for view in ALL_VIEWS:
            view.clear(cursor)
        cursor.execute("DELETE FROM tracking")
    fresh._folded.clear()
    for group in GROUPS:
        fresh.catch_up(group)
    assert fresh.digests() == expected


@each_view
def test_clearing_one_view_leaves_the_others(fresh: Views, view: View) -> None:
    """A view owns its tables and no others."""
    before = fresh.digests()
    with fresh.datastore.transaction(commit=True) as cursor:
        view.clear(cursor)
    after = fresh.digests()
    assert {name for name in before if before[name] != after[name]} == {view.name}


@each_view
def test_a_digest_is_the_same_when_taken_twice(fresh: Views, view: View) -> None:
    """Taking the digest changes nothing, and depends on nothing but the rows."""
    with fresh.datastore.transaction(commit=False) as cursor:
        assert view.digest(cursor) == view.digest(cursor)
    assert len(fresh.digests()[view.name]) == 64


@pytest.mark.parametrize("view", [view for view in ALL_VIEWS if view.name in IDEMPOTENT], ids=lambda view: view.name)
def test_a_page_folded_twice_is_folded_once(memory: Memory, view: View) -> None:
    """Where rows are written anew, applying a page again does no harm."""
    for page in pages(memory, group_of(view)):
        with building(memory._opened.installation) as views, views.datastore.transaction(commit=True) as cursor:
            before = view.digest(cursor)
            view.apply(cursor, page)
            assert view.digest(cursor) == before


def pages(memory: Memory, group: Group) -> Iterator[Page]:
    """Each log of a group as one page: the last state of every memory as its change."""
    for log in memory._opened.installation.logs:
        if log.name in group.logs:
            views = Views.create(memory._opened.installation)
            try:
                events = next(log.pages(0, log.follow().size - 1))
                with views.datastore.transaction(commit=True) as cursor:
                    changes = changes_of(cursor, log, events) if len(group.logs) == 1 else ()
                    yield Page(log.name, events, changes, partial(record_of, cursor, log))
            finally:
                views.remove()


CELLS = [(view, table) for view in ALL_VIEWS for table in tables_of(view)]


def keyed_rows(views: Views, table: str) -> tuple[list[tuple[str, str]], str, list[tuple[Any, ...]]]:
    """Columns of a table with their types, a condition that picks one row, and the values of it for each row."""
    with views.reading() as cursor:
        info = cursor.execute(f"PRAGMA table_info({table})").fetchall()
        keys = [row[1] for row in info if row[5]]
        rows = cursor.execute(f"SELECT {', '.join(keys)} FROM {table}").fetchall()
    assert len(rows) > 1
    return [(row[1], row[2]) for row in info], " AND ".join(f"{key} IS ?" for key in keys), rows


def tells_apart(views: Views, view: View, statement: str, values: tuple[Any, ...]) -> bool:
    """Whether the digest changes with a statement that changes one row, and is rolled back."""
    with views.reading() as cursor:
        before = view.digest(cursor)
        assert cursor.execute(statement, values).rowcount == 1
        return view.digest(cursor) != before


@pytest.mark.parametrize(("view", "table"), CELLS, ids=[table for _, table in CELLS])
def test_a_digest_covers_every_cell(fresh: Views, view: View, table: str) -> None:
    """A change of any one value of any column of any row changes the digest."""
    columns, where, rows = keyed_rows(fresh, table)
    others: dict[str, Any] = {"BLOB": b"other", "TEXT": "other", "INTEGER": 987_654_321, "REAL": 0.123}
    for column, kind in columns:
        for row in (rows[0], rows[-1]):
            change = f"UPDATE {table} SET {column} = ? WHERE {where}"
            assert tells_apart(fresh, view, change, (others[kind], *row)), column


@pytest.mark.parametrize(("view", "table"), CELLS, ids=[table for _, table in CELLS])
def test_a_digest_covers_every_row(fresh: Views, view: View, table: str) -> None:
    """A row that is missing, whichever it is, changes the digest."""
    _, where, rows = keyed_rows(fresh, table)
    for row in rows:
        assert tells_apart(fresh, view, f"DELETE FROM {table} WHERE {where}", row)


KEYWORD = next(view for view in ALL_VIEWS if view.name == "keyword")

DAMAGE: dict[str, str] = {
    "a row more": "INSERT INTO keyword (rowid, own, tags) VALUES (1000, 'lisbon', '')",
    "an empty row more": "INSERT INTO keyword (rowid, own, tags) VALUES (1000, '', '')",
    "a term more": "INSERT INTO keyword (rowid, own, tags) VALUES (1, 'zebra', '')",
    "a row deleted with other words": "INSERT INTO keyword (keyword, rowid, own, tags) "
    "VALUES ('delete', 1, 'zebra', '')",
    "the length of a row": "UPDATE keyword_docsize SET sz = x'010101' WHERE id = (SELECT min(id) FROM keyword_docsize)",
    "a row without a length": "DELETE FROM keyword_docsize WHERE id = (SELECT max(id) FROM keyword_docsize)",
    "the totals": "UPDATE keyword_data SET block = x'7f7f7f7f' WHERE id = 1",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_the_digest_of_the_keyword_view_covers_terms_lengths_and_totals(fresh: Views, damage: str) -> None:
    """Everything that ranking by words is computed from is in the digest."""
    assert changed(fresh, KEYWORD, lambda cursor: cursor.execute(DAMAGE[damage]))


def test_views_that_have_become_empty_are_as_new() -> None:
    """A store whose every memory was forgotten has the views that a rebuild gives, totals included."""
    with Memory.temporary() as emptied:
        emptied.forget(emptied.store("The office is in Lisbon").id)
        assert live(emptied) == rebuilt(emptied._opened.installation)


@settings(max_examples=20)
@given(acts=st.lists(ACTS, min_size=1, max_size=14), size=st.sampled_from(PAGES))
def test_any_history_gives_the_same_views_live_and_rebuilt(acts: list[Act], size: int) -> None:
    """Whatever happened, live views equal rebuilt ones, however the log is paged, and recall the same in one order."""
    with Memory.temporary() as memory, pytest.MonkeyPatch.context() as patch:
        for act in acts:
            perform(memory, act)
        before = [_answers(memory, text) for text in TEXTS]
        patch.setattr(log_module, "PAGE", size)
        assert live(memory) == rebuilt(memory._opened.installation)
        memory.rebuild()
        assert [_answers(memory, text) for text in TEXTS] == before


def _answers(memory: Memory, question: str) -> list[tuple[str, float]]:
    return [(hit.id, hit.score) for hit in memory.recall(question, namespaces=["n0", "n1"])]
