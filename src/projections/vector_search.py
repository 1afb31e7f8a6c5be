"""Search by meaning: the vectors in memory, and the thread that makes those that are missing."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Sequence
from pathlib import Path
from threading import Condition, Thread
from typing import Any

import numpy
from numpy.typing import NDArray

from ..errors import TallystickError, ViewsDamaged
from ..events.log import Log
from .columns import Columns, Flags, Integers, Places
from .embedding import Embedded, Embedder
from .record import fold
from .reembedding import made_of
from .shelves import held_of, held_under, other_of
from .token_codes import NOTHING, KeptCodes, met
from .vector import Wanted, all_of, changed_after, document_of, input_hash, last_change
from .vector_cache import FILE, Made, VectorCache
from .vector_index import Nearest, NumpyIndex
from .views import Views

WINDOW = (1.0, 0.95, 0.9)
"""What the tokens of a memory count, those of the turn before it, and of the one before that."""
KEPT_BYTES = 512 << 20
"""How much the vectors of the namespaces that were asked last may take; those that one question asks always stay."""
NONE = 0
"""In place of the number of a vector where there is none."""

Windows = NDArray[numpy.int64]
"""A row for each memory: the numbers of its vector and of those of the turns before it."""


class _Shelf:
    """The vectors of one namespace: by the places of its columns, each under its number in the cache."""

    def __init__(self, dimensions: int) -> None:
        self.numbers: Integers = numpy.empty(0, dtype=numpy.int64)
        self.kept: Integers = numpy.empty(0, dtype=numpy.int64)
        self.index = NumpyIndex(dimensions)

    @property
    def bytes(self) -> int:
        """What it takes of memory."""
        return self.index.bytes + self.kept.nbytes

    def follow(self, columns: Columns) -> None:
        """Have a place for each memory of the namespace."""
        self.numbers = columns.numbers
        more = len(self.numbers) - len(self.kept)
        if more > 0:
            self.kept = numpy.append(self.kept, numpy.full(more, NONE, dtype=numpy.int64))

    def put(self, made: Sequence[tuple[int, int]], vectors: NDArray[numpy.float16]) -> None:
        """Put in vectors, one a row, of memories by number, each under its number in the cache."""
        pairs = numpy.array(made, dtype=numpy.int64)
        places = numpy.searchsorted(self.numbers, pairs[:, 0])
        self.index.put(places, vectors)
        self.kept[places] = pairs[:, 1]

    def drop(self, numbers: Collection[int]) -> None:
        """Take out the vectors of these memories."""
        places = numpy.searchsorted(self.numbers, numpy.array(sorted(numbers), dtype=numpy.int64))
        self.index.drop(places)
        self.kept[places] = NONE


class VectorSearch:
    """The vectors in memory of the namespaces that were asked; a thread of its own embeds what has none yet.

    Follows the `vector` view by position, so that what any process stored is found by meaning as soon as its
    vector is made.
    """

    def __init__(self, cache: VectorCache, embedder: Embedder, log: Log) -> None:
        self._cache = cache
        self._embedder = embedder
        self.space = embedder.space.id
        self.model = embedder.space.model
        self._log = log
        self._codes = KeptCodes(self._read_codes)
        self._shelves: OrderedDict[str, _Shelf] = OrderedDict()
        self._views: Path | None = None
        self._position = 0
        self._moves = 0
        self._backlog: OrderedDict[str, dict[int, Wanted]] = OrderedDict()  # by namespace and number
        self._changed = Condition()
        self._worker: Thread | None = None
        self._failure: TallystickError | None = None
        self._closed = False

    def follow(self, views: Views, namespaces: Collection[str] | None = None) -> int:
        """Take in what the views have gained, and all of these namespaces; start embedding what has no vector.

        All there are where none are given. Returns how many memories of these namespaces have no vector yet. Raises,
        once, what stopped the embedding; the next call tries again.
        """
        with self._changed, views.reading() as cursor:
            if self._failure is not None:
                failure, self._failure, self._worker = self._failure, None, None
                raise failure
            if self._views != views.path:
                self._shelves, self._backlog = OrderedDict(), OrderedDict()
                self._views, self._position = views.path, last_change(cursor)
            last = last_change(cursor)
            if last > self._position:
                self._take(views, cursor, changed_after(cursor, self._position))
            if namespaces is None:
                self._take(views, cursor, changed_after(cursor, 0))
            else:
                self._open(views, cursor, namespaces)
            self._position = max(last, self._position)
            if any(self._backlog.values()):
                self._start()
                self._changed.notify_all()
            return self._missing(namespaces)

    def wait(self, seconds: float, namespaces: Collection[str] | None = None) -> int:
        """Wait at most so long for vectors that are not made yet. Returns how many are still missing."""
        with self._changed:
            self._changed.wait_for(
                lambda: not self._missing(namespaces) or self._closed or self._failure is not None, seconds
            )
            if self._failure is not None:
                raise self._failure
            return self._missing(namespaces)

    @property
    def state(self) -> tuple[int, int]:
        """The position of the last change that is taken in, and how often a vector has gone or been replaced."""
        with self._changed:
            return self._position, self._moves

    def ask(self, question: str) -> Embedded:
        """A question in the embedding space."""
        return self._embedder.query(question)

    def nearest(self, asked: Embedded, columns: Columns, allowed: Flags, limit: int) -> Nearest:
        """The memories of a namespace that are nearest to a question, of those whose place is flagged, best first."""
        with self._changed:
            shelf = self._shelves.get(columns.namespace)
            index = NumpyIndex(self._embedder.space.dimensions) if shelf is None else shelf.index
            return index.search(asked.vector, allowed, limit)

    def cosines(self, asked: Embedded, columns: Columns, places: Places) -> NDArray[numpy.float64]:
        """How near the memories at these places of a namespace are to a question; NaN for those without a vector."""
        with self._changed:
            shelf = self._shelves.get(columns.namespace)
            return numpy.full(len(places), numpy.nan) if shelf is None else shelf.index.cosines(asked.vector, places)

    def kept(self, columns: Columns) -> Integers:
        """By place, the number of the vector of each memory of a namespace, for `interaction`; NONE where is none."""
        with self._changed:
            shelf = self._shelves.get(columns.namespace)
            found = numpy.empty(0, dtype=numpy.int64) if shelf is None else shelf.kept
            missing = max(0, len(columns) - len(found))
            return numpy.append(found[: len(columns)], numpy.full(missing, NONE)) if missing else found[: len(columns)]

    def interaction(self, asked: Embedded, windows: Windows) -> NDArray[numpy.float64] | None:
        """How well the tokens of a question meet those of each memory and of the turns before it (MaxSim).

        Each token of the question takes its best cosine with a token of the memory, or a little less of what a turn
        before it offers (`WINDOW`); the result is their mean, telling tokens counting more. After Khattab and Zaharia,
        "ColBERT" (2020). NaN for a memory without token vectors, None where the model makes none.
        """
        if asked.tokens is None or asked.weights is None:
            return None
        numbers, column = numpy.unique(windows, return_inverse=True)
        with self._changed:
            codes = self._codes.of(numbers.tolist())
        best = met(asked.tokens, codes)
        column = column.reshape(windows.shape)
        offered = numpy.max([share * best[:, each] for share, each in zip(WINDOW, column.T, strict=True)], axis=0)
        found: NDArray[numpy.float64] = (asked.weights @ offered).astype(numpy.float64)
        found[best[0, column[:, 0]] == NOTHING] = numpy.nan
        return found

    def close(self) -> None:
        """Stop the embedding thread after the text it is at."""
        with self._changed:
            self._closed = True
            self._backlog.clear()
            self._changed.notify_all()
        if self._worker is not None:
            self._worker.join()

    def _missing(self, namespaces: Collection[str] | None) -> int:
        names = self._backlog if namespaces is None else set(namespaces)
        return sum(len(self._backlog.get(name, ())) for name in names)

    def _open(self, views: Views, cursor: Any, namespaces: Collection[str]) -> None:
        """Have the vectors of these namespaces in memory, and embed what of them has none before all else."""
        for name in namespaces:
            if name not in self._shelves:
                self._load_all(views, cursor, name)
            self._shelves.move_to_end(name)
            if name in self._backlog:
                self._backlog.move_to_end(name, last=False)
        taken = sum(shelf.bytes for shelf in self._shelves.values())
        while namespaces and taken > KEPT_BYTES and len(self._shelves) > len(set(namespaces)):
            taken -= self._shelves.popitem(last=False)[1].bytes

    def _load_all(self, views: Views, cursor: Any, name: str) -> None:
        """Put all vectors of a namespace on a shelf of their own; none is left where that is broken off."""
        self._shelves[name] = _Shelf(self._embedder.space.dimensions)
        try:
            self._take(views, cursor, all_of(cursor, name))
        except BaseException:
            del self._shelves[name]
            raise

    def _take(self, views: Views, cursor: Any, rows: Sequence[Wanted]) -> None:
        """Note what rows of the view ask for: vectors where they were made, nothing any more, or to make them."""
        found = self._cache.find(self.space, {(row.stream, row.input) for row in rows if row.input is not None})
        made: dict[str, dict[int, int]] = {}
        gone: dict[str, set[int]] = {}
        for row in rows:
            other = other_of(row.namespace)
            if other in self._shelves:
                gone.setdefault(other, set()).add(row.number)
            self._backlog.get(other, {}).pop(row.number, None)
            if held_of(row.namespace)[1] == "superseded" and row.namespace not in self._shelves:
                continue  # nobody asks for it
            backlog = self._backlog.setdefault(row.namespace, {})
            backlog.pop(row.number, None)
            number = None if row.input is None else found.get((row.stream, row.input))
            if number is not None:
                made.setdefault(row.namespace, {})[row.number] = number
                continue
            gone.setdefault(row.namespace, set()).add(row.number)
            if row.input is not None:
                backlog[row.number] = row
        for name in self._shelves.keys() & (made.keys() | gone.keys()):
            self._shelves[name].follow(views.columns.of(cursor, [name])[0])
            self._moves += 1
            self._shelves[name].drop(gone.get(name, ()))
            self._load(self._shelves[name], made.get(name, {}))

    def _load(self, shelf: _Shelf, made: dict[int, int]) -> None:
        """Put vectors that were made before on their shelf. Raises ViewsDamaged where one is none."""
        if not made:
            return
        vectors = self._cache.vectors(list(made.values()))
        if len(vectors) < len({*made.values()}):
            raise self._damaged("fewer vectors than it says")
        self._require_length(2 * self._embedder.space.dimensions, {*map(len, vectors.values())}, "a vector")
        rows = numpy.frombuffer(b"".join(vectors[number] for number in made.values()), dtype="<f2")
        try:
            shelf.put(list(made.items()), rows.reshape(len(made), -1))
        except ValueError as error:
            raise self._damaged(str(error)) from error

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
            held = record is not None and held_under(record) == wanted.namespace
            self._done(wanted, self._embed(document_of(record)) if record and held else None)

    def _embed(self, document: str) -> tuple[bytes, Made]:
        """The hash of a document, and what the model makes of it."""
        return input_hash(document), made_of(self._embedder, document)

    def _next(self) -> Wanted | None:
        """What to embed next, once there is something; None when the search is closed."""
        with self._changed:
            self._changed.wait_for(lambda: any(self._backlog.values()) or self._closed)
            waiting = (wanted for backlog in self._backlog.values() for wanted in backlog.values())
            return None if self._closed else next(waiting)

    def _done(self, wanted: Wanted, embedded: tuple[bytes, Made] | None) -> None:
        number = 0
        if embedded is not None:
            number = self._cache.put(self.space, (wanted.stream, embedded[0]), embedded[1])
        with self._changed:
            backlog = self._backlog.get(wanted.namespace, {})
            if backlog.get(wanted.number) == wanted:
                del backlog[wanted.number]
                if embedded is not None and embedded[0] == wanted.input and wanted.namespace in self._shelves:
                    vector = numpy.frombuffer(embedded[1].vector, dtype="<f2")
                    self._shelves[wanted.namespace].put([(wanted.number, number)], vector[numpy.newaxis])
                if not backlog:
                    self._changed.notify_all()
