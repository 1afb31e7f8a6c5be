"""The files of a model with their SHA-256: as pinned, or as listed when it was fetched or packed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import ModelMissing, Refused
from .known import FILES, ONNX, Known, known_as, known_by, sha256_of
from .places import is_of_torch
from .torch_folder import files_of

FILE = "manifest.json"
_PATH = re.compile(r"[A-Za-z0-9_][\w.-]*(/[A-Za-z0-9_][\w.-]*)?")
REPACK = "Run `tallystick models pack` again where the model is."
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Manifest(NamedTuple):
    """The name of a model and the SHA-256 of each of its files."""

    name: str
    files: Mapping[str, str]

    def as_json(self) -> str:
        """As it is written beside the files."""
        return json.dumps({"name": self.name, "files": dict(sorted(self.files.items()))}, indent=2) + "\n"


class Checked(NamedTuple):
    """A file of a model: its SHA-256, None where it is gone, and the one it must have, None where none is known."""

    model: str
    file: Path
    sha256: str | None
    pinned: str | None

    @property
    def good(self) -> bool:
        """Whether it is what it must be; one of which nothing is known is neither good nor bad, and passes."""
        return self.sha256 is not None and self.pinned in (None, self.sha256)


def parsed(content: bytes, place: str) -> Manifest:
    """A manifest from its bytes. Raises Refused for what is none, or names a file outside of its folder."""
    try:
        read = json.loads(content)
        manifest = Manifest(str(read["name"]), {str(name): str(sha256) for name, sha256 in read["files"].items()})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refused(f"{place} has no manifest that can be read. {REPACK}") from error
    strange = [name for name, sha256 in manifest.files.items() if not (_safe(name) and _SHA256.fullmatch(sha256))]
    if strange or not manifest.files:
        raise Refused(f"The manifest of {place} lists {strange or 'no file'}. {REPACK}")
    return manifest


def manifest_of(folder: Path) -> Manifest | None:
    """The manifest beside the files of a model; None where there is none."""
    file = folder / FILE
    return parsed(file.read_bytes(), str(folder)) if file.is_file() else None


def made_of(name: str, folder: Path) -> Manifest:
    """The manifest of a folder as it is now, of the files that a model is read from. Raises ModelMissing."""
    files = files_of(folder) if is_of_torch(folder) else [folder / file for file in FILES]
    named = {file.relative_to(folder).as_posix(): sha256_of(file) for file in files if file.name != FILE}
    return Manifest(name, named)


def check(name: str, folder: Path) -> list[Checked]:
    """Each file of a model, hashed: against its pins, else against its manifest, else against nothing."""
    pinned = expected(name, folder)
    found = [Checked(name, folder / file, _hash(folder / file), sha256) for file, sha256 in sorted(pinned.items())]
    if found:
        return found
    return [Checked(name, folder / file, sha256, None) for file, sha256 in made_of(name, folder).files.items()]


def expected(name: str, folder: Path) -> Mapping[str, str]:
    """The SHA-256 that each file of a model must have, as far as that is known; what is pinned goes before all else."""
    manifest = manifest_of(folder)
    known = known_as(name) or _known_by_weights(folder)
    return {**(manifest.files if manifest else {}), **(known.sha256 if known else {})}


def require_good(name: str, folder: Path) -> None:
    """Refuse a model with a file that is not what it must be. Raises ModelMissing."""
    wrong = [each for each in check(name, folder) if not each.good]
    if wrong:
        raise ModelMissing(
            f"The model file {wrong[0].file} is {'not the pinned one' if wrong[0].sha256 else 'gone'}. Delete "
            f"its folder, then install or fetch the model again."
        )


def _known_by_weights(folder: Path) -> Known | None:
    return known_by(ONNX, sha256_of(folder / ONNX)) if (folder / ONNX).is_file() else None


def _hash(file: Path) -> str | None:
    return sha256_of(file) if file.is_file() else None


def _safe(name: Any) -> bool:
    return bool(_PATH.fullmatch(name)) and ".." not in name and name != FILE
