"""The two time axes on the command line, as a person asks along them."""

from __future__ import annotations

import pytest

from tallystick import Memory
from tallystick.events.instants import moment

from .conftest import Tally

EARLY, LATE, BETWEEN = "2020-01-01T00:00:00Z", "2023-01-01T00:00:00Z", "2021-01-01T00:00:00Z"


@pytest.fixture
def office(store: Tally) -> Tally:
    """A store in which the value of a key has changed."""
    store("store", "The office is in Lisbon", "--key", "office", "--valid-from", EARLY)
    store("store", "The office is in Porto", "--key", "office", "--valid-from", LATE)
    return store


@pytest.mark.parametrize("verb", [("recall", "office"), ("search",)])
def test_what_was_valid_is_shown_with_what_became_of_it(office: Tally, verb: tuple[str, ...]) -> None:
    """A table says which are superseded by now; where none is, there is no word of it in a recall."""
    shown = office(*verb, "--as-of", BETWEEN)
    assert "Lisbon" in shown.out
    assert "superseded" in shown.out
    assert "Porto" not in shown.out
    assert "superseded" not in office(*verb, "--as-of", LATE).out


@pytest.mark.parametrize("verb", [("recall", "office"), ("search",)])
def test_what_was_known(office: Tally, verb: tuple[str, ...]) -> None:
    """At a position, and at the time that `log` shows of it; together with what was valid."""
    with Memory.open(".tallystick", create=False) as memory:
        at = moment(memory._opened.log.event_at(1).event.recorded_at).isoformat()
    for past in (("--at-position", "1"), ("--known-at", at)):
        assert "Lisbon" in office(*verb, *past).out
        assert "Lisbon" in office(*verb, *past, "--as-of", "2030-01-01T00:00:00Z").out
    assert "Porto" in office(*verb).out


def test_why_says_how_it_was_asked(office: Tally) -> None:
    """The filters of a receipt are shown, times as times."""
    asked = ("--as-of", BETWEEN, "--at-position", "1", "--tag", "a", "--tag", "b", "--without", "dates")
    receipt = office("recall", "office", *asked, "--json").document["receipt"]
    line = next(line for line in office("why", receipt).out.splitlines() if line.startswith("filters"))
    assert line.split(maxsplit=1)[1] == f"as_of={BETWEEN}, at_position=1, tags=a b, without=dates"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--as-of", "2021"), "Write it as"),
        (("--as-of", BETWEEN, "--status", "forgotten"), "Ask for it without as_of"),
        (("--known-at", "2999-01-01T00:00:00Z"), "Give a time that has passed"),
        (("--known-at", EARLY), "Ask for later"),
        (("--at-position", "99"), "Give one below"),
        (("--at-position", "1", "--known-at", EARLY), "Give one of them"),
    ],
)
def test_what_makes_no_sense_is_one_line(office: Tally, asked: tuple[str, ...], said: str) -> None:
    """It ends with 1, and with what to do."""
    done = office("recall", "office", *asked)
    assert (done.code, done.out) == (1, "")
    assert done.err.count("\n") == 1
    assert said in done.err


def test_recalls_are_asked_again(office: Tally) -> None:
    """What changed is shown recall by recall, then all of it together; what was used is a label."""
    assert "No recall is on record yet" in office("eval", "--from-log").out
    office("store", "The office of Ana has a garden")
    hits = office("recall", "office garden", "--json").document
    office("used", hits["receipt"], hits["hits"][1]["memory"]["id"])
    same = office("eval", "--from-log").out
    assert "recalls  1: 1 same" in same
    assert hits["receipt"] not in same
    changed = office("eval", "--from-log", "--without", "lexical")
    found = office("eval", "--from-log", "--without", "lexical", "--json").document
    assert (changed.code, found["without"], found["recalls"][0]["used"]) == (
        0,
        ["lexical"],
        [found["recalls"][0]["before"][1]],
    )
    assert found["used"]["before"] == {"hit": 1.0, "mrr": 0.5}
    assert ("50.0 before" in changed.out, "without  lexical" in changed.out) == (True, True)
    assert (hits["receipt"] in changed.out) == (found["same"] == 0)


def test_eval_says_what_it_asks(office: Tally) -> None:
    """Which recalls is said, and how many at most; a stage that is none is refused."""
    assert (office("eval").code, "--from-log" in office("eval").err) == (2, True)
    assert office("eval", "--from-log", "--limit", "0").code == 2
    assert "no stage to leave out" in office("eval", "--from-log", "--without", "colour").err
    for question in ("one", "two", "three"):
        office("recall", question)
    assert [each["query"] for each in office("eval", "--from-log", "--limit", "2", "--json").document["recalls"]] == [
        "three",
        "two",
    ]
