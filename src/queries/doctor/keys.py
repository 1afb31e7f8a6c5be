"""What is the matter with a store's keys, and with the mark that is kept with them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

from ...errors import KeysMissing, LogDamaged, Refused
from ...events.installation import mark_directories
from ...events.key_history import is_settled_by, key_stream
from ...events.key_places import Held, exposure, refuse_losing_place
from ...events.keys import NAMES, SIGNING, Keys, read_entry
from .patient import Patient, Sign

_LINKS = "are links"


def missing(patient: Patient) -> Iterator[Sign]:
    """Keys that are not where they are looked for."""
    states = _states(patient)
    gone = [f"{name}.key" for name, state in states.items() if state is None]
    if gone:
        said = "Every key" if len(gone) == len(states) else ", ".join(gone)
        yield Sign(f"{said} of this store is missing in {patient.place}.", _supply(patient))


def unreadable(patient: Patient) -> Iterator[Sign]:
    """Something that stands for a key, and is none."""
    refused = [state for state in _states(patient).values() if isinstance(state, KeysMissing)]
    if any(isinstance(state.__cause__, PermissionError) for state in refused):
        path, user = shlex.quote(str(patient.place)), os.geteuid()
        yield Sign(
            f"The keys in {patient.place} may not be read by this user ({user}).",
            f"Run `chmod -R u+rwX {path}`; or, as root, `chown -R {user} {path}`.",
        )
    for said in dict.fromkeys(str(state) for state in refused if not isinstance(state.__cause__, PermissionError)):
        if KeysMissing.remedy in said:
            yield Sign(said.removesuffix(f" {KeysMissing.remedy}"), f"Mend it, or move it away. {_supply(patient)}")
        else:
            what, _, remedy = said.rpartition(". ")
            yield Sign(f"{what}.", remedy)


def of_another_store(patient: Patient) -> Iterator[Sign]:
    """Keys that are another store's."""
    patient.keys  # noqa: B018  without any there are no others
    try:
        patient.installation  # noqa: B018  its opening compares them
    except KeysMissing as error:
        yield Sign(f"{str(error).partition(';')[0]}.", f"Move it away. {_supply(patient)}")


def inside_the_store(patient: Patient) -> Iterator[Sign]:
    """Keys in the store's own folder, with which they would be copied, lost or taken."""
    directory = patient.place.directory
    if directory is not None and directory.exists() and directory.resolve().is_relative_to(patient.path.resolve()):
        yield Sign(
            f"The keys lie inside the store, in {directory}: who has a copy of the store has them.",
            f"Run `mv {shlex.quote(str(directory))} DIRECTORY`, with a DIRECTORY outside, and name it with "
            f"`TALLYSTICK_KEYS=DIRECTORY`.",
        )


def open_to_others(patient: Patient) -> Iterator[Sign]:
    """Keys that others can read, or that are not the files that were made."""
    remarks = exposure(patient.place)[0]
    links = [remark for remark in remarks if remark.endswith(_LINKS)]
    for remark in [each for each in remarks if each not in links][:1]:
        yield Sign(f"{_capital(remark)}.", f"Run `chmod go-rwx {shlex.quote(str(patient.place))}`.")
    for remark in links:
        yield Sign(
            f"{_capital(remark)}, and nobody asked for that.",
            f"If they are a mounted secret, name it: `TALLYSTICK_KEYS={shlex.quote(str(patient.place))}`; else put the "
            f"files in the place of the links.",
        )


def vanishing(patient: Patient) -> Iterator[Sign]:
    """Keys on a file system that does not outlive the machine or container, while the store's own does."""
    directory = patient.place.directory
    if directory is None or directory.resolve().is_relative_to(patient.path.resolve()):
        return
    try:
        refuse_losing_place(directory, patient.path)
    except Refused:
        yield Sign(
            f"The keys lie in {directory}, which does not outlive this machine or container, and the store does.",
            f"Run `cp -a {shlex.quote(str(directory))} DIRECTORY`, with a DIRECTORY that is kept, and name it with "
            f"`TALLYSTICK_KEYS=DIRECTORY`.",
        )


