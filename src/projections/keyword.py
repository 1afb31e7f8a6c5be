"""The `keyword` view: which words stand in which memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from .cues import words_of
from .record import Record
from .shelves import held_under
from .tokens import tokens
from .vector import document_of
from .view import Page, digest_of

_COLUMNS = "own, tags"

Words = tuple[str, str]
"""The terms of a memory, in the order of the columns."""

_TAKE_OUT = f"INSERT INTO keyword (keyword, rowid, {_COLUMNS}) VALUES ('delete', ?, ?, ?)"
_PUT_IN = f"INSERT INTO keyword (rowid, {_COLUMNS}) VALUES (?, ?, ?)"
_OCCURRENCES = "SELECT group_concat(2 * doc + (col = 'tags')) FROM keyword_terms WHERE term = ?"


class Keyword:
    """A classic contentless FTS5 index over ready-made terms: the words of a memory's own text, and those of its tags.

    A term is a word of a namespace, so the words of one cost nothing to who asks another; those of superseded memories
    are as if of a namespace of their own (see `shelves`). A contentless row is deleted
    by giving its old terms again, so totals and document frequencies stay exact.
    """

    name = "keyword"
    version = 4
    schema = (
        f"CREATE VIRTUAL TABLE keyword USING fts5({_COLUMNS}, content='', tokenize='ascii')",
        "CREATE VIRTUAL TABLE keyword_terms USING fts5vocab(keyword, 'instance')",
        "CREATE VIRTUAL TABLE keyword_counts USING fts5vocab(keyword, 'row')",
    )

    def apply(self, cursor: Any, page: Page) -> None:
        """Index each changed memory anew."""
        changed = [(change.number, _words(change.before), _words(change.after)) for change in page.changes]
        changed = [(number, before, after) for number, before, after in changed if before != after]
        cursor.executemany(_TAKE_OUT, [(number, *before) for number, before, _ in changed if before is not None])
        cursor.executemany(_PUT_IN, [(number, *after) for number, _, after in changed if after is not None])

    def clear(self, cursor: Any) -> None:
        """Remove every word."""
        cursor.execute("INSERT INTO keyword (keyword) VALUES ('delete-all')")

    def digest(self, cursor: Any) -> str:
        """A hash of every term instance, of the length of each row, and of the totals that FTS5 keeps."""
        return digest_of(_everything(cursor))


def occurrences(cursor: Any, namespace: str, word: str) -> str:
    """Where a word stands in the memories of a namespace, in order, as numbers joined by commas.

    Twice the number of the memory for each time it stands in the text, and one more for each time it stands in a tag.
    """
    return str(cursor.execute(_OCCURRENCES, (_term(namespace, word),)).fetchone()[0] or "")


def count(cursor: Any, namespace: str, word: str) -> int:
    """How many memories of a namespace hold a word."""
    row = cursor.execute("SELECT doc FROM keyword_counts WHERE term = ?", (_term(namespace, word),)).fetchone()
    return 0 if row is None else int(row[0])


@lru_cache(1024)
def namespace_token(namespace: str) -> str:
    """What the terms of a namespace begin with, so that no other's are like them."""
    return "n" + hashlib.blake2b(namespace.encode(), digest_size=10, person=b"tally.namespace").hexdigest()


def _term(namespace: str, word: str) -> str:
    return namespace_token(namespace) + word


def _words(record: Record | None) -> Words | None:
    """The terms a memory is found by; None for one that is not to be found."""
    name = None if record is None else held_under(record)
    if record is None or name is None:
        return None
    tagged = [word for tag in record.tags for word in tokens(tag)]
    return _terms(name, words_of(document_of(record))), _terms(name, tagged)


def _terms(namespace: str, words: Sequence[str]) -> str:
    """The terms of these words, in one text."""
    begin = namespace_token(namespace)
    return begin + f" {begin}".join(words) if words else ""


def _everything(cursor: Any) -> Iterator[Sequence[Any]]:
    yield from cursor.execute('SELECT term, doc, col, "offset" FROM keyword_terms')  # in order: it walks the index
    yield from cursor.execute("SELECT id, sz FROM keyword_docsize ORDER BY id")
    for (totals,) in cursor.execute("SELECT block FROM keyword_data WHERE id = 1"):
        yield (totals if any(totals) else b"",)  # an index that has become empty counts as a new one
