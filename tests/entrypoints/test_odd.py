"""Odd values on the command line, and odd places to run it in: one line, an exit code of ours, never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tallystick.entrypoints.output import Column, laid_out

from .commands import COMMANDS
from .conftest import Tally

HUGE, NOT_UTF8 = "9" * 23, "\udcff9"
MORE = [sys.executable, "-c", "from tallystick.entrypoints.cli import main; main()"]


ODD = (HUGE, NOT_UTF8)
"""Numbers beyond 64 bit, and bytes that are no text."""


def odd_calls(command: str) -> Iterator[list[str]]:
    """The command with each of its parameters odd in turn, and something for those that it needs."""
    parameters = [p for p in COMMANDS[command].params if p.name != "help"]
    needed = {p.name: f"{p.opts[0]}=r" if p.param_type_name == "option" else "abcd" for p in parameters if p.required}
    for parameter in parameters:
        option = parameter.param_type_name == "option"
        odd = ODD if parameter.name != "where" else (*ODD, "[" * 3000)
        for value in () if getattr(parameter, "is_flag", False) else odd:
            given = needed | {parameter.name: f"{parameter.opts[0]}={value}" if option else value}
            options = [each for each in given.values() if each.startswith("-")]
            yield [*command.split(), *options, "--", *(each for each in given.values() if not each.startswith("-"))]


@pytest.mark.parametrize("command", COMMANDS)
def test_odd_values_end_as_they_should(store: Tally, command: str) -> None:
    """Whatever a command is given, it does what it can or says on one line why not."""
    store("store", "something")
    for call in odd_calls(command):
        answer = store(*call)
        assert answer.code in (0, 1, 2), call
        if answer.code == 1 and command not in ("import git", "verify", "doctor"):
            assert len(answer.err.splitlines()) == 1, (call, answer)


def run(how: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`tallystick` as a process of its own, its streams as a shell says; `"$@"` stands for the command."""
    return subprocess.run(
        ["sh", "-c", f'"$@" {how}', "sh", *MORE, *arguments],
        capture_output=True, text=True, check=False, timeout=60, env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


STREAMS = {
    "closed output": (">&-", ["status"], 0),
    "closed output of a document": (">&-", ["status", "--json"], 0),
    "closed errors": ("2>&-", ["status"], 0),
    "closed errors with something to say": ("2>&-", ["get", "zz"], 1),
    "closed output and errors": (">&- 2>&-", ["log"], 0),
    "closed input": ("<&-", ["store", "-"], 1),
    "closed input that is not wanted": ("<&-", ["init", "other"], 1),
    "closed input for a passphrase": ("<&-", ["keys", "backup", "file"], 1),
    "all closed": ("<&- >&- 2>&-", ["store", "Stored in silence"], 0),
    "a full device": (">/dev/full", ["status"], 1),
    "a full device for a document": (">/dev/full", ["status", "--json"], 1),
    "a full device for errors": ("2>/dev/full", ["get", "zz"], 1),
    "a reader that leaves": ("| head -n 0", ["log"], 0),
}


@pytest.mark.parametrize("case", STREAMS)
def test_odd_streams(store: Tally, case: str) -> None:
    """A standard stream that is closed, full, or read by nobody."""
    how, arguments, code = STREAMS[case]
    done = run(how, *arguments)
    assert done.returncode == code, done
    assert "Traceback" not in done.stdout + done.stderr
    assert "Exception ignored" not in done.stderr
    assert len(done.stderr.splitlines()) <= 1


def test_closed_streams_do_not_become_the_store(store: Tally) -> None:
    """A file that is opened takes the lowest free number: what is printed must not end up in it."""
    assert run(">&- 2>&- <&-", "store", "Kept whole").returncode == 0
    assert run("", "verify", "--views").returncode == 0
    assert "Kept whole" in run("", "recall", "kept").stdout


def test_a_locale_without_letters(store: Tally) -> None:
    """Texts come out as they are, or written out where the locale can't hold them."""
    store("store", "Ærøskøbing is a town")
    for environment in ({"LC_ALL": "C"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}):
        done = run("", "recall", "town", **environment)
        assert (done.returncode, done.stderr) == (0, "")
        assert "is a town" in done.stdout


def test_a_store_whose_path_is_not_utf8(store: Tally, project: Path) -> None:
    """Paths are bytes to the system, and so they are to us."""
    name = os.fsdecode(b"\xff\xfestore")
    (project / ".tallystick").rename(name)
    assert run("", "-C", name, "store", "Kept anywhere").returncode == 0
    assert "Kept anywhere" in run("", "-C", name, "recall", "kept").stdout


def test_a_current_directory_that_is_gone(store: Tally, project: Path) -> None:
    """It is said, in one line."""
    (project / "gone").mkdir()
    done = subprocess.run(
        ["sh", "-c", 'cd gone && rmdir ../gone && "$@"', "sh", *MORE, "status"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "tallystick: The current directory is gone. Use one that is there.\n"


@pytest.mark.parametrize("width", range(12))
def test_a_terminal_of_almost_no_width(width: int) -> None:
    """Lines are cut to what there is, and the cutting ends."""
    columns = [Column("when"), Column("text", wide=True)]
    lines = laid_out(columns, [["2026", "a text of some words"], ["2026", "数据库"]], width)
    assert all(len(line) <= max(1, width) for line in lines)
