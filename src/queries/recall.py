"""Recall: the memories of some namespaces that answer a question best, read from the signed log."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy

from ..errors import ModelMissing, Refused, ViewsDamaged
from ..events.log import Log
from ..projections import lexical, memories, token_codes, vector_index, vector_search
from ..projections.columns import NOWHERE, Columns, Flags, Integers, Places
from ..projections.lexical import Counts, Matches
from ..projections.reranking import Reranker
from ..projections.shelves import superseded_in
from ..projections.tokens import query_tokens, says_nothing
from ..projections.vector import document_of, last_change
from ..projections.views import RECALL, Views
from . import dates, roles, stages
from .answer import STAGES, Answer, Hit, Question, require_stages
from .filters import Filters
from .lookup import hydrate
from .pool import Pool, Searched, back, neighbours, pooled
from .stages import STEPS, Scores, standardised, stepped

if TYPE_CHECKING:
    from ..projections.embedding import Embedded
    from ..projections.vector_index import Nearest

WHOLE = 1000
"""Where there are no more memories than this, the pool is all that either search finds."""
SIDE = 200
"""Where there are, it is the best so many of each, and the turns around the first of those."""
WITH_AROUND = 25
"""Of how many of each."""
STEPS_BACK = 2
WAIT_SECONDS = 0.3
TRIES = 3
"""How often an answer is looked for that is of one moment, while others change what it depends on."""
NO_WORDS = "the question has only words too common to be looked for: ask with a word that tells what it is about"

SLOPE, MIDDLE = 46.4, 0.8126
"""Relevance is the logistic function of SLOPE * (interaction - MIDDLE), fitted to questions on a conversation against

