"""trw-memory as one side of `benchmarks.peers`, by what its README documents; run in an environment of its own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from trw_memory.client import MemoryClient

from benchmarks.sides import Side, main

Given = TypeVar("Given")

SETTINGS = {
    "TRW_OFFLINE": "1",
    "HF_HUB_OFFLINE": "1",
    "MEMORY_MAX_MEMORY_WRITES_PER_MINUTE": "100000000",  # the default allows ten
}


class Trw:
    """A local client; its calls run in one event loop."""

    version = version("trw-memory")

    def __init__(self, loop: asyncio.Runner, client: Any) -> None:
        self.refused = 0
        self._loop = loop
        self._client = client

    def do(self, call: Coroutine[Any, Any, Given]) -> Given:
        """Run a call to its end."""
        return self._loop.run(call)

    def store(self, text: str) -> None:
        """Stored, with its vector, when it returns."""
        told = self.do(self._client.store(text))
        self.refused += told["status"] != "stored"

    def settle(self) -> None:
        """Nothing is left to do."""

    def recall(self, question: str, limit: int) -> list[str]:
        """The contents of the rows."""
        return [row["content"] for row in self.do(self._client.recall(question, limit=limit))]


@contextmanager
def opened(folder: Path, model: str | None) -> Iterator[Side]:
    """A store in the folder. Without a model: in an environment without the packages that would load one."""
    os.environ.update(SETTINGS, MEMORY_STORAGE_PATH=str(folder), HOME=str(folder))
    if model:
        os.environ["MEMORY_EMBEDDING_MODEL"] = model
    with asyncio.Runner() as loop:
        client = MemoryClient(namespace="project:bench")
        side = Trw(loop, client)
        side.do(client.__aenter__())
        yield side
        if model:  # raises where no vectors are kept: then the figures would be of words alone
            side.do(client.reembed())
        side.do(client.__aexit__(None, None, None))


if __name__ == "__main__":
    main(opened)
