"""The commands that keep copies and go on from what is left say what they did, for people and for programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .conftest import Tally


def flip(file: Path, after: bytes) -> None:
    """Change one byte of the entry in which this stands."""
    content = bytearray(file.read_bytes())
    content[content.index(after) + 40] ^= 1
    file.write_bytes(content)


@pytest.fixture
def written(store: Tally) -> Tally:
    """A store with two memories, one of them forgotten."""
    store("store", "the first text")
    identifier = store("store", "the secret", "--json").document["id"]
    store("forget", identifier)
    return store


def test_snapshots_are_taken_listed_rotated_and_put_back(written: Tally, project: Path) -> None:
    """Each step says where things are; nothing is overwritten unasked."""
    taken = written("snapshot", "create", "../backup", "--json").document["snapshots"][0]
    assert set(taken) == {"snapshot", "store", "at", "logs", "bytes", "sha256"}
    assert taken["at"].endswith("Z")
    written("snapshot", "create", "../backup")
    listed = written("snapshot", "list", "../backup")
    assert listed.code == 0
    assert taken["snapshot"] in listed.out
    gone = written("snapshot", "rotate", "../backup", "--daily", "1", "--weekly", "0", "--json").document["snapshots"]
    assert [each["snapshot"] for each in gone] == [taken["snapshot"]]
    kept = written("snapshot", "list", "../backup", "--json").document["snapshots"]
    assert len(kept) == 1
    put = written("snapshot", "restore", kept[0]["snapshot"], "--out", "../new")
    assert (put.code, "the directory was empty" in put.out) == (0, True)
    again = written("snapshot", "restore", kept[0]["snapshot"], "--out", "../new")
    assert (again.code, "has something in it" in again.err) == (1, True)
    assert written("-C", "../new", "recall", "text").code == 1  # the event of the snapshot itself is newer
    over = written("snapshot", "restore", kept[0]["snapshot"], "--over", "--json").document
    assert Path(over["kept"], "log.db").is_file()
    assert "`tallystick recover`" in written("recall", "text").err


@pytest.mark.parametrize("where", [[], ["--out", "x", "--over"]])
def test_where_a_snapshot_goes_has_to_be_said(written: Tally, where: list[str]) -> None:
    """Once."""
    assert written("snapshot", "restore", "nothing", *where).code == 2


def test_there_may_be_no_snapshot(written: Tally, project: Path) -> None:
    """That is said, and what is none is named."""
    (project / "empty").mkdir()
    assert "There is no snapshot." in written("snapshot", "list", "empty").out
    assert written("snapshot", "rotate", "empty").out == "deleted 0\n"
    missing = written("snapshot", "restore", "empty", "--over")
    assert (missing.code, "is not a snapshot" in missing.err) == (1, True)


def test_a_damaged_store_is_read_and_salvaged(written: Tally, project: Path) -> None:
    """The error names the position and the way on; the prefix is read; the rest is saved, and nothing comes back."""
    flip(project / ".tallystick" / "log.db", b"memory.forgotten")
    error = written("recall", "text", "--json").document["error"]
    assert (error["log"], error["position"]) == ("memory", 3)
    assert "`tallystick salvage`" in error["message"]
    prefix = written("recall", "first text", "--until", "3", "--json").document
    assert (prefix["hits"][0]["memory"]["text"], prefix["receipt"]) == ("the first text", None)
    assert any("as of position 2" in said for said in prefix["degraded"])
    assert "not on record" in written("recall", "first text", "--until", "3").out
    saved = written("salvage", "--out", "saved", "--reason", "a bad sector", "--json").document
    assert saved["logs"][0]["lost"] == [{"first": 3, "last": 3}]
    assert len(saved["withheld"]) == 1
    assert written("-C", "saved", "get", saved["withheld"][0]).out.count("may be lost") == 1
    assert [
        h["memory"]["text"] for h in written("-C", "saved", "recall", "text secret", "--json").document["hits"]
    ] == ["the first text"]
    refused = written("recall", "text")
    assert (refused.code, "goes on with" in refused.err) == (1, True)


def test_salvage_shows_what_is_lost(written: Tally, project: Path) -> None:
    """Runs of positions, the new store, and how to bring back what was held back."""
    flip(project / ".tallystick" / "log.db", b"memory.forgotten")
    shown = written("salvage", "--out", "saved").out
    assert "lost positions" in shown
    assert "1 came over forgotten" in shown
    assert "`tallystick restore ID`" in shown


def test_an_older_copy_is_recovered(written: Tally, project: Path) -> None:
    """With a reason, which is on record; and only where there is something to recover."""
    refused = written("recover", "--reason", "none")
    assert (refused.code, "nothing to recover" in refused.err) == (1, True)
    taken = written("snapshot", "create", "../backup", "--json").document["snapshots"][0]["snapshot"]
    written("snapshot", "restore", taken, "--over")
    done = written("recover", "--reason", "the disk died", "--json").document
    assert [log["log"] for log in done["logs"]] == ["memory", "access"]
    assert done["logs"][0]["lost"] == [{"first": 4, "last": 4}]
    assert written("recover").code == 2
    assert written("recall", "first text").code == 0
    assert "log.recovered" in written("log").out
    status = written("status", "--json").document
    assert any("keeps a log that was replaced" in remark for remark in status["remarks"])


def test_a_lease_is_taken_over(written: Tally, project: Path) -> None:
    """The host that holds it is named; a person decides."""
    held = '{"name": "elsewhere", "machine": "m", "boot": "b"}'
    (project / ".tallystick" / "lease").write_text(held, encoding="ascii")
    refused = written("store", "a text")
    assert (refused.code, "'elsewhere'" in refused.err, "`tallystick take-over`" in refused.err) == (1, True, True)
    assert written("recall", "text", "--read-only").code == 0
    assert written("take-over").code == 0
    assert written("store", "a text").code == 0
    assert written("-C", "nowhere", "take-over").code == 1


@pytest.mark.parametrize("verb", [["log"], ["status"], ["recall", "text"]])
def test_reading_only_leaves_the_store_as_it_is(written: Tally, project: Path, verb: list[str]) -> None:
    """Not even what was read is recorded."""
    files: Any = {file: file.read_bytes() for file in (project / ".tallystick").glob("*.db")}
    assert written(*verb, "--read-only").code == 0
    assert {file: file.read_bytes() for file in files} == files
    assert set((project / ".tallystick").glob("*.db")) == set(files)
