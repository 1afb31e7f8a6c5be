"""Another model for a store: its vectors are made beside those in force, which answer until all are there."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tallystick import Memory
from tallystick.errors import NotFound, Refused, Unavailable
from tallystick.projections.models import places
from tallystick.projections.models.choice import Choice, read_choice
from tallystick.projections.models.known import KNOWN
from tallystick.projections.vector_cache import VectorCache

from .stub_embedders import Stubs, Words

NOTES = [f"Note {number} about the office in town {number % 7}" for number in range(60)]


@pytest.fixture
def stubs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stubs:
    """The models `old`, which is used where nothing is said, and `new`."""
    found = Stubs(tmp_path / "models")
    monkeypatch.setattr(places, "resolve_embedder", found.resolve)
    return found


@pytest.fixture
def memory(tmp_path: Path, stubs: Stubs) -> Iterator[Memory]:
    """A store with memories that have vectors of the old model."""
    with open_(tmp_path) as opened:
        opened.store_many(NOTES)
        opened.embed()
        yield opened


def open_(tmp_path: Path) -> Memory:
    """The store."""
    return Memory.open(tmp_path / "store", keys=tmp_path / "keys", model="auto")


def space(memory: Memory) -> str:
    """The space that the next recall answers from."""
    search = memory._opened.searching()
    assert search is not None
    return search.space


def vectors(memory: Memory) -> dict[str, int]:
    """How many vectors there are of each model."""
    return memory._opened.vectors().spaces()


def test_the_new_model_is_in_force_when_all_is_made(memory: Memory, stubs: Stubs) -> None:
    """Then recall answers from the new space; the old vectors are kept."""
    old, new = (each.space.id for each in stubs.embedders.values())
    assert space(memory) == old
    told: list[tuple[int, int]] = []
    switch = memory.use_model(str(stubs.new), progress=lambda done, of: told.append((done, of)))
    assert (switch.space, switch.vectors, switch.missing) == (new, len(NOTES), 0)
    assert told == [(n, len(NOTES)) for n in range(len(NOTES) + 1)]
    assert space(memory) == new
    assert vectors(memory) == {old: len(NOTES), new: len(NOTES)}
    assert memory.recall("the office in town 3").degraded == ()
    assert memory.use_model(str(stubs.old)).vectors == 0
    assert space(memory) == old


def test_recall_answers_from_the_old_vectors_meanwhile(memory: Memory, stubs: Stubs) -> None:
    """While the new ones are made every recall is as before, in this process and in others; none mixes the two."""
    before = [hit.id for hit in memory.recall("the office in town 3", limit=20)]
    old, new = (each.space.id for each in stubs.embedders.values())
    stubs.embedders[str(stubs.new)].seconds = 0.01
    changing = Thread(target=memory.use_model, args=(str(stubs.new),))
    changing.start()
    seen = 0
    while changing.is_alive() and vectors(memory).get(new, 0) < len(NOTES) - 5:
        recall = memory.recall("the office in town 3", limit=20)
        assert ([hit.id for hit in recall], recall.degraded) == (before, ())
        assert space(memory) == old
        seen += 1
    changing.join()
    assert seen > 3
    assert space(memory) == new


def test_who_has_the_store_open_follows(memory: Memory, stubs: Stubs, tmp_path: Path) -> None:
    """Another process's next recall is answered from the new vectors, without being opened again."""
    with open_(tmp_path) as other:
        other.recall("town 3")
        memory.use_model(str(stubs.new))
        assert space(other) == stubs.embedders[str(stubs.new)].space.id
        assert other.recall("the office in town 3").degraded == ()


def test_it_is_done_in_parts(memory: Memory, stubs: Stubs) -> None:
    """For so many seconds at most; what is made is kept, and nothing is in force before its end."""
    stubs.embedders[str(stubs.new)].seconds = 0.005
    parts = [memory.use_model(str(stubs.new), seconds=0.05)]
    assert read_choice(memory._opened.installation.path) == Choice("auto", "", str(stubs.new))
    assert space(memory) == stubs.embedders[str(stubs.old)].space.id
    while parts[-1].missing:
        parts.append(memory.use_model(str(stubs.new), seconds=0.05))
    assert len(parts) > 2
    assert sum(part.vectors for part in parts) == len(stubs.embedders[str(stubs.new)].made) == len(NOTES)
    assert space(memory) == stubs.embedders[str(stubs.new)].space.id


