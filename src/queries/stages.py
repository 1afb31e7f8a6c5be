"""The stages of ranking, each a score for every memory of the pool, in the pool's order."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from datetime import date

import numpy
from numpy.typing import NDArray

from ..events.instants import moment
from ..projections.columns import NOWHERE, Places
from ..projections.cues import ASKS, TELLS_A_NUMBER, TELLS_A_TIME
from .dates import dates_in, nearness
from .pool import Pool
from .roles import role_of

INTERACTION, DENSE, LEXICAL = 1.0, 0.25, 0.2
DENSE_ALONE, LEXICAL_BESIDE = 1.0, 0.5
"""The weights where there are no token vectors."""
DENSE_BEFORE = 0.5
"""What the turn before a memory counts there beside its own vector."""
OUTSTANDING = 1.0
"""Beside token vectors, how far a word of the question can make a memory stand out; n words together n * n times."""
CONTENT, CONTENT_WORDS = 0.5, 25
QUESTION = -0.6
ASKED_TIME, ASKED_NUMBER = 0.75, 0.3
THREAD, THREAD_ALONE = 0.4, 0.5
"""What the best score of its thread is worth to a memory, with token vectors and without."""
AUTHOR = 1.75
IMPORTANCE, CONFIDENCE, REINFORCED, RECENT = 0.3, 0.2, 0.1, 0.1
HALF_LIFE_DAYS = {"turn": 30.0, "incident": 30.0, "note": 90.0}
LONGEST_HALF_LIFE = 365.0
"""How long until a memory counts half as recent, by kind; facts, patterns and the like stay recent longest."""
RERANK, RERANKED = 0.5, 20
"""What a reranker's judgement counts, and of how many it is asked: the first of the order without it."""
STEPS = 1 << 20
"""Scores are whole numbers of steps of 2**-20, so that another engine's arithmetic gives the same order."""

_DAY = 86_400_000_000
_ASKS_TIME = re.compile(
    r"\b(?:what|which) (?:date|day|month|year|time)\b|\bhow long ago\b|"
    r"\bwhen (?:is|are|was|were|do|does|did|has|have|had|will|would|can|could|should|exactly)\b|"
    r"\bwhen(?:'s\b|\s*[?.!,;]|\s*$)|"
    r"\b(?:ask|find out|know|recall|remember|remind|say|sure|tell|told|wonder)(?:s|ed)?"
    r"(?: (?:her|him|me|them|us|you))? when\b",
    re.IGNORECASE,
)
_ASKS = re.compile(r"\b(?:when|wh(?:at|ich|om?|ose|ere|y)|how)\b", re.IGNORECASE)
_THEN_ASKS = re.compile(r",\s*(?:wh(?:at|ich|om?|ose|ere|y)|how)\b", re.IGNORECASE)
_ASKS_NUMBER = re.compile(r"\bhow (?:many|much|old|long|often|far)\b", re.IGNORECASE)
_BOTH = re.compile(r"\bboth\b")
_JOINS = r"\s*(?:,|&|\band\b)\s*"

Scores = NDArray[numpy.float64]
"""One score for each memory of the pool; NaN where there is none."""


def stepped(scores: Scores) -> Scores:
    """Scores as multiples of a step: what differs by less is the same."""
    found: Scores = numpy.round(scores * STEPS) / STEPS
    return found


def standardised(scores: Scores) -> Scores:
    """How many standard deviations above the mean of the pool each score is; 0 where all are equal.

    NaN counts as the worst score there is.
    """
    known = scores[~numpy.isnan(scores)]
    if not len(known) or known.min() == known.max():
        return numpy.zeros(len(scores))
    scores = numpy.where(numpy.isnan(scores), known.min(), scores)
    deviation = scores.std()
    found: Scores = (scores - scores.mean()) / (deviation or 1.0)
    return found


def rerank(size: int, judged: Places, logits: Sequence[float]) -> Scores:
    """What a reranker adds to the memories at the places it was asked of, by how they stand among each other.

    Nothing to the others, which it has not seen: NaN.
    """
    added = numpy.full(size, numpy.nan)
    added[judged] = RERANK * standardised(stepped(numpy.array(logits, dtype=numpy.float64)))
    return added


def content(pool: Pool) -> Scores:
    """A memory that says more can answer more: up to 25 different words count."""
    found: Scores = CONTENT * numpy.minimum(1.0, pool.rows["words"] / CONTENT_WORDS)
    return found


def question(pool: Pool) -> Scores:
    """A question seldom answers one."""
    found: Scores = _shows(pool, ASKS) * numpy.float64(QUESTION)
    return found


