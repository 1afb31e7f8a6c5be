"""The comparison with others: the same texts and questions for each, and every act in a process of its own."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks.peers import Arm, corpus, measure

from .test_locomo import SAMPLES


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A file in the format of LOCOMO."""
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps(SAMPLES))
    return path


def test_the_texts_and_the_questions_on_them(data: Path) -> None:
    """So many turns with their speakers, each once; of the questions those whose evidence is among them."""
    asked = corpus(data, 100)
    assert asked["texts"][:2] == [
        "Ida: I adopted a greyhound yesterday.",
        "Omar: Look at this! [shares a photo of a kayak]",
    ]
    assert [each["text"] for each in asked["questions"]] == [
        "Which animal was adopted: a greyhound?",
        "When is the marathon?",
    ]
    assert asked["questions"][0]["evidence"] == ["Ida: I adopted a greyhound yesterday."]
    assert [len(corpus(data, 1)[name]) for name in ("texts", "questions")] == [1, 1]


def test_our_side_is_measured(data: Path, tmp_path: Path) -> None:
    """Stored in one process and asked in another: what was found, and what it cost."""
    arm = Arm("ours", "side_tallystick", Path(sys.executable), None)
    (tmp_path / "stores").mkdir()
    found = measure(arm, corpus(data, 100), tmp_path / "stores")
    assert found["hit@10"]["percent"] == found["mrr"] == 100.0
    for name in ("first_recall_cpu_seconds", "store_cpu_ms", "disk_mib"):
        assert found[name] > 0
    assert found["recall_cpu_ms"]["p50"] > 0 and found["rss_mib"]["recall"] > 10
