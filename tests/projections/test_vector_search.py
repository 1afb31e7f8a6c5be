"""Search by meaning: vectors are taken from the cache, made in the background, and never mixed up."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

import numpy
import pytest

from tallystick import Memory
from tallystick.errors import Busy, ModelMissing, Unavailable
from tallystick.projections import token_codes, vector_search
from tallystick.projections.embedding import Embedded, Space
from tallystick.projections.vector_cache import VectorCache
from tallystick.projections.vector_search import VectorSearch
from tallystick.projections.views import RECALL

AXES = ("cat", "dog", "fish")
PATIENCE = 10.0


class AxisEmbedder:
    """An embedder of three animals: a vector counts how often each is named. Waits at a gate before each text."""

    runtime = "test"

    def __init__(self, model: str = "axes") -> None:
        self.space = Space(model, "00" * 32, "11" * 32, len(AXES), "count", ("", ""), "float32")
        self.made: list[str] = []
        self.gate = threading.Event()
        self.gate.set()
        self.failing: type[Exception] | None = None

    def document(self, text: str) -> Embedded:
        """The vector of a text."""
        self.gate.wait(PATIENCE)
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
        made[-1].follow(memory._opened.views.current(RECALL))
        return made[-1]

    yield make
    for search in made:
        search.close()
    cache.close()


Searching = Callable[[AxisEmbedder], VectorSearch]


def follow(search: VectorSearch, memory: Memory) -> None:
    """Take in what the views have gained, and wait until all of it is embedded."""
    search.follow(memory._opened.views.current(RECALL))
    assert search.wait(PATIENCE) == 0


def best(search: VectorSearch, question: str, candidates: tuple[int, ...] = (1, 2, 3, 4)) -> list[int]:
    """The numbers of the nearest, best first."""
    return [number for number, _ in search.nearest(search.ask(question), list(candidates), 10)]


def test_what_the_view_has_is_embedded_and_found(memory: Memory, searching: Searching) -> None:
    """Each current memory's document gets its vector, once, and is found by it."""
    embedder = AxisEmbedder()
    search = searching(embedder)
    assert search.wait(PATIENCE) == 0
    assert sorted(embedder.made) == ["a cat", "a dog", "a fish"]
    assert best(search, "dog")[0] == 2
    memory.store("dog dog cat")
    follow(search, memory)
    assert best(search, "dog") == [2, 4, 1, 3]
    assert len(embedder.made) == 4


def test_only_candidates_are_found(searching: Searching) -> None:
    """What is filtered out before the search is not found, however near it is."""
    search = searching(AxisEmbedder())
    search.wait(PATIENCE)
    assert best(search, "dog", (1, 3)) == [1, 3]
    assert best(search, "dog", ()) == []


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
    assert 1 not in best(search, "cat")
    memory.restore(cat)
    follow(search, memory)
    assert best(search, "cat")[0] == 1
    assert len(embedder.made) == 3


def test_vectors_of_an_earlier_session_are_used(searching: Searching) -> None:
    """A second search over the same store embeds nothing that has a vector in its space."""
    searching(AxisEmbedder()).wait(PATIENCE)
    embedder = AxisEmbedder()
    search = searching(embedder)
    assert (search.wait(0), embedder.made) == (0, [])
    assert best(search, "fish")[0] == 3


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
    assert best(search, "cat")[0] == 1
    assert len(embedder.made) == 3


def test_waiting_ends_when_the_time_is_up(searching: Searching) -> None:
    """Whoever waits is told how many vectors are still missing; what has one is found meanwhile."""
    embedder = AxisEmbedder()
    embedder.gate.clear()
    search = searching(embedder)
    assert search.wait(0.01) == 3
    assert best(search, "cat") == []
    embedder.gate.set()
    assert search.wait(PATIENCE) == 0
    assert best(search, "cat")[0] == 1


def test_what_is_forgotten_while_it_waits_is_not_embedded(memory: Memory, searching: Searching) -> None:
    """No vector is made of a text that was retracted before its turn came."""
    embedder = AxisEmbedder()
    embedder.gate.clear()
    search = searching(embedder)
    memory.forget(memory.recall("fish").hits[0].id)
    search.follow(memory._opened.views.current(RECALL))
    embedder.gate.set()
    assert search.wait(PATIENCE) == 0
    assert "a fish" not in embedder.made


def test_what_stopped_the_embedding_is_raised(memory: Memory, searching: Searching) -> None:
    """A model that fails does not fail silently: who follows the views next is told."""
    embedder = AxisEmbedder()
    embedder.failing = ModelMissing
    search = searching(embedder)
    with pytest.raises(ModelMissing):
        search.wait(PATIENCE)
    with pytest.raises(ModelMissing):
        search.follow(memory._opened.views.current(RECALL))


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
            search.follow(memory._opened.views.current(RECALL))
    assert search.wait(PATIENCE) == 0
    assert best(search, "cat")[0] == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_embedder_that_breaks_does_not_end_embedding_silently(memory: Memory, searching: Searching) -> None:
    """An error that nobody foresaw is raised to who waits, or embedding is taken up again: never neither."""
    embedder = AxisEmbedder()
    embedder.failing = ZeroDivisionError
    search = searching(embedder)
    with contextlib.suppress(ZeroDivisionError, Unavailable):
        search.wait(0.3)
        embedder.failing = None
        search.follow(memory._opened.views.current(RECALL))
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
    search.follow(memory._opened.views.current(RECALL))
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


# ---- the tokens of a question and those of a memory


