"""What every vector index promises, asked of each implementation, and that they agree."""

import math
import sys
from collections.abc import Callable, Collection

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tallystick.errors import Unavailable
from tallystick.projections import vector_index
from tallystick.projections.columns import Flags, Places
from tallystick.projections.vector_index import (
    EXACT,
    NEAR,
    STEP,
    Floats,
    Nearest,
    NumpyIndex,
    SqliteVecIndex,
    VectorIndex,
)

Make = Callable[[int], VectorIndex]
DIMENSIONS = 192


class Staged(NumpyIndex):
    """A NumpyIndex that takes sketches from its first vector on."""

    def put(self, places: Places, vectors: NDArray[numpy.floating]) -> None:
        """As one that holds many."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(vector_index, "EXACT", 0)
            super().put(places, vectors)


def numpy_index(dimensions: int) -> VectorIndex:
    """The index in arrays, of few vectors."""
    return NumpyIndex(dimensions)


def staged_index(dimensions: int) -> VectorIndex:
    """The index in arrays, as it searches many."""
    return Staged(dimensions)


def sqlite_vec_index(dimensions: int) -> VectorIndex:
    """The index in sqlite-vec, where that is installed."""
    try:
        return SqliteVecIndex(dimensions)
    except Unavailable as absent:
        pytest.skip(f"the oracle is not checked: {absent}")


BUILDS = [numpy_index, staged_index, sqlite_vec_index]


@pytest.fixture(params=BUILDS)
def make(request: pytest.FixtureRequest) -> Make:
    """Makes an empty index; a new implementation is one more parameter."""
    made: Make = request.param
    return made


def at(*places: int) -> Places:
    """Places."""
    return numpy.array(places, dtype=numpy.intp)


def flags(places: Collection[int] | Places, size: int | None = None) -> Flags:
    """Flags for these places alone."""
    flagged = numpy.zeros(max([-1, *places]) + 1 if size is None else size, dtype=bool)
    flagged[list(places)] = True
    return flagged


ALL = numpy.ones(100_000, dtype=bool)


def pairs(found: Nearest) -> list[tuple[int, float]]:
    """What was found, as a list."""
    return list(zip(found.places.tolist(), found.cosines.tolist(), strict=True))


def vectors(count: int, dimensions: int, seed: int = 0) -> Floats:
    """Random unit vectors, one a row."""
    rows = numpy.random.default_rng(seed).standard_normal((count, dimensions))
    units: Floats = (rows / numpy.linalg.norm(rows, axis=1, keepdims=True)).astype(numpy.float32)
    return units


def filled(make: Make, rows: Floats) -> VectorIndex:
    """An index of the rows, placed from 0 on."""
    index = make(rows.shape[1])
    index.put(numpy.arange(len(rows)), rows)
    return index


def cosine(row: Floats, query: Floats) -> float:
    """The cosine of a row as kept and a query, in one plain loop with exact sums."""
    kept = [float(value) for value in row.astype(numpy.float16)]
    asked = [float(value) for value in query]
    lengths = math.sqrt(math.fsum(x * x for x in kept) * math.fsum(y * y for y in asked))
    return math.fsum(x * y for x, y in zip(kept, asked, strict=True)) / lengths


def assert_agrees(found: Nearest, expected: dict[int, float], limit: int) -> None:
    """The hits are the best of `expected`, in order, each within two steps of its true score."""
    best = sorted(expected.values(), reverse=True)[:limit]
    assert len(found.places) == len({*found.places.tolist()}) == len(best)
    for (place, score), true in zip(pairs(found), best, strict=True):
        assert abs(score - expected[place]) <= 2 * STEP
        assert abs(score - true) <= 2 * STEP


def test_the_nearest_come_first_with_their_cosine(make: Make) -> None:
    """Scores are cosines, best first, down to the opposite vector."""
    index = filled(make, numpy.array([[0, 1], [1, 0], [-1, 0], [3, 4]], dtype=numpy.float32))
    found = index.search(numpy.array([2.0, 0.0], dtype=numpy.float32), ALL, 10)
    assert found.places.tolist() == [1, 3, 0, 2]
    assert found.cosines == pytest.approx([1, 0.6, 0, -1], abs=STEP)


def test_scores_are_multiples_of_the_step(make: Make) -> None:
    """A score is rounded to 2**-20; places are such as arrays are indexed by."""
    found = filled(make, vectors(50, 16)).search(vectors(1, 16, seed=1)[0], ALL, 50)
    assert found.places.dtype == numpy.dtype(numpy.intp)
    assert found.cosines.dtype == numpy.dtype(numpy.float64)
    assert all((score / STEP).is_integer() for score in found.cosines.tolist())


def test_equal_scores_go_by_place(make: Make) -> None:
    """Equal vectors come by place, whatever the order of arrival, and the limit cuts the highest places."""
    row, other = vectors(2, 384)
    index = make(384)
    for place in [5, 900, 3, 7, 41]:
        index.put(at(place), row[numpy.newaxis])
    index.put(numpy.arange(1000, 1100), other[numpy.newaxis].repeat(100, axis=0))
    assert index.search(row, ALL, 4).places.tolist() == [3, 5, 7, 41]


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32), count=st.integers(0, 60), limit=st.integers(0, 70))
@pytest.mark.parametrize("build", BUILDS)
def test_random_vectors_are_ranked_as_a_plain_loop_ranks_them(build: Make, seed: int, count: int, limit: int) -> None:
    """Whatever the vectors and the flags, the best of the flagged are found, and each has its cosine."""
    random = numpy.random.default_rng(seed)
    lengths = random.uniform(0.01, 100, size=(count, 1)).astype(numpy.float32)
    rows, query = vectors(count, 24, seed) * lengths, vectors(1, 24, seed + 1)[0]
    index = filled(build, rows)
    allowed = random.random(random.integers(0, 80)) < random.random()
    scores = {place: cosine(row, query) for place, row in enumerate(rows)}
    assert_agrees(index.search(query, ALL, limit), scores, limit)
    among = {place: scores[place] for place in numpy.flatnonzero(allowed).tolist() if place in scores}
    assert_agrees(index.search(query, allowed, limit), among, limit)
    asked = random.integers(0, 80, size=20)
    expected = [scores.get(place, math.nan) for place in asked.tolist()]
    assert index.cosines(query, asked) == pytest.approx(expected, abs=2 * STEP, nan_ok=True)


def test_close_vectors_are_told_apart(make: Make) -> None:
    """Rows that differ in the last bits of float16 are ranked by their true cosines."""
    base, query = vectors(2, 384)
    rows = base + numpy.float32(2e-5) * vectors(500, 384, seed=3)
    scores = {place: cosine(row, query) for place, row in enumerate(rows)}
    assert_agrees(filled(make, rows).search(query, ALL, 20), scores, 20)


def test_flags_narrow_before_the_best_are_picked(make: Make) -> None:
    """The worst of 6,000 is found if it alone may be, and as many as there are if several may."""
    rows, query = vectors(6000, 64), vectors(1, 64, seed=1)[0]
    index = filled(make, rows)
    ranking = index.search(query, ALL, 6000).places.tolist()
    assert index.search(query, flags(ranking[-1:]), 1).places.tolist() == ranking[-1:]
    assert index.search(query, flags(ranking[5500:]), 50).places.tolist() == ranking[5500:5550]
    assert index.search(query, flags(ranking[10:]), 2999).places.tolist() == ranking[10:3009]


def test_no_flag_means_no_hits(make: Make) -> None:
    """Where nothing is allowed nothing is found: it is not the same as no choice."""
    index = filled(make, vectors(10, 8))
    for nothing in (numpy.empty(0, dtype=bool), numpy.zeros(10, dtype=bool), numpy.zeros(99, dtype=bool)):
        assert pairs(index.search(vectors(1, 8)[0], nothing, 5)) == []


def test_places_beyond_the_flags_are_not_allowed(make: Make) -> None:
    """Fewer flags than places leave out the last ones; flags of places where nothing is do not matter."""
    index, query = filled(make, vectors(10, 8)), vectors(1, 8, seed=1)[0]
    index.drop(at(3))
    assert sorted(index.search(query, numpy.ones(5, dtype=bool), 10).places.tolist()) == [0, 1, 2, 4]
    assert sorted(index.search(query, flags([3, 7, 9, 50], 5000), 10).places.tolist()) == [7, 9]


def test_an_empty_index_finds_nothing(make: Make) -> None:
    """Nothing in, nothing out, before the first vector and after the last."""
    index = make(8)
    row = vectors(1, 8)
    assert (len(index), pairs(index.search(row[0], ALL, 5)), pairs(index.search(row[0], flags([1]), 5))) == (0, [], [])
    assert numpy.isnan(index.cosines(row[0], at(0, 1))).all()
    index.put(at(1), row)
    index.drop(at(1))
    assert (len(index), pairs(index.search(row[0], ALL, 5))) == (0, [])
    assert numpy.isnan(index.cosines(row[0], at(0, 1))).all()


@pytest.mark.parametrize(("limit", "count"), [(-1, 0), (0, 0), (1, 1), (4097, 4097), (5000, 5000), (9999, 5000)])
def test_limit_is_kept_however_large(make: Make, limit: int, count: int) -> None:
    """As many hits as asked for and there, beyond 4096 too."""
    index = filled(make, vectors(5000, 4))
    assert len(index.search(vectors(1, 4, seed=1)[0], ALL, limit).places) == count


def test_putting_again_replaces(make: Make) -> None:
    """A place has one vector: the last it was given."""
    rows = vectors(2, 32)
    index = make(32)
    for row in rows:
        index.put(at(1), row[numpy.newaxis])
    assert len(index) == 1
    assert_agrees(index.search(rows[1], ALL, 5), {1: cosine(rows[1], rows[1])}, 5)


def test_what_is_dropped_is_not_found(make: Make) -> None:
    """A place that was dropped is gone from every search, the others stay as they were; dropping none is no error."""
    rows, query = vectors(200, 16), vectors(1, 16, seed=1)[0]
    index = filled(make, rows)
    gone = [0, 199, 100, 100, 12345, *range(20, 60)]
    index.drop(at(*gone))
    index.drop(at())
    index.drop(at(0, 20))
    left = [place for place in range(200) if place not in gone]
    assert len(index) == len(left)
    assert_agrees(index.search(query, ALL, 500), {place: cosine(rows[place], query) for place in left}, 500)
    assert pairs(index.search(query, flags([0, 100, 30]), 5)) == []
    cosines = index.cosines(query, at(0, 1, 30, 12345, 1))
    assert cosines == pytest.approx(
        [math.nan, cosine(rows[1], query), math.nan, math.nan, cosine(rows[1], query)], abs=2 * STEP, nan_ok=True
    )


def test_history_does_not_show(make: Make) -> None:
    """An index that saw drops and replacements answers exactly as one built from what is left."""
    rows, query = vectors(300, 384), vectors(1, 384, seed=1)[0]
    lived = filled(make, vectors(300, 384, seed=9))
    lived.drop(numpy.arange(0, 300, 3))
    for place in reversed(range(300)):
        lived.put(at(place), rows[place : place + 1])
    fresh = filled(make, rows)
    assert pairs(lived.search(query, ALL, 300)) == pairs(fresh.search(query, ALL, 300))
    everywhere = numpy.arange(300)
    assert lived.cosines(query, everywhere).tolist() == fresh.cosines(query, everywhere).tolist()


def test_a_score_is_never_a_negative_zero(make: Make) -> None:
    """A cosine that rounds to nothing is plain zero, so equal scores have equal bytes."""
    index = filled(make, numpy.array([[-1e-7, 1.0]], dtype=numpy.float32))
    (score,) = index.search(numpy.array([1.0, 0.0], dtype=numpy.float32), ALL, 1).cosines.tolist()
    assert math.copysign(1, score) == 1


@pytest.mark.parametrize("seed", range(25))
def test_the_place_in_the_array_does_not_show(seed: int) -> None:
    """Rows with the same true cosine tie, however float32 would sum them: the first places are found."""
    random = numpy.random.default_rng(seed)
    rows = numpy.array([random.permutation(row) for row in vectors(1, 384, seed).repeat(400, axis=0)])
    found = filled(numpy_index, rows).search(numpy.ones(384, dtype=numpy.float32), ALL, 50)
    assert found.places.tolist() == list(range(50))
    assert len({*found.cosines.tolist()}) == 1


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
        index.put(at(1), bad[numpy.newaxis])
    with pytest.raises(ValueError, match="8"):
        index.search(bad, ALL, 1)
    with pytest.raises(ValueError, match="8"):
        index.cosines(bad, at(1))
    assert len(index) == 0


def test_many_at_once_are_as_one_by_one(make: Make) -> None:
    """Vectors put in together are found as those put in alone, those that take the place of others too."""
    rows, query = vectors(300, 16), vectors(1, 16, seed=1)[0]
    at_once = make(16)
    at_once.put(numpy.arange(200), rows[100:])
    at_once.put(at(*range(250, 300), *range(250)), numpy.concatenate([rows[250:], rows[:250]]))
    at_once.put(at(), numpy.empty((0, 16), dtype=numpy.float16))
    one_by_one = make(16)
    for place in range(300):
        one_by_one.put(at(place), rows[place : place + 1])
    assert len(at_once) == len(one_by_one) == 300
    assert pairs(at_once.search(query, ALL, 300)) == pairs(one_by_one.search(query, ALL, 300))


def test_none_of_many_is_kept_where_one_is_bad(make: Make) -> None:
    """Half a load would be an index that nobody can tell from a whole one."""
    index, rows = make(8), vectors(5, 8)
    rows[3] = 0
    for bad in (rows, vectors(4, 8), vectors(5, 9)):
        with pytest.raises(ValueError, match="not a vector"):
            index.put(numpy.arange(5), bad)
    assert len(index) == 0
    assert pairs(index.search(vectors(1, 8)[0], ALL, 5)) == []


@pytest.mark.parametrize("value", [1e6, 1e-9])
def test_values_float16_cannot_hold_are_refused(make: Make, value: float) -> None:
    """A vector that rounding would make infinite or zero is not kept."""
    index = make(8)
    with pytest.raises(ValueError, match="float16"):
        index.put(at(1), numpy.full((1, 8), value, dtype=numpy.float32))


def test_the_numpy_index_agrees_with_sqlite_vec() -> None:
    """The arrays and their independent witness give the same hits, up to two steps of rounding."""
    rows, query = vectors(2000, 384), vectors(1, 384, seed=1)[0]
    witness = dict(pairs(filled(sqlite_vec_index, rows).search(query, ALL, 2000)))
    assert_agrees(filled(numpy_index, rows).search(query, ALL, 100), witness, 100)
    allowed = flags(range(0, 2000, 7))
    among = {place: witness[place] for place in numpy.flatnonzero(allowed).tolist()}
    assert_agrees(filled(numpy_index, rows).search(query, allowed, 100), among, 100)


def test_sqlite_vec_absent_is_said_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where sqlite-vec can't be installed, the error says so and what to use."""
    monkeypatch.setitem(sys.modules, "sqlite_vec", None)
    with pytest.raises(Unavailable, match="NumpyIndex"):
        SqliteVecIndex(8)


