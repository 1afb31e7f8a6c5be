"""The mark: up to where this installation has verified its logs, kept outside the store."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import LogBehindMark, LogDamaged
from .canonical import NotCanonical, decode_body, encode_body
from .merkle import Frontier

SLOT_BYTES = 8192
NUMBER_BYTES = 8
_CONTEXT = b"tallystick/mark/v1\0"
_UNWRITABLE = {errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR}


class Marked(NamedTuple):
    """What the mark says: a frontier by origin, and how the files were left at the last close."""

    number: int
    frontiers: Mapping[bytes, Frontier]
    closed: Mapping[str, Any]


NOTHING = Marked(0, {}, {})


class Mark:
    """Two checksummed slots in one file, written in turn, in place, under a lock; never moved back.

    A slot torn by a crash leaves the other one. Moving the mark costs no fsync: it is only ever behind
    the log, and the events past it are verified at the next open. `close` waits for the disk.
    """

    def __init__(self, directory: Path) -> None:
        self.path = directory / "mark"
        self._known = NOTHING
        self._descriptor = _open_own(self.path)
        try:
            self._holding = _open_own(directory / "held")
        except BaseException:
            os.close(self._descriptor)
            raise

    @classmethod
    def in_directory(cls, directory: Path) -> Mark | None:
        """The mark in this directory; None where the directory can't be made or written, as a mounted secret."""
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            return cls(directory)
        except OSError as error:
            if error.errno in _UNWRITABLE:
                return None
            raise

    @classmethod
    def seen(cls, directory: Path) -> Marked:
        """What the mark in this directory says, without a lock and without writing; NOTHING where there is none."""
        try:
            descriptor = os.open(directory / "mark", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            return NOTHING
        try:
            return _read_slots(descriptor, directory / "mark")
        finally:
            os.close(descriptor)

    def read(self) -> Marked:
        """What the mark says now; NOTHING where it was never written. Raises LogDamaged where it can't be read."""
        numbers = [os.pread(self._descriptor, NUMBER_BYTES, place) for place in (0, SLOT_BYTES)]
        if self._known.number.to_bytes(NUMBER_BYTES, "big") != max(numbers):
            self._known = _read_slots(self._descriptor, self.path)
        return self._known

    def advance(self, frontiers: Mapping[bytes, Frontier]) -> None:
        """Move the mark to these frontiers where they are further. Raises LogBehindMark for a second history."""
        with self._locked():
            marked = self.read()
            further = {o: f for o, f in frontiers.items() if _is_further(f, marked.frontiers.get(o))}
            if further:
                self._write(marked, {**marked.frontiers, **further}, {})

    def accept(self, frontiers: Mapping[bytes, Frontier]) -> None:
        """Go on from these logs and no others, and wait for the disk."""
        with self._locked():
            self._write(self.read(), frontiers, {})
            os.fsync(self._descriptor)

    def close(self, closed: Mapping[str, Any]) -> None:
        """Write down how the files were left, and wait for the disk."""
        with self._locked():
            marked = self.read()
            self._write(marked, marked.frontiers, closed)
            os.fsync(self._descriptor)

    def hold(self) -> bool:
        """Say that this process has the store open. True when no other process has."""
        try:
            fcntl.flock(self._holding, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(self._holding, fcntl.LOCK_SH)
            return False
        return True

    def share(self) -> None:
        """Let other processes open the store too."""
        fcntl.flock(self._holding, fcntl.LOCK_SH)

    def release(self) -> None:
        """Let go of the locks, in a forked child as well, and close the mark's files."""
        fcntl.flock(self._holding, fcntl.LOCK_UN)
        os.close(self._descriptor)
        os.close(self._holding)

    def _write(self, marked: Marked, frontiers: Mapping[bytes, Frontier], closed: Mapping[str, Any]) -> None:
        number = marked.number + 1
        self._known = Marked(number, frontiers, closed)
        os.pwrite(self._descriptor, _slot(self._known), SLOT_BYTES * (number % 2))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)


def _open_own(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _is_further(frontier: Frontier, marked: Frontier | None) -> bool:
    if marked is None or frontier.size > marked.size:
        return True
    if frontier.size == marked.size and frontier.root() != marked.root():
        raise LogBehindMark(
            "The log is not the one that was verified before: two histories of one size. Run `tallystick verify`."
        )
    return False


def _slot(marked: Marked) -> bytes:
    body = encode_body(
        {
            "logs": [[origin, f.size, list(f.hashes)] for origin, f in marked.frontiers.items()],
            "closed": dict(marked.closed),
        }
    )
    framed = marked.number.to_bytes(NUMBER_BYTES, "big") + len(body).to_bytes(4, "big") + body
    if len(framed) + 32 > SLOT_BYTES:
        raise ValueError("the mark outgrew its slot")
    return framed + hashlib.sha256(_CONTEXT + framed).digest()


def _read_slots(descriptor: int, path: Path) -> Marked:
    found = [os.pread(descriptor, SLOT_BYTES, place) for place in (0, SLOT_BYTES)]
    slots = [slot for slot in map(_read_slot, found) if slot is not None]
    if any(found) and not slots:
        raise LogDamaged(
            f"The mark {path} is damaged, so a log that was cut back would not be noticed. If you know that "
            f"the log is whole, delete the file: the next opening checks every signature and starts a new mark."
        )
    return max(slots, default=NOTHING, key=lambda slot: slot.number)


def _read_slot(data: bytes) -> Marked | None:
    start = NUMBER_BYTES + 4
    end = start + int.from_bytes(data[NUMBER_BYTES:start], "big")
    framed, checksum = data[:end], data[end : end + 32]
    if not data or hashlib.sha256(_CONTEXT + framed).digest() != checksum:
        return None
    try:
        body: Any = decode_body(framed[start:])
        frontiers = {o: Frontier(n, tuple(hashes)) for o, n, hashes in body["logs"]}
        return Marked(int.from_bytes(data[:NUMBER_BYTES], "big"), frontiers, dict(body["closed"]))
    except (NotCanonical, KeyError, ValueError, TypeError, AttributeError):
        return None
