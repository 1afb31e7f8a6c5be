"""The nearest vectors to a vector, exactly."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy
from numpy.typing import NDArray
from sqlcipher3 import dbapi2

from ..errors import Unavailable

Floats = NDArray[numpy.float32]

STEP = 2.0**-20
"""Scores are multiples of this, so that other arithmetic gives the same order."""

Candidates = Iterable[int] | NDArray[numpy.int64] | None
"""The numbers that may be found; None is all of them."""


class VectorIndex(Protocol):
    """Numbered vectors of one embedding space, searched by cosine.

    A vector is kept rounded to float16, so every implementation scores the same values. Calls on one index
    must not overlap in time. A vector of the wrong length, of zeros or with values float16 can't hold is a
    ValueError.
    """

    def add(self, number: int, vector: Floats) -> None:
        """Put a vector under a number (64 bits, signed), in place of the one that is there."""

    def add_many(self, numbers: Sequence[int], vectors: NDArray[numpy.floating]) -> None:
        """Put vectors, one a row, under numbers of which none occurs twice. All are put in, or none."""

    def remove(self, number: int) -> None:
        """Take out the vector under a number; none there is no error."""

    def search(self, query: Floats, candidates: Candidates, limit: int) -> list[tuple[int, float]]:
        """The `limit` nearest among the candidates (None: among all) as (number, cosine), best first.

        Cosines are rounded to 2**-20, then equal ones go by number. Candidates narrow the search before
        the best are picked, so `limit` of them are found where there are as many; unknown numbers and
        repetitions among them do not matter.
        """

    def __len__(self) -> int:
        """How many vectors are held."""


class NumpyIndex:
    """A vector index in one array: 4 bytes of memory per value, one product with the array per search.

    The rows are scanned in float32; the cosines of those that can be among the best are then summed in
    float64, so a score does not depend on where in the array its row stands.
    """

    def __init__(self, dimensions: int) -> None:
        """An empty index of vectors of `dimensions` values."""
        self._dimensions = dimensions
        self._rows = numpy.empty((64, dimensions), dtype=numpy.float32)
        self._lengths = numpy.empty(64, dtype=numpy.float64)
        self._numbers = numpy.empty(64, dtype=numpy.int64)
        self._places: dict[int, int] = {}

    def __len__(self) -> int:
        """How many vectors are held."""
        return len(self._places)

    def add(self, number: int, vector: Floats) -> None:
        """Put a vector under a number, in place of the one that is there."""
        self.add_many([number], numpy.asarray(vector)[numpy.newaxis])

    def add_many(self, numbers: Sequence[int], vectors: NDArray[numpy.floating]) -> None:
        """Put vectors, one a row, under numbers of which none occurs twice. All are put in, or none."""
        rows = _rounded(vectors, (len(numbers), self._dimensions))
        unknown = (number for number in numbers if number not in self._places)
        self._places |= {number: place for place, number in enumerate(unknown, len(self))}
        while len(self._numbers) < len(self):
            self._grow()
        places = [self._places[number] for number in numbers]
        self._rows[places] = rows
        self._lengths[places] = numpy.sqrt(numpy.einsum("ij,ij->i", rows, rows, dtype=numpy.float64))
        self._numbers[places] = numbers

    def remove(self, number: int) -> None:
        """Take out the vector under a number, if any; the last row moves into its place."""
        place = self._places.pop(number, None)
        if place is None:
            return
        last = len(self)
        if place != last:
            for column in (self._rows, self._lengths, self._numbers):
                column[place] = column[last]
            self._places[int(self._numbers[place])] = place

    def search(self, query: Floats, candidates: Candidates, limit: int) -> list[tuple[int, float]]:
        """The `limit` nearest among the candidates (None: among all) as (number, cosine), best first."""
        unit = _unit(query, self._dimensions)
        places = self._allowed(candidates)
        if limit < 1 or not len(places):
            return []
        places = self._within_reach(unit, places, limit)
        # einsum sums every row in the same order, which a matrix product does not.
        products = numpy.einsum("ij,j->i", self._rows[places].astype(numpy.float64), unit)
        scores = _stepped(products / self._lengths[places])
        numbers = self._numbers[places]
        order = numpy.lexsort((numbers, -scores))[:limit]
        return list(zip(numbers[order].tolist(), scores[order].tolist(), strict=True))

    def _allowed(self, candidates: Candidates) -> NDArray[numpy.intp]:
        """The places of the rows that may be found."""
        if candidates is None:
            return numpy.arange(len(self))
        if not isinstance(candidates, numpy.ndarray):
            candidates = numpy.fromiter(candidates, dtype=numpy.int64)
        return numpy.flatnonzero(numpy.isin(self._numbers[: len(self)], candidates))

    def _within_reach(
        self, unit: NDArray[numpy.float64], places: NDArray[numpy.intp], limit: int
    ) -> NDArray[numpy.intp]:
        """The places that can hold one of the `limit` best, by a scan in float32.

        A float32 sum of n products of unit vectors is wrong by at most n * 2**-24 (Higham, Accuracy and
        Stability of Numerical Algorithms, section 3.1), both here and at the limit; rounding adds a step.
        """
        if limit >= len(places):
            return places
        narrow = len(places) * 2 < len(self)
        rows = self._rows[places] if narrow else self._rows[: len(self)]
        products = rows @ unit.astype(numpy.float32)
        scores = (products if narrow else products[places]) / self._lengths[places]
        worst = numpy.partition(scores, len(scores) - limit)[len(scores) - limit]
        reach: NDArray[numpy.intp] = places[scores >= worst - self._dimensions * 2.0**-23 - 2 * STEP]
        return reach

    def _grow(self) -> None:
        """Double the room for rows."""
        room = 2 * len(self._numbers)
        self._rows = numpy.resize(self._rows, (room, self._dimensions))
        self._lengths = numpy.resize(self._lengths, room)
        self._numbers = numpy.resize(self._numbers, room)


class SqliteVecIndex:
    """A vector index in a table in memory, every row scored by sqlite-vec's `vec_distance_cosine`.

    An independent witness of `NumpyIndex`, and slower. It scans rather than asking a `vec0` table for its
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
        self._connection.execute("CREATE TABLE vector (number INTEGER PRIMARY KEY, row BLOB NOT NULL)")

    def __len__(self) -> int:
        """How many vectors are held."""
        return int(self._connection.execute("SELECT count(*) FROM vector").fetchone()[0])

    def add(self, number: int, vector: Floats) -> None:
        """Put a vector under a number, in place of the one that is there."""
        self.add_many([number], numpy.asarray(vector)[numpy.newaxis])

    def add_many(self, numbers: Sequence[int], vectors: NDArray[numpy.floating]) -> None:
        """Put vectors, one a row, under numbers of which none occurs twice. All are put in, or none."""
        rows = _rounded(vectors, (len(numbers), self._dimensions))
        rows_to_put = [(int(number), row.tobytes()) for number, row in zip(numbers, rows, strict=True)]
        self._connection.executemany("INSERT OR REPLACE INTO vector VALUES (?, ?)", rows_to_put)

    def remove(self, number: int) -> None:
        """Take out the vector under a number, if any."""
        self._connection.execute("DELETE FROM vector WHERE number = ?", (int(number),))

    def search(self, query: Floats, candidates: Candidates, limit: int) -> list[tuple[int, float]]:
        """The `limit` nearest among the candidates (None: among all) as (number, cosine), best first."""
        unit = _unit(query, self._dimensions).astype(numpy.float32).tobytes()
        sql = "SELECT number, vec_distance_cosine(row, ?) FROM vector"
        if candidates is None:
            found = self._connection.execute(sql, (unit,)).fetchall()
        else:
            wanted = json.dumps([int(number) for number in candidates])
            sql += " WHERE number IN (SELECT value FROM json_each(?))"
            found = self._connection.execute(sql, (unit, wanted)).fetchall()
        scores = _stepped(1 - numpy.array([distance for _, distance in found]))
        hits = zip([number for number, _ in found], scores.tolist(), strict=True)
        return sorted(hits, key=lambda hit: (-hit[1], hit[0]))[: max(limit, 0)]


def _rounded(vectors: NDArray[numpy.floating], shape: tuple[int, int]) -> Floats:
    """The vectors with each value rounded to float16."""
    with numpy.errstate(over="ignore", under="ignore"):
        rows = numpy.asarray(vectors).astype(numpy.float16).astype(numpy.float32)
    if rows.shape != shape or not numpy.isfinite(rows).all() or not rows.any(axis=1).all():
        raise ValueError(f"not a vector of {shape[1]} values that float16 can hold")
    return rows


def _unit(query: Floats, dimensions: int) -> NDArray[numpy.float64]:
    """The query scaled to length one."""
    wide = numpy.asarray(query).astype(numpy.float64)
    if wide.shape != (dimensions,) or not numpy.isfinite(wide).all() or not wide.any():
        raise ValueError(f"not a query of {dimensions} finite values")
    return wide / _length(wide)


def _length(vector: NDArray[numpy.floating]) -> float:
    """Euclidean length, summed in float64."""
    return float(numpy.linalg.norm(vector.astype(numpy.float64)))


def _stepped(scores: NDArray[numpy.float64]) -> NDArray[numpy.float64]:
    """Scores rounded to multiples of 2**-20; never a negative zero."""
    return numpy.round(scores / STEP) * STEP + 0.0
