"""One side of a comparison, in a process of its own: store texts, or ask questions of them, and say what it cost.

Only the standard library is imported here, since a side may run where Tallystick is not installed.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from benchmarks.running import disk_mib, most_mib
from benchmarks.scoring import ANSWERS, cpu_ms, found, percentile


class Side(Protocol):
    """A memory that is open, without or with an embedding model."""

    version: str
    refused: int
    """How many texts it did not take."""

    def store(self, text: str) -> None:
        """Keep a text."""

    def settle(self) -> None:
        """Wait until all that follows from storing is done: vectors that are made in the background."""

    def recall(self, question: str, limit: int) -> list[str]:
        """The texts that answer best."""


Opened = Callable[[Path, str | None], AbstractContextManager[Side]]
"""Opens a side in a folder, with the embedding model of a folder or with none."""


def main(opened: Opened) -> None:
    """Do one act, and print a JSON document. The processor time of a first recall counts from the process's start."""
    parser = argparse.ArgumentParser()
    parser.add_argument("act", choices=("store", "recall"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--model")
    options = parser.parse_args()
    corpus = json.loads(options.corpus.read_text())
    with opened(options.folder, options.model) as side:
        told = _store(side, corpus["texts"]) if options.act == "store" else _recall(side, corpus["questions"])
        told |= {"version": side.version, "refused": side.refused, "rss_mib": most_mib()}
    print(json.dumps(told | {"disk_mib": disk_mib(options.folder)}))


def _store(side: Side, texts: list[str]) -> dict[str, Any]:
    """Store one after the other, vectors included; the first one, which loads the model, is not counted."""
    side.store(texts[0])
    side.settle()
    start = time.process_time()
    spent = [_timed(partial(side.store, text)) for text in texts[1:]]
    side.settle()
    whole = (time.process_time() - start) * 1000 / len(spent)
    return {"cpu_ms": round(whole, 2), "p95": round(percentile(spent, 95), 2)}


def _recall(side: Side, questions: list[dict[str, Any]]) -> dict[str, Any]:
    side.recall(questions[0]["text"], ANSWERS)
    first = round(time.process_time(), 2)
    asked = []
    for question in questions:
        start = time.process_time()
        given = side.recall(question["text"], ANSWERS)
        spent = (time.process_time() - start) * 1000
        asked.append(found("", given, frozenset(question["evidence"]), spent))
    return {"first_cpu_seconds": first, "cpu_ms": cpu_ms(asked), "ranks": [each.rank for each in asked]}


def _timed(act: Callable[[], None]) -> float:
    start = time.process_time()
    act()
    return (time.process_time() - start) * 1000
