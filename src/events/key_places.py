"""The places where keys can be kept: a directory, the environment, the keyring of the system, the caller's program."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import platformdirs

from ..border import require_path
from ..config import KEY_VARIABLE, KEYS_IN_ENVIRONMENT, KEYS_IN_KEYRING, refuse_no_place
from ..errors import KeysMissing, Refused, Unavailable
from .keys import ENTRIES, KEY_BYTES, SECRET, SIGNING, KeyHolder, KeyPlace, Keys, create_keys, load_keys
from .signing import Signer, verify

KeySource = str | Path | KeyHolder | None
"""What `keys=` takes: a directory, `env`, `keyring`, an object that holds the keys; None is your own directory."""

_EPHEMERAL = {"tmpfs", "ramfs", "overlay", "aufs"}


class Directory:
    """A directory 0700 with a file 0600 for each key. One that the caller has `named` may be a mounted secret."""

    given = False

    def __init__(self, directory: Path, *, named: bool) -> None:
        self.directory = directory.absolute()
        self.named = named

    def __str__(self) -> str:
        return str(self.directory)

    def where(self, entry: str) -> str:
        """The entry's file."""
        return str(self.directory / entry)

    def holds(self) -> list[str]:
        """The entries whose file is there, links that lead nowhere included."""
        return [entry for entry in ENTRIES if os.path.lexists(self.directory / entry)]

    def read(self, entry: str) -> str | None:
        """What the entry's file holds, or None."""
        try:
            return (self.directory / entry).read_text(encoding="ascii")
        except FileNotFoundError:
            return None

    def write(self, entries: Mapping[str, str]) -> None:
        """Write a file for each entry, never over one and never through a link."""
        written: list[Path] = []
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            for entry, text in entries.items():
                write_new(self.directory / entry, text.encode() + b"\n")
                written.append(self.directory / entry)
        except OSError as error:
            for path in written:
                path.unlink()
            raise Refused(f"Keys can't be written to {self.directory} ({error}). Name another directory.") from error
        sync_directory(self.directory)

    def remove(self) -> None:
        """Delete the file of each entry, and the directory where nobody has named it."""
        for entry in self.holds():
            (self.directory / entry).unlink()
        if not self.named:
            self.directory.rmdir()


class Environment:
    """One variable for each key: TALLYSTICK_KEY_KEK for kek.key, TALLYSTICK_KEY_WRITER_PUB for writer.pub."""

    directory = None
    given = True

    def __str__(self) -> str:
        return KEYS_IN_ENVIRONMENT

    def where(self, entry: str) -> str:
        """The entry's variable."""
        return KEY_VARIABLE + entry.removesuffix(".key").replace(".", "_").upper()

    def holds(self) -> list[str]:
        """The entries whose variable is set."""
        return [entry for entry in ENTRIES if self.where(entry) in os.environ]

    def read(self, entry: str) -> str | None:
        """The value of the entry's variable, or None."""
        return os.environ.get(self.where(entry))

    def write(self, entries: Mapping[str, str]) -> None:
        """Raise Refused: who starts the process sets its environment."""
        raise Refused("Keys can't be written into the environment. Name a directory with keys= or TALLYSTICK_KEYS.")

    def remove(self) -> None:
        """Do nothing: who starts the process sets its environment."""


class Keyring:
    """The keyring of the operating system, through the library `keyring`: one service for each store."""

    directory = None
    given = False

    def __init__(self, store: bytes) -> None:
        self._service = f"tallystick {store.hex()}"

    def __str__(self) -> str:
        return KEYS_IN_KEYRING

    def where(self, entry: str) -> str:
        """The entry's service and name."""
        return f"{entry} of the service {self._service!r} in the keyring"

    def holds(self) -> list[str]:
        """The entries the keyring knows."""
        return [entry for entry in ENTRIES if self.read(entry) is not None]

    def read(self, entry: str) -> str | None:
        """What the keyring holds under the entry's name, or None."""
        keyring = _keyring()
        try:
            found: str | None = keyring.get_password(self._service, entry)
        except keyring.errors.KeyringError as error:
            raise KeysMissing(f"The keyring can't be read ({error}). Unlock it, or choose another place.") from error
        return found

    def write(self, entries: Mapping[str, str]) -> None:
        """Give the keyring each entry; what it took is taken back where it refuses one."""
        keyring, written = _keyring(), []
        try:
            for entry, text in entries.items():
                keyring.set_password(self._service, entry, text)
                written.append(entry)
        except keyring.errors.KeyringError as error:
            for entry in written:
                keyring.delete_password(self._service, entry)
            raise Refused(f"The keyring takes no keys ({error}). Unlock it, or choose another place.") from error

    def remove(self) -> None:
        """Delete each entry."""
        for entry in self.holds():
            _keyring().delete_password(self._service, entry)


class Held:
    """The program that opens the store holds the keys."""

    directory = None
    given = True

    def __str__(self) -> str:
        return "held by the program"

    def where(self, entry: str) -> str:
        """The attribute of the object that was given."""
        return f"{entry.partition('.')[0]} of the object given as keys="

    def holds(self) -> list[str]:
        """Nothing that could be read."""
        return []

    def read(self, entry: str) -> str | None:
        """None: the object that was given is asked, not the place."""
        return None

    def write(self, entries: Mapping[str, str]) -> None:
        """Raise Refused: the program holds what it holds."""
        raise Refused("Keys can't be written into the object that holds them. Name a directory with keys=.")

    def remove(self) -> None:
        """Do nothing: the program holds what it holds."""