questions on another one and on something else altogether."""


class Search(Protocol):
    """Search by meaning, over the vectors that are made so far."""

    space: str

    @property
    def state(self) -> tuple[int, int]:
        """The position of the last change that is taken in, and how often a vector has gone or been replaced."""

    def follow(self, views: Views, namespaces: Collection[str]) -> int:
        """Take in what the views have gained in these namespaces; returns how many have no vector yet."""

    def wait(self, seconds: float, namespaces: Collection[str]) -> int:
        """Wait at most so long for their missing vectors; returns how many still are."""

    def ask(self, question: str) -> Embedded:
        """A question in the embedding space."""

    def nearest(self, asked: Embedded, columns: Columns, allowed: Flags, limit: int) -> Nearest:
        """The nearest of the memories of a namespace that are flagged, best first."""

    def cosines(self, asked: Embedded, columns: Columns, places: Places) -> Scores:
        """How near the memories at these places of a namespace are to a question; NaN for those without a vector."""

    def kept(self, columns: Columns) -> Integers:
        """By place, what stands for the vector of each memory of a namespace; 0 for none."""

    def interaction(self, asked: Embedded, windows: Integers) -> Scores | None:
        """How well the tokens of a question meet each memory and the turns before it: a row of `kept` for each."""


class Found(NamedTuple):
    """What the two searches say of the pool; NaN where a memory has no vector. No dense scores without a model.

    `outstanding` are the lexical scores as standard scores among all that may be found, whether in the pool or not.
    """

    lexical: Scores
    outstanding: Scores
    dense: Scores | None
    interaction: Scores | None


class Ranked(NamedTuple):
    """The pool with the scores of its stages, and its order, best first."""

    pool: Pool
    scores: Mapping[str, Scores]
    relevance: Scores
    order: Places


def recall(log: Log, views: Views, search: Search | None, question: Question, judge: Reranker | None = None) -> Answer:
    """Answer a question from the views, and read each hit's text from the log.

    Raises ViewsDamaged where a view says of a hit what its events do not, LogDamaged where an event does not verify,
    Refused for a stage that is none.
    """
    require_stages(question.without)
    if question.rerank and "rerank" in question.without:
        raise Refused("rerank is asked for and left out. Ask for one of the two.")
    for _ in range(TRIES):
        answer, settled = _answer(log, views, search, question, judge)
        if settled:
            break
    return answer


def _answer(
    log: Log, views: Views, search: Search | None, question: Question, judge: Reranker | None
) -> tuple[Answer, bool]:
    """An answer, and whether it is of one moment: nothing that it depends on was changed by others meanwhile."""
    tip = log.follow()
    views.catch_up(RECALL)
    asked, degraded = _ask(search, views, question)
    with views.reading() as cursor:
        searched = _searched(cursor, views, question)  # before all else is read: see KeptColumns
        tip = log.tip_at(views.position(RECALL, log.name, cursor) + 1, tip)
        state = None if search is None or asked is None else search.state
        settled = state is None or state[0] == last_change(cursor)
        ranked = _rank(cursor, searched, None if asked is None else search, asked, question)
        if judge is not None:
            ranked = _reranked(log, cursor, ranked, question, judge)
        hits, gone = _hits(log, cursor, ranked, question)
    settled = settled and not gone and (search is None or state is None or search.state == state)
    answer = Answer(hits, degraded, tip.size, tip.frontier.root(), fingerprint(search, question.without, judge))
    return answer, settled


def fingerprint(search: Search | None, without: Collection[str] = (), judge: Reranker | None = None) -> str:
    """Twelve hexadecimal digits that change with anything that could change an order."""
    models = search.space if search else "none", judge.id if judge else "none"
    return hashlib.blake2b(repr((_constants(), sorted(without), models)).encode(), digest_size=6).hexdigest()


@lru_cache(1)
def _constants() -> str:
    """What no question changes."""
    modules = (stages, dates, roles, lexical, token_codes, vector_index, vector_search)
    constants = [[pair for pair in sorted(vars(module).items()) if pair[0].isupper()] for module in modules]
    return repr((constants, WHOLE, SIDE, WITH_AROUND, STEPS_BACK))


# ---- the question


def _ask(search: Search | None, views: Views, question: Question) -> tuple[Embedded | None, tuple[str, ...]]:
    """The question in the embedding space, once what has no vector yet was waited for; and what is missing."""
    if search is None:
        return None, ("no embedding model: found by words alone", *((NO_WORDS,) if says_nothing(question.text) else ()))
    try:
        older = [] if question.filters.of_superseded() is None else list(map(superseded_in, question.namespaces))
        search.follow(views, [*question.namespaces, *older])
        search.wait(WAIT_SECONDS, [*question.namespaces, *older])
        missing, older_missing = search.wait(0, question.namespaces), search.wait(0, older)
        asked = search.ask(question.text)
    except ModelMissing as error:
        return None, (f"the embedding model failed, found by words alone: {error}",)
    degraded = []
    if missing:
        degraded.append(f"{missing} with no vector yet, found by words alone: `tallystick embed` makes them now")
    if older_missing:
        degraded.append(f"{older_missing} superseded with no vector yet, found by words alone: ask again")
    return asked, tuple(degraded)


# ---- the pool


def _rank(
    cursor: Any, searched: Sequence[Searched], search: Search | None, asked: Embedded | None, question: Question
) -> Ranked:
    matching = lexical.search(cursor, query_tokens(question.text), [(each.columns, each.current) for each in searched])
    there = sum(int(numpy.count_nonzero(each.allowed)) for each in searched)
    limit = there if there <= WHOLE else max(SIDE, question.limit)
    both = _matching(searched, matching), _nearest(search, asked, searched, limit)
    places = _union(*(_best(found, limit) for found in both))
    if there > WHOLE:
        first = _union(*(_best(found, WITH_AROUND) for found in both))
        places = _union(places, [neighbours(each, at) for each, at in zip(searched, first, strict=True)])
    words = stepped(_joined([scores[at] for (scores, _), at in zip(matching, places, strict=True)]))
    counts = _joined([each.words[at] for each, at in zip(matching, places, strict=True)])
    outstanding = _outstanding(words, counts, [scores for _, scores in both[0]], there)
    found = Found(words, outstanding, *_meant(search, asked, searched, places))
    return rank(pooled(searched, places), found, question)


def _outstanding(words: Scores, counts: Scores, above_zero: Sequence[Scores], there: int) -> Scores:
    """Lexical scores as standard scores among all that may be found, of which some are above 0; bounded by `counts`.

    Those are how many words of the question each memory has: one alone may be there by chance, several seldom are.
    """
    others = stepped(_joined(above_zero))
    if not there or (len(others) == there and others.min() == others.max()):
        return numpy.zeros(len(words))
    mean = others.sum() / there
    deviation = math.sqrt((numpy.square(others - mean).sum() + (there - len(others)) * mean**2) / there)
    found: Scores = numpy.minimum((words - mean) / (deviation or 1.0), stages.OUTSTANDING * counts**2)
    return found


def _searched(cursor: Any, views: Views, question: Question) -> list[Searched]:
    """The namespaces that are asked, and which of their memories may be found."""
    namespaces, condition = list(dict.fromkeys(question.namespaces)), question.filters.of_superseded()
    older = [] if condition is None else list(map(superseded_in, namespaces))
    whole = views.columns.of(cursor, [*namespaces, *older])
    columns = whole[: len(namespaces)]
    current = [each.until > question.now for each in columns]
    if question.filters == Filters():
        return [Searched(each, flags, flags) for each, flags in zip(columns, current, strict=True)]
    fulfilling = memories.recallable(cursor, namespaces, question.filters.of_current(question.now))
    allowed = _flagged(columns, fulfilling)
    found = [Searched(each, now | may, may) for each, now, may in zip(columns, current, allowed, strict=True)]
    if condition is None:
        return found
    superseded = _flagged(whole[len(namespaces) :], memories.recallable(cursor, namespaces, condition, "superseded"))
    return found + [Searched(each, may, may) for each, may in zip(whole[len(namespaces) :], superseded, strict=True)]


def _flagged(columns: Sequence[Columns], numbers: Sequence[int]) -> list[Flags]:
    """By place in each namespace, whether the memory's number is among these."""
    flags = [numpy.zeros(len(each), dtype=bool) for each in columns]
    for each, flag in zip(columns, flags, strict=True):
        flag[each.places(numpy.array(numbers, dtype=numpy.int64))] = True
    return flags


