"""The keys of a store: what each is for, its public id, and where it is."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple

from ..errors import KeysMissing
from ..events.installation import store_of
from ..events.key_places import Held, KeySource, find_keys, place_of
from ..events.keys import NAMES, SIGNING, KeyPlace, read_entry
from ..events.signing import SeedSigner, key_id

USES = {
    "root": "signs which keys may sign; names the store to whoever audits it",
    "writer": "signs every event",
    "log": "signs checkpoints",
    "kek": "opens the keys that open the texts",
    "views": "encrypts views and vectors",
    "index": "hides what may exist only once",
}

State = Literal["here", "public half", "held", "missing", "unreadable"]


class KeyRow(NamedTuple):
    """One key. `id` is in clear in the log for all but `views`; `public` is empty for a key that does not sign."""

    name: str
    use: str
    state: State
    id: str
    public: str
    where: str


class KeyList(NamedTuple):
    """Every key of a store, and the place they are kept in."""

    store: str
    place: str
    keys: tuple[KeyRow, ...]


def list_keys(path: Path, keys: KeySource) -> KeyList:
    """Look at the keys without opening the store. Keys that are missing or unreadable are listed as that."""
    store = store_of(path)
    place = place_of(keys, store)
    rows = _held_rows(keys, store) if isinstance(place, Held) else tuple(_row(place, name) for name in NAMES)
    return KeyList(store.hex(), str(place), rows)


def _held_rows(source: KeySource, store: bytes) -> tuple[KeyRow, ...]:
    keys = find_keys(source, store)
    return tuple(
        _row_of(name, "held", getattr(keys, name).public if name in SIGNING else getattr(keys, name), str(keys.place))
        for name in NAMES
    )


def _row(place: KeyPlace, name: str) -> KeyRow:
    where = place.where(f"{name}.key")
    try:
        key, half = read_entry(place, f"{name}.key"), read_entry(place, f"{name}.pub") if name in SIGNING else None
    except KeysMissing:
        return KeyRow(name, USES[name], "unreadable", "", "", where)
    if key is not None:
        return _row_of(name, "here", SeedSigner(key).public if name in SIGNING else key, where)
    if half is not None:
        return _row_of(name, "public half", half, place.where(f"{name}.pub"))
    return KeyRow(name, USES[name], "missing", "", "", where)


def _row_of(name: str, state: State, key: bytes, where: str) -> KeyRow:
    return KeyRow(name, USES[name], state, key_id(key).hex(), key.hex() if name in SIGNING else "", where)
