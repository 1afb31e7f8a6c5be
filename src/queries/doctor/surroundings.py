"""What is around a store: the settings, the project file, its folder, its disk, and who else has it open."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from ...config import PREFIX, PROJECT_FILE
from ...errors import NotFound, Refused
from ...events.installation import FILE
from ...events.lease import FILE as LEASE
from ...events.lease import Host, holder, refuse_network
from ...events.mark import Mark
from ...events.replacing import KEPT, remains
from ...projections.models.choice import FILE as SETTINGS
from ...projections.vector_cache import FILE as VECTORS
from .patient import Patient, Sign

ROOM_BYTES = 16 << 20
"""How much room there should be on the disk beside a second copy of the store's files."""

_UNFINISHED = (".restoring-*", ".recovering-*", f".{SETTINGS}-*")
_FILES = (FILE, f"{FILE}-*", "views-*", f"{VECTORS}*", LEASE, SETTINGS)
_OURS = (*_FILES, f"{KEPT}*", *_UNFINISHED, PROJECT_FILE)
_SHOWN = 3
_OTHERS = 0o077


# ---- settings


def unknown_variables(patient: Patient) -> Iterator[Sign]:
    """A variable of our prefix that is no setting, by which every command refuses."""
    for wrong in patient.asked.found.wrong:
        if wrong.file is None and wrong.name.startswith(PREFIX):
            yield Sign(f"{wrong.what}.", f"{wrong.remedy} Name it so, or take it away: `unset {wrong.name}`.")


def values_not_allowed(patient: Patient) -> Iterator[Sign]:
    """A value that a setting can't have."""
    for wrong in patient.asked.found.wrong:
        if wrong.file is None and not wrong.name.startswith(PREFIX):
            variable = f"{PREFIX}{wrong.name.upper()}"
            way = f"take it away: `unset {variable}`" if variable in os.environ else f"mend it in {_project(patient)}"
            yield Sign(f"{wrong.what}.", f"{wrong.remedy.removesuffix('.')}, or {way}.")


def project_file(patient: Patient) -> Iterator[Sign]:
    """A project file that can't be read, or says what is no setting."""
    for wrong in patient.asked.found.wrong:
        if wrong.file is not None:
            yield Sign(f"{wrong.what}.", f"{wrong.remedy} Edit {wrong.file}." if wrong.name else wrong.remedy)


def project_store(patient: Patient) -> Iterator[Sign]:
    """A project file that names a store which is not there."""
    if _is_from_project(patient) and _is_nowhere(patient):
        file = _project(patient)
        yield Sign(
            f"{file} names the store {patient.path}, and there is none.",
            f"Mend its `path`; or, for a new store, run `rm {shlex.quote(str(file))}` and `tallystick init`.",
        )


# ---- the folder


def no_store(patient: Patient) -> Iterator[Sign]:
    """No store where one is looked for."""
    if not _is_from_project(patient) and _is_nowhere(patient):
        new = "" if (Path.cwd() / PROJECT_FILE).exists() else f", or make one: {patient.run('init')}"
        yield Sign(f"There is no store in {patient.path}.", f"Name the store's directory{new}.")


def log_gone(patient: Patient) -> Iterator[Sign]:
    """A log.db that is gone while the rest of the store, or the mark beside its keys, is there."""
    if not _is_missing(patient):
        return
    left = _left(patient)
    if left:
        yield Sign(
            f"{patient.path / FILE} is {'empty' if (patient.path / FILE).exists() else 'gone'}, and {left} is there.",
            f"Put it back; or a snapshot in its place: {patient.run('snapshot restore SNAPSHOT --over')}.",
        )


def network(patient: Patient) -> Iterator[Sign]:
    """A store on a file system where locks don't hold."""
    try:
        refuse_network(patient.path)
    except Refused as error:
        yield Sign(str(error).partition(". ")[0] + ".", "Move the store to a disk of this machine.")


def read_only(patient: Patient) -> Iterator[Sign]:
    """A folder or a log.db that can't be written to."""
    for place in (patient.path, patient.path / FILE):
        if place.exists() and not os.access(place, os.W_OK):
            fixed = os.statvfs(place).f_flag & os.ST_RDONLY
            give = "Mount its disk to be written to" if fixed else f"Run `chmod u+rwX {shlex.quote(str(place))}`"
            yield Sign(
                f"{place} can't be written to{' (its disk is read-only)' if fixed else ''}.",
                f"{give}; or only read: {patient.run('status --read-only')}.",
            )
            return


