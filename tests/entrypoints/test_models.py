"""The commands for models, as a person gives them: from an empty directory, without a network, and with a store."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tallystick.projections.models import places
from tallystick.projections.models.fetch import HUB_VARIABLE
from tallystick.projections.models.known import KNOWN

from ..projections.stub_embedders import Stubs
from .conftest import Tally


@pytest.fixture
def stubs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stubs:
    """The models `old`, which is used where nothing is said, and `new`."""
    found = Stubs(tmp_path / "models")
    monkeypatch.setenv("TALLYSTICK_MODEL", "auto")
    monkeypatch.setattr(places, "resolve_embedder", found.resolve)
    return found


@pytest.fixture
def own(project: Path) -> Path:
    """A folder in the project with the files of a model, as far as hashes go."""
    (project / "own").mkdir()
    for name in ("model.onnx", "tokenizer.json"):
        (project / "own" / name).write_bytes(b"{}")
    return project / "own"


def test_without_a_store_it_is_shown_what_is_here(tally: Tally) -> None:
    """Every model that is known, each on one line; and no store is made."""
    found = tally("models", "list")
    assert (found.code, found.err) == (0, "")
    assert [line.split()[0] for line in found.out.splitlines()[1:]] == [known.name for known in KNOWN]
    assert tally("models", "use", "none").code == 1
    assert not Path(".tallystick").exists()


def test_a_model_is_put_in_force_and_the_old_one_dropped(store: Tally, stubs: Stubs) -> None:
    """The answers say what was made, what is in force, and what was thrown away."""
    store("store-many", text='"a harbour"\n"an office"\n')
    store("embed")
    done = store("models", "use", str(stubs.new))
    assert (done.code, done.out) == (0, f"2 vectors made; {stubs.new} is the model of this store\n")
    listed = {model["name"]: model for model in store("models", "list", "--json").document["models"]}
    assert (listed[str(stubs.new)]["use"], listed[str(stubs.new)]["vectors"]) == ("in force", 2)
    assert re.search(r"^by meaning +yes, with the model .*new", store("status").out, re.M)
    assert "in force" in store("models", "drop", str(stubs.new)).err
    space = stubs.embedders[str(stubs.old)].space.id
    assert store("models", "drop", space).out == f"2 vectors of {space} thrown away\n"
    assert "no vectors of that model" in store("models", "drop", space).err


def test_what_goes_before_the_choice_is_said(store: Tally, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who sets TALLYSTICK_MODEL is told that the choice does not show here."""
    monkeypatch.setenv("TALLYSTICK_MODEL", "none")
    done = store("models", "use", "auto")
    assert "`model` is none, and goes before it" in done.out
    assert store("models", "use", "auto", "--json").document["overruled_by"] == "none"


def test_a_pack_travels(tally: Tally, own: Path) -> None:
    """Packed here, fetched there: the manifest's hash is the same, and the list shows it in the cache."""
    packed = tally("models", "pack", "./own", "out/own.zip")
    assert "there: tallystick models fetch own.zip" in packed.out
    fetched = tally("models", "fetch", "out/own.zip")
    assert "next: tallystick models use own" in fetched.out
    assert len({re.search(r"SHA-256 +([0-9a-f]{64})", done.out)[1] for done in (packed, fetched)}) == 1  # type: ignore[index]
    assert "own" in {model["name"] for model in tally("models", "list", "--json").document["models"]}


def test_a_file_that_was_changed_is_named(tally: Tally, own: Path) -> None:
    """Verify ends with 1, and shows which of all the files it is; with 0 where all are as they must be."""
    tally("models", "pack", "./own", "pack")
    assert tally("models", "verify", "./pack").code == 0
    Path("pack/model.onnx").write_bytes(b"changed")
    done = tally("models", "verify", "./pack")
    assert done.code == 1
    assert re.search(r"CHANGED .*model\.onnx", done.out)
    Path("pack/model.onnx").unlink()
    assert re.search(r"GONE .*model\.onnx", tally("models", "verify", "./pack").out)


def test_what_nothing_is_known_of_is_said(tally: Tally, own: Path) -> None:
    """A folder without pins or manifest is shown with its hashes, and not called good."""
    done = tally("models", "verify", "./own")
    assert (done.code, done.out.count("not pinned")) == (0, 2)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fetch", "all-MiniLM-L6-v2"], "can't be reached"),
        (["fetch", "owner/name"], "OWNER/NAME@COMMIT"),
        (["use", "nowhere"], "no embedding model 'nowhere'"),
        (["use", "ms-marco-MiniLM-L-12-v2"], "makes no vectors"),
        (["pack", "nowhere", "out"], "no embedding model 'nowhere'"),
        (["verify", "nowhere"], "no embedding model 'nowhere'"),
        (["drop", "0000000000000000"], "no embedding model"),
    ],
)
def test_what_can_t_be_done_is_one_line(
    store: Tally, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    """No network, no such model, no such vectors: said with what to do, and the command ends with 1."""
    monkeypatch.setenv(HUB_VARIABLE, "http://127.0.0.1:1")
    done = store("models", *arguments)
    assert done.code == 1
    assert re.fullmatch(rf"tallystick: .*{re.escape(said)}.*\n", done.err)


def test_a_recall_is_judged_where_that_is_asked_for(store: Tally, monkeypatch: Any) -> None:
    """The option reaches the ranking, and shows in why."""

    class Judge:
        id = runtime = "stub"

        def score(self, question: str, passage: str) -> float:
            return float("harbour" in passage)

    monkeypatch.setattr(places, "resolve_reranker", Judge)
    store("store-many", text='"the office by the river"\n"the office by the harbour"\n')
    found = store("recall", "the office", "--rerank", "--json").document
    assert found["hits"][0]["memory"]["text"] == "the office by the harbour"
    assert "rerank" in store("why", found["receipt"]).out
