"""The `keyword` view: which words stand in which memory, and how well a question's words match."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from .record import Record
from .tokens import tokens
from .view import Page, digest_of

OWN_WEIGHT, TAGS_WEIGHT = 3.0, 1.0


class Keyword:
    """A classic contentless FTS5 index over ready-made tokens: own text, tags, and a token for the namespace.

    A contentless row is deleted by giving its old text again, so totals and document frequencies stay exact.
    """

    name = "keyword"
    version = 1
    schema = (
        "CREATE VIRTUAL TABLE keyword USING fts5(own, tags, namespace, content='', tokenize='ascii')",
        "CREATE VIRTUAL TABLE keyword_terms USING fts5vocab(keyword, 'instance')",
    )

    def apply(self, cursor: Any, page: Page) -> None:
        """Take the old words of each changed memory out, and put the new ones in where it is current."""
        for number, before, after in page.changes:
            old, new = _words(before), _words(after)
            if old == new:
                continue
            if old is not None:
                cursor.execute(
                    "INSERT INTO keyword (keyword, rowid, own, tags, namespace) VALUES ('delete', ?, ?, ?, ?)",
                    (number, *old),
                )
            if new is not None:
                cursor.execute("INSERT INTO keyword (rowid, own, tags, namespace) VALUES (?, ?, ?, ?)", (number, *new))

    def clear(self, cursor: Any) -> None:
        """Remove every word."""
        cursor.execute("INSERT INTO keyword (keyword) VALUES ('delete-all')")

    def digest(self, cursor: Any) -> str:
        """A hash of every term instance, of the length of each row, and of the totals that ranking uses."""
        return digest_of(_everything(cursor))


def search(
    cursor: Any, words: Sequence[str], namespaces: Sequence[str], now: int, limit: int
) -> list[tuple[int, float]]:
    """The best memories of these namespaces that hold any of the words: (number, BM25 score), best first.

    What has expired by `now` (microseconds) is left out before the best are picked. BM25 as SQLite FTS5 computes it
    (k1 = 1.2, b = 0.75), own text weighing 3 and tags 1, with its sign turned. Words must come from `query_tokens`;
    no text of a user is read as query syntax.
    """
    if not words or not namespaces:
        return []
    asked = " OR ".join(f'"{word}"' for word in words)
    within = " OR ".join(f'"{namespace_token(name)}"' for name in namespaces)
    rows = cursor.execute(
        f"SELECT keyword.rowid, -bm25(keyword, {OWN_WEIGHT}, {TAGS_WEIGHT}, 0.0) AS score "
        "FROM keyword JOIN memories ON memories.number = keyword.rowid "
        "WHERE keyword MATCH ? AND (expires_at IS NULL OR expires_at > ?) ORDER BY score DESC, number LIMIT ?",
        (f"(namespace : ({within})) AND ({{own tags}} : ({asked}))", now, limit),
    )
    return [(number, score) for number, score in rows]


def namespace_token(namespace: str) -> str:
    """The one term that stands for a namespace, so that it is matched exactly."""
    return "n" + hashlib.blake2b(namespace.encode(), digest_size=12, person=b"tally.namespace").hexdigest()


def _words(record: Record | None) -> tuple[str, str, str] | None:
    """The words a memory is found by; None for one that is not to be found."""
    if record is None or record.status != "current":
        return None
    own = f"{record.stored.author}: {record.text}" if record.stored.author else record.text
    tagged = " ".join(token for tag in record.tags for token in tokens(tag))
    return " ".join(tokens(own)), tagged, namespace_token(record.namespace)


def _everything(cursor: Any) -> Iterator[Sequence[Any]]:
    yield from cursor.execute('SELECT term, doc, col, "offset" FROM keyword_terms ORDER BY term, doc, col, "offset"')
    yield from cursor.execute("SELECT id, sz FROM keyword_docsize ORDER BY id")
    for (totals,) in cursor.execute("SELECT block FROM keyword_data WHERE id = 1"):
        yield (totals if any(totals) else b"",)  # an index that has become empty counts as a new one
