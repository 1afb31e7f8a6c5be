"""Token vectors in four bits a value, and how well a question's tokens meet a memory's (late interaction)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy
from numpy.typing import NDArray

from .embedding import PRODUCTS

Floats = NDArray[numpy.float32]

LEVELS = 16
STEP = 0.3352
"""The step between 16 equal levels that distorts normally distributed values least, in standard deviations.

J. Max, "Quantizing for minimum distortion" (1960), table II.
"""
NOTHING = -1.0
"""What a memory without codes has instead of a cosine: nothing of it is like anything."""
KEPT_BYTES = 64 << 20


def coded(tokens: Floats) -> bytes:
    """The codes of unit vectors of an even number of dimensions, one a row: half a byte a value.

    The values of a unit vector whose dimensions are alike have the standard deviation 1 / sqrt(dimensions), so no
    scale is kept beside the codes.
    """
    step = STEP / numpy.sqrt(tokens.shape[1])
    levels = numpy.clip(numpy.floor(tokens / step), -LEVELS // 2, LEVELS // 2 - 1).astype(numpy.int8) + LEVELS // 2
    codes: NDArray[numpy.uint8] = (levels[:, 0::2] | levels[:, 1::2] << 4).astype(numpy.uint8)
    return codes.tobytes()


def decoded(codes: bytes, dimensions: int) -> Floats:
    """The token vectors that these codes stand for, one a row, nearly of unit length."""
    pairs = _pairs(dimensions).take(numpy.frombuffer(codes, dtype=numpy.uint8))
    return pairs.view(numpy.float32).reshape(-1, dimensions)


def met(question: Floats, memories: Sequence[bytes]) -> Floats:
    """The best cosine of each token of a question (rows) with the tokens of each memory (columns), given as codes.

    NOTHING for a memory without codes.
    """
    dimensions = question.shape[1]
    counts = numpy.array([2 * len(codes) // dimensions for codes in memories])
    best: Floats = numpy.full((len(question), len(memories)), NOTHING, dtype=numpy.float32)
    for places in _portions(counts, PRODUCTS // question.size):
        tokens = decoded(b"".join(memories[place] for place in places), dimensions)
        starts = numpy.cumsum(counts[places]) - counts[places]
        best[:, places] = numpy.maximum.reduceat(question @ tokens.T, starts, axis=1)
    return best


def _portions(counts: NDArray[numpy.int_], most: int) -> list[NDArray[numpy.intp]]:
    """The places of memories that have tokens, in runs of some `most` tokens each."""
    places = numpy.flatnonzero(counts)
    run = (numpy.cumsum(counts[places]) - 1) // max(1, most)
    return [part for part in numpy.split(places, numpy.flatnonzero(numpy.diff(run)) + 1) if len(part)]


@lru_cache(4)
def _pairs(dimensions: int) -> NDArray[numpy.float64]:
    """For each byte of codes the two float32 values it stands for, packed into eight bytes."""
    levels = (numpy.arange(LEVELS) - LEVELS / 2 + 0.5) * STEP / numpy.sqrt(dimensions)
    pairs = numpy.empty((LEVELS * LEVELS, 2), dtype=numpy.float32)
    pairs[:, 0], pairs[:, 1] = numpy.tile(levels, LEVELS), numpy.repeat(levels, LEVELS)
    return pairs.view(numpy.float64)[:, 0]


class KeptCodes:
    """The codes that were asked for last, up to 64 MiB; the others are read again."""

    def __init__(self, read: Callable[[Sequence[int]], Mapping[int, bytes]]) -> None:
        self._read = read
        self._kept: OrderedDict[int, bytes] = OrderedDict()
        self._bytes = 0

    def of(self, numbers: Sequence[int]) -> list[bytes]:
        """The codes under these numbers, in order; empty where there are none."""
        missing = [number for number in numbers if number not in self._kept]
        found = self._read(missing) if missing else {}
        for number in missing:
            self._keep(number, found.get(number, b""))
        given = [self._kept[number] for number in numbers]
        for number in numbers:
            self._kept.move_to_end(number)
        while self._bytes > KEPT_BYTES:
            self._bytes -= len(self._kept.popitem(last=False)[1])
        return given

    def _keep(self, number: int, codes: bytes) -> None:
        self._kept[number] = codes
        self._bytes += len(codes)