def meeting(search: VectorSearch, question: str, *window: int | None) -> float | None:
    """How well a question meets a memory, with the turns before it."""
    found = search.interaction(search.ask(question), [(*window, None, None)[:3]])
    assert found is not None
    return found[0]


def met_by(search: VectorSearch, question: str, *window: int | None) -> float:
    """As `meeting`, of a memory that has tokens."""
    found = meeting(search, question, *window)
    assert found is not None
    return found


def test_a_question_meets_the_memory_that_has_its_words(searching: Searching) -> None:
    """The best token of the memory counts for each token of the question; the result is their mean."""
    search = searching(WordEmbedder())
    assert search.wait(PATIENCE) == 0
    cat, dog, neither = (met_by(search, question, 1) for question in ("cat", "dog", "cat dog"))
    assert cat > 0.9
    assert neither == pytest.approx((cat + dog) / 2)
    assert met_by(search, "dog", 2) == pytest.approx(cat)


def test_turns_before_a_memory_offer_a_little_less(searching: Searching) -> None:
    """What the turn before has counts .95 of it, the one before that .9, and the best of the three is taken."""
    search = searching(WordEmbedder())
    assert search.wait(PATIENCE) == 0
    own = met_by(search, "cat", 1)
    assert met_by(search, "cat", 2, 1) == pytest.approx(0.95 * own)
    assert met_by(search, "cat", 2, 3, 1) == pytest.approx(0.9 * own)
    assert met_by(search, "cat", 2, None, 1) == pytest.approx(0.9 * own)
    assert met_by(search, "cat", 1, 2, 3) == pytest.approx(own)
    assert met_by(search, "cat", 1, 1, 1) == pytest.approx(own)
    assert met_by(search, "cat dog fish", 3, 2, 1) == pytest.approx((1 + 0.95 + 0.9) / 3 * own)


def test_a_memory_without_tokens_meets_nothing(searching: Searching) -> None:
    """None for one that has no vector yet or is unknown, whatever stands before it; the others do not suffer."""
    embedder = WordEmbedder()
    embedder.gate.clear()
    search = searching(embedder)
    asked = search.ask("cat")
    assert search.interaction(asked, [(1, None, None), (2, 1, None)]) == [None, None]
    embedder.gate.set()
    assert search.wait(PATIENCE) == 0
    own = met_by(search, "cat", 1)
    assert [meeting(search, "cat", *window) for window in ((99, 1), (1, 99, 98), (2, 99, 1))] == [
        None, pytest.approx(own), pytest.approx(0.9 * own)
    ]  # fmt: skip
    assert search.interaction(asked, []) == []


def test_a_model_without_tokens_says_nothing(searching: Searching) -> None:
    """Where a model gives one vector for a text there is no interaction, which is not a bad one."""
    search = searching(AxisEmbedder())
    assert search.wait(PATIENCE) == 0
    assert search.interaction(search.ask("cat"), [(1, None, None)]) is None


def test_what_is_revised_is_met_by_its_new_words(memory: Memory, searching: Searching) -> None:
    """The tokens of the old text are gone with it; while the new ones are not made there are none."""
    embedder = WordEmbedder()
    search = searching(embedder)
    assert search.wait(PATIENCE) == 0
    cat, other = met_by(search, "cat", 1), met_by(search, "cat", 2)
    embedder.gate.clear()
    memory.revise(memory.recall("cat").hits[0].id, text="a bird")
    search.follow(memory._opened.views.current(RECALL))
    assert meeting(search, "cat", 1) is None
    embedder.gate.set()
    follow(search, memory)
    assert met_by(search, "bird", 1) == pytest.approx(cat)
    assert met_by(search, "cat", 1) == pytest.approx(other)


def test_what_is_forgotten_offers_nothing(memory: Memory, searching: Searching) -> None:
    """Neither as a memory nor as the turn before one; restored, it does again."""
    search = searching(WordEmbedder())
    assert search.wait(PATIENCE) == 0
    before, alone = met_by(search, "cat", 2, 1), met_by(search, "cat", 2)
    cat = memory.recall("cat").hits[0].id
    memory.forget(cat)
    follow(search, memory)
    assert meeting(search, "cat", 1) is None
    assert met_by(search, "cat", 2, 1) == pytest.approx(alone) != before
    memory.restore(cat)
    follow(search, memory)
    assert met_by(search, "cat", 2, 1) == pytest.approx(before)


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
        assert met_by(search, "cat", 1) > 0.8 > met_by(search, "cat", 2)


def test_many_can_ask_while_words_are_embedded(
    memory: Memory, searching: Searching, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads that ask at once, with no room to keep tokens, get what each alone would get."""
    monkeypatch.setattr(token_codes, "KEPT_BYTES", 8)
    search = searching(WordEmbedder())
    assert search.wait(PATIENCE) == 0
    alone = {number: met_by(search, "cat dog", number, number % 3 + 1) for number in (1, 2, 3)}
    wrong: list[object] = []

    def ask() -> None:
        for _ in range(50):
            windows = [(number, number % 3 + 1, None) for number in (1, 2, 3)]
            found = search.interaction(search.ask("cat dog"), windows) or []
            wrong.extend(
                one for one, number in zip(found, (1, 2, 3), strict=True) if one != pytest.approx(alone[number])
            )

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(10):
        memory.store(f"another cat and dog {number}")
        search.follow(memory._opened.views.current(RECALL))
    for thread in threads:
        thread.join(PATIENCE)
    assert not wrong
