"""Whom pronouns mean: who asks is the user of a chat, and who is asked its assistant."""

from __future__ import annotations

import time

import pytest

from tallystick.queries import stages
from tallystick.queries.roles import ASSISTANT, USER, role_of
from tallystick.queries.stages import AUTHOR
from tests.queries.pools import pool

MEANT = {
    # the user
    "What degree did I graduate with?": USER,
    "Where do my parents live?": USER,
    "which dog is mine": USER,
    "What's the name of the café I’ve been to?": USER,
    "Can you recommend a hotel for my trip?": USER,
    "Do you know when I moved?": USER,
    "In our last chat I told you about my dog. What is it called?": USER,
    # the assistant
    "What did you say?": ASSISTANT,
    "Which book did you recommend to me?": ASSISTANT,
    "Remind me of the company you mentioned.": ASSISTANT,
    "I'd like to know what you've told me about tea": ASSISTANT,
    "What was in your list of names?": ASSISTANT,
    "I think back to our previous conversation about zombies: what was its name?": ASSISTANT,
    "HAVE YOU seen it?": ASSISTANT,
    # nobody
    "Can you help?": (),
    "What do you need?": (),
    "Who is it?": (),
    "Where does Ida live? In Iowa, or in Mysore?": (),
    "Is your dog here?": (),
    "": (),
}


@pytest.mark.parametrize("question", MEANT)
def test_pronouns_tell_whom_a_question_is_about(question: str) -> None:
    """In the first person the user, in the second the assistant where it is about what that said or did."""
    assert role_of(question) == MEANT[question]


@pytest.mark.parametrize(
    ("question", "authors", "about"),
    [
        ("What did I buy?", ("user", "assistant", None), {"user"}),
        ("What did I buy?", ("Human", "AI"), {"Human"}),
        ("What did you recommend?", ("user", "model"), {"model"}),
        ("What did you recommend?", (" Assistant ", "bot", "user"), {" Assistant ", "bot"}),
        ("What did I tell Ana?", ("user", "Ana"), {"Ana"}),
        ("What does the user like, do you think I know?", ("user", "assistant"), {"user"}),
        ("What did I buy?", ("Ana", "Ben"), set()),
        ("What did I buy?", ("user:ana", "userland"), set()),
        ("What was bought?", ("user", "assistant"), set()),
    ],
)
def test_a_memory_by_the_role_that_is_meant_counts_more(
    question: str, authors: tuple[str | None, ...], about: set[str]
) -> None:
    """Unless an author is named, and only where somebody goes by the name of the role."""
    raised = stages.author(pool(*({"author": author} for author in authors)), question)
    assert {author for author, score in zip(authors, raised, strict=True) if score == AUTHOR} == about


@pytest.mark.parametrize("words", ["i told ", "our very ", "you ", "your ", "i ", "a" * 20])
def test_a_huge_question_takes_little_time(words: str) -> None:
    """A hundred thousand characters of what a pronoun may begin."""
    began = time.process_time()
    role_of(words * (100_000 // len(words)))
    assert time.process_time() - began < 1.0
