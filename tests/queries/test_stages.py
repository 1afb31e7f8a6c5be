"""The stages of ranking, each on its own: what it adds to which memory of the pool, and to which nothing."""

import time

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.projections.cues import ASKS, TELLS_A_NUMBER, TELLS_A_TIME
from tallystick.queries import stages
from tallystick.queries.answer import STAGES
from tallystick.queries.dates import DAY, MONTH
from tallystick.queries.pool import Pool
from tallystick.queries.stages import AUTHOR, HALF_LIFE_DAYS, LONGEST_HALF_LIFE, STEPS
from tests.queries.pools import NOW, pool

DAYS = 86_400_000_000


def by(*authors: str | None) -> Pool:
    """A memory by each of these authors."""
    return pool(*({"author": author} for author in authors))


def about(question: str, *authors: str | None) -> list[str | None]:
    """Whose memories the stage of authors raises."""
    return [each for each, score in zip(authors, stages.author(by(*authors), question), strict=True) if score == AUTHOR]


# ---- scores


@given(scores=st.lists(st.floats(-1e6, 1e6), max_size=30))
def test_standard_scores_have_mean_nought_and_deviation_one(scores: list[float]) -> None:
    """Or are all nought, where all scores are equal."""
    found = stages.standardised(numpy.array(scores))
    assert len(found) == len(scores)
    if len(set(scores)) <= 1:
        assert not found.any()
    elif max(scores) - min(scores) > 1e-3:
        assert found.mean() == pytest.approx(0, abs=1e-3)
        assert found.std() == pytest.approx(1, rel=1e-3)


@pytest.mark.parametrize("scores", [[], [0.1], [0.1] * 3, [0.3] * 7, [-0.7] * 49])
def test_equal_scores_stand_at_the_mean(scores: list[float]) -> None:
    """Also where their mean is not exactly what each is."""
    assert stages.standardised(numpy.array(scores)).tolist() == [0.0] * len(scores)


@given(scores=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20), unknown=st.integers(1, 5))
def test_what_has_no_score_counts_as_the_worst(scores: list[float], unknown: int) -> None:
    """Wherever it stands; and where nothing has one, all are equal."""
    nothing = [numpy.nan] * unknown
    found = stages.standardised(numpy.array([*nothing, *scores]))
    assert found.tolist() == stages.standardised(numpy.array([min(scores)] * unknown + scores)).tolist()
    assert not stages.standardised(numpy.array(nothing)).any()


@given(score=st.floats(-1e6, 1e6))
def test_a_score_is_a_whole_number_of_steps(score: float) -> None:
    """The nearest one."""
    found = float(stages.stepped(numpy.array([score]))[0])
    assert (found * STEPS).is_integer()
    assert abs(found - score) <= 0.5 / STEPS


def test_stages_have_a_name_each() -> None:
    """The sum comes first; every name is there once."""
    assert STAGES[0] == "fused"
    assert len(set(STAGES)) == len(STAGES)


# ---- what a memory is


def test_a_memory_that_says_more_counts_more_up_to_a_limit() -> None:
    """Half a point for 25 different words, no more for a thousand."""
    assert stages.content(pool({"words": 0}, {"words": 5}, {"words": 25}, {"words": 1000})).tolist() == [
        0,
        0.1,
        0.5,
        0.5,
    ]


def test_a_question_counts_less() -> None:
    """A memory that asks, whatever else it shows."""
    cues = (0, ASKS, ASKS | TELLS_A_TIME | TELLS_A_NUMBER, TELLS_A_TIME | TELLS_A_NUMBER)
    assert stages.question(pool(*({"cues": each} for each in cues))).tolist() == [0, -0.6, -0.6, 0]


def test_a_memory_of_a_date_that_is_named_counts_more() -> None:
    """By the day on which it happened, as the calendar of UTC has it; nothing where no date is named."""
    days = [{"at": NOW - 7 * DAYS}, {"at": NOW - 400 * DAYS}, {"at": -(2**62)}, {"at": 2**62}]
    assert stages.dates(pool(*days), "What happened on 8 May 2024?", NOW).tolist() == [MONTH + DAY, 0, 0, 0]
    assert stages.dates(pool(*days), "What happened a week ago?", NOW)[0] == DAY
    assert stages.dates(pool(*days), "What happened?", NOW).tolist() == [0, 0, 0, 0]
    assert stages.dates(pool(), "in May", NOW).tolist() == []


