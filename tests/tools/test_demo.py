"""The demo: a good show on any repository, that leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[2] / "tools" / "demo.py"
SECONDS = 120

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git on this computer")


def git(repository: Path, *arguments: str) -> None:
    """Run git in a repository."""
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.com")
    subprocess.run(["git", "-C", str(repository), *identity, *arguments], capture_output=True, check=True)


def repository(folder: Path, *messages: str) -> Path:
    """A repository with one commit for each message."""
    made = folder / "repository"
    made.mkdir()
    git(made, "init", "-q")
    for message in messages:
        git(made, "commit", "-q", "--allow-empty", "-m", message)
    return made


def demo(subject: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the demo, with a folder of its own for temporary files, which it must leave empty."""
    temporary = folder / "temporary"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary), "TALLYSTICK_NAMESPACE": "not/for/the/demo"}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(DEMO), str(subject)],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert list(temporary.iterdir()) == []
    return done


def test_the_show_on_a_history(tmp_path: Path, home: Path) -> None:
    """Everything is shown: hits, why, verification, equal digests, an untouched copy, and four refusals by name."""
    subject = repository(
        tmp_path,
        "Parse calendar files with broken time zones",
        "Cache rendered thumbnails between requests",
        "Retry uploads when the connection drops",
    )
    before = sorted(subject.rglob("*"))
    done = demo(subject, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    shown = " ".join(done.stdout.split())
    assert shown.count("That commit came first") == 3
    assert shown.count("Receipt ") == 3
    assert "Equal." in shown
    assert shown.count("tallystick: ") == 4
    assert "its payload is not the one that was signed" in shown
    assert shown.count("it was cut, or an older copy was put in its place") == 2
    assert "it is not signed by the key in force" in shown
    assert "Four of four refused" in shown
    assert "\x1b" not in shown
    assert sorted(subject.rglob("*")) == before
    assert list(home.iterdir()) == []


def test_the_show_without_a_history(tmp_path: Path) -> None:
    """A repository without commits gets notes of the demo's own, and says so."""
    done = demo(repository(tmp_path), tmp_path)
    assert done.returncode == 0, done.stderr
    assert "notes of its own" in done.stdout
    assert "Four of four refused" in done.stdout


@pytest.mark.parametrize("name", ["nowhere", "."])
def test_what_is_no_repository_ends_with_2(tmp_path: Path, name: str) -> None:
    """Without a git repository the demo says so in one line, and how to name one."""
    done = demo(tmp_path / name, tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "make demo REPO=PATH" in done.stderr