def _matching(searched: Sequence[Searched], matching: Sequence[Matches]) -> list[tuple[Places, Scores]]:
    """The memories of each namespace that match by words and may be found, and how well they do."""
    places = [numpy.flatnonzero(scores * each.allowed) for each, (scores, _) in zip(searched, matching, strict=True)]
    return [(at, scores[at]) for (scores, _), at in zip(matching, places, strict=True)]


def _nearest(
    search: Search | None, asked: Embedded | None, searched: Sequence[Searched], limit: int
) -> list[tuple[Places, Scores]]:
    """The memories of each namespace that are nearest by meaning, and how near."""
    if search is None or asked is None:
        return [(numpy.empty(0, dtype=numpy.intp), numpy.empty(0)) for _ in searched]
    return [search.nearest(asked, each.columns, each.allowed, limit) for each in searched]


def _best(found: Sequence[tuple[Places, Scores]], limit: int) -> list[Places]:
    """The places of the `limit` best of all namespaces; of equal ones those that come first."""
    whole = stepped(_joined([scores for _, scores in found]))
    if len(whole) <= limit:
        return [places for places, _ in found]
    last = numpy.partition(whole, -limit)[-limit]
    best = whole > last
    best[numpy.flatnonzero(whole == last)[: limit - int(numpy.count_nonzero(best))]] = True
    parts = numpy.split(best, numpy.cumsum([len(places) for places, _ in found])[:-1])
    return [places[part] for (places, _), part in zip(found, parts, strict=True)]


def _union(first: Sequence[Places], second: Sequence[Places]) -> list[Places]:
    return [numpy.union1d(one, other) for one, other in zip(first, second, strict=True)]


def _meant(
    search: Search | None, asked: Embedded | None, searched: Sequence[Searched], places: Sequence[Places]
) -> tuple[Scores | None, Scores | None]:
    """How near the memories at these places are to the question, and how well their tokens meet it."""
    if search is None or asked is None:
        return None, None
    near = [_near(search, asked, each, at) for each, at in zip(searched, places, strict=True)]
    return stepped(_joined(near)), _interaction(search, asked, searched, places)


def _near(search: Search, asked: Embedded, searched: Searched, places: Places) -> Scores:
    """How near these memories are to the question, and in part the turns before them, where no tokens tell that."""
    own = search.cosines(asked, searched.columns, places)
    if asked.tokens is not None:
        return own
    (before,) = back(searched, places, 1)
    lent = search.cosines(asked, searched.columns, numpy.where(before == NOWHERE, places, before))
    return own + stages.DENSE_BEFORE * numpy.where(numpy.isnan(lent), own, lent)


def _interaction(
    search: Search, asked: Embedded, searched: Sequence[Searched], places: Sequence[Places]
) -> Scores | None:
    """How well the question meets each of these memories with the turns before it."""
    windows = [numpy.empty((0, 1 + STEPS_BACK), dtype=numpy.int64)]
    for each, at in zip(searched, places, strict=True):
        kept = numpy.zeros(len(each.columns) + 1, dtype=numpy.int64)
        kept[at] = search.kept(each.columns)[at]
        windows.append(numpy.stack([kept[at], *(kept[before] for before in back(each, at, STEPS_BACK))], axis=1))
    found = search.interaction(asked, numpy.concatenate(windows))
    return None if found is None else stepped(found)


def _joined(scores: Sequence[Scores | Counts]) -> Scores:
    """The scores of all namespaces, one after the other."""
    return numpy.concatenate([numpy.empty(0), *scores])


# ---- the order


