"""Snapshots: verified copies of log.db, each in a folder of its own with a manifest; listed, rotated, put back."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import LogDamaged, NotFound, Refused
from .driver import Datastore, File, refuse_open
from .installation import FILE, Installation, store_of
from .replacing import alone, exchange, refuse_occupied, sync

MANIFEST = "manifest.json"
MANIFEST_VERSION = 1
_PARTIAL = ".partial"


class LogState(NamedTuple):
    """How many entries a log has, and their Merkle root in hexadecimal."""

    size: int
    root: str


class Snapshot(NamedTuple):
    """A copy of log.db that was verified in full: where it lies, of which store, when, and how its logs stood.

    `sha256` is that of the file, in hexadecimal, `bytes` its length, `at` when it was taken (UTC).
    """

    path: Path
    store: str
    at: datetime
    logs: Mapping[str, LogState]
    bytes: int
    sha256: str

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.path.name


Check = Callable[[Path], Mapping[str, LogState]]
"""Verifies the store in a folder in full, or raises; says how its logs stand."""


def create(installation: Installation, directory: Path, now: datetime, check: Check) -> Snapshot:
    """Copy log.db as it stands while others go on writing, verify the copy, and only then let it count.

    Raises Refused for a directory inside the store, and what `check` raises for a copy that does not verify.
    """
    if directory.resolve().is_relative_to(installation.path.resolve()):
        raise Refused(f"{directory} lies inside the store, and would be lost with it. Name a directory elsewhere.")
    final = directory / f"{now:%Y%m%dT%H%M%S.%fZ}"
    partial = directory / f".{final.name}-{secrets.token_hex(4)}{_PARTIAL}"
    try:
        partial.mkdir(mode=0o700, parents=True)
    except OSError as error:
        raise Refused(f"{directory} can't hold snapshots ({error.strerror}). Name another directory.") from error
    try:
        copy_log(installation.datastore, partial / FILE)
        logs = check(partial)
        snapshot = _described(partial, installation.store.hex(), now, logs)
        _write_manifest(snapshot)
        sync(partial / FILE)
        sync(partial)
        partial.rename(final)
        sync(directory)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return snapshot._replace(path=final)


def copy_log(source: Datastore, target: Path) -> None:
    """Write what log.db holds at this moment to a new file. It names no views: they are made from the log."""
    source.rows("VACUUM INTO CAST(? AS TEXT)", (os.fsencode(target),))
    copy = Datastore(File(target, LogDamaged))
    try:
        with copy.transaction(commit=True) as cursor:
            cursor.execute("DELETE FROM setting WHERE name GLOB 'views-*'")
        copy.rows("PRAGMA journal_mode=DELETE")  # so that a reader leaves nothing beside it
    finally:
        copy.close()


def read_snapshot(path: Path) -> Snapshot:
    """The snapshot in this folder, by its manifest. Raises NotFound where there is none."""
    try:
        written = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        if written["version"] != MANIFEST_VERSION:
            raise Refused(f"{path / MANIFEST} has version {written['version']}. Use the release that wrote it.")
        logs = {name: LogState(**state) for name, state in written["logs"].items()}
        at = datetime.fromisoformat(written["at"])
        return Snapshot(path, bytes.fromhex(written["store"]).hex(), at, logs, written["bytes"], written["sha256"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotFound(
            f"{path} is not a snapshot (its {MANIFEST} can't be read: {error}). Look for one with "
            f"`tallystick snapshot list`."
        ) from error


def snapshots_in(directory: Path) -> list[Snapshot]:
    """The snapshots in a directory, newest first; what is none is left out."""
    if not directory.is_dir():
        raise NotFound(f"There is no directory {directory}. Name the one that the snapshots were taken to.")
    folders = (path.parent for path in directory.glob(f"*/{MANIFEST}") if path.parent.suffix != _PARTIAL)
    found = [snapshot for snapshot in map(_read_or_none, folders) if snapshot is not None]
    return sorted(found, key=lambda snapshot: snapshot.at, reverse=True)


def _read_or_none(path: Path) -> Snapshot | None:
    try:
        return read_snapshot(path)
    except (NotFound, Refused):
        return None


def rotate(directory: Path, *, daily: int, weekly: int) -> list[Snapshot]:
    """Delete all but the newest snapshot of each of the last days and weeks that have one. Returns what was deleted.

    Of each store the newest is kept in any case.
    """
    if daily < 0 or weekly < 0:
        raise Refused(f"daily is {daily} and weekly is {weekly}: give how many days and weeks to keep, 0 or more.")
    found = snapshots_in(directory)
    kept: set[Path] = set()
    for store in {snapshot.store for snapshot in found}:
        kept |= _kept([snapshot for snapshot in found if snapshot.store == store], daily, weekly)
    gone = [snapshot for snapshot in found if snapshot.path not in kept]
    for snapshot in gone:
        (snapshot.path / MANIFEST).unlink()  # from here on it is none
        shutil.rmtree(snapshot.path)
    return gone


def _kept(found: list[Snapshot], daily: int, weekly: int) -> set[Path]:
    kept = {found[0].path}
    for number, period in ((daily, "%Y-%m-%d"), (weekly, "%G-W%V")):
        newest: dict[str, Snapshot] = {}
        for snapshot in found:
            newest.setdefault(f"{snapshot.at:{period}}", snapshot)
        kept |= {snapshot.path for snapshot in list(newest.values())[:number]}
    return kept


def restore(snapshot: Snapshot, store: Path, check: Check, *, over: bool) -> Path | None:
    """Put a snapshot's log.db into an empty folder, or `over` the store that is there, whose own is kept.

    Returns the folder where the old log.db is kept. Raises Refused for a folder with something in it, unless it is put
    over that, and for another store than the snapshot's.
    """
    if over:
        _refuse_another(snapshot, store)
    else:
        refuse_occupied(store)
    store.mkdir(mode=0o700, parents=True, exist_ok=True)
    with alone(store):
        work = store / f".restoring-{secrets.token_hex(4)}"
        work.mkdir(mode=0o700)
        try:
            _unpack(snapshot, work)
            check(work)
            sync(work / FILE)
            return exchange(store, work / FILE)
        finally:
            shutil.rmtree(work)


def _refuse_another(snapshot: Snapshot, store: Path) -> None:
    try:
        found = store_of(store).hex()
    except (NotFound, LogDamaged):
        return
    if found != snapshot.store:
        raise Refused(f"{store} holds another store than the one {snapshot.path} was taken of. Name the right one.")


def _unpack(snapshot: Snapshot, target: Path) -> None:
    """Write the log.db of a snapshot into a folder, once its hash was found to be the one in the manifest."""
    file = snapshot.path / FILE
    if not file.is_file() or hash_of(file) != snapshot.sha256:
        raise LogDamaged(
            f"The file of the snapshot {snapshot.path} is not the one that was taken: it was changed or cut. Restore "
            f"another snapshot."
        )
    source = Datastore(File(file, LogDamaged, read_only=True))
    try:
        copy_log(source, target / FILE)
    finally:
        source.close()


def hash_of(file: Path) -> str:
    """The SHA-256 of a database file that nobody in this process has open."""
    refuse_open(file)
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _described(path: Path, store: str, now: datetime, logs: Mapping[str, LogState]) -> Snapshot:
    return Snapshot(path, store, now, logs, (path / FILE).stat().st_size, hash_of(path / FILE))


def _write_manifest(snapshot: Snapshot) -> None:
    content: dict[str, Any] = {
        "version": MANIFEST_VERSION,
        "name": f"{snapshot.at:%Y%m%dT%H%M%S.%fZ}",
        "at": snapshot.at.isoformat(),
        "store": snapshot.store,
        "file": FILE,
        "bytes": snapshot.bytes,
        "sha256": snapshot.sha256,
        "logs": {name: state._asdict() for name, state in snapshot.logs.items()},
    }
    with (snapshot.path / MANIFEST).open("x", encoding="utf-8") as out:
        out.write(json.dumps(content, indent=2) + "\n")
    sync(snapshot.path / MANIFEST)
