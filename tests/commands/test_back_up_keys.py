"""A backup of the keys is a file and an event, both or neither; bringing it back never replaces a key."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from tallystick import Memory
from tallystick.errors import KeysMissing, LogDamaged, NotFound, Refused
from tallystick.events.driver import Datastore, File
from tallystick.events.key_backup import read_backup
from tallystick.events.key_history import key_events
from tallystick.events.keys import NAMES
from tallystick.events.kinds import KeyBackupDeclined, KeysBackedUp
from tallystick.events.settings import write_setting

PASSPHRASE = "correct horse battery"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """A store with one memory, and its keys beside it."""
    with Memory.open(tmp_path / "store", keys=tmp_path / "keys", model="none", actor="user:ana") as opened:
        opened.store("The office is in Lisbon", key="office")
        yield opened


@pytest.fixture
def backup(memory: Memory, tmp_path: Path) -> Path:
    """A backup of its keys; the store is closed."""
    memory.back_up_keys(tmp_path / "backup", PASSPHRASE)
    memory.close()
    return tmp_path / "backup"


def restore(tmp_path: Path, **changes: object) -> tuple[str, ...]:
    """Bring the backup back; returns what was written."""
    given = {"file": tmp_path / "backup", "passphrase": PASSPHRASE, "keys": tmp_path / "keys", **changes}
    return Memory.restore_keys(tmp_path / "store", **given).entries  # type: ignore[arg-type]


def test_a_backup_is_on_record(memory: Memory, tmp_path: Path) -> None:
    """Who made it, and what identifies the file; not where it went, and no secret."""
    made = memory.back_up_keys(tmp_path / "backup", PASSPHRASE)
    (logged,) = key_events(memory._opened.log)
    event = logged.event
    assert isinstance(event, KeysBackedUp)
    assert (event.actor, logged.header.position) == ("user:ana", made.position)
    assert (event.backup.hex(), event.digest.hex()) == (made.id, made.digest)
    assert event.digest == sha256((tmp_path / "backup").read_bytes()).digest()
    assert read_backup(tmp_path / "backup").id == event.backup
    assert str(tmp_path) not in repr(event)
    assert memory.log(limit=1)[0].kind == "keys.backed_up"


def test_each_backup_and_each_refusal_of_one_is_on_record(memory: Memory, tmp_path: Path) -> None:
    """On one stream, which two openings find and continue."""
    memory.decline_key_backup(reason="a test")
    with Memory.open(tmp_path / "store", keys=tmp_path / "keys", model="none") as other:
        other.back_up_keys(tmp_path / "a", PASSPHRASE)
    memory.back_up_keys(tmp_path / "b", PASSPHRASE)
    events = key_events(memory._opened.log)
    assert [type(logged.event) for logged in events] == [KeyBackupDeclined, KeysBackedUp, KeysBackedUp]
    assert [logged.header.revision for logged in events] == [0, 1, 2]
    memory.verify(views=True)


def test_backups_at_the_same_time_are_all_on_record(memory: Memory) -> None:
    """Whoever opens the stream first: nobody is refused for it."""
    threads = [threading.Thread(target=memory.decline_key_backup) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(key_events(memory._opened.log)) == 8


def test_no_signing_key_but_the_root_is_in_a_backup(backup: Path, tmp_path: Path) -> None:
    """What signs events never leaves the installation."""
    sealed = read_backup(backup).open(PASSPHRASE)
    assert set(sealed) == {"root.key", "kek.key", "views.key", "index.key", "writer.pub", "log.pub"}
    for name in ("writer", "log"):
        assert bytes.fromhex((tmp_path / "keys" / f"{name}.key").read_text()) not in sealed.values()


@pytest.mark.parametrize("where", ["store/backup", "keys/backup", "link/backup"])
def test_a_backup_beside_what_it_is_a_backup_of_is_refused(memory: Memory, tmp_path: Path, where: str) -> None:
    """It would be copied with the store, or lost with the keys."""
    (tmp_path / "link").symlink_to(tmp_path / "keys")
    with pytest.raises(Refused, match="has to outlive it"):
        memory.back_up_keys(tmp_path / where, PASSPHRASE)
    assert key_events(memory._opened.log) == []
    assert not (tmp_path / where).exists()


@pytest.mark.parametrize("passphrase", ["", "too short"])
def test_without_a_file_there_is_no_event(memory: Memory, tmp_path: Path, passphrase: str) -> None:
    """A backup that was not written is not on record."""
    with pytest.raises(Refused, match="passphrase"):
        memory.back_up_keys(tmp_path / "backup", passphrase)
    (tmp_path / "there").write_text("precious")
    with pytest.raises(Refused, match="there already"):
        memory.back_up_keys(tmp_path / "there", PASSPHRASE)
    assert key_events(memory._opened.log) == []
    assert (tmp_path / "there").read_text() == "precious"
    assert not (tmp_path / "backup").exists()


def test_without_an_event_there_is_no_file(memory: Memory, tmp_path: Path) -> None:
    """What can't be put on record is taken back: an actor that no event may have stands for all of it."""
    memory._opened.session = memory._opened.session._replace(actor="x" * 513)
    with pytest.raises(Refused, match="actor"):
        memory.back_up_keys(tmp_path / "backup", PASSPHRASE)
    assert not (tmp_path / "backup").exists()


