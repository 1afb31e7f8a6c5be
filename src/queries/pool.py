"""The pool of a recall: the memories that are scored against each other, and what is known of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

from ..projections.columns import NOWHERE, ROW, Columns, Flags, Integers, Places


class Searched(NamedTuple):
    """A namespace that is asked: its columns, which memories are there now, and which of them may be found."""

    columns: Columns
    current: Flags
    allowed: Flags


class Pool(NamedTuple):
    """Memories by place in the pool: their numbers, threads and rows (see `columns.ROW`).

    No two namespaces share a thread. `authors` and `kinds` are what the numbers in the rows stand for.
    """

    numbers: Integers
    threads: Integers
    rows: NDArray[numpy.void]
    authors: Sequence[str]
    kinds: Sequence[str]

    def __len__(self) -> int:
        return len(self.numbers)


def pooled(searched: Sequence[Searched], places: Sequence[Places]) -> Pool:
    """The memories at these places of each namespace, one namespace after the other."""
    authors: dict[str, int] = {}
    kinds: dict[str, int] = {}
    numbers, threads, rows = [numpy.empty(0, dtype=numpy.int64)], [numpy.empty(0, dtype=numpy.int64)], []
    for place, ((columns, *_), at) in enumerate(zip(searched, places, strict=True)):
        row = columns.rows[at]
        row["author"] = _renumbered(row["author"], columns.authors, authors)
        row["kind"] = _renumbered(row["kind"], columns.kinds, kinds)
        thread = columns.threads[at].astype(numpy.int64)
        thread[thread != NOWHERE] += place << 32
        numbers.append(columns.numbers[at])
        threads.append(thread)
        rows.append(row)
    whole = numpy.concatenate(rows) if rows else numpy.empty(0, dtype=ROW)
    return Pool(numpy.concatenate(numbers), numpy.concatenate(threads), whole, list(authors), list(kinds))


def neighbours(searched: Searched, places: Places) -> Places:
    """The places of the turns around these that may be found, in any order."""
    columns = searched.columns
    around = numpy.concatenate([columns.previous[places], columns.following[places]])
    there: Places = around[around != NOWHERE]
    return there[searched.allowed[there]]


def back(searched: Searched, places: Places, steps: int) -> list[Places]:
    """For one to `steps` steps back, the place of the turn that stands so far before each; NOWHERE for none."""
    previous = numpy.append(searched.columns.previous, NOWHERE)
    current = numpy.append(searched.current, False)
    found, at = [], places
    for _ in range(steps):
        before = previous[at]
        at = numpy.where(current[before], before, NOWHERE)
        found.append(at)
    return found


def _renumbered(numbers: NDArray[Any], texts: Sequence[str], known: dict[str, int]) -> NDArray[Any]:
    """The numbers of the same texts in what is known, which grows."""
    used = numpy.unique(numbers)
    to = {number: known.setdefault(texts[number], len(known)) for number in used.tolist() if number != NOWHERE}
    table = numpy.array([to.get(number, NOWHERE) for number in used.tolist()] or [0], dtype=numbers.dtype)
    return table[numpy.searchsorted(used, numbers)]
