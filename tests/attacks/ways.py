"""One store through each entrypoint: the same verbs, answered by the same documents, whoever is asked.

What `--json` prints is what a way answers; what is refused is a Refusal with the words of the error.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple, Self
from unittest.mock import patch

import pytest
from typer.main import get_command

from tallystick import Memory
from tallystick.entrypoints import documents
from tallystick.entrypoints.cli import app
from tallystick.errors import TallystickError

SECONDS = 120
NAMESPACE, ACTOR = "app", "agent:tester"
READS = {"recall", "search", "get", "history", "blame", "why", "namespaces", "log", "receipts", "sql", "status"}
"""The commands that can be asked to write nothing."""

Document = dict[str, Any]


class Refusal(Exception):
    """An error that a person or a program was told: its kind, its words, and the place of the first bad entry."""

    def __init__(self, error: Document) -> None:
        super().__init__(f"{error['kind']}: {error['message']}")
        self.kind: str = error["kind"]
        self.message: str = error["message"]
        self.log: str | None = error["log"]
        self.position: int | None = error["position"]


class Place(NamedTuple):
    """Where a store and its keys lie."""

    store: Path
    keys: Path

    @property
    def derived(self) -> list[Path]:
        """The files that follow from the log: views and vectors, and what lies beside them."""
        return [file for file in self.store.iterdir() if not file.name.startswith(("log.db", "lease"))]

    def copy_to(self, folder: Path) -> Place:
        """Another store like this one, keys and mark included. Nobody may have this one open."""
        folder.mkdir(parents=True)
        return Place(
            Path(shutil.copytree(self.store, folder / "store")), Path(shutil.copytree(self.keys, folder / "keys"))
        )


class Way(ABC):
    """A way in. `state` says what has been done to the store, for the message of a test that fails."""

    def __init__(self, place: Place, *, read_only: bool = False, **settings: str) -> None:
        self.place = place
        self.read_only = read_only
        self.settings = {"namespace": NAMESPACE, "actor": ACTOR, "model": "none", **settings}
        self.state = "live"

    @abstractmethod
    def ask(self, verb: str, *arguments: Any, **options: Any) -> Document:
        """Carry out a verb. Raises Refusal."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the store; it is opened again by the next verb."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- what scenarios say

    def store(self, text: str, **fields: Any) -> str:
        """Store a text, and return the memory's id."""
        return str(self.ask("store", text, **fields)["id"])

    def store_all(self, rows: Sequence[str | Document]) -> list[str]:
        """Store many, and return their ids."""
        stored = self.ask("store_many", rows)["rows"]
        assert [row["reason"] for row in stored if row["outcome"] == "refused"] == []
        return [str(row["id"]) for row in stored]

    def ask_rows(self, rows: Sequence[str | Document]) -> list[Document]:
        """Store many, some of which may be refused: what came of each."""
        return list(self.ask("store_many", rows)["rows"])

    def texts(self, question: str, **options: Any) -> list[str]:
        """What a recall hands out, best first."""
        return [hit["memory"]["text"] for hit in self.ask("recall", question, **options)["hits"]]

    def ids(self, question: str, **options: Any) -> list[str]:
        """The ids that a recall hands out, best first."""
        return [hit["memory"]["id"] for hit in self.ask("recall", question, **options)["hits"]]

    def listed(self, **options: Any) -> list[str]:
        """The texts that a search lists."""
        return [memory["text"] for memory in self.ask("search", **options)["memories"]]

    def get(self, memory: str) -> Document:
        """One memory."""
        return self.ask("get", memory)

    def context(self, question: str, **options: Any) -> str:
        """What a recall renders for a prompt."""
        return str(self.ask("context", question, **options)["text"])

    def refusal(self, verb: str, *arguments: Any, **options: Any) -> Refusal:
        """What a verb is refused with; it is an error that it is not."""
        try:
            answer = self.ask(verb, *arguments, **options)
        except Refusal as refusal:
            return refusal
        raise AssertionError(f"{verb} was not refused ({self.state}): {answer}")

    # ---- what can be done to the store in between

    def lose_views(self) -> None:
        """Delete everything that follows from the log, and have it made anew: the rebuild of last resort."""
        self.close()
        for file in self.place.derived:
            file.unlink()
        self.ask("replay")


