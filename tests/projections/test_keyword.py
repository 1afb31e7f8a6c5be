"""The `keyword` view and BM25 over it: which words stand in which memory, and how well a question's words match."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallystick import Memory
from tallystick.errors import ViewsDamaged
from tallystick.projections import lexical
from tallystick.projections.keyword import count, namespace_token
from tallystick.projections.shelves import superseded_in
from tallystick.projections.tokens import query_tokens
from tallystick.projections.views import RECALL

NOW, LATER = 0, 2**62


@pytest.fixture
def memory() -> Iterator[Memory]:
    """A memory of its own, by words alone."""
    with Memory.temporary(namespace="project:app") as opened:
        yield opened


@pytest.fixture(scope="module")
def common() -> Iterator[Memory]:
    """One memory for the examples of a property, with one text in it."""
    with Memory.temporary() as opened:
        opened.store("The office is in Lisbon")
        yield opened


def scores(memory: Memory, question: str, *namespaces: str, now: int = NOW) -> dict[int, float]:
    """The score of each memory in which a word is, by number."""
    with memory._opened.views.current(RECALL).reading() as cursor:
        columns = memory._opened.views.opened().columns.of(cursor, namespaces or ("project:app",))
        found = lexical.search(cursor, query_tokens(question), [(each, each.until > now) for each in columns])
    return {
        number: score
        for each, of in zip(columns, found, strict=True)
        for number, score in zip(each.numbers.tolist(), of.scores.tolist(), strict=True)
        if score
    }


def search(memory: Memory, question: str, *namespaces: str, now: int = NOW) -> list[int]:
    """The numbers of what is found, best first; of equal ones the first."""
    found = scores(memory, question, *namespaces, now=now)
    return sorted(found, key=lambda number: (-found[number], number))


def terms(memory: Memory, column: str) -> dict[int, list[str]]:
    """The terms of one column, by memory, in order."""
    found: dict[int, list[str]] = {}
    with memory._opened.views.current(RECALL).reading() as cursor:
        for term, number in cursor.execute(
            'SELECT term, doc FROM keyword_terms WHERE col = ? ORDER BY doc, "offset"', (column,)
        ):
            found.setdefault(number, []).append(term)
    return found


def digest(memory: Memory) -> str:
    """The digest of the view, caught up."""
    return memory._opened.views.current(RECALL).digests()["keyword"]


def test_a_memory_is_found_by_its_words_its_tags_and_its_author(memory: Memory) -> None:
    """Own words, tags and the author's name lead to a memory; a word that it has not does not."""
    memory.store("Use WAL mode for concurrent readers", tags=["sqlite", "fine-tuning"], author="Ana")
    for question in ("reader", "WAL", "SQLite", "fine tuning", "ana", "zebra or readers"):
        assert search(memory, question) == [1]
    assert search(memory, "zebra") == []


def test_the_columns_hold_the_tokens_and_nothing_else(memory: Memory) -> None:
    """Own text and tags are kept apart, each token as a term of its namespace."""
    memory.store("Use WAL mode", tags=["journal mode"], author="Ana")
    own = namespace_token("project:app")
    assert terms(memory, "own") == {1: [own + word for word in ("ana", "use", "wal", "mode")]}
    assert terms(memory, "tags") == {1: [own + word for word in ("journal", "mode")]}


def test_own_words_weigh_more_than_tags(memory: Memory) -> None:
    """A memory that is about a thing comes before one that is only filed under it."""
    memory.store("They met the board again on Monday", tags=["lisbon"])
    memory.store("They met in Lisbon again on Monday", tags=["board"])
    memory.store("Something else altogether happened later")
    assert search(memory, "Lisbon") == [2, 1]
    assert search(memory, "board") == [1, 2]


def test_a_rare_word_weighs_more_than_a_common_one(memory: Memory) -> None:
    """The word that tells memories apart decides."""
    for place in ("Lisbon", "Porto", "Faro", "Braga"):
        memory.store(f"There is an office there in {place}", place=0)
    assert search(memory, "office Faro")[0] == 3


