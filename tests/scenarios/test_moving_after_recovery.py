"""A store that was recovered knows what it exported and imported before: nothing comes in twice, or comes back."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tallystick import Memory


def rows(path: Path) -> dict[str, object]:
    """The rows of an export by the name of their memory."""
    return {row["memory"]: row for row in map(json.loads, path.read_bytes().splitlines()[1:-1])}


def check(memory: Memory, folder: Path, lost: str) -> None:
    """What was imported before is known; what was lost comes back, with its links, and nothing that was forgotten."""
    assert memory.verify(views=True).views
    assert memory.import_(folder / "other.jsonl") == (0, 0, 3, 0, None)
    arrivals = memory.import_(folder / f"{lost}.jsonl")
    assert (arrivals.new, arrivals.refused) == (1, 0)
    for text, link in ((lost, "Kept"), ("From elsewhere", "Another one")):
        (found,) = [hit for hit in memory.recall(text).hits if hit.text == text]
        assert [memory.get(each.to.hex()).text for each in found.record.links] == [link]
    assert memory.store("From elsewhere", command_id="c1").repeated
    assert not [hit for hit in memory.recall("gone") if hit.text == "Gone"]
    assert memory.verify(views=True).views


def test_a_recovered_store_knows_its_own_and_what_came_in(tmp_path: Path) -> None:
    """Names outlive the origin; what the older copy had lost comes back by an export, and nothing else."""
    store, keys, copy = tmp_path / "store", tmp_path / "keys", tmp_path / "copy"

    def opened() -> Memory:
        return Memory.open(store, keys=keys, model="none")

    with Memory.temporary() as other:
        first, second = other.store("From elsewhere", command_id="c1"), other.store("Another one", key="k")
        other.link(first.id, second.id, kind="causes")
        other.store("A third one", key="k")
        other.export(tmp_path / "other.jsonl")
    with opened() as memory:
        kept, gone = memory.store("Kept"), memory.store("Gone")
        memory.forget(gone.id)
        memory.import_(tmp_path / "other.jsonl")
    for lost in ("First loss", "Second loss"):
        shutil.copytree(store, copy)
        with opened() as memory:
            memory.link(memory.store(lost).id, memory.recall("kept").hits[0].id, kind="about")
            memory.export(tmp_path / f"{lost}.jsonl")
        shutil.rmtree(store)
        copy.rename(store)
        Memory.recover(store, keys=keys, reason="the disk died")
        with opened() as memory:
            memory.export(tmp_path / "after.jsonl")
            check(memory, tmp_path, lost)
        if lost == "First loss":
            assert set(rows(tmp_path / "after.jsonl")) < set(rows(tmp_path / "First loss.jsonl"))
    with opened() as memory:
        assert memory.import_(tmp_path / "First loss.jsonl")[:2] == (0, 0)
    assert any(name.endswith(kept.id) for name in rows(tmp_path / "First loss.jsonl"))
