"""The embedder that runs an ONNX model: light, on one thread of the processor."""

from __future__ import annotations

import hashlib
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import ModelMissing
from .. import embedding
from ..embedding import PRODUCTS, Embedded
from .known import ONNX, REPAIR, TOKENIZER, Known, known_by, onnx_space, opened_pinned, read_pinned
from .onnx_runtime import load, run, takes_texts

if TYPE_CHECKING:
    from ..embedding import Floats


class OnnxEmbedder:
    """An embedder over a folder with `model.onnx` and `tokenizer.json`.

    The vector is the mean of the token vectors, special tokens left out, scaled to length one; or the first token's,
    where the model is known to be trained for that. Of the model made for late interaction all token vectors count,
    projected (see `Known`). A text counts up to its first 512 tokens (`MOST_TOKENS`, some 380 English words) and
    16,384 characters; what follows is not seen. Runs on one thread of the processor and never uses the network.
    """

    def __init__(self, folder: Path, pinned: Known | None = None) -> None:
        """Load the model, from the very file that was hashed.

        Raises ModelMissing if a file is absent, not the `pinned` one or not a model of this kind, or if onnxruntime
        or tokenizers is not installed.
        """
        with opened_pinned(folder / ONNX, pinned) as (model, model_sha256):
            tokenizer, tokenizer_sha256 = read_pinned(folder / TOKENIZER, pinned)
            self._session, self._tokenizer, self.runtime = load(folder, model, tokenizer)
        output = self._session.get_outputs()[0]
        self.width = output.shape[-1]
        if not takes_texts(self._session) or len(output.shape) != 3 or not isinstance(self.width, int):
            raise ModelMissing(f"The model in {folder} does not turn tokens into vectors. {REPAIR}")
        known = known_by(ONNX, model_sha256)
        self._first = known is not None and known.pooling == "first"
        self._projection = _projection(known)
        dimensions = self.width if self._projection is None else self._projection.shape[1]
        self.space = onnx_space(known, model_sha256, tokenizer_sha256, dimensions)

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
        rows, encoded = run(self._session, self._tokenizer, text)
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

    file = Path(embedding.__file__).with_name(f"{known.name}.npy")
    content = file.read_bytes()
    if hashlib.sha256(content).hexdigest() != known.projection_sha256:
        raise ModelMissing(f"{file} is not the pinned one. Install tallystick again.")
    matrix: Floats = numpy.load(BytesIO(content)).astype(numpy.float32)
    return matrix
