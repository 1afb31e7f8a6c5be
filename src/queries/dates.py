"""The dates that a question names, and how near a memory is to them."""

from __future__ import annotations

import math
import re
from calendar import monthrange
from collections.abc import Iterator, Sequence
from datetime import MAXYEAR, MINYEAR, date
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

MONTH, DAY, YEAR = 2.0, 3.0, 1.0
"""What it is worth to be of the month, near the day, or of the year that was named."""
NEAR_DAYS, FADES_DAYS = 15, 5.0
MOST = 16
"""So many dates of a question count, so that a long text that is full of them costs little."""

_LEAP_YEAR = 2024
_BEFORE = 24
"""Characters before the name of a month that tell whether it is one."""
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7}


class Language(NamedTuple):
    """How a language names months, days of the week and stretches of time; patterns are of lower-case text."""

    months: tuple[str, ...]
    """Patterns of the twelve months, each with its short forms."""
    words_alone: str
    """Names of months that are words as well, and count as months only after one of `before_month` or with a year."""
    before_month: str
    weekdays: tuple[str, ...]
    days: dict[str, int]
    """Words for a day, and how many days from today it is."""
    units: dict[str, int]
    """Units of time by their first letters, in days."""
    ago: str
    """A number and a unit before today, as groups."""
    past: str
    """A number and a unit up to today, as groups."""
    last: str
    """One of `last`, `this`, `next`, then a unit or a day of the week, as groups."""
    steps: dict[str, int]


