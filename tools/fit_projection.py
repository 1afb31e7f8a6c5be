"""Fit the projection of a model's token vectors, on the documentation of Python's standard library.

`python -m tools.fit_projection [--out FILE]`. The vectors of a late-interaction model lie near a subspace; the
principal axes of some 80,000 tokens are found, the first 192 kept, and turned at random, so that every dimension has
the same spread and can be kept in four bits. Deterministic for one Python, one model and one processor.
"""

from __future__ import annotations

import argparse
import ast
import random
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import numpy

from tallystick.projections.models.known import OFFLINE
from tallystick.projections.models.onnx_embedder import OnnxEmbedder
from tallystick.projections.models.places import offline_folder

TEXTS = 2500
DIMENSIONS = 192
SHORTEST, LONGEST = 40, 600


def paragraphs() -> list[str]:
    """The paragraphs of the standard library's docstrings, shuffled, each once."""
    library = Path(sysconfig.get_paths()["stdlib"])
    files = [file for file in sorted(library.rglob("*.py")) if not {"test", "tests", "site-packages"} & {*file.parts}]
    found = sorted({paragraph for file in files for paragraph in documented(file)})
    random.Random(1).shuffle(found)
    return found


def documented(file: Path) -> Iterator[str]:
    """The paragraphs of the docstrings of a file."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef):
            for paragraph in (ast.get_docstring(node) or "").split("\n\n"):
                text = " ".join(paragraph.split())
                if SHORTEST < len(text) < LONGEST:
                    yield text


def fit(embedder: OnnxEmbedder, texts: list[str]) -> numpy.ndarray:
    """The projection: principal axes of the unit token vectors about the origin, then a random rotation."""
    width = embedder.width
    spread = numpy.zeros((width, width))
    for text in texts:
        rows = embedder.rows(text).astype(numpy.float64)
        rows /= numpy.linalg.norm(rows, axis=1, keepdims=True)
        spread += rows.T @ rows
    values, axes = numpy.linalg.eigh(spread)
    kept = axes[:, numpy.argsort(-values)[:DIMENSIONS]]
    turned, _ = numpy.linalg.qr(numpy.random.default_rng(1).standard_normal((DIMENSIONS, DIMENSIONS)))
    print(
        f"{DIMENSIONS} of {width} dimensions hold {100 * numpy.sort(values)[-DIMENSIONS:].sum() / values.sum():.2f} %"
    )
    return numpy.asarray(kept @ turned, dtype="<f2")


def main() -> None:
    """Fit and save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("src/projections") / f"{OFFLINE.name}.npy")
    arguments = parser.parse_args()
    folder = offline_folder(OFFLINE)
    if folder is None:
        raise SystemExit("The model is not here: install tallystick[offline-models].")
    numpy.save(arguments.out, fit(OnnxEmbedder(folder), paragraphs()[:TEXTS]))


if __name__ == "__main__":
    main()
