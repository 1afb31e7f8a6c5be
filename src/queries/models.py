"""Which models there are, where each was found, and what a store has of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from ..projections.models.choice import Choice
from ..projections.models.known import FILES, KNOWN, known_as, space_of
from ..projections.models.manifest import Checked, check
from ..projections.models.places import Place, cached, find, is_of_torch, missing_packages, name_of, place_of
from ..projections.models.torch_folder import files_of


class Model(NamedTuple):
    """A model: what it does (`embedder`, `reranker`), and where it was found (`path`, `cache`, `extra`; else empty).

    `space` is the id of its embedding space, where that is known without loading it; `needs` are packages that it
    runs on and that are not installed. Of a store: whether it is in force or next (`use`), and how many vectors there
    are. What a store has of a model that is not here any more goes by its space.
    """

    name: str
    job: str
    source: str
    folder: str
    bytes: int
    space: str
    needs: tuple[str, ...]
    use: str
    vectors: int


class Held(NamedTuple):
    """What a store has: the model in force as a setting names it, what was chosen for it, and its vectors by space."""

    model: str
    space: str | None
    choice: Choice
    vectors: Mapping[str, int]


def models(held: Held | None) -> list[Model]:
    """Every model that is known, in the cache, or in use by a store; and the spaces of the store that are none's."""
    listed = list(_listed(held))
    spaces = {} if held is None else held.vectors
    rest = set(spaces) - {model.space for model in listed}
    return [*listed, *(Model("", "embedder", "", "", 0, space, (), "", spaces[space]) for space in sorted(rest))]


def verify_models(model: str | None) -> list[Checked]:
    """Every file of a model, or of all that are known and here or in the cache, hashed. Raises ModelMissing."""
    if model is not None:
        return check(model, place_of(model).folder)
    here = [(name, place) for name in _names() if (place := find(name)) is not None]
    return [each for name, place in here for each in check(name, place.folder)]


def _names() -> list[str]:
    return list(dict.fromkeys([*(known.name for known in KNOWN), *cached()]))


def _listed(held: Held | None) -> Iterator[Model]:
    used = {} if held is None else {held.choice.next_model: "next", name_of(held.model): "in force"}
    own = [name for name in used if name not in ("", "none", "auto")]
    for name in dict.fromkeys([*_names(), *own]):
        known, place = known_as(name), find(name)
        space = (space_of(known) if known else None) or None
        at = space.id if space else _space_in_use(held, used.get(name))
        yield Model(
            name,
            known.job if known else "embedder",
            place.source if place else "",
            str(place.folder) if place else "",
            _bytes(place),
            at,
            tuple(missing_packages(place.folder)) if place else (),
            used.get(name, ""),
            held.vectors.get(at, 0) if held and at else 0,
        )


def _space_in_use(held: Held | None, use: str | None) -> str:
    return held.space or "" if held is not None and use == "in force" else ""


def _bytes(place: Place | None) -> int:
    if place is None:
        return 0
    files: list[Path] = files_of(place.folder) if is_of_torch(place.folder) else [place.folder / name for name in FILES]
    return sum(file.stat().st_size for file in files if file.is_file())