def test_what_is_forgotten_leaves_no_word_behind(memory: Memory) -> None:
    """It is found by no word of it, and counts in no total; also where it was superseded before."""
    memory.store("Deploys are frozen on Fridays")
    kept = digest(memory)
    forgotten = memory.store("The office is in Lisbon", tags=["portugal"], key="office")
    newer = memory.store("The office is in Porto", key="office")
    for each in (forgotten, newer):
        memory.forget(each.id)
    assert digest(memory) == kept
    assert search(memory, "Lisbon Portugal") == []
    assert "lisbon" not in str(terms(memory, "own"))


def test_what_is_superseded_is_found_under_another_name(memory: Memory) -> None:
    """Its words are no longer those of its namespace."""
    memory.store("The office is in Lisbon", key="office")
    memory.store("The office is in Porto", key="office")
    assert search(memory, "Lisbon") == []
    with memory._opened.views.current(RECALL).reading() as cursor:
        names = ("project:app", superseded_in("project:app"))
        held = [[count(cursor, name, word) for word in ("lisbon", "porto", "offic")] for name in names]
    assert held == [[0, 1, 1], [1, 0, 1]]


def test_what_is_restored_is_found_as_before(memory: Memory) -> None:
    """Forgetting and restoring leave the view as it was, totals included."""
    memory.store("Deploys are frozen on Fridays")
    stored = memory.store("The office is in Lisbon", tags=["portugal"])
    before = digest(memory)
    memory.forget(stored.id)
    assert digest(memory) != before
    memory.restore(stored.id)
    assert digest(memory) == before


def test_saying_it_again_changes_no_word(memory: Memory) -> None:
    """A memory that is reinforced has its words once."""
    memory.store("The office is in Lisbon")
    before = digest(memory)
    memory.store("The office is in Lisbon")
    assert digest(memory) == before


def test_only_the_namespaces_asked_are_searched(memory: Memory) -> None:
    """The same words elsewhere are not found; several namespaces are searched together."""
    for name in ("project:app", "user:ana", "user:ben"):
        memory.store("The office is in Lisbon", namespace=name)
    assert search(memory, "Lisbon", "user:ana") == [2]
    assert search(memory, "Lisbon", "user:ana", "user:ben") == [2, 3]
    assert search(memory, "Lisbon", "user:cy") == []


def test_what_is_stored_elsewhere_changes_no_score(memory: Memory) -> None:
    """Neither how rare a word is nor how long memories are depends on namespaces that are not asked."""
    memory.store("The office is in Lisbon")
    memory.store("Deploys are frozen on Fridays")
    before = scores(memory, "Lisbon office on Friday")
    for number in range(20):
        memory.store(f"Lisbon, Lisbon, and many other words of which there are {number}", namespace="user:ana")
    assert scores(memory, "Lisbon office on Friday") == before


def test_several_namespaces_are_scored_as_one(memory: Memory) -> None:
    """How rare a word is, is counted over all that are asked."""
    for name in ("user:ana", "user:ben"):
        memory.store("The office is in Lisbon", namespace=name)
    for number in range(5):
        memory.store(f"Lisbon again {number}", namespace="user:ben")
    together = scores(memory, "office", "user:ana", "user:ben")
    assert set(together) == {1, 2}
    assert together[1] > scores(memory, "office", "user:ana")[1]


def test_the_term_of_a_namespace_is_found_by_no_question(memory: Memory) -> None:
    """Who knows how a namespace is written in the index finds nothing by it."""
    memory.store("The office is in Lisbon")
    memory.store("Secret", namespace="user:ana")
    for term in (namespace_token("user:ana"), namespace_token("user:ana") + "secret", namespace_token("project:app")):
        assert search(memory, term) == []


def test_a_text_that_looks_like_the_term_of_a_namespace_stays_where_it_is(memory: Memory) -> None:
    """Nobody gets into a namespace by writing its term into a text or a tag."""
    term = namespace_token("user:ana") + "secret"
    memory.store(term, tags=[term])
    assert search(memory, "secret", "user:ana") == search(memory, term, "user:ana") == []


