"""Search by meaning: the vectors in memory, and the thread that makes those that are missing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from threading import Condition, Thread

import numpy
from numpy.typing import NDArray

from ..errors import TallystickError
from ..events.log import Log
from .embedding import Embedder
from .record import fold
from .vector import Wanted, changed_after, document_of, input_hash
from .vector_cache import Key, VectorCache
from .vector_index import NumpyIndex, VectorIndex
from .views import Views


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
        self._views: Path | None = None
        self._position = 0
        self._backlog: dict[int, Wanted] = {}
        self._changed = Condition()
        self._worker: Thread | None = None
        self._failure: TallystickError | None = None
        self._closed = False

    def follow(self, views: Views) -> None:
        """Take in what the view has gained; start embedding what has no vector.

        Raises, once, what stopped the embedding; the next call tries again.
        """
        with self._changed, views.reading() as cursor:
            if self._failure is not None:
                failure, self._failure, self._worker = self._failure, None, None
                raise failure
            if self._views != views.path:
                self._index, self._position = NumpyIndex(self._embedder.space.dimensions), 0
                self._views, self._backlog = views.path, {}
            changed = list(changed_after(cursor, self._position))
            kept = self._cache.find(self.space, {(w.stream, w.input) for w in changed if w.input is not None})
            for wanted in changed:
                self._take(wanted, kept)
            if self._backlog:
                self._start()
                self._changed.notify_all()

    def wait(self, seconds: float) -> int:
        """Wait at most so long for vectors that are not made yet. Returns how many are still missing."""
        with self._changed:
            self._changed.wait_for(lambda: not self._backlog or self._closed or self._failure is not None, seconds)
            if self._failure is not None:
                raise self._failure
            return len(self._backlog)

    def search(self, question: str, candidates: list[int], limit: int) -> list[tuple[int, float]]:
        """The nearest of the candidates to a question: (number, cosine), best first."""
        query = self._embedder.query(question)
        with self._changed:
            return self._index.search(query, candidates, limit)

    def close(self) -> None:
        """Stop the embedding thread after the text it is at."""
        with self._changed:
            self._closed = True
            self._backlog = {}
            self._changed.notify_all()
        if self._worker is not None:
            self._worker.join()

    def _take(self, wanted: Wanted, kept: Mapping[Key, bytes]) -> None:
        self._position = max(self._position, wanted.position)
        self._backlog.pop(wanted.number, None)
        if wanted.input is None:
            self._index.remove(wanted.number)
            return
        vector = kept.get((wanted.stream, wanted.input))
        if vector is None:
            self._backlog[wanted.number] = wanted
        else:
            self._index.add(wanted.number, _vector(vector))

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

    def _embed(self, document: str) -> tuple[bytes, bytes]:
        return input_hash(document), self._embedder.document(document).astype("<f2").tobytes()

    def _next(self) -> Wanted | None:
        """What to embed next, once there is something; None when the search is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._backlog or self._closed)
            return None if self._closed else next(iter(self._backlog.values()))

    def _done(self, wanted: Wanted, made: tuple[bytes, bytes] | None) -> None:
        if made is not None:
            self._cache.put(self.space, wanted.stream, *made, self._embedder.runtime)
        with self._changed:
            if self._backlog.get(wanted.number) == wanted:
                del self._backlog[wanted.number]
                if made is not None:
                    self._index.add(wanted.number, _vector(made[1]))
            if not self._backlog:
                self._changed.notify_all()


def _vector(kept: bytes) -> NDArray[numpy.float32]:
    return numpy.frombuffer(kept, dtype="<f2").astype(numpy.float32)
