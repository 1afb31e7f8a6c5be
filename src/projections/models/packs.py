"""Models for where there is no network: packed into a folder or one file, and put into the cache from it."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ...errors import Refused
from . import manifest
from .manifest import REPACK, Manifest, parsed, require_good
from .places import cache, cache_folder, place_of

ZIP = ".zip"
_THEN = (1980, 1, 1, 0, 0, 0)
"""The date of every file in an archive, so that one model always gives one archive."""


class Packed(NamedTuple):
    """A model that was packed, or put into the cache: its name, where it is, its files, and its manifest's SHA-256."""

    model: str
    path: Path
    files: int
    sha256: str


def pack(model: str, out: Path) -> Packed:
    """Write a model, verified, with a manifest of hashes, to a new folder, or to one file where that ends in `.zip`.

    Raises ModelMissing where the model is not here or not whole, Refused where something is there already.
    """
    if out.exists():
        raise Refused(f"{out} is there already. Name a folder, or a file that ends in .zip, that is not.")
    place = place_of(model)
    name = place.folder.resolve().name if place.source == "path" else model
    cache_folder(name)  # raises where the folder's own name can be no model's
    require_good(name, place.folder)
    listed = manifest.made_of(name, place.folder)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".packing-", dir=out.parent) as there:
        staged = Path(there, out.name)
        (_archive if out.suffix == ZIP else _copy)(place.folder, listed, staged)
        staged.rename(out)
    return _packed(listed, out)


def install(source: Path) -> Packed:
    """Put what `pack` wrote, a folder or a file, into the cache. Nothing is left of a model that is not whole.

    Raises Refused for what `pack` did not write, ModelMissing where a file is not what the manifest, or the pin of a
    model that is known, says.
    """
    with staging() as folder:
        listed = _unpack(source, folder) if source.is_file() else _take(source, folder)
        return put_in_place(folder, listed)


@contextmanager
def staging() -> Iterator[Path]:
    """An empty folder inside the cache for a model that is not whole yet; gone in the end with all that is in it."""
    cache().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=cache()) as there:
        folder = Path(there, "model")
        folder.mkdir()
        yield folder


def put_in_place(folder: Path, listed: Manifest) -> Packed:
    """Verify a folder, and move it to where the cache keeps a model of this name, over what was there."""
    (folder / manifest.FILE).write_text(listed.as_json(), encoding="utf-8")
    require_good(listed.name, folder)
    target = cache_folder(listed.name)
    if target.exists():
        target.rename(folder.with_name("before"))
    folder.rename(target)
    return _packed(listed, target)


def _packed(listed: Manifest, path: Path) -> Packed:
    return Packed(listed.name, path, len(listed.files), hashlib.sha256(listed.as_json().encode()).hexdigest())


def _copy(folder: Path, listed: Manifest, out: Path) -> None:
    for name in listed.files:
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / name, out / name)
    (out / manifest.FILE).write_text(listed.as_json(), encoding="utf-8")


def _archive(folder: Path, listed: Manifest, out: Path) -> None:
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(zipfile.ZipInfo(manifest.FILE, _THEN), listed.as_json())
        for name in sorted(listed.files):
            with (folder / name).open("rb") as file, archive.open(zipfile.ZipInfo(name, _THEN), "w") as entry:
                shutil.copyfileobj(file, entry)


def _take(source: Path, folder: Path) -> Manifest:
    listed = manifest.manifest_of(source)
    if listed is None:
        raise Refused(f"{source} has no {manifest.FILE}: it is not packed. Name what `tallystick models pack` wrote.")
    _copy(source, listed, folder)
    return listed


def _unpack(source: Path, folder: Path) -> Manifest:
    try:
        with zipfile.ZipFile(source) as archive:
            listed = parsed(archive.read(manifest.FILE), str(source))
            for name in listed.files:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                with archive.open(name) as entry, (folder / name).open("wb") as file:
                    shutil.copyfileobj(entry, file)
    except (zipfile.BadZipFile, KeyError, EOFError, NotImplementedError, RuntimeError) as error:
        raise Refused(f"{source} is no whole archive of a model ({error}). {REPACK}") from error
    return listed
