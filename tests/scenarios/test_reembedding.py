"""A change of the model whose process is killed: nothing that was made is lost, and the old model goes on answering."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tallystick import Memory
from tallystick.projections.models import places

from ..projections.stub_embedders import Stubs

NOTES = [f"Note {number} about the office in town {number % 7}" for number in range(80)]
PATIENCE = 60.0


@pytest.fixture
def stubs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stubs:
    """The models `old` and `new`, here and in the worker."""
    found = Stubs(tmp_path / "models")
    monkeypatch.setattr(places, "resolve_embedder", found.resolve)
    return found


def test_a_change_that_was_killed_goes_on_where_it_was(tmp_path: Path, stubs: Stubs) -> None:
    """Killed midway, twice: the old vectors answer all along, and the last run makes only what is missing."""
    store, keys = tmp_path / "store", tmp_path / "keys"
    old, new = (each.space.id for each in stubs.embedders.values())
    command = [sys.executable, str(Path(__file__).with_name("reembed_worker.py"))]
    command += [str(place) for place in (store, keys, tmp_path / "models")]
    with Memory.open(store, keys=keys, model="auto") as memory:
        memory.store_many(NOTES)
        memory.embed()
        asked = [hit.id for hit in memory.recall("the office in town 3", limit=20)]
        for least in (10, 30):
            worker = subprocess.Popen(command, stdout=subprocess.PIPE)
            ends = time.monotonic() + PATIENCE
            while memory._opened.vectors().spaces().get(new, 0) < least:
                recall = memory.recall("the office in town 3", limit=20)
                assert ([hit.id for hit in recall], recall.degraded) == (asked, ())
                assert worker.poll() is None and time.monotonic() < ends
            worker.kill()
            worker.communicate()
        made = memory._opened.vectors().spaces()
        assert 30 <= made[new] < len(NOTES) == made[old]
        assert memory._opened.searching().space == old  # type: ignore[union-attr]
        assert memory.embed() == len(NOTES) - made[new] == len(stubs.embedders[str(stubs.new)].made)
        assert memory._opened.searching().space == new  # type: ignore[union-attr]
        assert memory.recall("the office in town 3").degraded == ()
    with Memory.open(store, keys=keys, model="auto") as memory:
        memory.verify(views=True)
        assert memory.status().missing_vectors == 0
