"""Recalls on record, asked again: the same answers, or what changed and under what."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tallystick import Memory
from tallystick.errors import Refused
from tallystick.events import recorder
from tallystick.events.kinds import Recalled
from tallystick.opened import OpenStore
from tallystick.projections.models import places
from tallystick.queries import stages
from tallystick.queries.recall import _constants

from .projections.test_vector_search import PATIENCE, WordEmbedder
from .queries.test_rerank import Judge

LONG_AGO, BETWEEN, LATE = "2020-01-01T00:00:00Z", "2021-06-01T00:00:00Z", "2022-01-01T00:00:00Z"


@pytest.fixture
def memory() -> Iterator[Memory]:
    """A memory of its own, by words alone."""
    with Memory.temporary(namespace="a") as opened:
        yield opened


@pytest.fixture
def embedder(monkeypatch: pytest.MonkeyPatch) -> WordEmbedder:
    """The model of whoever asks for one."""
    found = WordEmbedder()
    monkeypatch.setattr(places, "resolve_embedder", lambda model: None if model == "none" else found)
    return found


def lived(memory: Memory) -> list[str]:
    """A life of a store, with recalls of every sort in between; their receipts."""
    first = memory.store("The office is in Lisbon", key="office", valid_from=LONG_AGO, importance=0.9, author="Ana")
    memory.store_conversation([f"turn {n} about the office {'garden ' * n}" for n in range(5)], thread="t")
    recalls = [memory.recall("where is the office?"), memory.recall("office garden", limit=2)]
    memory.store("The office is in Porto", key="office", valid_from=LATE, tags=["place"])
    recalls += [
        memory.recall("office"),
        memory.recall("office", tags=["place"]),
        memory.recall("office", as_of=BETWEEN),
    ]
    recalls += [memory.recall("office", at_position=first.position), memory.at(first.position).recall("office")]
    known = memory.get(first.id).recorded_at
    recalls += [memory.recall("office", known_at=known, as_of=BETWEEN)]
    memory.store("Lunch in the office", expires_at=LONG_AGO)
    recalls += [memory.recall("office", status="expired"), memory.recall("office", since=LONG_AGO, until=LATE)]
    recalls += [memory.recall("office", without=["thread", "utility"], where={"author": "Ana"})]
    memory.rename("a", "b")
    memory.store("The office of b", namespace="b/c")
    recalls += [memory.recall("office", under="b"), memory.recall("office", namespaces=["a"]), memory.recall("nothing")]
    recalls += [memory.recall("office", under="b/nothing/there")]
    memory.forget(recalls[1].hits[0].id)
    recalls += [memory.recall("office garden")]
    return [recall.receipt or "" for recall in recalls]


def test_old_receipts_are_replayed_with_the_same_answers(tmp_path: Path) -> None:
    """Whatever has happened since, every recall of a life has the hits that are on record, in their order."""
    store: dict[str, Any] = {"keys": tmp_path / "keys", "namespace": "a", "model": "none"}
    with Memory.open(tmp_path / "store", **store) as memory:
        receipts = lived(memory)
    with Memory.open(tmp_path / "store", **store) as memory:
        memory.store("The office, the office and the office", namespace="b")
        found = memory.evaluate()
        assert [each.receipt for each in found.recalls] == receipts[::-1]
        assert {each.query: each for each in found.recalls if each.change != "same"} == {}
        assert all(before == now for before, now in (each.pipelines for each in found.recalls))
        assert memory.evaluate(limit=3).recalls == found.recalls[:3]


def test_a_difference_is_listed_where_the_ranking_is_another(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """With another constant the fingerprint is another, and what it changes is told recall by recall."""
    lived(memory)
    monkeypatch.setattr(stages, "QUESTION", -600.0)
    monkeypatch.setattr(stages, "CONTENT", -900.0)
    monkeypatch.setattr("tallystick.queries.recall._constants", _constants.__wrapped__)
    found = memory.evaluate()
    assert all(before != now for before, now in (each.pipelines for each in found.recalls))
    assert 0 < found.counts["reordered"] + found.counts["changed"] < len(found.recalls)
    assert found.counts["not asked"] == 0
    for each in found.recalls:
        assert (each.change == "same") == (each.before == each.now)
        assert (each.change == "reordered") == (each.before != each.now and {*each.before} == {*each.now})


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["store", "store", "store", "forget", "revise", "recall", "recall"]),
        st.integers(0, 9),
        st.sampled_from([None, None, "k1", "k2"]),
        st.sampled_from(["cat", "dog cat", "fish bird", "dog", "bird cat dog"]),
    ),
    min_size=3,
    max_size=14,
)


@pytest.mark.parametrize("model", ["none", "words"])
@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_any_history_is_replayed_as_it_was(
    embedder: WordEmbedder, model: str, steps: list[tuple[str, int, str | None, str]]
) -> None:
    """Wherever the fingerprint is the same and nothing was missing, by words and by meaning."""
    assert embedder.space.model == "words"
    with Memory.temporary(model=model) as memory:
        there: list[str] = []
        for act, n, key, text in [*steps, ("recall", 0, None, "cat dog")]:
            try:
                if act == "store":
                    there.append(
                        memory.store(f"{text} {len(there)}", key=key, valid_from=LONG_AGO if n % 2 else None).id
                    )
                elif act == "recall":
                    memory.embed(seconds=PATIENCE)
                    memory.recall(text, limit=1 + n % 4, as_of=LATE if key == "k1" else None)
                elif there and act == "forget":
                    memory.forget(there[n % len(there)])
                elif there:
                    memory.revise(there[n % len(there)], text=f"{text} anew {n}")
            except Refused:
                continue
        replayed = [each for each in memory.evaluate().recalls if not any(map(clear, each.degraded))]
        assert [each for each in replayed if each.change != "same"] == []
        assert all(before == now for before, now in (each.pipelines for each in replayed))


def clear(degraded: tuple[str, ...]) -> bool:
    """Whether something was missing that might be there the other time."""
    return any("yet" in said for said in degraded)


def test_all_of_it_costs_one_fold(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many positions recalls were asked at, one past grows through them; nothing of it is left."""
    for n in range(8):
        memory.store(f"office {n}")
        memory.recall("office", limit=99)
    opened: list[OpenStore] = []
    at = OpenStore.at

    def counted(self: OpenStore, position: int, model: str | None = None) -> OpenStore:
        opened.append(at(self, position, model))
        return opened[-1]

    monkeypatch.setattr(OpenStore, "at", counted)
    found = memory.evaluate()
    assert [len(each.now) for each in found.recalls] == [8, 7, 6, 5, 4, 3, 2, 1]
    assert len(opened) == 1
    assert not opened[0].installation.derived.exists()


