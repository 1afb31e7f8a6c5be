"""Recall: the memories of some namespaces that answer a question best, read from the signed log."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from ..errors import ModelMissing, ViewsDamaged
from ..events.log import Log
from ..projections import keyword, memories
from ..projections.condition import Condition
from ..projections.record import Record
from ..projections.tokens import query_tokens
from ..projections.views import RECALL, Views
from .filters import Filters
from .lookup import hydrate

STAGES = ("fused", "dense", "lexical")
DENSE_WEIGHT, LEXICAL_WEIGHT = 1.0, 0.5
POOL = 500
STEP = 2.0**-20
WAIT_SECONDS = 0.3

Scores = dict[int, float]


class Search(Protocol):
    """Search by meaning, over the vectors that are made so far."""

    space: str

    def follow(self, views: Views) -> None:
        """Take in what the views have gained."""

    def wait(self, seconds: float) -> int:
        """Wait at most so long for missing vectors; returns how many still are."""

    def search(self, question: str, candidates: list[int], limit: int) -> list[tuple[int, float]]:
        """The nearest of the candidates, best first."""


class Question(NamedTuple):
    """What is asked: the words, where to look, how many memories at most, when (microseconds), and what they fulfil.

    `namespaces` are the names under which memories were stored, `aliases` those among them that are called otherwise
    now.
    """

    text: str
    namespaces: tuple[str, ...]
    limit: int
    now: int
    filters: Filters = Filters()
    aliases: Mapping[str, str] = {}


class Hit(NamedTuple):
    """A memory that answers, and its scores by stage: None where a stage did not see it.

    `score` is the fused one: higher is better within one recall, and nothing beyond it.
    """

    record: Record
    scores: Mapping[str, float | None]

    @property
    def id(self) -> str:
        """The memory's id."""
        return self.record.id

    @property
    def text(self) -> str:
        """The memory's text, from the signed log."""
        return self.record.text

    @property
    def score(self) -> float:
        """The fused score."""
        return self.scores["fused"] or 0.0


class Answer(NamedTuple):
    """The hits, best first; what was missing when they were found; and the state of the log they come from."""

    hits: tuple[Hit, ...]
    degraded: tuple[str, ...]
    log_size: int
    log_root: bytes
    pipeline: str


def recall(log: Log, views: Views, search: Search | None, question: Question) -> Answer:
    """Answer a question from the views, and read each hit's text from the log.

    Raises ViewsDamaged where a view says of a hit what its events do not, LogDamaged where an event does not verify.
    """
    condition = question.filters.of_current(question.now)
    tip = log.follow()
    views.catch_up(RECALL)
    dense, degraded = _dense(search, views, question, condition)
    with views.reading() as cursor:
        lexical = _lexical(cursor, question, condition)
        fused = fuse(lexical, dense)
        order = rank(fused, memories.streams_of(cursor, fused))
        found: list[Hit] = []
        for row in memories.rows_of(cursor, order):
            record = hydrate(log, row)
            if record.stored.namespace not in question.namespaces:
                raise ViewsDamaged(f"The views give {record.id} to another namespace. {ViewsDamaged.remedy}")
            if record.status == "current":
                record = record.renamed(question.aliases.get(record.namespace, record.namespace))
                found.append(Hit(record, _scores(row[0], fused, dense, lexical)))
            if len(found) == question.limit:
                break
    return Answer(tuple(found), degraded, tip.size, tip.frontier.root(), fingerprint(search))


def rank(fused: Scores, streams: Mapping[int, bytes]) -> list[int]:
    """The pool's numbers, best first: by fused score, ties by stream id."""
    return sorted(fused, key=lambda number: (-fused[number], streams[number]))


def fingerprint(search: Search | None) -> str:
    """Twelve hexadecimal digits that change with anything that could change an order."""
    parts = (STAGES, DENSE_WEIGHT, LEXICAL_WEIGHT, POOL, STEP, keyword.WEIGHTS)
    space = search.space if search else "none"
    return hashlib.blake2b(repr((parts, space)).encode(), digest_size=6).hexdigest()


def _lexical(cursor: Any, question: Question, condition: Condition) -> Scores:
    words = query_tokens(question.text)
    found = keyword.search(cursor, words, question.namespaces, condition, POOL)
    return {number: _rounded(score) for number, score in found}


def _dense(
    search: Search | None, views: Views, question: Question, condition: Condition
) -> tuple[Scores, tuple[str, ...]]:
    if search is None:
        return {}, ("no embedding model: found by words alone",)
    try:
        search.follow(views)
        missing = search.wait(WAIT_SECONDS)
        with views.reading() as cursor:
            candidates = memories.recallable(cursor, question.namespaces, condition)
        found = search.search(question.text, candidates, POOL)
    except ModelMissing as error:
        return {}, (f"the embedding model failed, found by words alone: {error}",)
    degraded = (
        (f"{missing} with no vector yet, found by words alone: `tallystick embed` makes them now",) if missing else ()
    )
    return {number: _rounded(score) for number, score in found}, degraded


def fuse(lexical: Scores, dense: Scores) -> Scores:
    """1.0 z(dense) + 0.5 z(lexical) over the pool; a memory that a stage did not see has that stage's lowest score."""
    pool = {*lexical, *dense}
    by_meaning, by_words = _z(dense, pool, min(dense.values(), default=0.0)), _z(lexical, pool, 0.0)
    return {n: _rounded(DENSE_WEIGHT * by_meaning[n] + LEXICAL_WEIGHT * by_words[n]) for n in pool}


def _z(scores: Scores, pool: set[int], absent: float) -> Scores:
    values = [scores.get(number, absent) for number in sorted(pool)]
    mean = math.fsum(values) / len(values) if values else 0.0
    deviation = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / len(values)) if values else 0.0
    return {n: (scores.get(n, absent) - mean) / deviation if deviation else 0.0 for n in pool}


def _scores(number: int, fused: Scores, dense: Scores, lexical: Scores) -> dict[str, float | None]:
    return {"fused": fused[number], "dense": dense.get(number), "lexical": lexical.get(number)}


def _rounded(score: float) -> float:
    """A score as a multiple of 2**-20, so that another engine's arithmetic gives the same order."""
    return round(score / STEP) * STEP