@pytest.mark.parametrize("now", [-(2**62), 2**62, 0, -62_135_596_800_000_000, 253_402_300_799_999_999])
def test_no_clock_is_too_wrong_for_dates(now: int) -> None:
    """An instant that no calendar has, and the first and last day that it has, are no error."""
    for question in ("yesterday", "tomorrow", "last month", "next year", "999 years ago"):
        assert 0 <= stages.dates(pool({"at": now}), question, now)[0] <= DAY


ASKED = {
    "When did she leave?": "time",
    "what year was it": "time",
    "Which day?": "time",
    "how long ago was that?": "time",
    "How many dogs?": "number",
    "how much": "number",
    "How old is she?": "number",
    "how long did it take": "number",
    "When, and how many?": "time",
    "Whenever": None,
    "How manyfold": None,
    "Who was it?": None,
    "": None,
    "Tell me when Ana moved": "time",
    "When Ana moved, please": "time",
    "Who moved to Porto, and when?": "time",
    "Who moved to Porto? When?": "time",
    "What was decided, when, and by whom?": "time",
    "I know what Ana did. When exactly?": "time",
    "Who knows when the meeting starts?": "time",
    "How do I find out when Ana moved?": "time",
    "So what? When's the launch?": "time",
    "When on 7 May did Ana have an office, and where?": "time",
    "When it rains, what applies?": None,
    "I forgot: when will they move?": "time",
    "What does Ana do when it rains?": None,
    "Which quota applies when api-v2 is deployed?": None,
    "How many come when it rains?": "number",
    "Whenever it rains": None,
}


@pytest.mark.parametrize("question", ASKED)
def test_what_is_asked_for_counts_where_it_is_told(question: str) -> None:
    """A memory that tells a time where one is asked for, else a number where that is."""
    told = pool({"cues": TELLS_A_TIME}, {"cues": TELLS_A_NUMBER}, {"cues": TELLS_A_TIME | TELLS_A_NUMBER}, {"cues": 0})
    expected = {"time": [0.75, 0, 0.75, 0], "number": [0, 0.3, 0.3, 0], None: [0, 0, 0, 0]}
    assert stages.asked_for(told, question).tolist() == expected[ASKED[question]]


# ---- how useful it is


@given(
    importance=st.floats(0, 1), confidence=st.none() | st.floats(0, 1), reinforced=st.integers(0, 2**53),
    at=st.integers(-(2**63), 2**63 - 1), kind=st.sampled_from(["turn", "note", "fact", "whatever"]),
)  # fmt: skip
def test_utility_is_bounded(importance: float, confidence: float | None, reinforced: int, at: int, kind: str) -> None:
    """Whatever a memory says of itself, and whenever it was, it gains or loses less than a deviation."""
    fields = {
        "importance": importance, "confidence": confidence, "reinforced": reinforced, "at": at, "kind": kind,
    }  # fmt: skip
    (score,) = stages.utility(pool(fields), NOW)
    assert -0.51 <= score <= 0.91


def test_utility_counts_what_is_known() -> None:
    """Importance, confidence and reinforcement, each more the more; without a confidence as with an even one."""
    low, even, high = stages.utility(pool({"importance": 0.1}, {}, {"importance": 0.9}), NOW)
    assert low < even < high
    doubted, unknown, evenly, sure = stages.utility(
        pool({"confidence": 0.0}, {}, {"confidence": 0.5}, {"confidence": 1.0}), NOW
    )
    assert doubted < unknown == evenly < sure
    never, once, often, always = stages.utility(pool(*({"reinforced": n} for n in (0, 1, 10, 10**9))), NOW)
    assert never < once < often < always <= never + 0.3


@pytest.mark.parametrize("kind", [*HALF_LIFE_DAYS, "fact"])
def test_a_memory_is_half_as_recent_after_its_half_life(kind: str) -> None:
    """By its kind; one from the future is as recent as one of now."""
    days = HALF_LIFE_DAYS.get(kind, LONGEST_HALF_LIFE)
    ages = [{"kind": kind, "at": NOW - round(age * DAYS)} for age in (-1000, 0, days, 100 * days)]
    future, now, half, old = stages.utility(pool(*ages), NOW)
    assert future == now == 0.1
    assert half == pytest.approx(0.05)
    assert old == pytest.approx(0, abs=1e-9)


def test_utility_changes_from_day_to_day_only() -> None:
    """Questions of one day that are asked again give the same scores."""
    memory = pool({"at": NOW - 3 * DAYS})
    (now,), (late,), (tomorrow,) = (stages.utility(memory, NOW + later) for later in (0, DAYS - 1, DAYS))
    assert now == late > tomorrow


# ---- threads


