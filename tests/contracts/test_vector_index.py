"""What every vector index promises, asked of each implementation, and that they agree."""

import math
import sys
from collections.abc import Callable

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallystick.errors import Unavailable
from tallystick.projections.vector_index import STEP, Floats, NumpyIndex, SqliteVecIndex, VectorIndex

Make = Callable[[int], VectorIndex]


def numpy_index(dimensions: int) -> VectorIndex:
    """The index in one array."""
    return NumpyIndex(dimensions)


def sqlite_vec_index(dimensions: int) -> VectorIndex:
    """The index in sqlite-vec, where that is installed."""
    try:
        return SqliteVecIndex(dimensions)
    except Unavailable as absent:
        pytest.skip(f"the oracle is not checked: {absent}")


@pytest.fixture(params=[numpy_index, sqlite_vec_index])
def make(request: pytest.FixtureRequest) -> Make:
    """Makes an empty index; a new implementation is one more parameter."""
    made: Make = request.param
    return made


def vectors(count: int, dimensions: int, seed: int = 0) -> Floats:
    """Random unit vectors, one a row."""
    rows = numpy.random.default_rng(seed).standard_normal((count, dimensions))
    units: Floats = (rows / numpy.linalg.norm(rows, axis=1, keepdims=True)).astype(numpy.float32)
    return units


def filled(make: Make, rows: Floats) -> VectorIndex:
    """An index of the rows, numbered from 0."""
    index = make(rows.shape[1])
    for number, row in enumerate(rows):
        index.add(number, row)
    return index


def cosine(row: Floats, query: Floats) -> float:
    """The cosine of a row as kept and a query, in one plain loop with exact sums."""
    kept = [float(value) for value in row.astype(numpy.float16)]
    asked = [float(value) for value in query]
    lengths = math.sqrt(math.fsum(x * x for x in kept) * math.fsum(y * y for y in asked))
    return math.fsum(x * y for x, y in zip(kept, asked, strict=True)) / lengths


def assert_agrees(found: list[tuple[int, float]], expected: dict[int, float], limit: int) -> None:
    """The hits are the best of `expected`, in order, each within two steps of its true score."""
    best = sorted(expected.values(), reverse=True)[:limit]
    assert len(found) == len({number for number, _ in found}) == len(best)
    for (number, score), true in zip(found, best, strict=True):
        assert abs(score - expected[number]) <= 2 * STEP
        assert abs(score - true) <= 2 * STEP


def test_the_nearest_come_first_with_their_cosine(make: Make) -> None:
    """Scores are cosines, best first, down to the opposite vector."""
    index = make(2)
    for number, row in enumerate([[0.0, 1.0], [1.0, 0.0], [-1.0, 0.0], [3.0, 4.0]]):
        index.add(number, numpy.array(row, dtype=numpy.float32))
    query = numpy.array([2.0, 0.0], dtype=numpy.float32)
    found = index.search(query, None, 10)
    assert [number for number, _ in found] == [1, 3, 0, 2]
    assert [score for _, score in found] == pytest.approx([1, 0.6, 0, -1], abs=STEP)


def test_scores_are_multiples_of_the_step(make: Make) -> None:
    """A score is rounded to 2**-20 and is a plain number."""
    found = filled(make, vectors(50, 16)).search(vectors(1, 16, seed=1)[0], None, 50)
    assert all(type(number) is int and type(score) is float for number, score in found)
    assert all((score / STEP).is_integer() for _, score in found)


def test_equal_scores_go_by_number(make: Make) -> None:
    """Equal vectors come by number, whatever the order of arrival, and the limit cuts the highest numbers."""
    row, other = vectors(2, 384)
    index = make(384)
    for number in [5, 900, 3, -7, 41]:
        index.add(number, row)
    for number in range(1000, 1100):
        index.add(number, other)
    assert [number for number, _ in index.search(row, None, 4)] == [-7, 3, 5, 41]


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32), count=st.integers(0, 60), limit=st.integers(0, 70))
@pytest.mark.parametrize("build", [numpy_index, sqlite_vec_index])
def test_random_vectors_are_ranked_as_a_plain_loop_ranks_them(build: Make, seed: int, count: int, limit: int) -> None:
    """Whatever the vectors and the candidates, the best of the candidates are found."""
    random = numpy.random.default_rng(seed)
    lengths = random.uniform(0.01, 100, size=(count, 1)).astype(numpy.float32)
    rows, query = vectors(count, 24, seed) * lengths, vectors(1, 24, seed + 1)[0]
    index = filled(build, rows)
    allowed = random.integers(0, 80, size=random.integers(0, 80))
    scores = {number: cosine(row, query) for number, row in enumerate(rows)}
    assert_agrees(index.search(query, None, limit), scores, limit)
    among = {number: scores[number] for number in allowed.tolist() if number in scores}
    assert_agrees(index.search(query, allowed, limit), among, limit)


