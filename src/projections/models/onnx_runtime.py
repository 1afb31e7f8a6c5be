"""How an ONNX model is loaded."""

from __future__ import annotations

import os
import platform
from io import BufferedReader
from pathlib import Path
from typing import Any

from ...errors import ModelMissing
from .known import MOST_TOKENS, REPAIR

_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids"})
MOST_CHARACTERS = 32 * MOST_TOKENS
"""Characters of a text that are tokenized at all, so that a huge text does not cost for what is cut off."""
OPEN_FILES = Path("/proc/self/fd")
"""Where Linux has the files of this process, by number: onnxruntime then reads the one that is open, in parts."""


def load(folder: Path, model: BufferedReader, tokenizer: bytes) -> tuple[Any, Any, str]:
    """An onnxruntime session, a tokenizer, and a line on what they run on."""
    try:
        os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # read at import: without it, importing opens connections
        import onnxruntime  # noqa: PLC0415  optional, and heavy
        import tokenizers  # noqa: PLC0415  optional
        from onnxruntime.capi import onnxruntime_pybind11_state as state  # noqa: PLC0415  optional
    except ImportError as error:
        raise ModelMissing(f"The model in {folder} needs {error.name}: install tallystick[onnx].") from error
    unusable = (state.Fail, state.InvalidArgument, state.InvalidGraph, state.InvalidProtobuf, state.NotImplemented)
    try:
        words = tokenizers.Tokenizer.from_buffer(tokenizer)
        session = _session(onnxruntime, model)
    except (ValueError, *unusable) as error:
        raise ModelMissing(f"The model in {folder} can't be loaded: {error}. {REPAIR}") from error
    words.no_padding()
    words.enable_truncation(MOST_TOKENS)
    return session, words, f"onnxruntime {onnxruntime.__version__}, {instruction_set()}"


def takes_texts(session: Any) -> bool:
    """Whether a model asks for nothing but what a tokenizer gives."""
    return _INPUTS.issuperset(item.name for item in session.get_inputs())


def run(session: Any, tokenizer: Any, *texts: str) -> tuple[Any, Any]:
    """What a model gives for a text or a pair, and how that was tokenized."""
    import numpy  # noqa: PLC0415  0.1 s that a start without a model need not pay

    encoded = tokenizer.encode(*(text[:MOST_CHARACTERS].encode("utf-8", "replace").decode() for text in texts))
    feed = {"input_ids": encoded.ids, "attention_mask": encoded.attention_mask, "token_type_ids": encoded.type_ids}
    arrays = {item.name: numpy.array([feed[item.name]], dtype=numpy.int64) for item in session.get_inputs()}
    return session.run([session.get_outputs()[0].name], arrays)[0][0], encoded


def _session(onnxruntime: Any, model: BufferedReader) -> Any:
    """A session that is quiet and keeps to the thread that calls it."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    named = OPEN_FILES / str(model.fileno())
    source = str(named) if named.exists() else model.read()  # which takes the size of the model more of memory
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def instruction_set() -> str:
    """Architecture and vector extensions of this processor, as numpy finds them."""
    import numpy  # noqa: PLC0415  0.1 s that a start without a model need not pay

    extensions = (numpy.show_config(mode="dicts") or {}).get("SIMD Extensions", {})
    return " ".join([platform.machine(), *extensions.get("baseline", []), *extensions.get("found", [])])
