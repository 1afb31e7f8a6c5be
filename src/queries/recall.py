"""Recall: the memories of some namespaces that answer a question best, read from the signed log."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..errors import ModelMissing, Refused, ViewsDamaged
from ..events.log import Log
from ..projections import keyword, memories
from ..projections.condition import Condition
from ..projections.record import Record
from ..projections.tokens import query_tokens
from ..projections.views import RECALL, Views
from . import dates, stages
from .filters import Filters
from .lookup import hydrate
from .pool import Candidate, around, before, candidates
from .stages import STAGES, STEPS, Column, standardised, stepped

if TYPE_CHECKING:
    from ..projections.embedding import Embedded

WHOLE = 1000
"""Where there are no more memories than this, the pool is all that either search finds."""
SIDE = 200
"""Where there are, it is the best so many of each, and the turns around the best of those."""
WITH_AROUND = 50
STEPS_BACK = 2
WAIT_SECONDS = 0.3

SLOPE, MIDDLE = 46.4, 0.8126
"""Relevance is the logistic function of SLOPE * (interaction - MIDDLE), fitted to questions on a conversation against

questions on another one and on something else altogether."""
RELEVANT = 0.08
"""Where no hit is at least so relevant, nothing is."""

Scores = dict[int, float]
REQUIRED = frozenset({"fused"})


class Search(Protocol):
    """Search by meaning, over the vectors that are made so far."""

    space: str

    def follow(self, views: Views) -> int:
        """Take in what the views have gained; returns how many have no vector yet."""

    def wait(self, seconds: float) -> int:
        """Wait at most so long for missing vectors; returns how many still are."""

    def ask(self, question: str) -> Embedded:
        """A question in the embedding space."""

    def nearest(self, asked: Embedded, candidates: list[int], limit: int) -> list[tuple[int, float]]:
        """The nearest of the candidates, best first."""

    def interaction(self, asked: Embedded, windows: Sequence[Sequence[int | None]]) -> list[float | None] | None:
        """How well the tokens of a question meet each memory and the turns before it."""


class Question(NamedTuple):
    """What is asked: the words, where to look, how many memories at most, when (microseconds), and what they fulfil.

    `namespaces` are the names under which memories were stored, `aliases` those among them that are called otherwise
    now; `without` are stages of the ranking to leave out.
    """

    text: str
    namespaces: tuple[str, ...]
    limit: int
    now: int
    filters: Filters = Filters()
    aliases: Mapping[str, str] = {}
    without: frozenset[str] = frozenset()


class Hit(NamedTuple):
    """A memory that answers, and what each stage added to its score: None where a stage did not see it.

    `score` is the sum: higher is better within one recall, and nothing beyond it. `relevance` is a probability, from
    0 to 1, that it is about what was asked, whatever else there is; None without a model that tells. It tells a
    question on something else from one that can be answered here; not one that supposes what is not so.
    """

    record: Record
    scores: Mapping[str, float | None]
    relevance: float | None = None

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
        """The sum over the stages."""
        return self.scores["fused"] or 0.0


class Answer(NamedTuple):
    """The hits, best first; what was missing when they were found; and the state of the log they come from."""

    hits: tuple[Hit, ...]
    degraded: tuple[str, ...]
    log_size: int
    log_root: bytes
    pipeline: str


class Found(NamedTuple):
    """What the two searches say of the pool; no dense score where there is no model."""

    lexical: Scores
    dense: Scores
    interaction: list[float | None] | None


class Ranked(NamedTuple):
    """The pool with the scores of its stages in steps, and its order, best first."""

    pool: list[Candidate]
    columns: Mapping[str, Sequence[int | None]]
    relevance: Sequence[float | None]
    order: list[int]


def recall(log: Log, views: Views, search: Search | None, question: Question) -> Answer:
    """Answer a question from the views, and read each hit's text from the log.

    Raises ViewsDamaged where a view says of a hit what its events do not, LogDamaged where an event does not verify,
    Refused for a stage that is none.
    """
    unknown = question.without - {*STAGES} | question.without & REQUIRED
    if unknown:
        raise Refused(f"{min(unknown)} is no stage to leave out. Name some of {', '.join(STAGES[1:])}.")
    tip = log.follow()
    views.catch_up(RECALL)
    asked, degraded = _ask(search, views, question)
    with views.reading() as cursor:
        ranked = _rank(cursor, search, asked, question)
        hits = _hits(log, cursor, ranked, question)
    return Answer(hits, degraded, tip.size, tip.frontier.root(), fingerprint(search, question.without))


def fingerprint(search: Search | None, without: Collection[str] = ()) -> str:
    """Twelve hexadecimal digits that change with anything that could change an order."""
    constants = [[pair for pair in sorted(vars(module).items()) if pair[0].isupper()] for module in (stages, dates)]
    parts = (constants, WHOLE, SIDE, WITH_AROUND, STEPS_BACK, keyword.WEIGHTS, sorted(without))
    space = search.space if search else "none"
    return hashlib.blake2b(repr((parts, space)).encode(), digest_size=6).hexdigest()


# ---- the question


def _ask(search: Search | None, views: Views, question: Question) -> tuple[Embedded | None, tuple[str, ...]]:
    """The question in the embedding space, once what has no vector yet was waited for; and what is missing."""
    if search is None:
        return None, ("no embedding model: found by words alone",)
    try:
        search.follow(views)
        missing = search.wait(WAIT_SECONDS)
        asked = search.ask(question.text)
    except ModelMissing as error:
        return None, (f"the embedding model failed, found by words alone: {error}",)
    degraded = (
        (f"{missing} with no vector yet, found by words alone: `tallystick embed` makes them now",) if missing else ()
    )
    return asked, degraded


# ---- the pool


def _rank(cursor: Any, search: Search | None, asked: Embedded | None, question: Question) -> Ranked:
    condition = question.filters.of_current(question.now)
    allowed = memories.recallable(cursor, question.namespaces, condition)
    limit = len(allowed) if len(allowed) <= WHOLE else max(SIDE, question.limit)
    lexical = _lexical(cursor, question, condition, limit)
    dense = {} if search is None or asked is None else _stepped(search.nearest(asked, allowed, limit))
    numbers = {*lexical, *dense} if len(allowed) <= WHOLE else _best(cursor, lexical, dense, {*allowed})
    pool = candidates(cursor, numbers)
    found = Found(lexical, dense, _interaction(cursor, search, asked, [each.number for each in pool]))
    return rank(pool, found, question)


def _lexical(cursor: Any, question: Question, condition: Condition, limit: int) -> Scores:
    words = query_tokens(question.text)
    return _stepped(keyword.search(cursor, words, question.namespaces, condition, limit))


def _stepped(found: Iterable[tuple[int, float]]) -> Scores:
    return {number: stepped(score) for number, score in found}


def _best(cursor: Any, lexical: Scores, dense: Scores, allowed: set[int]) -> set[int]:
    """The best by either search, and the turns around the best by both."""
    numbers = sorted({*lexical, *dense})
    both = _fused_searches(numbers, Found(lexical, dense, None))
    best = sorted(numbers, key=lambda number: (-both[number], number))[:WITH_AROUND]
    turns = {turn for pair in around(cursor, best).values() for turn in pair if turn is not None}
    return {*numbers, *turns & allowed}


def _fused_searches(numbers: Sequence[int], found: Found) -> Scores:
    dense, lexical = _columns(numbers, found)
    return {
        number: stages.DENSE_ALONE * by_meaning + stages.LEXICAL_BESIDE * by_words
        for number, by_meaning, by_words in zip(numbers, dense, lexical, strict=True)
    }


def _interaction(
    cursor: Any, search: Search | None, asked: Embedded | None, numbers: list[int]
) -> list[float | None] | None:
    if search is None or asked is None or not numbers:
        return None
    found = search.interaction(asked, list(zip(numbers, *before(cursor, numbers, STEPS_BACK), strict=True)))
    return None if found is None else [None if score is None else stepped(score) for score in found]


# ---- the order


def rank(pool: list[Candidate], found: Found, question: Question) -> Ranked:
    """Put the pool in order: by the sum of what the stages say, ties by stream id."""
    columns = _scored(pool, found, question)
    total = _sums(columns)
    order = sorted(range(len(pool)), key=lambda place: (-total[place], pool[place].stream))
    seen = {"interaction": found.interaction or [None] * len(pool), "dense": [found.dense.get(c.number) for c in pool]}
    said: dict[str, Sequence[int | None]] = {"fused": total, **columns}
    for name, raw in seen.items():
        said[name] = [None if value is None else score for value, score in zip(raw, said[name], strict=True)]
    relevance = [None if value is None else _relevance(value) for value in seen["interaction"]]
    return Ranked(pool, said, relevance, order)


def _scored(pool: list[Candidate], found: Found, question: Question) -> dict[str, list[int]]:
    """What each stage adds to the score of each memory, in steps; nothing where it is left out."""
    columns: dict[str, list[int]] = {}
    nothing = [0] * len(pool)

    def stage(name: str, scores: Callable[[], Column]) -> None:
        columns[name] = nothing if name in question.without else [round(score * STEPS) for score in scores()]

    dense, lexical = _columns([each.number for each in pool], found)
    late = "interaction" not in question.without and any(score is not None for score in found.interaction or ())
    by_meaning = stages.DENSE if late else stages.DENSE_ALONE
    by_words = stages.LEXICAL if late else stages.LEXICAL_BESIDE if found.dense else 1.0
    stage("interaction", lambda: [stages.INTERACTION * z for z in _standardised_where_known(found.interaction, pool)])
    stage("dense", lambda: [by_meaning * z for z in dense])
    stage("lexical", lambda: [by_words * z for z in lexical])
    stage("content", partial(stages.content, pool))
    stage("question", partial(stages.question, pool))
    stage("dates", partial(stages.dates, pool, question.text, question.now))
    stage("asked", partial(stages.asked_for, pool, question.text))
    stage("utility", partial(stages.utility, pool, question.now))
    stage("thread", lambda: stages.thread(pool, [total / STEPS for total in _sums(columns)]))
    stage("author", partial(stages.author, pool, question.text))
    return columns


def _sums(columns: Mapping[str, list[int]]) -> list[int]:
    return list(map(sum, zip(*columns.values(), strict=True)))


def _columns(numbers: Sequence[int], found: Found) -> tuple[Column, Column]:
    """How far above the pool's mean each memory stands by meaning and by words; unseen ones as the worst seen."""
    worst = min(found.dense.values(), default=0.0)
    dense = standardised([found.dense.get(number, worst) for number in numbers])
    lexical = standardised([found.lexical.get(number, 0.0) for number in numbers])
    return dense, lexical