def test_a_thread_shares_its_best_score() -> None:
    """Only within one thread; what is in no thread gains nothing."""
    memories = pool(*({"thread": thread} for thread in ("t", "t", "s", "u", None, "")))
    scores = numpy.array([1.0, 3.0, 2.0, -1.0, 9.0, 4.0])
    assert stages.thread(memories, scores).tolist() == [3.0, 3.0, 2.0, -1.0, 0.0, 4.0]
    assert stages.thread(pool(), numpy.zeros(0)).tolist() == []


# ---- authors

ABOUT = {
    # one is named
    ("What did Ana say?", ("Ana", "Ben")): ["Ana"],
    ("what did ANA say?", ("Ana", "Ben")): ["Ana"],
    ("Ana's dog", ("Ana", None)): ["Ana"],
    ("What did Ana Silva say?", ("Ana Silva", "Ben")): ["Ana Silva"],
    ("What did Ana say?", ("Ana Silva", "Ben Costa")): ["Ana Silva"],
    ("What did Silva say?", ("Ana Silva",)): [],
    ("What did ana like?", ("user:ana", "user:ben")): ["user:ana"],
    ("What did the user like?", ("user:ana",)): [],
    ("What did 猫 say?", ("猫", "犬")): ["猫"],
    ("What did Zoe\u0308 say?", ("Zoë",)): ["Zoë"],
    # nobody is
    ("What was said?", ("Ana", "Ben")): [],
    ("", ("Ana",)): [],
    ("bananas and Anatolia", ("Ana", "nan")): [],
    ("Anas_ana ana1", ("Ana",)): [],
    # two are
    ("What did Ana tell Ben?", ("Ben", "Ana")): ["Ana"],
    ("What did Ben tell Ana?", ("Ben", "Ana")): ["Ben"],
    ("What do Ana and Ben like?", ("Ana", "Ben")): [],
    ("What do Ben & Ana like?", ("Ana", "Ben")): [],
    ("Ana, Ben: who?", ("Ana", "Ben")): [],
    ("What do both Ana as well as Ben like?", ("Ana", "Ben")): [],
    ("ana AND ben", ("user:ana", "Ben Costa")): [],
    ("Does Ana like both?", ("Ana", "Ben")): ["Ana"],
    # three are
    ("What did Ana tell Ben of Cy?", ("Ana", "Ben", "Cy")): [],
    # names that are a part of one another, or the same
    ("What did Ana Silva say?", ("Ana Costa", "Ana Silva")): ["Ana Silva"],
    ("What did Ana say?", ("Ana Costa", "Ana Silva", "Ben")): ["Ana Costa", "Ana Silva"],
    ("What did Ana Silva say?", ("Ana", "Ana Silva")): ["Ana Silva"],
    ("What did Ana tell Ana Silva?", ("Ana", "Ana Silva")): ["Ana"],
    ("What did Ana tell Ben?", ("Ben", "Ana Silva", "user:ana")): ["Ana Silva", "user:ana"],
    ("What do Ana and Ben like?", ("Ben", "Ana Silva", "user:ana")): [],
    # odd names
    ("What does C++ do?", ("C++", "C")): ["C++"],
    ("What did a.b say?", ("a.b", "aXb")): ["a.b"],
    ("What did aXb say?", ("a.b",)): [],
    ("Is (x) a name?", ("(x)", "[x", "x|y", "*")): ["(x)"],
    ("any question", (" ", "\u3000", "\x1c", "", "user:", ":", " : ", "user: ")): [],
    ("user: who?", ("user:",)): ["user:"],
}


@pytest.mark.parametrize(("question", "authors"), ABOUT)
def test_a_memory_by_whom_the_question_is_about_counts_more(question: str, authors: tuple[str | None, ...]) -> None:
    """The one author that is named, by the whole name or the first; the first of two that are not joined."""
    assert about(question, *authors) == ABOUT[question, authors]


NAME = st.text(st.sampled_from("ab AB:.*\\([|ß\u0301\x1c"), max_size=6)


@given(question=st.text(st.sampled_from("ab AB:.*\\([|ß\u0301&,and"), max_size=20), names=st.lists(NAME, max_size=5))
def test_no_name_is_too_strange(question: str, names: list[str]) -> None:
    """Whatever authors are called and whatever is asked, each memory gains all or nothing."""
    assert set(stages.author(by(*names), question)) <= {0.0, AUTHOR}


@pytest.mark.parametrize("question", ["word " * 20_000, "\n" * 100_000, "Name7" + " " * 100_000])
def test_many_authors_and_a_huge_question_take_little_time(question: str) -> None:
    """A thousand names are looked for in a hundred thousand characters."""
    memories, began = by(*(f"Name{number} Surname" for number in range(1000))), time.process_time()
    stages.author(memories, question)
    assert time.process_time() - began < 1.0
