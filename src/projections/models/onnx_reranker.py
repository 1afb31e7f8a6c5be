"""The reranker that runs an ONNX cross-encoder, on one thread of the processor."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ...errors import ModelMissing
from .known import ONNX, REPAIR, TOKENIZER, Known, read_pinned
from .onnx_embedder import INPUTS, MOST_CHARACTERS
from .onnx_runtime import load


class OnnxReranker:
    """A reranker over a folder with `model.onnx`, of one logit for a pair of texts, and `tokenizer.json`.

    The pair counts up to 512 tokens, the longer text being cut first. Never uses the network.
    """

    def __init__(self, folder: Path, pinned: Known | None = None) -> None:
        """Load the model, from the very bytes that were hashed. Raises ModelMissing as `OnnxEmbedder` does."""
        model, model_sha256 = read_pinned(folder / ONNX, pinned)
        tokenizer, tokenizer_sha256 = read_pinned(folder / TOKENIZER, pinned)
        self._session, self._tokenizer, self.runtime = load(folder, model, tokenizer)
        self._inputs = [item.name for item in self._session.get_inputs()]
        output = self._session.get_outputs()[0]
        self._output = output.name
        if not INPUTS.issuperset(self._inputs) or len(output.shape) != 2:
            raise ModelMissing(f"The model in {folder} does not judge pairs of texts. {REPAIR}")
        self.id = hashlib.sha256(f"{model_sha256} {tokenizer_sha256}".encode()).hexdigest()[:16]

    def score(self, question: str, passage: str) -> float:
        """How well a passage answers a question."""
        import numpy  # noqa: PLC0415  0.1 s that a start without a model need not pay

        encoded = self._tokenizer.encode(*(_whole(text) for text in (question, passage)))
        feed = {
            "input_ids": encoded.ids,
            "attention_mask": encoded.attention_mask,
            "token_type_ids": encoded.type_ids,
        }
        arrays = {name: numpy.array([feed[name]], dtype=numpy.int64) for name in self._inputs}
        return float(self._session.run([self._output], arrays)[0][0][0])


def _whole(text: str) -> str:
    return text[:MOST_CHARACTERS].encode("utf-8", "replace").decode()
