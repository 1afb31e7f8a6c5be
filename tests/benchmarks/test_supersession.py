"""The benchmark of corrections: its notes are what it says they are, and it counts what it says it counts."""

from __future__ import annotations

import json

import pytest

from benchmarks.notes import EVERY, SETTLED, SORTS, Journal, content_words, overlap
from benchmarks.supersession import MOST_SHARED, Asked, Lines, judge, main, questions, shared

NOTES = 3000


@pytest.fixture(scope="module")
def journal() -> Journal:
    """A journal of three thousand notes."""
    written = Journal()
    written.write(NOTES)
    return written


def test_notes_are_distinct_and_always_the_same(journal: Journal) -> None:
    """No two notes say the same, no two facts are on the same thing, and two journals hold the same notes."""
    notes = Journal().write(NOTES)
    assert len({note.text for note in notes}) == NOTES
    assert len({journal.name_of(fact) for fact in range(100_000)}) == 100_000
    assert [note.text for note in notes] == [note.text for note in Journal().write(NOTES)]
    assert sorted(note.at for note in notes) == [note.at for note in notes]


def test_corrections_are_a_quarter_of_each_sort(journal: Journal) -> None:
    """Every sixth note corrects one that was stated at least a hundred notes before."""
    notes = Journal().write(NOTES)
    last: dict[int, int] = {}
    for number, note in enumerate(notes):
        if note.corrects:
            assert number - last[note.fact] >= SETTLED
        last[note.fact] = number
    sorts = [journal.sort_of(note.fact) for note in notes if note.corrects]
    assert len(sorts) == pytest.approx(NOTES / EVERY, rel=0.1)
    assert all(sorts.count(sort) == pytest.approx(len(sorts) / len(SORTS), abs=3) for sort in SORTS)


def test_questions_and_notes_share_little(journal: Journal) -> None:
    """At most 30 % of the content words, counted of the shorter; more is refused, whoever wrote the grammar."""
    words = shared(questions(journal))
    assert 0 < words["mean"] <= words["most"] <= MOST_SHARED
    assert content_words("What is the timeout of amber-otter-api?") == {"timeout", "amberotterapi"}
    assert overlap("amber timeout today", "the timeout of birch") == 0.5
    with pytest.raises(ValueError, match="Mend the grammar"):
        shared([Asked("key", "timeout of the api", "the api has a timeout", frozenset())])


def test_what_is_counted() -> None:
    """Complete: what holds now is there. Forbidden: something is there that held before. Unmarked ones stand apart."""
    asked = [Asked(sort, sort, f"{sort} now", frozenset({f"{sort} before"})) for sort in SORTS]
    counted = judge(asked, lambda question: [f"{question} now"] if question == "key" else [f"{question} before"])
    assert counted["key"]["complete@10"]["percent"] == 100.0
    assert counted["key"]["forbidden@10"]["percent"] == 0.0
    assert counted["unmarked"]["forbidden@10"]["percent"] == 100.0
    assert counted["marked"]["n"] == 3
    assert counted["marked"]["forbidden@10"]["percent"] == 66.7


def test_the_file_beside_it() -> None:
    """grep gives the lines with the most words of the question, the newest first; the last lines come newest first."""
    notes = Journal().write(20)
    lines = Lines()
    lines.append(notes)
    assert lines.newest("anything") == [note.text for note in reversed(notes[-10:])]
    found = lines.grep(notes[3].text)
    assert found[0] == notes[3].text and len(found) == 10
    assert lines.grep("zebra") == []


def test_marked_corrections_stay_out(capsys: pytest.CaptureFixture[str]) -> None:
    """Asked for what was corrected, recall gives what holds now, and never what a mark has superseded."""
    main(["--sizes", "300", "600", "--model", "none", "--json"])
    report = json.loads(capsys.readouterr().out)
    for of in report["sizes"].values():
        marked = of["arms"]["tallystick"]["marked"]
        assert marked["n"] > 0
        assert marked["complete@10"]["percent"] == 100.0
        assert marked["forbidden@10"]["percent"] == 0.0
        assert of["arms"]["grep"]["marked"]["forbidden@10"]["percent"] > 50
        assert of["shared"]["most"] <= MOST_SHARED
    main(["--sizes", "300", "--model", "none"])
    assert "complete@10 100.0" in capsys.readouterr().out
