"""The benchmark of the log runs, and says what it says it does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
WHAT = {
    *(f"append, batch {batch}, {how}" for batch in (1, 100, 1000) for how in ("NORMAL", "FULL")),
    "durable append with the mark",
    "verify, structure",
    "verify, full",
    "read and open",
    *(f"replay, {part}" for part in ("fold", "digests", "load vectors", "fold and load", "all")),
    *(
        f"size of {name}{kind}"
        for name in ("log.db", "vectors.db", "views.db", "all")
        for kind in ("", ", 37 token vectors each")
    ),
    "open, logs alone",
    "open, nothing new",
}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a small run prints."""
    folder = tmp_path_factory.mktemp("ledger")
    command = [sys.executable, "-m", "benchmarks.ledger", "--json", "--events", "200", "--open", "50"]
    run = subprocess.run(
        [*command, "--folder", str(folder)], cwd=ROOT, capture_output=True, text=True, check=True, timeout=120
    )
    assert list(folder.iterdir()) == []  # nothing is left behind
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def test_a_run_says_what_it_was_measured_on(report: dict[str, Any]) -> None:
    """A figure without its machine, Python and command is worth nothing."""
    assert {"machine", "python", "command", "load", "figures"} == report.keys()
    assert report["command"].startswith("python -m benchmarks.ledger --json --events 200")


def test_every_cost_is_measured_beside_its_floor(report: dict[str, Any]) -> None:
    """Each figure says of how many, in what unit, and beside what; a ratio is of the two."""
    figures = report["figures"]
    assert {figure["what"] for figure in figures} == WHAT
    for figure in figures:
        assert figure.keys() == {"what", "n", "value", "unit", "floor", "floor_is", "ratio"}
        assert figure["n"] > 0 and figure["value"] > 0
        assert bool(figure["floor"]) == bool(figure["floor_is"])
        if figure["floor"]:
            assert figure["ratio"] == pytest.approx(figure["value"] / figure["floor"], abs=0.01)


def test_what_is_replayed_is_what_was_asked_for(report: dict[str, Any]) -> None:
    """So many events as were asked for, and a store to be opened of that size."""
    by_name = {figure["what"]: figure["n"] for figure in report["figures"]}
    assert by_name["replay, all"] == 200
    assert by_name["open, nothing new"] == 50
