"""The stages of ranking, each a score for every memory of the pool, in the pool's order."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from datetime import date

from ..events.instants import moment
from ..projections.cues import ASKS, TELLS_A_NUMBER, TELLS_A_TIME
from .dates import dates_in, nearness
from .pool import Candidate

INTERACTION, DENSE, LEXICAL = 1.0, 0.5, 0.2
DENSE_ALONE, LEXICAL_BESIDE = 1.0, 0.5
"""The weights where there are no token vectors."""
CONTENT, CONTENT_WORDS = 0.5, 25
QUESTION = -0.6
ASKED_TIME, ASKED_NUMBER = 0.75, 0.3
THREAD = 0.4
AUTHOR = 1.75
IMPORTANCE, CONFIDENCE, REINFORCED, RECENT = 0.3, 0.2, 0.1, 0.1
HALF_LIFE_DAYS = {"turn": 30.0, "incident": 30.0, "note": 90.0}
LONGEST_HALF_LIFE = 365.0
"""How long until a memory counts half as recent, by kind; facts, patterns and the like stay recent longest."""
STEPS = 1 << 20
"""Scores are whole numbers of steps of 2**-20, so that another engine's arithmetic gives the same order."""

STAGES = (
    "fused", "interaction", "dense", "lexical", "content", "question", "dates", "asked", "utility", "thread", "author",
)  # fmt: skip
"""What is put on record of each hit, in this order: the sum, then what each stage added to it."""

_DAY = 86_400_000_000
_ASKS_TIME = re.compile(r"\bwhen\b|\b(?:what|which) (?:date|day|month|year|time)\b|\bhow long ago\b", re.IGNORECASE)
_ASKS_NUMBER = re.compile(r"\bhow (?:many|much|old|long|often|far)\b", re.IGNORECASE)
_BOTH = re.compile(r"\bboth\b")
_JOINS = r"\s*(?:,|&|\band\b)\s*"

Column = list[float]
"""One score for each memory of the pool."""


def stepped(score: float) -> float:
    """A score as a multiple of a step: what differs by less is the same."""
    return round(score * STEPS) / STEPS


def standardised(scores: Sequence[float]) -> Column:
    """How many standard deviations above the mean of the pool each score is; 0 where all are equal."""
    if not scores or min(scores) == max(scores):
        return [0.0] * len(scores)
    mean = math.fsum(scores) / len(scores)
    deviation = math.sqrt(math.fsum((score - mean) ** 2 for score in scores) / len(scores))
    return [(score - mean) / deviation if deviation else 0.0 for score in scores]


def content(pool: Sequence[Candidate]) -> Column:
    """A memory that says more can answer more: up to 25 different words count."""
    return [CONTENT * min(1.0, each.words / CONTENT_WORDS) for each in pool]


def question(pool: Sequence[Candidate]) -> Column:
    """A question seldom answers one."""
    return [QUESTION if each.cues & ASKS else 0.0 for each in pool]


def dates(pool: Sequence[Candidate], asked: str, now: int) -> Column:
    """How near each memory is to the dates that the question names."""
    named = dates_in(asked, _day(now))
    return [nearness(named, _day(each.at)) if named else 0.0 for each in pool]


def asked_for(pool: Sequence[Candidate], asked: str) -> Column:
    """A memory that tells a time, or a number, where the question asks for one."""
    time = ASKED_TIME if _ASKS_TIME.search(asked) else 0.0
    number = ASKED_NUMBER if not time and _ASKS_NUMBER.search(asked) else 0.0
    return [
        (time if each.cues & TELLS_A_TIME else 0.0) + (number if each.cues & TELLS_A_NUMBER else 0.0) for each in pool
    ]


def utility(pool: Sequence[Candidate], now: int) -> Column:
    """How useful each memory was said or found to be: importance, confidence, reinforcement, and how recent it is.

    Bounded, so that it orders what answers equally well and never buries what answers better.
    """
    return [_utility(each, now) for each in pool]


def thread(pool: Sequence[Candidate], scores: Sequence[float]) -> Column:
    """A part of the best score in a memory's thread."""
    best: dict[tuple[str, str], float] = {}
    for each, score in zip(pool, scores, strict=True):
        if each.thread is not None:
            place = each.namespace, each.thread
            best[place] = max(best.get(place, -math.inf), score)
    return [0.0 if each.thread is None else THREAD * best[each.namespace, each.thread] for each in pool]


def author(pool: Sequence[Candidate], asked: str) -> Column:
    """A memory by the one whom the question is about: the only author named, or the first of two."""
    text = _folded(asked)
    named = _authors(pool, text)
    about = named[0] if len(named) == 1 or (len(named) == 2 and not _joined(text, named)) else ()
    return [AUTHOR if each.author in about else 0.0 for each in pool]


def _utility(each: Candidate, now: int) -> float:
    days = max(0, now - each.at) // _DAY
    confidence = 0.0 if each.confidence is None else each.confidence - 0.5
    recent = math.exp2(-days / HALF_LIFE_DAYS.get(each.kind, LONGEST_HALF_LIFE))
    often = min(3.0, math.log1p(each.reinforced))
    return IMPORTANCE * 2 * (each.importance - 0.5) + CONFIDENCE * 2 * confidence + REINFORCED * often + RECENT * recent


def _authors(pool: Sequence[Candidate], text: str) -> list[tuple[str, ...]]:
    """The authors of the pool whom a question names, in its order; together those whom it calls by the same name."""
    found: dict[tuple[int, int], tuple[str, ...]] = {}
    for name in sorted({each.author for each in pool if each.author}):
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
