"""The reranker that runs an ONNX cross-encoder, on one thread of the processor."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ...errors import ModelMissing
from .known import ONNX, REPAIR, TOKENIZER, Known, opened_pinned, read_pinned
from .onnx_runtime import load, run, takes_texts


class OnnxReranker:
    """A reranker over a folder with `model.onnx`, of one logit for a pair of texts, and `tokenizer.json`.

    The pair counts up to 512 tokens, the longer text being cut first. Never uses the network.
    """

    def __init__(self, folder: Path, pinned: Known | None = None) -> None:
        """Load the model, from the very file that was hashed. Raises ModelMissing as `OnnxEmbedder` does."""
        with opened_pinned(folder / ONNX, pinned) as (model, model_sha256):
            tokenizer, tokenizer_sha256 = read_pinned(folder / TOKENIZER, pinned)
            self._session, self._tokenizer, self.runtime = load(folder, model, tokenizer)
        if not takes_texts(self._session) or len(self._session.get_outputs()[0].shape) != 2:
            raise ModelMissing(f"The model in {folder} does not judge pairs of texts. {REPAIR}")
        self.id = hashlib.sha256(f"{model_sha256} {tokenizer_sha256}".encode()).hexdigest()[:16]

    def score(self, question: str, passage: str) -> float:
        """How well a passage answers a question."""
        logits, _ = run(self._session, self._tokenizer, question, passage)
        return float(logits[0])