class Python(Way):
    """The class Memory, open as long as the way is in use."""

    name = "python"
    _memory: Memory | None = None

    @property
    def memory(self) -> Memory:
        """The open Memory."""
        if self._memory is None:
            settings: dict[str, Any] = dict(self.settings)
            self._memory = Memory.open(
                self.place.store, keys=self.place.keys, read_only=self.read_only, create=True, **settings
            )
        return self._memory

    def ask(self, verb: str, *arguments: Any, **options: Any) -> Document:
        """Call the method, and write down what it returns as the command line would."""
        try:
            answer = _VERBS[verb](self, *arguments, **options)
        except TallystickError as error:
            raise Refusal(documents.failed(error)["error"]) from error
        return _written(answer)

    def close(self) -> None:
        """Close the Memory."""
        if self._memory is not None:
            memory, self._memory = self._memory, None
            memory.close()


_VERBS: Mapping[str, Callable[..., Document]] = {
    "store": lambda way, *a, **o: documents.outcome(way.memory.store(*a, **o)),
    "store_many": lambda way, rows, **o: documents.outcomes(way.memory.store_many(rows, **o)),
    "store_conversation": lambda way, rows, **o: documents.outcomes(way.memory.store_conversation(rows, **o)),
    "recall": lambda way, *a, **o: documents.recalled(way.memory.recall(*a, **o)),
    "context": lambda way, *a, tokens=1000, **o: documents.context(way.memory.recall(*a, **o).context(tokens)),
    "search": lambda way, **o: documents.listed(way.memory.search(**o)),
    "get": lambda way, *a: documents.record(way.memory.get(*a)),
    "history": lambda way, *a: documents.history(way.memory.history(*a)),
    "blame": lambda way, *a: documents.blamed(way.memory.blame(*a)),
    "why": lambda way, *a: documents.explained(way.memory.why(*a)),
    "used": lambda way, receipt, *a: documents.receipt(way.memory.used(receipt, a)),
    "namespaces": lambda way: documents.namespaces(way.memory.namespaces()),
    "log": lambda way, **o: documents.log(way.memory.log(**o)),
    "receipts": lambda way, **o: documents.receipts(way.memory.receipts(**o)),
    "sql": lambda way, *a: documents.selected(way.memory.sql(*a)),
    "status": lambda way: documents.status(way.memory.status()),
    "verify": lambda way, **o: documents.verified(way.memory.verify(**o)),
    "replay": lambda way: documents.rebuilt(Memory.replay(way.place.store, keys=way.place.keys)),
    "export": lambda way, *a: documents.exported((Path(*a), way.memory.export(*a))),
    "rename": lambda way, *a: documents.renamed(way.memory.rename(*a)),
    "merge": lambda way, *a: documents.renamed(way.memory.merge(*a)),
    **{
        verb: lambda way, *a, _verb=verb, **o: documents.outcome(getattr(way.memory, _verb)(*a, **o))
        for verb in ("revise", "forget", "restore", "link", "unlink", "protect", "pin")
    },
}


