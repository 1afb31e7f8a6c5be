"""Namespaces get other names: their memories, claims and command ids go along, and nothing that was signed changes."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tallystick import Memory, Namespace
from tallystick.commands.protect import PINNED_BYTES
from tallystick.errors import NotFound, Refused, RevisionConflict
from tallystick.events.kinds import NamespaceRenamed, Superseded
from tallystick.events.log import Log


@pytest.fixture
def memory() -> Iterator[Memory]:
    """A memory of its own, by words alone."""
    with Memory.temporary(namespace="a") as opened:
        yield opened


def texts(memory: Memory, *namespaces: str) -> list[str]:
    """What is in these namespaces, oldest first."""
    return [record.text for record in memory.search(namespaces=namespaces, sort="recorded_at")]


def right(memory: Memory) -> bool:
    """Whether the store verifies, claims and views included."""
    return bool(memory.verify(views=True).views)


def test_a_namespace_goes_by_its_new_name_and_is_found_by_both(memory: Memory) -> None:
    """Memories are listed under the new name, asked for by either, and say what they are called now."""
    stored = memory.store("The office is in Lisbon")
    renamed = memory.rename("a", "b/c")
    assert (renamed.old, renamed.new, renamed.moved, renamed.superseded) == ("a", "b/c", 1, ())
    for name in ("a", "b/c"):
        (hit,) = memory.recall("office", namespaces=[name])
        assert hit.record.namespace == "b/c"
        assert memory.search(namespaces=[name]).records == (memory.get(stored.id),)
    assert memory.recall("office").hits[0].record.stored.namespace == "a"
    assert memory.recall("office", under="b").hits
    assert memory.why(memory.recall("office").receipt).recalled.namespaces == ("b/c",)
    assert [each.name for each in memory.namespaces()] == ["b/c"]
    assert memory.status().namespaces == {"b/c": 1}
    assert right(memory)


def test_a_rename_is_an_event_of_its_own(memory: Memory) -> None:
    """What was signed stays as it is: the rename opens a stream of its own, and no memory has a new event."""
    stored = memory.store("The office is in Lisbon")
    position = memory.rename("a", "b").position
    logged = memory._opened.log.event_at(position)
    assert isinstance(logged.event, NamespaceRenamed)
    assert (logged.event.old, logged.event.new, logged.header.revision) == ("a", "b", 0)
    assert len(memory.history(stored.id)) == 1
    assert [row.namespace for row in memory.log() if row.kind == "namespace.renamed"] == ["a b"]


def test_what_is_stored_under_an_old_name_goes_to_the_new_one(memory: Memory) -> None:
    """The same text or key under the old name is the same memory, not a second one beside it."""
    text, key = memory.store("a text"), memory.store("A", key="k")
    memory.rename("a", "b")
    for name in ("a", "b"):
        again = memory.store("a text", namespace=name)
        assert (again.status, again.id) == ("reinforced", text.id)
    newer = memory.store("B", key="k", namespace="a")
    assert (newer.status, newer.superseded_id) == ("superseded", key.id)
    assert memory.get(newer.id).stored.namespace == "b"
    assert right(memory)


def test_claims_go_along(memory: Memory) -> None:
    """Forget, revise and restore give up and take what a memory claims under the name of now."""
    stored = memory.store("a text", key="k")
    memory.rename("a", "b")
    memory.forget(stored.id)
    other = memory.store("a text", key="k", namespace="b")
    assert other.status == "stored"
    with pytest.raises(Refused, match="holds it now"):
        memory.restore(stored.id)
    memory.forget(other.id)
    memory.restore(stored.id)
    memory.revise(stored.id, text="another text")
    assert memory.store("another text", key="k", namespace="b").id == stored.id
    assert right(memory)


def test_command_ids_keep_working(memory: Memory) -> None:
    """A command that was carried out before the rename, repeated under the name it gave, is not carried out again."""
    stored = memory.store("turn", thread="t", command_id="c")
    memory.forget(stored.id, command_id="f")
    memory.rename("a", "b")
    again = memory.store("turn", thread="t", command_id="c", namespace="a")
    assert (again.id, again.repeated) == (stored.id, True)
    assert memory.forget(stored.id, command_id="f").repeated
    assert memory.store("x", command_id="d", namespace="a").id == memory.store("x", command_id="d", namespace="b").id
    memory.store("x", command_id="e", namespace="a")
    assert memory.store("x", command_id="e", namespace="a").repeated
    assert right(memory)


def test_a_name_can_be_given_back(memory: Memory) -> None:
    """The newest rename wins; a way round leads nowhere in a circle."""
    memory.store("a text")
    for old, new in (("a", "b"), ("b", "c"), ("c", "a"), ("a", "b"), ("c", "c2")):
        memory.rename(old, new)
        for name in ("a", "b"):
            assert texts(memory, name) == ["a text"]
            assert memory.store("a text", namespace=name).status == "reinforced"
        assert [each.name for each in memory.namespaces()] == [new]
        assert right(memory)


def test_a_rename_that_makes_no_sense_is_refused(memory: Memory) -> None:
    """No name for nothing, no second name that is the first, no merge by accident, and none into nothing."""
    memory.store("a text")
    memory.store("b text", namespace="b")
    with pytest.raises(NotFound, match="no namespace c"):
        memory.rename("c", "d")
    with pytest.raises(Refused, match="called that already"):
        memory.rename("a", "a")
    with pytest.raises(Refused, match="memories of its own"):
        memory.rename("a", "b")
    with pytest.raises(Refused, match="to merge into"):
        memory.merge("a", "c")
    with pytest.raises(Refused, match="not allowed"):
        memory.rename("a", "a b")
    memory.rename("a", "c")
    with pytest.raises(Refused, match="called that already"):
        memory.rename("a", "c")
    assert right(memory)


def test_merged_where_both_hold_one_text_or_key_the_newer_stays(memory: Memory) -> None:
    """Of two values of a key, and of one text that is there twice, the older is superseded in the same append."""
    old_key = memory.store("in a", key="k", namespace="a")
    new_key = memory.store("in b", key="k", namespace="b")
    old_text = memory.store("both", namespace="b")
    new_text = memory.store("both", namespace="a")
    memory.store("only a", namespace="a")
    before = memory.status().logs["memory"]
    merged = memory.merge("a", "b")
    assert set(merged.superseded) == {old_key.id, old_text.id}
    assert (merged.position, memory.status().logs["memory"]) == (before, before + 3)
    for older, newer in ((old_key, new_key), (old_text, new_text)):
        assert memory.get(older.id).superseded_by == bytes.fromhex(newer.id)
        assert isinstance(memory.history(older.id)[-1].event, Superseded)
    assert sorted(texts(memory, "b")) == ["both", "in b", "only a"]
    assert memory.store("both", namespace="b").id == new_text.id
    assert memory.store("in b 2", key="k", namespace="a").superseded_id == new_key.id
    assert right(memory)


def test_a_protected_memory_is_not_superseded_by_a_merge(memory: Memory) -> None:
    """A merge that would change what nothing may change is refused, and nothing is written."""
    older = memory.store("in a", key="k", namespace="a")
    memory.store("in b", key="k", namespace="b")
    memory.protect(older.id)
    before = memory.status().logs["memory"]
    with pytest.raises(Refused, match="protected"):
        memory.merge("a", "b")
    assert memory.status().logs["memory"] == before


def test_a_merge_does_not_pin_more_than_may_be(memory: Memory) -> None:
    """Pinned texts are part of every context: two full namespaces don't become one."""
    for name in ("a", "b"):
        memory.pin(memory.store(name * 5000, namespace=name).id)
    with pytest.raises(Refused, match="pinned"):
        memory.merge("a", "b")