class _Checked:
    """A signer of the caller's, each signature checked before it is used: a wrong one would damage the log."""

    def __init__(self, name: str, signer: Signer) -> None:
        self._name = name
        self._signer = signer
        self.public = signer.public

    def sign(self, message: bytes) -> bytes:
        """Return the signature. Raises Unavailable for one that does not hold."""
        signature = self._signer.sign(message)
        if not verify(self.public, message, signature):
            raise Unavailable(
                f"What {self._name}.sign returned is no Ed25519 signature by its public key: nothing was written. "
                f"Check the object that was given as keys=."
            )
        return signature


def place_of(source: KeySource, store: bytes) -> KeyPlace:
    """The place that `keys=` names. Raises Refused for what is none."""
    if source is None:
        return Directory(default_directory(store), named=False)
    if source == KEYS_IN_ENVIRONMENT:
        return Environment()
    if source == KEYS_IN_KEYRING:
        return Keyring(store)
    if isinstance(source, str):
        require_path("keys", source)
        refuse_no_place(source)
    if isinstance(source, str | Path):
        return Directory(Path(source), named=True)
    missing = [name for name in SIGNING + SECRET if not hasattr(source, name)]
    if missing:
        raise Refused(
            f"keys= was given a {type(source).__name__} without {', '.join(missing)}. Give a directory, `env`, "
            f"`keyring`, or an object with root, writer, log, kek, views and index."
        )
    return Held()


def find_keys(source: KeySource, store: bytes) -> Keys:
    """The keys of the store with this id, from where they are. Raises KeysMissing; makes none."""
    place = place_of(source, store)
    return _held(place, source) if isinstance(place, Held) else load_keys(place)


def provide_keys(source: KeySource, store: bytes) -> Keys:
    """Keys for a new store: made, or where keys are only found, found. Raises Refused or KeysMissing."""
    place = place_of(source, store)
    return find_keys(source, store) if place.given else create_keys(place)


def default_directory(store: bytes) -> Path:
    """The user's own directory for the keys of the store with this id."""
    return _own() / store.hex()


def own_directories() -> list[Path]:
    """Every directory of the user's own that holds the keys of some store."""
    return sorted(each for each in _own().glob("*") if each.is_dir())


def _own() -> Path:
    return platformdirs.user_data_path("tallystick") / "keys"


def state_directory(store: bytes) -> Path:
    """The user's own directory for the mark of the store with this id, where its keys lie in no directory."""
    return platformdirs.user_state_path("tallystick") / "marks" / store.hex()


def exposure(place: KeyPlace) -> tuple[list[str], list[str]]:
    """What is not as it should be with a place of keys, and what is to be known of it though it was asked for."""
    if isinstance(place, Environment):
        return [], ["the keys come from the environment, which every child process inherits"]
    if not isinstance(place, Directory):
        return [], []
    mode, here = place.directory.stat().st_mode, f"the keys in {place}"
    open_to_others = [f"{here} can be read by others"] if stat.S_IMODE(mode) & 0o007 else []
    as_mounted = [
        *([f"{here} can be read by their group"] if stat.S_IMODE(mode) & 0o070 else []),
        *([f"{here} are links"] if any((place.directory / entry).is_symlink() for entry in place.holds()) else []),
    ]
    if not place.named:
        return open_to_others + as_mounted, []
    writable = os.access(place.directory, os.W_OK)
    return open_to_others, as_mounted + ([] if writable else [f"{here} can't be written to"])


def refuse_losing_place(directory: Path, store: Path) -> None:
    """Refuse keys inside the store, and keys on a file system that vanishes while the store's own stays."""
    if directory.resolve().is_relative_to(store.resolve()):
        raise Refused(f"The keys may not lie inside the store ({directory}): name another directory with keys=.")
    if file_system(directory) in _EPHEMERAL and file_system(store) not in _EPHEMERAL:
        raise Refused(
            f"The keys would be written to {directory}, which does not outlive this machine or container, while the "
            f"store {store} does: the memories would be lost with the keys. Name a directory that is kept, with "
            f'Memory.open(path, keys=DIRECTORY) or TALLYSTICK_KEYS=DIRECTORY, or keep the keys outside: keys="env".'
        )


def write_new(path: Path, content: bytes) -> None:
    """Write a file that is not there yet, 0600, and wait for the disk. Leaves nothing behind when it fails."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        path.unlink()
        raise


def sync_directory(directory: Path) -> None:
    """Wait until a directory's new files are on the disk."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _held(place: Held, source: Any) -> Keys:
    root, writer, log = (_Checked(name, getattr(source, name)) for name in SIGNING)
    for name in SECRET:
        if not isinstance(getattr(source, name), bytes) or len(getattr(source, name)) != KEY_BYTES:
            raise KeysMissing(f"{place.where(name)} is not {KEY_BYTES} bytes. {KeysMissing.remedy}")
    return Keys(place, root, writer, log, source.kek, source.views, source.index)


def _keyring() -> Any:
    try:
        import keyring  # noqa: PLC0415  an extra, loaded only where the keys are kept in it
        import keyring.errors  # noqa: PLC0415
    except ImportError as error:
        raise KeysMissing(
            "The keys are said to be in the keyring of the system, and the library for it is not installed. "
            "Install it: pip install 'tallystick[keyring]'."
        ) from error
    return keyring


def file_system(path: Path) -> str | None:
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