# ---- many vectors: scored where their sketches are near

MANY = EXACT + 1000
MORE = 2 * MANY + 1000
QUESTIONS = 100
ENOUGH = 0.995
"""How many of the ten nearest are found, of a hundred questions together."""


def like_texts(count: int, dimensions: int = DIMENSIONS, seed: int = 0) -> Floats:
    """Unit vectors as alike as those of texts: what all have in common, a subject, and a third of their own."""
    common, *subjects = vectors(201, dimensions, seed=99)
    random = numpy.random.default_rng(seed)
    own = random.standard_normal((count, dimensions)) / dimensions**0.5
    rows = common + 0.3 * numpy.array(subjects)[random.integers(0, len(subjects), count)] + 0.3 * own
    units: Floats = (rows / numpy.linalg.norm(rows, axis=1, keepdims=True)).astype(numpy.float32)
    return units


def found_of_ten(index: VectorIndex, rows: Floats, allowed: Flags, questions: Floats | None = None) -> float:
    """The share of the ten nearest of the flagged rows that is found, as exact products tell them."""
    questions = like_texts(QUESTIONS, rows.shape[1], seed=5) if questions is None else questions
    kept = rows.astype(numpy.float16).astype(numpy.float32)
    places = numpy.flatnonzero(allowed[: len(rows)])
    cosines = (kept[places] / numpy.linalg.norm(kept[places], axis=1, keepdims=True)) @ questions.T
    count = min(10, len(places))
    found = 0
    for question, true in zip(questions, cosines.T, strict=True):
        nearest = index.search(question, allowed, 10)
        assert len(nearest.places) == count
        assert allowed[nearest.places].all()
        assert (numpy.diff(nearest.cosines) <= 0).all()
        best = numpy.partition(true, len(true) - count)[len(true) - count]
        found += int((nearest.cosines >= best - 2 * STEP).sum())
    return found / (len(questions) * count)