def test_what_is_pinned_goes_along(memory: Memory) -> None:
    """Room for pinned texts is counted under the name of now."""
    memory.pin(memory.store("x" * 5000).id)
    memory.rename("a", "b")
    with pytest.raises(Refused, match="pinned"):
        memory.pin(memory.store("y" * 5000, namespace="b").id)


@pytest.mark.parametrize("writer", ["store", "revise"])
def test_a_rename_between_deciding_and_appending(memory: Memory, writer: str, monkeypatch: Any) -> None:
    """Whoever has looked the name up before it changed decides again: no claim stays under the old name."""
    stored, fresh = memory.store("a text"), Log.append
    raced: list[str] = []

    def racing(log: Log, request: Any, **options: Any) -> Any:
        if log.name == "memory" and not raced:
            raced.append("once")
            memory.rename("a", "b")
        return fresh(log, request, **options)

    monkeypatch.setattr(Log, "append", racing)
    if writer == "store":
        assert memory.get(memory.store("new text").id).stored.namespace == "b"
    else:
        memory.revise(stored.id, text="new text")
    assert memory.store("new text", namespace="b").status == "reinforced"
    assert right(memory)


def test_a_store_while_a_rename_is_decided(memory: Memory, monkeypatch: Any) -> None:
    """What was stored under the old name while the rename was being decided moves with the rest."""
    memory.store("a text")
    fresh = Log.append
    raced: list[str] = []

    def racing(log: Log, request: Any, **options: Any) -> Any:
        if log.name == "memory" and not raced:
            raced.append("once")
            memory.store("late", key="k")
        return fresh(log, request, **options)

    monkeypatch.setattr(Log, "append", racing)
    assert memory.rename("a", "b").moved == 2
    assert memory.store("late", key="k", namespace="b").status == "reinforced"
    assert right(memory)


