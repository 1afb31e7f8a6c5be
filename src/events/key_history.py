"""What happened to the keys of an installation, on one stream of its memory log that everybody can find."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import Busy, RevisionConflict, StreamErased
from .envelope import stream_of
from .keys import Keys
from .kinds import Event, KeyBackupDeclined, KeysBackedUp
from .log import Append, Log
from .mapper import LoggedEvent
from .signing import key_id

NONCE = b"tallystick/keys\0"
TRIES = 20


def key_events(log: Log) -> list[LoggedEvent]:
    """Every event about the keys, oldest first, each verified."""
    return log.events_of(key_stream(log))


def record_key_event(log: Log, event: Event) -> int:
    """Append an event about the keys; returns its position."""
    for _ in range(TRIES):
        try:
            return _append(log, event)
        except (StreamErased, RevisionConflict):  # somebody else has just opened the stream
            continue
    raise Busy("Other writers keep changing what is on record of the keys. Try again.")


def is_backup_settled(log: Log, keys: Keys) -> bool:
    """Whether these keys were backed up, or a backup of them declined."""
    return is_settled_by(key_events(log), keys)


def is_settled_by(events: Sequence[LoggedEvent], keys: Keys) -> bool:
    """Whether these events say that these keys were backed up, or a backup of them declined."""
    ids = key_id(keys.root.public), key_id(keys.kek)
    return any(
        isinstance(logged.event, KeysBackedUp | KeyBackupDeclined) and (logged.event.root, logged.event.kek) == ids
        for logged in events
    )


def _append(log: Log, event: Event) -> int:
    stream = key_stream(log)
    if key_events(log):
        draft = log.following(stream, event)
    else:
        draft = log.opening(stream, event.model_copy(update={"nonce": NONCE}))
    return log.append(Append((draft,)))[0].position


def key_stream(log: Log) -> bytes:
    """The stream of the events about the keys."""
    return stream_of(log.origin, NONCE)
