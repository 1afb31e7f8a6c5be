"""What happens to the keys is on record in one stream, whoever writes to it first."""

from __future__ import annotations

from typing import Any

import pytest

from tallystick.events.installation import Installation
from tallystick.events.key_history import is_backup_settled, key_events, record_key_event
from tallystick.events.kinds import KeyBackupDeclined
from tallystick.events.log import Append
from tallystick.events.signing import key_id

from .conftest import NOW, Place


def declined(installation: Installation, actor: str) -> KeyBackupDeclined:
    """A backup of these keys that somebody declined."""
    assert installation.keys is not None
    root, kek = key_id(installation.keys.root.public), key_id(installation.keys.kek)
    return KeyBackupDeclined(recorded_at=NOW, actor=actor, root=root, kek=kek)


def test_who_comes_second_to_open_the_stream_joins_it(
    place: Place, installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two that write its first event at once are both on record, one after the other."""
    log, other = installation.memory, place.open()
    append = log.append

    def append_and_be_overtaken(request: Append, *, durable: bool = True) -> Any:
        monkeypatch.undo()
        record_key_event(other.memory, declined(other, "user:first"))
        return append(request, durable=durable)

    monkeypatch.setattr(log, "append", append_and_be_overtaken)
    assert record_key_event(log, declined(installation, "user:second")) == 2
    assert [logged.event.actor for logged in key_events(log)] == ["user:first", "user:second"]
    other.abandon()


def test_what_was_declined_for_other_keys_settles_nothing(installation: Installation) -> None:
    """A backup of keys that were exchanged since does not bring these ones back."""
    log, keys = installation.memory, installation.keys
    assert keys is not None
    record_key_event(log, declined(installation, "user:ana").model_copy(update={"kek": b"another!"}))
    assert not is_backup_settled(log, keys)
    record_key_event(log, declined(installation, "user:ana"))
    assert is_backup_settled(log, keys)