def no_room(patient: Patient) -> Iterator[Sign]:
    """A disk that is nearly full: what makes the views anew, and a snapshot, need room beside what is there."""
    if not patient.path.is_dir():
        return
    needed = sum(file.stat().st_size for file in patient.path.iterdir() if file.is_file()) + ROOM_BYTES
    free = shutil.disk_usage(patient.path).free
    if free < needed:
        yield Sign(
            f"The disk of {patient.path} has {_mb(free)} left, and {_mb(needed)} may be needed.",
            f"Free {_mb(needed - free)} there, or move the store to another disk.",
        )


def open_to_others(patient: Patient) -> Iterator[Sign]:
    """A folder that other users may look into, or write to."""
    if patient.path.is_dir() and patient.path.stat().st_mode & _OTHERS:
        path = shlex.quote(str(patient.path))
        yield Sign(f"Other users have rights in the store's folder {patient.path}.", f"Run `chmod go-rwx {path}`.")


def foreign_files(patient: Patient) -> Iterator[Sign]:
    """Files of the store that belong to another user than its folder does: left by a command run as root, say."""
    if not patient.path.is_dir():
        return
    owner = patient.path.stat().st_uid
    for file in _files(patient, _FILES):
        if file.lstat().st_uid != owner:
            path = shlex.quote(str(patient.path))
            yield Sign(
                f"{file} belongs to user {file.lstat().st_uid}, and its folder to user {owner}.",
                f"Run `chown -R {owner} {path}`, as root.",
            )
            return


def other_host(patient: Patient) -> Iterator[Sign]:
    """A lease that another host holds, or that can't be read."""
    held, here = holder(patient.path), Host.this()
    if held is not None and not here.shares_locks_with(held) and not here.has_ended(held):
        yield Sign(
            f"{patient.path} is open on the host {held.name!r}, or was when that host went down.",
            f"Close it there; or, if nothing there uses it any more, run {patient.run('take-over')}.",
        )


def kept_logs(patient: Patient) -> Iterator[Sign]:
    """A log that was replaced, and is still kept."""
    for folder in patient.entries(f"{KEPT}*"):
        yield Sign(
            f"{folder} keeps a log that was replaced.",
            f"Once nobody wants it any more, run `rm -r {shlex.quote(str(folder))}`.",
        )


def unfinished(patient: Patient) -> Iterator[Sign]:
    """What a restore, a recover or a salvage left that was killed."""
    for folder in _files(patient, _UNFINISHED):
        yield Sign(
            f"{folder} was left by a command that was killed, or is being used by one that runs.",
            f"If none runs, run `rm -r {shlex.quote(str(folder))}`.",
        )


def strays(patient: Patient) -> Iterator[Sign]:
    """Files in the store's folder that are none of the store's."""
    if not patient.path.is_dir():
        return
    found = sorted(e.name for e in patient.path.iterdir() if not any(fnmatch(e.name, ours) for ours in _OURS))
    if found:
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        yield Sign(
            f"{', '.join(found[:_SHOWN])}{more} in {patient.path} are none of the store's files.",
            "Move them to another folder: this one is the store's.",
        )


def _project(patient: Patient) -> Path:
    return patient.asked.found.project or Path(PROJECT_FILE)


def _is_from_project(patient: Patient) -> bool:
    asked = patient.asked
    return asked.found.project is not None and not asked.named and f"{PREFIX}PATH" not in os.environ


def _is_missing(patient: Patient) -> bool:
    try:
        return not patient.store
    except NotFound:
        return True


def _is_nowhere(patient: Patient) -> bool:
    return _is_missing(patient) and not _left(patient)


def _left(patient: Patient) -> Path | None:
    """What says that there was a store: a remnant of it, or the mark beside its keys."""
    keys = None if patient.asked.keys is None else patient.place.directory
    marks = [keys / "mark"] if keys is not None and Mark.seen(keys).number else []
    return next(iter([*remains(patient.path), *marks]), None)


def _files(patient: Patient, patterns: tuple[str, ...]) -> Iterator[Path]:
    return (file for pattern in patterns for file in patient.entries(pattern))


def _mb(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