def test_close_vectors_are_told_apart(make: Make) -> None:
    """Rows that differ in the last bits of float16 are ranked by their true cosines."""
    base, query = vectors(2, 384)
    rows = base + numpy.float32(2e-5) * vectors(500, 384, seed=3)
    scores = {number: cosine(row, query) for number, row in enumerate(rows)}
    assert_agrees(filled(make, rows).search(query, None, 20), scores, 20)


def test_candidates_narrow_before_the_best_are_picked(make: Make) -> None:
    """The worst of 6,000 is found if it alone may be, and as many as there are if several may."""
    rows, query = vectors(6000, 8), vectors(1, 8, seed=1)[0]
    index = filled(make, rows)
    ranking = [number for number, _ in index.search(query, None, 6000)]
    assert index.search(query, [ranking[-1]], 1)[0][0] == ranking[-1]
    assert [number for number, _ in index.search(query, ranking[3000:], 50)] == ranking[3000:3050]
    assert [number for number, _ in index.search(query, ranking[10:], 50)] == ranking[10:60]


@pytest.mark.parametrize("kind", [list, set, tuple, iter, lambda numbers: numpy.array(numbers, dtype=numpy.int64)])
def test_candidates_come_in_any_form(make: Make, kind: Callable[[list[int]], list[int]]) -> None:
    """Any iterable and any array will do; repetitions and unknown numbers do not matter."""
    index = filled(make, vectors(10, 8))
    found = index.search(vectors(1, 8, seed=1)[0], kind([3, 3, 7, 99, -1]), 10)
    assert sorted(number for number, _ in found) == [3, 7]


def test_no_candidates_means_no_hits(make: Make) -> None:
    """An empty choice finds nothing: it is not the same as no choice."""
    index = filled(make, vectors(10, 8))
    assert index.search(vectors(1, 8)[0], [], 5) == []
    assert index.search(vectors(1, 8)[0], numpy.array([], dtype=numpy.int64), 5) == []


def test_an_empty_index_finds_nothing(make: Make) -> None:
    """Nothing in, nothing out, before the first vector and after the last."""
    index = make(8)
    row = vectors(1, 8)[0]
    assert (len(index), index.search(row, None, 5), index.search(row, [1], 5)) == (0, [], [])
    index.add(1, row)
    index.remove(1)
    assert (len(index), index.search(row, None, 5)) == (0, [])


@pytest.mark.parametrize(("limit", "count"), [(-1, 0), (0, 0), (1, 1), (4097, 4097), (5000, 5000), (9999, 5000)])
def test_limit_is_kept_however_large(make: Make, limit: int, count: int) -> None:
    """As many hits as asked for and there, beyond 4096 too."""
    index = filled(make, vectors(5000, 4))
    assert len(index.search(vectors(1, 4, seed=1)[0], None, limit)) == count


def test_adding_again_replaces(make: Make) -> None:
    """A number has one vector: the last it was given."""
    first, second = vectors(2, 32)
    index = make(32)
    index.add(1, first)
    index.add(1, second)
    assert len(index) == 1
    assert_agrees(index.search(second, None, 5), {1: cosine(second, second)}, 5)


def test_what_is_removed_is_not_found(make: Make) -> None:
    """A removed number is gone from every search, the others stay as they were; removing none is no error."""
    rows, query = vectors(200, 16), vectors(1, 16, seed=1)[0]
    index = filled(make, rows)
    for number in [0, 199, 100, 100, 12345, *range(20, 60)]:
        index.remove(number)
    left = [number for number in range(200) if number not in {0, 199, 100, *range(20, 60)}]
    assert len(index) == len(left)
    assert_agrees(index.search(query, None, 500), {n: cosine(rows[n], query) for n in left}, 500)
    assert index.search(query, [0, 100, 30], 5) == []


