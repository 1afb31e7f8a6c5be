"""The LOCOMO benchmark: it reads the data as it is, finds what is there, and counts as it says."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.chats import as_asked
from benchmarks.locomo import ALWAYS

ROOT = Path(__file__).parents[2]

SAMPLES: list[dict[str, Any]] = [
    {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ida",
            "speaker_b": "Omar",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ida", "dia_id": "D1:1", "text": "I adopted a greyhound yesterday."},
                {"speaker": "Omar", "dia_id": "D1:2", "text": "Look at this!", "blip_caption": "a photo of a kayak"},
            ],
            "session_2_date_time": "12:05 am on 9 June, 2023",
            "session_2": [
                {"speaker": "Omar", "dia_id": "D2:1", "text": "The marathon is next week."},
                *({"speaker": "Ida", "dia_id": f"D2:{n}", "text": f"Word number {n}."} for n in range(2, 12)),
            ],
            "session_3_date_time": "9:00 am on 10 June, 2023",
        },
        "qa": [
            {"question": "Which animal was adopted: a greyhound?", "evidence": ["D1:1"], "category": 4},
            {"question": "Whose photo shows a kayak?", "evidence": ["D1:02; D9:1"], "category": 1},
            {"question": "When is the marathon?", "evidence": ["D:2:1"], "category": 2},
            {"question": "Where does the mayor live?", "evidence": [], "category": 3},
            {"question": "What did Ida say about her helicopter?", "evidence": ["D1:1"], "category": 5},
        ],
    }
]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file in the format of LOCOMO."""
    path = tmp_path_factory.mktemp("locomo") / "locomo.json.gz"
    path.write_bytes(gzip.compress(json.dumps(SAMPLES).encode()))
    return path


def run(data: Path, *options: str) -> str:
    """What the benchmark prints, without a model."""
    command = [sys.executable, "-m", "benchmarks.locomo", "--data", str(data), "--model", "none", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_it_reports_what_was_found(data: Path) -> None:
    """Evidence is found however it is written; a question without any is a miss, an adversarial one no question."""
    report = json.loads(run(data, "--json"))
    overall = report["overall"]
    assert overall["n"] == 4
    assert overall["hit@1"] == overall["hit@50"] == {"percent": 75.0, "interval": [30.1, 95.4]}  # Wilson, 3 of 4
    assert overall["mrr"] == 75.0
    assert overall["recall@10"] == 62.5  # one of one, one of two, one of one, none of none
    assert [row["n"] for row in report["categories"].values()] == [1, 1, 1, 1]
    assert report["ingestion"]["turns"] == 13
    assert report["model"] == "none"
    assert "--model none --json" in report["command"]


def test_people_get_a_table(data: Path) -> None:
    """Without --json the same is printed as a table, with the command that made it."""
    printed = run(data, "--conversations", "0-0")
    assert "75.0 (30.1-95.4)" in printed
    assert "python -m benchmarks.locomo --data" in printed


def test_each_stage_is_left_out_in_turn(data: Path) -> None:
    """One run gives the scores with all stages and without each, of the first five conversations and of all."""
    report = json.loads(run(data, "--ablations", "--json"))
    assert list(report["ablations"]) == ["conversations 0-4", "all"]
    for part in report["ablations"].values():
        assert list(part) == ["all stages", *ALWAYS]
        assert {row["n"] for row in part.values()} == {4}
    assert report["ablations"]["all"]["all stages"]["hit@10"]["percent"] == 75.0
    assert report["ablations"]["all"]["lexical"]["mrr"] < 75.0
    assert "all: no lexical" in run(data, "--ablations")


def test_conversations_as_chats(data: Path) -> None:
    """Each speaker is the user once, and each question is asked twice."""
    report = json.loads(run(data, "--json", "--as-chats"))
    assert (report["overall"]["n"], report["ingestion"]["turns"]) == (8, 26)


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("What did Ida paint?", "What did I paint?"),
        ("What did Omar tell Ida about his dog?", "What did you tell me about his dog?"),
        ("Is Omar's dog his?", "Is your dog your?"),
        ("Does Ida like her dog?", "Do I like my dog?"),
        ("Who is Idaho's governor?", "Who is Idaho's governor?"),
    ],
)
def test_a_question_as_the_user_asks_the_assistant(question: str, asked: str) -> None:
    """By words alone, so not always as people speak."""
    assert as_asked(question, "Ida", ["Omar"]) == asked