def _standardised_where_known(scores: Sequence[float | None] | None, pool: Sequence[Candidate]) -> Column:
    """As `standardised`; a memory without token vectors as the worst that has them."""
    known = [score for score in scores or () if score is not None]
    if scores is None or not known:
        return [0.0] * len(pool)
    worst = min(known)
    return standardised([worst if score is None else score for score in scores])


def _relevance(interaction: float) -> float:
    return 1 / (1 + math.exp(-SLOPE * (interaction - MIDDLE)))


# ---- the hits


def _hits(log: Log, cursor: Any, ranked: Ranked, question: Question) -> tuple[Hit, ...]:
    """The first so many of the order, each read from the log and verified."""
    hits: list[Hit] = []
    for place in ranked.order:
        if len(hits) == question.limit:
            break
        (row,) = memories.rows_of(cursor, [ranked.pool[place].number])
        record = hydrate(log, row)
        if record.stored.namespace not in question.namespaces:
            raise ViewsDamaged(f"The views give {record.id} to another namespace. {ViewsDamaged.remedy}")
        if record.status == "current":
            record = record.renamed(question.aliases.get(record.namespace, record.namespace))
            scores = {name: None if (s := ranked.columns[name][place]) is None else s / STEPS for name in STAGES}
            hits.append(Hit(record, scores, ranked.relevance[place]))
    return tuple(hits)