def test_another_model_and_what_was_used(memory: Memory, embedder: WordEmbedder, tmp_path: Path) -> None:
    """Under a model that is there now, what was used is found at another rank; the vectors it makes are kept."""
    memory.store("cat fish")
    used = memory.store("cat bird and a long way round it").id
    recall = memory.recall("cat bird fish")
    memory.used(recall.receipt, [used])
    found = memory.evaluate(model=str(tmp_path))
    (each,) = found.recalls
    assert (each.used, found.model) == ((used,), str(tmp_path))
    assert each.first_used[0] == [hit.id for hit in recall].index(used) + 1
    assert each.pipelines[0] != each.pipelines[1]
    assert len(embedder.made) == 2
    memory.evaluate(model=str(tmp_path))
    assert len(embedder.made) == 2
    before, now = found.used_before, found.used_now
    assert before is not None
    assert now is not None
    assert (before.hit, now.hit) == (1.0, 1.0)
    assert (before.mrr, now.mrr) == tuple(1 / rank for rank in each.first_used)


def test_a_reranked_recall_is_asked_with_the_reranker(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was, unless that stage is left out; the model is loaded once for all."""
    for n in range(9):
        memory.store(f"Note {n} about the office")
    plain = memory.recall("note about the office")
    loaded: list[Judge] = []

    def load() -> Judge:
        loaded.append(Judge(plain.hits[-1].text.split()[1]))
        return loaded[-1]

    monkeypatch.setattr(places, "resolve_reranker", load)
    memory.recall("note about the office", rerank=True)
    found = memory.evaluate().recalls
    assert ([each.change for each in found], len(loaded)) == (["same", "same"], 1)
    assert found[0].pipelines[1] != found[1].pipelines[1]
    without = memory.evaluate(without=["rerank"]).recalls[0]
    assert (without.change, without.now) == ("reordered", tuple(hit.id for hit in plain))


def test_without_a_stage(memory: Memory) -> None:
    """Stages are left out besides those that a recall left out; one that is none is refused."""
    memory.store("The office is old", importance=1.0)
    memory.store("The office is old and quiet", importance=0.0)
    memory.recall("office old")
    memory.recall("office old", without=["content"])
    found = memory.evaluate(without=["utility"])
    both = memory.recall("office old", without=["content", "utility"]).hits
    assert found.without == ("utility",)
    assert found.recalls[0].now == tuple(hit.id for hit in both)
    with pytest.raises(Refused, match="no stage"):
        memory.evaluate(without=["fused"])


def test_nothing_is_changed_and_it_is_on_record(memory: Memory) -> None:
    """A store is as before, but for the read of each stream of recalls, since it hands out questions."""
    lived(memory)
    before, streams = memory.status().logs, {row.stream for row in memory.log(limit=999, kind="recalled")}
    memory.evaluate()
    after = memory.status().logs
    assert (after["memory"], after["access"]) == (before["memory"], before["access"] + len(streams))
    assert [receipt.verb for receipt in memory.receipts(limit=1)] == ["eval"]
    assert memory.evaluate(limit=1).recalls[0].query == "office garden"


def test_what_can_not_be_asked_again(memory: Memory) -> None:
    """A recall with a filter that there is no more is told with the reason, and stops no other."""
    memory.store("office")
    recall = memory.recall("office")
    event = memory.why(recall.receipt).recalled
    opened = memory._opened
    fields: list[dict[str, Any]] = [
        {"filters": {"colour": 1}},
        {"filters": {"without": ["shape"]}},
        {"log_root": bytes(32)},
        {"log_size": 99},
    ]
    for changed in fields:
        said: dict[str, Any] = {"nonce": None, "recorded_at": opened.session.now()} | changed
        assert isinstance(event, Recalled)
        opened.access.recalled(event.model_copy(update=said))
    found = memory.evaluate()
    reasons = [each.reason or "" for each in found.recalls]
    assert [each.change for each in found.recalls] == ["not asked"] * 4 + ["same"]
    for part, reason in zip(("no longer has", "no longer has", "shape is no stage", "colour"), reasons, strict=False):
        assert part in reason


def test_recalls_from_before_a_recovery(tmp_path: Path) -> None:
    """They were answered from a log that the store no longer has; those after it are asked as ever."""
    store, keys = tmp_path / "store", tmp_path / "keys"
    with Memory.open(store, keys=keys, model="none") as memory:
        memory.store("office")
        memory.recall("office")
        older = memory.snapshot(tmp_path / "snapshots").path
        memory.store("another office")
    Memory.restore_snapshot(older, store, over=True, keys=keys)
    Memory.recover(store, reason="an older copy", keys=keys)
    with Memory.open(store, keys=keys, model="none") as memory:
        memory.recall("office")
        assert [each.change for each in memory.evaluate().recalls] == ["same", "not asked"]


def test_of_a_store_that_is_only_read(tmp_path: Path) -> None:
    """It is folded beside the store, and nothing is on record; neither is there for a store without recalls."""
    store, keys = tmp_path / "store", tmp_path / "keys"
    with Memory.open(store, keys=keys, model="none") as memory:
        memory.store("office")
        assert memory.evaluate().recalls == ()
        memory.recall("office")
        logs = memory.status().logs
    with Memory.open(store, keys=keys, model="none", read_only=True) as memory:
        assert [each.change for each in memory.evaluate().recalls] == ["same"]
        assert memory.status().logs == logs


@pytest.mark.parametrize("clock", [(0, 0, 0, 0, 0), (0, 1, 1, 2, 2), (9, 1, 1, 9, 2)], ids=["still", "coarse", "back"])
def test_of_the_past(monkeypatch: pytest.MonkeyPatch, memory: Memory, clock: tuple[int, ...]) -> None:
    """A past knows the recalls there were by then, also where a millisecond holds several events, or the clock errs."""
    start, ends = time.time_ns(), [0]
    for turn, milliseconds in enumerate(clock):
        monkeypatch.setattr(recorder, "time", SimpleNamespace(time_ns=lambda now=start + 10**6 * milliseconds: now))
        if turn % 2:
            memory.recall("office")
        else:
            ends.append(memory.store(f"office {turn}").position)
    for position, kept in ((ends[1], [1]), (ends[2], [2, 1])):
        with memory.at(position) as past:
            assert [(each.change, len(each.now)) for each in past.evaluate().recalls] == [("same", n) for n in kept]
