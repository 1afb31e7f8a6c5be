"""The vectors of a namespace, a place for each, and the nearest of them to a question."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy
from numpy.typing import NDArray
from sqlcipher3 import dbapi2

from ..errors import Unavailable
from .columns import Flags, Places
from .embedding import PRODUCTS

Floats = NDArray[numpy.float32]
Doubles = NDArray[numpy.float64]

STEP = 2.0**-20
"""Scores are multiples of this, so that other arithmetic gives the same order."""
EXACT = 16384
"""Of so few vectors each is scored."""
NEAR = 600
"""Of more, so many are found by their sketches, or twice the limit, and scored."""
DIRECTIONS, LEADING = 64, 32
"""In how many directions a sketch says where a vector lies, and how many of them are scanned."""
LIKELY, LIKELY_SHARE = 10, 16
"""Of what is scanned, about so many times as many go on as whole sketches find; one in 16 where that is more."""
SAMPLE = 4096
"""How many vectors the directions are found from."""
SOME, WORN = 32, 1.25
"""The directions are found anew where one in 32 vectors is new, and they miss a quarter more of those."""

_ROUNDING = 1e-5
"""What a sketch in as many directions as there are dimensions may miss of a length of one."""


class Nearest(NamedTuple):
    """Places and their cosines, best first."""

    places: Places
    cosines: Doubles


class VectorIndex(Protocol):
    """Vectors of one embedding space by place, from 0 on, searched by cosine.

    A vector is kept rounded to float16, so every implementation scores the same values. Calls on one index
    must not overlap in time. A vector of the wrong length, of zeros or with values float16 can't hold is a
    ValueError.
    """

    def put(self, places: Places, vectors: NDArray[numpy.floating]) -> None:
        """Put vectors, one a row, at places of which none occurs twice. All are put in, or none."""

    def drop(self, places: Places) -> None:
        """Take out the vectors at these places; none there is no error."""

    def search(self, query: Floats, allowed: Flags, limit: int) -> Nearest:
        """The `limit` nearest of those whose place is flagged, best first.

        Cosines are rounded to 2**-20, then equal ones go by place. Flags narrow the search before the best are
        picked, so `limit` are found where there are as many; places beyond the flags are not allowed.
        """

    def cosines(self, query: Floats, places: Places) -> Doubles:
        """The cosine of the vector at each of these places, not rounded; NaN where there is none."""

    def __len__(self) -> int:
        """How many vectors are held."""


class NumpyIndex:
    """A vector index in arrays: 4 bytes of memory for a value, beyond 16,384 vectors 2, and 256 for a sketch.

    Up to there, all are scanned, in float32. Beyond, the sketches are: the 600 nearest by them, or twice the limit, are
    scored. The scores given are summed in float64 and in one order, so none depends on the place.
    """

    def __init__(self, dimensions: int) -> None:
        """An empty index of vectors of `dimensions` values."""
        self._dimensions = dimensions
        self._rows: NDArray[numpy.floating] = numpy.empty((0, dimensions), dtype=numpy.float32)
        self._lengths = numpy.ones(0, dtype=numpy.float64)
        self._held = numpy.zeros(0, dtype=bool)
        self._count = 0
        self._sketches: _Sketches | None = None

    def __len__(self) -> int:
        """How many vectors are held."""
        return self._count

    @property
    def bytes(self) -> int:
        """What it takes of memory."""
        arrays = (self._rows, self._lengths, self._held)
        return sum(array.nbytes for array in arrays) + (self._sketches.bytes if self._sketches else 0)

    def put(self, places: Places, vectors: NDArray[numpy.floating]) -> None:
        """Put vectors, one a row, at places of which none occurs twice. All are put in, or none."""
        rows = _rounded(vectors, (len(places), self._dimensions))
        if not len(places):
            return
        self._make_room(int(places.max()) + 1)
        self._count += len(places) - int(numpy.count_nonzero(self._held[places]))
        self._rows[places], self._held[places] = rows, True
        self._lengths[places] = _lengths(rows.astype(numpy.float64))
        if self._sketches is not None:
            self._sketches.put(places, rows)
        if self._count > EXACT and (self._sketches is None or self._sketches.worn):
            self._rows = self._rows.astype(numpy.float16, copy=False)  # every value is one of float16
            self._sketches = _Sketches(self._rows, numpy.flatnonzero(self._held))

    def drop(self, places: Places) -> None:
        """Take out the vectors at these places; none there is no error."""
        places = places[places < len(self._held)]
        self._held[places] = False
        self._count = int(numpy.count_nonzero(self._held))

    def search(self, query: Floats, allowed: Flags, limit: int) -> Nearest:
        """The `limit` nearest of those whose place is flagged, best first."""
        unit = _unit(query, self._dimensions)
        size = min(len(allowed), len(self._held))
        there = self._held[:size] & allowed[:size]
        if limit < 1 or not there.any():
            return Nearest(numpy.empty(0, dtype=numpy.intp), numpy.empty(0))
        places = self._near(unit.astype(numpy.float32), there, limit)
        return _best(places, self._cosines(places, unit), limit)

    def cosines(self, query: Floats, places: Places) -> Doubles:
        """The cosine of the vector at each of these places, not rounded; NaN where there is none."""
        unit, found = _unit(query, self._dimensions), numpy.full(len(places), numpy.nan)
        held = places < len(self._held)
        held[held] = self._held[places[held]]
        found[held] = self._cosines(places[held], unit)
        return found

    def _cosines(self, places: Places, unit: Doubles) -> Doubles:
        """The cosine of the vector at each of these places; einsum sums every row in the same order."""
        products: Doubles = numpy.einsum("ij,j->i", self._rows[places].astype(numpy.float64), unit)
        return products / self._lengths[places]

    def _near(self, unit: Floats, there: Flags, limit: int) -> Places:
        """The places that can hold one of the `limit` best of those that are flagged."""
        enough = max(NEAR, 2 * limit)
        if numpy.count_nonzero(there) <= enough:
            return numpy.flatnonzero(there)
        if self._sketches is not None:
            return self._sketches.near(unit, there, enough)
        scores = numpy.where(there, _products(self._rows[: len(there)], unit) / self._lengths[: len(there)], -2)
        # A float32 sum of n products of unit vectors is wrong by at most n * 2**-24 (Higham, Accuracy and Stability
        # of Numerical Algorithms, section 3.1), both here and at the limit; rounding adds a step.
        worst = numpy.partition(scores, -limit)[-limit]
        return numpy.flatnonzero(scores >= worst - self._dimensions * 2.0**-23 - 2 * STEP)

    def _make_room(self, size: int) -> None:
        more = max(64, size, 2 * len(self._held)) - len(self._held)
        if size > len(self._held):
            self._rows = numpy.pad(self._rows, ((0, more), (0, 0)))
            self._lengths = numpy.pad(self._lengths, (0, more), constant_values=1)
            self._held = numpy.pad(self._held, (0, more))


class _Sketches:
    """Of each vector, where it lies in the directions in which vectors are longest, those of most length first.

    The product of two vectors of length one is about that of their sketches, for directions D that are orthogonal and
    of length one: q.v ~ (qD).(vD). After Pearson, "On lines and planes of closest fit" (1901).
    """

    def __init__(self, rows: NDArray[numpy.floating], places: Places) -> None:
        """Of the rows at these places, with the directions of some of them."""
        self._since, self._missed = 0, 0.0
        some = _units(rows[places[:: -(-len(places) // SAMPLE)]]).astype(numpy.float64)
        _, directions = numpy.linalg.eigh(numpy.einsum("ni,nj->ij", some, some))
        self._directions: Floats = directions[:, : -DIRECTIONS - 1 : -1].astype(numpy.float32)
        size, width = len(rows), self._directions.shape[1]
        self._leading = numpy.zeros((size, min(LEADING, width)), dtype=numpy.float32)
        self._rest = numpy.zeros((size, width - self._leading.shape[1]), dtype=numpy.float32)
        for first in range(0, len(places), SAMPLE):
            self.put(places[first : first + SAMPLE], rows[places[first : first + SAMPLE]])
        self._of, self._missed_then = len(places), self._missed / len(places)
        self._since, self._missed = 0, 0.0

    @property
    def bytes(self) -> int:
        """What they take of memory."""
        return self._leading.nbytes + self._rest.nbytes

    def put(self, places: Places, rows: NDArray[numpy.floating]) -> None:
        """Sketch the rows at these places."""
        more = int(places.max()) + 1 - len(self._leading)
        if more > 0:
            more = max(more, len(self._leading))
            self._leading, self._rest = (numpy.pad(part, ((0, more), (0, 0))) for part in (self._leading, self._rest))
        sketches = _products(_units(rows), self._directions)
        self._leading[places], self._rest[places] = sketches[:, :LEADING], sketches[:, LEADING:]
        self._since += len(places)
        self._missed += float(len(places) - numpy.square(sketches).sum())

    @property
    def worn(self) -> bool:
        """Whether most vectors came since, or some that the directions miss more of than of those they are from."""
        others = self._missed > (WORN * self._missed_then + _ROUNDING) * self._since
        return self._since > self._of or (others and self._since * SOME > self._of)

    def near(self, unit: Floats, there: Flags, limit: int) -> Places:
        """Of the flagged places, which are more than `limit`, so many whose vectors are nearest by their sketches.

        And those whose sketches are as near as the last.
        """
        asked = unit @ self._directions
        scores = _products(self._leading[: len(there)], asked[:LEADING])
        if not there.all():
            scores[~there] = -numpy.inf
        likely = _about_highest(scores, max(LIKELY * limit, len(there) // LIKELY_SHARE))
        scores = scores.take(likely) + _products(self._rest.take(likely, axis=0), asked[LEADING:])
        return likely.take(_highest(scores, limit))


class SqliteVecIndex:
    """A vector index in a table in memory, every row scored by sqlite-vec's `vec_distance_cosine`.

    An independent witness of `NumpyIndex`, exact and slower. It scans rather than asking a `vec0` table for its
    nearest k, which stops at 4096 and does not say which of equal rows it drops. sqlite-vec sums in
    float32: a cosine may differ from NumpyIndex's by two steps of 2**-20, and rows that close may change
    places.
    """

    def __init__(self, dimensions: int) -> None:
        """An empty index. Raises Unavailable where sqlite-vec is not installed (musl, Windows on Arm)."""
        try:
            import sqlite_vec  # noqa: PLC0415  has no wheel for some platforms
        except ImportError as error:
            raise Unavailable("sqlite-vec is not installed here. Use NumpyIndex instead.") from error
        self._dimensions = dimensions
        self._connection = dbapi2.connect(":memory:", check_same_thread=False, isolation_level=None)
        self._connection.enable_load_extension(True)
        sqlite_vec.load(self._connection)
        self._connection.enable_load_extension(False)
        self._connection.execute("CREATE TABLE vector (place INTEGER PRIMARY KEY, row BLOB NOT NULL)")

    def __len__(self) -> int:
        """How many vectors are held."""
        return int(self._connection.execute("SELECT count(*) FROM vector").fetchone()[0])

    def put(self, places: Places, vectors: NDArray[numpy.floating]) -> None:
        """Put vectors, one a row, at places of which none occurs twice. All are put in, or none."""
        rows = _rounded(vectors, (len(places), self._dimensions)).astype(numpy.float32)
        put = [(int(place), row.tobytes()) for place, row in zip(places, rows, strict=True)]
        self._connection.executemany("INSERT OR REPLACE INTO vector VALUES (?, ?)", put)

    def drop(self, places: Places) -> None:
        """Take out the vectors at these places; none there is no error."""
        self._connection.executemany("DELETE FROM vector WHERE place = ?", [(int(place),) for place in places])

    def search(self, query: Floats, allowed: Flags, limit: int) -> Nearest:
        """The `limit` nearest of those whose place is flagged, best first."""
        unit = _unit(query, self._dimensions).astype(numpy.float32).tobytes()
        found = self._connection.execute("SELECT place, vec_distance_cosine(row, ?) FROM vector", (unit,)).fetchall()
        places = numpy.array([place for place, _ in found], dtype=numpy.intp)
        cosines = 1 - numpy.array([distance for _, distance in found], dtype=numpy.float64)
        there = places < len(allowed)
        there[there] = allowed[places[there]]
        return _best(places[there], cosines[there], max(limit, 0))

    def cosines(self, query: Floats, places: Places) -> Doubles:
        """The cosine of the vector at each of these places, not rounded; NaN where there is none."""
        unit = _unit(query, self._dimensions).astype(numpy.float32).tobytes()
        one = "SELECT 1 - vec_distance_cosine(row, ?) FROM vector WHERE place = ?"
        rows = (self._connection.execute(one, (unit, int(place))).fetchone() for place in places)
        return numpy.array([numpy.nan if row is None else row[0] for row in rows], dtype=numpy.float64)


def _rounded(vectors: NDArray[numpy.floating], shape: tuple[int, int]) -> NDArray[numpy.float16]:
    """The vectors with each value rounded to float16."""
    with numpy.errstate(over="ignore", under="ignore"):
        rows = numpy.asarray(vectors).astype(numpy.float16)
    if rows.shape != shape or not numpy.isfinite(rows).all() or not rows.any(axis=1).all():
        raise ValueError(f"not a vector of {shape[1]} values that float16 can hold")
    return rows


def _unit(query: Floats, dimensions: int) -> Doubles:
    """The query scaled to length one."""
    wide = numpy.asarray(query).astype(numpy.float64)
    if wide.shape != (dimensions,) or not numpy.isfinite(wide).all() or not wide.any():
        raise ValueError(f"not a query of {dimensions} finite values")
    return wide / numpy.linalg.norm(wide)


def _lengths(rows: Doubles) -> Doubles:
    """The length of each row; einsum sums every row in the same order."""
    lengths: Doubles = numpy.sqrt(numpy.einsum("ij,ij->i", rows, rows))
    return lengths


def _best(places: Places, cosines: Doubles, limit: int) -> Nearest:
    """The best, with their cosines rounded to multiples of 2**-20; never a negative zero."""
    rounded = numpy.round(cosines / STEP) * STEP + 0.0
    order = numpy.lexsort((places, -rounded))[:limit]
    return Nearest(places[order], rounded[order])


def _highest(scores: Floats, limit: int) -> Places:
    """Where the `limit` highest scores are, in order of places; those that equal the last of them too, never -inf."""
    return numpy.flatnonzero(scores >= _least(scores, limit))


def _about_highest(scores: Floats, limit: int) -> Places:
    """As `_highest`, of about the `limit` highest: from which score on is told by every sixteenth."""
    found = numpy.flatnonzero(scores >= _least(scores[::16], limit // 16))
    return found if limit // 2 < len(found) < 2 * limit else _highest(scores, limit)


def _least(scores: Floats, limit: int) -> float:
    """The last of the `limit` highest scores; the lowest that is finite where there are no more."""
    lowest = float(numpy.finfo(numpy.float32).min)
    return max(lowest, float(numpy.partition(scores, -limit)[-limit])) if limit < len(scores) else lowest


def _units(rows: NDArray[numpy.floating]) -> Floats:
    """The rows scaled to length one."""
    wide = rows.astype(numpy.float32)
    units: Floats = wide / numpy.linalg.norm(wide, axis=1, keepdims=True)
    return units


def _products(rows: NDArray[Any], asked: Floats) -> Floats:
    """The product of each row with a vector or a matrix, in parts for which the library takes no second thread."""
    most = max(1, PRODUCTS // max(1, asked.size))
    parts = [
        rows[first : first + most].astype(numpy.float32, copy=False) @ asked for first in range(0, len(rows), most)
    ]
    products: Floats = numpy.concatenate(parts)
    return products
