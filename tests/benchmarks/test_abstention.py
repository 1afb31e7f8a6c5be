"""The benchmark of abstention tells questions apart as it says."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.abstention import auroc, foreign, measure, off_topic
from benchmarks.locomo import Conversation, Question, Session
from tallystick.projections.models.known import OFFLINE
from tallystick.projections.models.places import offline_folder


def conversation(name: str, speakers: tuple[str, str], said: tuple[str, ...], asked: str) -> Conversation:
    """A conversation of one session, in which two take turns, and one question."""
    turns = tuple((f"D1:{n}", speakers[n % 2], text) for n, text in enumerate(said))
    session = Session("session_1", datetime(2023, 5, 8, tzinfo=UTC), turns)
    return Conversation(name, (session,), (Question(asked, "single-hop", frozenset({"D1:0"})),))


ONE = conversation(
    "one", ("Ana", "Bo"), ("I adopted a grey kitten from the shelter", "How lovely!"), "What did Ana adopt?"
)
OTHER = conversation("other", ("Cy", "Di"), ("My marathon is in October", "Good luck"), "When does Cy run a marathon?")


def test_pairs_are_counted() -> None:
    """All right, all wrong, and ties as half."""
    assert auroc([0.9, 0.8], [0.1, 0.2]) == 1.0
    assert auroc([0.1], [0.9]) == 0.0
    assert auroc([0.5], [0.5, 0.1]) == 0.75


def test_foreign_questions_are_on_the_speakers_of_this_conversation() -> None:
    """Each name is put in place of the other's, and nothing else is changed."""
    assert foreign(OTHER, ["Ana", "Bo"]) == ["When does Ana run a marathon?"]


def test_questions_off_topic_are_questions() -> None:
    """A hundred of them, the same each time."""
    questions = off_topic()
    assert len(questions) == 100
    assert all(question.startswith("How do I ") and question.endswith("?") for question in questions)
    assert questions == off_topic()


def test_a_small_run(tmp_path: Path) -> None:
    """Questions on something else are less relevant than a conversation's own, and mostly abstained from."""
    if offline_folder(OFFLINE) is None:
        pytest.skip("abstention is not measured: tallystick[offline-models] is not installed")
    report = measure([ONE, OTHER], tmp_path)
    assert report["questions"] == {"own": 2, "foreign": 2, "off topic": 200}
    assert report["auroc"]["off topic"] > 0.9
    assert report["abstained"]["own"] == 0.0
    assert report["abstained"]["off topic"] > 80
