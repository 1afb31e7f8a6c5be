"""Starting is cheap: what is heavy is loaded when it is first used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"numpy", "onnxruntime", "rich", "snowballstemmer", "sqlite_vec", "structlog", "tokenizers", "typer"}
MODELS = {"numpy", "onnxruntime", "rich", "sqlite_vec", "structlog", "tokenizers"}
RUN = "import sys; from tallystick.entrypoints.cli import app; app(sys.argv[1:], standalone_mode=False); "
ALLOWED_HELP, ALLOWED_STORE, ALLOWED_STATUS = 0.2, 0.6, 0.6
TRIES = 5


def loaded_by(program: str, *arguments: str) -> set[str]:
    """The modules that a program has loaded when it ends."""
    done = subprocess.run(
        [sys.executable, "-c", program + "print(); print(*sys.modules)", *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.splitlines()[-1].split())


def seconds(*arguments: str) -> float:
    """The processor time of a command as a process of its own: the least of a few runs, whatever else runs beside."""
    least = float("inf")
    for _ in range(TRIES):
        before = os.times()
        subprocess.run([sys.executable, "-c", RUN, *arguments], stdout=subprocess.DEVNULL, check=True)
        after = os.times()
        least = min(least, after.children_user + after.children_system - before.children_user - before.children_system)
    return least


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small store with its keys, and compiled code as a user has it."""
    folder = tmp_path_factory.mktemp("place")
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder / "compiled")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    for arguments in (["init", "--keys", "keys"], ["store", "Use WAL mode"], ["status"]):
        subprocess.run(
            [sys.executable, "-c", RUN, *arguments], cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=True
        )
    return folder


@pytest.fixture
def store(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same as the current directory, with the model that is installed."""
    monkeypatch.chdir(place)
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(place / "compiled"))


def test_importing_tallystick_loads_nothing_heavy() -> None:
    """`import tallystick` loads no numeric, model, vector, stemming or terminal library."""
    loaded = loaded_by("import sys, tallystick; ")
    assert "tallystick" in loaded
    assert HEAVY.intersection(loaded) == set()


def test_help_loads_nothing_but_the_command_line() -> None:
    """`tallystick --help` loads neither the store's libraries nor what checks settings."""
    assert loaded_by(RUN, "--help").intersection(HEAVY - {"typer"} | {"pydantic", "eventsourcing", "nacl"}) == set()


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    "command", [["store", "Use WAL mode"], ["status"], ["log"], ["doctor"]], ids=lambda command: command[0]
)
def test_a_command_that_asks_no_question_loads_no_model(command: list[str]) -> None:
    """What does not search by meaning waits for no model, no numeric library, and no terminal's."""
    assert loaded_by(RUN, *command).intersection(MODELS) == set()


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    ("command", "allowed"),
    [(["--help"], ALLOWED_HELP), (["store", "Use WAL mode"], ALLOWED_STORE), (["status"], ALLOWED_STATUS)],
    ids=["help", "store", "status"],
)
def test_a_command_is_quick(command: list[str], allowed: float) -> None:
    """Processor time, everything included, on a small store: what a hook may cost on every line that it stores."""
    assert seconds(*command) < allowed