def not_signing(patient: Patient) -> Iterator[Sign]:
    """Keys of which those that sign are here as public halves only."""
    if not patient.keys.sign:
        yield Sign(
            "The keys read and verify, and don't sign: nothing can be stored, and reads are not on record.",
            f"Put writer.key and log.key of this installation into {patient.place}. Where they are lost for good, move "
            f"the memories to a new store: {patient.run('export FILE')}, then `tallystick import FILE` there.",
        )


def not_backed_up(patient: Patient) -> Iterator[Sign]:
    """Keys of which there is no backup, and none was declined."""
    if patient.asked.kept and not is_settled_by(
        patient.events_of(key_stream(patient.installation.memory)), patient.keys
    ):
        yield Sign(
            "The keys were never backed up, and losing them loses the memories.",
            f"Run {patient.run('keys backup FILE')}, or {patient.run('keys backup --decline')}.",
        )


# ---- the mark


def no_mark(patient: Patient) -> Iterator[Sign]:
    """A mark that is not there, though the store has been written to."""
    if not patient.marked.number and any(size > 1 for _, size in patient.sizes()) and _writable(patient):
        yield Sign(
            "There is no mark: whether the log was cut or rolled back can't be seen.",
            f"Run {patient.run('status')}: it checks every signature and starts a new mark. Compare the root key and "
            f"the sizes it shows with those you know.",
        )


def mark_damaged(patient: Patient) -> Iterator[Sign]:
    """A mark that can't be read, by which no opening goes on."""
    try:
        patient.keys, patient.marked  # noqa: B018  its reading compares the checksums
    except LogDamaged:
        path = next(each for each in _places(patient.keys, patient) if each.exists())
        yield Sign(
            f"The mark {path} is damaged: whether the log was cut or rolled back can't be seen.",
            f"If you know that the log is whole, run `rm {shlex.quote(str(path))}`, then {patient.run('status')}: it "
            f"checks every signature and starts a new mark.",
        )


def no_place_for_the_mark(patient: Patient) -> Iterator[Sign]:
    """No directory in which the mark can be kept."""
    if not _writable(patient):
        places = " or ".join(str(path.parent) for path in _places(patient.keys, patient))
        yield Sign(
            f"No mark can be kept in {places}: a log that is cut or rolled back is not noticed.",
            "Give the right to write there; or name a directory that is kept with `XDG_STATE_HOME=DIRECTORY`.",
        )


def _states(patient: Patient) -> dict[str, bytes | KeysMissing | None]:
    """Each key as it is found: its bytes, why it can't be read, or None where it is missing."""
    if isinstance(patient.asked.keys, Keys) or isinstance(patient.place, Held):
        return {}
    return {name: _state(patient, name) for name in NAMES}


def _state(patient: Patient, name: str) -> bytes | KeysMissing | None:
    try:
        found = read_entry(patient.place, f"{name}.key")
        return read_entry(patient.place, f"{name}.pub") if found is None and name in SIGNING else found
    except KeysMissing as error:
        return error


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _supply(patient: Patient) -> str:
    return (
        f"Name the place of this store's keys with `TALLYSTICK_KEYS=DIRECTORY`, or bring a backup back: "
        f"{patient.run('keys restore FILE')}."
    )


def _places(keys: Keys, patient: Patient) -> list[Path]:
    return [directory / "mark" for directory in mark_directories(keys, patient.store)]


def _writable(patient: Patient) -> bool:
    return any(_can_hold(path.parent) for path in _places(patient.keys, patient))


def _can_hold(directory: Path) -> bool:
    """Whether a file can be written in a directory, which may have to be made."""
    there = next(each for each in (directory, *directory.parents) if os.path.lexists(each))
    return there.is_dir() and os.access(there, os.W_OK)
