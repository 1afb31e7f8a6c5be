"""The list of keys says where each is and what it is for, and no secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from tallystick import KeyList, Memory
from tallystick.errors import NotFound
from tallystick.events.installation import Installation
from tallystick.events.keys import NAMES, SIGNING
from tallystick.events.kinds import LogCreated
from tallystick.events.signing import key_id


@pytest.fixture
def listed(tmp_path: Path) -> KeyList:
    """The keys of a new store."""
    Memory.open(tmp_path / "store", keys=tmp_path / "keys", model="none").close()
    return Memory.list_keys(tmp_path / "store", keys=tmp_path / "keys")


def test_every_key_is_listed_by_what_the_log_knows_it_by(listed: KeyList, tmp_path: Path) -> None:
    """The ids are those that stand in the log's first event, where anybody can compare them."""
    rows = {row.name: row for row in listed.keys}
    assert tuple(rows) == NAMES
    installation = Installation.audit(tmp_path / "store", None, tmp_path / "keys")
    created = installation.memory.event_at(0).event
    installation.abandon()
    assert isinstance(created, LogCreated)
    assert (listed.store, listed.place) == (created.store.hex(), str(tmp_path / "keys"))
    assert [rows[name].public for name in SIGNING] == [
        key.hex() for key in (created.root, created.writer, created.checkpoint)
    ]
    assert rows["writer"].id == key_id(created.writer).hex()
    assert (rows["kek"].id, rows["index"].id) == (created.kek.hex(), created.index.hex())
    assert {row.state for row in listed.keys} == {"here"}


def test_no_secret_is_listed(listed: KeyList, tmp_path: Path) -> None:
    """Not one of the six, in any field."""
    secrets = [path.read_text().strip() for path in (tmp_path / "keys").glob("*.key")]
    assert len(secrets) == len(NAMES)
    assert not [secret for secret in secrets if secret in str(listed)]


def test_what_is_wrong_with_a_key_is_listed(listed: KeyList, tmp_path: Path) -> None:
    """Missing, unreadable, or only its public half: the list is made all the same, and no key with it."""
    keys = tmp_path / "keys"
    (keys / "kek.key").unlink()
    (keys / "views.key").write_text("no key")
    (keys / "writer.pub").write_text({row.name: row.public for row in listed.keys}["writer"])
    (keys / "writer.key").unlink()
    rows = {row.name: row for row in Memory.list_keys(tmp_path / "store", keys=keys).keys}
    assert [rows[name].state for name in NAMES] == ["here", "public half", "here", "missing", "unreadable", "here"]
    assert rows["writer"].where == str(keys / "writer.pub")
    assert rows["writer"].id == {row.name: row.id for row in listed.keys}["writer"]
    assert (rows["kek"].id, rows["views"].id) == ("", "")
    assert not (keys / "kek.key").exists()


def test_without_a_store_there_is_nothing_to_list(tmp_path: Path) -> None:
    """Keys are those of a store."""
    with pytest.raises(NotFound):
        Memory.list_keys(tmp_path / "nowhere")
