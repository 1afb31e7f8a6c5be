"""Models that travel without a network: packed with hashes, taken in verified or not at all."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tallystick.errors import ModelMissing, Refused, TallystickError
from tallystick.projections.models.manifest import check
from tallystick.projections.models.packs import install, pack
from tallystick.projections.models.places import cache, cached, find


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder with the files of an ONNX model, as far as hashes go."""
    folder = tmp_path / "my-model"
    folder.mkdir()
    (folder / "model.onnx").write_bytes(b"graph" * 1000)
    (folder / "tokenizer.json").write_bytes(b"{}")
    (folder / "notes.txt").write_bytes(b"not read by anything")
    return folder


@pytest.mark.parametrize("name", ["pack", "pack.zip"])
def test_what_is_packed_comes_into_the_cache(model: Path, tmp_path: Path, name: str) -> None:
    """A folder or a file brings the model, under its name, with every file as it was."""
    packed = pack(str(model), tmp_path / "far" / name)
    installed = install(packed.path)
    assert (installed.model, installed.sha256, installed.files) == ("my-model", packed.sha256, 2)
    assert cached() == ["my-model"]
    place = find("my-model")
    assert place is not None
    assert (place.folder / "model.onnx").read_bytes() == (model / "model.onnx").read_bytes()
    assert all(each.good and each.pinned for each in check("my-model", place.folder))
    assert install(packed.path) == installed


def test_a_pack_is_used_where_it_lies(model: Path, tmp_path: Path) -> None:
    """A packed folder is a model's folder: its path names it."""
    packed = pack(str(model), tmp_path / "pack")
    place = find(str(packed.path))
    assert place is not None and place.source == "path"


def test_one_model_gives_one_archive(model: Path, tmp_path: Path) -> None:
    """Packed again, elsewhere and later, the file is the same to the byte."""
    one, other = (pack(str(model), tmp_path / f"{name}.zip") for name in "ab")
    assert one.path.read_bytes() == other.path.read_bytes()


def test_a_pack_replaces_nothing(model: Path, tmp_path: Path) -> None:
    """What is there already is not written over."""
    pack(str(model), tmp_path / "pack")
    with pytest.raises(Refused, match="there already"):
        pack(str(model), tmp_path / "pack")


def changed(pack: Path) -> None:
    """A byte of the weights is another."""
    (pack / "model.onnx").write_bytes(b"g" * 5000)


def lost(pack: Path) -> None:
    """A file is missing."""
    (pack / "tokenizer.json").unlink()


def unlisted(pack: Path) -> None:
    """There is no manifest."""
    (pack / "manifest.json").unlink()


def spoilt(pack: Path) -> None:
    """The manifest is no JSON."""
    (pack / "manifest.json").write_text("{")


def reaching_out(pack: Path) -> None:
    """The manifest names a file outside of the folder."""
    (pack / "manifest.json").write_text('{"name": "x", "files": {"../../evil": "%s"}}' % ("0" * 64))


def named_out(pack: Path) -> None:
    """The manifest's name leads out of the cache."""
    file = pack / "manifest.json"
    file.write_text(file.read_text().replace('"my-model"', '"../evil"'))


def posing(pack: Path) -> None:
    """The pack calls itself a model that is known, with other files."""
    file = pack / "manifest.json"
    file.write_text(file.read_text().replace('"my-model"', '"bge-small-en-v1.5"'))


@pytest.mark.parametrize("zipped", [False, True], ids=["folder", "file"])
@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (changed, ModelMissing), (lost, TallystickError), (unlisted, Refused), (spoilt, Refused),
        (reaching_out, Refused), (named_out, ModelMissing), (posing, ModelMissing),
    ],
)  # fmt: skip
def test_a_pack_that_is_not_whole_leaves_nothing(
    model: Path, tmp_path: Path, spoil: Callable[[Path], None], error: type[TallystickError], zipped: bool
) -> None:
    """Whatever is wrong with it, nothing comes into the cache or anywhere else."""
    source = pack(str(model), tmp_path / "pack").path
    spoil(source)
    if zipped:
        with zipfile.ZipFile(tmp_path / "pack.zip", "w") as archive:
            for file in source.iterdir():
                archive.write(file, file.name)
        source = tmp_path / "pack.zip"
    before = set(tmp_path.rglob("*"))
    with pytest.raises((error, OSError) if spoil is lost else error):
        install(source)
    assert not cache().exists() or list(cache().iterdir()) == []
    assert set(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("kept", [0, 10, 3000])
def test_an_archive_that_was_cut_is_refused(model: Path, tmp_path: Path, kept: int) -> None:
    """A copy that broke off brings nothing."""
    file = pack(str(model), tmp_path / "pack.zip").path
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(Refused, match=r"no whole archive.*models pack"):
        install(file)
    assert list(cache().iterdir()) == []


def test_a_model_that_is_not_whole_is_not_packed(model: Path, tmp_path: Path) -> None:
    """What its own manifest says no to does not travel on."""
    packed = pack(str(model), tmp_path / "pack").path
    changed(packed)
    with pytest.raises(ModelMissing, match="not the pinned one"):
        pack(str(packed), tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_the_newer_pack_takes_the_place_of_the_older(model: Path, tmp_path: Path) -> None:
    """A model that is in the cache is exchanged whole."""
    install(pack(str(model), tmp_path / "old").path)
    (model / "model.onnx").write_bytes(b"better graph")
    new = install(pack(str(model), tmp_path / "new").path)
    assert (new.path / "model.onnx").read_bytes() == b"better graph"
    assert [path.name for path in cache().iterdir()] == ["my-model"]
