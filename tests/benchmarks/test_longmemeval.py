"""The LongMemEval benchmark reads the data as it is, counts turns, and keeps unanswered questions apart."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from benchmarks.longmemeval import load, main, moment

TALK: list[dict[str, Any]] = [
    {"role": "user", "content": "I moved to Lisbon last week.", "has_answer": True},
    {"role": "assistant", "content": "How do you like it there?"},
    {"role": "user", "content": " "},
]
OTHER = [{"role": "user", "content": "My bicycle has a flat tyre."}, {"role": "assistant", "content": "Oh no."}]


def asked(name: str, question: str, *, answered: bool) -> dict[str, Any]:
    """One question with a history of two sessions."""
    talk = TALK if answered else [{**turn, "has_answer": False} for turn in TALK]
    return {
        "question_id": name,
        "question_type": "single-session-user",
        "question": question,
        "answer": "Lisbon",
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 10:00"],
        "haystack_session_ids": ["answer_1", "noise_2"],
        "haystack_sessions": [talk, OTHER],
        "answer_session_ids": ["answer_1"],
    }


SAMPLES = [
    asked("q1", "Where did I move to?", answered=True),
    asked("q2", "Which city did the helicopter land in?", answered=True),
    asked("q3_abs", "What is the name of my hamster?", answered=False),
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A file in the format of LongMemEval."""
    path = tmp_path / "longmemeval.json"
    path.write_text(json.dumps(SAMPLES))
    return path


def test_evidence_are_the_turns_that_hold_the_answer(data: Path) -> None:
    """Turns keep their session, role and time; an empty one is no memory, and a mark of False is none."""
    first, _, unanswered = load(data)
    assert [session.at for session in first.sessions] == [
        moment("2023/05/20 (Sat) 02:21"),
        moment("2023/05/21 (Sun) 10:00"),
    ]
    assert moment("2023/05/20 (Sat) 02:21") == datetime(2023, 5, 20, 2, 21, tzinfo=UTC)
    assert [len(session.turns) for session in first.sessions] == [2, 2]
    assert first.questions[0].evidence == {first.sessions[0].turns[0][0]}
    assert first.sessions[0].turns[0][1:] == ("user", "I moved to Lisbon last week.")
    assert unanswered.questions[0].evidence == frozenset()


def test_what_is_reported(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One of two questions shares a word with its answer; the one without an answer is counted apart."""
    main(["--data", str(data), "--model", "none", "--json"])
    report = json.loads(capsys.readouterr().out)
    assert report["overall"]["n"] == 2
    assert report["overall"]["hit@1"]["percent"] == report["overall"]["mrr"] == 50.0
    assert report["categories"].keys() == {"single-session-user"}
    assert report["ingestion"]["turns"] == 8
    assert report["abstained"]["n"] == 1
    assert "benchmarks.longmemeval --data" in report["command"]


def test_people_get_a_table(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without --json the same is printed as a table."""
    main(["--data", str(data), "--model", "none", "--first", "1"])
    printed = capsys.readouterr().out
    assert "100.0" in printed and "abstained" not in printed