def dates(pool: Pool, asked: str, now: int) -> Scores:
    """How near each memory is to the dates that the question names."""
    if not (named := dates_in(asked, _day(now))):
        return numpy.zeros(len(pool))
    days, which = numpy.unique(pool.rows["at"] // _DAY, return_inverse=True)
    return numpy.array([nearness(named, _day(day * _DAY)) for day in days.tolist()] or [0.0])[which]


def asked_for(pool: Pool, asked: str) -> Scores:
    """A memory that tells a time, or a number, where the question asks for one."""
    time = ASKED_TIME if _asks_time(asked) else 0.0
    number = ASKED_NUMBER if not time and _ASKS_NUMBER.search(asked) else 0.0
    found: Scores = time * _shows(pool, TELLS_A_TIME) + number * _shows(pool, TELLS_A_NUMBER)
    return found


def _asks_time(asked: str) -> bool:
    """Whether a question asks for a time; "what applies when it rains" does not, nor "when it rains, what applies"."""
    first = _ASKS.search(asked)
    when = first is not None and first[0].casefold() == "when" and not _THEN_ASKS.search(asked)
    return when or bool(_ASKS_TIME.search(asked))


def utility(pool: Pool, now: int) -> Scores:
    """How useful each memory was said or found to be: importance, confidence, reinforcement, and how recent it is.

    Bounded, so that it orders what answers equally well and never buries what answers better.
    """
    rows = pool.rows
    days = numpy.maximum(0.0, (float(now) - rows["at"].astype(float)) // _DAY)
    lives = numpy.array([HALF_LIFE_DAYS.get(kind, LONGEST_HALF_LIFE) for kind in pool.kinds] or [LONGEST_HALF_LIFE])
    recent = numpy.exp2(-days / lives[rows["kind"]])
    often = numpy.minimum(3.0, numpy.log1p(rows["reinforced"]))
    confidence = numpy.nan_to_num(rows["confidence"] - 0.5)
    said = IMPORTANCE * 2 * (rows["importance"] - 0.5) + CONFIDENCE * 2 * confidence
    found: Scores = said + REINFORCED * often + RECENT * recent
    return found


def thread(pool: Pool, scores: Scores) -> Scores:
    """The best score in a memory's thread; 0 in none."""
    threads, which = numpy.unique(pool.threads, return_inverse=True)
    best = numpy.full(len(threads), -numpy.inf)
    numpy.maximum.at(best, which, scores)
    return numpy.where(pool.threads == NOWHERE, 0.0, best[which]) if len(threads) else numpy.zeros(0)


def author(pool: Pool, asked: str) -> Scores:
    """A memory by the one whom the question is about: the only author named, or the first of two.

    Where none is named, by the user or the assistant of a chat, as the question's pronouns say.
    """
    text = _folded(asked)
    named = _authors(pool.authors, text)
    about = named[0] if len(named) == 1 or (len(named) == 2 and not _joined(text, named)) else ()
    if not named:
        role = role_of(text)
        about = tuple(name for name in pool.authors if _folded(name).strip() in role)
    found: Scores = numpy.isin(pool.rows["author"], [pool.authors.index(name) for name in about]) * numpy.float64(
        AUTHOR
    )
    return found


def _shows(pool: Pool, cue: int) -> NDArray[numpy.bool_]:
    """Which memories show a cue."""
    shown: NDArray[numpy.bool_] = pool.rows["cues"] & cue > 0
    return shown


def _authors(authors: Sequence[str], text: str) -> list[tuple[str, ...]]:
    """The authors of the pool whom a question names, in its order; together those whom it calls by the same name."""
    found: dict[tuple[int, int], tuple[str, ...]] = {}
    for name in sorted(filter(None, authors)):
        place = next((place for called in _called(name) if (place := _place(called, text))), None)
        if place:
            found[place] = (*found.get(place, ()), name)
    whole = [place for place in found if not any(_within(place, other) for other in found)]
    return [found[place] for place in sorted(whole)]


def _called(name: str) -> tuple[str, ...]:
    """What stands for an author in a question: the whole name, else its first word, without `user:` and the like."""
    folded = _folded(name)
    shown = folded.rpartition(":")[2].strip() or folded.strip()
    return (shown, shown.split()[0]) if shown else ()


def _place(called: str, text: str) -> tuple[int, int] | None:
    """Where a question first has this name as a word."""
    found = re.search(_as_word(called), text) if called in text else None
    return found.span() if found else None


def _as_word(called: str) -> str:
    return rf"(?<!\w){re.escape(called)}(?!\w)"


def _within(place: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether a name is a part of another one: Ana, where Ana Silva is named."""
    return place != other and other[0] <= place[0] and place[1] <= other[1]


def _joined(text: str, named: Sequence[Sequence[str]]) -> bool:
    """Whether a question is about two authors alike."""
    names = ("|".join(_as_word(called) for name in names for called in _called(name)) for names in named)
    return bool(_BOTH.search(text) or re.search(_JOINS.join(f"(?:{name})" for name in names), text))


def _folded(text: str) -> str:
    """A text without regard to case or to how its accents are written."""
    return unicodedata.normalize("NFC", text.casefold())


def _day(microseconds: int) -> date:
    """The day of an instant (UTC); the first there is of one that no calendar has."""
    try:
        return moment(microseconds).date()
    except OverflowError:
        return date.min
