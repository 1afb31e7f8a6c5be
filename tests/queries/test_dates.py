"""The dates that a question names: read as people write them, whatever else a text holds, and quickly."""

import math
import time
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.queries.dates import DAY, FADES_DAYS, MONTH, MOST, NEAR_DAYS, YEAR, Named, Span, dates_in, nearness

TODAY = date(2024, 5, 15)  # a Wednesday

NAMED: dict[str, list[tuple[int | None, int | None, int | None]]] = {
    # all of a date, in each order
    "What happened on 2023-05-07?": [(2023, 5, 7)],
    "since 2023-05-07T10:00:00Z": [(2023, 5, 7)],
    "on 7 May 2023": [(2023, 5, 7)],
    "on 7 May, 2023": [(2023, 5, 7)],
    "on the 7th of May of 2023": [(2023, 5, 7)],
    "on 7. May 2023": [(2023, 5, 7)],
    "on May 7, 2023": [(2023, 5, 7)],
    "on May 7th 2023": [(2023, 5, 7)],
    "on Sept. 1st, 2023": [(2023, 9, 1)],
    "ON DECEMBER 31 1999": [(1999, 12, 31)],
    # a day of some year
    "on the 2nd of June": [(None, 6, 2)],
    "on June 3rd": [(None, 6, 3)],
    "on 29 February": [(None, 2, 29)],
    "on 29 February 2024": [(2024, 2, 29)],
    "on may 5": [(None, 5, 5)],
    # a month, a year
    "in June 2023": [(2023, 6, None)],
    "in June, 2023": [(2023, 6, None)],
    "in June of 2023": [(2023, 6, None)],
    "what about July": [(None, 7, None)],
    "in Jan or Feb": [(None, 1, None), (None, 2, None)],
    "back in 1999": [(1999, None, None)],
    "between 2021 and 2023": [(2021, None, None), (2023, None, None)],
    "2022-12-31 or January 2023": [(2022, 12, 31), (2023, 1, None)],
    "2023, and 2023 again": [(2023, None, None)],
    "im Mai ٢٠٢٣": [],
    # names of months that are words
    "May I go?": [],
    "What may Ana do?": [],
    "They march on": [],
    "Again may Ana go?": [],
    "Who was it before? May I know?": [],
    "in May": [(None, 5, None)],
    "early in March": [(None, 3, None)],
    "of early May": [(None, 5, None)],
    "May 2023": [(2023, 5, None)],
    "before (March)": [(None, 3, None)],
    "the marching band in decembers": [],
    # what looks like a date and is none
    "2023-13-01": [(2023, None, None)],
    "2023-02-29": [(2023, None, None)],
    "0000-01-01": [],
    "on 31 June": [(None, 6, None)],
    "on 0 June": [(None, 6, None)],
    "12023-05-07": [],
    "room 2150": [],
    "": [],
}

RELATIVE = {
    "What did I do today?": (0, 0),
    "tonight": (0, 0),
    "yesterday": (-1, -1),
    "last night": (-1, -1),
    "tomorrow": (1, 1),
    "3 days ago": (-3, -3),
    "a day ago": (-1, -1),
    "two weeks ago": (-15, -13),
    "one month ago": (-37, -23),
    "a year ago": (-456, -274),
    "in the last 3 days": (-3, 0),
    "over the past two weeks": (-14, 0),
    "last week": (-9, -3),
    "this week": (-2, 4),
    "next week": (5, 11),
    "last Wednesday": (-7, -7),
    "this Wednesday": (0, 0),
    "next Wednesday": (7, 7),
    "last Tuesday": (-1, -1),
    "last Thursday": (-6, -6),
    "this Tuesday": (6, 6),
    "next Thursday": (1, 1),
}

BORDERS = {
    (date(2024, 1, 1), "last month"): (date(2023, 12, 1), date(2023, 12, 31)),
    (date(2023, 12, 31), "next month"): (date(2024, 1, 1), date(2024, 1, 31)),
    (date(2024, 3, 31), "last month"): (date(2024, 2, 1), date(2024, 2, 29)),
    (date(2023, 3, 31), "last month"): (date(2023, 2, 1), date(2023, 2, 28)),
    (date(2024, 2, 29), "this month"): (date(2024, 2, 1), date(2024, 2, 29)),
    (date(2024, 2, 29), "last year"): (date(2023, 1, 1), date(2023, 12, 31)),
    (date(2024, 2, 29), "next year"): (date(2025, 1, 1), date(2025, 12, 31)),
    (date(2024, 2, 29), "tomorrow"): (date(2024, 3, 1), date(2024, 3, 1)),
    (date(2024, 3, 1), "yesterday"): (date(2024, 2, 29), date(2024, 2, 29)),
    (date(2024, 1, 1), "last week"): (date(2023, 12, 25), date(2023, 12, 31)),
    (date(2023, 12, 31), "next week"): (date(2024, 1, 1), date(2024, 1, 7)),
    (date.min, "yesterday"): (date.min, date.min),
    (date.min, "last month"): (date.min, date(1, 1, 31)),
    (date.min, "last year"): (date.min, date(1, 12, 31)),
    (date.min, "999 years ago"): (date.min, date.min),
    (date.max, "tomorrow"): (date.max, date.max),
    (date.max, "next month"): (date(9999, 12, 1), date.max),
    (date.max, "next year"): (date(9999, 1, 1), date.max),
    (date.max, "next week"): (date.max, date.max),
}


