"""The lexical stage against rank_bm25."""

import math
import random

import pytest
from rank_bm25 import BM25Okapi

from tallystick import Memory
from tallystick.projections import lexical
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

    Weighing three is to have every word three times. The inverse document frequency is Lucene's, which is never below
    nought: it is put into the oracle.
    """
    corpus = sorted(set(_corpus(seed, 120)))
    documents = [tokens(text) for text in corpus]
    oracle = BM25Okapi([words * 3 for words in documents], k1=1.2, b=0.75)
    for word in oracle.idf:
        holding = sum(word in words for words in documents)
        oracle.idf[word] = math.log1p((len(corpus) - holding + 0.5) / (holding + 0.5))
    with Memory.temporary() as memory:
        for text in corpus:
            memory.store(text)
        views = memory._opened.views.current(RECALL)
        with views.reading() as cursor:
            (columns,) = views.columns.of(cursor, ["default"])
            for word in WORDS:
                asked = query_tokens(f"{word} {WORDS[seed]}")
                ((found, _),) = lexical.search(cursor, asked, [(columns, columns.until > 0)])
                assert found == pytest.approx(oracle.get_scores(asked), abs=1e-9)
