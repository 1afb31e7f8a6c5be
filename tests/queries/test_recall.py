"""Recall: the best memories of the namespaces asked and of no others, in an order that can be explained."""

import re
import struct
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tallystick import Memory
from tallystick.commands.fields import check_namespace
from tallystick.errors import LogDamaged, Refused, ViewsDamaged
from tallystick.projections import lexical
from tallystick.projections.embedding import Embedded, Space
from tallystick.projections.models import places
from tallystick.projections.views import RECALL
from tallystick.queries import recall as ranking
from tallystick.queries import stages
from tallystick.queries.answer import RELEVANT, STAGES, Question
from tallystick.queries.pool import Pool
from tallystick.queries.recall import Found, Ranked, _constants, _outstanding, fingerprint, rank, recall
from tallystick.queries.stages import STEPS, stepped
from tests.queries.pools import pool

Scores = dict[int, float]

SCORES = st.dictionaries(st.integers(1, 40), st.floats(-100, 100), max_size=12)


@pytest.fixture
def memory() -> Iterator[Memory]:
    """A memory of its own, by words alone."""
    with Memory.temporary(namespace="project:app") as opened:
        yield opened


@pytest.fixture(scope="module")
def common() -> Iterator[Memory]:
    """One memory for many questions."""
    with Memory.temporary() as opened:
        for text in ("The office is in Lisbon", "Use WAL mode", "猫が好き", "nothing\0at all"):
            opened.store(text)
        yield opened


def texts(memory: Memory, question: str, **options: Any) -> list[str]:
    """The texts that a question recalls, best first."""
    return [hit.text for hit in memory.recall(question, **options)]


# ---- ranking


def ranked(pool: Pool, lexical: Scores, dense: Scores | None, met: Scores | None = None) -> Ranked:
    """The pool in order, given the scores of its memories by number."""

    def said(scores: Scores, otherwise: float) -> Any:
        return numpy.array([scores.get(number, otherwise) for number in pool.numbers.tolist()], dtype=float)

    by_meaning = None if dense is None else said(dense, numpy.nan)
    words = said(lexical, 0.0)
    found = Found(words, words, by_meaning, None if met is None else said(met, numpy.nan))
    return rank(pool, found, Question("office", ("default",), 10, 0))


def order(pool: Pool, lexical: Scores, dense: Scores) -> list[int]:
    """The numbers of the pool, best first."""
    return [int(pool.numbers[place]) for place in ranked(pool, lexical, dense).order]


@given(lexical=SCORES, dense=SCORES)
def test_every_memory_of_the_pool_is_ranked_once(lexical: Scores, dense: Scores) -> None:
    """The order holds each once, and each score is the sum of what its stages say."""
    found = ranked(pool(*[{}] * 40), lexical, dense)
    assert sorted(found.order.tolist()) == list(range(40))
    for place in range(40):
        if place + 1 in dense or not dense:  # what a memory without a vector got for it is on record as nothing
            said = [found.scores[stage][place] for stage in STAGES[1:]]
            assert found.scores["fused"][place] == numpy.nansum(said)


@given(scores=SCORES)
def test_one_search_alone_keeps_its_order(scores: Scores) -> None:
    """Where only one search answers, a higher score of it never comes after a clearly lower one."""
    for found in (order(pool(*[{}] * 40), scores, {}), order(pool(*[{}] * 40), {}, scores)):
        for earlier, later in pairwise(number for number in found if number in scores):
            assert scores[earlier] >= scores[later] - 1e-3


@given(st.lists(st.floats(0.1, 30), max_size=30), st.integers(0, 500))
def test_words_stand_out_among_all_that_may_be_found(above_zero: list[float], others: int) -> None:
    """A standard score, whether those without a word are in the pool or not; 0 where all are equal."""
    half = len(above_zero) // 2
    whole = stepped(numpy.array(above_zero + [0.0] * others))
    found = _outstanding(whole, whole + 100, [whole[:half], whole[half : len(above_zero)]], len(whole))
    expected = (whole - whole.mean()) / whole.std() if len({*whole.tolist()}) > 1 else numpy.zeros(len(whole))
    assert found == pytest.approx(expected, abs=1e-5)


def test_a_chance_word_counts_no_more_than_so_much() -> None:
    """However rare a word is; the more words of the question a memory has, the more it may stand out."""
    scores, counts = numpy.array([20.0, 30.0, 0.0]), numpy.array([1.0, 3.0, 0.0])
    found = _outstanding(scores, counts, [scores[:2]], 100_000)
    assert found[:2].tolist() == [stages.OUTSTANDING, 9 * stages.OUTSTANDING]
    assert -0.01 < found[2] < 0


