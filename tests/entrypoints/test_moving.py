"""`export` and `import` on the command line: out of one store, into another, and what people are told of it."""

from __future__ import annotations

import json
from pathlib import Path

from .conftest import Tally


def test_out_of_one_store_and_into_another(store: Tally, project: Path) -> None:
    """What is exported from one is what the other has, under its own names, and a second time changes nothing."""
    store("store", "Prefer tea", "--tag", "drinks")
    store("forget", store("store", "Prefer coffee", "--json").document["id"])
    shown = store("export", "out.jsonl")
    assert shown.code == 0
    assert "wrote 2 memories to out.jsonl" in shown.out
    assert store("export", "out.jsonl", "--json").document == {"path": "out.jsonl", "memories": 2}
    other = project / "other"
    other.mkdir()
    assert store("init", str(other), "-C", str(other)).code == 1  # the project file is there
    (project / ".tallystick.toml").unlink()
    assert store("init", str(other)).code == 0
    first = store("import", "out.jsonl", "-C", str(other), "--json")
    assert (first.code, first.document) == (
        0, {"new": 2, "updated": 0, "known": 0, "refused": 0, "refusals": None, "vectors": 0},
    )  # fmt: skip
    again = store("import", "file", "out.jsonl", "-C", str(other))
    assert again.code == 0
    assert "known         2\n" in again.out
    (hit,) = store("recall", "prefer", "-C", str(other), "--json").document["hits"]
    assert hit["memory"]["imported"]["source"] == "human"
    shown = store("get", hit["memory"]["id"], "-C", str(other))
    assert "it began as " in shown.out
    events = store("history", hit["memory"]["id"], "-C", str(other), "--json").document["events"]
    assert [event["body"]["events"][0]["body"]["text"] for event in events] == ["Prefer tea"]
    assert "came in from an export" in store("history", hit["memory"]["id"], "-C", str(other)).out


def test_a_row_that_is_refused_makes_it_end_with_1(store: Tally, project: Path) -> None:
    """The rest comes in, and the file with the reasons is named."""
    store("store", "Prefer tea")
    store("export", "out.jsonl")
    head, row, end = (project / "out.jsonl").read_text().splitlines()
    bad = row.replace('"namespace":"default"', '"namespace":"a b"')
    (project / "in.jsonl").write_text("\n".join((head, bad, row, end.replace("1", "2"))) + "\n")
    shown = store("import", "in.jsonl")
    assert shown.code == 1
    assert "refused       1, with reasons in in.jsonl.rejected.jsonl\n" in shown.out
    (refused,) = [json.loads(line) for line in (project / "in.jsonl.rejected.jsonl").read_text().splitlines()]
    assert refused["line"] == 2
    assert json.loads(refused["row"]) == json.loads(bad)


def test_a_file_that_is_no_export_makes_it_end_with_1(store: Tally, project: Path) -> None:
    """One line says what is wrong, and what to do."""
    (project / "notes.txt").write_text("Dear diary\n")
    for name, message in (("notes.txt", "not JSON"), ("nowhere", "There is no file nowhere")):
        shown = store("import", name)
        assert shown.code == 1
        assert message in shown.err
    assert "is no export" in store("export", "notes.txt").err
    assert store("import").code == 2


def test_a_folder_for_people(store: Tally, project: Path) -> None:
    """--markdown writes a folder that can be read; one that is there is refused."""
    store("store", "Prefer tea", "--namespace", "org/acme")
    shown = store("export", "folder", "--markdown", "--json")
    assert shown.document == {"path": "folder", "memories": 1}
    assert "org/acme" in (project / "folder" / "index.md").read_text(encoding="utf-8")
    assert store("export", "folder", "--markdown").code == 1
