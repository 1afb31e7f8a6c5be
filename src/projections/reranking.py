"""What judging how well a text answers a question gives, and what whoever does it promises."""

from __future__ import annotations

from typing import Protocol


class Reranker(Protocol):
    """Reads a question and a passage together, and says how well the one answers the other.

    One pair at a time, since in a batch a quantised model gives other numbers for the same pair. The same pair gives
    the same score in every process of one machine with one runtime. Any strings are accepted, empty ones too. May be
    called from several threads at once.
    """

    @property
    def id(self) -> str:
        """Changes with whatever could change a score, but the runtime and the processor."""

    @property
    def runtime(self) -> str:
        """Version of the runtime and instruction set of the processor."""

    def score(self, question: str, passage: str) -> float:
        """How well a passage answers a question: the model's logit. Higher is better, 0 is even odds."""
