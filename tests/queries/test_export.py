"""Exporting: what the log says at one moment, in a file that is there when it is whole, and on record."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tallystick import Memory
from tallystick.errors import Refused
from tallystick.events.kinds import Exported
from tallystick.events.portable import LIFE
from tallystick.projections import record
from tallystick.queries import export


@pytest.fixture
def memory() -> Iterator[Memory]:
    """A store with a few memories."""
    with Memory.temporary(actor="user:ana") as opened:
        opened.store("Größe 漢字 \u2028 \0 end", metadata={"a": [1.5, None]})
        opened.forget(opened.store("Gone").id, reason="old")
        yield opened


def test_a_file_says_of_which_state_it_is(memory: Memory, tmp_path: Path) -> None:
    """The first line names the log, its size and root, when and by whom; the last how many rows there are."""
    path = tmp_path / "out.jsonl"
    progress: list[tuple[int, int]] = []
    assert memory.export(path, progress=lambda done, of: progress.append((done, of))) == 2
    head, *rows, end = (json.loads(line) for line in path.read_bytes().split(b"\n")[:-1])
    state = memory.verify().logs[0]
    assert (head["tallystick"], head["version"], head["actor"]) == ("export", 1, "user:ana")
    assert (head["size"], head["root"]) == (state.size, state.root)
    assert end == {"end": len(rows)} == {"end": 2}
    assert rows[0]["events"][0]["text"] == "Größe 漢字 \u2028 \0 end"
    assert "漢字" in path.read_text(encoding="utf-8")
    assert progress[-1] == (3, 3)


def test_only_its_owner_can_read_it(memory: Memory, tmp_path: Path) -> None:
    """The texts are in clear, so nobody else gets to read them; nor those for people."""
    for path, markdown in ((tmp_path / "out", False), (tmp_path / "folder", True)):
        memory.export(path, markdown=markdown)
        assert all(stat.S_IMODE(each.stat().st_mode) & 0o077 == 0 for each in (path, *path.glob("*")))


def test_an_export_is_on_record(memory: Memory, tmp_path: Path) -> None:
    """Who took everything out stands in the access log, whatever the form."""
    for path, markdown in ((tmp_path / "out", False), (tmp_path / "folder", True)):
        memory.export(path, markdown=markdown)
        (row,) = [row for row in memory.log(limit=1) if row.kind == Exported.KIND]
        assert row.actor == "user:ana"


def test_an_export_takes_the_place_of_an_older_one_and_of_nothing_else(memory: Memory, tmp_path: Path) -> None:
    """A slip of the pen does not cost a file; a folder or a device is none."""
    path, other = tmp_path / "out", tmp_path / "diary.txt"
    memory.export(path)
    memory.store("One more")
    assert memory.export(path) == 3
    other.write_text("Dear diary")
    for taken in (other, tmp_path, Path("/dev/null")):
        with pytest.raises(Refused, match="is no export"):
            memory.export(taken)
    assert other.read_text() == "Dear diary"
    link = tmp_path / "link"
    link.symlink_to(path)
    memory.export(link)
    assert link.is_symlink()


@pytest.mark.parametrize("markdown", [False, True])
def test_what_breaks_off_leaves_nothing(memory: Memory, tmp_path: Path, markdown: bool) -> None:
    """The older export stays as it was, and no half of a new one lies about."""

    def stop(done: int, _of: int) -> None:
        if done:
            raise KeyboardInterrupt

    path = tmp_path / "out"
    if not markdown:
        memory.export(path)
    before = sorted((each.name, each.read_bytes()) for each in tmp_path.iterdir())
    with pytest.raises(KeyboardInterrupt):
        memory.export(path, markdown=markdown, progress=stop)
    assert sorted((each.name, each.read_bytes()) for each in tmp_path.iterdir()) == before


def test_what_comes_while_it_is_written_is_left_for_the_next(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file holds the memories and events of one moment, whoever goes on writing meanwhile."""
    first = memory.recall("Größe").hits[0].id
    lives = export.lives

    def meanwhile(*arguments: object) -> object:
        memory.store("Too late")
        memory.revise(first, text="Later")
        return lives(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(export, "lives", meanwhile)
    assert memory.export(tmp_path / "out") == 2
    assert "ater" not in (tmp_path / "out").read_text(encoding="utf-8")


def test_an_empty_store_gives_an_export_of_nothing(tmp_path: Path) -> None:
    """It can be imported, too."""
    with Memory.temporary() as empty:
        assert empty.export(tmp_path / "out") == 0
        assert empty.import_(tmp_path / "out") == (0, 0, 0, 0, None)


def test_a_memory_s_life_is_told_by_all_that_can_happen_to_it() -> None:
    """Whoever adds something that changes a memory adds it to the export format, or it would be lost on the way."""
    assert {kind.KIND for kind in record._CHANGES} | {"memory.stored"} == set(LIFE)