def rank(pool: Pool, found: Found, question: Question) -> Ranked:
    """Put the pool in order: by the sum of what the stages say, ties by stream id."""
    columns = _scored(pool, found, question)
    total = _sum(columns, len(pool))
    said = {name: column / STEPS for name, column in {"fused": total, **columns}.items()}
    unknown = numpy.full(len(pool), numpy.nan)
    said["rerank"] = unknown
    for name, raw in {"interaction": found.interaction, "dense": found.dense}.items():
        said[name] = unknown if raw is None else numpy.where(numpy.isnan(raw), numpy.nan, said[name])
    met = unknown if found.interaction is None else found.interaction
    relevance = 1 / (1 + numpy.exp(-SLOPE * (met - MIDDLE)))
    if says_nothing(question.text):
        relevance = 0.0 * relevance
    return Ranked(pool, said, relevance, _order(pool, total))


def _order(pool: Pool, total: Scores | Integers) -> Places:
    """Best first; of equal ones in order of stream ids."""
    streams = pool.rows["stream"]
    return numpy.lexsort((streams[:, 1], streams[:, 0], -total))


def _reranked(log: Log, cursor: Any, ranked: Ranked, question: Question, judge: Reranker) -> Ranked:
    """The same pool, after the first of the order were judged by their texts, read from the log and verified."""
    first = ranked.order[: stages.RERANKED]
    records = hydrate(log, memories.rows_of(cursor, ranked.pool.numbers[first].tolist()))
    logits = [judge.score(question.text, document_of(record)) for record in records]
    added = stepped(stages.rerank(len(ranked.pool), first, logits))
    total = ranked.scores["fused"] + numpy.nan_to_num(added)
    scores = {**ranked.scores, "fused": total, "rerank": added}
    return ranked._replace(scores=scores, order=_order(ranked.pool, total))


def _scored(pool: Pool, found: Found, question: Question) -> dict[str, Integers]:
    """What each stage adds to the score of each memory, in steps; nothing where it is left out."""
    columns: dict[str, Integers] = {}
    nothing = numpy.zeros(len(pool), dtype=numpy.int64)

    def stage(name: str, scores: Callable[[], Scores]) -> None:
        left_out = name in question.without
        columns[name] = nothing if left_out else numpy.round(scores() * STEPS).astype(numpy.int64)

    unknown = numpy.full(len(pool), numpy.nan)
    met, dense = (unknown if scores is None else scores for scores in (found.interaction, found.dense))
    late = "interaction" not in question.without and not numpy.isnan(met).all()
    by_meaning = stages.DENSE if late else stages.DENSE_ALONE
    by_words = stages.LEXICAL if late else 1.0 if numpy.isnan(dense).all() else stages.LEXICAL_BESIDE
    stage("interaction", lambda: stages.INTERACTION * standardised(met))
    stage("dense", lambda: by_meaning * standardised(dense))
    stage("lexical", lambda: by_words * (found.outstanding if late else standardised(found.lexical)))
    stage("content", partial(stages.content, pool))
    stage("question", partial(stages.question, pool))
    stage("dates", partial(stages.dates, pool, question.text, question.now))
    stage("asked", partial(stages.asked_for, pool, question.text))
    stage("utility", partial(stages.utility, pool, question.now))
    by_thread = stages.THREAD if late else stages.THREAD_ALONE
    stage("thread", lambda: by_thread * stages.thread(pool, _sum(columns, len(pool)) / STEPS))
    stage("author", partial(stages.author, pool, question.text))
    return columns


def _sum(columns: Mapping[str, Integers], size: int) -> Integers:
    return sum(columns.values(), start=numpy.zeros(size, dtype=numpy.int64))


# ---- the hits


def _hits(log: Log, cursor: Any, ranked: Ranked, question: Question) -> tuple[tuple[Hit, ...], bool]:
    """The first so many of the order, each read from the log and verified; whether any was left out as gone since."""
    hits: list[Hit] = []
    places, gone = ranked.order, False
    while len(hits) < question.limit and len(places):
        first, places = numpy.split(places, [question.limit - len(hits)])
        rows = memories.rows_of(cursor, ranked.pool.numbers[first].tolist())
        for place, record in zip(first.tolist(), hydrate(log, rows), strict=True):
            if record.stored.namespace not in question.namespaces:
                raise ViewsDamaged(f"The views give {record.id} to another namespace. {ViewsDamaged.remedy}")
            if record.status not in question.filters.folded:
                gone = True
            else:
                record = record.renamed(question.aliases.get(record.namespace, record.namespace))
                hits.append(Hit(record, _shown(ranked.scores, place), _known(ranked.relevance[place])))
    return tuple(hits), gone


def _shown(scores: Mapping[str, Scores], place: int) -> dict[str, float | None]:
    return {name: _known(scores[name][place]) for name in STAGES}


def _known(score: float) -> float | None:
    return None if math.isnan(score) else float(score)
