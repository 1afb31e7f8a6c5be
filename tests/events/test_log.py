"""A log gives out what was verified and no more, and takes in only what can be told apart from damage."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tallystick.errors import KeysMissing, LogDamaged, Refused, StreamErased
from tallystick.events import vault
from tallystick.events.entries import START
from tallystick.events.envelope import Header, sign_entry
from tallystick.events.installation import Installation
from tallystick.events.kinds import Forgotten
from tallystick.events.log import Append
from tallystick.events.mapper import NEXT, Draft
from tallystick.events.sealing import new_data_key
from tallystick.events.vault import FIRST_GENERATION, DataKey

from .conftest import Place, forgotten, store, stored


@pytest.fixture
def audit(place: Place) -> Iterator[Installation]:
    """A store with one memory, opened with the root public key alone."""
    made = place.create()
    assert made.keys is not None
    store(made.memory, "a text")
    root = made.keys.root.public
    made.abandon()
    opened = Installation.audit(place.store, root, None)
    yield opened
    opened.abandon()


def test_without_keys_no_payload_is_opened(audit: Installation) -> None:
    """An auditor checks every entry; whoever asks for the texts is told to supply the keys."""
    tip = audit.memory.follow()
    assert tip.size == 2
    with pytest.raises(KeysMissing, match="without the key that opens its payloads. Supply the keys"):
        list(audit.memory.pages(-1, tip.size - 1))
    with audit.datastore.transaction(commit=False) as cursor, pytest.raises(KeysMissing):
        list(audit.memory.opened(cursor))


def test_without_the_key_that_signs_nothing_is_appended(place: Place) -> None:
    """Keys that came back from a backup open and verify; the log refuses to go on unsigned."""
    made = place.create()
    stream = store(made.memory, "a text")
    assert made.keys is not None
    publics = {name: getattr(made.keys, name).public for name in ("writer", "log")}
    made.close({})
    for name, public in publics.items():
        (place.keys / f"{name}.key").unlink()
        (place.keys / f"{name}.pub").write_text(public.hex() + "\n", encoding="ascii")
    opened = place.open()
    try:
        with pytest.raises(Refused, match="without the key that signs. Open it with its keys to write"):
            opened.memory.append(Append((opened.memory.following(stream, forgotten()),)))
        assert opened.memory.follow().size == 2
        assert [logged.header.revision for logged in opened.memory.events_of(stream)] == [0]
    finally:
        opened.abandon()


def test_a_stream_takes_no_second_data_key(installation: Installation) -> None:
    """A key that replaced the first would make what is sealed unreadable: the stream keeps the one it began with."""
    log = installation.memory
    stream = store(log, "a text")
    draft = Draft(stream, NEXT, forgotten(), DataKey(FIRST_GENERATION, new_data_key()), wrapped=bytes(72))
    with pytest.raises(StreamErased, match="takes no new data key. Store a new memory"):
        log.append(Append((draft,)))
    assert log.follow().size == 2
    log.append(Append((log.following(stream, forgotten("outdated")),)))
    events = [logged.event for logged in log.events_of(stream)]
    assert isinstance(events[1], Forgotten)


def test_what_the_file_refuses_though_it_is_free_is_damage(installation: Installation) -> None:
    """A data key where no stream is: the insert clashes with what no look at the log has shown. Nothing is written."""
    log = installation.memory
    stream, nonce = log.new_stream()
    with installation.datastore.transaction(commit=True) as cursor:
        cursor.execute("INSERT INTO data_key VALUES (1, 1, ?)", (bytes(72),))
    draft = log.opening(stream, stored("a text", nonce))
    with pytest.raises(LogDamaged, match=r"memory log: the index of log\.db is damaged.*run `tallystick verify`"):
        log.append(Append((draft,)))
    assert log.follow().size == 1
    with installation.datastore.transaction(commit=True) as cursor:
        cursor.execute("DELETE FROM data_key WHERE place = 1")
    assert log.events_of(store(log, "another text"))


def test_a_page_that_is_not_there_is_named(installation: Installation) -> None:
    """Whoever asks for more than the log has is told where it ends; a view never takes silence for the end."""
    log = installation.memory
    store(log, "a text")
    with pytest.raises(LogDamaged, match="memory log, position 2: the entry is missing") as damage:
        list(log.pages(-1, 9))
    assert damage.value.position == 2


def test_a_walk_past_the_end_names_what_is_missing(installation: Installation) -> None:
    """An entry that must be there and is not is damage, after all that is there was given out."""
    store(installation.memory, "a text")
    with installation.datastore.transaction(commit=False) as cursor:
        walk = installation.memory.recorder.walk(cursor, START, 3)
        assert [next(walk)[0].header.position for _ in range(2)] == [0, 1]
        with pytest.raises(LogDamaged, match="position 2: the entry is missing"):
            next(walk)


def test_a_log_begins_with_the_root_of_an_empty_one(installation: Installation) -> None:
    """Even a signed first entry that claims something before it is refused: there is no log before position 0."""
    log, keys = installation.memory, installation.keys
    assert keys is not None
    header = log.event_at(0).header
    entry = sign_entry(Header(**{**header._asdict(), "root": b"r" * 32}), keys.writer)
    with installation.datastore.transaction(commit=True) as cursor:
        for (name,) in cursor.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
            cursor.execute(f"DROP TRIGGER {name}")
        cursor.execute("UPDATE entry SET entry = ? WHERE place = 0", (entry,))
    with installation.datastore.transaction(commit=False) as cursor:
        with pytest.raises(LogDamaged, match="position 0: its root is not that of an empty log"):
            log.recorder.advance(cursor, START)


def test_a_data_key_that_is_not_remembered_is_looked_up(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many streams a process has seen, it remembers some, and reads them all."""
    monkeypatch.setattr(vault, "REMEMBERED", 2)
    log = installation.memory
    streams = [store(log, f"text {n}") for n in range(5)]
    for _ in range(2):
        assert [len(log.events_of(stream)) for stream in streams] == [1] * 5
    assert log._vault is not None
    assert len(log._vault._remembered) == 2
