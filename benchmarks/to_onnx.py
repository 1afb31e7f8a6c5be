"""Write a BERT model of safetensors as `model.onnx` and `tokenizer.json`: `python -m benchmarks.to_onnx FROM TO`.

So that both sides of `benchmarks.peers` run the same weights. Run in an environment with torch, transformers and onnx.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModel

INPUTS = ["input_ids", "attention_mask", "token_type_ids"]


class Rows(torch.nn.Module):  # type: ignore[misc]  # torch is not installed where types are checked
    """The vectors of the tokens, and nothing else that the model gives."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self._model = model

    def forward(self, *given: Any) -> Any:
        """Vectors of a batch."""
        return self._model(**dict(zip(INPUTS, given, strict=True))).last_hidden_state


def main(source: Path, target: Path) -> None:
    """Export, with any length of text."""
    model = AutoModel.from_pretrained(source, attn_implementation="eager").eval()
    one = torch.ones((1, 7), dtype=torch.int64)
    free = {name: {0: "batch", 1: "tokens"} for name in [*INPUTS, "rows"]}
    target.mkdir()
    torch.onnx.export(
        Rows(model), (one, one, one * 0), str(target / "model.onnx"), input_names=INPUTS, output_names=["rows"],
        dynamic_axes=free, opset_version=17, dynamo=False,
    )  # fmt: skip
    (target / "tokenizer.json").write_bytes((source / "tokenizer.json").read_bytes())


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