@pytest.fixture(scope="module")
def many() -> Floats:
    """More vectors than each is scored of, like those of texts."""
    return like_texts(MORE)


@pytest.fixture
def staged(many: Floats) -> NumpyIndex:
    """An index of the first of them, so many that it takes sketches."""
    index = NumpyIndex(DIMENSIONS)
    index.put(numpy.arange(MANY), many[:MANY])
    return index


def test_of_many_the_nearest_are_found(staged: NumpyIndex, many: Floats) -> None:
    """Ten of ten but for one in two hundred; each has the score that exact sums give it."""
    assert found_of_ten(staged, many[:MANY], ALL) >= ENOUGH
    witness = filled(sqlite_vec_index, many[:MANY])
    found = 0
    for question in like_texts(5, seed=6):
        nearest, exact = staged.search(question, ALL, 10), witness.search(question, ALL, 10)
        found += len({*nearest.places.tolist()} & {*exact.places.tolist()})
        for place, score in pairs(nearest):
            assert score == pytest.approx(cosine(many[place], question), abs=STEP)
    assert found >= 49


def test_as_many_grow_the_nearest_are_still_found(staged: NumpyIndex, many: Floats) -> None:
    """One by one beyond the room there was, and by so many that their mean is taken anew."""
    for first, size in ((MANY, 1), (MANY + 1, 999), (MANY + 1000, MORE - MANY - 1000)):
        staged.put(numpy.arange(first, first + size), many[first : first + size])
        newest = staged.search(many[first + size - 1], ALL, 1)
        assert newest.places.tolist() == [first + size - 1]
    assert len(staged) == MORE
    assert found_of_ten(staged, many, ALL) >= ENOUGH


