"""The `keyword` view: which words stand in which memory, and how well a question's words match."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from .condition import Condition
from .cues import words_of
from .memories import neighbours
from .record import Record
from .tokens import tokens
from .vector import document_of
from .view import Page, digest_of

OWN_WEIGHT, PREVIOUS_WEIGHT, NEXT_WEIGHT, TAGS_WEIGHT = 3.0, 2.0, 1.0, 1.0
WEIGHTS = f"{OWN_WEIGHT}, {PREVIOUS_WEIGHT}, {NEXT_WEIGHT}, {TAGS_WEIGHT}"
_COLUMNS = "own, previous, next, tags, namespace"

_ALONE: tuple[int | None, int | None] = (None, None)

Words = tuple[str, str, str, str, str]
"""The words of a memory, in the order of the columns."""
Row = tuple[int, str, str, str, str, str]
"""The number of a memory, and its words."""

_TAKE_OUT = f"INSERT INTO keyword (keyword, rowid, {_COLUMNS}) VALUES ('delete', ?, ?, ?, ?, ?, ?)"
_PUT_IN = f"INSERT INTO keyword (rowid, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"


class Keyword:
    """A classic contentless FTS5 index over ready-made tokens: own text, the turns around it, tags, the namespace.

    A contentless row is deleted by giving its old words again, so totals and document frequencies stay exact. So the
    view remembers which turns stood around a memory when it was indexed.
    """

    name = "keyword"
    version = 2
    schema = (
        f"CREATE VIRTUAL TABLE keyword USING fts5({_COLUMNS}, content='', tokenize='ascii')",
        "CREATE VIRTUAL TABLE keyword_terms USING fts5vocab(keyword, 'instance')",
        "CREATE TABLE keyword_around (number INTEGER PRIMARY KEY, previous INTEGER, next INTEGER) STRICT",
    )

    def apply(self, cursor: Any, page: Page) -> None:
        """Index each changed memory anew, and the turns that stood or now stand around it."""
        taken_out, put_in = _Fold(cursor, page).rows()
        cursor.executemany(_TAKE_OUT, taken_out)
        cursor.executemany(_PUT_IN, put_in)

    def clear(self, cursor: Any) -> None:
        """Remove every word."""
        cursor.execute("INSERT INTO keyword (keyword) VALUES ('delete-all')")
        cursor.execute("DELETE FROM keyword_around")

    def digest(self, cursor: Any) -> str:
        """A hash of every term instance, of the length of each row, and of the totals that ranking uses."""
        return digest_of(_everything(cursor))


def search(
    cursor: Any, words: Sequence[str], namespaces: Sequence[str], condition: Condition, limit: int
) -> list[tuple[int, float]]:
    """The best memories of these namespaces that hold any of the words: (number, BM25 score), best first.

    What does not fulfil the condition is left out before the best are picked. BM25 as SQLite FTS5 computes it
    (k1 = 1.2, b = 0.75), own text weighing 3, the turn before it 2, the one after it and tags 1, with its sign
    turned. Words must come from `query_tokens`; no text of a user is read as query syntax.
    """
    if not words or not namespaces:
        return []
    asked = " OR ".join(f'"{word}"' for word in words)
    within = " OR ".join(f'"{namespace_token(name)}"' for name in namespaces)
    rows = cursor.execute(
        f"SELECT keyword.rowid, -bm25(keyword, {WEIGHTS}, 0.0) AS score "
        "FROM keyword JOIN memories ON memories.number = keyword.rowid "
        f"WHERE keyword MATCH ? AND {condition.sql} ORDER BY score DESC, number LIMIT ?",
        (f"(namespace : ({within})) AND ({{own previous next tags}} : ({asked}))", *condition.parameters, limit),
    )
    return [(number, score) for number, score in rows]


@lru_cache(1024)
def namespace_token(namespace: str) -> str:
    """The one term that stands for a namespace, so that it is matched exactly."""
    return "n" + hashlib.blake2b(namespace.encode(), digest_size=12, person=b"tally.namespace").hexdigest()


class _Fold:
    """One page being folded: each memory as it was before and as it is after, and the turns around it."""

    def __init__(self, cursor: Any, page: Page) -> None:
        self._cursor = cursor
        self._changes = {change.number: change for change in page.changes}
        self._record = page.record
        self._known: dict[int, Record] = {}
        self._words: dict[tuple[int, bool], str] = {}

    def rows(self) -> tuple[list[Row], list[Row]]:
        """What is to be taken out of the index, and what is to be put in."""
        taken_out, put_in = [], []
        for number in self._touched():
            old, new = self._before_and_after(number)
            if old != new:
                taken_out += [(number, *old)] if old is not None else []
                put_in += [(number, *new)] if new is not None else []
        return taken_out, put_in

    def _touched(self) -> list[int]:
        """The changed memories, and the turns around them, before and after."""
        found = set(self._changes)
        for number, change in self._changes.items():
            if change.after.stored.thread is not None:
                around = (*self._around_before(number), *neighbours(self._cursor, number))
                found.update(turn for turn in around if turn is not None)
        return sorted(found)

    def _before_and_after(self, number: int) -> tuple[Words | None, Words | None]:
        """The words a memory was found by, and those it is found by now. Remembers the turns that stand around it."""
        threaded = self._is_turn(number)
        around = (self._around_before(number), neighbours(self._cursor, number)) if threaded else (_ALONE, _ALONE)
        old, new = (self._row(number, around[after], after=bool(after)) for after in (0, 1))
        if threaded:
            self._remember(number, around[1] if new is not None else _ALONE)
        return old, new

    def _row(self, number: int, around: tuple[int | None, int | None], *, after: bool) -> Words | None:
        """The words a memory is found by; None for one that is not to be found."""
        record = self._at(number, after=after)
        if record is None or record.status != "current":
            return None
        tagged = " ".join(token for tag in record.tags for token in tokens(tag)) if record.tags else ""
        before, behind = (self._own(turn, after=after) if turn is not None else "" for turn in around)
        return self._own(number, after=after), before, behind, tagged, namespace_token(record.namespace)

    def _is_turn(self, number: int) -> bool:
        """Whether a memory stands in a thread; it does or does not for ever."""
        record = self._at(number, after=True)
        return record is not None and record.stored.thread is not None

    def _own(self, number: int, *, after: bool) -> str:
        if (number, after) not in self._words:
            self._words[number, after] = _own(self._at(number, after=after))
        return self._words[number, after]

    def _at(self, number: int, *, after: bool) -> Record | None:
        if number in self._changes:
            return self._changes[number].after if after else self._changes[number].before
        if number not in self._known:
            self._known[number] = self._record(number)
        return self._known[number]

    def _around_before(self, number: int) -> tuple[int | None, int | None]:
        row = self._cursor.execute("SELECT previous, next FROM keyword_around WHERE number = ?", (number,)).fetchone()
        return _ALONE if row is None else (row[0], row[1])

    def _remember(self, number: int, around: tuple[int | None, int | None]) -> None:
        if around == _ALONE:
            self._cursor.execute("DELETE FROM keyword_around WHERE number = ?", (number,))
        else:
            self._cursor.execute("INSERT OR REPLACE INTO keyword_around VALUES (?, ?, ?)", (number, *around))


def _own(record: Record | None) -> str:
    """The words of a memory's own text and its author's name; none of one that is not to be found."""
    if record is None or record.status != "current":
        return ""
    return " ".join(words_of(document_of(record)))


def _everything(cursor: Any) -> Iterator[Sequence[Any]]:
    yield from cursor.execute('SELECT term, doc, col, "offset" FROM keyword_terms')  # in order: it walks the index
    yield from cursor.execute("SELECT id, sz FROM keyword_docsize ORDER BY id")
    yield from cursor.execute("SELECT number, previous, next FROM keyword_around ORDER BY number")
    for (totals,) in cursor.execute("SELECT block FROM keyword_data WHERE id = 1"):
        yield (totals if any(totals) else b"",)  # an index that has become empty counts as a new one
