"""The export for people: dated, attributed, what is current, and no stored text is anything but text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tallystick import Memory
from tallystick.errors import Refused
from tallystick.queries.markdown import entry, file_of, plain

HOSTILE = (
    "<script>alert(1)</script>\n\n# Heading\n```\n</code></pre>\r\n- [x](javascript:y) ![z](http://e)\n\n\x1b[31mred"
)


@pytest.fixture
def memory() -> Iterator[Memory]:
    """A store of its own."""
    with Memory.temporary(actor="user:ana") as opened:
        yield opened


def test_each_memory_is_dated_and_attributed(memory: Memory, tmp_path: Path) -> None:
    """When it happened, who said it, what else is known of it, and its text; in the file of its namespace."""
    turn = memory.store(
        "See you in June", author="Ida", thread="s1", occurred_at="2023-05-08T13:56:00Z", tags=["a", "b"]
    )
    memory.forget(memory.store("Gone").id)
    memory.store("Company A", key="employer", namespace="org/acme")
    memory.store("Company B", key="employer", namespace="org/acme")
    assert memory.export(tmp_path / "out", markdown=True) == 2
    index = (tmp_path / "out" / "index.md").read_text(encoding="utf-8")
    files = dict(re.findall(r"- \[(.*)\]\((.*)\): 1", index))
    assert set(files) == {"default", "org/acme"}
    said = (tmp_path / "out" / files["default"]).read_text(encoding="utf-8")
    assert said.startswith("# default\n\n## 2023-05-08 13:56 UTC, Ida\n\nclaimed by user:ana · stored 2")
    assert f" · thread s1 · tags a, b · id {turn.id}\n\n    See you in June\n" in said
    assert "Gone" not in said
    company = (tmp_path / "out" / files["org/acme"]).read_text(encoding="utf-8")
    assert "    Company B\n" in company
    assert "Company A" not in company


def test_a_namespace_is_called_what_it_is_called_now(memory: Memory, tmp_path: Path) -> None:
    """What was stored under a name that a namespace had is in the file of the name that it has."""
    memory.store("stored before")
    memory.rename("default", "notes")
    memory.store("stored after", namespace="notes")
    memory.export(tmp_path / "out", markdown=True)
    assert re.findall(r"- \[(.*)\]", (tmp_path / "out" / "index.md").read_text(encoding="utf-8")) == ["notes"]


def test_what_came_in_is_attributed_to_a_claim(memory: Memory, tmp_path: Path) -> None:
    """Whom an imported file names is not said to have spoken here."""
    memory.store("Prefer tea")
    memory.export(tmp_path / "out")
    with Memory.temporary(actor="user:mover") as other:
        other.import_(tmp_path / "out")
        other.export(tmp_path / "folder", markdown=True)
    (page,) = [each for each in (tmp_path / "folder").iterdir() if each.name != "index.md"]
    assert "UTC, user:ana, as an imported file says\n" in page.read_text(encoding="utf-8")


def test_no_stored_text_is_markup(memory: Memory) -> None:
    """Every line of a text is indented as code, of names each telling character is written as a number."""
    stored = memory.store(HOSTILE, author=HOSTILE, tags=[HOSTILE], subject=HOSTILE, thread=HOSTILE)
    shown = entry(memory.get(stored.id))
    head, code = shown.split("\n\n    ", 1)
    assert len(head.splitlines()) == 4
    assert all(re.fullmatch(r"(## )?(&#\d+;|[\w ,.:/·-])*", line) and "_" not in line for line in head.splitlines())
    assert all(line.startswith("    ") for line in code.splitlines()[1:])
    assert "\x1b" not in shown
    assert "\r" not in shown
    kinds = [token.type for token in MarkdownIt("commonmark", {"html": True}).parse(shown)]
    assert kinds == [
        "heading_open", "inline", "heading_close", "paragraph_open", "inline", "paragraph_close", "code_block",
    ]  # fmt: skip
    assert "<script" not in MarkdownIt("commonmark", {"html": True}).render(shown)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_name_is_one_harmless_line(name: str) -> None:
    """Whatever a name holds, what is left of it could not begin or end anything in Markdown or HTML."""
    assert re.fullmatch(r"(&#\d+;|[\w ,.:/-])*", plain(name))
    assert "_" not in plain(name)


@given(st.lists(st.text("ab/:.ÄA漢-", min_size=1, max_size=8), unique=True, max_size=5))
def test_each_namespace_has_a_file_of_its_own(names: list[str]) -> None:
    """On a file system that takes A for a as well, and none leaves the folder."""
    files = [file_of(name) for name in names]
    assert len({file.lower() for file in files}) == len(names)
    assert all(re.fullmatch(r"[a-z0-9-]{9,80}\.md", file) for file in files)


def test_only_a_new_folder_is_written(memory: Memory, tmp_path: Path) -> None:
    """Nothing that is there is mixed with an export; an empty folder is as good as none."""
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    for taken in (tmp_path, tmp_path / "file"):
        with pytest.raises(Refused, match="Name a new folder"):
            memory.export(taken, markdown=True)
    assert memory.export(tmp_path / "empty", markdown=True) == 0
    assert "There are none" in (tmp_path / "empty" / "index.md").read_text(encoding="utf-8")
