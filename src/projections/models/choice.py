"""The model that was chosen for a store, and the one that is to take its place once its vectors are made."""

from __future__ import annotations

import os
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ...config import toml_text
from ...errors import Refused
from . import places
from .known import known_as, space_of
from .places import AUTO, NONE, place_of

FILE = "settings.toml"
_HEADING = "# What `tallystick models use` has chosen for this store.\n"


Tell = Callable[[int, int], None]
"""Is told how many vectors were made, and of how many."""


class Switch(NamedTuple):
    """A store's way to another model: how many vectors were made now, and how many are still missing.

    With none missing the model is in force. Until then the one before answers.
    """

    model: str
    space: str | None
    vectors: int
    missing: int


class Choice(NamedTuple):
    """The model in force, with the id of its space where that is known, and the next one; empty where there is none."""

    model: str = AUTO
    space: str = ""
    next_model: str = ""


def read_choice(store: Path) -> Choice:
    """What was chosen for the store in a folder; the default where nothing was. Raises Refused for a spoilt file."""
    file = store / FILE
    try:
        written = tomllib.loads(file.read_text(encoding="utf-8"))
        strange = [name for name, value in written.items() if name not in Choice._fields or type(value) is not str]
        if strange:
            raise ValueError(f"{strange[0]} is no setting, or no text")
        return Choice(**written)
    except FileNotFoundError:
        return Choice()
    except (ValueError, OSError) as error:
        raise Refused(
            f"{file} can't be read: {error}. Mend or delete it: without it the default model is used."
        ) from error


def write_choice(store: Path, choice: Choice) -> None:
    """Choose for the store in a folder: whole or not at all, and on the disk when this returns."""
    lines = "".join(f"{name} = {toml_text(value)}\n" for name, value in choice._asdict().items() if value)
    with tempfile.NamedTemporaryFile("w", dir=store, prefix=f".{FILE}-", delete=False, encoding="utf-8") as file:
        file.write(_HEADING + lines)
        file.flush()
        os.fsync(file.fileno())
    os.replace(file.name, store / FILE)
    folder = os.open(store, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def as_written(model: str) -> str:
    """A model as it is written down: a folder in full. Raises ModelMissing, or Refused for a reranker."""
    known = known_as(model)
    if known is not None and known.job != "embedder":
        raise Refused(f"{model} judges answers and makes no vectors. Name an embedder of `tallystick models list`.")
    if model in (AUTO, NONE):
        return model
    place = place_of(model)
    return str(place.folder.resolve()) if place.source == "path" else model


def begin(store: Path, model: str) -> None:
    """Choose the next model of the store in a folder."""
    write_choice(store, read_choice(store)._replace(next_model=model))


def space_named(model: str) -> str | None:
    """The id of the space of a model that is known, without loading it."""
    known = known_as(places.name_of(model))
    space = space_of(known) if known else None
    return space.id if space else None


def finish(store: Path, model: str, space: str | None) -> None:
    """Put the next model in force. Raises Refused where another one was chosen meanwhile."""
    chosen = read_choice(store)
    if model not in (chosen.next_model, chosen.model):
        raise Refused(f"Another model was chosen meanwhile: {chosen.next_model or chosen.model}. Choose again.")
    write_choice(store, Choice(model, space or ""))


def stamp_of(store: Path) -> tuple[int, int] | None:
    """What changes whenever something is chosen: every choice is a file of its own."""
    try:
        status = os.stat(store / FILE)
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns


class Chosen:
    """The model that a store is opened with: the one that the caller named, else the one that was chosen for it."""

    def __init__(self, store: Path, given: str) -> None:
        self.given = given
        self._store = store
        self._stamp: tuple[int, int] | None = None
        self._choice = Choice()

    @property
    def choice(self) -> Choice:
        """What was chosen for the store, by whatever process; read again only when it was changed."""
        stamp = stamp_of(self._store)
        if stamp != self._stamp:
            self._choice, self._stamp = read_choice(self._store), stamp
        return self._choice

    @property
    def name(self) -> str:
        """The model in force here, as it is named in a setting."""
        return self.choice.model if self.given == AUTO else self.given

    @property
    def space(self) -> str | None:
        """The id of its embedding space, as far as that is known without loading it."""
        chosen = self.choice.space if self.given == AUTO else ""
        return space_named(self.name) or chosen or None

    @property
    def spaces(self) -> set[str]:
        """The ids of the spaces in force, here and where nothing else is said, as far as they are known."""
        chosen = space_named(self.choice.model) or self.choice.space
        return {space for space in (self.space, chosen) if space}
