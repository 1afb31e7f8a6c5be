"""The benchmark of storing runs every way in a process of its own, and says what a memory cost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.ingest import BATCHES, act, main
from tallystick import Memory


def test_every_way_is_measured(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Singly and in batches; a batch costs less for each memory."""
    monkeypatch.setattr("benchmarks.ingest.MODELS", {"words alone": "none"})
    main(["--sizes", "30", "--json"])
    report = json.loads(capfd.readouterr().out)
    ways = report["sizes"]["30"]
    assert list(ways) == [f"words alone, {way}" for way in BATCHES]
    for cost in ways.values():
        assert cost["cpu_ms"] > 0 and cost["rss_mib"] > 10 and cost["disk_mib"] > 0
    assert ways["words alone, in batches of 500"]["cpu_ms"] < ways["words alone, singly"]["cpu_ms"]
    assert "benchmarks.ingest" in report["command"]


def test_all_of_it_is_stored(tmp_path: Path) -> None:
    """The last, smaller batch too."""
    act(7, 3, "none", tmp_path)
    with Memory.open(tmp_path / "store", keys=tmp_path / "keys", model="none") as memory:
        assert memory.status().memories == {"current": 7}