ENGLISH = Language(
    months=(
        "jan(?:uary)?", "feb(?:ruary)?", "mar(?:ch)?", "apr(?:il)?", "may", "june?", "july?", "aug(?:ust)?",
        "sept?(?:ember)?", "oct(?:ober)?", "nov(?:ember)?", "dec(?:ember)?",
    ),
    words_alone="may|mar|march",
    before_month=r"\b(?:in|of|during|since|until|till|by|early|late|mid|last|this|next|before|after)[^\w.?!]+$",
    weekdays=("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
    days={"today": 0, "tonight": 0, "yesterday": -1, "last night": -1, "tomorrow": 1},
    units={"day": 1, "week": 7, "month": 30, "year": 365},
    ago=r"\b(\d{1,3}|an?|one|two|three|four|five|six|seven) (day|week|month|year)s? ago\b",
    past=r"\b(?:last|past) (\d{1,3}|two|three|four|five|six|seven) (day|week|month|year)s\b",
    last=r"\b(last|this|next) (week|month|year|monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b",
    steps={"last": -1, "this": 0, "next": 1},
)  # fmt: skip
LANGUAGES = (ENGLISH,)


class Named(NamedTuple):
    """A date as far as it was named: a year, a month of some year, a day of some year, or all of it."""

    year: int | None
    month: int | None
    day: int | None

    def worth(self, at: date) -> float:
        """How well a date fits."""
        if self.month is None:
            return YEAR if at.year == self.year else 0.0
        of_month = MONTH if at.month == self.month and self.year in (None, at.year) else 0.0
        return of_month + max((_fading(abs((at - day).days)) for day in self._days(at)), default=0.0)

    def _days(self, at: date) -> Iterator[date]:
        """The day that was named, in the years that it can be of."""
        if self.day is None or self.month is None:
            return
        for year in (at.year - 1, at.year, at.year + 1) if self.year is None else (self.year,):
            if MINYEAR <= year <= MAXYEAR and self.day <= monthrange(year, self.month)[1]:
                yield date(year, self.month, self.day)


class Span(NamedTuple):
    """Days in a row, both ends included."""

    first: date
    last: date

    def worth(self, at: date) -> float:
        """How well a date fits: wholly inside, and less the farther outside."""
        return _fading(max((self.first - at).days, (at - self.last).days, 0))


def dates_in(question: str, today: date) -> tuple[Named | Span, ...]:
    """The dates that a question names, on whatever day it is asked: the first 16. Never raises."""
    text = question.lower()
    found: dict[Named | Span, None] = {}
    for language in LANGUAGES:
        found |= dict.fromkeys(chain(_named(text, language), _told_from(text, today, language)))
    return tuple(found)[:MOST]


def nearness(dates: Sequence[Named | Span], at: date) -> float:
    """What it is worth to a memory to be of this date: that of the date named which fits it best."""
    return max((named.worth(at) for named in dates), default=0.0)


def _fading(days: int) -> float:
    return DAY * math.exp(-days / FADES_DAYS) if days <= NEAR_DAYS else 0.0


@lru_cache(4)
def _patterns(months: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    """All of a date, day before month, month before day, month alone, each with a year where one follows; a year."""
    month, year = "|".join(months), r"(?:\.?,? (?:of )?(?P<year>\d{4})\b)?"
    return tuple(
        re.compile(pattern)
        for pattern in (
            r"\b(?P<year>\d{4})-(?P<number>\d\d)-(?P<day>\d\d)(?:\b|(?=t\d))",
            rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)? (?:of )?(?P<month>{month})\b{year}",
            rf"\b(?P<month>{month})\b\.? (?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?!\d){year}",
            rf"\b(?P<month>{month})\b{year}",
            r"\b(?P<year>(?:19|20)\d\d)\b",
        )
    )


def _named(text: str, language: Language) -> Iterator[Named]:
    taken: list[tuple[int, int]] = []
    for pattern in _patterns(language.months):
        for found in pattern.finditer(text):
            if any(first < found.end() and found.start() < end for first, end in taken):
                continue
            named = _read(found, text, language)
            if named is not None:
                taken.append(found.span())
                yield named
            if len(taken) == MOST:
                return


def _read(found: re.Match[str], text: str, language: Language) -> Named | None:
    """The date in a match; None where what looks like one is none."""
    said = found.groupdict()
    year, day = (int(said[name]) if said.get(name) else None for name in ("year", "day"))
    if "month" not in said and "number" not in said:
        return Named(year, None, None)
    if said.get("month") and day is None and year is None and _is_word(found, text, language):
        return None
    month = int(said["number"]) if "number" in said else _month(said["month"], language)
    whole = 1 <= month <= 12 and (day is None or 1 <= day <= monthrange(year or _LEAP_YEAR, month)[1])
    return Named(year, month, day) if whole and year != 0 else None


def _month(written: str, language: Language) -> int:
    return next(number for number, name in enumerate(language.months, 1) if re.fullmatch(name, written))


def _is_word(found: re.Match[str], text: str, language: Language) -> bool:
    """Whether the name of a month is more likely a word: nothing before it says that it is one."""
    alone = re.fullmatch(language.words_alone, found["month"])
    return bool(alone) and not re.search(language.before_month, text[max(0, found.start() - _BEFORE) : found.start()])


def _told_from(text: str, today: date, language: Language) -> Iterator[Span]:
    """What is told from today: yesterday, three weeks ago, last month, next Tuesday."""
    for word, days in language.days.items():
        if re.search(rf"\b{word}\b", text):
            yield _span(today, days, days)
    for found in re.finditer(language.ago, text):
        days = _count(found[1]) * language.units[found[2]]
        yield _span(today, -days - language.units[found[2]] // 4, -days + language.units[found[2]] // 4)
    for found in re.finditer(language.past, text):
        yield _span(today, -_count(found[1]) * language.units[found[2]], 0)
    for found in re.finditer(language.last, text):
        yield _stepped(today, language.steps[found[1]], found[2], language)


def _stepped(today: date, step: int, what: str, language: Language) -> Span:
    """The last, this or next week, month, year or day of the week."""
    if what in language.weekdays:
        ahead = (language.weekdays.index(what) - today.weekday()) % 7
        days = (ahead or 7) if step > 0 else ahead if step == 0 else ahead - 7
        return _span(today, days, days)
    if what == "week":
        monday = 7 * step - today.weekday()
        return _span(today, monday, monday + 6)
    if what == "month":
        months = min(max(12 * today.year + today.month - 1 + step, 12 * MINYEAR), 12 * MAXYEAR + 11)
        first = date(months // 12, months % 12 + 1, 1)
        return Span(first, first.replace(day=monthrange(first.year, first.month)[1]))
    year = min(max(today.year + step, MINYEAR), MAXYEAR)
    return Span(date(year, 1, 1), date(year, 12, 31))


def _span(today: date, first: int, last: int) -> Span:
    return Span(_days_on(today, first), _days_on(today, last))


def _days_on(today: date, days: int) -> date:
    """So many days from today, or the first or last day that a calendar has."""
    return date.fromordinal(min(max(today.toordinal() + days, 1), date.max.toordinal()))


def _count(written: str) -> int:
    return int(written) if written.isdigit() else _NUMBERS[written]
