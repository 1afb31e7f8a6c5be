"""Verifying a store: what is checked, what is reported, and what a view that is wrong is called."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tallystick import Memory
from tallystick.errors import LogDamaged, Refused, ViewsDamaged
from tallystick.events.driver import Datastore, File
from tallystick.events.installation import Installation
from tallystick.projections.views import ALL_VIEWS, Group, Positions, Views
from tallystick.queries.verify import Depth, verify


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """A store that was opened twice, with a little history in both logs."""
    for number in range(2):
        with Memory.open(tmp_path / "store", keys=tmp_path / "keys", model="none") as first:
            first.store(f"Note {number}", command_id=f"c{number}", key=f"k{number}")
            first.store("Said twice")
            first.recall("note")
    with Memory.open(tmp_path / "store", keys=tmp_path / "keys", model="none") as opened:
        opened.forget(opened.recall("said twice").hits[0].id)
        yield opened


def test_the_report_counts_what_was_checked(memory: Memory) -> None:
    """Of each log: entries, root, signatures, payloads that were opened, and signed checkpoints."""
    report = memory.verify()
    status = memory.status()
    assert (report.depth, report.views) == ("full", {})
    for log in report.logs:
        assert (log.size, log.root) == (status.logs[log.log], status.roots[log.log])
        assert log.signatures == log.payloads == log.size
        assert log.checkpoints == 2
    assert [(log.log, log.size) for log in report.logs] == [("memory", 6), ("access", 4)]


def test_the_structure_is_checked_without_opening_anything(memory: Memory) -> None:
    """A quick look reads every entry and opens no payload and no signature, and says so."""
    report = memory.verify(depth="structure")
    assert report.depth == "structure"
    assert [(log.size, log.signatures, log.payloads) for log in report.logs] == [(6, 0, 0), (4, 0, 0)]
    assert [log.root for log in report.logs] == list(memory.status().roots.values())


def test_a_depth_that_is_none_is_refused(memory: Memory) -> None:
    """A misspelt depth must not check less than was meant."""
    with pytest.raises(Refused, match="depth"):
        memory.verify(depth="ful")  # type: ignore[arg-type]


def test_the_digests_of_the_views_are_reported(memory: Memory) -> None:
    """Where it is asked for, each view is compared with a rebuild, and its digest is given."""
    report = memory.verify(views=True)
    assert set(report.views) == {view.name for view in ALL_VIEWS}
    assert report.views == memory.rebuild().after


def overtake(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let somebody store and recall each time that views have caught up, eight times: the store is in use."""
    catch_up, left = Views.catch_up, list(range(8))

    def catch_up_and_be_overtaken(self: Views, *groups: Group, upto: Positions | None = None) -> int:
        folded = catch_up(self, *groups, upto=upto)
        if left:
            number, left[:] = left[0], []
            memory.store(f"Stored meanwhile {number}")
            memory.recall("meanwhile")
            left[:] = range(number + 1, 8)
        return folded

    monkeypatch.setattr(Views, "catch_up", catch_up_and_be_overtaken)