def test_embed_brings_it_to_its_end(memory: Memory, stubs: Stubs) -> None:
    """What makes missing vectors makes those of the next model too."""
    memory.use_model(str(stubs.new), seconds=0)
    told: list[int] = []
    assert memory.embed(told.append) == len(NOTES)
    assert told[0] >= told[-1] == 0
    assert memory.embed() == 0
    assert space(memory) == stubs.embedders[str(stubs.new)].space.id


def test_what_changes_meanwhile_is_part_of_it(memory: Memory, stubs: Stubs) -> None:
    """What is stored, revised or forgotten while vectors are made has, or has not, a vector of the new model."""
    memory.use_model(str(stubs.new), seconds=0)
    first, second, *_ = memory.search(limit=5)
    memory.forget(first.id)
    memory.revise(second.id, text="Another text about a harbour")
    memory.store("A new text about a lighthouse")
    memory.embed()
    made = stubs.embedders[str(stubs.new)].made
    assert {"Another text about a harbour", "A new text about a lighthouse"} <= set(made)
    assert memory.status().missing_vectors == 0


def test_another_choice_gives_the_first_one_up(memory: Memory, stubs: Stubs) -> None:
    """Choosing the model in force again ends a change that has begun; what was made is kept."""
    memory.use_model(str(stubs.new), seconds=0)
    memory.use_model("auto")
    assert read_choice(memory._opened.installation.path).next_model == ""
    assert space(memory) == stubs.embedders[str(stubs.old)].space.id


def test_closing_ends_it(memory: Memory, stubs: Stubs, tmp_path: Path) -> None:
    """A change of the model in another thread stops after the text it is at, and goes on when the store is opened."""
    stubs.embedders[str(stubs.new)].seconds = 0.05
    raised: list[Exception] = []

    def change() -> None:
        try:
            memory.use_model(str(stubs.new))
        except Unavailable as error:
            raised.append(error)

    changing = Thread(target=change)
    changing.start()
    while not stubs.embedders[str(stubs.new)].made:
        changing.join(0.01)
    memory.close()
    changing.join()
    made = len(stubs.embedders[str(stubs.new)].made)
    assert (len(raised), made < len(NOTES)) == (1, True)
    with open_(tmp_path) as again:
        assert again.embed() == len(NOTES) - made


def test_words_alone_can_be_chosen(memory: Memory) -> None:
    """Then no model is loaded, and recall says so."""
    assert memory.use_model("none").vectors == 0
    assert "no embedding model" in memory.recall("office").degraded[0]
    memory.use_model("auto")
    assert memory.recall("office").degraded == ()


def test_old_vectors_are_thrown_away_when_that_is_asked(memory: Memory, stubs: Stubs) -> None:
    """By folder or by space; never those in force, and not twice."""
    old, new = (each.space.id for each in stubs.embedders.values())
    memory.use_model(str(stubs.new))
    for model in (str(stubs.new), new):
        with pytest.raises(Refused, match="in force"):
            memory.drop_model(model)
    assert memory.drop_model(old) == len(NOTES)
    assert vectors(memory) == {new: len(NOTES)}
    with pytest.raises(NotFound, match="models list"):
        memory.drop_model(str(stubs.old))
    assert memory.recall("the office in town 3").degraded == ()


def test_the_chosen_model_s_vectors_stay_whatever_this_process_uses(
    memory: Memory, stubs: Stubs, tmp_path: Path
) -> None:
    """Who has opened the store for words alone does not throw away what all others answer from."""
    memory.use_model(str(stubs.new))
    with Memory.open(tmp_path / "store", keys=tmp_path / "keys", model="none") as other:
        with pytest.raises(Refused, match="in force"):
            other.drop_model(stubs.embedders[str(stubs.new)].space.id)
        assert other.drop_model(stubs.embedders[str(stubs.old)].space.id) == len(NOTES)


