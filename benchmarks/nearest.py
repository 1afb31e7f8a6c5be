"""How many of the nearest vectors are found, and at what cost: `python -m benchmarks.nearest [--json] [--texts N]`.

The texts are paragraphs of the documentation of this Python's standard library and of the packages installed in it;
every hundredth is asked for by its first ten words and is not among them. The model embeds each. Recall@k: how many of
the first k of an exact scan in float32 are among the first k. Processor time of one thread: the least of three runs,
and the median over the questions. 100,000 texts take ten minutes.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import sysconfig
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy

from benchmarks.running import parser, say, tell
from tallystick.projections.models.known import OFFLINE
from tallystick.projections.models.onnx_embedder import OnnxEmbedder
from tallystick.projections.models.places import offline_folder
from tallystick.projections.vector_index import NumpyIndex
from tools.fit_projection import documented

TEXTS, LIMIT, RUNS = 20_000, 50, 3
ASKED_EVERY, ASKED_WORDS, QUESTIONS = 100, 10, 1000
DEPTHS = (10, 50)


def paragraphs(most: int) -> list[str]:
    """So many paragraphs, or all there are, each once, shuffled."""
    paths = sysconfig.get_paths()
    files = {file for name in ("stdlib", "purelib") for file in Path(paths[name]).rglob("*.py")}
    found = sorted({text for file in files for text in documented(file)})
    random.Random(1).shuffle(found)
    return found[:most]


def least(call: Callable[[Any], Any], questions: Sequence[Any]) -> tuple[list[Any], float]:
    """What is answered, and the milliseconds that one answer costs."""
    answers, spent = [], []
    for question in questions:
        runs = []
        for _ in range(RUNS):
            start = time.process_time_ns()
            answer = call(question)
            runs.append(time.process_time_ns() - start)
        answers.append(answer)
        spent.append(min(runs))
    return answers, round(statistics.median(spent) / 1e6, 3)


def measure(texts: Sequence[str]) -> dict[str, Any]:
    """Embed the texts and ask."""
    folder = offline_folder(OFFLINE)
    assert folder is not None, "Install tallystick[offline-models] to run this."
    model = OnnxEmbedder(folder, OFFLINE)
    asked = [" ".join(text.split()[:ASKED_WORDS]) for text in texts[::ASKED_EVERY]][:QUESTIONS]
    kept = [text for number, text in enumerate(texts) if number % ASKED_EVERY]
    rows = numpy.empty((len(kept), model.space.dimensions), dtype=numpy.float16)
    for number, text in enumerate(kept):
        rows[number] = model.document(text).vector
        if number % 5000 == 0:
            tell(f"{number:,} of {len(kept):,} texts embedded")
    questions = [model.query(each).vector for each in asked]
    index, everything = NumpyIndex(rows.shape[1]), numpy.ones(len(kept), dtype=bool)
    index.put(numpy.arange(len(kept)), rows)
    whole = rows.astype(numpy.float32)
    whole /= numpy.linalg.norm(whole, axis=1, keepdims=True)

    def exact(vector: Any) -> Any:
        scores = whole @ vector
        best = numpy.argpartition(scores, len(scores) - LIMIT)[-LIMIT:]
        return best[numpy.argsort(-scores[best])]

    found, ours = least(lambda vector: index.search(vector, everything, LIMIT).places, questions)
    truth, theirs = least(exact, questions)
    recalls = {f"recall@{k}": round(statistics.fmean(map(_shared(k), found, truth)), 4) for k in DEPTHS}
    return {"vectors": len(kept), "questions": len(asked), **recalls, "ms": ours, "exact_ms": theirs}


def _shared(k: int) -> Callable[[Any, Any], float]:
    return lambda one, other: len({*one[:k].tolist()} & {*other[:k].tolist()}) / k


def table(report: Mapping[str, Any]) -> str:
    """The report for people."""
    ratio = report["ms"] / report["exact_ms"]
    return (
        f"{report['vectors']:,} vectors, {report['questions']} questions: "
        + ", ".join(f"recall@{k} {report[f'recall@{k}']:.4f}" for k in DEPTHS)
        + f"; {report['ms']} ms, an exact scan {report['exact_ms']} ms: {ratio:.2f} of it"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if "OPENBLAS_NUM_THREADS" not in os.environ:  # read when numpy is loaded
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks.nearest", *given])
    takes = parser("benchmarks.nearest", __doc__)
    takes.add_argument("--texts", type=int, default=TEXTS, metavar="N", help="so many texts, where there are as many")
    options = takes.parse_args(given)
    say(measure(paragraphs(options.texts)), "benchmarks.nearest", given, table)


if __name__ == "__main__":
    main()