def test_views_of_a_store_in_use_are_compared_at_one_position(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is stored and recalled while the views are compared is no difference between them."""
    overtake(memory, monkeypatch)
    memory.verify(views=True)


DAMAGE = {
    "memories": "UPDATE memories SET importance = 0.9 WHERE number = 1",
    "keyword": "INSERT INTO keyword (rowid, own, tags) VALUES (1000, 'lisbon', '')",
    "vector": "DELETE FROM vector WHERE number = 2",
    "access": "UPDATE access SET actor = 'somebody else'",
    "audit": "DELETE FROM audit WHERE log = 'access'",
}


@pytest.mark.parametrize("view", DAMAGE)
def test_a_view_that_is_wrong_is_named(memory: Memory, view: str) -> None:
    """A view that says something else than the log is named, and mended by a rebuild."""
    memory.log()
    with memory._opened.views.opened().datastore.transaction(commit=True) as cursor:
        cursor.execute(DAMAGE[view])
    memory.verify()
    with pytest.raises(ViewsDamaged, match=f"`{view}`.*tallystick replay"):
        memory.verify(views=True)
    memory.rebuild(reason=f"{view} was wrong")
    memory.verify(views=True)


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM claim WHERE tag = (SELECT min(tag) FROM claim)",
        "UPDATE claim SET place = place + 1 WHERE tag = (SELECT max(tag) FROM claim)",
        "INSERT INTO claim VALUES (zeroblob(16), 1)",
        "DELETE FROM data_key WHERE place = (SELECT min(place) FROM data_key)",
        "UPDATE checkpoint SET note = x'00'",
        "DELETE FROM payload WHERE place = 2",
    ],
)
def test_what_stands_beside_the_log_is_checked(memory: Memory, damage: str) -> None:
    """Claims, data keys, checkpoints and payloads must be those that the events account for."""
    memory.verify()
    with memory._opened.installation.datastore.transaction(commit=True) as cursor:
        cursor.execute(damage)
    with pytest.raises(LogDamaged):
        memory.verify()


NAMED = {
    "INSERT INTO entry SELECT 2 << 48, 2, id, stream, revision, entry FROM entry WHERE place = 1": "of no log",
    "INSERT INTO entry SELECT -7, 0, zeroblob(16), stream, revision + 9, entry FROM entry WHERE place = 1": "of no log",
    "INSERT INTO payload VALUES (4711, zeroblob(9))": "a payload of no entry .4711.",
    "INSERT INTO data_key VALUES (-1, 1, zeroblob(9))": "a data key of no log .-1.",
    "INSERT INTO checkpoint VALUES (2, 9, zeroblob(9))": "a checkpoint of no log .2.",
    "INSERT INTO setting VALUES ('views', zeroblob(32))": "an unknown setting .'views'.",
    "DROP TRIGGER entry_kept": "the trigger entry_kept is missing",
    "DROP INDEX entry_id": "the index entry_id is missing",
    "CREATE TABLE other (text TEXT)": "the table other is unknown",
    "ALTER TABLE payload ADD COLUMN more TEXT": "the table payload is changed",
    "DELETE FROM checkpoint WHERE size = (SELECT min(size) FROM checkpoint)": "1 signed checkpoints are gone",
    "DELETE FROM checkpoint": "4 signed checkpoints are gone",
}


@pytest.mark.parametrize("depth", ["structure", "full"])
@pytest.mark.parametrize("damage", NAMED)
def test_what_is_of_no_log_is_named(memory: Memory, damage: str, depth: Depth) -> None:
    """Rows outside the logs, tables that are not as they were made, and what was there and is gone."""
    memory.verify(depth=depth)
    with memory._opened.installation.datastore.transaction(commit=True) as cursor:
        cursor.execute(damage)
    with pytest.raises(LogDamaged, match=NAMED[damage]):
        memory.verify(depth=depth)


def test_deleted_checkpoints_are_missed_in_a_closed_store(tmp_path: Path) -> None:
    """The mark remembers how many there were when the store was closed."""
    for number in range(2):
        with Memory.open(tmp_path / "store", keys=tmp_path / "keys", model="none") as memory:
            memory.store(f"Note {number}")
    datastore = Datastore(File(tmp_path / "store" / "log.db", LogDamaged))
    with datastore.transaction(commit=True) as cursor:
        cursor.execute("DELETE FROM checkpoint WHERE size < (SELECT max(size) FROM checkpoint)")
    datastore.close()
    audit = Installation.audit(tmp_path / "store", None, tmp_path / "keys")
    try:
        with pytest.raises(LogDamaged, match="checkpoints are gone"):
            verify(audit)
    finally:
        audit.abandon()


def test_without_secret_keys_payloads_stay_closed(memory: Memory, tmp_path: Path) -> None:
    """An auditor with the root public key checks every entry, root, hash and signature, and opens nothing."""
    keys = memory._opened.installation.keys
    assert keys is not None
    audit = Installation.audit(tmp_path / "store", keys.root.public, None)
    try:
        report = verify(audit)
    finally:
        audit.abandon()
    assert [(log.size, log.signatures, log.payloads, log.checkpoints) for log in report.logs] == [
        (6, 6, 0, 2),
        (4, 4, 0, 2),
    ]
    assert [log.root for log in report.logs] == [log.root for log in memory.verify().logs]


@pytest.mark.parametrize(
    "steps", [["text"], ["subject"], ["subject", "text"], ["text", "subject"], ["text", "cleared", "text"]]
)
def test_what_a_revised_memory_claims_follows_its_text_and_its_subject(memory: Memory, steps: list[str]) -> None:
    """In whatever order they were revised, the claim is that of what the memory says in the end."""
    stored = memory.store("what it said first", subject="user:ana")
    fields: dict[str, dict[str, Any]] = {"subject": {"subject": "user:bo"}, "cleared": {"cleared": ["subject"]}}
    for number, step in enumerate(steps):
        memory.revise(stored.id, **fields.get(step, {"text": f"what it said then, {number}"}))
    memory.verify()
    assert memory.store("what it said first", subject="user:ana").status == "stored"
    memory.verify()