def test_a_log_that_has_grown_is_not_appended_to(memory: Memory) -> None:
    """A rename is appended to the log it was decided on and to no other."""
    from tallystick.events.log import Append  # noqa: PLC0415

    with pytest.raises(RevisionConflict, match="grown"):
        memory._opened.log.append(Append((), size=99))


def test_namespaces_say_what_they_hold_and_when_they_were_used(memory: Memory) -> None:
    """Counts, older names, the last text that came in and the last that went out."""
    assert memory.namespaces() == []
    memory.forget(memory.store("forgotten").id)
    memory.store("a text")
    memory.rename("a", "b")
    memory.store("elsewhere", namespace="c")
    (b, c) = memory.namespaces()
    assert b == Namespace("b", 1, 2, ("a",), memory.search(namespaces=["b"]).records[0].stored.recorded_at, None)
    assert (c.name, c.read_at) == ("c", None)
    memory.recall("text", namespaces=["b"])
    read = {each.name: each.read_at for each in memory.namespaces()}
    assert read["c"] is None
    assert (read["b"] or 0) >= b.written_at


ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("store"), st.sampled_from("abc"), st.sampled_from("xyz"), st.sampled_from([None, "k"])),
        st.tuples(st.sampled_from(["rename", "merge"]), st.sampled_from("abc"), st.sampled_from("abc"), st.none()),
        st.tuples(st.sampled_from(["forget", "restore"]), st.integers(0, 9).map(str), st.just(""), st.none()),
    ),
    max_size=12,
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(acts=ACTS)
def test_whatever_is_renamed_the_store_is_right(acts: list[tuple[str, str, str, str | None]]) -> None:
    """After any history claims are what events say, views equal a rebuild, and one text or key has one holder."""
    with Memory.temporary() as memory:
        ids: list[str] = []
        for act, first, second, key in acts:
            try:
                if act == "store":
                    ids.append(memory.store(second, namespace=first, key=key, command_id=f"{first}{second}{key}").id)
                elif act in ("rename", "merge"):
                    getattr(memory, act)(first, second)
                elif ids:
                    getattr(memory, act)(ids[int(first) % len(ids)])
            except (Refused, NotFound):
                pass
        assert right(memory)
        names = [each.name for each in memory.namespaces()]
        listed = [record for name in names for record in memory.search(namespaces=[name])]
        held = [(record.namespace, record.stored.key, record.text) for record in listed]
        keyed = [(record.namespace, record.stored.key) for record in listed if record.stored.key]
        assert len(set(held)) == len(held)
        assert len(set(keyed)) == len(keyed)


def test_a_merge_keeps_what_is_pinned_pinned(memory: Memory) -> None:
    """What supersedes a pinned memory is pinned in its place, if it fits."""
    memory.pin(memory.store("Lisbon", key="home").id)
    memory.store("Porto", key="home", namespace="b")
    merged = memory.merge("a", "b")
    assert len(merged.superseded) == 1
    assert [record.text for record in memory._opened.pinned("b")] == ["Porto"]


def test_a_merge_refuses_a_pin_that_does_not_fit(memory: Memory) -> None:
    """Nothing of it happens then."""
    memory.pin(memory.store("Lisbon", key="home").id)
    memory.store("x" * (PINNED_BYTES + 1), key="home", namespace="b")
    with pytest.raises(Refused, match="would be pinned"):
        memory.merge("a", "b")
    assert [record.text for record in memory._opened.pinned("a")] == ["Lisbon"]
