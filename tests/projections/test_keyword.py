"""The `keyword` view: which words stand in which memory, and how well a question's words match."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallystick import Memory
from tallystick.projections import keyword
from tallystick.projections.condition import ALWAYS
from tallystick.projections.keyword import namespace_token
from tallystick.projections.tokens import query_tokens
from tallystick.projections.views import RECALL
from tallystick.queries.filters import Filters

LATER = 2**62


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


def search(memory: Memory, question: str, *namespaces: str, now: int = 0, limit: int = 10) -> list[int]:
    """The numbers of what is found, best first."""
    with memory._opened.views.current(RECALL).reading() as cursor:
        words, condition = query_tokens(question), Filters().of_current(now)
        found = keyword.search(cursor, words, namespaces or ("project:app",), condition, limit)
    return [number for number, _ in found]


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
    """Own text, tags and namespace are kept apart, as tokens."""
    memory.store("Use WAL mode", tags=["journal mode"], author="Ana")
    assert terms(memory, "own") == {1: ["ana", "use", "wal", "mode"]}
    assert terms(memory, "tags") == {1: ["journal", "mode"]}
    assert terms(memory, "namespace") == {1: [namespace_token("project:app")]}


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


@pytest.mark.parametrize("act", ["forget", "supersede"])
def test_what_is_not_current_leaves_no_word_behind(memory: Memory, act: str) -> None:
    """A memory that was forgotten or superseded is found by no word of it, and counts in no total."""
    memory.store("Deploys are frozen on Fridays")
    kept = digest(memory)
    if act == "forget":
        memory.forget(memory.store("The office is in Lisbon", tags=["portugal"]).id)
        assert digest(memory) == kept
    else:
        memory.store("The office is in Lisbon", key="office")
        memory.store("The office is in Porto", key="office")
    assert search(memory, "Lisbon Portugal") == []
    assert "lisbon" not in str(terms(memory, "own"))


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
    """The same words elsewhere are not found; several namespaces are searched together; none finds nothing."""
    for name in ("project:app", "user:ana", "user:ben"):
        memory.store("The office is in Lisbon", namespace=name)
    assert search(memory, "Lisbon", "user:ana") == [2]
    assert sorted(search(memory, "Lisbon", "user:ana", "user:ben", "user:ana")) == [2, 3]
    with memory._opened.views.current(RECALL).reading() as cursor:
        assert keyword.search(cursor, ["lisbon"], [], ALWAYS, 10) == []


def test_the_term_of_a_namespace_is_found_by_no_question(memory: Memory) -> None:
    """Who knows how a namespace is written in the index finds nothing by it."""
    memory.store("The office is in Lisbon")
    memory.store("Secret", namespace="user:ana")
    assert search(memory, namespace_token("user:ana")) == []
    assert search(memory, namespace_token("project:app")) == []


def test_a_text_that_looks_like_the_term_of_a_namespace_stays_where_it_is(memory: Memory) -> None:
    """Nobody gets into a namespace by writing its term into a text or a tag."""
    memory.store(namespace_token("user:ana"), tags=[namespace_token("user:ana")])
    assert search(memory, namespace_token("user:ana"), "user:ana") == []


def test_namespace_terms_differ() -> None:
    """Names that look alike have different terms, each of letters and digits only."""
    names = ["a", "A", "a/b", "a/B", "a_b", "a%b", "ab", "а", "user:ana", "user:ana2", "user:an"]
    tokens = {namespace_token(name) for name in names}
    assert len(tokens) == len(names)
    assert all(token.isalnum() and token.isascii() and len(token) == 25 for token in tokens)


def test_what_has_expired_does_not_push_others_out(memory: Memory) -> None:
    """Memories that have expired are left out before the best are picked."""
    for number in range(5):
        memory.store(f"Lisbon, Lisbon, Lisbon {number}", expires_at="1970-01-01T00:00:01Z")
    memory.store("The office is in Lisbon, and has been there for years")
    assert search(memory, "Lisbon", now=LATER, limit=2) == [6]
    assert 6 not in search(memory, "Lisbon", now=0, limit=2)


def test_equal_scores_come_in_order_of_their_numbers(memory: Memory) -> None:
    """Which of equal memories are among the best does not depend on chance."""
    for number in range(6):
        memory.store("Yes", thread=f"s{number}")
    assert search(memory, "yes", limit=4) == [1, 2, 3, 4]


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
