"""How well the words of a question match memories: BM25 over each memory, its tags and the turns around it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

from ..errors import ViewsDamaged
from .columns import NOWHERE, Columns, Flags, Integers, Places
from .keyword import count, occurrences

OWN, PREVIOUS, FOLLOWING, TAGS = 3.0, 2.0, 1.0, 1.0
"""What a word weighs in a memory's own text, in the turn before it, in the one after it, and in its tags."""
SATURATION, LENGTH = 1.2, 0.75
"""BM25's k1 and b."""
PRUNED_FROM, PRUNED_SHARE = 100_000, 0.2
"""Among so many memories, a word that more than this share of them hold does not tell them apart."""

Scores = NDArray[numpy.float64]
Counts = NDArray[numpy.int32]


class Matches(NamedTuple):
    """By place in a namespace: how well a question's words match each memory, 0 where none does, and how many do."""

    scores: Scores
    words: Counts


class _Matched(NamedTuple):
    """The memories of a namespace in which a word counts, each once, and how much it weighs there."""

    places: Places
    weights: Scores


def search(cursor: Any, words: Sequence[str], searched: Sequence[tuple[Columns, Flags]]) -> list[Matches]:
    """The BM25 score of each memory of these namespaces; current ones are flagged.

    After Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with the fields of
    a memory weighed as one text, and the inverse document frequency of all namespaces together kept above 0 as Lucene
    does. Words must come from `query_tokens`. Among many memories the words that most hold are left out, but for the
    rarest of them where there are no others. Raises ViewsDamaged where a word leads to no memory of its namespace.
    """
    total = sum(columns.current for columns, _ in searched)
    found = [Matches(numpy.zeros(len(each)), numpy.zeros(len(each), dtype=numpy.int32)) for each, _ in searched]
    blank = [numpy.zeros(len(columns) + 1) for columns, _ in searched]
    for word in _telling(cursor, words, [columns for columns, _ in searched], total):
        matched = [_matched(cursor, word, *each, weight) for each, weight in zip(searched, blank, strict=True)]
        holding = sum(len(each.places) for each in matched)
        telling = math.log1p(max(0.0, total - holding + 0.5) / (holding + 0.5))
        for (columns, _), (places, weights), (scores, counts) in zip(searched, matched, found, strict=True):
            long = columns.windows[places] / columns.mean_window if len(places) else 0.0
            scores[places] += (
                telling * weights * (SATURATION + 1) / (weights + SATURATION * (1 - LENGTH + LENGTH * long))
            )
            counts[places] += 1
    return found


def _telling(cursor: Any, words: Sequence[str], searched: Sequence[Columns], total: int) -> Sequence[str]:
    """The words that tell memories apart."""
    if total < PRUNED_FROM:
        return words
    held = {word: sum(count(cursor, columns.namespace, word) for columns in searched) for word in words}
    telling = [word for word in words if held[word] <= PRUNED_SHARE * total]
    return telling or sorted(words, key=lambda word: (held[word], word))[:1]


def _matched(cursor: Any, word: str, columns: Columns, current: Flags, weight: Scores) -> _Matched:
    """Where a word counts, and how much. `weight` has room for each place, which is left blank, and one for nowhere.

    No place is twice among those of one field: a memory has one turn before it, and is before one.
    """
    found = numpy.fromstring(occurrences(cursor, columns.namespace, word), dtype=numpy.int64, sep=",")
    own, times = _counted(columns, found[found & 1 == 0] >> 1, current)
    tagged, tagged_times = _counted(columns, found[found & 1 == 1] >> 1, current)
    counts = (
        (own, OWN * times), (columns.following[own], PREVIOUS * times), (columns.previous[own], FOLLOWING * times),
        (tagged, TAGS * tagged_times),
    )  # fmt: skip
    touched = []
    weight[NOWHERE] = 1  # so that it never counts as new
    for places, weights in counts:
        before = weight[places]
        touched.append(places[before == 0])
        weight[places] = before + weights
    at = numpy.concatenate(touched)
    weights = weight[at]
    weight[at] = 0
    now = current[at]
    return _Matched(at[now], weights[now])


def _counted(columns: Columns, numbers: Integers, current: Flags) -> tuple[Places, Integers]:
    """The places of current memories among these, in order, and how often each is named."""
    if not len(numbers):
        return numpy.empty(0, dtype=numpy.intp), numbers
    begins = numpy.flatnonzero(numpy.append(True, numbers[1:] != numbers[:-1]))
    times = numpy.diff(numpy.append(begins, len(numbers)))
    places = columns.places(numbers[begins])
    if len(places) < len(begins):
        raise ViewsDamaged(f"The `keyword` view has words of memories that are not there. {ViewsDamaged.remedy}")
    now = current[places]
    return places[now], times[now]
