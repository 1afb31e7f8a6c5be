"""Recall of what was valid: superseded memories are found and ranked with the current ones."""

from collections.abc import Iterator
from typing import Any

import pytest

from tallystick import Memory
from tallystick.errors import Refused
from tallystick.projections.models import places
from tallystick.queries import recall as recall_module
from tests.projections.test_vector_search import PATIENCE, WordEmbedder

FIRST, SECOND, THIRD = (f"20{year}-01-01T00:00:00Z" for year in (20, 21, 22))


@pytest.fixture
def memory() -> Iterator[Memory]:
    """A key whose value has changed, what stood beside it, and what was forgotten."""
    with Memory.temporary(actor="user:bo") as opened:
        opened.store("office in Lisbon", key="office", valid_from=FIRST, tags=["place"], importance=0.9)
        opened.store("office in Porto", key="office", valid_from=SECOND, tags=["place"], importance=0.1)
        opened.store("office with a garden", occurred_at=FIRST)
        opened.store("office with a pool", occurred_at=FIRST, expires_at=THIRD)
        opened.forget(opened.store("office on fire", key="state", valid_from=FIRST).id)
        opened.store("office quiet", key="other", valid_from=FIRST, namespace="elsewhere")
        opened.store("office loud", key="other", valid_from=THIRD, namespace="elsewhere")
        yield opened


def found(memory: Memory, **asked: Any) -> set[str]:
    """The last words of what a question finds."""
    return {hit.text.split()[-1] for hit in memory.recall("office", **asked)}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"as_of": "2019-12-31T00:00:00Z"}, set()),
        ({"as_of": FIRST}, {"Lisbon", "garden", "pool"}),
        ({"as_of": SECOND}, {"Porto", "garden", "pool"}),
        ({"as_of": THIRD}, {"Porto", "garden"}),
        ({"as_of": FIRST, "tags": ["place"]}, {"Lisbon"}),
        ({"as_of": SECOND, "tags": ["place"], "min_importance": 0.5}, set()),
        ({"as_of": FIRST, "min_importance": 0.5, "where": {"key": "office"}}, {"Lisbon"}),
        ({"as_of": FIRST, "actors": ["user:bo"], "kinds": ["note"]}, {"Lisbon", "garden", "pool"}),
        ({"as_of": FIRST, "actors": ["user:ana"]}, set()),
        ({"as_of": FIRST, "until": SECOND}, {"garden", "pool"}),
        ({"as_of": FIRST, "namespaces": ["elsewhere"]}, {"quiet"}),
        ({"as_of": THIRD, "namespaces": ["elsewhere", "default"]}, {"Porto", "garden", "loud"}),
        ({"as_of": FIRST, "status": "superseded"}, {"Lisbon"}),
        ({"as_of": FIRST, "status": "current"}, {"garden"}),
        ({"as_of": FIRST, "status": "expired"}, {"pool"}),
        ({"as_of": FIRST, "status": ["superseded", "expired"]}, {"Lisbon", "pool"}),
        ({"as_of": THIRD, "status": "superseded"}, set()),
        ({}, {"Porto", "garden"}),
    ],
)
def test_what_was_valid(memory: Memory, asked: dict[str, Any], expected: set[str]) -> None:
    """With every other filter; `status` tells apart what has become of it; search says the same."""
    assert found(memory, **asked) == expected
    assert {record.text.split()[-1] for record in memory.search(**asked)} == expected


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"as_of": "then"}, "as_of"),
        ({"as_of": 2020}, "as_of"),
        ({"as_of": ""}, "as_of"),
        ({"as_of": "2020-01-01T00:00:00"}, "time zone"),
        ({"as_of": FIRST, "status": "forgotten"}, "at no time"),
        ({"as_of": FIRST, "status": []}, "status"),
        ({"status": "superseded"}, "search"),
    ],
)
def test_what_is_no_valid_time(memory: Memory, asked: dict[str, Any], said: str) -> None:
    """It is refused with its name, and nothing is put on record."""
    reads = memory.status().logs["access"]
    with pytest.raises(Refused, match=said):
        memory.recall("office", **asked)
    assert memory.status().logs["access"] == reads


def test_it_is_on_record(memory: Memory) -> None:
    """The receipt holds the time, and the hits with their scores; a prompt says what is superseded."""
    recall = memory.recall("office Lisbon", as_of=FIRST)
    why = memory.why(recall.receipt)
    assert why.recalled.filters == {"as_of": 1577836800000000}
    assert [hit.record.text for hit in why.hits] == [hit.text for hit in recall]
    assert (recall.hits[0].text, recall.hits[0].record.status) == ("office in Lisbon", "superseded")
    assert recall.context().text.count(", superseded\n| office in Lisbon") == 1
    listing = memory.search(as_of=FIRST)
    assert memory.why(listing.receipt).recalled.filters == {"as_of": 1577836800000000, "sort": "-recorded_at"}


