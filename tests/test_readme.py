"""What the README says can be done, can be done as printed."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tallystick import Memory

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
SECONDS = 120


def test_the_readme_shows_code() -> None:
    """A README without an example, or with one this test can't find, would pass all the others."""
    assert BLOCKS


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_code_runs_as_printed(block: str, home: Path, tmp_path: Path) -> None:
    """Each Python block runs by itself in an empty folder, with an empty home and no settings."""
    script = home / "example.py"
    script.write_text(block, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-I", "-W", "error", str(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", ["README.md", "docs/command-line.md"])
def test_the_first_question_is_answered(page: str) -> None:
    """The text that a page stores first is relevant to the question it asks first: a newcomer sees it found."""
    told = (ROOT / page).read_text(encoding="utf-8")
    (text, *_), (question, *_) = (re.findall(rf'\b{verb}[ (]"([^"]+)"', told) for verb in ("store", "recall"))
    with Memory.temporary(model="auto") as memory:
        if memory.status().model == "none":
            pytest.skip("relevance is not told: tallystick[offline-models] is not installed")
        memory.store(text)
        memory.store("The office is in Lisbon")
        recall = memory.recall(question)
        assert recall.hits[0].text == text
        assert not recall.nothing_relevant


def test_make_commands_are_targets() -> None:
    """Every `make ...` of the README is a target of the Makefile."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"(?:^|`)make ([a-z-]+)", README, re.MULTILINE))
    assert {"demo", "test"} <= named <= targets


def test_extras_exist() -> None:
    """Every extra that an install command of the README names is one of ours: pip only warns of others."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = set(re.findall(r"pip install .*?\[([a-z-]+)\]", README))
    assert named
    assert named <= set(project["optional-dependencies"])


def test_links_lead_somewhere() -> None:
    """Every relative link of the README leads to a file or folder of the checkout."""
    links = re.findall(r"\]\(([^)#:]+)[^):]*\)", README)
    assert [link for link in links if not (ROOT / link).exists()] == []
