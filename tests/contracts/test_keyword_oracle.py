"""The lexical stage against rank_bm25."""

import random

import pytest
from rank_bm25 import BM25Okapi

from tallystick import Memory
from tallystick.projections import keyword
from tallystick.projections.condition import ALWAYS
from tallystick.projections.tokens import query_tokens, tokens
from tallystick.projections.views import RECALL

THINGS = ("kite", "lamp", "road", "tree", "fish")
WORDS = [f"{a}{b}" for a in ("red", "blue", "dry", "wet", "old", "new") for b in THINGS]


def _corpus(seed: int, size: int) -> list[str]:
    chance = random.Random(seed)
    return [" ".join(chance.choices(WORDS, k=chance.randint(3, 12))) for _ in range(size)]


@pytest.mark.parametrize("seed", range(3))
def test_scores_are_those_of_bm25(seed: int) -> None:
    """Each score is BM25's with k1 = 1.2 and b = 0.75, own text weighing three, as rank_bm25 computes it.

    Weighing three is to have every word three times; the namespace's token is one more word of each text.
    """
    corpus = sorted(set(_corpus(seed, 120)))
    oracle = BM25Okapi([(tokens(text) + ["the-namespace"]) * 3 for text in corpus], k1=1.2, b=0.75)
    with Memory.temporary() as memory:
        for text in corpus:
            memory.store(text)
        views = memory._opened.views.current(RECALL)
        for word in WORDS:
            asked = query_tokens(f"{word} {WORDS[seed]}")
            with views.reading() as cursor:
                found = dict(keyword.search(cursor, asked, ["default"], ALWAYS, len(corpus)))
            expected = dict(enumerate(oracle.get_scores(asked), 1))
            assert found == pytest.approx({n: score for n, score in expected.items() if score}, abs=1e-9)
