"""Another log.db in the place of a store's own, which is kept: no moment has two histories in one place."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from ..errors import Refused
from .driver import refuse_open
from .installation import FILE
from .lease import FILE as LEASE_FILE
from .lease import Lease

KEPT = "replaced-"
_DERIVED = ("views-*", "vectors.db*")
_REMAINS = ("views-*.db", "vectors.db", f"{KEPT}*")


@contextmanager
def alone(store: Path) -> Iterator[None]:
    """Have a store's folder to oneself: no other process can open it meanwhile. Raises Busy where one has it open."""
    refuse_open(store / FILE)
    lease = Lease.take(store)
    try:
        lease.exclude(store)
        yield
    finally:
        lease.release()


def refuse_occupied(folder: Path) -> None:
    """Refuse a folder that has something in it."""
    if folder.exists() and (not folder.is_dir() or {path.name for path in folder.iterdir()} - {LEASE_FILE}):
        raise Refused(f"{folder} has something in it, and what is new goes into an empty folder. Name another one.")


def remains(store: Path) -> list[Path]:
    """What a store's folder still holds where its log.db is gone."""
    return [file for pattern in _REMAINS for file in sorted(store.glob(pattern))]


def exchange(store: Path, new: Path) -> Path | None:
    """Put a log.db that nobody has open in the place of a store's own. Returns the folder where that one is kept.

    What was derived from it is deleted. A crash leaves the old one, or none and the folder where it is kept.
    """
    kept = store / f"{KEPT}{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"
    old = [store / f"{FILE}{suffix}" for suffix in ("-wal", "-shm", "-journal", "")]
    found = [file for file in old if file.exists()]
    if found:
        kept.mkdir(mode=0o700)
    for file in found:  # log.db last: a write-ahead log never lies beside a file it does not belong to
        file.rename(kept / file.name)
    if found:
        sync(kept)
    new.rename(store / FILE)
    sync(store)
    for pattern in _DERIVED:
        for file in store.glob(pattern):
            file.unlink()
    return kept if found else None


def sync(path: Path) -> None:
    """Wait until a file's content, or a folder's names, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