def test_vectors_of_another_kind_are_found_before_the_mean_is_taken_anew(staged: NumpyIndex) -> None:
    """Directions that are not theirs tell new vectors apart all the same, since they are found anew."""
    others = vectors(1000, DIMENSIONS, seed=7)
    staged.put(numpy.arange(MANY, MANY + 1000), others)
    for place, row in list(enumerate(others, MANY))[:50]:
        assert staged.search(row, ALL, 1).places.tolist() == [place]


def test_the_mean_is_taken_anew_as_they_double(staged: NumpyIndex, many: Floats) -> None:
    """Vectors of another common direction that come to be more than half of all are found as the first ones are."""
    turn = numpy.linalg.qr(numpy.random.default_rng(2).standard_normal((DIMENSIONS, DIMENSIONS)))[0]
    turned = (many @ turn).astype(numpy.float32)
    staged.put(numpy.arange(MANY, MORE), turned[MANY:])
    rows, questions = numpy.concatenate([many[:MANY], turned[MANY:]]), like_texts(QUESTIONS, seed=5)
    for asked in (questions, (questions @ turn).astype(numpy.float32)):
        assert found_of_ten(staged, rows, ALL, asked) >= ENOUGH


def test_few_vectors_become_many_one_load_after_the_other(many: Floats) -> None:
    """Across the border between both ways of searching, what was put in, replaced and dropped before is as it was."""
    index, rows = NumpyIndex(DIMENSIONS), many[:MANY].copy()
    index.put(numpy.arange(EXACT), rows[:EXACT][::-1])
    index.drop(numpy.arange(0, EXACT, 5))
    index.put(numpy.arange(EXACT), rows[:EXACT])
    dropped = numpy.arange(7, EXACT, 50)
    index.drop(dropped)
    before = index.bytes
    index.put(numpy.arange(EXACT, MANY), rows[EXACT:])
    assert index.bytes < 1.75 * before  # twice as much room, and less for each
    allowed = numpy.ones(MANY, dtype=bool)
    index.put(dropped[:1], rows[dropped[:1]])
    allowed[dropped[1:]] = False
    assert len(index) == allowed.sum()
    assert numpy.isnan(index.cosines(rows[0], dropped[1:])).all()
    for place in dropped[1:20]:
        assert place not in index.search(rows[place], ALL, 10).places
    assert found_of_ten(index, rows, allowed) >= ENOUGH