def test_what_a_search_did_not_see_counts_as_its_lowest() -> None:
    """A memory without a vector has the lowest cosine of the pool, one without a word the word score nought."""
    three = pool({}, {}, {})
    assert order(three, {3: 1.0}, {1: 0.9, 2: 0.2}) == order(three, {1: 0, 2: 0, 3: 1.0}, {1: 0.9, 2: 0.2, 3: 0.2})


def test_the_best_come_first_and_ties_go_by_stream() -> None:
    """Equal scores are ordered by the id of the memory, not by how it is numbered here."""
    four = pool(*({"stream": 255 - number} for number in range(4)))
    assert order(four, {1: 1.0, 2: 1.0, 3: 1.0, 4: 0.25}, {}) == [3, 2, 1, 4]
    assert order(pool(), {}, {}) == []


def test_the_fingerprint_of_a_pipeline_changes_with_the_model(common: Memory) -> None:
    """Two recalls of one fingerprint were ranked alike; another embedding space gives another."""

    class Named:
        def __init__(self, space: str) -> None:
            self.space = space

    spaces: list[Any] = [None, Named("a"), Named("b")]
    prints = [fingerprint(space) for space in spaces]
    assert len(set(prints)) == 3
    assert all(len(each) == 12 and int(each, 16) >= 0 for each in prints)
    assert fingerprint(spaces[1]) == prints[1]


# ---- what is found


def test_a_hit_is_what_the_log_says(memory: Memory) -> None:
    """A hit gives the memory as its events say it is, and its scores by stage; a stage that was not asked has none."""
    stored = memory.store("Use WAL mode for concurrent readers", tags=["sqlite"], importance=0.8)
    memory.store("The office is in Lisbon")
    (hit,) = memory.recall("how do I let many readers in?")
    assert (hit.id, hit.text, hit.record.tags) == (stored.id, "Use WAL mode for concurrent readers", ("sqlite",))
    assert hit.record == memory.get(stored.id)
    assert tuple(hit.scores) == STAGES
    assert (hit.scores["dense"], hit.scores["interaction"], hit.relevance) == (None, None, None)
    assert hit.score == hit.scores["fused"]


def test_scores_are_rounded(memory: Memory) -> None:
    """Every score is a multiple of 2**-20, so that another engine's arithmetic gives the same order."""
    for number in range(7):
        memory.store(f"note {'office ' * number} number {number}")
        memory.store(f"note {'Porto ' * number} number {number}")
    hits = memory.recall("office number 3").hits
    assert len({hit.score for hit in hits}) > 3
    for hit in hits:
        for score in hit.scores.values():
            assert score is None or (score * STEPS).is_integer()


def test_hits_come_best_first_and_at_most_as_many_as_asked(memory: Memory) -> None:
    """The scores go down, and a smaller limit gives the first of a larger one."""
    for number in range(8):
        memory.store(f"office {'Lisbon ' * number} note {number}")
    every = memory.recall("Lisbon office", limit=100).hits
    assert [hit.score for hit in every] == sorted((hit.score for hit in every), reverse=True)
    assert len(every) == 8
    for limit in (1, 3, 8):
        assert memory.recall("Lisbon office", limit=limit).hits == every[:limit]


def test_ties_are_in_order_of_the_ids(memory: Memory) -> None:
    """Memories of equal score are ordered by id: the same in every store that has them."""
    for number in range(12):
        memory.store(f"Yes, in Lisbon {number + 10}")
    ids = [hit.id for hit in memory.recall("Lisbon", limit=12)]
    assert ids == sorted(ids)
    assert len(ids) == 12
    assert [hit.id for hit in memory.recall("Lisbon", limit=5)] == ids[:5]


def test_only_what_is_current_is_recalled(memory: Memory) -> None:
    """Forgotten, superseded and expired memories do not come back; restored ones do."""
    forgotten = memory.store("The office was in Porto")
    memory.forget(forgotten.id)
    memory.store("The office is in Faro", key="office")
    memory.store("The office is in Lisbon", key="office")
    memory.store("The office is in Braga this week", expires_at="2020-01-01T00:00:00Z")
    assert texts(memory, "where is the office") == ["The office is in Lisbon"]
    memory.restore(forgotten.id)
    assert sorted(texts(memory, "where is the office")) == ["The office is in Lisbon", "The office was in Porto"]