def test_a_question_without_it_stays_as_it_is() -> None:
    """What is superseded changes no hit and no score of a question that asks for no time."""
    values = [f"office {n} {'garden ' * (n % 5)}in {city}" for n, city in enumerate(("Porto", "Faro", "Lisbon") * 4)]
    asked = ("office in Faro", "garden", "which office has a garden in Lisbon")

    def answers(*generations: list[str]) -> list[dict[str, dict[str, float | None]]]:
        with Memory.temporary() as memory:
            for texts in generations:
                memory.store_many([{"text": text, "key": f"k{n}"} for n, text in enumerate(texts)])
            memory.recall("office", as_of=FIRST)
            return [{hit.text: dict(hit.scores) for hit in memory.recall(each, limit=99)} for each in asked]

    before = [f"{text} garden Faro, as it was" for text in values]
    assert answers(before, before[::-1], values) == answers(values)


def test_a_superseded_memory_ranks_as_when_it_was_current() -> None:
    """By words: at the first place of one question and the last of another, as its words say."""
    with Memory.temporary() as memory:
        memory.store("tea is served at four", key="tea", valid_from=FIRST)
        memory.store("nothing is served", key="tea", valid_from=THIRD)
        memory.store("coffee is served at ten", occurred_at=FIRST)
        asked = [memory.recall(question, as_of=SECOND) for question in ("tea served at four", "coffee served at ten")]
        assert [recall.hits[0].text[:3] for recall in asked] == ["tea", "cof"]
        assert [len(recall) for recall in asked] == [2, 2]


@pytest.fixture
def embedder(monkeypatch: pytest.MonkeyPatch) -> WordEmbedder:
    """The model of whoever asks for one."""
    found = WordEmbedder()
    monkeypatch.setattr(places, "resolve_embedder", lambda model: None if model == "none" else found)
    return found


@pytest.fixture
def animals(embedder: WordEmbedder) -> Iterator[Memory]:
    """Animals of a key and of none, found by meaning."""
    with Memory.temporary(model=embedder.space.model) as memory:
        memory.store("cat", key="pet", valid_from=FIRST)
        memory.store("dog", occurred_at=FIRST)
        memory.embed(seconds=PATIENCE)
        memory.store("fish", key="pet", valid_from=THIRD)
        memory.embed(seconds=PATIENCE)
        yield memory


def test_it_is_found_by_meaning(animals: Memory) -> None:
    """By its vector and by its tokens, which are kept from when it was current, with its relevance."""
    current = animals.recall("dog", as_of=SECOND)
    assert [hit.text for hit in current] == ["dog", "cat"]
    older = animals.recall("cat", as_of=SECOND)
    assert [hit.text for hit in older] == ["cat", "dog"]
    assert older.hits[0].relevance == pytest.approx(current.hits[0].relevance)
    assert all(older.hits[0].scores[stage] is not None for stage in ("interaction", "dense"))
    assert older.degraded == ()


def test_what_never_had_a_vector_gets_one(embedder: WordEmbedder) -> None:
    """Superseded before it was embedded, it is embedded when it is asked for; until then that is said."""
    with Memory.temporary(model=embedder.space.model) as memory:
        for text, since in (("cat", FIRST), ("dog", SECOND), ("bird", THIRD)):
            memory.store(text, key="pet", valid_from=since)
        memory.embed(seconds=PATIENCE)
        assert embedder.made == ["bird"]
        embedder.gate.clear()
        recall = memory.recall("cat", as_of=FIRST)
        assert ([hit.text for hit in recall], recall.hits[0].scores["dense"]) == (["cat"], None)
        assert recall.degraded == ("2 superseded with no vector yet, found by words alone: ask again",)
        embedder.gate.set()
        recall = memory.recall("cat", as_of=FIRST)
        assert (recall.degraded, recall.hits[0].scores["dense"] is not None) == ((), True)
        assert sorted(embedder.made) == ["bird", "cat", "dog"]


def test_a_value_that_comes_and_goes(animals: Memory) -> None:
    """What is superseded, or forgotten, while both are in memory moves from the one side to the other."""
    assert {hit.text for hit in animals.recall("fish", as_of=SECOND)} == {"dog", "cat"}
    fish = animals.search(where={"key": "pet"}).records[0]
    animals.revise(fish.id, valid_from=SECOND)
    animals.store("bird", key="pet", valid_from=THIRD)
    animals.embed(seconds=PATIENCE)
    assert [hit.text for hit in animals.recall("fish", as_of=SECOND)] == ["fish", "dog"]
    assert sorted(hit.text for hit in animals.recall("fish")) == ["bird", "dog"]
    animals.forget(fish.id)
    assert [hit.text for hit in animals.recall("fish", as_of=SECOND)] == ["dog"]


@pytest.mark.parametrize("whole", [1000, 2])
def test_in_a_namespace_small_and_large(monkeypatch: pytest.MonkeyPatch, whole: int) -> None:
    """Of many, the best of both are the pool; the best of all comes first wherever it stands."""
    monkeypatch.setattr(recall_module, "WHOLE", whole)
    monkeypatch.setattr(recall_module, "SIDE", 3)
    with Memory.temporary() as memory:
        for since in (FIRST, THIRD):
            memory.store_many([{"text": f"word{n} {since[:4]}", "key": f"k{n}", "valid_from": since} for n in range(9)])
        memory.store_many([{"text": f"other{n} {'word5 ' * 2}", "occurred_at": FIRST} for n in range(9)])
        for n in range(9):
            hits = memory.recall(f"word{n} 2020", as_of=SECOND, limit=3).hits
            assert (hits[0].text, len(hits)) == (f"word{n} 2020", 3)
