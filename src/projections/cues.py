"""What a text shows at a glance: how much it says, whether it asks, and whether it tells a time or a number."""

from __future__ import annotations

from functools import lru_cache

from .record import Record
from .tokens import tokens
from .vector import document_of

ASKS, TELLS_A_TIME, TELLS_A_NUMBER = 1, 2, 4

SHORT = 2000
"""Characters of a document whose tokens are kept: 1,024 of a mebibyte each would be gigabytes."""

_QUESTION_MARKS = ("?", "？", "؟")
_TIMES = (
    "yesterday today tomorrow tonight ago last next week weekend month year day morning afternoon evening night since "
    "recently soon monday tuesday wednesday thursday friday saturday sunday january february march april may june july "
    "august september october november december spring summer autumn fall winter"
)
_NUMBERS = "one two three four five six seven eight nine ten eleven twelve dozen couple once twice hundred thousand few"
_YEARS = range(1900, 2100)


def words_of(document: str) -> tuple[str, ...]:
    """The tokens of a document; those of a short one kept for a while, since several views ask for those of a page."""
    return _kept(document) if len(document) <= SHORT else tuple(tokens(document))


@lru_cache(1024)
def _kept(document: str) -> tuple[str, ...]:
    return tuple(tokens(document))


def cues_of(record: Record) -> tuple[int, int, int]:
    """How many different words a memory's document has, the sum of the flags of its cues, and how many words in all.

    Those of its tags count in the last.
    """
    said = words_of(document_of(record))
    words, length = frozenset(said), len(said) + sum(len(tokens(tag)) for tag in record.tags)
    times, numbers = _telling()
    flags = ASKS if _said(record.text).endswith(_QUESTION_MARKS) else 0
    digits = list(filter(str.isdigit, words))
    flags |= TELLS_A_TIME if not times.isdisjoint(words) or any(map(_is_year, digits)) else 0
    flags |= TELLS_A_NUMBER if digits or not numbers.isdisjoint(words) else 0
    return len(words), flags, length


def _said(text: str) -> str:
    """A text without white space and a remark in brackets at its end: a picture that is shown, a gesture."""
    said = text.rstrip()
    for opening, closing in ("[]", "()"):
        if said.endswith(closing) and opening in said:
            said = said[: said.rindex(opening)].rstrip()
    return said


def _is_year(digits: str) -> bool:
    return len(digits) == 4 and digits.isdecimal() and int(digits) in _YEARS


@lru_cache(1)
def _telling() -> tuple[frozenset[str], frozenset[str]]:
    return frozenset(tokens(_TIMES)), frozenset(tokens(_NUMBERS))