def test_a_memory_is_recalled_until_it_expires(memory: Memory) -> None:
    """The time of asking decides: before it expires a memory is found, from that instant on it is not."""
    expires = datetime(2030, 1, 1, tzinfo=UTC)
    memory.store("The office is in Lisbon", expires_at=expires)
    last = round(expires.timestamp() * 1_000_000) - 1
    log, views = memory._opened.installation.memory, memory._opened.views.current(RECALL)
    for now, found in ((last, 1), (last + 1, 0), (last + 2, 0)):
        assert len(recall(log, views, None, Question("office", ("project:app",), 10, now)).hits) == found


def test_an_expiry_in_a_moment_is_noticed(memory: Memory) -> None:
    """Recall goes by the clock, not by the last event."""
    expires = datetime.now(UTC) + timedelta(seconds=0.25)
    memory.store("The office is in Lisbon", expires_at=expires)
    assert len(memory.recall("office")) == 1
    while datetime.now(UTC) <= expires:
        time.sleep(0.01)
    assert len(memory.recall("office")) == 0


def test_what_another_opening_has_stored_is_recalled(memory: Memory) -> None:
    """A recall first takes in what others have appended."""
    status = memory.status()
    with Memory.open(status.store, keys=status.keys, model="none", namespace="project:app") as other:
        other.store("The office is in Lisbon")
        assert texts(memory, "office") == ["The office is in Lisbon"]
        other.forget(other.recall("office").hits[0].id)
        assert texts(memory, "office") == []


def test_the_answer_names_the_log_it_came_from(memory: Memory) -> None:
    """Size and root of the log at the time of asking are part of the answer."""
    memory.store("The office is in Lisbon")
    log, views = memory._opened.installation.memory, memory._opened.views.current(RECALL)
    answer = recall(log, views, None, Question("office", ("project:app",), 10, 0))
    assert (answer.log_size, answer.log_root) == (2, log.tip.frontier.root())
    assert answer.pipeline == fingerprint(None)


def test_recall_without_a_model_says_so(memory: Memory) -> None:
    """Whoever is answered by words alone is told, whether or not anything was found."""
    memory.store("The office is in Lisbon")
    for question in ("office", "zebra"):
        (said,) = memory.recall(question).degraded
        assert "no embedding model" in said


@pytest.mark.parametrize("limit", [0, -1, 1.5])
def test_a_limit_that_is_none_is_refused(memory: Memory, limit: Any) -> None:
    """At least one memory must be asked for."""
    with pytest.raises(Refused, match="limit"):
        memory.recall("office", limit=limit)


# ---- stages that are left out

LEFT_OUT = [stage for stage in STAGES if stage not in ("fused", "rerank")]


def various(memory: Memory) -> None:
    """Memories of which every stage that needs no model has something to say."""
    for number, text in enumerate(("Where is the office?", "It is in Lisbon since 7 May 2023", "One of three offices")):
        memory.store(
            text, author=("Ana", "Ben")[number % 2], thread="t", occurred_at=f"2023-05-0{6 + number}T00:00:00Z"
        )
    memory.store("No office in Porto", author="Ana", importance=0.9)


ON_EVERYTHING = "When on 7 May 2023 did Ana have an office, and where?"


@pytest.mark.parametrize("stage", LEFT_OUT)
def test_a_stage_that_is_left_out_adds_nothing(memory: Memory, stage: str) -> None:
    """And the others add what they did, but the thread, which goes by the sum of those before it. On record."""
    various(memory)
    every, less = memory.recall(ON_EVERYTHING), memory.recall(ON_EVERYTHING, without=[stage])
    before, after = ({hit.id: hit.scores for hit in found} for found in (every, less))
    assert set(before) == set(after)
    if stage not in ("interaction", "dense"):
        assert any(scores[stage] for scores in before.values())
    for memory_id, scores in after.items():
        assert not scores[stage]
        for other in set(LEFT_OUT) - {stage, "thread"}:
            assert scores[other] == before[memory_id][other]
        assert scores["fused"] == sum(scores[other] or 0 for other in LEFT_OUT)
    said = memory.why(less.receipt).recalled
    assert said.filters["without"] == [stage]
    assert stage not in said.stages
    assert said.pipeline != memory.why(every.receipt).recalled.pipeline


