"""Tallystick as one side of `benchmarks.peers`: every store durable, one plain text at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from benchmarks.sides import Side, main
from tallystick import Memory


class Tallystick:
    """A store with its keys beside it."""

    version = version("tallystick")

    def __init__(self, memory: Memory) -> None:
        self.refused = 0
        self._memory = memory

    def store(self, text: str) -> None:
        """Signed and on the disk when it returns."""
        self.refused += self._memory.store(text).status != "stored"

    def settle(self) -> None:
        """Make every vector."""
        self._memory.embed()

    def recall(self, question: str, limit: int) -> list[str]:
        """The texts of the hits."""
        return [hit.text for hit in self._memory.recall(question, limit=limit)]


@contextmanager
def opened(folder: Path, model: str | None) -> Iterator[Side]:
    """A store in the folder."""
    with Memory.open(folder / "store", keys=folder / "keys", model=model or "none") as memory:
        yield Tallystick(memory)


if __name__ == "__main__":
    main(opened)
