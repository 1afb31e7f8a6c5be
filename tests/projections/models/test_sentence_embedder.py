"""The embedder of sentence-transformers over real weights; with torch only, by `make test-models`."""

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

from tallystick import Memory
from tallystick.errors import ModelMissing
from tallystick.projections.models.known import MINILM
from tallystick.projections.models.places import cache_folder, load, resolve_embedder
from tallystick.projections.models.sentence_embedder import SentenceEmbedder

from ...contracts.test_embedder import minilm


@pytest.fixture(scope="module")
def folder() -> Path:
    """The folder of all-MiniLM-L6-v2."""
    found = minilm()
    if found is None or importlib.util.find_spec("sentence_transformers") is None:
        pytest.skip("sentence-transformers with real weights is not checked: `make test-models` does that")
    return found


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    """A copy of it that a test may spoil."""
    return Path(shutil.copytree(folder, tmp_path / "model"))


def test_without_the_extra_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of sentence-transformers where that is not installed is an error, not words alone."""
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    (tmp_path / "modules.json").write_text(json.dumps([{"type": "sentence_transformers.models.Transformer"}]))
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(ModelMissing, match=r"needs sentence_transformers: install tallystick\[sentence-transformers\]"):
        load(tmp_path)


def test_it_is_what_the_library_makes(folder: Path) -> None:
    """The vector of a text is that of plain `SentenceTransformer.encode`, of length one."""
    library = importlib.import_module("sentence_transformers")
    text = "Ana moved to Lisbon in May."
    plain = library.SentenceTransformer(str(folder), device="cpu").encode(text, normalize_embeddings=True)
    assert numpy.allclose(SentenceEmbedder(folder).document(text).vector, plain, atol=1e-6)


def test_it_has_the_pinned_files_and_a_name(folder: Path) -> None:
    """By path and by pin it is the same model, under its name."""
    embedder = SentenceEmbedder(folder, MINILM)
    assert (embedder.space.model, embedder.space.dimensions) == (MINILM.name, 384)
    assert embedder.space == SentenceEmbedder(folder).space


def test_another_file_is_another_space_or_refused(copy: Path) -> None:
    """A changed setting makes another space; a changed pinned file of the model that is known is refused."""
    before = SentenceEmbedder(copy).space
    settings = copy / "sentence_bert_config.json"
    settings.write_text(settings.read_text().replace("256", "128"))
    assert SentenceEmbedder(copy).space.id != before.id
    (copy / "tokenizer.json").write_bytes((copy / "tokenizer.json").read_bytes() + b"\n")
    with pytest.raises(ModelMissing, match=r"tokenizer\.json is gone or not the pinned one"):
        SentenceEmbedder(copy, MINILM)


@pytest.mark.parametrize("file", ["model.safetensors", "config.json"])
def test_a_broken_folder_is_refused(copy: Path, file: str) -> None:
    """A file cut short, or gone, is an error that names the folder; pickled weights are no way out."""
    (copy / file).write_bytes((copy / file).read_bytes()[:100])
    with pytest.raises(ModelMissing, match="can't be (loaded|read)"):
        SentenceEmbedder(copy)
    (copy / file).rename(copy / "pytorch_model.bin")
    with pytest.raises(ModelMissing, match="can't be (loaded|read)"):
        SentenceEmbedder(copy)


def test_from_the_cache_it_is_the_model_of_a_store(folder: Path, tmp_path: Path) -> None:
    """Known by name once it is in the cache: a store is switched to it and answers by meaning."""
    shutil.copytree(folder, cache_folder(MINILM.name))
    with Memory.open(tmp_path / "store", keys=tmp_path / "keys", model="auto") as memory:
        memory.store_many(["The cat sat on the mat", "Use WAL mode for concurrent readers"])
        assert memory.use_model(MINILM.name).vectors == 2
        recall = memory.recall("How do I let many processes read at once?")
        assert (recall.degraded, recall.hits[0].text) == ((), "Use WAL mode for concurrent readers")
        assert memory.status().missing_vectors == 0


def test_the_same_text_gives_the_same_bytes_in_a_bulk_load(folder: Path, tmp_path: Path) -> None:
    """Each text is embedded alone, however it came."""
    texts = [f"Note {number}: the meeting moved to room {number * 7}." for number in range(20)]
    embedder = resolve_embedder(str(folder))
    assert embedder is not None
    alone = {embedder.document(text).vector.astype("<f2").tobytes() for text in texts}
    with Memory.open(tmp_path / "store", keys=tmp_path / "keys", model=str(folder)) as memory:
        memory.store_many(texts)
        memory.embed()
        cache = memory._opened.vectors()
        found = cache.find(embedder.space.id, cache.keys(embedder.space.id))
        assert set(cache.vectors([*found.values()]).values()) == alone


def test_nothing_of_torch_is_loaded_for_other_models() -> None:
    """Whoever uses an ONNX model, or none, never waits for torch."""
    program = (
        "import sys, tallystick.projections.models.places; print({'torch', 'sentence_transformers'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
