"""What a recall costs as a namespace grows, by stage: `python -m benchmarks.recall_speed [--json] [--sizes N ...]`.

Stores of made-up turns: threads of twenty, two authors each, words as often as in language. Their vectors and tokens
are drawn at random around common directions and put where the model would put them; the model itself never runs, and
no question's vector is counted. Processor time, of one thread; beside each stage what does the same in the same run.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import numpy
from rank_bm25 import BM25Okapi
from sqlcipher3 import dbapi2

from benchmarks.running import parser, say, tell
from benchmarks.workload import VOCABULARY
from tallystick import Memory
from tallystick.projections import lexical
from tallystick.projections.embedding import Embedded, Space
from tallystick.projections.tokens import query_tokens, tokens
from tallystick.projections.vector import changed_after
from tallystick.projections.vector_cache import Made, VectorCache
from tallystick.projections.vector_index import SqliteVecIndex
from tallystick.projections.vector_search import VectorSearch

SIZES = (1_000, 10_000, 100_000)
QUESTIONS = 40
TURNS, BATCH = 20, 500
WORDS = (6, 24)
ASKED_WORDS, ASKED_TOKENS = (3, 7), 10
DIMENSIONS, TOKENS_OF_A_TURN, CLUSTERS = 192, 37, 200
SMALL = 1_000
LIMIT = 50
STOPPED = 30
"""The most frequent words of the vocabulary stand for those that no index holds: no question asks for them."""
DRAWN = 10 * QUESTIONS
FEW = 10
"""Questions to what is slow."""


class Figure(NamedTuple):
    """Milliseconds of processor time of one thing at one size: the median, and the 95th percentile."""

    what: str
    memories: int
    median_ms: float
    p95_ms: float


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
        return next(self._drawn)

    @cached_property
    def _drawn(self) -> Iterator[Embedded]:
        """Questions without end, drawn before the first is asked."""
        weights = numpy.full(ASKED_TOKENS, 1 / ASKED_TOKENS, dtype=numpy.float32)
        vectors = self.vectors(DRAWN)
        return cycle([Embedded(each, self.vectors(ASKED_TOKENS), weights) for each in vectors])


class Pooled(DrawnModel):
    """The same without token vectors."""

    @cached_property
    def _drawn(self) -> Iterator[Embedded]:
        return cycle([Embedded(each) for each in self.vectors(DRAWN)])


KINDS: dict[str, Callable[[int], DrawnModel | None]] = {
    "late interaction": DrawnModel,
    "one vector": Pooled,
    "words alone": lambda _seed: None,
}


class Words:
    """Texts and questions with words as often as in language: the n-th 1 / (n + 2.7) times as often as the first."""

    def __init__(self) -> None:
        self._random = random.Random(1)
        self._vocabulary = [
            *VOCABULARY,
            *(f"{word}{end}" for end in ("na", "so", "ka", "ty", "lo") for word in VOCABULARY),
        ]
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


def put_vectors(memory: Memory, cache: VectorCache, model: DrawnModel) -> Any:
    """Give each memory a vector and tokens, where the model would put them. Returns the vectors, in order."""
    with memory._opened.recalling().reading() as cursor:
        wanted = [row for row in changed_after(cursor, 0) if row.input is not None]
    source, vectors = numpy.random.default_rng(2), model.vectors(len(wanted)).astype("<f2")
    for first in range(0, len(wanted), BATCH):
        rows = wanted[first : first + BATCH]
        codes = source.integers(0, 256, (len(rows), TOKENS_OF_A_TURN * DIMENSIONS // 2), numpy.uint8)
        made = zip(rows, vectors[first : first + BATCH], codes, strict=True)
        cache.put_many(
            model.space.id,
            [((row.stream, row.input or b""), Made(v.tobytes(), c.tobytes(), model.runtime)) for row, v, c in made],
        )
    return vectors


def timed(what: str, size: int, call: Callable[[Any], object], arguments: Iterable[Any]) -> Figure:
    """Call with each argument, and say what one call costs."""
    spent = []
    for argument in arguments:
        start = time.process_time()
        call(argument)
        spent.append((time.process_time() - start) * 1000)
    return figure(what, size, sorted(spent))


def figure(what: str, size: int, spent: Sequence[float]) -> Figure:
    """The median and the 95th percentile of what was spent, in order."""
    return Figure(what, size, round(statistics.median(spent), 3), round(spent[int(0.95 * (len(spent) - 1))], 3))


def opened(folder: Path, size: int) -> Memory:
    """The store of this size."""
    return Memory.open(folder / f"store-{size}", keys=folder / f"keys-{size}", model="none", namespace="bench")


def measure(folder: Path, size: int, *, oracles: bool) -> Iterator[Figure]:
    """A store of one namespace of this size and a small one: whole recalls of each kind, and the stages alone."""
    words = Words()
    with opened(folder, size) as memory:
        texts = fill(memory, words, "bench", size)
        fill(memory, words, "small", SMALL)
        cache = VectorCache(memory._opened.installation)
        vectors = put_vectors(memory, cache, DrawnModel())[:size]
        cache.close()
    questions = [words.question() for _ in range(QUESTIONS)]
    for kind in KINDS:
        yield figure(f"first recall of a process, {kind}", size, sorted(_first(folder, size, kind) for _ in range(3)))
        with opened(folder, size) as memory, asking(memory, kind):
            for namespace, of in (("bench", ""), ("small", f" of {SMALL:,} beside")):
                ask = partial(memory.recall, namespaces=[namespace])
                timed("warm up", size, ask, questions)
                yield timed(f"recall{of}, {kind}", size, ask, questions)
    asked = [model.vectors(1)[0] for model in map(DrawnModel, range(3, 3 + QUESTIONS))]
    with opened(folder, size) as memory:
        yield from _stages(memory, questions, asked)
    if oracles:
        yield from _oracles(vectors.astype(numpy.float32), asked, questions, texts)


@contextmanager
def asking(memory: Memory, kind: str) -> Iterator[None]:
    """Have the questions of a store embedded by a drawn model of this kind."""
    model, held = KINDS[kind](3), memory._opened
    cache = VectorCache(held.installation)
    search = None if model is None else VectorSearch(cache, model, held.log)
    held._search, held._model_missing, held._loaded = search, search is None, held.chosen.name
    if bool(memory.recall("").degraded) != (search is None):
        raise SystemExit(f"The questions were not asked by {kind}.")
    yield
    held._search = None
    if search is not None:
        search.close()
    cache.close()


def _first(folder: Path, size: int, kind: str) -> float:
    """Milliseconds of processor time of a process that opens the store and asks one question."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "benchmarks.recall_speed", "--once", kind, "--sizes", str(size)]
    subprocess.run([*command, "--folder", str(folder)], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def _stages(memory: Memory, questions: Sequence[str], asked: Sequence[Any]) -> Iterator[Figure]:
    """The two searches alone."""
    views = memory._opened.recalling()
    cache = VectorCache(memory._opened.installation)
    search = VectorSearch(cache, DrawnModel(), memory._opened.log)
    search.follow(views, ["bench"])
    with views.reading() as cursor:
        (columns,) = views.columns.of(cursor, ["bench"])
        everything = columns.until > 0

        def matching(question: str) -> object:
            return lexical.search(cursor, query_tokens(question), [(columns, everything)])

        yield timed("lexical", len(columns), matching, questions)

    def nearest(vector: Any) -> object:
        return search.nearest(Embedded(vector), columns, everything, LIMIT)

    yield timed("dense", len(columns), nearest, asked)
    search.close()
    cache.close()


def _oracles(vectors: Any, asked: Sequence[Any], questions: Sequence[str], texts: Sequence[str]) -> Iterator[Figure]:
    """What others do of the same, exactly."""
    size = len(texts)

    def exact(vector: Any) -> Any:
        scores = vectors @ vector
        best = numpy.argpartition(scores, size - LIMIT)[-LIMIT:]
        return best[numpy.argsort(-scores[best])]

    yield timed("dense: numpy, exact", size, exact, asked)
    vec, everything = SqliteVecIndex(DIMENSIONS), numpy.ones(size, dtype=bool)
    vec.put(numpy.arange(size), vectors)
    yield timed("dense: sqlite-vec, exact", size, lambda vector: vec.search(vector, everything, LIMIT), asked[:FEW])
    documents = [tokens(text) for text in texts]
    bm25 = BM25Okapi(documents)

    def ranked(question: str) -> Any:
        scores = bm25.get_scores(query_tokens(question))
        best = numpy.argpartition(scores, size - LIMIT)[-LIMIT:]
        return best[numpy.argsort(-scores[best])]

    yield timed("lexical: rank_bm25", size, ranked, questions[:FEW])
    connection = dbapi2.connect(":memory:", isolation_level=None)
    connection.execute("CREATE VIRTUAL TABLE t USING fts5(own, content='', tokenize='ascii')")
    connection.executemany("INSERT INTO t (rowid, own) VALUES (?, ?)", enumerate(map(" ".join, documents)))
    best = "SELECT rowid, bm25(t) AS score FROM t WHERE t MATCH ? ORDER BY score LIMIT ?"

    def matched(question: str) -> object:
        return connection.execute(best, (" OR ".join(query_tokens(question)), LIMIT)).fetchall()

    yield timed("lexical: FTS5, own words alone", size, matched, questions)


def table(report: Mapping[str, Any]) -> str:
    """The report for people."""
    lines = [f"{'':48} {'memories':>9} {'median':>10} {'95 %':>10}   ms of processor time"]
    for each in report["figures"]:
        lines.append(f"{each['what']:48} {each['memories']:>9,} {each['median_ms']:>10.3f} {each['p95_ms']:>10.3f}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure at each size and print."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if "OPENBLAS_NUM_THREADS" not in os.environ:  # read when numpy is loaded; waiting threads would count
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks.recall_speed", *given])
    takes = parser("benchmarks.recall_speed", __doc__)
    takes.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="N", help="memories in the namespace")
    takes.add_argument("--no-oracles", action="store_true", help="leave out what others do of the same")
    takes.add_argument("--once", choices=KINDS, help=argparse.SUPPRESS)
    options = takes.parse_args(given)
    if options.once:
        with opened(options.folder, options.sizes[0]) as memory, asking(memory, options.once):
            memory.recall(Words().question())
        return
    figures = []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for size in options.sizes:
            for each in measure(Path(folder), size, oracles=not options.no_oracles):
                tell(f"{each.memories:,}: {each.what} {each.median_ms} ms")
                figures.append(each._asdict())
    say({"figures": figures}, "benchmarks.recall_speed", given, table)


if __name__ == "__main__":
    main()
