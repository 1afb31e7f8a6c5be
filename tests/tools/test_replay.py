"""Replay for operators: rebuild and compare, with nothing running and while others run."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tallystick import Memory
from tallystick.errors import ViewsDamaged
from tallystick.events.driver import Datastore, File
from tallystick.events.key_places import Directory
from tallystick.events.keys import load_keys

REPLAY = Path(__file__).parents[2] / "tools" / "replay"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A folder with a store and its keys, that nobody has open."""
    with Memory.open(tmp_path / "store", keys=tmp_path / "keys", model="none") as memory:
        for n in range(5):
            memory.store(f"note number {n}")
        memory.recall("note")
    yield tmp_path


def replay(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the tool on the store of a place."""
    named = ["-C", str(place / "store"), "--keys", str(place / "keys")]
    return subprocess.run(
        [sys.executable, str(REPLAY), *named, *arguments], capture_output=True, text=True, check=False
    )


def views_of(place: Path) -> Path:
    """The views file of a store."""
    (views,) = (place / "store").glob("views-*.db")
    return views


def test_sound_views_are_equal_and_replaced(place: Path) -> None:
    """Sound views give equal digests and exit code 0; new ones are in force; the pace is shown."""
    before = views_of(place)
    done = replay(place)
    assert (done.returncode, done.stderr) == (0, "")
    assert "events/s" in done.stdout
    assert "NO" not in done.stdout
    assert views_of(place) != before


def test_the_document_for_programs(place: Path) -> None:
    """--json prints one document with every view, the number of events and the seconds."""
    found = json.loads(replay(place, "--json").stdout)
    assert set(found) == {"equal", "views", "events", "seconds"}
    assert (found["equal"], found["events"]) == (True, 8)
    assert {view["view"] for view in found["views"]} == {"memories", "keyword", "vector", "aliases", "access", "audit"}


def test_compare_puts_nothing_in_force(place: Path) -> None:
    """--compare leaves the log as it is, byte for byte, and the same views in force."""
    log, views = place / "store" / "log.db", views_of(place)
    before = log.read_bytes()
    done = replay(place, "--compare")
    assert done.returncode == 0, done.stderr
    assert (log.read_bytes(), views_of(place)) == (before, views)


def test_a_view_that_says_something_else_is_found_and_mended(place: Path) -> None:
    """A view edited with the right key is not equal: --compare names it, a replay replaces it, the next is equal."""
    datastore = Datastore(File(views_of(place), ViewsDamaged, load_keys(Directory(place / "keys", named=True)).views))
    with datastore.transaction(commit=True) as cursor:
        cursor.execute("UPDATE memories SET status = 'forgotten'")
    datastore.close()
    compared = replay(place, "--compare")
    assert compared.returncode == 1
    assert "`memories`" in compared.stderr
    mended = replay(place)
    assert mended.returncode == 1
    assert "NOT equal" in mended.stdout
    assert replay(place).returncode == 0


def test_views_that_are_gone_are_made_anew(place: Path) -> None:
    """Without any views file the exit code is 1, and the next replay is equal."""
    views_of(place).unlink()
    assert replay(place).returncode == 1
    assert replay(place).returncode == 0


def test_a_damaged_log_is_not_built_upon(place: Path) -> None:
    """A log that does not verify ends with 1, one line, and the views as they were."""
    before = views_of(place)
    datastore = Datastore(File(place / "store" / "log.db", ViewsDamaged))
    with datastore.transaction(commit=True) as cursor:
        cursor.execute("DROP TRIGGER payload_unchanged")
        cursor.execute("UPDATE payload SET body = zeroblob(length(body)) WHERE place = 3")
    datastore.close()
    done = replay(place)
    assert (done.returncode, done.stdout) == (1, "")
    assert "position 3" in done.stderr
    assert views_of(place) == before


def test_it_works_while_others_run(place: Path) -> None:
    """A program that has the store open goes over to the new views, and neither hinders the other."""
    with Memory.open(place / "store", keys=place / "keys", model="none") as memory:
        assert len(memory.recall("note", limit=5)) == 5
        done = replay(place)
        assert done.returncode == 0, done.stderr
        memory.store("another note")
        assert len(memory.recall("note", limit=10)) == 6


def test_no_store_ends_with_1(tmp_path: Path) -> None:
    """Without a store there is nothing to replay, and nothing is made."""
    done = replay(tmp_path)
    assert done.returncode == 1
    assert list(tmp_path.iterdir()) == []
