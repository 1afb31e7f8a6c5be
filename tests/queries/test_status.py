"""The state of a store at a glance, and whether it is clean."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tallystick import Memory


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """A store that a test can find on the disk, by words alone."""
    with Memory.open(tmp_path / "store", keys=tmp_path / "keys", model="none", namespace="project:app") as opened:
        yield opened


def test_a_new_store_is_empty_and_its_keys_want_a_backup(memory: Memory, tmp_path: Path) -> None:
    """Nothing is in it, both logs have their first event, and all there is to remark is that keys can be lost."""
    status = memory.status()
    assert (status.memories, status.logs) == ({}, {"memory": 1, "access": 1})
    assert (status.store, status.keys) == (str(tmp_path / "store"), str(tmp_path / "keys"))
    assert (status.model, status.missing_vectors) == ("none", 0)
    assert status.mark == str(tmp_path / "keys" / "mark")
    assert (status.clean, len(status.remarks), status.notes) == (False, 1, ())
    assert "tallystick keys backup FILE" in status.remarks[0]


def test_a_store_whose_keys_were_backed_up_or_need_not_be_is_clean(memory: Memory, tmp_path: Path) -> None:
    """Either is on record, and either will do."""
    memory.back_up_keys(tmp_path / "keys.backup", "correct horse battery")
    assert memory.status().clean
    with Memory.open(tmp_path / "other", keys=tmp_path / "other-keys", model="none") as other:
        other.decline_key_backup(reason="a test store")
        assert other.status().clean


def test_a_temporary_store_needs_no_backup() -> None:
    """Its keys go with it."""
    with Memory.temporary() as memory:
        assert (memory.status().clean, memory.status().remarks) == (True, ())


def test_memories_are_counted_by_status_and_events_by_log(memory: Memory) -> None:
    """Counts follow what happened; roots are those of the logs."""
    memory.forget(memory.store("Note 1").id)
    memory.store("Company A", key="employer")
    memory.store("Company B", key="employer")
    memory.recall("company")
    status = memory.status()
    assert status.memories == {"current": 1, "forgotten": 1, "superseded": 1}
    assert status.logs == {"memory": 6, "access": 2}
    assert status.roots == {log.name: log.tip.frontier.root().hex() for log in memory._opened.installation.logs}


def test_what_another_opening_appends_is_counted(memory: Memory, tmp_path: Path) -> None:
    """Status is of the store, not of this opening of it."""
    with Memory.open(tmp_path / "store", keys=tmp_path / "keys", model="none") as other:
        other.store("Note 1")
        other.recall("note")
    status = memory.status()
    assert (status.memories, status.logs) == ({"current": 1}, {"memory": 2, "access": 2})


def test_how_far_the_views_are_behind_is_said(memory: Memory) -> None:
    """The views that recall needs are caught up; the trail is folded when it is asked for."""
    memory.store("Note 1")
    memory.recall("note")
    assert memory.status().behind == {"recall": 0, "trail": 2}
    memory.log()
    assert memory.status().behind == {"recall": 0, "trail": 0}


def test_every_file_of_the_store_is_listed_with_its_size(memory: Memory, tmp_path: Path) -> None:
    """What takes room on the disk is said, file by file."""
    memory.store("Note 1")
    status = memory.status()
    assert status.bytes == {file.name: file.stat().st_size for file in (tmp_path / "store").iterdir()}
    assert {"log.db", status.views} <= set(status.bytes)


def test_how_the_log_was_checked_at_opening_is_said(tmp_path: Path) -> None:
    """A log left as it was found needs only what is new checked; one whose file has changed is checked whole."""
    where = tmp_path / "store", tmp_path / "keys"
    with Memory.open(where[0], keys=where[1], model="none") as memory:
        memory.store("Note 1")
    with Memory.open(where[0], keys=where[1], model="none") as memory:
        assert memory.status().checked == "new"
    os.utime(where[0] / "log.db")
    with Memory.open(where[0], keys=where[1], model="none") as memory:
        assert memory.status().checked == "structure"


def test_keys_that_others_can_read_are_remarked_on(memory: Memory, tmp_path: Path) -> None:
    """A store whose keys lie open is not clean, and it says which directory."""
    before = memory.status().remarks
    (tmp_path / "keys").chmod(0o755)
    status = memory.status()
    assert not status.clean
    assert [str(tmp_path / "keys") in remark for remark in set(status.remarks) - set(before)] == [True]
    (tmp_path / "keys").chmod(0o700)
    assert memory.status().remarks == before


def test_status_leaves_no_trace(memory: Memory) -> None:
    """Asking how a store is appends nothing to it."""
    memory.store("Note 1")
    before = memory.status()
    assert memory.status().logs == before.logs
