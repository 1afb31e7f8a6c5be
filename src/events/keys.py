"""The keys of one installation: where they lie, how they are made, and whether they are this store's."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from ..errors import KeysMissing, Refused
from .signing import SeedSigner

KEY_BYTES = 32
NAMES = ("root", "writer", "log", "kek", "views", "index")
_EPHEMERAL = {"tmpfs", "ramfs", "overlay", "aufs"}


@dataclass(frozen=True, repr=False)
class Keys:
    """The keys in use: `root`, `writer`, `log` sign; `kek` wraps data keys, `views` encrypts, `index` tags claims."""

    directory: Path
    root: SeedSigner
    writer: SeedSigner
    log: SeedSigner
    kek: bytes
    views: bytes
    index: bytes

    def __repr__(self) -> str:
        return f"Keys({self.directory})"


def default_directory(store: bytes) -> Path:
    """The user's own directory for the keys of the store with this id."""
    return platformdirs.user_data_path("tallystick") / "keys" / store.hex()


def create_keys(directory: Path) -> Keys:
    """Make a new set of keys, each file 0600 in a directory 0700, on the disk when this returns.

    Refuses where keys are already.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    present = [name for name in NAMES if os.path.lexists(directory / f"{name}.key")]
    if present:
        raise Refused(
            f"{directory} already holds keys ({', '.join(present)}): a new store needs a directory of its own. "
            f"Name an empty one with keys= or TALLYSTICK_KEYS."
        )
    for name in NAMES:
        _write_key(directory / f"{name}.key", secrets.token_bytes(KEY_BYTES))
    _sync_directory(directory)
    return load_keys(directory)


def load_keys(directory: Path) -> Keys:
    """The keys in this directory. Raises KeysMissing, naming the key, where it looked and what to do."""
    found = {name: _read_key(directory, name) for name in NAMES}
    return _keys_from(directory, found)


def _keys_from(directory: Path, found: Mapping[str, bytes]) -> Keys:
    root, writer, log = (SeedSigner(found[name]) for name in ("root", "writer", "log"))
    return Keys(directory, root, writer, log, found["kek"], found["views"], found["index"])


def _write_key(path: Path, key: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    descriptor = os.open(path, flags, 0o600)
    try:
        os.write(descriptor, key.hex().encode() + b"\n")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read_key(directory: Path, name: str) -> bytes:
    path = directory / f"{name}.key"
    try:
        text = path.read_text(encoding="ascii")
        key = bytes.fromhex(text)
    except FileNotFoundError as error:
        raise KeysMissing(_missing(directory, name)) from error
    except (OSError, ValueError) as error:
        raise KeysMissing(f"{path} can't be read as a key ({error}). {_SUPPLY}") from error
    if len(key) != KEY_BYTES:
        raise KeysMissing(f"{path} holds {len(key)} bytes and a key has {KEY_BYTES}. {_SUPPLY}")
    return key


_SUPPLY = (
    "Supply this store's keys in one of two ways: Memory.open(path, keys=DIRECTORY), "
    "or the environment variable TALLYSTICK_KEYS=DIRECTORY. No new keys were made."
)


def _missing(directory: Path, name: str) -> str:
    return f"The key {name}.key of this store is not in {directory}. {_SUPPLY}"


def refuse_losing_place(directory: Path, store: Path) -> None:
    """Refuse keys inside the store, and keys on a file system that vanishes while the store's own stays."""
    if directory.resolve().is_relative_to(store.resolve()):
        raise Refused(f"The keys may not lie inside the store ({directory}): name another directory with keys=.")
    if _file_system(directory) in _EPHEMERAL and _file_system(store) not in _EPHEMERAL:
        raise Refused(
            f"The keys would be written to {directory}, which does not outlive this machine or container, while the "
            f"store {store} does: the memories would be lost with the keys. Name a directory that is kept, with "
            f"Memory.open(path, keys=DIRECTORY) or TALLYSTICK_KEYS=DIRECTORY."
        )


def _file_system(path: Path) -> str | None:
    """The type of file system a path lies on, or would, where the system tells (Linux)."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8")
    except OSError:
        return None
    best, kind = -1, None
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        point = Path(left.split()[4].encode().decode("unicode_escape"))
        if len(point.parts) >= best and path.resolve().is_relative_to(point):
            best, kind = len(point.parts), right.split()[0]
    return kind


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_private(directory: Path) -> bool:
    """Whether only its owner can read the directory."""
    return not stat.S_IMODE(directory.stat().st_mode) & 0o077
