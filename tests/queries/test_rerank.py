"""The stage that is asked for: a model judges the first 20 of the order, which adds to their scores."""

from __future__ import annotations

from collections.abc import Iterator

import numpy
import pytest

from tallystick import Memory
from tallystick.errors import ModelMissing, Refused
from tallystick.projections.models import places
from tallystick.projections.models.known import RERANKER
from tallystick.queries.answer import STAGES
from tallystick.queries.stages import RERANK, RERANKED, STEPS, rerank

NOTES = [f"Note {number} about the office" for number in range(30)]


class Judge:
    """Prefers what has a word; `asked` are the pairs that it was asked about."""

    runtime = "stub"

    def __init__(self, word: str, id_: str = "stub") -> None:
        self.id = id_
        self.word = word
        self.asked: list[tuple[str, str]] = []

    def score(self, question: str, passage: str) -> float:
        """A logit."""
        self.asked.append((question, passage))
        return 5.0 if self.word in passage.split() else -5.0


@pytest.fixture
def memory() -> Iterator[Memory]:
    """A memory without an embedding model."""
    with Memory.temporary() as opened:
        yield opened


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Judge:
    """The reranker that is found."""
    found = Judge("7")
    monkeypatch.setattr(places, "resolve_reranker", lambda: found)
    return found


def test_what_is_added_is_a_standard_score_of_those_that_were_judged() -> None:
    """Half a standard deviation's worth, in the places that were asked about; the others have not been seen."""
    added = rerank(5, numpy.array([3, 0, 4]), [1.0, 2.0, 3.0])
    assert numpy.isnan(added[[1, 2]]).all()
    assert added[0] == 0
    assert added[4] == -added[3] == pytest.approx(RERANK * 1.5**0.5)


@pytest.mark.parametrize("logits", [[], [3.5], [1.0, 1.0]])
def test_where_nothing_is_better_nothing_is_added(logits: list[float]) -> None:
    """One memory, or equal ones, stay as they are."""
    added = rerank(3, numpy.arange(len(logits)), logits)
    assert (added[: len(logits)] == 0).all()


def test_it_is_off_where_it_is_not_asked_for(memory: Memory, judge: Judge) -> None:
    """No model is asked, and no score has a part of it."""
    memory.store_many(NOTES)
    recall = memory.recall("note about the office")
    assert {hit.scores["rerank"] for hit in recall} == {None}
    assert judge.asked == []


def test_the_first_of_the_order_are_judged_and_no_others(memory: Memory, judge: Judge) -> None:
    """Each with the question, by author and text; what was not judged keeps its score."""
    memory.store_many([{"text": note, "author": "Ana"} for note in NOTES])
    before = memory.recall("note about the office", limit=len(NOTES))
    after = memory.recall("note about the office", limit=len(NOTES), rerank=True)
    first = [f"Ana: {hit.text}" for hit in before.hits[:RERANKED]]
    assert judge.asked == [("note about the office", passage) for passage in first]
    scores = {hit.id: hit for hit in before}
    for hit in after:
        added = hit.scores["rerank"]
        assert (added is None) == (f"Ana: {hit.text}" not in first)
        assert hit.score == scores[hit.id].score + (added or 0.0)
        assert (hit.score * STEPS).is_integer()
        assert hit.score == sum(hit.scores[stage] or 0.0 for stage in STAGES[1:])


def test_what_is_judged_better_rises(memory: Memory, judge: Judge) -> None:
    """And the order is by the sum, so that a judgement does not take the place of everything else."""
    memory.store_many(NOTES[:20])
    recall = memory.recall("note about the office", rerank=True)
    assert recall.hits[0].text == "Note 7 about the office"
    scores = [hit.score for hit in recall]
    assert scores == sorted(scores, reverse=True)


def test_it_is_on_record(memory: Memory, judge: Judge) -> None:
    """The receipt says that it was asked for, why shows what it added, and the pipeline is another one."""
    memory.store_many(NOTES[:20])
    plain, judged = (memory.recall("the office", rerank=rerank) for rerank in (False, True))
    told = memory.why(judged.receipt)
    assert told.recalled.filters == {"rerank": True}
    assert [round(hit.scores["rerank"] or 0.0, 2) for hit in told.hits] == [
        round(hit.scores["rerank"] or 0.0, 2) for hit in judged
    ]
    assert memory.why(plain.receipt).recalled.pipeline != told.recalled.pipeline


def test_another_judge_is_another_pipeline(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recalls of one fingerprint were ranked alike."""
    memory.store("Ana has a dog")
    found = set()
    for each in (Judge("a", "one"), Judge("a", "two")):
        memory._opened._judge = each
        found.add(memory.why(memory.recall("dog", rerank=True).receipt).recalled.pipeline)
    assert len(found) == 2


def test_what_is_asked_for_is_not_left_out(memory: Memory, judge: Judge) -> None:
    """Both at once is a mistake, and said; left out alone it is what it is anyway."""
    with pytest.raises(Refused, match="asked for and left out"):
        memory.recall("dog", rerank=True, without=["rerank"])
    assert memory.recall("dog", without=["rerank"]).hits == ()


def test_without_its_model_it_is_an_error(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks for it does not get another order silently."""
    monkeypatch.setattr(places, "find", lambda _model: None)
    with pytest.raises(ModelMissing, match=r"offline-models"):
        memory.recall("dog", rerank=True)


def test_nothing_to_judge_is_no_error(memory: Memory, judge: Judge) -> None:
    """A namespace without memories has no answer, judged or not."""
    assert memory.recall("dog", rerank=True).hits == ()
    assert judge.asked == []


def test_the_real_model_judges(memory: Memory) -> None:
    """Of two memories that both have the words, the one that answers comes first."""
    place = places.find(RERANKER.name)
    if place is None or places.missing_packages(place.folder):
        pytest.skip("the real reranker is not checked: tallystick[offline-models] is not installed")
    memory.store("Where does Ana work? Nobody knows where Ana works, and the work of Ana is a work of art")
    memory.store("Ana is employed by the bank in Lisbon, where her work is in the vault")
    recall = memory.recall("Where does Ana work?", rerank=True)
    better, worse = (hit.scores["rerank"] for hit in sorted(recall, key=lambda hit: "bank" not in hit.text))
    assert better is not None and worse is not None
    assert better > worse
