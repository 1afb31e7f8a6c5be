"""Search by meaning: the vectors in memory, and the thread that makes those that are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Condition, Thread

import numpy
from numpy.typing import NDArray

from ..errors import TallystickError, ViewsDamaged
from ..events.log import Log
from .embedding import Embedded, Embedder
from .record import fold
from .token_codes import NOTHING, KeptCodes, coded, met
from .vector import Wanted, changed_after, document_of, input_hash
from .vector_cache import FILE, Kept, Key, Made, VectorCache
from .vector_index import NumpyIndex, VectorIndex
from .views import Views

WINDOW = (1.0, 0.95, 0.9)
"""What the tokens of a memory count, those of the turn before it, and of the one before that."""


class VectorSearch:
    """The vectors in memory, searched exactly; a thread of its own embeds what has none yet.

    Follows the `vector` view by position, so that what any process stored is found by meaning as soon as its
    vector is made.
    """

    def __init__(self, cache: VectorCache, embedder: Embedder, log: Log) -> None:
        self._cache = cache
        self._embedder = embedder
        self.space = embedder.space.id
        self.model = embedder.space.model
        self._log = log
        self._index: VectorIndex = NumpyIndex(embedder.space.dimensions)
        self._codes = KeptCodes(self._read_codes)
        self._kept: dict[int, int] = {}  # the number in the cache of each memory's vector
        self._views: Path | None = None
        self._position = 0
        self._backlog: dict[int, Wanted] = {}
        self._changed = Condition()
        self._worker: Thread | None = None
        self._failure: TallystickError | None = None
        self._closed = False

    def follow(self, views: Views) -> int:
        """Take in what the view has gained; start embedding what has no vector. Returns how many have none yet.

        Raises, once, what stopped the embedding; the next call tries again.
        """
        with self._changed, views.reading() as cursor:
            if self._failure is not None:
                failure, self._failure, self._worker = self._failure, None, None
                raise failure
            if self._views != views.path:
                self._index, self._position = NumpyIndex(self._embedder.space.dimensions), 0
                self._views, self._backlog, self._kept = views.path, {}, {}
            changed = list(changed_after(cursor, self._position))
            kept = self._cache.find(self.space, {(w.stream, w.input) for w in changed if w.input is not None})
            made: dict[int, Kept] = {}
            for wanted in changed:
                self._take(wanted, kept, made)
            self._load(made)
            if self._backlog:
                self._start()
                self._changed.notify_all()
            return len(self._backlog)

    def wait(self, seconds: float) -> int:
        """Wait at most so long for vectors that are not made yet. Returns how many are still missing."""
        with self._changed:
            self._changed.wait_for(lambda: not self._backlog or self._closed or self._failure is not None, seconds)
            if self._failure is not None:
                raise self._failure
            return len(self._backlog)

    def ask(self, question: str) -> Embedded:
        """A question in the embedding space."""
        return self._embedder.query(question)

    def nearest(self, asked: Embedded, candidates: list[int], limit: int) -> list[tuple[int, float]]:
        """The nearest of the candidates to a question: (number, cosine), best first."""
        with self._changed:
            return self._index.search(asked.vector, candidates, limit)

    def interaction(self, asked: Embedded, windows: Sequence[Sequence[int | None]]) -> list[float | None] | None:
        """How well the tokens of a question meet those of each memory and of the turns before it (MaxSim).

        A window is a memory's number, then those of the turns one and two before it. Each token of the question takes
        its best cosine with a token of the memory, or a little less of what a turn before it offers (`WINDOW`); the
        result is their mean, telling tokens counting more. After Khattab and Zaharia, "ColBERT" (2020). None for a
        memory without token vectors, and for all where the model makes none.
        """
        if asked.tokens is None or asked.weights is None:
            return None
        if not windows:
            return []
        numbers = list(dict.fromkeys(number for window in windows for number in window if number is not None))
        with self._changed:
            kept = [self._kept.get(number) for number in numbers]
            codes = iter(self._codes.of([number for number in kept if number is not None]))
        best = met(asked.tokens, [b"" if number is None else next(codes) for number in kept])
        column: dict[int | None, int] = {number: place for place, number in enumerate(numbers)}
        column[None] = len(numbers)
        best = numpy.hstack([best, numpy.full((len(best), 1), NOTHING, dtype=numpy.float32)])
        places = numpy.array([[column[number] for number in window] for window in windows]).T
        offered = numpy.max([share * best[:, row] for share, row in zip(WINDOW, places, strict=True)], axis=0)
        found = asked.weights @ offered
        return [
            float(score) if best[0, place] > NOTHING else None for score, place in zip(found, places[0], strict=True)
        ]

    def close(self) -> None:
        """Stop the embedding thread after the text it is at."""
        with self._changed:
            self._closed = True
            self._backlog = {}
            self._changed.notify_all()
        if self._worker is not None:
            self._worker.join()

    def _take(self, wanted: Wanted, kept: Mapping[Key, Kept], made: dict[int, Kept]) -> None:
        """Note what one row of the view asks for: its vector where it was made, nothing any more, or to make it."""
        self._position = max(self._position, wanted.position)
        self._backlog.pop(wanted.number, None)
        made.pop(wanted.number, None)
        found = None if wanted.input is None else kept.get((wanted.stream, wanted.input))
        if found is not None:
            made[wanted.number] = found
            return
        self._index.remove(wanted.number)
        self._kept.pop(wanted.number, None)
        if wanted.input is not None:
            self._backlog[wanted.number] = wanted

    def _load(self, made: Mapping[int, Kept]) -> None:
        """Put vectors that were made before into the index, all at once. Raises ViewsDamaged where one is none."""
        vectors = [kept.vector for kept in made.values()]
        if vectors:
            self._require_length(2 * self._embedder.space.dimensions, {*map(len, vectors)}, "a vector")
            rows = numpy.frombuffer(b"".join(vectors), dtype="<f2")
            try:
                self._index.add_many(list(made), rows.reshape(len(made), -1))
            except ValueError as error:
                raise self._damaged(str(error)) from error
            self._kept |= {number: kept.number for number, kept in made.items()}

    def _read_codes(self, numbers: Sequence[int]) -> dict[int, bytes]:
        found = self._cache.tokens(numbers)
        dimensions = self._embedder.space.dimensions
        self._require_length(0, {2 * len(codes) % dimensions for codes in found.values()}, "tokens' codes")
        return found

    def _require_length(self, length: int, found: set[int], what: str) -> None:
        if found - {length}:
            raise self._damaged(f"{what} of another length")

    def _damaged(self, what: str) -> ViewsDamaged:
        """That the cache holds what no model has made; all of it is looked at again by the next recall."""
        self._views = None
        return ViewsDamaged(f"{FILE} is damaged: it holds {what}. {ViewsDamaged.remedy}")

    def _start(self) -> None:
        if self._worker is None or not self._worker.is_alive():
            self._worker = Thread(target=self._embed_backlog, name="tallystick-embedding", daemon=True)
            self._worker.start()

    def _embed_backlog(self) -> None:
        try:
            self._embed_all()
        except TallystickError as error:
            with self._changed:
                self._failure = error
                self._changed.notify_all()

    def _embed_all(self) -> None:
        while (wanted := self._next()) is not None:
            record = fold(self._log.events_of(wanted.stream))
            current = record is not None and record.status == "current"
            self._done(wanted, self._embed(document_of(record)) if record and current else None)

    def _embed(self, document: str) -> tuple[bytes, Made]:
        """The hash of a document, and what the model makes of it."""
        made = self._embedder.document(document)
        tokens = b"" if made.tokens is None else coded(made.tokens)
        return input_hash(document), Made(made.vector.astype("<f2").tobytes(), tokens, self._embedder.runtime)

    def _next(self) -> Wanted | None:
        """What to embed next, once there is something; None when the search is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._backlog or self._closed)
            return None if self._closed else next(iter(self._backlog.values()))

    def _done(self, wanted: Wanted, embedded: tuple[bytes, Made] | None) -> None:
        number = 0
        if embedded is not None:
            number = self._cache.put(self.space, (wanted.stream, embedded[0]), embedded[1])
        with self._changed:
            if self._backlog.get(wanted.number) == wanted:
                del self._backlog[wanted.number]
                if embedded is not None:
                    self._index.add(wanted.number, _vector(embedded[1].vector))
                    self._kept[wanted.number] = number
            if not self._backlog:
                self._changed.notify_all()


def _vector(kept: bytes) -> NDArray[numpy.float32]:
    return numpy.frombuffer(kept, dtype="<f2").astype(numpy.float32)
