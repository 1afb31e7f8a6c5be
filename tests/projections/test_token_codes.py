"""Token vectors in four bits: little is lost, and the best matches are those of the vectors themselves."""

from collections.abc import Sequence
from itertools import product

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.projections import token_codes
from tallystick.projections.token_codes import LEVELS, NOTHING, STEP, Floats, KeptCodes, coded, decoded, met

DIMENSIONS = 192
RANDOM = numpy.random.default_rng(7)


def unit(rows: int, dimensions: int = DIMENSIONS) -> Floats:
    """Random unit vectors."""
    vectors = RANDOM.standard_normal((rows, dimensions)).astype(numpy.float32)
    found: Floats = vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)
    return found


def test_a_code_is_half_a_byte_a_value_and_keeps_the_direction() -> None:
    """What comes back points where the vector pointed, within a cosine of 0.98."""
    tokens = unit(500)
    codes = coded(tokens)
    assert len(codes) == 500 * DIMENSIONS // 2
    again = decoded(codes, DIMENSIONS)
    cosines = (again * tokens).sum(axis=1) / numpy.linalg.norm(again, axis=1)
    assert again.dtype == numpy.float32
    assert cosines.min() > 0.98
    assert numpy.abs(numpy.linalg.norm(again, axis=1) - 1).max() < 0.1


def test_every_pair_of_levels_has_its_place() -> None:
    """Both values of each byte come back in order, whatever the two are."""
    step = STEP / numpy.sqrt(2)
    levels = (numpy.arange(LEVELS) - LEVELS / 2 + 0.5) * step
    pairs = numpy.array(list(product(levels, levels)), dtype=numpy.float32)
    assert decoded(coded(pairs), 2) == pytest.approx(pairs, abs=1e-6)


def test_what_is_beyond_the_levels_is_the_outermost() -> None:
    """A vector along one axis does not wrap round."""
    token = numpy.zeros((1, DIMENSIONS), dtype=numpy.float32)
    token[0, 3], token[0, 4] = 1, -1
    again = decoded(coded(token), DIMENSIONS)[0]
    assert again.argmax() == 3
    assert again.argmin() == 4


@given(counts=st.lists(st.integers(0, 40), max_size=30), tokens=st.integers(1, 12))
def test_the_best_match_of_each_token_is_found(counts: Sequence[int], tokens: int) -> None:
    """As by comparing each token of a question with each of each memory; a memory without any has nothing."""
    question = unit(tokens, 8)
    memories = [coded(unit(count, 8)) if count else b"" for count in counts]
    best = met(question, memories)
    assert best.shape == (tokens, len(counts))
    for place, codes in enumerate(memories):
        expected = (question @ decoded(codes, 8).T).max(axis=1) if codes else numpy.full(tokens, NOTHING)
        assert best[:, place] == pytest.approx(expected, abs=1e-6)


def test_portions_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few are taken at once, the matches are the same."""
    question, memories = unit(5), [coded(unit(count)) for count in (40, 1, 7, 33, 2)]
    whole = met(question, memories)
    for products in (1, 5 * DIMENSIONS, 1 << 30):
        monkeypatch.setattr(token_codes, "PRODUCTS", products)
        assert met(question, memories) == pytest.approx(whole, abs=1e-6)


def test_codes_are_read_once_while_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was asked for lately stays; the oldest makes room, and is read again."""
    monkeypatch.setattr(token_codes, "KEPT_BYTES", 10)
    read: list[int] = []

    def reading(numbers: Sequence[int]) -> dict[int, bytes]:
        read.extend(numbers)
        return {number: b"1234" for number in numbers if number != 9}

    kept = KeptCodes(reading)
    assert kept.of([1, 2, 9]) == [b"1234", b"1234", b""]
    assert kept.of([2, 1]) == [b"1234", b"1234"]
    assert read == [1, 2, 9]
    assert kept.of([3]) == [b"1234"]  # 2 was asked for before 1 was
    assert kept.of([1]) == [b"1234"]
    assert read == [1, 2, 9, 3]
    assert kept.of([2]) == [b"1234"]
    assert read == [1, 2, 9, 3, 2]
