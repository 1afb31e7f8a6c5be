"""The folder of a model of sentence-transformers: which of its files count, their hashes, and what is refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import ModelMissing
from .known import MODULES, Known, sha256_of, unreadable

WEIGHTS = "model.safetensors"
COUNTING = (".json", ".txt", ".safetensors", ".model")
"""Endings of the files that can change a vector, or come with those that do."""
_OF_THE_TOKENIZER = ("tokenizer", "vocab", "special_tokens", "merges", "sentencepiece", "spiece", "added_tokens")
_NOT_READ = frozenset({"manifest.json", "data_config.json"})


class Hashes(NamedTuple):
    """The SHA-256 of each file that counts, by path; of those of the tokenizer together, and of the others."""

    files: Mapping[str, str]

    def of(self, file: str) -> str:
        """That of one file; empty where it is not there."""
        return self.files.get(file, "")

    @property
    def tokenizer(self) -> str:
        """Of the files by which a text becomes tokens."""
        return _together({name: sha256 for name, sha256 in self.files.items() if _of_the_tokenizer(name)})

    @property
    def model(self) -> str:
        """Of all other files that count."""
        return _together({name: sha256 for name, sha256 in self.files.items() if not _of_the_tokenizer(name)})


def counts(path: str) -> bool:
    """Whether a file of such a folder is one that is read: no code, no pickled weights, nothing in a deep folder."""
    *folders, name = path.split("/")
    return len(folders) <= 1 and name.endswith(COUNTING) and folders not in (["onnx"], ["openvino"])


def files_of(folder: Path) -> list[Path]:
    """The files of a folder that count, in order."""
    return sorted(file for file in folder.rglob("*") if file.is_file() and counts(file.relative_to(folder).as_posix()))


def hashes_of(folder: Path) -> Hashes:
    """The hashes of the files of a folder that can change a vector. Raises ModelMissing."""
    named = {file.relative_to(folder).as_posix(): file for file in files_of(folder)}
    return Hashes({name: sha256_of(file) for name, file in named.items() if name not in _NOT_READ})


def require_pinned_files(folder: Path, hashes: Hashes, pinned: Known | None) -> None:
    """Refuse a folder that has not the pinned files. Raises ModelMissing."""
    if pinned is None:
        return
    for name, sha256 in pinned.sha256.items():
        if hashes.of(name) != sha256:
            raise ModelMissing(
                f"The model file {folder / name} is gone or not the pinned one. Delete the folder, then run "
                f"`tallystick models fetch {pinned.name}`."
            )


def require_no_code(folder: Path) -> None:
    """Refuse a model that wants code beside it to be run, as a module or as a class. Raises ModelMissing."""
    try:
        modules = json.loads((folder / MODULES).read_bytes()) if (folder / MODULES).is_file() else []
        kinds = [str(module["type"]) for module in modules]
        settings = [json.loads(file.read_bytes()) for file in sorted(folder.glob("*config.json"))]
        own = [name for each in settings for name in _own_classes(each)]
    except OSError as error:
        raise unreadable(folder, error) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelMissing(
            f"The modules and settings in {folder} can't be read. Fetch the model again, or name another one."
        ) from error
    foreign = [kind for kind in kinds if not kind.startswith("sentence_transformers.")] + own
    if foreign:
        raise ModelMissing(
            f"The model in {folder} wants its own code to be run ({foreign[0]}), which is never done. Name another one."
        )


def _own_classes(settings: Any) -> list[str]:
    return list(settings.get("auto_map", ())) if isinstance(settings, dict) else []


def _of_the_tokenizer(name: str) -> bool:
    return name.startswith(_OF_THE_TOKENIZER)


def _together(files: Mapping[str, str]) -> str:
    listed = "".join(f"{sha256}  {name}\n" for name, sha256 in sorted(files.items()))
    return hashlib.sha256(listed.encode()).hexdigest()
