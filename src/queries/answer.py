"""A question and its answer: what is asked of recall, and what it gives."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from ..errors import Refused
from ..projections.record import Record
from .filters import Filters

STAGES = (
    "fused", "interaction", "dense", "lexical", "content", "question", "dates", "asked", "utility", "thread", "author",
    "rerank",
)  # fmt: skip
"""What is put on record of each hit, in this order: the sum, then what each stage added to it."""
RELEVANT = 0.08
"""Where no hit is at least so relevant, nothing is."""


def require_stages(without: Collection[str]) -> None:
    """Raise Refused for a stage that can't be left out, since it is none or is the sum of all."""
    unknown = {*without} - {*STAGES[1:]}
    if unknown:
        raise Refused(f"{min(unknown)} is no stage to leave out. Name some of {', '.join(STAGES[1:])}.")


class Question(NamedTuple):
    """What is asked: the words, where to look, how many memories at most, when (microseconds), and what they fulfil.

    `namespaces` are the names under which memories were stored, `aliases` those among them that are called otherwise
    now; `without` are stages of the ranking to leave out, `rerank` asks for one that is left out otherwise.
    """

    text: str
    namespaces: tuple[str, ...]
    limit: int
    now: int
    filters: Filters = Filters()
    aliases: Mapping[str, str] = {}
    without: frozenset[str] = frozenset()
    rerank: bool = False


class Hit(NamedTuple):
    """A memory that answers, and what each stage added to its score: None where a stage did not see it.

    `score` is the sum: higher is better within one recall, and nothing beyond it. `relevance` is a probability, from
    0 to 1, that it is about what was asked, whatever else there is; None without a model that tells. It tells a
    question on something else from one that can be answered here; not one that supposes what is not so.
    """

    record: Record
    scores: Mapping[str, float | None]
    relevance: float | None = None

    @property
    def id(self) -> str:
        """The memory's id."""
        return self.record.id

    @property
    def text(self) -> str:
        """The memory's text, from the signed log."""
        return self.record.text

    @property
    def score(self) -> float:
        """The sum over the stages."""
        return self.scores["fused"] or 0.0


class Answer(NamedTuple):
    """The hits, best first; what was missing when they were found; and the state of the log they come from."""

    hits: tuple[Hit, ...]
    degraded: tuple[str, ...]
    log_size: int
    log_root: bytes
    pipeline: str
