"""Search by meaning: vectors are taken from the cache, made in the background, and never mixed up."""

import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import numpy
import pytest

from tallystick import Memory
from tallystick.errors import Busy, ModelMissing, Unavailable
from tallystick.projections import token_codes, vector_search
from tallystick.projections.columns import Columns
from tallystick.projections.embedding import Embedded, Space
from tallystick.projections.vector_cache import VectorCache
from tallystick.projections.vector_search import NONE, VectorSearch, Windows
from tallystick.projections.views import RECALL, Views

AXES = ("cat", "dog", "fish")
PATIENCE = 10.0
HERE = "default"
"""The namespace of what is stored without one."""


class AxisEmbedder:
    """An embedder of three animals: a vector counts how often each is named. Waits at a gate before each text."""

    runtime = "test"

    def __init__(self, model: str = "axes") -> None:
        self.space = Space(model, "00" * 32, "11" * 32, len(AXES), "count", ("", ""), "float32")
        self.made: list[str] = []
        self.gate = threading.Event()
        self.gate.set()
        self.failing: type[Exception] | None = None
        self.allowed: set[str] | None = None

    def document(self, text: str) -> Embedded:
        """The vector of a text."""
        self.gate.wait(PATIENCE)
        while self.allowed is not None and text not in self.allowed:
            time.sleep(0.01)
        if self.failing:
            raise self.failing()
        self.made.append(text)
        return self.query(text)

    def query(self, text: str) -> Embedded:
        """The vector of a question."""
        counts = numpy.array([text.count(axis) + 0.1 for axis in AXES], dtype=numpy.float32)
        return Embedded(counts / numpy.linalg.norm(counts))


class WordEmbedder(AxisEmbedder):
    """As that, with a vector for each word: that of the animal it names, or one as near to each of them."""

    def __init__(self, model: str = "words", axes: tuple[str, ...] = (*AXES, "bird")) -> None:
        super().__init__()
        self.axes = axes
        self.space = Space(model, "00" * 32, "11" * 32, len(axes), "mean", ("", ""), "float32")

    def query(self, text: str) -> Embedded:
        """The vectors of a question's words, each as telling as the next."""
        words = [[float(word == axis) for axis in self.axes] for word in text.split()]
        rows = numpy.array([row if any(row) else [1.0] * len(row) for row in words], dtype=numpy.float32)
        tokens = rows / numpy.linalg.norm(rows, axis=1, keepdims=True)
        mean = tokens.mean(axis=0)
        weights = numpy.full(len(words), 1 / len(words), dtype=numpy.float32)
        return Embedded(mean / numpy.linalg.norm(mean), tokens, weights)


@pytest.fixture
def memory() -> Iterator[Memory]:
    """A memory of its own, by words alone: the search is put beside it."""
    with Memory.temporary() as opened:
        for animal in AXES:
            opened.store(f"a {animal}")
        yield opened


@pytest.fixture
def searching(memory: Memory) -> Iterator[Callable[[AxisEmbedder], VectorSearch]]:
    """Makes a search over the memory's views; each is closed at the end."""
    cache, made = VectorCache(memory._opened.installation), list[VectorSearch]()

    def make(embedder: AxisEmbedder) -> VectorSearch:
        made.append(VectorSearch(cache, embedder, memory._opened.installation.memory))
        made[-1].follow(views_of(memory), [HERE])
        return made[-1]

    yield make
    for search in made:
        search.close()
    cache.close()


Searching = Callable[[AxisEmbedder], VectorSearch]


def views_of(memory: Memory) -> Views:
    """The views, caught up."""
    return memory._opened.views.current(RECALL)


def columns_of(memory: Memory, namespace: str = HERE) -> Columns:
    """A namespace as it is now."""
    views = views_of(memory)
    with views.reading() as cursor:
        return views.columns.of(cursor, [namespace])[0]


def follow(search: VectorSearch, memory: Memory) -> None:
    """Take in what the views have gained, and wait until all of it is embedded."""
    search.follow(views_of(memory), [HERE])
    assert search.wait(PATIENCE) == 0


