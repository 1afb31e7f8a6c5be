"""vectors.db: every vector once, as a cache by embedding space, stream and input; and what of it is searched."""

from __future__ import annotations

from pathlib import Path
from threading import Condition, Thread
from typing import Any

import numpy
from numpy.typing import NDArray

from ..errors import KeysMissing, TallystickError, ViewsDamaged
from ..events.driver import Datastore, File
from ..events.installation import Installation
from ..events.log import Log
from .embedding import Embedder
from .record import fold
from .vector import Wanted, changed_after, document_of, input_hash
from .vector_index import NumpyIndex, VectorIndex
from .views import Views, check_pages

FILE = "vectors.db"

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS vector (space TEXT NOT NULL, stream BLOB NOT NULL, input BLOB NOT NULL, "
    "value BLOB NOT NULL, runtime TEXT NOT NULL, PRIMARY KEY (space, stream, input)) STRICT, WITHOUT ROWID"
)


class VectorCache:
    """The vectors of all memories, float16, in one encrypted file."""

    def __init__(self, installation: Installation) -> None:
        if installation.keys is None:
            raise KeysMissing("The vectors are encrypted: they open with this store's keys only.")
        path = installation.path / FILE
        file = File(path, ViewsDamaged, installation.keys.views, installation.read_only, durable=False)
        self.datastore = Datastore(file)
        if not installation.read_only:
            with self.datastore.transaction(commit=True) as cursor:
                cursor.execute(_SCHEMA)

    def find(self, space: str, wanted: Wanted) -> NDArray[numpy.float32] | None:
        """The vector of a memory's text, or None where it was not made yet."""
        with self.datastore.transaction(commit=False) as cursor:
            row = cursor.execute(
                "SELECT value FROM vector WHERE space = ? AND stream = ? AND input = ?",
                (space, wanted.stream, wanted.input),
            ).fetchone()
        return None if row is None else numpy.frombuffer(row[0], dtype="<f2").astype(numpy.float32)

    def put(self, embedder: Embedder, stream: bytes, document: str, vector: NDArray[numpy.float32]) -> None:
        """Keep the vector of a document of a memory."""
        row = (
            embedder.space.id,
            stream,
            input_hash(document),
            vector.astype("<f2").tobytes(),
            embedder.runtime,
        )
        with self.datastore.transaction(commit=True) as cursor:
            cursor.execute("INSERT OR REPLACE INTO vector VALUES (?, ?, ?, ?, ?)", row)

    def count(self) -> int:
        """How many vectors are kept."""
        with self.datastore.transaction(commit=False) as cursor:
            return int(cursor.execute("SELECT count(*) FROM vector").fetchone()[0])

    def check_pages(self) -> None:
        """Check the authentication code of every page. Raises ViewsDamaged."""
        check_pages(self.datastore)

    def close(self) -> None:
        """Close the file."""
        self.datastore.close()


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
        """Take in what the view has gained; start embedding what has no vector. Raises what stopped the embedding."""
        with self._changed, views.reading() as cursor:
            if self._failure is not None:
                raise self._failure
            if self._views != views.path:
                self._index, self._position = NumpyIndex(self._embedder.space.dimensions), 0
                self._views, self._backlog = views.path, {}
            for wanted in changed_after(cursor, self._position):
                self._take(wanted)
            if self._backlog:
                self._start()

    def wait(self, seconds: float) -> int:
        """Wait at most so long for vectors that are not made yet. Returns how many are still missing."""
        with self._changed:
            self._changed.wait_for(lambda: not self._backlog or self._closed or self._failure is not None, seconds)
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

    def _take(self, wanted: Wanted) -> None:
        self._position = max(self._position, wanted.position)
        vector = None if wanted.input is None else self._cache.find(self._embedder.space.id, wanted)
        self._backlog.pop(wanted.number, None)
        if wanted.input is None:
            self._index.remove(wanted.number)
        elif vector is None:
            self._backlog[wanted.number] = wanted
        else:
            self._index.add(wanted.number, vector)

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
            if record is not None and record.status == "current":
                document = document_of(record)
                vector = self._embedder.document(document)
                self._cache.put(self._embedder, wanted.stream, document, vector)
                self._done(wanted, vector)
            else:
                self._done(wanted, None)

    def _next(self) -> Wanted | None:
        with self._changed:
            return next(iter(self._backlog.values()), None)

    def _done(self, wanted: Wanted, vector: Any) -> None:
        with self._changed:
            if self._backlog.get(wanted.number) == wanted:
                del self._backlog[wanted.number]
                if vector is not None:
                    self._index.add(wanted.number, vector.astype(numpy.float16).astype(numpy.float32))
            if not self._backlog:
                self._changed.notify_all()