class CommandLine(Way):
    """The command `tallystick`, each verb a run of its own, inside this process."""

    name = "command line"

    def close(self) -> None:
        """Nothing is open between two runs."""

    def ask(self, verb: str, *arguments: Any, **options: Any) -> Document:
        """Run the command, and read the document that it prints."""
        if verb == "context":
            verb, options = "recall", {"context": 1000, **options}
        text = None
        if verb == "store":  # on standard input, since no argument of a process can hold every text
            text, arguments = arguments[0] + "\n", ("-",)
        if verb in ("store_many", "store_conversation"):
            rows: Any = arguments[0]
            text, arguments = "".join(json.dumps(row) + "\n" for row in rows), ()
        written = [verb.replace("_", "-"), "--json", *_options(options)]
        written += ["--read-only"] if self.read_only and verb in READS else []
        code, out, error = self.run([*written, "--", *arguments], text)
        assert out, f"{written} ended with {code} and printed nothing: {error}"
        document: Document = json.loads(out)
        if "error" in document:
            raise Refusal(document["error"])
        return document

    def run(self, arguments: Sequence[str], text: str | None = None) -> tuple[int, str, str]:
        """Run `tallystick ARGUMENTS`: its exit code, what it printed, and its errors."""
        self._require_store()
        given = b"" if text is None else text.encode("utf-8", "surrogatepass")
        out, errors = io.StringIO(), io.StringIO()
        with (
            patch.dict(os.environ, self._variables()),
            patch("sys.stdin", io.TextIOWrapper(io.BytesIO(given), "utf-8")),
        ):
            with redirect_stdout(out), redirect_stderr(errors), pytest.raises(SystemExit) as ended:
                _COMMAND.main(list(arguments), prog_name="tallystick")
        return int(str(ended.value.code or 0)), out.getvalue(), errors.getvalue()

    def _variables(self) -> dict[str, str]:
        settings = {**self.settings, "path": str(self.place.store), "keys": str(self.place.keys)}
        return {f"TALLYSTICK_{name.upper()}": value for name, value in settings.items()}

    def _require_store(self) -> None:
        if not self.place.store.exists():
            settings: dict[str, Any] = dict(self.settings)
            Memory.open(self.place.store, keys=self.place.keys, **settings).close()


class Process(CommandLine):
    """The command `tallystick` as a program of its own."""

    name = "process"

    def run(self, arguments: Sequence[str], text: str | None = None) -> tuple[int, str, str]:
        """As the command line in this process."""
        return self.run_bytes(arguments, b"" if text is None else text.encode("utf-8", "surrogatepass"))

    def run_bytes(self, arguments: Sequence[str], given: bytes) -> tuple[int, str, str]:
        """As `run`, with any bytes on the standard input."""
        self._require_store()
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", "from tallystick.entrypoints.cli import main; main()", *arguments],
            input=given,
            capture_output=True,
            timeout=SECONDS,
            env={**os.environ, **self._variables()},
            check=False,
        )
        return done.returncode, done.stdout.decode(), done.stderr.decode()


_COMMAND: Any = get_command(app)

WAYS: dict[str, type[Way]] = {"python": Python, "command line": CommandLine}


def everywhere(way: Way) -> Iterator[Way]:
    """Ways to the same store: as it is, opened again, by the other entrypoint, with views made anew, only read.

    To a command each run is a store that is opened again.
    """
    yield way
    way.close()
    if isinstance(way, Python):
        way.state = "opened again"
        yield way
        way.close()
    with _beside(way, CommandLine if isinstance(way, Python) else Python, "by the other entrypoint") as other:
        yield other
    way.lose_views()
    way.state = "its views deleted and made anew"
    yield way
    way.ask("verify", views=True)
    way.close()
    with _beside(way, Python, "only read", read_only=True) as reader:
        yield reader


def _beside(way: Way, kind: type[Way], state: str, *, read_only: bool = False) -> Way:
    other = kind(way.place, read_only=read_only, **way.settings)
    other.state = state
    return other


_WORDS = {
    "tags": "tag", "namespaces": "namespace", "kinds": "kind", "actors": "actor", "sources": "source",
    "until": "before", "metadata": "meta", "tags_added": "add-tag", "tags_removed": "remove-tag", "cleared": "clear",
}  # fmt: skip
"""What options of Memory are called on the command line, where it is something else."""


def _options(given: Mapping[str, Any]) -> Iterator[str]:
    for name, value in given.items():
        option = f"--{_WORDS.get(name, name).replace('_', '-')}"
        if name == "on":
            yield from () if value else ("--off",)
        elif value is True:
            yield option
        elif name == "where":
            yield f"{option}={json.dumps(value)}"
        elif name == "metadata":
            yield from (f"{option}={key}={each}" for key, each in value.items())
        elif value is not None:
            yield from (f"{option}={each}" for each in ([value] if not isinstance(value, list | tuple) else value))


def _written(document: Document) -> Document:
    """A document as a program reads it."""
    read: Document = json.loads(json.dumps(document, default=lambda value: value.hex()))
    return read
