"""What log.db says of itself is what was written, or an error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.errors import LogDamaged
from tallystick.events.driver import Datastore, File
from tallystick.events.settings import CHECKSUM_BYTES, SCHEMA, read_setting, write_setting


@pytest.fixture(scope="module")
def datastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Datastore]:
    """A file with the settings' table and nothing in it."""
    opened = Datastore(File(tmp_path_factory.mktemp("settings") / "log.db", LogDamaged))
    with opened.transaction(commit=True) as cursor:
        for statement in SCHEMA:
            cursor.execute(statement)
    yield opened
    opened.close()


def write(datastore: Datastore, name: str, value: bytes) -> None:
    """Write one setting in a transaction of its own."""
    with datastore.transaction(commit=True) as cursor:
        write_setting(cursor, name, value)


def overwrite(datastore: Datastore, name: str, raw: bytes) -> None:
    """Put these bytes in the row, as somebody would who does not know the checksum."""
    with datastore.transaction(commit=True) as cursor:
        cursor.execute("INSERT OR REPLACE INTO setting VALUES (?, ?)", (name, raw))


def raw(datastore: Datastore, name: str) -> bytes:
    """The bytes in the row."""
    return bytes(datastore.rows("SELECT value FROM setting WHERE name = ?", (name,))[0][0])


@given(st.binary(max_size=200))
def test_a_setting_is_read_as_it_was_written(datastore: Datastore, value: bytes) -> None:
    """Any bytes, none too."""
    write(datastore, "name", value)
    assert read_setting(datastore, "name") == value


def test_a_setting_that_was_never_written_is_none(datastore: Datastore) -> None:
    """Which is not the same as empty."""
    write(datastore, "empty", b"")
    assert (read_setting(datastore, "empty"), read_setting(datastore, "absent")) == (b"", None)


def test_the_newest_value_counts(datastore: Datastore) -> None:
    """Writing again replaces."""
    write(datastore, "name", b"old")
    write(datastore, "name", b"new")
    assert read_setting(datastore, "name") == b"new"


@given(st.data())
def test_any_changed_byte_is_found(datastore: Datastore, data: st.DataObject) -> None:
    """Value and checksum, each bit of them."""
    write(datastore, "format", b"\0\0\0\1")
    changed = bytearray(raw(datastore, "format"))
    changed[data.draw(st.integers(0, len(changed) - 1))] ^= data.draw(st.integers(1, 255))
    overwrite(datastore, "format", bytes(changed))
    with pytest.raises(LogDamaged, match="The setting 'format' of log.db is not what was written"):
        read_setting(datastore, "format")


@pytest.mark.parametrize("length", range(CHECKSUM_BYTES + 4))
def test_a_value_that_was_cut_is_found(datastore: Datastore, length: int) -> None:
    """However little is left of it."""
    write(datastore, "format", b"\0\0\0\1")
    overwrite(datastore, "format", raw(datastore, "format")[:length])
    with pytest.raises(LogDamaged, match="is not what was written"):
        read_setting(datastore, "format")


def test_a_value_under_another_name_is_found(datastore: Datastore) -> None:
    """The checksum covers the name: rows can't be exchanged."""
    write(datastore, "views", b"views-1.db")
    overwrite(datastore, "store", raw(datastore, "views"))
    with pytest.raises(LogDamaged, match="The setting 'store'"):
        read_setting(datastore, "store")


def test_a_missing_table_is_damage(tmp_path: Path) -> None:
    """A file without settings is no store."""
    datastore = Datastore(File(tmp_path / "log.db", LogDamaged))
    with pytest.raises(LogDamaged, match="no such table"):
        read_setting(datastore, "format")
    datastore.close()