def test_dropping_the_next_model_gives_the_change_up(memory: Memory, stubs: Stubs) -> None:
    """Half a change is taken back whole."""
    memory.use_model(str(stubs.new), seconds=0)
    memory.drop_model(str(stubs.new))
    assert read_choice(memory._opened.installation.path).next_model == ""
    assert list(vectors(memory)) == [stubs.embedders[str(stubs.old)].space.id]


def test_the_room_of_dropped_vectors_is_given_back(memory: Memory, stubs: Stubs) -> None:
    """The file is smaller than before, once it is written back."""
    path = memory._opened.installation.path / "vectors.db"
    memory.use_model(str(stubs.new))
    memory.drop_model(str(stubs.old))
    memory.close()
    small = path.stat().st_size
    with Memory.open(path.parent, keys=path.parent.parent / "keys", model="auto") as again:
        again.use_model(str(stubs.old))
    assert small < path.stat().st_size


def test_the_list_says_what_the_store_has(memory: Memory, stubs: Stubs) -> None:
    """The models that are known, the one in force, and what is left of one that has no name any more."""
    memory.use_model(str(stubs.new))
    listed = {model.name: model for model in memory.models()}
    assert {known.name for known in KNOWN} <= set(listed)
    new = listed[str(stubs.new)]
    assert (new.source, new.use, new.vectors, new.space) == (
        "path", "in force", len(NOTES), stubs.embedders[str(stubs.new)].space.id,
    )  # fmt: skip
    assert [(model.space, model.vectors) for model in memory.models() if not model.name] == [
        (stubs.embedders[str(stubs.old)].space.id, len(NOTES))
    ]


# ---- the same text, the same bytes


def kept(memory: Memory, model: Any) -> dict[tuple[bytes, bytes], tuple[bytes, bytes]]:
    """Each vector of a model in the store, with its tokens' codes, by memory and text."""
    cache: VectorCache = memory._opened.vectors()
    found = cache.find(model.space.id, cache.keys(model.space.id))
    values, codes = cache.vectors([*found.values()]), cache.tokens([*found.values()])
    return {key: (values[number], codes.get(number, b"")) for key, number in found.items()}


@pytest.mark.parametrize("name", ["answerai-colbert-small-v1", "bge-small-en-v1.5"])
def test_the_same_text_gives_the_same_bytes_however_it_came(tmp_path: Path, name: str) -> None:
    """Alone, in a bulk load, by a change of the model, and when vectors.db is gone and all is made again."""
    if places.resolve_embedder("auto") is None:
        pytest.skip("the real models are not checked: tallystick[offline-models] is not installed")
    embedder = places.resolve_embedder(name)
    texts = [*NOTES[:8], "Ana moved to Lisbon in May. " * 20, "猫が好き", "?"]
    store, keys = tmp_path / "store", tmp_path / "keys"
    alone: dict[bytes, tuple[bytes, bytes]] = {}
    with Memory.open(store, keys=keys, model=name) as memory:
        for text in texts:
            memory.store(text, namespace="alone")
            memory.embed()
        alone = {key[1]: made for key, made in kept(memory, embedder).items()}
        memory.store_many([{"text": text} for text in texts], namespace="bulk")
        memory.embed()
        loaded = kept(memory, embedder)
    assert len(loaded) == 2 * len(texts)
    assert {key[1]: made for key, made in loaded.items()} == alone
    (store / "vectors.db").unlink()
    Memory.replay(store, keys=keys)
    with Memory.open(store, keys=keys, model=name) as memory:
        memory.embed()
        assert kept(memory, embedder) == loaded
    shutil.copytree(store, tmp_path / "copy")
    for file in (tmp_path / "copy").glob("vectors.db*"):
        file.unlink()
    with Memory.open(tmp_path / "copy", keys=keys, model="auto") as memory:
        memory.use_model(name)
        assert kept(memory, embedder) == loaded


def test_stub_embedders_are_of_other_spaces(stubs: Stubs) -> None:
    """What these tests stand on: the two models can't be mistaken for each other."""
    old, new = stubs.embedders.values()
    assert isinstance(old, Words)
    assert (old.space.id, old.space.dimensions) != (new.space.id, new.space.dimensions)
