"""What turning a text into vectors gives, and what whoever does it promises."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[numpy.float32]

PRODUCTS = 1 << 18
"""Multiplications asked of the linear algebra library at once: of more it would use, and spin on, several threads."""


@dataclass(frozen=True)
class Space:
    """What makes vectors comparable: two vectors may be scored against each other only in the same space.

    The version of the runtime and the processor's instruction set change last digits, not the meaning:
    they are recorded beside the vectors (`Embedder.runtime`) and are no part of this.
    """

    model: str
    """Name of the model."""
    model_sha256: str
    tokenizer_sha256: str
    dimensions: int
    pooling: str
    """How token vectors become one, and how many tokens count."""
    prompts: tuple[str, str]
    """What is put before a document, and before a query."""
    quantisation: str
    """Number format of the model's weights."""
    projection: str = ""
    """SHA-256 of the matrix by which token vectors are projected; empty where they are taken as they are."""

    @property
    def id(self) -> str:
        """Sixteen hexadecimal digits: SHA-256 of the fields as JSON with sorted keys and no spaces."""
        canonical = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()[:16]


class Embedded(NamedTuple):
    """A text in an embedding space.

    `vector` is a unit vector of `space.dimensions` float32. Where the model is one for late interaction, `tokens` are
    unit vectors of the text's tokens in the same space, one a row, and `weights` say how telling each is: they sum
    to 1.
    """

    vector: Floats
    tokens: Floats | None = None
    weights: Floats | None = None


class Embedder(Protocol):
    """Turns a text into a vector, and into one for each of its tokens where the model is made for that.

    One text at a time, since in a batch a quantised model gives other bytes for the same text. The same
    text gives the same bytes in every process of one machine with one runtime. Any string is accepted,
    the empty one too. May be called from several threads at once.
    """

    @property
    def space(self) -> Space:
        """The space its vectors belong to."""

    @property
    def runtime(self) -> str:
        """Version of the runtime and instruction set of the processor, to be recorded with the vectors."""

    def document(self, text: str) -> Embedded:
        """A text that is to be found."""

    def query(self, text: str) -> Embedded:
        """A question."""