def test_several_stages_are_left_out_together(memory: Memory) -> None:
    """In whatever order they are named, and none where none is: which is not on record."""
    various(memory)
    named = ["dates", "author", "dates"]
    recalled = [memory.recall(ON_EVERYTHING, without=each) for each in (named, set(named), tuple(reversed(named)))]
    said = [memory.why(each.receipt).recalled for each in recalled]
    assert {each.pipeline for each in said} == {fingerprint(None, {"author", "dates"})}
    assert all(each.filters["without"] == ["author", "dates"] for each in said)
    assert "without" not in memory.why(memory.recall("office", without=()).receipt).recalled.filters
    assert len(memory.recall("office", without=LEFT_OUT)) == 4


@pytest.mark.parametrize("without", [["fused"], ["zebra"], ["dates", "zebra"], [""], [None], "dates", 5, None])
def test_what_is_no_stage_to_leave_out_is_refused(memory: Memory, without: Any) -> None:
    """Neither the sum, nor a stage that there is not, nor what is no list; and the message says what there is."""
    memory.store("The office is in Lisbon")
    with pytest.raises(Refused, match="without is|dates"):
        memory.recall("office", without=without)


@pytest.mark.parametrize(
    "name",
    [
        "queries.dates.MONTH", "queries.dates.NEAR_DAYS", "queries.stages.AUTHOR", "queries.recall.SIDE",
        "queries.recall.STEPS_BACK", "projections.lexical.LENGTH", "projections.token_codes.STEP",
        "projections.vector_index.NEAR", "projections.vector_search.WINDOW",
    ],
)  # fmt: skip
def test_the_fingerprint_of_a_pipeline_changes_with_what_orders(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every constant by which memories come to stand where they stand is in it."""
    before = fingerprint(None)
    monkeypatch.setattr(f"tallystick.{name}", 7)
    monkeypatch.setattr("tallystick.queries.recall._constants", _constants.__wrapped__)
    assert fingerprint(None) != before


# ---- the pool


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pool of a large namespace, in a small one: the best of each search, and the turns around it."""
    for name, value in (("WHOLE", 3), ("SIDE", 1), ("WITH_AROUND", 1)):
        monkeypatch.setattr(f"tallystick.queries.recall.{name}", value)


def conversation(memory: Memory, **fields: Any) -> None:
    """Five turns of a thread, of which the third is about the office."""
    for place, text in enumerate(("Hello", "Well then", "The office is in Lisbon", "Oh", "Goodbye")):
        memory.store(text, thread="t", place=place, tags=["even"] if place % 2 == 0 else [], **fields)


@pytest.mark.usefixtures("narrow")
def test_turns_around_the_best_join_a_narrow_pool(memory: Memory) -> None:
    """Of many memories the best by either search are scored, and the turns before and after the best of them."""
    conversation(memory)
    assert sorted(texts(memory, "office")) == ["Oh", "The office is in Lisbon", "Well then"]
    assert texts(memory, "office")[0] == "The office is in Lisbon"
    assert texts(memory, "office", limit=1) == ["The office is in Lisbon"]


@pytest.mark.usefixtures("narrow")
def test_turns_that_filters_leave_out_do_not_join(memory: Memory) -> None:
    """Neither by a tag, nor because they have expired or were forgotten."""
    conversation(memory)
    memory.store("One more", tags=["even"])
    assert texts(memory, "office", tags=["even"]) == ["The office is in Lisbon"]
    before, after = (memory.search(where={"place": place}).records[0] for place in (1, 3))
    memory.forget(before.id)
    memory.revise(after.id, expires_at="2020-01-01T00:00:00Z")
    assert sorted(texts(memory, "office")) == ["Hello", "The office is in Lisbon"]


@pytest.mark.usefixtures("narrow")
def test_turns_of_another_namespace_do_not_join(memory: Memory) -> None:
    """Not even of a thread of the same name with the same places."""
    memory.store("The office is in Porto", thread="t", place=2)
    for number in range(4):
        memory.store(f"Note {number}")
    conversation(memory, namespace="other")
    assert texts(memory, "office") == ["The office is in Porto"]
    for hit in memory.recall("office", namespaces=["other"]):
        assert hit.record.namespace == "other"


def test_a_memory_that_no_search_found_is_no_hit(memory: Memory) -> None:
    """However important, recent and by whom it is: without a model what has no word of the question stays out."""
    memory.store("The office is in Lisbon", occurred_at="2001-01-01T00:00:00Z", importance=0.0)
    memory.store("Hello there", author="Ben", importance=1.0, confidence=1.0)
    assert texts(memory, "today: is the office open?") == ["The office is in Lisbon"]
    assert texts(memory, "zebra") == []


# ---- a model with token vectors


def test_words_count_as_without_a_model_until_there_are_vectors() -> None:
    """Where no memory of the pool has token vectors yet, the order is that of the words, with all their weight."""
    three, lexical = pool({}, {}, {}), {1: 3.0, 2: 1.0}
    without_vectors = ranked(three, lexical, {}, {}).scores["lexical"]
    assert without_vectors.tolist() == ranked(three, lexical, None).scores["lexical"].tolist()
    assert without_vectors.tolist() != ranked(three, lexical, {}, {1: 0.5}).scores["lexical"].tolist()


class WordEmbedder:
    """An embedder that gives each word a vector of its own, and a text their mean."""

    space = Space("words", "00" * 32, "11" * 32, 64, "mean", ("", ""), "float32")
    runtime = "test"

    def document(self, text: str) -> Embedded:
        """The vectors of a text."""
        words = re.findall(r"\w+", text.lower()) or [""]
        tokens = numpy.array([numpy.random.default_rng(list(w.encode())).normal(size=64) for w in words], numpy.float32)
        tokens /= numpy.linalg.norm(tokens, axis=1, keepdims=True)
        mean = tokens.mean(axis=0)
        weights = numpy.full(len(words), 1 / len(words), dtype=numpy.float32)
        return Embedded(mean / numpy.linalg.norm(mean), tokens, weights)

    query = document


@pytest.fixture
def meaning(monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    """A memory with a model that has token vectors."""
    monkeypatch.setattr(places, "resolve_embedder", lambda model: WordEmbedder())
    with Memory.temporary(model="auto") as opened:
        yield opened


def known(memory: Memory, *texts: str, **fields: Any) -> None:
    """Store texts, and wait for their vectors."""
    for text in texts:
        memory.store(text, **fields)
    memory.embed(seconds=10)
    assert memory.embed() == 0


def test_what_is_relevant_is_told_from_what_is_not(meaning: Memory) -> None:
    """A probability for each hit; where none is relevant the recall is false, and its hits can be read all the same."""
    known(meaning, "The office is in Lisbon", "Ana has a dog")
    found = meaning.recall("office in Lisbon")
    assert found
    assert not found.nothing_relevant
    assert [hit.text for hit in found] == ["The office is in Lisbon", "Ana has a dog"]
    relevant, irrelevant = (hit.relevance or 0.0 for hit in found)
    assert relevant > 0.9
    assert irrelevant < RELEVANT
    nothing = meaning.recall("zebra crossing tomorrow")
    assert nothing.nothing_relevant
    assert not nothing
    assert len(nothing) == len(list(nothing)) == 2
    assert meaning.recall("anything", namespaces=["empty"]).nothing_relevant


def test_relevance_is_that_of_the_memory_and_what_it_follows(meaning: Memory) -> None:
    """An answer whose question was a turn before is about that too; how many others there are does not matter."""
    known(meaning, "Where is the office in Lisbon", "Quite near", "Nothing", thread="t")
    told = {hit.text: hit for hit in meaning.recall("office in Lisbon")}
    assert (told["Quite near"].scores["interaction"] or 0) > (told["Nothing"].scores["interaction"] or 0)
    alone = {hit.text: hit.relevance for hit in meaning.recall("office in Lisbon", where={"thread": "t"}, limit=3)}
    known(meaning, *(f"Some office or other {number}" for number in range(20)))
    assert {hit.text: hit.relevance for hit in meaning.recall("office in Lisbon", limit=30)}.items() >= alone.items()


def test_a_question_without_words_is_answered(meaning: Memory) -> None:
    """And one of ten thousand is; nothing of either is relevant."""
    known(meaning, "The office is in Lisbon")
    for question in ("", " ", "?!", "the", " ".join(f"word{number}" for number in range(10_000))):
        assert meaning.recall(question).nothing_relevant


@pytest.mark.parametrize("stage", LEFT_OUT)
def test_stages_that_need_a_model_are_left_out_too(meaning: Memory, stage: str) -> None:
    """The scores still add up, and relevance, which is no stage, is told as before."""
    known(meaning, "The office is in Lisbon", "Ana has a dog", author="Ana")
    every = {hit.id: hit.relevance for hit in meaning.recall("Where in Lisbon is the office of Ana?")}
    less = meaning.recall("Where in Lisbon is the office of Ana?", without=[stage])
    assert {hit.id: hit.relevance for hit in less} == every
    for hit in less:
        assert not hit.scores[stage]
        assert hit.score == sum(hit.scores[other] or 0 for other in LEFT_OUT)


def test_a_past_is_ranked_by_what_was_said_then(meaning: Memory) -> None:
    """A text that was revised or forgotten later is met as it was, and the present is not changed by that."""
    first = meaning.store("The office is in Lisbon")
    second = meaning.store("Ana has a dog")
    meaning.revise(first.id, text="The shop is in Porto")
    meaning.forget(second.id)
    meaning.embed(seconds=10)
    with meaning.at(second.position) as past:
        past.embed(seconds=10)
        found = past.recall("office in Lisbon")
        assert [hit.text for hit in found] == ["The office is in Lisbon", "Ana has a dog"]
        assert found
    assert not meaning.recall("office in Lisbon", without=["lexical"]).hits[0].text.startswith("The office")
    assert [hit.text for hit in meaning.recall("shop in Porto")] == ["The shop is in Porto"]


# ---- while others write


def test_a_receipt_names_the_log_that_the_answer_is_from(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another opening stores while a question is asked is in the answer and in its receipt, or in neither."""
    memory.store("The office is in Lisbon")
    status, ask = memory.status(), ranking._ask
    with Memory.open(status.store, keys=status.keys, model="none", namespace="project:app") as other:

        def meanwhile(*asked: Any) -> Any:
            if len(other.search().records) < 2:
                other.store("The office was in Porto")
                other.recall("office")
            return ask(*asked)

        with monkeypatch.context() as patch:
            patch.setattr(ranking, "_ask", meanwhile)
            found = memory.recall("office")
    size = memory.why(found.receipt).recalled.log_size
    assert sorted(hit.record.position for hit in found) == list(range(1, size))
    assert memory.evaluate(limit=1).recalls[0].change == "same"


CHANGES: dict[str, Any] = {
    "importance": lambda memory, id: memory.revise(id, importance=1.0),
    "text": lambda memory, id: memory.revise(id, text="office office of many other words"),
    "author": lambda memory, id: memory.revise(id, author="ana"),
    "forget": lambda memory, id: memory.forget(id),
    "store": lambda memory, _: memory.store("another office, later"),
}


def answered(memory: Memory) -> list[tuple[str, float, str]]:
    """What a question is answered with: texts and scores."""
    return [(hit.id, hit.score, hit.text) for hit in memory.recall("office of ana", limit=9, without=["utility"])]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("model", ["memory", "meaning"])
def test_an_answer_is_of_one_moment(
    request: pytest.FixtureRequest, model: str, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another thread changes while the memories are ranked is in all of the answer or in nothing of it."""
    memory: Memory = request.getfixturevalue(model)
    ids = [memory.store(f"office {number}", thread="t").id for number in range(4)]
    memory.store("something else")
    memory.embed()
    before, search = answered(memory), lexical.search
    others: list[threading.Thread] = []

    def change_and_ask() -> None:
        CHANGES[change](memory, ids[1])
        memory.embed()
        memory.recall("office")

    def meanwhile(*asked: Any) -> Any:
        if not others:
            others.append(threading.Thread(target=change_and_ask))
            others[0].start()
            others[0].join()
        return search(*asked)

    with monkeypatch.context() as patch:
        patch.setattr(lexical, "search", meanwhile)
        during = answered(memory)
    assert others
    assert during in (before, answered(memory))


# ---- namespaces

LOOK_ALIKE = [
    ("team", "team%"), ("team%", "teams"), ("a_b", "axb"), ("a_b", "a%b"), ("org/acme", "org/acme/user:ana"),
    ("org/acme", "org/acme2"), ("org", "org/acme"), ("acme", "org/acme"), ("Team", "team"), ("TEAM", "team"),
    ("a", "\u0430"), ("e\u0301"[0], "\u00e9"), ("fi", "\ufb01"), ("ss", "ß"), ("I", "ı"), ("K", "\u039a"), ("o", "0"),
    ("l", "I"), ("user:ana", "user-ana"), ("user:ana", "user.ana"), ("a*b", "a?b"), ("a", "a'"), ('a"', "a"),
    ("a-b", "a/b"), ("..", "."), ("a\\b", "a/b"), ("1", "01"), ("null", "NULL"), ("a;--", "a"), ("x" * 64, "x" * 63),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), LOOK_ALIKE)
def test_namespaces_that_look_alike_do_not_leak(common: Memory, one: str, other: str) -> None:
    """A namespace is matched exactly: what was stored in one is not found, nor counted as known, in the other."""
    assert one != other
    text = f"The office of {one} but not of {other} is in Lisbon"
    common.store(text, namespace=one)
    assert text not in texts(common, text, namespaces=[other], limit=100)
    assert text in texts(common, text, namespaces=[one], limit=100)
    assert common.store(text, namespace=other).status == "stored"


NAMESPACE = st.text(st.sampled_from("abAB%_*?/:.-'\"\\é\u0430ß"), min_size=1, max_size=6)


@settings(max_examples=60)
@given(one=NAMESPACE, other=NAMESPACE)
def test_no_two_namespaces_leak(common: Memory, one: str, other: str) -> None:
    """Whatever two names are, if they differ, nothing of one is recalled from the other."""
    assume(one != other and _allowed(one) and _allowed(other))
    common.store("A secret of somebody", namespace=one, thread="t")
    for hit in common.recall("secret of somebody", namespaces=[other], limit=100):
        assert hit.record.namespace == other


def _allowed(namespace: str) -> bool:
    try:
        check_namespace(namespace)
    except Refused:
        return False
    return True


def test_several_namespaces_are_searched_together(memory: Memory) -> None:
    """Hits of all namespaces that were named are ranked together, and of no other."""
    for name in ("a", "b", "c"):
        memory.store(f"The office of {name} is in Lisbon", namespace=name)
    found = memory.recall("Lisbon office", namespaces=["a", "c", "a"])
    assert sorted(hit.record.namespace for hit in found) == ["a", "c"]


def test_the_namespace_of_the_memory_is_the_default(memory: Memory) -> None:
    """Who names none looks where this memory stores."""
    memory.store("The office is in Lisbon")
    memory.store("The office is in Porto", namespace="user:ana")
    assert texts(memory, "office") == ["The office is in Lisbon"]


@pytest.mark.parametrize("names", [["a", "a b"], [""], ["a/"], ["Cafe\u0301"], ["\ud800"], "ab", []])
def test_what_is_no_list_of_namespaces_is_refused(memory: Memory, names: Any) -> None:
    """A name that can't be one is refused rather than found empty, and so is a list that names none."""
    memory.store("The office is in Lisbon")
    with pytest.raises(Refused, match="namespace"):
        memory.recall("office", namespaces=names)


def test_views_that_swap_two_memories_do_not_leak(memory: Memory) -> None:
    """Even with views that were edited no text of another namespace is handed out."""
    memory.store("The office is in Lisbon", namespace="a")
    memory.store("A secret", namespace="b")
    with memory._opened.views.opened().datastore.transaction(commit=True) as cursor:
        cursor.execute("UPDATE memories SET number = number + 1000")
        cursor.execute("UPDATE memories SET number = 1003 - number")
    with pytest.raises(ViewsDamaged):
        memory.recall("office", namespaces=["a"])


# ---- questions

HOSTILE = [
    "", " ", "\0", "a\0b", "\n\t", '"', '""', "'", "*", "(", ")", "AND", "a AND", "OR OR", "NOT x", "NEAR(a b, 2)",
    "own:office", "{own tags}:office", "^office", "office*", '"office" OR "x"', "-office", "+", "a:b:c", "\\", "%", "_",
    "'; DROP TABLE memories; --", "\x1b[31m", "🏡", "👩‍👩‍👧‍👦", "\u202e", "\ufeff", "\ud7ff\ue000", "é" * 5000,
    "a" * 100_000, "office " + " ".join(f"word{number}" for number in range(10_000)), "の" * 10_000,
    "\u0301" * 10_000, "1 = 1", "\x7f",
    "{0}", "%s", "$(ls)", "../../etc/passwd", "null", "-" * 10_000, "a'b\"c`d",
]  # fmt: skip


@pytest.mark.parametrize("question", HOSTILE, ids=lambda question: ascii(question)[:24])
def test_no_question_is_too_strange(common: Memory, question: str) -> None:
    """Whatever is asked is answered, and is on record as it was asked; U+0000 is replaced, as no record may hold it."""
    answered = common.recall(question)
    assert common.why(answered.receipt).recalled.query == question.replace("\0", "\ufffd")
    for hit in answered:
        assert hit.record.namespace == "default"


@settings(max_examples=80)
@given(question=st.text(st.characters(exclude_categories=["Cs"]), max_size=80))
def test_any_question_is_answered(common: Memory, question: str) -> None:
    """No text raises, and hits are what was stored."""
    stored = {"The office is in Lisbon", "Use WAL mode", "猫が好き", "nothing\0at all"}
    assert set(texts(common, question)) <= stored


def test_half_a_character_is_no_obstacle(common: Memory) -> None:
    """What is not Unicode is asked as U+FFFD, which no word holds: the rest of the question is answered."""
    assert texts(common, "half a \ud83c office") == ["The office is in Lisbon"]


@pytest.mark.parametrize("script", ["猫", "猫が", "Office", "OFFICE", "ｏｆｆｉｃｅ", "offices"])
def test_words_are_found_in_any_spelling(common: Memory, script: str) -> None:
    """Case, width, endings and scripts without spaces do not hide a word."""
    assert len(texts(common, script)) == 1


# ---- text comes from the log

EDITS = {
    "status": "'forgotten'", "namespace": "'other'", "tags": "'[\"other\"]'", "importance": "0.9", "recorded_at": "1",
    "occurred_at": "1", "text_position": "2", "position": "2", "revision": "1", "kind": "'other'", "author": "'other'",
    "actor": "'other'", "subject": "'other'", "reinforced": "7", "superseded_by": "x'00'", "confidence": "0.1",
    "source": "'human'", "key": "'other'", "thread": "'other'", "place": "9", "valid_from": "1", "label": "'other'",
    "trust": "'other'", "expires_at": "4000000000000000", "stream": "zeroblob(16)",
    "turn": "3", "revised_at": "1", "protected": "1", "pinned": "1", "metadata": "'{\"a\": [1]}'",
    "words": "99", "cues": "7", "length": "99",
}  # fmt: skip


@pytest.fixture(scope="module")
def edited() -> Iterator[Memory]:
    """One memory whose views are edited and mended."""
    with Memory.temporary() as opened:
        opened.store("The office is in Lisbon")
        opened.store("Use WAL mode")
        yield opened


@pytest.mark.parametrize("column", EDITS)
def test_a_row_that_says_something_else_than_its_events_is_noticed(edited: Memory, column: str) -> None:
    """Views are not trusted: the row behind each hit must be what its events add up to."""
    assert len(edited.recall("office")) == 1
    with edited._opened.views.opened().datastore.transaction(commit=True) as cursor:
        cursor.execute(f"UPDATE memories SET {column} = {EDITS[column]} WHERE number = 1")
    with pytest.raises(ViewsDamaged, match="tallystick replay"):
        edited.recall("office")
    edited.rebuild(reason="a row was edited")
    assert texts(edited, "office") == ["The office is in Lisbon"]


def test_every_column_of_the_view_is_compared() -> None:
    """A column that is added to the view is edited in the test above too."""
    from tallystick.projections.memories import _COLUMNS  # noqa: PLC0415

    assert set(EDITS) == set(_COLUMNS) - {"number"}


def test_a_row_of_another_memory_is_noticed(memory: Memory) -> None:
    """A row that leads to another memory than the one that was found hands out nothing."""
    memory.store("The office is in Lisbon")
    memory.store("Use WAL mode")
    with memory._opened.views.opened().datastore.transaction(commit=True) as cursor:
        cursor.execute("DELETE FROM memories WHERE number = 2 RETURNING stream")
        (stream,) = cursor.fetchone()
        cursor.execute("UPDATE memories SET stream = ? WHERE number = 1", (stream,))
    with pytest.raises(ViewsDamaged):
        memory.recall("office")


def test_a_hit_whose_event_was_changed_is_not_handed_out(memory: Memory) -> None:
    """A payload that is not the one that was signed is refused on the way, with its position."""
    stored = memory.store("The office is in Lisbon")
    with memory._opened.installation.datastore.transaction(commit=True) as cursor:
        cursor.execute("DROP TRIGGER payload_unchanged")
        cursor.execute("UPDATE payload SET body = zeroblob(length(body)) WHERE place = ?", (stored.position,))
    with pytest.raises(LogDamaged, match=f"position {stored.position}"):
        memory.recall("office")


def test_the_scores_on_record_are_those_of_the_hits(memory: Memory) -> None:
    """What `why` shows is what was answered, to the precision of float16."""
    for number in range(5):
        memory.store(f"office {'Lisbon ' * number} note {number}")
    recalled = memory.recall("Lisbon office")
    for hit, because in zip(recalled, memory.why(recalled.receipt).hits, strict=True):
        for stage, score in because.scores.items():
            said = hit.relevance if stage == "relevance" else hit.scores[stage]
            assert score == (None if said is None else struct.unpack("<e", struct.pack("<e", said))[0])
        assert not any(score for stage, score in hit.scores.items() if stage not in because.scores)
