"""What is forgotten is gone from every answer, and nothing else is; what is stored again is one memory, not two."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest

from tallystick.events.installation import Installation
from tallystick.projections.embedding import Embedded, Space
from tallystick.projections.models import places
from tallystick.projections.vector_cache import VectorCache

from .ways import NAMESPACE, Place, Python, Way, everywhere

TEXTS = {
    "plain": "The zebra sleeps in the north stable",
    "ideographs": "斑馬睡在北方的馬廄裡",
    "emoji": "🦓 zebra 🦓 zebra 👩‍👩‍👧‍👦",
    "right to left": "الحمار الوحشي ينام في الإسطبل الشمالي",
    "long": "zebra " * 2000,
    "markup": "zebra\n## zebra\n<script>zebra</script> '; DROP TABLE memory; --",
}
QUESTION = "zebra 斑馬 الحمار 🦓 stable 馬廄"


def traces(way: Way, memories: set[str]) -> list[str]:
    """The verbs that hand any of these memories out, or count them among what is current."""
    found = ["recall"] * bool(memories & set(way.ids(QUESTION, limit=100)))
    found += ["recall under"] * bool(memories & set(way.ids(QUESTION, limit=100, under=NAMESPACE)))
    found += ["search"] * bool(memories & {each["id"] for each in way.ask("search")["memories"]})
    context = way.context(QUESTION, tokens=50_000) if isinstance(way, Python) else way.context(QUESTION, context=50_000)
    found += ["context"] * any(f"id {memory[:12]}" in context for memory in memories)
    current = way.ask("sql", "select lower(hex(stream)) from memories where status = 'current'")["rows"]
    return found + ["sql"] * bool(memories & {stream for (stream,) in current})


# ---- deleting clears one index, others still serve


def test_what_is_forgotten_is_served_by_no_verb_ever_again(way: Way) -> None:
    """One event takes a memory out of recall, context, search, counts and tables, and no rebuild brings it back."""
    kept = way.store("The okapi sleeps in the south stable")
    gone = {way.store(text, tags=["zebra"], key=f"sleeper {name}") for name, text in TEXTS.items()}
    for memory in gone:
        if len(way.get(memory)["text"]) < 8000:
            way.ask("pin", memory)
    assert traces(way, gone) == ["recall", "recall under", "search", "context", "sql"]
    for memory in gone:
        way.ask("forget", memory)
    for each in everywhere(way):
        assert traces(each, gone) == [], each.state
        assert {memory["id"] for memory in each.ask("search", status=["forgotten"])["memories"]} == gone, each.state
        assert each.ids("okapi") == [kept], each.state
        assert each.ask("status")["namespaces"] == {NAMESPACE: 1}, each.state
        counted = [(n["current"], n["memories"]) for n in each.ask("namespaces")["namespaces"]]
        assert counted == [(1, 1 + len(gone))], each.state


def test_a_forgotten_turn_is_not_found_through_the_turns_around_it(way: Way) -> None:
    """Turns are found by the words of their neighbours, but not by those of one that was forgotten."""
    rows = way.ask("store_conversation", ["Good morning", "The zebra escaped", "Oh no"], thread="t")["rows"]
    assert len(way.ids("zebra")) == 3
    way.ask("forget", rows[1]["id"])
    for each in everywhere(way):
        assert each.ids("zebra") == [], each.state
        assert each.ids("morning")[0] == rows[0]["id"], each.state


def test_the_older_text_of_a_revised_memory_is_served_no_more(way: Way) -> None:
    """A memory is found by the words it has, and not by those it had."""
    memory = way.store("The zebra sleeps")
    way.ask("revise", memory, text="The okapi sleeps")
    for each in everywhere(way):
        assert (each.ids("zebra"), each.ids("okapi")) == ([], [memory]), each.state
        assert each.listed() == ["The okapi sleeps"], each.state


def test_many_forgotten_at_once_are_all_gone(way: Way) -> None:
    """Every second of fifty is forgotten: what is left is what was not."""
    rows = way.ask("store_many", [f"zebra number {n}" for n in range(50)])["rows"]
    for row in rows[::2]:
        way.ask("forget", row["id"])
    left = {row["id"] for row in rows[1::2]}
    for each in everywhere(way):
        assert set(each.ids("zebra", limit=99)) == left, each.state
        assert each.ask("search", limit=1)["total"] == 25, each.state


# ---- the embedding outlives the memory


class Animals:
    """An embedder of four animals, each text one token, so that no model is needed."""

    runtime = "test"
    space = Space("animals", "00" * 32, "11" * 32, 4, "count", ("", ""), "float32")

    def document(self, text: str) -> Embedded:
        """How often each animal is named."""
        counts = numpy.array([text.count(each) + 0.1 for each in ("zebra", "okapi", "gnu", "lion")], dtype="float32")
        unit = counts / numpy.linalg.norm(counts)
        return Embedded(unit, unit.reshape(1, 4), numpy.ones(1, dtype="float32"))

    query = document


@pytest.fixture
def by_meaning(way: Way, monkeypatch: pytest.MonkeyPatch) -> Way:
    """A way to a store that is searched by meaning."""
    monkeypatch.setattr(places, "resolve_embedder", lambda model: None if model == "none" else Animals())
    monkeypatch.setattr(places, "name_of", lambda model: model if model == "none" else "animals")
    way.settings["model"] = "auto"
    return way


def vectors(place: Place) -> set[str]:
    """The memories that there is a vector of, in a store that is closed."""
    installation = Installation.read(place.store, place.keys)
    cache = VectorCache(installation)
    try:
        return {stream.hex() for stream, _ in cache.keys()}
    finally:
        cache.close()
        installation.abandon()


def test_no_vector_finds_what_was_forgotten(by_meaning: Way) -> None:
    """Nothing near in meaning is served once it is forgotten or superseded; each current memory has one vector."""
    way = by_meaning
    ids = [way.store(text) for text in ("zebra", "zebra and okapi", "zebra zebra gnu", "okapi")]
    older = way.store("a gnu", key="animal")
    newer = way.store("a zebra", key="animal")
    assert set(way.ids("zebra", limit=20)) == {*ids, newer}
    way.ask("forget", ids[0])
    way.ask("forget", ids[1])
    left = {*ids[2:], newer}
    for each in everywhere(way):
        assert set(each.ids("zebra", limit=20)) == left, each.state
        assert each.ask("status")["missing_vectors"] == 0, each.state
        scores = [hit["scores"]["dense"] for hit in each.ask("recall", "zebra", limit=20)["hits"]]
        assert len(scores) == len(left) and None not in scores, each.state
    assert left <= vectors(way.place) <= left | {ids[0], ids[1], older}


# ---- deleting for one person wipes all


@pytest.mark.parametrize(
    "names", [("user:ana", "user:bob"), ("a", "a/b"), ("org/acme", "org/acme2"), ("t_am", "team"), ("数据", "数据库")]
)
def test_forgetting_in_one_namespace_touches_no_other(way: Way, names: tuple[str, str]) -> None:
    """All that one namespace holds is forgotten, one by one: another one with the same texts, keys and tags stays."""
    ids = {
        name: [
            way.store(text, namespace=name, key=key, tags=["t"], subject="user:ana")
            for text, key in (("zebra", None), ("okapi", "k"), ("gnu", "l"))
        ]
        for name in names
    }
    for memory in ids[names[0]]:
        way.ask("forget", memory)
    for each in everywhere(way):
        assert each.ids("zebra okapi gnu", namespaces=[names[0]]) == [], each.state
        assert set(each.ids("zebra okapi gnu", namespaces=[names[1]])) == set(ids[names[1]]), each.state
        assert each.ask("search", namespaces=[names[1]], subject="user:ana")["total"] == 3, each.state
    assert way.store("okapi", namespace=names[0], key="k") not in ids[names[1]]
    assert way.get(ids[names[1]][1])["status"] == "current"


@pytest.mark.parametrize(
    "given", ["", "%", "*", "0", "abc", "all", "None", " ", "0000", "g" * 32, "--all", "a' or 1=1"]
)
def test_nothing_is_forgotten_that_was_not_named(way: Way, given: str) -> None:
    """No wildcard, no empty id, no beginning of several ids forgets a memory."""
    ids = {way.store(f"zebra {n}") for n in range(5)}
    assert way.refusal("forget", given).kind in {"Refused", "NotFound"}
    assert set(way.ids("zebra")) == ids


# ---- the same text twice


def test_the_same_text_twice_is_one_memory_and_stays(way: Way) -> None:
    """Storing again reinforces: nothing is deleted, nothing piles up, through whatever entrypoint."""
    ids = {name: way.store(text) for name, text in TEXTS.items()}
    for name, text in TEXTS.items():
        for again in (text, f"  {text}\n", unicodedata.normalize("NFD", text)):
            outcome = way.ask("store", again)
            assert (outcome["outcome"], outcome["id"]) == ("reinforced", ids[name])
    for each in everywhere(way):
        found = {memory["id"]: memory["text"] for memory in each.ask("search")["memories"]}
        assert found == {ids[name]: text for name, text in TEXTS.items()}, each.state
    assert {way.store(text) for text in TEXTS.values()} == {*ids.values()}


def test_hundreds_of_repetitions_are_one_memory(way: Way) -> None:
    """Through many rows at once, and mixed with others: one memory for each text, which counts how often."""
    rows = way.ask("store_many", ["zebra", "okapi"] * 150)["rows"]
    assert len({row["id"] for row in rows}) == 2
    for each in everywhere(way):
        assert sorted(each.listed()) == ["okapi", "zebra"], each.state
        assert each.get(rows[0]["id"])["reinforced"] == 149, each.state


def test_forgetting_what_was_stored_twice_forgets_it_once(way: Way) -> None:
    """No copy is left behind that another index would serve, and forgetting it again is refused in words."""
    memory = way.store("zebra")
    assert way.store("zebra") == memory
    way.ask("forget", memory)
    for each in everywhere(way):
        assert traces(each, {memory}) == [], each.state
    assert way.refusal("forget", memory).kind == "Refused"


# ---- what was forgotten can't be stored again


@pytest.mark.parametrize("fields", [{}, {"key": "sleeper"}, {"thread": "t", "place": 1}], ids=["text", "key", "turn"])
def test_what_was_forgotten_is_stored_again_as_a_new_memory(way: Way, fields: dict[str, str]) -> None:
    """As often as it is wanted, with a new id each time, and only the newest is served."""
    old, new = [], []
    for name, text in TEXTS.items():
        own = {field: f"{value} {name}" if field != "place" else value for field, value in fields.items()}
        for _ in range(2):
            outcome = way.ask("store", text, **own)
            assert outcome["outcome"] == "stored"
            old.append(outcome["id"])
            way.ask("forget", old[-1])
        new.append(way.store(text, **own))
    assert len({*old, *new}) == 3 * len(TEXTS)
    for each in everywhere(way):
        assert {memory["id"] for memory in each.ask("search")["memories"]} == {*new}, each.state
        forgotten = {memory["id"] for memory in each.ask("search", status=["forgotten"])["memories"]}
        assert forgotten == {*old}, each.state
    if "thread" not in fields:
        assert way.refusal("restore", old[0]).kind == "Refused"


# ---- one text, several memories: forgetting one blinds the other

APART: dict[str, tuple[dict[str, object], dict[str, object]]] = {
    "namespaces": ({"namespace": "one"}, {"namespace": "two"}),
    "keys": ({"key": "one"}, {"key": "two"}),
    "key and none": ({"key": "one"}, {}),
    "subjects": ({"subject": "user:ana"}, {"subject": "user:bob"}),
    "places in a thread": ({"thread": "t", "place": 1}, {"thread": "t", "place": 2}),
    "threads": ({"thread": "t", "place": 1}, {"thread": "s", "place": 1}),
    "turn and none": ({"thread": "t", "place": 1}, {}),
}


@pytest.mark.parametrize("apart", APART)
def test_equal_texts_that_are_not_one_memory_are_forgotten_apart(way: Way, apart: str) -> None:
    """Forgetting either leaves the other found, read and listed: no chunk is shared."""
    texts = (TEXTS["plain"], TEXTS["ideographs"]) if "place" not in APART[apart][0] else (TEXTS["ideographs"],)
    names = [str(fields.get("namespace", NAMESPACE)) for fields in APART[apart]]
    kept = {}
    for n, text in enumerate(texts):
        own = [{**fields, **({"key": f"{fields['key']} {n}"} if "key" in fields else {})} for fields in APART[apart]]
        first, second = (way.store(text, **fields) for fields in own)
        assert first != second
        way.ask("forget", (first, second)[n % 2])
        kept[(second, first)[n % 2]] = text
    for each in everywhere(way):
        assert set(each.ids(QUESTION, namespaces=names)) == set(kept), each.state
        found = {memory["id"]: memory["text"] for memory in each.ask("search", namespaces=names)["memories"]}
        assert found == kept, each.state


def test_a_text_of_one_store_is_not_that_of_another(tmp_path: Path) -> None:
    """Two stores side by side, one text: forgotten in one, it is there in the other."""

    def opened() -> Iterator[Python]:
        for name in ("one", "two"):
            yield Python(Place(tmp_path / name / "store", tmp_path / name / "keys"))

    one, two = opened()
    with one, two:
        ids = [each.store("zebra") for each in (one, two)]
        one.ask("forget", ids[0])
        assert (one.ids("zebra"), two.ids("zebra")) == ([], [ids[1]])