def test_history_does_not_show(make: Make) -> None:
    """An index that saw removals and replacements answers exactly as one built from what is left."""
    rows, query = vectors(300, 384), vectors(1, 384, seed=1)[0]
    lived = filled(make, vectors(300, 384, seed=9))
    for number in range(0, 300, 3):
        lived.remove(number)
    for number in reversed(range(300)):
        lived.add(number, rows[number])
    assert lived.search(query, None, 300) == filled(make, rows).search(query, None, 300)


def test_a_score_is_never_a_negative_zero(make: Make) -> None:
    """A cosine that rounds to nothing is plain zero, so equal scores have equal bytes."""
    index = make(2)
    index.add(1, numpy.array([-1e-7, 1.0], dtype=numpy.float32))
    ((_, score),) = index.search(numpy.array([1.0, 0.0], dtype=numpy.float32), None, 1)
    assert math.copysign(1, score) == 1


@pytest.mark.parametrize("seed", range(25))
def test_the_place_in_the_array_does_not_show(seed: int) -> None:
    """Rows with the same true cosine tie, however float32 would sum them: the lowest numbers are found."""
    random = numpy.random.default_rng(seed)
    rows = numpy.array([random.permutation(row) for row in vectors(1, 384, seed).repeat(400, axis=0)])
    found = filled(numpy_index, rows).search(numpy.ones(384, dtype=numpy.float32), None, 50)
    assert [number for number, _ in found] == list(range(50))
    assert len({score for _, score in found}) == 1


BAD = {
    "too short": [1.0] * 7,
    "too long": [1.0] * 9,
    "zeros": [0.0] * 8,
    "not a number": [math.nan] * 8,
    "infinite": [math.inf] + [0.0] * 7,
}


@pytest.mark.parametrize("values", BAD.values(), ids=BAD.keys())
def test_what_is_no_vector_is_refused(make: Make, values: list[float]) -> None:
    """A vector without a direction or of another length is neither kept nor searched for."""
    index = make(8)
    bad = numpy.array(values, dtype=numpy.float32)
    with pytest.raises(ValueError, match="8"):
        index.add(1, bad)
    with pytest.raises(ValueError, match="8"):
        index.search(bad, None, 1)
    assert len(index) == 0


def test_many_at_once_are_as_one_by_one(make: Make) -> None:
    """Vectors put in together are found as those put in alone, those that take the place of others too."""
    rows, query = vectors(300, 16), vectors(1, 16, seed=1)[0]
    at_once = make(16)
    at_once.add_many(list(range(200)), rows[100:])
    at_once.add_many([*range(250, 300), *range(250)], numpy.concatenate([rows[250:], rows[:250]]))
    at_once.add_many([], numpy.empty((0, 16), dtype=numpy.float16))
    assert len(at_once) == 300
    assert at_once.search(query, None, 300) == filled(make, rows).search(query, None, 300)


def test_none_of_many_is_kept_where_one_is_bad(make: Make) -> None:
    """Half a load would be an index that nobody can tell from a whole one."""
    index, rows = make(8), vectors(5, 8)
    rows[3] = 0
    for bad in (rows, vectors(4, 8), vectors(5, 9)):
        with pytest.raises(ValueError, match="not a vector"):
            index.add_many(list(range(5)), bad)
    assert len(index) == 0


@pytest.mark.parametrize("value", [1e6, 1e-9])
def test_values_float16_cannot_hold_are_refused(make: Make, value: float) -> None:
    """A vector that rounding would make infinite or zero is not kept."""
    index = make(8)
    with pytest.raises(ValueError, match="float16"):
        index.add(1, numpy.full(8, value, dtype=numpy.float32))


def test_the_numpy_index_agrees_with_sqlite_vec() -> None:
    """The array and its independent witness give the same hits, up to two steps of rounding."""
    rows, query = vectors(2000, 384), vectors(1, 384, seed=1)[0]
    witness = dict(filled(sqlite_vec_index, rows).search(query, None, 2000))
    assert_agrees(filled(numpy_index, rows).search(query, None, 100), witness, 100)
    allowed = numpy.arange(0, 2000, 7)
    among = {number: witness[number] for number in allowed.tolist()}
    assert_agrees(filled(numpy_index, rows).search(query, allowed, 100), among, 100)


def test_sqlite_vec_absent_is_said_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where sqlite-vec can't be installed, the error says so and what to use."""
    monkeypatch.setitem(sys.modules, "sqlite_vec", None)
    with pytest.raises(Unavailable, match="NumpyIndex"):
        SqliteVecIndex(8)
