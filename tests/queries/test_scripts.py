"""Recall without a model, in every script and for every question: it finds what it should, and never breaks."""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tallystick import Memory
from tallystick.projections.tokens import STOP_WORDS, query_tokens, tokens
from tallystick.queries.recall import NO_WORDS

from .scripts import ACCENTED, SCRIPTS, Script

FIRST = 3
ENOUGH = 0.95
HOSTILE = 1_000
"""How many hostile questions the ordinary suite asks; the long one asks ten times as many."""

Spelling = Callable[[str], str]


def composed(text: str) -> str:
    """Every accent in one character with its letter."""
    return unicodedata.normalize("NFC", text)


def decomposed(text: str) -> str:
    """Every accent as a character of its own."""
    return unicodedata.normalize("NFD", text)


def bare(text: str) -> str:
    """No accents at all."""
    return "".join(each for each in decomposed(text) if not unicodedata.combining(each))


def found_first(script: Script, folder: Path, stored: Spelling = str, asked: Spelling = str) -> float:
    """The share of questions whose memory is among the first three hits, of all that was stored."""
    texts = [*(memory for _, memory in script.pairs), *script.others()]
    with Memory.open(folder / "store", keys=folder / "keys", model="none") as memory:
        ids = [outcome.id for outcome in memory.store_many([stored(text) for text in texts])]
        answers = [memory.recall(asked(question), limit=FIRST) for question, _ in script.pairs]
        assert not any(memory.recall(asked(question)).degraded[1:] for question, _ in script.pairs)
    return sum(own in [hit.id for hit in recall] for own, recall in zip(ids, answers, strict=False)) / len(answers)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_question_finds_its_memory_in_every_script(name: str, tmp_path: Path) -> None:
    """Of twenty questions nineteen find their memory among the first three of 220, by words alone."""
    assert found_first(SCRIPTS[name], tmp_path) >= ENOUGH


@pytest.mark.parametrize(
    ("stored", "asked"),
    [(composed, decomposed), (decomposed, composed), (composed, bare), (bare, composed)],
    ids=["NFD asked of NFC", "NFC asked of NFD", "without accents", "accents where none were stored"],
)
def test_accents_are_found_however_they_are_written(stored: Spelling, asked: Spelling, tmp_path: Path) -> None:
    """How an accent is encoded, and whether it is typed at all, makes no difference."""
    assert found_first(ACCENTED, tmp_path, stored, asked) >= ENOUGH


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_pairs_are_no_giveaways(name: str) -> None:
    """Few questions have only words of their memory, and most have words that stand in others too."""
    script = SCRIPTS[name]
    others = {word for text in script.others() for word in tokens(text)}
    pairs = [(set(query_tokens(question)), set(tokens(memory))) for question, memory in script.pairs]
    assert len(pairs) == 20 and len(set(script.others())) == 200
    assert sum(asked <= said for asked, said in pairs) <= 8
    assert sum(bool(asked & others) for asked, _ in pairs) >= 12


# ---- whatever is asked

SYNTAX = """AND OR NOT NEAR( ) ( " ' * ^ : own: own:zebra {own next} - + -- ; % _ \\ %s {} /* */ rowid NULL""".split()
SYNTAX += ["'; DROP TABLE keyword; --", '" OR "1"="1', "own : zebra", 'NEAR("zebra" "okapi", 2)']
ODD = ["\0", "\x01", "\x1b[31m", "\x7f", "\n", "\r", "\t", "\u200b", "\u202e", "\ufeff", "\u2028", "\ud800", "\udfff"]
ODD += ["🦓", "\U0001f468\u200d\U0001f467", "e" + "\u0301" * 40, "\U0010ffff", "\ufffe", "ﷺ", "𒐫", "ｚｅｂｒａ"]
ODD += ["斑马", "зебра", "ม้าลาย"]
WORDS = ["zebra", "okapi", "Zebra's", "zebra-okapi", "zebra_okapi", "zebraOkapi", "a/b.c", "1e309", "-0", "x" * 5_000]
COMMON = sorted(STOP_WORDS)


def hostile(number: int) -> str:
    """The question of this number: most a few dozen odd pieces; some empty, of stop words alone, or very long."""
    draw = random.Random(number)
    sort = draw.randrange(100)
    if sort == 0:
        return draw.choice(["", " ", "\0", "\n\t", "\ud800", "?", '""', "🦓", "\u0301"])
    if sort == 1:
        return " ".join(draw.choices(COMMON + WORDS, k=10_000)) if draw.random() < 0.2 else "zebra " * 500
    if sort < 10:
        return " ".join(draw.choices(COMMON, k=draw.randint(1, 12)))
    if sort < 20:
        return "".join(chr(draw.randrange(0x110000)) for _ in range(draw.randint(1, 80)))
    pieces = draw.choices(SYNTAX + ODD + WORDS + COMMON[:20], k=draw.randint(1, 30))
    return draw.choice(["", " "]).join(pieces)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """Two namespaces that hold the same words, in one store without a model."""
    folder = tmp_path_factory.mktemp("hostile")
    with Memory.open(folder / "store", keys=folder / "keys", model="none") as memory:
        for namespace in ("ours", "theirs"):
            said = [f"{word} {odd} of {namespace}" for word in WORDS for odd in ("", "🦓", "斑马", "зебра", "OR")]
            memory.store_many([*said, "to be or not to be", "who are you"], namespace=namespace)
        yield memory


def ask(two: Memory, questions: range) -> None:
    """Ask, and look where the hits come from."""
    for number in questions:
        recall = two.recall(hostile(number), namespaces=["ours"], limit=20)
        assert {hit.record.namespace for hit in recall.hits} <= {"ours"}, number


def test_no_question_breaks_recall_or_reaches_another_namespace(two: Memory) -> None:
    """Operators, quotes, control characters, half characters, emoji, ten thousand words: a question is only words."""
    ask(two, range(HOSTILE))


@pytest.mark.exhaustive
def test_ten_thousand_questions_break_nothing(two: Memory) -> None:
    """The same, ten times as many."""
    ask(two, range(10 * HOSTILE))


def test_stop_words_alone_find_what_says_no_more(two: Memory) -> None:
    """They are in the index for memories of stop words alone; where that may hide something, it is said."""
    recall = two.recall("who are you?", namespaces=["ours"])
    assert [hit.text for hit in recall.hits][:1] == ["who are you"]
    assert NO_WORDS in recall.degraded
    assert NO_WORDS not in two.recall("who is the zebra?", namespaces=["ours"]).degraded