def test_namespace_terms_differ() -> None:
    """Names that look alike have different terms, each of letters and digits only."""
    names = ["a", "A", "a/b", "a/B", "a_b", "a%b", "ab", "а", "user:ana", "user:ana2", "user:an"]
    tokens = {namespace_token(name) for name in names}
    assert len(tokens) == len(names)
    assert all(token.isalnum() and token.isascii() and len(token) == 21 for token in tokens)


def test_what_has_expired_is_not_found_and_lends_no_words(memory: Memory) -> None:
    """Neither a memory that has expired nor, by its words, the turns around it."""
    memory.store("The office is in Lisbon", expires_at="1970-01-01T00:00:01Z", thread="t")
    memory.store("Yes, it is", thread="t")
    assert search(memory, "Lisbon") == [1, 2]
    assert search(memory, "Lisbon", now=LATER) == []


def test_turns_lend_their_words_to_those_around_them(memory: Memory) -> None:
    """A turn is found by the words of the one before it, less by those of the one after it, and by no others."""
    for place, text in enumerate(("Hello there", "My office moved to Lisbon", "Really?", "Yes, last May")):
        memory.store(text, thread="t", place=place)
    found = scores(memory, "office Lisbon")
    assert sorted(found) == [1, 2, 3]
    assert found[2] > found[3] > found[1]


def test_words_that_most_memories_hold_are_left_out_of_many(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are very many memories; but the rarest of them counts where the question has no others."""
    for number in range(10):
        memory.store(f"office {number + 100} Lisbon" if number else "a library in Lisbon of the office")
    few = scores(memory, "office library")
    assert len(few) == 10
    monkeypatch.setattr(lexical, "PRUNED_FROM", 10)
    assert search(memory, "office library") == [1]
    assert len(search(memory, "office Lisbon")) == 10
    with memory._opened.views.current(RECALL).reading() as cursor:
        assert [count(cursor, "project:app", word) for word in ("lisbon", "librari", "zebra")] == [10, 1, 0]


def test_words_of_a_memory_that_is_not_there_are_noticed(memory: Memory) -> None:
    """A view that leads to a memory of another namespace, or to none, is not answered from."""
    memory.store("The office is in Lisbon")
    memory.store("A secret", namespace="user:ana")
    with memory._opened.views.opened().datastore.transaction(commit=True) as cursor:
        term = namespace_token("project:app") + "offic"
        cursor.execute("INSERT INTO keyword (rowid, own, tags) VALUES (2, ?, '')", (term,))
    with pytest.raises(ViewsDamaged, match="keyword"):
        search(memory, "office")


@settings(max_examples=300)
@given(question=st.text(max_size=60) | st.text(alphabet='abc"*():^-+NEAROD \0{}', max_size=40))
def test_no_question_is_read_as_syntax(common: Memory, question: str) -> None:
    """Whatever is asked is words, and never an error or an expression of the index."""
    assert set(search(common, question, "default")) <= {1}


@pytest.mark.parametrize(
    "question",
    [
        'lisbon" OR "zebra', "own : zebra", "zebra NOT lisbon", "NEAR(zebra lisbon)", "lisb*", "^zebra",
        "{own tags}: x", "namespace:n", "'; DROP TABLE keyword; --", "lisbon\0zebra",
        "-lisbon", "keyword MATCH 'x'", "AND", "\"", "",
    ],
)  # fmt: skip
def test_operators_of_the_index_are_words(common: Memory, question: str) -> None:
    """Operators find what their letters find: a memory with the word Lisbon, where that word is there."""
    assert search(common, question, "default") == ([1] if "lisbon" in question.lower() else [])


def test_ten_thousand_words_are_not_too_many(common: Memory) -> None:
    """A page of text as a question is answered, by the words that are there."""
    assert search(common, "Lisbon " + " ".join(f"word{number}" for number in range(10_000)), "default") == [1]
