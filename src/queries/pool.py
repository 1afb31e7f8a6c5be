"""The pool of a recall: the memories that are scored against each other, and what is known of each."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

_ROWS = (
    "SELECT number, stream, namespace, thread, author, kind, coalesce(occurred_at, recorded_at), importance, "
    "confidence, reinforced, words, cues FROM memories WHERE number IN (SELECT value FROM json_each(?)) ORDER BY number"
)
_AROUND = "SELECT number, previous, next FROM keyword_around WHERE number IN (SELECT value FROM json_each(?))"


class Candidate(NamedTuple):
    """A memory of the pool, by its number in the views, as far as ranking looks at it. `at` is in microseconds."""

    number: int
    stream: bytes
    namespace: str
    thread: str | None
    author: str | None
    kind: str
    at: int
    importance: float
    confidence: float | None
    reinforced: int
    words: int
    cues: int


Around = dict[int, tuple[int | None, int | None]]
"""The turns before and after a turn of a thread, by number."""


def candidates(cursor: Any, numbers: Collection[int]) -> list[Candidate]:
    """What the views know of these memories, in order of numbers."""
    return [Candidate(*row) for row in cursor.execute(_ROWS, (json.dumps(list(numbers)),)).fetchall()]


def around(cursor: Any, numbers: Collection[int]) -> Around:
    """The turns around these memories, of those that stand in a thread."""
    rows = cursor.execute(_AROUND, (json.dumps(list(numbers)),)).fetchall()
    return {number: (previous, following) for number, previous, following in rows}


def before(cursor: Any, numbers: Sequence[int], steps: int) -> list[list[int | None]]:
    """For one to `steps` steps back, the turn that stands so far before each of these memories in its thread."""
    found, at = [], list[int | None](numbers)
    for _ in range(steps):
        known = around(cursor, {number for number in at if number is not None})
        at = [None if number is None else known.get(number, (None, None))[0] for number in at]
        found.append(at)
    return found