def best(
    search: VectorSearch, memory: Memory, question: str, candidates: tuple[int, ...] | None = None, among: str = HERE
) -> list[int]:
    """The numbers of the nearest of a namespace, best first: of all there are, or of these."""
    columns = columns_of(memory, among)
    allowed = numpy.isin(columns.numbers, columns.numbers if candidates is None else candidates)
    nearest = search.nearest(search.ask(question), columns, allowed, 10)
    assert nearest.cosines.tolist() == sorted(nearest.cosines.tolist(), reverse=True)
    found: list[int] = columns.numbers[nearest.places].tolist()
    return found


def test_what_the_view_has_is_embedded_and_found(memory: Memory, searching: Searching) -> None:
    """Each current memory's document gets its vector, once, and is found by it."""
    embedder = AxisEmbedder()
    search = searching(embedder)
    assert search.wait(PATIENCE) == 0
    assert sorted(embedder.made) == ["a cat", "a dog", "a fish"]
    assert best(search, memory, "dog")[0] == 2
    memory.store("dog dog cat")
    follow(search, memory)
    assert best(search, memory, "dog") == [2, 4, 1, 3]
    assert len(embedder.made) == 4


def test_only_candidates_are_found(memory: Memory, searching: Searching) -> None:
    """What is filtered out before the search is not found, however near it is."""
    search = searching(AxisEmbedder())
    search.wait(PATIENCE)
    assert best(search, memory, "dog", (1, 3)) == [1, 3]
    assert best(search, memory, "dog", ()) == []


def test_the_author_is_part_of_what_is_embedded(memory: Memory, searching: Searching) -> None:
    """Who said it stands before what was said."""
    embedder = AxisEmbedder()
    memory.store("hello", author="cat")
    searching(embedder).wait(PATIENCE)
    assert "cat: hello" in embedder.made


def test_what_is_forgotten_is_not_found_and_not_embedded_again(memory: Memory, searching: Searching) -> None:
    """A forgotten memory leaves the index; when it is restored its vector comes from the cache."""
    embedder = AxisEmbedder()
    search = searching(embedder)
    search.wait(PATIENCE)
    cat = memory.recall("cat").hits[0].id
    memory.forget(cat)
    follow(search, memory)
    assert 1 not in best(search, memory, "cat")
    memory.restore(cat)
    follow(search, memory)
    assert best(search, memory, "cat")[0] == 1
    assert len(embedder.made) == 3


def test_vectors_of_an_earlier_session_are_used(memory: Memory, searching: Searching) -> None:
    """A second search over the same store embeds nothing that has a vector in its space."""
    searching(AxisEmbedder()).wait(PATIENCE)
    embedder = AxisEmbedder()
    search = searching(embedder)
    assert (search.wait(0), embedder.made) == (0, [])
    assert best(search, memory, "fish")[0] == 3


def test_vectors_of_another_space_are_not_used(searching: Searching) -> None:
    """Another model makes its own vectors: those of two spaces are never compared."""
    searching(AxisEmbedder()).wait(PATIENCE)
    other = AxisEmbedder("other axes")
    assert searching(other).wait(PATIENCE) == 0
    assert len(other.made) == 3


def test_a_rebuild_of_the_views_costs_no_embedding(memory: Memory, searching: Searching) -> None:
    """New views are taken in from the cache."""
    embedder = AxisEmbedder()
    search = searching(embedder)
    search.wait(PATIENCE)
    memory.rebuild()
    follow(search, memory)
    assert best(search, memory, "cat")[0] == 1
    assert len(embedder.made) == 3


def test_waiting_ends_when_the_time_is_up(memory: Memory, searching: Searching) -> None:
    """Whoever waits is told how many vectors are still missing; what has one is found meanwhile."""
    embedder = AxisEmbedder()
    embedder.gate.clear()
    search = searching(embedder)
    assert search.wait(0.01) == 3
    assert best(search, memory, "cat") == []
    embedder.gate.set()
    assert search.wait(PATIENCE) == 0
    assert best(search, memory, "cat")[0] == 1


def test_what_is_forgotten_while_it_waits_is_not_embedded(memory: Memory, searching: Searching) -> None:
    """No vector is made of a text that was retracted before its turn came."""
    embedder = AxisEmbedder()
    embedder.gate.clear()
    search = searching(embedder)
    memory.forget(memory.recall("fish").hits[0].id)
    search.follow(views_of(memory), [HERE])
    embedder.gate.set()
    assert search.wait(PATIENCE) == 0
    assert "a fish" not in embedder.made


