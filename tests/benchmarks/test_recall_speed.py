"""The benchmark of recall by size: it runs, and says of each kind and stage what it costs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_kind_and_stage_is_measured() -> None:
    """Whole recalls of each kind, the stages, and beside them what does the same."""
    command = [sys.executable, "-m", "benchmarks.recall_speed", "--sizes", "60", "--json"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    figures = json.loads(run.stdout)["figures"]
    assert len({each["what"] for each in figures}) == len(figures) == 15
    assert all(each["memories"] == 60 and 0 < each["median_ms"] <= each["p95_ms"] for each in figures)
