"""The doctor: what can be wrong with a store and what is around it, and what mends each; nothing is changed."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ...errors import TallystickError
from ...events.driver import Scratch
from . import keys, log, names, surroundings, views
from .patient import Asked, Level, Patient, Sign

__all__ = ["CHECKS", "Asked", "Check", "Diagnosis", "Finding", "diagnose"]


class Check(NamedTuple):
    """One thing that can be wrong: what it is called, how much it matters, and how it is looked for."""

    name: str
    level: Level
    look: Callable[[Patient], Iterator[Sign]]


class Finding(NamedTuple):
    """What a check found. `level` is `wrong`, or `warning` where the store works all the same.

    `what` says what it is and with what, `remedy` which command or act mends it.
    """

    check: str
    level: Level
    what: str
    remedy: str


class Diagnosis(NamedTuple):
    """What was looked at, and what was found: first what is wrong.

    `checks` were made; `not_made` could not be, for what is wrong. `versions` are those of Tallystick and of what it
    stands on.
    """

    store: str
    keys: str
    checks: tuple[str, ...]
    not_made: tuple[str, ...]
    findings: tuple[Finding, ...]
    versions: dict[str, str]

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong. There may be warnings."""
        return all(finding.level != "wrong" for finding in self.findings)


CHECKS = (
    Check("settings.name", "wrong", surroundings.unknown_variables),
    Check("settings.value", "wrong", surroundings.values_not_allowed),
    Check("project.file", "wrong", surroundings.project_file),
    Check("project.store", "wrong", surroundings.project_store),
    Check("store.missing", "wrong", surroundings.no_store),
    Check("store.network", "wrong", surroundings.network),
    Check("store.read-only", "wrong", surroundings.read_only),
    Check("store.room", "warning", surroundings.no_room),
    Check("store.open", "warning", surroundings.open_to_others),
    Check("store.owner", "wrong", surroundings.foreign_files),
    Check("store.host", "wrong", surroundings.other_host),
    Check("store.replaced", "warning", surroundings.kept_logs),
    Check("store.unfinished", "warning", surroundings.unfinished),
    Check("store.strays", "warning", surroundings.strays),
    Check("log.gone", "wrong", surroundings.log_gone),
    Check("log.unreadable", "wrong", log.unreadable),
    Check("log.format", "wrong", log.other_format),
    Check("log.tables", "wrong", log.changed_tables),
    Check("log.entries", "wrong", log.damaged_entries),
    Check("log.behind", "wrong", log.behind_the_mark),
    Check("log.holdings", "wrong", log.broken_holdings),
    Check("log.write-ahead", "warning", log.long_write_ahead),
    Check("log.clock", "warning", log.ahead_of_the_clock),
    Check("log.snapshot", "warning", log.old_snapshot),
    Check("keys.missing", "wrong", keys.missing),
    Check("keys.unreadable", "wrong", keys.unreadable),
    Check("keys.other", "wrong", keys.of_another_store),
    Check("keys.inside", "wrong", keys.inside_the_store),
    Check("keys.open", "wrong", keys.open_to_others),
    Check("keys.vanishing", "wrong", keys.vanishing),
    Check("keys.sign", "warning", keys.not_signing),
    Check("keys.backup", "warning", keys.not_backed_up),
    Check("mark.missing", "warning", keys.no_mark),
    Check("mark.damaged", "wrong", keys.mark_damaged),
    Check("mark.place", "warning", keys.no_place_for_the_mark),
    Check("views.gone", "wrong", views.gone),
    Check("views.damaged", "wrong", views.damaged),
    Check("views.strays", "warning", views.strays),
    Check("views.release", "warning", views.of_other_releases),
    Check("vectors.damaged", "wrong", views.vectors_damaged),
    Check("vectors.missing", "warning", views.vectors_missing),
    Check("vectors.models", "warning", views.vectors_of_many_models),
    Check("model.next", "warning", views.model_next),
    Check("model.missing", "wrong", views.model_missing),
    Check("model.none", "warning", views.no_model),
    Check("namespaces.alike", "warning", names.alike),
)
"""Every check there is, by the order in which they are told."""


def diagnose(asked: Asked) -> Diagnosis:
    """Look at a store in whatever state it is, and change nothing. Raises nothing that is wrong with it: it is told."""
    patient = Patient(asked, still=True)
    try:
        found = _examined(patient)
    finally:
        still = patient.close()
    if still:
        return found
    patient = Patient(asked, still=False)  # somebody wrote to it meanwhile
    try:
        return _examined(patient)
    finally:
        patient.close()


def _examined(patient: Patient) -> Diagnosis:
    findings: list[Finding] = []
    stumbled: dict[str, Exception] = {}
    for check in CHECKS:
        try:
            findings += [Finding(check.name, check.level, *sign) for sign in check.look(patient)]
        except (TallystickError, OSError) as error:
            stumbled[check.name] = error
    if stumbled and not any(finding.level == "wrong" for finding in findings):
        name, raised = next(iter(stumbled.items()))
        findings.append(Finding(name, "wrong", f"This could not be looked at: {raised}", "Mend that, then look again."))
    return Diagnosis(
        str(patient.path),
        _place(patient),
        tuple(check.name for check in CHECKS if check.name not in stumbled),
        tuple(stumbled),
        tuple(sorted(findings, key=lambda finding: finding.level != "wrong")),
        _versions(),
    )


def _place(patient: Patient) -> str:
    try:
        return str(patient.place)
    except (TallystickError, OSError):
        return ""


def _versions() -> dict[str, str]:
    from importlib.metadata import version  # noqa: PLC0415  slow to import, and needed here alone

    scratch = Scratch()
    try:
        sqlite, cipher = (
            str(scratch.value(statement)) for statement in ("SELECT sqlite_version()", "PRAGMA cipher_version")
        )
    finally:
        scratch.close()
    return {
        "tallystick": version("tallystick"),
        "python": platform.python_version(),
        "sqlite": sqlite,
        "sqlcipher": cipher,
        "system": platform.platform(),
    }
