"""What a recall costs as a namespace grows, by stage: `python -m benchmarks.recall_speed [--json] [--sizes N ...]`.

Stores of made-up turns: threads of twenty, two authors each, words as often as in language. Their vectors and tokens
are drawn at random around common directions and put where the model would put them; the model itself never runs, and
no question's vector is counted. Processor time; beside each stage what does the same in the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy
from rank_bm25 import BM25Okapi
from sqlcipher3 import dbapi2

from benchmarks.workload import VOCABULARY
from tallystick import Memory
from tallystick.projections import lexical
from tallystick.projections.embedding import Embedded, Space
from tallystick.projections.tokens import query_tokens, tokens
from tallystick.projections.vector import changed_after
from tallystick.projections.vector_cache import Made, VectorCache
from tallystick.projections.vector_index import SqliteVecIndex
from tallystick.projections.vector_search import VectorSearch
from tallystick.queries.answer import Question
from tallystick.queries.pool import Searched
from tallystick.queries.recall import recall

SIZES = (1_000, 10_000, 100_000)
QUESTIONS = 40
TURNS, BATCH = 20, 500
WORDS = (6, 24)
ASKED_WORDS, ASKED_TOKENS = (3, 7), 10
DIMENSIONS, TOKENS_OF_A_TURN, CLUSTERS = 192, 37, 200
SMALL = 1_000
LIMIT = 50
STOPPED = 30
"""The most frequent words of the vocabulary stand for those that are left out of an index: no question asks for them."""


class Figure(NamedTuple):
    """Milliseconds of processor time of one thing at one size: the median, and the 95th percentile."""

    what: str
    memories: int
    median_ms: float
    p95_ms: float
    note: str = ""


class DrawnModel:
    """An embedder that draws: vectors around common directions, as alike as those of texts."""

    runtime = "bench"
    space = Space("drawn", "0" * 64, "0" * 64, DIMENSIONS, "none", ("", ""), "none")

    def __init__(self, seed: int = 1) -> None:
        self._random = numpy.random.default_rng(seed)
        self._common = self._random.standard_normal(DIMENSIONS) / DIMENSIONS**0.5
        self._clusters = self._random.standard_normal((CLUSTERS, DIMENSIONS)) / DIMENSIONS**0.5

    def vectors(self, count: int) -> numpy.ndarray[Any, Any]:
        """Unit vectors, one a row: a third of each is its own."""
        which = self._random.integers(0, CLUSTERS, count)
        own = self._random.standard_normal((count, DIMENSIONS)) / DIMENSIONS**0.5
        rows = self._common + 0.3 * self._clusters[which] + 0.3 * own
        unit: numpy.ndarray[Any, Any] = (rows / numpy.linalg.norm(rows, axis=1, keepdims=True)).astype(numpy.float32)
        return unit

    def document(self, text: str) -> Embedded:
        """Never asked for: raises."""
        raise AssertionError(f"a vector was not cached: {text[:40]!r}")

    def query(self, text: str) -> Embedded:
        """Another question each time."""
        weights = numpy.full(ASKED_TOKENS, 1 / ASKED_TOKENS, dtype=numpy.float32)
        return Embedded(self.vectors(1)[0], self.vectors(ASKED_TOKENS), weights)


class Pooled(DrawnModel):
    """The same without token vectors."""

    def query(self, text: str) -> Embedded:
        """Another question each time."""
        return Embedded(self.vectors(1)[0])


class Words:
    """Texts and questions with words as often as in language: the n-th 1 / (n + 2.7) times as often as the first."""

    def __init__(self) -> None:
        self._random = random.Random(1)
        self._vocabulary = [*VOCABULARY, *(f"{word}{end}" for end in ("na", "so", "ka", "ty", "lo") for word in VOCABULARY)]
        self._weights = [1 / (rank + 2.7) for rank in range(1, len(self._vocabulary) + 1)]

    def text(self) -> str:
        """A turn."""
        return " ".join(self._random.choices(self._vocabulary, self._weights, k=self._random.randint(*WORDS)))

    def texts(self, count: int) -> Iterator[str]:
        """So many turns."""
        lengths = [self._random.randint(*WORDS) for _ in range(count)]
        words = iter(self._random.choices(self._vocabulary, self._weights, k=sum(lengths)))
        return (" ".join(next(words) for _ in range(length)) for length in lengths)

    def question(self) -> str:
        """A few words, none of the most frequent."""
        count = self._random.randint(*ASKED_WORDS)
        return " ".join(self._random.choices(self._vocabulary[STOPPED:], self._weights[STOPPED:], k=count))


def fill(memory: Memory, words: Words, namespace: str, size: int) -> list[str]:
    """Store so many turns in threads of twenty; returns their texts."""
    texts = list(words.texts(size))
    for first in range(0, size, BATCH):
        rows = [
            {
                "text": texts[number],
                "thread": f"t{number // TURNS}",
                "place": number % TURNS,
                "author": ("Ana", "Ben")[number % 2],
                "kind": "turn",
            }
            for number in range(first, min(size, first + BATCH))
        ]
        memory.store_many(rows, namespace=namespace)
    return texts


def put_vectors(memory: Memory, cache: VectorCache, model: DrawnModel, *, with_tokens: bool) -> None:
    """Give each memory a vector, and tokens, where the model would put them."""
    with memory._opened.recalling().reading() as cursor:
        wanted = [row for row in changed_after(cursor, 0) if row.input is not None]
    source = numpy.random.default_rng(2)
    for first in range(0, len(wanted), BATCH):
        rows = wanted[first : first + BATCH]
        vectors = model.vectors(len(rows)).astype("<f2")
        codes = source.integers(0, 256, (len(rows), TOKENS_OF_A_TURN * DIMENSIONS // 2 if with_tokens else 0), numpy.uint8)
        made = [Made(vector.tobytes(), code.tobytes(), model.runtime) for vector, code in zip(vectors, codes, strict=True)]
        cache.put_many(model.space.id, [((row.stream, row.input or b""), one) for row, one in zip(rows, made, strict=True)])


def timed(what: str, size: int, calls: Sequence[Callable[[], object]], note: str = "") -> Figure:
    """Call each, and say what one costs."""
    spent = []
    for call in calls:
        start = time.process_time()
        call()
        spent.append((time.process_time() - start) * 1000)
    spent.sort()
    return Figure(what, size, round(statistics.median(spent), 3), round(spent[int(0.95 * (len(spent) - 1))], 3), note)


def measure(folder: Path, size: int, *, oracles: bool) -> Iterator[Figure]:
    """A store of one namespace of this size, and its stages."""
    words = Words()
    with Memory.open(folder / f"store-{size}", keys=folder / f"keys-{size}", model="none") as memory:
        texts = fill(memory, words, "bench", size)
        fill(memory, words, "small", SMALL if size > SMALL else 0)
        cache = VectorCache(memory._opened.installation)
        put_vectors(memory, cache, DrawnModel(), with_tokens=True)
        questions = [words.question() for _ in range(QUESTIONS)]
        for model, kind in ((DrawnModel(3), "late interaction"), (Pooled(3), "one vector"), (None, "words alone")):
            yield from _recalls(memory, cache, model, kind, questions, size)
        yield from _stages(memory, cache, questions, texts, size, oracles=oracles)
        cache.close()


def _recalls(
    memory: Memory, cache: VectorCache, model: DrawnModel | None, kind: str, questions: Sequence[str], size: int
) -> Iterator[Figure]:
    opened = memory._opened
    search = None if model is None else VectorSearch(cache, model, opened.log)
    opened._search, opened._model_missing = search, search is None
    for namespace in ("bench", "small") if size > SMALL else ("bench",):
        first = timed(f"first recall, {kind}", size, [lambda: memory.recall(questions[0], namespaces=[namespace])])
        if namespace == "bench":
            yield first
        calls = [lambda q=q: memory.recall(q, namespaces=[namespace]) for q in questions]  # type: ignore[misc]
        timed("warms what is kept", size, calls)
        of = "" if namespace == "bench" else f" of {SMALL:,} beside"
        yield timed(f"recall{of}, {kind}", size, calls)
    opened._search = None
    if search is not None:
        search.close()


def _stages(
    memory: Memory, cache: VectorCache, questions: Sequence[str], texts: Sequence[str], size: int, *, oracles: bool
) -> Iterator[Figure]:
    views, model = memory._opened.recalling(), DrawnModel(3)
    search = VectorSearch(cache, model, memory._opened.log)
    search.follow(views, ["bench"])
    asked = [model.query("") for _ in questions]
    everything = numpy.ones(size, dtype=bool)
    with views.reading() as cursor:
        (columns,) = views.columns.of(cursor, ["bench"])
        searched = [(columns, columns.until > 0)]
        yield timed(
            "lexical", size, [lambda q=q: lexical.search(cursor, query_tokens(q), searched) for q in questions]  # type: ignore[misc]
        )
    yield timed(
        "dense", size, [lambda a=a: search.nearest(a, columns, everything, LIMIT) for a in asked]  # type: ignore[misc]
    )
    search.close()
    if oracles:
        yield from _oracles(search._shelves["bench"].index._rows[:size], [each.vector for each in asked], questions, texts, size)


def _oracles(rows: Any, asked: Sequence[Any], questions: Sequence[str], texts: Sequence[str], size: int) -> Iterator[Figure]:
    """What others do of the same, exactly."""
    whole = rows.astype(numpy.float32)
    whole /= numpy.linalg.norm(whole, axis=1, keepdims=True)

    def exact(vector: Any) -> Any:
        scores = whole @ vector
        best = numpy.argpartition(scores, size - LIMIT)[-LIMIT:]
        return best[numpy.argsort(-scores[best])]

    yield timed("dense: numpy, exact", size, [lambda v=v: exact(v) for v in asked])  # type: ignore[misc]
    vec = SqliteVecIndex(DIMENSIONS)
    vec.put(numpy.arange(size), rows)
    everything = numpy.ones(size, dtype=bool)
    yield timed("dense: sqlite-vec, exact", size, [lambda v=v: vec.search(v, everything, LIMIT) for v in asked[:10]])  # type: ignore[misc]
    documents = [tokens(text) for text in texts]
    bm25 = BM25Okapi(documents)
    yield timed("lexical: rank_bm25", size, [lambda q=q: bm25.get_top_n(query_tokens(q), range(size), LIMIT) for q in questions[:10]])  # type: ignore[misc]
    connection = dbapi2.connect(":memory:", isolation_level=None)
    connection.execute("CREATE VIRTUAL TABLE t USING fts5(own, content='', tokenize='ascii')")
    connection.executemany("INSERT INTO t (rowid, own) VALUES (?, ?)", enumerate(map(" ".join, documents)))
    best = "SELECT rowid, bm25(t) AS score FROM t WHERE t MATCH ? ORDER BY score LIMIT ?"
    yield timed(
        "lexical: FTS5, own words alone", size,
        [lambda q=q: connection.execute(best, (" OR ".join(query_tokens(q)), LIMIT)).fetchall() for q in questions],  # type: ignore[misc]
    )  # fmt: skip


def main() -> None:
    """Measure at each size and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON document instead of a table")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="N", help="memories in the namespace")
    parser.add_argument("--no-oracles", action="store_true", help="leave out what others do of the same")
    parser.add_argument("--folder", type=Path, help="where to put the stores (default: the temporary directory)")
    arguments = parser.parse_args()
    figures = []
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        for size in arguments.sizes:
            for figure in measure(Path(folder), size, oracles=not arguments.no_oracles):
                figures.append(figure)
                if not arguments.json:
                    print(f"{figure.what:44} {figure.memories:>9,} {figure.median_ms:>10.3f} {figure.p95_ms:>10.3f} ms")
    if arguments.json:
        machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
        command = " ".join(["python -m benchmarks.recall_speed", *sys.argv[1:]])
        print(json.dumps({"machine": machine, "command": command, "figures": [each._asdict() for each in figures]}))


if __name__ == "__main__":
    main()