def test_what_is_revised_before_its_turn_is_embedded_as_it_is_by_then(memory: Memory, searching: Searching) -> None:
    """The vector of a text that the search has not heard of is kept, and stands for nothing until it has."""
    embedder = AxisEmbedder()
    embedder.gate.clear()
    search = searching(embedder)
    memory.revise(memory.recall("fish").hits[0].id, text="a dog and a fish")
    embedder.gate.set()
    assert search.wait(PATIENCE) == 0
    assert best(search, memory, "dog") == [2, 1]
    follow(search, memory)
    assert best(search, memory, "dog") == [2, 3, 1]
    assert sorted(embedder.made) == ["a cat", "a dog", "a dog and a fish"]


def test_what_stopped_the_embedding_is_raised(memory: Memory, searching: Searching) -> None:
    """A model that fails does not fail silently: who follows the views next is told."""
    embedder = AxisEmbedder()
    embedder.failing = ModelMissing
    search = searching(embedder)
    with pytest.raises(ModelMissing):
        search.wait(PATIENCE)
    with pytest.raises(ModelMissing):
        search.follow(views_of(memory), [HERE])


def test_a_failure_that_passes_is_not_for_ever(memory: Memory, searching: Searching) -> None:
    """What says "try again" can be tried again: the next to follow the views embeds what was left."""
    embedder = AxisEmbedder()
    embedder.failing = Busy
    search = searching(embedder)
    with pytest.raises(Busy):
        search.wait(PATIENCE)
    embedder.failing = None
    for _ in range(2):
        with contextlib.suppress(Busy):
            search.follow(views_of(memory), [HERE])
    assert search.wait(PATIENCE) == 0
    assert best(search, memory, "cat")[0] == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_embedder_that_breaks_does_not_end_embedding_silently(memory: Memory, searching: Searching) -> None:
    """An error that nobody foresaw is raised to who waits, or embedding is taken up again: never neither."""
    embedder = AxisEmbedder()
    embedder.failing = ZeroDivisionError
    search = searching(embedder)
    with contextlib.suppress(ZeroDivisionError, Unavailable):
        search.wait(0.3)
        embedder.failing = None
        search.follow(views_of(memory), [HERE])
        assert search.wait(PATIENCE / 5) == 0


