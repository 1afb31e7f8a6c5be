"""Back up the keys, decline to on the record, and bring a backup back."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ..errors import Refused
from ..events.installation import require_fitting, store_of
from ..events.key_backup import ENOUGH, Backup, read_backup, write_backup
from ..events.key_history import record_key_event
from ..events.key_places import KeySource, place_of, refuse_losing_place
from ..events.keys import KeyPlace, Keys, keys_from, read_entry
from ..events.kinds import KeyBackupDeclined, KeysBackedUp
from ..events.signing import key_id
from .session import Session


class KeyBackup(NamedTuple):
    """A backup that was written: its file, its id, the file's SHA-256, and the position of the event that says so."""

    file: str
    id: str
    digest: str
    position: int


class RestoredKeys(NamedTuple):
    """Keys that were brought back: which, to where, from which backup; and whether the store can be written again."""

    place: str
    entries: tuple[str, ...]
    backup: str
    sign: bool


def back_up_keys(session: Session, file: Path, passphrase: str) -> KeyBackup:
    """Seal the keys that may leave the installation into a new file, and put that on record. Both or neither."""
    session.require_signing()
    keys, path = _keys(session), file.absolute()
    _refuse_places_that_go_together(session, keys, path)
    now, store = session.now(), store_of(session.installation.path)
    backup = Backup.seal(keys.entries(), passphrase, store=store, made_at=now, effort=ENOUGH)
    digest = write_backup(path, backup)
    try:
        position = record_key_event(session.installation.memory, _backed_up(session, keys, backup, digest))
    except BaseException:
        path.unlink()
        raise
    return KeyBackup(str(path), backup.id.hex(), digest.hex(), position)


def decline_key_backup(session: Session, reason: str | None) -> int:
    """Put on record that these keys need no backup; returns the event's position."""
    session.require_signing()
    keys = _keys(session)
    event = session.event(KeyBackupDeclined, root=key_id(keys.root.public), kek=key_id(keys.kek), reason=reason)
    return record_key_event(session.installation.memory, event)


def restore_keys(path: Path, file: Path, passphrase: str, keys: KeySource) -> RestoredKeys:
    """Bring the keys of the store in a directory back from a backup: those that are missing, over none that is there.

    Raises Refused where the backup is damaged or another store's, the passphrase is wrong, or other keys are there.
    """
    store, backup = store_of(path), read_backup(file)
    if backup.store != store:
        raise Refused(
            f"{file} is a backup of the keys of store {backup.store.hex()}, and {path} is store {store.hex()}. "
            f"Name the backup of this store."
        )
    place = place_of(keys, store)
    if place.given:
        raise Refused(f"Keys can't be brought back to {place}. Name a directory with keys= or TALLYSTICK_KEYS.")
    if place.directory is not None:
        refuse_losing_place(place.directory, path)
    entries = backup.open(passphrase)
    require_fitting(path, keys_from(place, entries))
    missing = _missing(place, entries)
    place.write({entry: key.hex() for entry, key in missing.items()})
    sign = all(entry in place.holds() for entry in ("writer.key", "log.key"))
    return RestoredKeys(str(place), tuple(missing), backup.id.hex(), sign)


def _backed_up(session: Session, keys: Keys, backup: Backup, digest: bytes) -> KeysBackedUp:
    root, kek = key_id(keys.root.public), key_id(keys.kek)
    return session.event(KeysBackedUp, backup=backup.id, digest=digest, root=root, kek=kek)


def _missing(place: KeyPlace, entries: dict[str, bytes]) -> dict[str, bytes]:
    """What of a backup a place does not have. Raises Refused where it has something else, or all of it."""
    held = place.holds()
    for entry in held:
        if entry in entries and read_entry(place, entry) != entries[entry]:
            raise Refused(f"{place.where(entry)} is there and is another key. Name an empty place with keys=.")
    missing = {
        entry: key for entry, key in entries.items() if entry not in held and entry.replace(".pub", ".key") not in held
    }
    if not missing:
        raise Refused(f"All keys that the backup holds are in {place} already: nothing was changed. Open the store.")
    return missing


def _keys(session: Session) -> Keys:
    keys = session.installation.keys
    assert keys is not None
    return keys


def _refuse_places_that_go_together(session: Session, keys: Keys, path: Path) -> None:
    """Refuse a backup in the store, which is copied without keys, and one beside the keys, which is lost with them."""
    for directory in (session.installation.path, keys.place.directory):
        if directory is not None and path.parent.resolve().is_relative_to(directory.resolve()):
            raise Refused(f"The backup may not lie in {directory}: it has to outlive it. Name a file on another disk.")