def test_lost_keys_come_back_and_the_store_is_read(backup: Path, tmp_path: Path) -> None:
    """Everything is readable and verifies; nothing can be written, and nothing is put on record."""
    shutil.rmtree(tmp_path / "keys")
    assert "writer.pub" in restore(tmp_path)
    assert not (tmp_path / "keys" / "writer.key").exists()
    with Memory.open(tmp_path / "store", keys=tmp_path / "keys", model="none") as memory:
        (hit,) = memory.recall("where is the office?")
        assert memory.get(hit.id).text == "The office is in Lisbon"
        assert len(memory.history(hit.id)) == 1
        assert len(list(memory.events())) == memory.status().logs["memory"] - 1
        memory.verify(views=True)
        for change in (
            lambda: memory.store("The office moved"),
            lambda: memory.forget(hit.id),
            lambda: memory.decline_key_backup(),
            lambda: memory.back_up_keys(tmp_path / "another", PASSPHRASE),
        ):
            with pytest.raises(Refused, match="don't sign"):
                change()
        assert memory.status().logs == {"memory": 3, "access": 1}
    assert not (tmp_path / "another").exists()


def test_a_store_without_views_is_read_after_a_replay(backup: Path, tmp_path: Path) -> None:
    """A copy of log.db and a backup of the keys are all it takes, though the replay can't be put on record."""
    shutil.rmtree(tmp_path / "keys")
    for file in (tmp_path / "store").iterdir():
        if file.name != "log.db":
            file.unlink()
    restore(tmp_path)
    rebuilt = Memory.replay(tmp_path / "store", keys=tmp_path / "keys")
    assert set(rebuilt.after) >= {"memories", "keyword"}
    with Memory.open(tmp_path / "store", keys=tmp_path / "keys", model="none") as memory:
        assert len(memory.recall("office")) == 1
        assert memory.status().logs["memory"] == 3


@pytest.mark.parametrize("lost", [name for name in NAMES if name not in ("writer", "log")])
def test_one_lost_key_comes_back_and_the_store_is_written(backup: Path, tmp_path: Path, lost: str) -> None:
    """Only what is missing is written: the keys that sign are still there."""
    (tmp_path / "keys" / f"{lost}.key").unlink()
    kept = {path: path.read_bytes() for path in (tmp_path / "keys").glob("*.key")}
    assert restore(tmp_path) == (f"{lost}.key",)
    assert {path: path.read_bytes() for path in kept} == kept
    with Memory.open(tmp_path / "store", keys=tmp_path / "keys", model="none") as memory:
        assert memory.store("The office moved", key="office").status == "superseded"
        memory.verify(views=True)


def test_nothing_is_written_where_nothing_is_missing(backup: Path, tmp_path: Path) -> None:
    """A restore that does nothing says so."""
    with pytest.raises(Refused, match="already: nothing was changed"):
        restore(tmp_path)


@pytest.mark.parametrize("entry", ["root.key", "kek.key"])
def test_another_key_is_never_replaced(backup: Path, tmp_path: Path, entry: str) -> None:
    """What is there stays there, and nothing else is written beside it."""
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / entry).write_text("ab" * 32)
    with pytest.raises(Refused, match=f"{entry} is there and is another key"):
        restore(tmp_path, keys=tmp_path / "others")
    assert {path.name: path.read_text() for path in (tmp_path / "others").iterdir()} == {entry: "ab" * 32}


def test_the_backup_of_another_store_is_refused(backup: Path, tmp_path: Path) -> None:
    """Before anybody is asked for a passphrase, and naming both."""
    with Memory.open(tmp_path / "other", keys=tmp_path / "other-keys", model="none") as other:
        other.back_up_keys(tmp_path / "other-backup", PASSPHRASE)
    with pytest.raises(Refused, match="Name the backup of this store"):
        restore(tmp_path, file=tmp_path / "other-backup", keys=tmp_path / "new", passphrase="wrong")
    assert not (tmp_path / "new").exists()


def test_keys_that_do_not_fit_the_log_are_not_written(backup: Path, tmp_path: Path) -> None:
    """A store whose log was replaced under the same id is found out before a key is written."""
    with Memory.open(tmp_path / "other", keys=tmp_path / "other-keys", model="none") as other:
        other.store("something else")
    store_id = read_backup(backup).store
    datastore = Datastore(File(tmp_path / "other" / "log.db", LogDamaged))
    with datastore.transaction(commit=True) as cursor:
        write_setting(cursor, "store", store_id)
    datastore.close()
    with pytest.raises((KeysMissing, LogDamaged), match="root key"):
        Memory.restore_keys(tmp_path / "other", backup, PASSPHRASE, keys=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_what_can_not_be_restored_is_said(backup: Path, tmp_path: Path) -> None:
    """No store, no file, a wrong passphrase, a place that is only read, keys inside the store: nothing is written."""
    with pytest.raises(NotFound):
        Memory.restore_keys(tmp_path / "nowhere", backup, PASSPHRASE, keys=tmp_path / "new")
    with pytest.raises(KeysMissing, match="can't be read"):
        restore(tmp_path, file=tmp_path / "nowhere", keys=tmp_path / "new")
    with pytest.raises(Refused, match="passphrase is not the one"):
        restore(tmp_path, passphrase="wrong", keys=tmp_path / "new")
    with pytest.raises(Refused, match="brought back to env"):
        restore(tmp_path, keys="env")
    with pytest.raises(Refused, match="may not lie inside the store"):
        restore(tmp_path, keys=tmp_path / "store" / "keys")
    assert not (tmp_path / "new").exists()


def test_without_a_word_the_keys_go_where_they_are_looked_for(tmp_path: Path, home: Path) -> None:
    """The user's own key directory."""
    with Memory.open(tmp_path / "store", model="none") as memory:
        memory.back_up_keys(tmp_path / "backup", PASSPHRASE)
        keys = Path(memory.status().keys)
    shutil.rmtree(keys)
    assert Memory.restore_keys(tmp_path / "store", tmp_path / "backup", PASSPHRASE).place == str(keys)
    with Memory.open(tmp_path / "store", model="none", create=False) as memory:
        assert len(list(memory.events())) == 1
