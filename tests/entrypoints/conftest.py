"""An empty project directory, and the command line run in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from tallystick.entrypoints.cli import app

from .commands import document_of
from .schema import differences


class Answer(NamedTuple):
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """Standard output as the one JSON document it is."""
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found


Tally = Callable[..., Answer]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current directory, without a model."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TALLYSTICK_MODEL", "none")
    return folder


@pytest.fixture
def tally(project: Path) -> Tally:
    """Run `tallystick ARGUMENTS` in the project, inside this process. A document it prints is as it is described."""

    def run(*arguments: str, text: str | bytes | None = None) -> Answer:
        done = CliRunner().invoke(app, list(arguments), input=text, catch_exceptions=False)
        answer = Answer(done.exit_code, done.stdout, done.stderr)
        if "--json" in arguments and answer.out:
            described = "An error" if "error" in answer.document else document_of(arguments)
            assert differences(described, answer.document) == []
        return answer

    return run


@pytest.fixture
def store(tally: Tally) -> Tally:
    """The same, in a project that has a store."""
    assert tally("init").code == 0
    return tally
