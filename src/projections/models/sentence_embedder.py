"""The embedder that runs a model of sentence-transformers: any of the hub's, from a folder on the disk."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from ...errors import ModelMissing
from ..embedding import Embedded, Space
from .known import Known, known_by
from .onnx_runtime import instruction_set
from .torch_folder import WEIGHTS, Hashes, hashes_of, require_no_code, require_pinned_files

if TYPE_CHECKING:
    from ..embedding import Floats


MOST_CHARACTERS = 1 << 15
"""Characters of a text that are tokenized at all, so that a huge text does not cost for what is cut off."""


class SentenceEmbedder:
    """An embedder over the folder of a model of sentence-transformers, its weights in `model.safetensors`.

    One vector for a text, as the model's own files pool it, scaled to length one; its prompts are used. A text counts
    as far as the model reads. Code that a folder brings is never run, and no file of pickled objects is read. Runs on
    the processor, one text at a time, and never uses the network.
    """

    def __init__(self, folder: Path, pinned: Known | None = None) -> None:
        """Load the model.

        Raises ModelMissing if a file is absent, not the `pinned` one or no model, if the folder wants code of its own
        to be run, or if sentence-transformers is not installed.
        """
        require_no_code(folder)
        hashes = hashes_of(folder)
        require_pinned_files(folder, hashes, pinned)
        self._model, self.runtime = load_torch(folder, "SentenceTransformer")
        self._running = Lock()
        self.space = _space(hashes, self._model.prompts, len(self.document("").vector))

    def document(self, text: str) -> Embedded:
        """A text that is to be found."""
        return self._embedded(self._model.encode_document, text)

    def query(self, text: str) -> Embedded:
        """A question."""
        return self._embedded(self._model.encode_query, text)

    def _embedded(self, encode: Any, text: str) -> Embedded:
        whole = text[:MOST_CHARACTERS].encode("utf-8", "replace").decode()
        with self._running:  # a tokenizer is used by one thread at a time
            vector: Floats = encode([whole], batch_size=1, normalize_embeddings=True, show_progress_bar=False)[0]
        return Embedded(vector.astype("float32"))


def load_torch(folder: Path, kind: str) -> tuple[Any, str]:
    """A model of a class of sentence-transformers, and a line on what it runs on. Raises ModelMissing."""
    try:
        library = importlib.import_module("sentence_transformers")
        torch, transformers = importlib.import_module("torch"), importlib.import_module("transformers.utils.logging")
        unreadable = importlib.import_module("safetensors").SafetensorError
    except ImportError as error:
        raise ModelMissing(
            f"The model in {folder} needs {error.name}: install tallystick[sentence-transformers]."
        ) from error
    options = {"device": "cpu", "local_files_only": True, "model_kwargs": {"use_safetensors": True}}
    try:
        with _quiet(transformers):
            model = getattr(library, kind)(str(folder), **options)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, unreadable) as error:
        raise ModelMissing(
            f"The model in {folder} can't be loaded: {error}. Fetch it again, name another one, or set the model to "
            f'"none".'
        ) from error
    return model, f"sentence-transformers {library.__version__}, torch {torch.__version__}, {instruction_set()}"


@contextmanager
def _quiet(logging: Any) -> Iterator[None]:
    """Without the progress bar of a model that is loaded."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _space(hashes: Hashes, prompts: dict[str, str], dimensions: int) -> Space:
    known = known_by(WEIGHTS, hashes.of(WEIGHTS))
    return Space(
        model=known.name if known else f"sentence-transformers-{hashes.model[:8]}",
        model_sha256=hashes.model,
        tokenizer_sha256=hashes.tokenizer,
        dimensions=dimensions,
        pooling="as the model's files say",
        prompts=(prompts.get("document", ""), prompts.get("query", "")),
        quantisation="as in the file",
    )
