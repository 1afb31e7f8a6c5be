"""The model of a store: what was chosen for it, whole or not at all, and seen by all who have it open."""

from pathlib import Path

import pytest

from tallystick.errors import ModelMissing, Refused
from tallystick.projections.models.choice import (
    FILE,
    Choice,
    Chosen,
    as_written,
    begin,
    finish,
    read_choice,
    write_choice,
)
from tallystick.projections.models.known import OFFLINE, RERANKER, space_of


def test_where_nothing_was_chosen_it_is_the_default(tmp_path: Path) -> None:
    """A store without the file is as any new store."""
    assert read_choice(tmp_path) == Choice("auto", "", "")


@pytest.mark.parametrize("name", ["bge-small-en-v1.5", "/a folder/ü/🎉\x7f\"'\\", "none"])
def test_a_choice_is_read_as_it_was_written(tmp_path: Path, name: str) -> None:
    """Whatever characters a path has; and nothing else is left in the folder."""
    choice = Choice(name, "00ff", "next")
    write_choice(tmp_path, choice)
    assert read_choice(tmp_path) == choice
    assert [file.name for file in tmp_path.iterdir()] == [FILE]
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("written", ["model = ", "model = 3\n", 'colour = "red"\n', "\0", 'model = "a"\nmodel = "b"\n'])
def test_a_spoilt_file_is_refused(tmp_path: Path, written: str) -> None:
    """What can't be read never stands for another model."""
    (tmp_path / FILE).write_text(written)
    with pytest.raises(Refused, match=r"settings\.toml can't be read.*[Dd]elete"):
        read_choice(tmp_path)


def test_a_change_is_put_in_force_in_one_step(tmp_path: Path) -> None:
    """From the first choice on the next model is written down, and takes the place of the one in force at the end."""
    begin(tmp_path, "one")
    assert read_choice(tmp_path) == Choice("auto", "", "one")
    finish(tmp_path, "one", "1111")
    begin(tmp_path, "two")
    assert read_choice(tmp_path) == Choice("one", "1111", "two")
    finish(tmp_path, "two", None)
    assert read_choice(tmp_path) == Choice("two", "", "")


def test_who_was_overtaken_puts_nothing_in_force(tmp_path: Path) -> None:
    """Another process has chosen another model meanwhile: its choice stands."""
    begin(tmp_path, "one")
    begin(tmp_path, "two")
    with pytest.raises(Refused, match="Another model was chosen meanwhile: two"):
        finish(tmp_path, "one", "1111")
    assert read_choice(tmp_path) == Choice("auto", "", "two")


def test_another_process_s_choice_is_seen(tmp_path: Path) -> None:
    """Whoever has the store open asks for the model in force each time."""
    chosen = Chosen(tmp_path, "auto")
    assert (chosen.name, chosen.choice.next_model) == ("auto", "")
    for name in ("one", "two"):
        write_choice(tmp_path, Choice(name, "1111"))
        assert (chosen.name, chosen.space) == (name, "1111")
    (tmp_path / FILE).unlink()
    assert chosen.name == "auto"


def test_the_caller_s_model_goes_before_the_choice(tmp_path: Path) -> None:
    """A model that is named on opening is the one that is used."""
    write_choice(tmp_path, Choice("one", "1111"))
    chosen, space = Chosen(tmp_path, OFFLINE.name), space_of(OFFLINE)
    assert space is not None
    assert (chosen.name, chosen.space) == (OFFLINE.name, space.id)
    assert (Chosen(tmp_path, "/folder").name, Chosen(tmp_path, "/folder").space) == ("/folder", None)


def test_a_folder_is_written_down_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path would mean another folder to a process that stands elsewhere."""
    (tmp_path / "model").mkdir()
    monkeypatch.chdir(tmp_path)
    assert as_written("./model") == str(tmp_path / "model")
    assert (as_written("auto"), as_written("none")) == ("auto", "none")


def test_what_makes_no_vectors_is_not_chosen() -> None:
    """A reranker is refused by name, and what is not here is said to be missing."""
    with pytest.raises(Refused, match="makes no vectors"):
        as_written(RERANKER.name)
    with pytest.raises(ModelMissing):
        as_written("no-such-model")
