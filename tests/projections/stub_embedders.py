"""Two embedders without weights, each the model of a folder of its name, for tests of a change of model."""

from __future__ import annotations

import re
import time
from pathlib import Path

import numpy

from tallystick.projections.embedding import Embedded, Embedder, Space
from tallystick.projections.models import places


class Words:
    """Gives each word a vector of its own, and a text their mean; slowly where that is asked for."""

    runtime = "stub"

    def __init__(self, name: str, dimensions: int, seconds: float = 0.0) -> None:
        self.space = Space(name, "00" * 32, "11" * 32, dimensions, "mean", ("", ""), "float32")
        self.seconds = seconds
        self.made: list[str] = []

    def document(self, text: str) -> Embedded:
        """The vector of a text."""
        time.sleep(self.seconds)
        self.made.append(text)
        return self.query(text)

    def query(self, text: str) -> Embedded:
        """The vectors of a question."""
        words = re.findall(r"\w+", text.lower()) or [""]
        size = self.space.dimensions
        tokens = numpy.array([numpy.random.default_rng(list(w.encode())).normal(size=size) for w in words])
        tokens = (tokens / numpy.linalg.norm(tokens, axis=1, keepdims=True)).astype(numpy.float32)
        mean = tokens.mean(axis=0)
        return Embedded(mean / numpy.linalg.norm(mean), tokens, numpy.full(len(words), 1 / len(words), numpy.float32))


class Stubs:
    """The embedders `old` and `new`, as `places` finds them: of other dimensions, so that they can't be mixed up."""

    def __init__(self, folder: Path, seconds: float = 0.0) -> None:
        self.old, self.new = folder / "old", folder / "new"
        self.embedders = {str(self.old): Words("old", 32), str(self.new): Words("new", 64, seconds)}
        for each in self.embedders:
            Path(each).mkdir(parents=True, exist_ok=True)

    def resolve(self, model: str | None) -> Embedder | None:
        """In the place of `resolve_embedder`: what is not named is `old`."""
        return None if model == "none" else self.embedders.get(str(model), self.embedders[str(self.old)])

    def install(self) -> None:
        """In a process of its own: let these be all the models there are."""
        places.resolve_embedder = self.resolve
        places.name_of = lambda model: "old" if model in (None, "auto") else str(model)
