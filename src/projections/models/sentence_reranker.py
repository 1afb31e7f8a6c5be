"""The reranker that runs a cross-encoder of sentence-transformers, from a folder on the disk."""

from __future__ import annotations

import importlib
from pathlib import Path
from threading import Lock

from .known import Known
from .sentence_embedder import MOST_CHARACTERS, load_torch
from .torch_folder import hashes_of, require_no_code, require_pinned_files


class SentenceReranker:
    """A reranker over the folder of a `CrossEncoder` with one logit, its weights in `model.safetensors`.

    As with `SentenceEmbedder`: no code of the folder's own, no pickled objects, no network.
    """

    def __init__(self, folder: Path, pinned: Known | None = None) -> None:
        """Load the model. Raises ModelMissing as `SentenceEmbedder` does."""
        require_no_code(folder)
        hashes = hashes_of(folder)
        require_pinned_files(folder, hashes, pinned)
        self._model, self.runtime = load_torch(folder, "CrossEncoder")
        self._as_it_is = importlib.import_module("torch.nn").Identity()
        self._running = Lock()
        self.id = hashes.model[:8] + hashes.tokenizer[:8]

    def score(self, question: str, passage: str) -> float:
        """How well a passage answers a question."""
        pair = tuple(text[:MOST_CHARACTERS].encode("utf-8", "replace").decode() for text in (question, passage))
        with self._running:  # a tokenizer is used by one thread at a time
            scores = self._model.predict([pair], activation_fn=self._as_it_is, show_progress_bar=False)
        return float(scores[0])