@pytest.mark.parametrize("question", NAMED)
def test_a_date_is_read_as_it_is_written(question: str) -> None:
    """As much of a date as a question names, in the orders in which people write it; and no word for a month."""
    assert sorted(dates_in(question, TODAY), key=repr) == sorted((Named(*each) for each in NAMED[question]), key=repr)


@pytest.mark.parametrize("question", RELATIVE)
def test_what_is_told_from_today_is_a_span_of_days(question: str) -> None:
    """Words for days, weeks and weekdays, and numbers of them: first and last day, counted from the day of asking."""
    first, last = RELATIVE[question]
    assert dates_in(question, TODAY) == (Span(TODAY + timedelta(first), TODAY + timedelta(last)),)


@pytest.mark.parametrize(("today", "question"), BORDERS)
def test_spans_go_over_the_ends_of_months_and_years(today: date, question: str) -> None:
    """A month has the days that it has that year, and no span leaves the calendar."""
    assert dates_in(question, today) == (Span(*BORDERS[today, question]),)


@given(question=st.text(max_size=200), today=st.dates(), at=st.dates())
def test_no_text_is_too_strange(question: str, today: date, at: date) -> None:
    """Whatever is asked on whatever day is read without an error, and is worth something bounded to any date."""
    assert 0 <= nearness(dates_in(question, today), at) <= MONTH + DAY


PARTS = ("may", "in", "2024", "7", "-", ", ", "th", "last", "3", "weeks ago", "0000", "2023-02-30", "february", "year")


@given(parts=st.lists(st.sampled_from(PARTS), max_size=30), today=st.dates(), at=st.dates())
def test_no_pile_of_parts_is_too_strange(parts: list[str], today: date, at: date) -> None:
    """Parts of dates in any order and on any day give dates of the calendar, or none."""
    found = dates_in(" ".join(parts), today)
    assert len(found) <= MOST
    assert 0 <= nearness(found, at) <= MONTH + DAY


HUGE = {
    "words": "may " * 25_000,
    "months": "in may " * 15_000,
    "one date": "2020-01-01 " * 10_000,
    "dates": " ".join(f"{year}-{month:02}-01" for year in range(1000, 1800) for month in range(1, 13)),
    "spans": " ".join(f"{number} years ago" for number in range(999)),
    "digits": "1" * 100_000,
    "blanks": "in" + " " * 100_000 + "may",
}


@pytest.mark.parametrize("question", HUGE.values(), ids=list(HUGE))
def test_a_huge_question_is_read_quickly(question: str) -> None:
    """The time grows with the length of a text alone, and no more dates than so many are looked at."""
    began = time.process_time()
    assert len(dates_in(question, TODAY)) <= MOST
    assert time.process_time() - began < 1.5


def faded(days: int) -> float:
    """What a day so far from a date that is named is worth."""
    return DAY * math.exp(-days / FADES_DAYS)


WORTH = {
    ("on 7 May 2023", date(2023, 5, 7)): MONTH + DAY,
    ("on 7 May 2023", date(2023, 5, 8)): MONTH + faded(1),
    ("on 7 May 2023", date(2023, 4, 30)): faded(7),
    ("on 7 May 2023", date(2023, 5, 22)): MONTH + faded(NEAR_DAYS),
    ("on 7 May 2023", date(2023, 5, 23)): MONTH,
    ("on 7 May 2023", date(2024, 5, 7)): 0,
    ("on 7 May 2023", date(2023, 7, 7)): 0,
    ("on 7 May", date(1999, 5, 7)): MONTH + DAY,
    ("on 31 December", date(2024, 1, 1)): faded(1),
    ("on 1 January", date(2023, 12, 31)): faded(1),
    ("on 29 February", date(2023, 2, 28)): MONTH,
    ("on 29 February", date(2024, 2, 28)): MONTH + faded(1),
    ("in May", date(1999, 5, 31)): MONTH,
    ("in May", date(1999, 6, 1)): 0,
    ("in May 2023", date(2022, 5, 7)): 0,
    ("in 2023", date(2023, 1, 1)): YEAR,
    ("in 2023", date(2024, 1, 1)): 0,
    ("in 2023 or in May 2023", date(2023, 5, 1)): MONTH,
    ("last week", date(2024, 5, 6)): DAY,
    ("last week", date(2024, 5, 12)): DAY,
    ("last week", date(2024, 5, 13)): faded(1),
    ("last week", date(2024, 4, 20)): 0,
    ("on 1 January", date.min): MONTH + DAY,
    ("on 31 December", date.max): MONTH + DAY,
    ("on 31 December", date.min): 0,
    ("on 0001-01-01", date.min): MONTH + DAY,
    ("on 9999-12-31", date.max): MONTH + DAY,
    ("on 9999-12-31", date.min): 0,
    ("who?", TODAY): 0,
}


@pytest.mark.parametrize(("question", "at"), WORTH)
def test_a_date_is_worth_most_to_its_own_day(question: str, at: date) -> None:
    """The month counts, the day fades over 15 days on either side and over the new year, the best date decides."""
    assert nearness(dates_in(question, TODAY), at) == pytest.approx(WORTH[question, at])
