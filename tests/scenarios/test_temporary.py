"""A temporary memory leaves nothing behind."""

from __future__ import annotations

import gc
import os
import tempfile
import threading
from pathlib import Path

import pytest

from tallystick import Memory
from tallystick.errors import Refused

TIMES = 200


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which temporary folders are made."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def descriptors() -> int:
    """How many files this process has open."""
    gc.collect()
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("this system does not tell which files a process has open")
    return len(os.listdir("/proc/self/fd"))


def use_one(number: int, *, fail: bool) -> None:
    """Use a temporary memory, and leave it as a test that fails would."""
    with Memory.temporary() as memory:
        memory.store(f"temporary {number}")
        memory.recall("temporary")
        if fail:
            raise RuntimeError("the test failed")


def test_two_hundred_temporary_memories_leave_nothing(folder: Path, home: Path) -> None:
    """No file, thread or file descriptor stays, whether the body ends or raises; every second one raises."""
    use_one(0, fail=False)
    open_before, threads_before = descriptors(), threading.active_count()
    for number in range(TIMES):
        if number % 2:
            with pytest.raises(RuntimeError, match="the test failed"):
                use_one(number, fail=True)
        else:
            use_one(number, fail=False)
    assert list(folder.iterdir()) == []
    assert list(home.rglob("*")) == []
    assert descriptors() == open_before
    assert threading.active_count() == threads_before


def test_a_temporary_memory_that_does_not_open_leaves_nothing(folder: Path) -> None:
    """The folder goes where opening fails."""
    open_before = descriptors()
    with pytest.raises(Refused):
        Memory.temporary(namespace="not a namespace")
    assert list(folder.iterdir()) == []
    assert descriptors() == open_before


def test_closing_twice_is_no_error(folder: Path) -> None:
    """Closing what is closed does nothing."""
    memory = Memory.temporary()
    memory.close()
    memory.close()
    assert list(folder.iterdir()) == []


def test_temporary_memories_are_apart(folder: Path) -> None:
    """Two at once do not see each other."""
    with Memory.temporary() as first, Memory.temporary() as second:
        first.store("only in the first one")
        assert len(list(folder.iterdir())) == 2
        assert not list(second.recall("first one"))
        assert [hit.text for hit in first.recall("first one")] == ["only in the first one"]
