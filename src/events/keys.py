"""The keys of one installation: what they are, the places they are kept in, and how they are read and made."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from ..errors import KeysMissing, Refused
from .signing import SeedSigner, Signer

KEY_BYTES = 32
SIGNING = ("root", "writer", "log")
SECRET = ("kek", "views", "index")
NAMES = SIGNING + SECRET
ENTRIES = tuple(f"{name}.key" for name in NAMES) + tuple(f"{name}.pub" for name in SIGNING)
"""What a place can hold: six keys, and for those that sign the public half instead, which reads and doesn't sign."""


class KeyPlace(Protocol):
    """A place where the keys of one installation are kept: each as 64 hexadecimal digits, under its entry's name."""

    @property
    def directory(self) -> Path | None:
        """The place as a directory, where it is one."""

    @property
    def given(self) -> bool:
        """Whether keys are only found here: they are made, and changed, somewhere else."""

    def __str__(self) -> str:
        """The place as it is named to people, and by `keys=`."""

    def where(self, entry: str) -> str:
        """Where one entry is, or would be."""

    def holds(self) -> list[str]:
        """The entries there is something under, whatever it is."""

    def read(self, entry: str) -> str | None:
        """What is kept under an entry's name, or None. Raises OSError or ValueError where it can't be read."""

    def write(self, entries: Mapping[str, str]) -> None:
        """Keep all of these, or none, in entries that are not there yet; on the disk when this returns."""

    def remove(self) -> None:
        """Take away every entry. Only for keys that no store goes by."""


@runtime_checkable
class KeyHolder(Protocol):
    """What `Memory.open(keys=...)` needs of an object that holds the keys, such as a hardware module's.

    `writer` signs every event and `log` a checkpoint when a store is closed; `root` signs once, when a store is made,
    and afterwards only its public half is asked for. `kek`, `views` and `index` are 32 secret bytes each.
    """

    @property
    def root(self) -> Signer:
        """The key that signs which keys may sign."""

    @property
    def writer(self) -> Signer:
        """The key that signs every event."""

    @property
    def log(self) -> Signer:
        """The key that signs checkpoints."""

    @property
    def kek(self) -> bytes:
        """The key that opens the data keys, and so the texts."""

    @property
    def views(self) -> bytes:
        """The key that encrypts views and vectors."""

    @property
    def index(self) -> bytes:
        """The key that hides what may exist only once."""


@dataclass(frozen=True, repr=False)
class Keys:
    """The keys in use: `root`, `writer`, `log` sign; `kek` wraps data keys, `views` encrypts, `index` tags claims."""

    place: KeyPlace
    root: Signer
    writer: Signer
    log: Signer
    kek: bytes
    views: bytes
    index: bytes

    def __repr__(self) -> str:
        return f"Keys({self.place})"

    @property
    def sign(self) -> bool:
        """Whether events and checkpoints can be signed with them, or only read and verified."""
        return not isinstance(self.writer, PublicHalf) and not isinstance(self.log, PublicHalf)

    def entries(self) -> dict[str, bytes]:
        """What may leave the installation: all that opens texts, the root key, and public halves of what signs."""
        own = {f"{name}.key": getattr(self, name) for name in SECRET}
        root = {"root.key": self.root.seed} if isinstance(self.root, SeedSigner) else {"root.pub": self.root.public}
        return {**own, **root, "writer.pub": self.writer.public, "log.pub": self.log.public}


class PublicHalf:
    """A key that signs, of which only the public half is here."""

    def __init__(self, name: str, public: bytes) -> None:
        self._name = name
        self.public = public

    def sign(self, message: bytes) -> bytes:
        """Raise KeysMissing: nothing can be signed."""
        raise KeysMissing(f"Of {self._name}.key only the public half is here, which can't sign. {KeysMissing.remedy}")


def load_keys(place: KeyPlace) -> Keys:
    """The keys in this place. Raises KeysMissing, naming the key, where it looked and what to do."""
    root, writer, log = (_signer(place, name) for name in SIGNING)
    kek, views, index = (_secret(place, name) for name in SECRET)
    return Keys(place, root, writer, log, kek, views, index)


def create_keys(place: KeyPlace) -> Keys:
    """Make a new set of keys, on the disk when this returns. Refuses where keys are already."""
    present = place.holds()
    if present:
        raise Refused(
            f"{place} already holds keys ({', '.join(present)}): a new store needs a place of its own. "
            f"Name an empty one with keys= or TALLYSTICK_KEYS.{_what_is_left(place, present)}"
        )
    place.write({f"{name}.key": secrets.token_bytes(KEY_BYTES).hex() for name in NAMES})
    return load_keys(place)


def _what_is_left(place: KeyPlace, present: Sequence[str]) -> str:
    """What to do about keys that a broken creation left. None are those of a store that was opened: it has a mark."""
    if place.directory is not None and (place.directory / "mark").exists():
        return ""
    return (
        f" If a creation broke off here and no store goes by these keys, delete them: "
        f"{', '.join(map(place.where, present))}."
    )


def read_entry(place: KeyPlace, entry: str) -> bytes | None:
    """The 32 bytes under an entry's name, or None. Raises KeysMissing where what is there is no key."""
    try:
        text = place.read(entry)
        key = None if text is None else bytes.fromhex(text)
    except (OSError, ValueError) as error:
        said = str(error) if isinstance(error, OSError) else "it is not 64 hexadecimal digits"
        raise KeysMissing(f"{place.where(entry)} can't be read as a key ({said}). {KeysMissing.remedy}") from error
    if key is not None and len(key) != KEY_BYTES:
        raise KeysMissing(
            f"{place.where(entry)} holds {len(key)} bytes and a key has {KEY_BYTES}. {KeysMissing.remedy}"
        )
    return key


def keys_from(place: KeyPlace, entries: Mapping[str, bytes]) -> Keys:
    """The keys that these entries will be once they are in this place."""
    root, writer, log = (
        SeedSigner(entries[f"{name}.key"]) if f"{name}.key" in entries else PublicHalf(name, entries[f"{name}.pub"])
        for name in SIGNING
    )
    kek, views, index = (entries[f"{name}.key"] for name in SECRET)
    return Keys(place, root, writer, log, kek, views, index)


def _signer(place: KeyPlace, name: str) -> Signer:
    seed = read_entry(place, f"{name}.key")
    if seed is not None:
        return SeedSigner(seed)
    public = read_entry(place, f"{name}.pub")
    if public is not None:
        return PublicHalf(name, public)
    raise KeysMissing(_missing(place, name))


def _secret(place: KeyPlace, name: str) -> bytes:
    key = read_entry(place, f"{name}.key")
    if key is None:
        raise KeysMissing(_missing(place, name))
    return key


def _missing(place: KeyPlace, name: str) -> str:
    return (
        f"The key {name}.key of this store is missing: {place.where(f'{name}.key')} is not there. {KeysMissing.remedy}"
    )