def test_dropped_and_replaced_ones_of_many_are_not_found(staged: NumpyIndex, many: Floats) -> None:
    """The best are picked of what is left, and what takes a place is found there in place of what was."""
    left = numpy.ones(MANY, dtype=bool)
    left[numpy.random.default_rng(8).integers(0, MANY, MANY // 2)] = False
    staged.drop(numpy.flatnonzero(~left))
    assert len(staged) == left.sum()
    assert found_of_ten(staged, many[:MANY], left) >= ENOUGH
    for place in numpy.flatnonzero(~left)[:20]:
        assert place not in staged.search(many[place], ALL, 10).places
    rows = many[:MANY].copy()
    replaced = numpy.arange(0, MANY, 3)
    rows[replaced] = many[MANY : MANY + len(replaced)]
    staged.put(replaced, rows[replaced])
    left[replaced] = True
    assert len(staged) == left.sum()
    assert found_of_ten(staged, rows, left) >= ENOUGH


@pytest.mark.parametrize("step", [2, 5, 30])
def test_of_many_those_that_flags_leave_are_found(staged: NumpyIndex, many: Floats, step: int) -> None:
    """Half of them, few thousands and few hundreds, among which the nearest of all are not."""
    allowed = flags(range(0, MANY, step), MANY)
    for question in like_texts(QUESTIONS, seed=5):
        allowed[staged.search(question, ALL, 10).places] = False
    assert found_of_ten(staged, many[:MANY], allowed) >= ENOUGH


@pytest.mark.parametrize("limit", [1, 10, NEAR, 4 * NEAR])
def test_where_flags_leave_few_of_many_all_are_scored(staged: NumpyIndex, many: Floats, limit: int) -> None:
    """The answer is that of an index that scores each: the same places, the same scores, to the last bit."""
    places = numpy.sort(numpy.random.default_rng(limit).permutation(MANY)[:NEAR])
    alone = NumpyIndex(DIMENSIONS)
    alone.put(places, many[places])
    for question in like_texts(5, seed=limit):
        found = staged.search(question, flags(places, MANY), limit)
        assert pairs(found) == pairs(alone.search(question, ALL, limit))
        assert staged.cosines(question, places).tolist() == alone.cosines(question, places).tolist()


def test_a_limit_beyond_the_stages_is_kept(staged: NumpyIndex, many: Floats) -> None:
    """Asked for as many as there are, it scores and gives all; asked for thousands, the best of them are there."""
    question = like_texts(1, seed=4)[0]
    everything = staged.search(question, ALL, MORE)
    assert len(everything.places) == MANY
    assert everything.cosines == pytest.approx(numpy.sort(many[:MANY] @ question)[::-1], abs=1e-3)
    thousands = staged.search(question, ALL, 5000)
    assert len({*thousands.places.tolist()}) == 5000
    assert len({*thousands.places.tolist()} & {*everything.places[:1000].tolist()}) >= 1000 * ENOUGH


@pytest.mark.parametrize("dimensions", [1, 3, 8, 63, 65, 100, 129])
def test_any_number_of_dimensions_will_do(dimensions: int) -> None:
    """Whatever the dimensions, fewer than the directions of a sketch or more."""
    rows = like_texts(3000, dimensions)
    index = filled(staged_index, rows)
    for place in range(0, 3000, 100):
        (score,) = index.search(rows[place], ALL, 1).cosines.tolist()
        assert score == pytest.approx(1, abs=1e-3 if dimensions > 8 else 0.05)
    if dimensions > 60:
        assert found_of_ten(index, rows, ALL) >= ENOUGH


def test_vectors_that_are_all_the_same_are_found_by_place() -> None:
    """Where no sign tells any apart from the mean, equal scores still go by place, and what differs is found."""
    row, other = vectors(2, DIMENSIONS)
    index = filled(staged_index, row[numpy.newaxis].repeat(NEAR, axis=0))
    assert index.search(row, ALL, 3).places.tolist() == [0, 1, 2]
    index.put(at(NEAR), other[numpy.newaxis])
    assert index.search(other, ALL, 1).places.tolist() == [NEAR]


def test_vectors_that_alternate_are_found_as_others_are() -> None:
    """Every sixteenth vector, from which is told how many go on, may be unlike the rest."""
    rows = like_texts(MANY)
    alike = rows[::16] * numpy.float32(0.3) + rows[0]
    rows[::16] = alike / numpy.linalg.norm(alike, axis=1, keepdims=True)
    index = NumpyIndex(DIMENSIONS)
    index.put(numpy.arange(MANY), rows)
    for questions in (rows[1::16], rows[::16]):
        assert found_of_ten(index, rows, ALL, questions[:QUESTIONS]) >= ENOUGH