def test_what_arrives_while_the_thread_ends_is_embedded(
    memory: Memory, searching: Searching, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text that comes when the last one is done, and the thread is about to end, is not left lying."""

    threads: list[threading.Thread] = []

    class Lingering(threading.Thread):
        def run(self) -> None:
            """What it has to do; then it takes a moment to end."""
            threads.append(self)
            super().run()
            time.sleep(0.3)

    monkeypatch.setattr(vector_search, "Thread", Lingering)
    search = searching(AxisEmbedder())
    assert search.wait(PATIENCE) == 0
    memory.store("another cat")
    search.follow(views_of(memory), [HERE])
    assert search.wait(2.0) == 0
    search.close()
    for thread in threads:
        thread.join(PATIENCE)


def test_closing_stops_the_thread(searching: Searching) -> None:
    """After close nothing more is embedded, and no thread is left."""
    embedder = AxisEmbedder()
    embedder.gate.clear()
    search = searching(embedder)
    threading.Timer(0.05, embedder.gate.set).start()
    search.close()
    assert len(embedder.made) <= 1
    for thread in threading.enumerate():
        if thread.name == "tallystick-embedding":
            thread.join(1)
            assert not thread.is_alive()


def test_cosines_are_those_of_the_search(memory: Memory, searching: Searching) -> None:
    """Asked of any places, in any order; NaN where there is no vector yet or no more, or nobody asked the namespace."""
    embedder = AxisEmbedder()
    search = searching(embedder)
    asked = search.ask("dog")
    assert search.wait(PATIENCE) == 0
    columns = columns_of(memory)
    nearest = search.nearest(asked, columns, columns.numbers > 0, 10)
    assert search.cosines(asked, columns, nearest.places) == pytest.approx(nearest.cosines, abs=2e-6)
    assert len({*search.kept(columns).tolist()} - {NONE}) == 3
    memory.forget(memory.recall("cat").hits[0].id)
    embedder.gate.clear()
    memory.store("a dog and a fish")
    columns = columns_of(memory)
    assert numpy.isnan(search.cosines(asked, columns, numpy.array([3, 1]))).tolist() == [True, False]
    assert search.kept(columns).tolist()[3:] == [NONE]
    search.follow(views_of(memory), [HERE])
    assert numpy.isnan(search.cosines(asked, columns, numpy.arange(4))).tolist() == [True, False, False, True]
    assert [number == NONE for number in search.kept(columns).tolist()] == [True, False, False, True]
    memory.store("a dog", namespace="another")
    other = columns_of(memory, "another")
    assert numpy.isnan(search.cosines(asked, other, numpy.array([0]))).all()
    assert search.kept(other).tolist() == [NONE]
    assert search.nearest(asked, other, other.numbers > 0, 10).places.tolist() == []
    embedder.gate.set()


def test_a_question_of_one_moment_is_answered_of_that_moment(memory: Memory, searching: Searching) -> None:
    """What was stored after the columns were taken has a vector by now, and no place in them: it is not found."""
    search = searching(AxisEmbedder())
    before = columns_of(memory)
    memory.store("dog dog dog")
    follow(search, memory)
    asked = search.ask("dog dog dog")
    assert max(search.nearest(asked, before, before.numbers > 0, 10).places) < len(before)
    assert len(search.kept(before)) == len(before)
    assert best(search, memory, "dog dog dog")[0] == 4


# ---- several namespaces


@pytest.fixture
def several(memory: Memory) -> Memory:
    """The memory, with two more namespaces of two animals each, stored by turns."""
    for animal in ("cat", "dog"):
        for name in ("there", "elsewhere"):
            memory.store(f"{animal} {name}", namespace=name)
    return memory


def test_only_what_is_asked_is_loaded(several: Memory, searching: Searching, loading: list[int]) -> None:
    """The vectors of a namespace come into memory when it is asked, once, and no others' do."""
    assert searching(AxisEmbedder()).follow(views_of(several)) > 0
    assert searching(AxisEmbedder()).wait(PATIENCE) == 0
    first = searching(AxisEmbedder())
    first.follow(views_of(several))
    assert first.wait(PATIENCE) == 0
    loading.clear()
    search = searching(AxisEmbedder())
    assert len(loading) == 3
    for _ in range(2):
        assert search.follow(views_of(several), ["there", HERE]) == 0
        assert len(loading) == 5
    assert best(search, several, "cat", among="there")[0] == 4
    assert best(search, several, "dog", among=HERE)[0] == 2
    columns = columns_of(several, "elsewhere")
    assert search.kept(columns).tolist() == [NONE, NONE]
    assert best(search, several, "dog", among="elsewhere") == []
    search.follow(views_of(several), ["elsewhere"])
    assert best(search, several, "dog", among="elsewhere") == [7, 5]
    assert best(search, several, "dog", among="there") == [6, 4]


@pytest.fixture
def loading(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the vectors that are read from the cache, as they are."""
    read: list[int] = []
    vectors = VectorCache.vectors

    def reading(cache: VectorCache, numbers: Sequence[int]) -> dict[int, bytes]:
        read.extend(numbers)
        return vectors(cache, numbers)

    monkeypatch.setattr(VectorCache, "vectors", reading)
    return read


def test_what_is_asked_is_embedded_before_all_else(several: Memory, searching: Searching) -> None:
    """Whoever asks a namespace does not wait for others, however long those have waited."""
    embedder = AxisEmbedder()
    embedder.gate.clear()
    search = searching(embedder)
    assert search.follow(views_of(several)) == 7
    assert search.follow(views_of(several), ["elsewhere"]) == 2
    assert search.wait(0, ["elsewhere"]) == 2
    assert search.wait(0, ["there", "elsewhere"]) == 4
    assert search.wait(0) == 7
    embedder.gate.set()
    assert search.wait(PATIENCE, ["elsewhere"]) == 0
    assert {*embedder.made[:3]} >= {"cat elsewhere", "dog elsewhere"}  # it may have been at another one
    assert search.wait(PATIENCE) == 0
    assert len(embedder.made) == 7
    assert best(search, several, "dog", among="elsewhere") == [7, 5]


def test_waiting_for_a_namespace_ends_when_its_vectors_are_made(several: Memory, searching: Searching) -> None:
    """Others may still be missing then."""
    embedder = AxisEmbedder()
    embedder.allowed = {"a cat", "a dog", "a fish", "cat there", "dog there"}
    search = searching(embedder)
    search.follow(views_of(several), ["there"])
    search.follow(views_of(several))
    search.follow(views_of(several), ["there"])
    start = time.monotonic()
    assert search.wait(PATIENCE, ["there"]) == 0
    assert time.monotonic() - start < PATIENCE
    assert search.wait(0) >= 2
    embedder.allowed = None


def test_what_changes_is_embedded_though_nobody_asked(several: Memory, searching: Searching) -> None:
    """A namespace that was never asked: what is stored in it while the search follows is embedded, the rest is not."""
    embedder = AxisEmbedder()
    search = searching(embedder)
    assert search.wait(PATIENCE) == 0
    several.store("fish there", namespace="there")
    several.store("fish nowhere", namespace="nowhere")
    assert search.follow(views_of(several), ()) == 0
    assert search.wait(PATIENCE) == 0
    assert {*embedder.made[3:]} == {"fish there", "fish nowhere"}
    assert best(search, several, "fish", among="there") == []
    assert search.follow(views_of(several), ["nowhere"]) == 0
    assert best(search, several, "fish", among="nowhere") == [9]
    assert search.follow(views_of(several), ["there"]) == 2
    assert search.wait(PATIENCE, ["there"]) == 0
    assert best(search, several, "fish", among="there")[0] == 8
    assert sorted(embedder.made[5:]) == ["cat there", "dog there"]


def test_without_names_all_is_embedded(several: Memory, searching: Searching) -> None:
    """Each namespace, asked or not, also what was stored before anybody followed; once."""
    embedder = AxisEmbedder()
    search = searching(embedder)
    assert search.follow(views_of(several)) >= 4
    assert search.wait(PATIENCE) == 0
    assert len(embedder.made) == 7
    assert search.follow(views_of(several)) == 0
    assert len(embedder.made) == 7
    for name, found in {HERE: [2, 1, 3], "there": [6, 4], "elsewhere": [7, 5]}.items():
        search.follow(views_of(several), [name])
        assert best(search, several, "dog", among=name) == found
    several.forget(several.recall("dog", namespaces=["there"]).hits[0].id)
    several.store("dog dog there", namespace="there")
    search.follow(views_of(several))
    assert search.wait(PATIENCE) == 0
    assert best(search, several, "dog", among="there") == [8, 4]


def test_what_made_room_is_loaded_again(
    several: Memory, searching: Searching, loading: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The namespaces that were asked last stay while there is room, those of one question always; none is lost."""
    search = searching(AxisEmbedder())
    search.follow(views_of(several))
    assert search.wait(PATIENCE) == 0
    monkeypatch.setattr(vector_search, "KEPT_BYTES", 1)
    search.follow(views_of(several), ["there", "elsewhere"])
    assert best(search, several, "dog", among=HERE) == []
    for bird in ("wren", "robin"):
        loading.clear()
        assert search.follow(views_of(several), ["there", "elsewhere"]) == 0
        assert best(search, several, "dog", among="there") == [6, 4]
        assert best(search, several, "dog", among="elsewhere") == [7, 5]
        assert loading == []
        several.store(f"a {bird}")
        search.follow(views_of(several), ())
        assert search.wait(PATIENCE) == 0
    search.follow(views_of(several), [HERE])
    assert best(search, several, "dog", among="there") == []
    assert best(search, several, "dog")[0] == 2
    several.forget(several.recall("cat", namespaces=["there"]).hits[0].id)
    several.store("dog dog there", namespace="there")
    search.follow(views_of(several), ["there"])
    assert search.wait(PATIENCE) == 0
    assert best(search, several, "dog", among="there") == [6, 10]


def test_a_load_that_was_broken_off_is_done_again(
    several: Memory, searching: Searching, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A namespace of which nothing could be read is not taken for one without vectors."""
    search = searching(AxisEmbedder())
    search.follow(views_of(several))
    assert search.wait(PATIENCE) == 0
    again = searching(AxisEmbedder())
    for error in (Busy, KeyboardInterrupt):
        for broken in ("find", "vectors"):
            with monkeypatch.context() as patch:
                patch.setattr(VectorCache, broken, raising(error))
                with pytest.raises(error):
                    again.follow(views_of(several), ["there"])
    assert again.follow(views_of(several), ["there"]) == 0
    assert best(again, several, "dog", among="there") == [6, 4]


def raising(error: type[BaseException]) -> Callable[..., object]:
    """A function that raises."""

    def raises(*_: object) -> object:
        raise error

    return raises


# ---- the tokens of a question and those of a memory


UNKNOWN = 99_999
"""The number of a vector that the cache does not hold."""


def windows(search: VectorSearch, memory: Memory, *rows: tuple[int | None, ...]) -> Windows:
    """For each memory and the two before it, by number, the numbers of their vectors; NONE for None."""
    columns = columns_of(memory)
    kept = dict(zip(columns.numbers.tolist(), search.kept(columns).tolist(), strict=True))
    found = [
        [NONE if number is None else kept.get(number, number) for number in (*row, None, None)[:3]] for row in rows
    ]
    return numpy.array(found, dtype=numpy.int64).reshape(-1, 3)


def meeting(search: VectorSearch, memory: Memory, question: str, *window: int | None) -> float:
    """How well a question meets a memory, with the turns before it; NaN for one without tokens."""
    found = search.interaction(search.ask(question), windows(search, memory, window))
    assert found is not None
    return float(found[0])


def test_a_question_meets_the_memory_that_has_its_words(memory: Memory, searching: Searching) -> None:
    """The best token of the memory counts for each token of the question; the result is their mean."""
    search = searching(WordEmbedder())
    assert search.wait(PATIENCE) == 0
    cat, dog, neither = (meeting(search, memory, question, 1) for question in ("cat", "dog", "cat dog"))
    assert cat > 0.9
    assert neither == pytest.approx((cat + dog) / 2)
    assert meeting(search, memory, "dog", 2) == pytest.approx(cat)


def test_turns_before_a_memory_offer_a_little_less(memory: Memory, searching: Searching) -> None:
    """What the turn before has counts .95 of it, the one before that .9, and the best of the three is taken."""
    search = searching(WordEmbedder())
    assert search.wait(PATIENCE) == 0
    own = meeting(search, memory, "cat", 1)
    assert meeting(search, memory, "cat", 2, 1) == pytest.approx(0.95 * own)
    assert meeting(search, memory, "cat", 2, 3, 1) == pytest.approx(0.9 * own)
    assert meeting(search, memory, "cat", 2, None, 1) == pytest.approx(0.9 * own)
    assert meeting(search, memory, "cat", 1, 2, 3) == pytest.approx(own)
    assert meeting(search, memory, "cat", 1, 1, 1) == pytest.approx(own)
    assert meeting(search, memory, "cat dog fish", 3, 2, 1) == pytest.approx((1 + 0.95 + 0.9) / 3 * own)


def test_a_memory_without_tokens_meets_nothing(memory: Memory, searching: Searching) -> None:
    """None for one that has no vector yet or is unknown, whatever stands before it; the others do not suffer."""
    embedder = WordEmbedder()
    embedder.gate.clear()
    search = searching(embedder)
    asked = search.ask("cat")
    none = search.interaction(asked, windows(search, memory, (1,), (2, 1)))
    assert none is not None
    assert numpy.isnan(none).tolist() == [True, True]
    assert search.kept(columns_of(memory)).tolist() == [NONE] * 3
    embedder.gate.set()
    assert search.wait(PATIENCE) == 0
    own = meeting(search, memory, "cat", 1)
    asked_of = windows(search, memory, (UNKNOWN, 1), (None, 1), (1, UNKNOWN, None), (2, UNKNOWN, 1))
    found = search.interaction(asked, asked_of)
    assert found == pytest.approx([math.nan, math.nan, own, 0.9 * own], nan_ok=True)
    empty = search.interaction(asked, windows(search, memory))
    assert empty is not None
    assert empty.shape == (0,)


def test_a_model_without_tokens_says_nothing(memory: Memory, searching: Searching) -> None:
    """Where a model gives one vector for a text there is no interaction, which is not a bad one."""
    search = searching(AxisEmbedder())
    assert search.wait(PATIENCE) == 0
    assert search.interaction(search.ask("cat"), windows(search, memory, (1,))) is None


def test_what_is_revised_is_met_by_its_new_words(memory: Memory, searching: Searching) -> None:
    """The tokens of the old text are gone with it; while the new ones are not made there are none."""
    embedder = WordEmbedder()
    search = searching(embedder)
    assert search.wait(PATIENCE) == 0
    cat, other = meeting(search, memory, "cat", 1), meeting(search, memory, "cat", 2)
    embedder.gate.clear()
    memory.revise(memory.recall("cat").hits[0].id, text="a bird")
    search.follow(views_of(memory), [HERE])
    assert math.isnan(meeting(search, memory, "cat", 1))
    embedder.gate.set()
    follow(search, memory)
    assert meeting(search, memory, "bird", 1) == pytest.approx(cat)
    assert meeting(search, memory, "cat", 1) == pytest.approx(other)


def test_what_is_forgotten_offers_nothing(memory: Memory, searching: Searching) -> None:
    """Neither as a memory nor as the turn before one; restored, it does again."""
    search = searching(WordEmbedder())
    assert search.wait(PATIENCE) == 0
    before, alone = meeting(search, memory, "cat", 2, 1), meeting(search, memory, "cat", 2)
    cat = memory.recall("cat").hits[0].id
    memory.forget(cat)
    follow(search, memory)
    assert math.isnan(meeting(search, memory, "cat", 1))
    assert meeting(search, memory, "cat", 2, 1) == pytest.approx(alone) != before
    memory.restore(cat)
    follow(search, memory)
    assert meeting(search, memory, "cat", 2, 1) == pytest.approx(before)


def test_tokens_of_another_model_are_not_met(memory: Memory, searching: Searching) -> None:
    """Two models of different dimensions over one file: each meets its own tokens, also after a rebuild."""
    first, second = (
        searching(WordEmbedder()),
        searching(WordEmbedder("wider", ("bird", "fish", "dog", "cat", "x", "y"))),
    )
    assert first.wait(PATIENCE) == second.wait(PATIENCE) == 0
    pooled = searching(AxisEmbedder())
    assert pooled.wait(PATIENCE) == 0
    again = searching(WordEmbedder())
    assert again.wait(0) == 0
    memory.rebuild()
    for search in (first, second, again):
        follow(search, memory)
        assert meeting(search, memory, "cat", 1) > 0.8 > meeting(search, memory, "cat", 2)


def test_several_memories_are_met_as_each_alone(memory: Memory, searching: Searching) -> None:
    """What stands in several windows is looked at once, and counts in each."""
    search = searching(WordEmbedder())
    assert search.wait(PATIENCE) == 0
    rows = [(3, 2, 1), (1, None, None), (2, 1, None), (2, 3, 1), (1, 1, 1)]
    together = search.interaction(search.ask("cat dog"), windows(search, memory, *rows))
    assert together == pytest.approx([meeting(search, memory, "cat dog", *row) for row in rows])


def test_many_can_ask_while_words_are_embedded(
    memory: Memory, searching: Searching, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads that ask at once, with no room to keep tokens, get what each alone would get."""
    monkeypatch.setattr(token_codes, "KEPT_BYTES", 8)
    search = searching(WordEmbedder())
    assert search.wait(PATIENCE) == 0
    alone = {number: meeting(search, memory, "cat dog", number, number % 3 + 1) for number in (1, 2, 3)}
    wrong: list[object] = []

    def ask() -> None:
        for _ in range(50):
            asked_of = windows(search, memory, *((number, number % 3 + 1) for number in alone))
            found = search.interaction(search.ask("cat dog"), asked_of)
            if found != pytest.approx(list(alone.values())):
                wrong.append(found)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(10):
        memory.store(f"another cat and dog {number}")
        search.follow(views_of(memory), [HERE])
    for thread in threads:
        thread.join(PATIENCE)
    assert not wrong
