"""What of a folder of sentence-transformers is read and hashed, and what is refused before anything is loaded."""

import json
from pathlib import Path

import pytest

from tallystick.errors import ModelMissing
from tallystick.projections.models.known import Known
from tallystick.projections.models.places import is_of_torch, load
from tallystick.projections.models.torch_folder import counts, hashes_of, require_no_code, require_pinned_files

MODULES = [{"type": "sentence_transformers.models.Transformer"}, {"type": "sentence_transformers.models.Pooling"}]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder as sentence-transformers writes it, as far as names go."""
    (tmp_path / "1_Pooling").mkdir()
    for name in ("config.json", "model.safetensors", "tokenizer.json", "1_Pooling/config.json", "notes.md", "run.py"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "modules.json").write_text(json.dumps(MODULES))
    (tmp_path / "data_config.json").write_text("[]")
    require_no_code(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "path", ["config.json", "model.safetensors", "vocab.txt", "1_Pooling/config.json", "spiece.model"]
)
def test_what_is_read_counts(path: str) -> None:
    """Weights, settings and words, here and one folder below."""
    assert counts(path)


@pytest.mark.parametrize(
    "path", ["pytorch_model.bin", "modeling.py", "a/b/config.json", "onnx/config.json", "README.md", "x.pkl"]
)
def test_what_is_not_read_does_not_count(path: str) -> None:
    """No code, no pickles, no other runtime's files, nothing far below."""
    assert not counts(path)


def test_the_hashes_are_those_of_what_can_change_a_vector(folder: Path) -> None:
    """A changed word list makes another tokenizer, a changed setting another model, a note nothing."""
    before = hashes_of(folder)
    (folder / "notes.md").write_text("changed")
    assert hashes_of(folder) == before
    (folder / "tokenizer.json").write_text("[]")
    assert (hashes_of(folder).model, hashes_of(folder).tokenizer == before.tokenizer) == (before.model, False)
    (folder / "1_Pooling" / "config.json").write_text("[]")
    assert hashes_of(folder).model != before.model


def test_files_that_are_not_the_pinned_ones_are_refused(folder: Path) -> None:
    """Of a model that is known the files are those of its pins, all of them."""
    hashes = hashes_of(folder)
    require_pinned_files(folder, hashes, Known("small", {"model.safetensors": hashes.of("model.safetensors")}))
    for pins in ({"model.safetensors": "0" * 64}, {"absent.json": "0" * 64}):
        with pytest.raises(ModelMissing, match="models fetch small"):
            require_pinned_files(folder, hashes, Known("small", pins))


@pytest.mark.parametrize("kind", ["modeling.MyTransformer", "os.system", "sentence_transformersx.y", ""])
def test_code_beside_a_model_is_never_run(folder: Path, kind: str) -> None:
    """A module that is none of sentence-transformers' own would be read from the folder, and run."""
    (folder / "modules.json").write_text(json.dumps([*MODULES, {"type": kind}]))
    assert is_of_torch(folder)
    with pytest.raises(ModelMissing, match="never done"):
        load(folder)


def test_a_class_beside_a_model_is_never_loaded(folder: Path) -> None:
    """A setting that names a class in the folder would have it run."""
    (folder / "config.json").write_text('{"auto_map": {"AutoModel": "modeling.MyModel"}}')
    with pytest.raises(ModelMissing, match="AutoModel.*never done"):
        require_no_code(folder)


@pytest.mark.parametrize("content", ["", "{", "[1]", '[{"kind": 1}]', "3"])
def test_modules_that_can_t_be_read_are_refused(folder: Path, content: str) -> None:
    """A folder whose list of modules is spoilt is an error that names the file."""
    (folder / "modules.json").write_text(content)
    with pytest.raises(ModelMissing, match="modules and settings .* can't be read"):
        require_no_code(folder)
