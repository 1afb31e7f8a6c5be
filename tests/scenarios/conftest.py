"""What the scenarios share: a store with its keys, and real processes that work on it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import pytest

from tallystick import Memory

SECONDS = 60
"""No worker may take longer to do what a test waits for."""


class Place(NamedTuple):
    """Where a store and its keys lie."""

    store: Path
    keys: Path

    def open(self, **options: Any) -> Memory:
        """The memory that is there, without a model; made where there is none."""
        return Memory.open(self.store, keys=self.keys, model="none", **options)


class Worker:
    """A process that runs one script of this folder, told what to do and read from line by line."""

    def __init__(self, script: str, arguments: Sequence[object], environment: dict[str, str] | None) -> None:
        self._errors: str | None = None
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", str(Path(__file__).with_name(script)), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            start_new_session=True,
        )

    def say(self, line: str = "go") -> Self:
        """Send the worker a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self

    def hear(self) -> Any:
        """The worker's next line, which is JSON; the test fails with the worker's errors where there is none."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.endswith("\n"):
            pytest.fail(f"the worker ended: {self.finish()[1]}")
        return json.loads(line)

    def finish(self) -> tuple[list[Any], str]:
        """What the worker still says, once it has ended of itself, and what it wrote of errors."""
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        late = threading.Timer(SECONDS, os.killpg, (self.process.pid, signal.SIGKILL))
        late.start()
        lines = self.process.stdout.readlines()
        errors = self.process.stderr.read()
        self.process.wait()
        late.cancel()
        return [json.loads(line) for line in lines if line.endswith("\n")], errors

    def succeed(self) -> list[Any]:
        """What the worker still says, once it has ended well."""
        said, errors = self.finish()
        assert self.process.returncode == 0, errors
        return said

    def kill(self) -> list[Any]:
        """End the process, and those it has started, with SIGKILL, and return what it had said by then."""
        os.killpg(self.process.pid, signal.SIGKILL)
        assert self.process.stdout is not None
        lines = self.process.stdout.readlines()
        self.process.wait()
        return [json.loads(line) for line in lines if line.endswith("\n")]


class Start:
    """Starts workers, and ends those that a test leaves behind."""

    def __init__(self) -> None:
        self._workers: list[Worker] = []

    def __call__(self, script: str, *arguments: object, environment: dict[str, str] | None = None) -> Worker:
        """Start a script of this folder in a process of its own."""
        worker = Worker(script, arguments, environment)
        self._workers.append(worker)
        return worker

    def end(self) -> None:
        """End what still runs."""
        for worker in self._workers:
            if worker.process.poll() is None:
                worker.kill()
            for stream in (worker.process.stdin, worker.process.stdout, worker.process.stderr):
                if stream is not None:
                    stream.close()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A place where nothing is yet."""
    return Place(tmp_path / "store", tmp_path / "keys")


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts workers that do not outlive the test."""
    starting = Start()
    yield starting
    starting.end()
