"""Going on from what is left: memories keep what they are, nothing retracted comes back, and the old log is named."""

from __future__ import annotations

import os
import resource
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallystick import Memory
from tallystick.commands.carry import AS_SAID, WITHHELD
from tallystick.commands.recover import Recovery
from tallystick.errors import Busy, LogBehindMark, LogDamaged, NotFound, Refused, Unavailable
from tallystick.events.claims import PLACES
from tallystick.events.driver import Datastore, File
from tallystick.events.installation import FILE
from tallystick.events.keys import NAMES
from tallystick.events.kinds import REGISTRY, Recovered
from tallystick.projections.record import Record


class Place(NamedTuple):
    """Where a store and its keys lie."""

    store: Path
    keys: Path

    def open(self, **options: Any) -> Memory:
        """The memory that is there."""
        return Memory.open(self.store, keys=self.keys, model="none", **options)

    def at(self, name: str) -> Place:
        """Another place under the same keys."""
        return self._replace(store=self.store.with_name(name))

    def salvage(self) -> Recovery:
        """What verifies, in a store beside this one."""
        return Memory.salvage(self.store, self.at("saved").store, keys=self.keys)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A place where nothing is yet."""
    return Place(tmp_path / "store", tmp_path / "keys")


@contextmanager
def tampering(place: Place) -> Iterator[Any]:
    """A cursor on a closed log.db, for a disk that loses things."""
    datastore = Datastore(File(place.store / FILE, LogDamaged))
    try:
        with datastore.transaction(commit=True) as cursor:
            for (name,) in cursor.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
                cursor.execute(f"DROP TRIGGER {name}")
            yield cursor
    finally:
        datastore.close()


def essence(record: Record) -> tuple[Any, ...]:
    """What of a memory may not change when it goes over to another origin."""
    body = record.stored.model_dump(exclude={"nonce", "parents", "derived_from"})
    return (
        sorted(body.items(), key=lambda item: item[0]), record.revision, record.status, record.reinforced,
        record.forgotten_for, record.protected, record.pinned, record.revised_at,
    )  # fmt: skip


METADATA = {"n": 1, "files": ["a", ["b"]], "here": {"head": 1, "memory": ["m"]}}


def a_history(memory: Memory) -> dict[str, str]:
    """One of every sort of memory, by what it is; each with its id."""
    ids = {
        "plain": memory.store("a plain text", tags=["a", "b"], metadata=METADATA, author="Ana", importance=0.9).id,
        "revised": memory.store("the first version", occurred_at="2024-02-03T04:05:06Z").id,
        "older": memory.store("works at A", key="employer").id,
        "newer": memory.store("works at B", key="employer").id,
        "forgotten": memory.store("a secret").id,
        "restored": memory.store("a text to bring back").id,
        "command": memory.store("once only", command_id="c1").id,
    }
    ids |= {
        f"turn {n}": outcome.id
        for n, outcome in enumerate(memory.store_conversation(["who is there?", "it is me"], thread="t"))
    }
    memory.revise(ids["revised"], text="the second version", reason="it was wrong")
    memory.revise(ids["revised"], tags_added=["third"])
    memory.forget(ids["forgotten"], reason="not to be known")
    memory.forget(ids["restored"])
    memory.restore(ids["restored"])
    memory.store("a plain text", tags=["a"])
    memory.link(ids["plain"], ids["newer"], kind="causes")
    memory.pin(ids["plain"])
    memory.protect(ids["newer"])
    return ids


@pytest.fixture
def behind(place: Place) -> tuple[Place, dict[str, str], dict[str, Record], str]:
    """An older copy in the place of its store: its ids, its records, and the receipt of a recall of then."""
    with place.open() as memory:
        ids = a_history(memory)
        receipt = str(memory.recall("plain text", tags=["a"], where={"n": {"$in": [1, 2]}}).receipt)
        records = {what: memory.get(each) for what, each in ids.items()}
    copy = shutil.copytree(place.store, place.store.with_name("copy"))
    with place.open() as memory:
        memory.store("stored after the copy was taken")
    shutil.rmtree(place.store)
    copy.rename(place.store)
    return place, ids, records, receipt


def recovered(place: Place) -> Recovery:
    """Go on from an older copy."""
    return Memory.recover(place.store, reason="the disk died", keys=place.keys)


def test_an_older_copy_is_caught_until_it_is_recovered(behind: tuple[Place, Any, Any, Any]) -> None:
    """Going on from it without a word would write a second history; with the word, writing goes on."""
    place = behind[0]
    for _ in range(2):
        with pytest.raises(LogBehindMark, match="`tallystick recover`"):
            place.open()
    recovered(place)
    with place.open() as memory:
        assert memory.store("a new text").status == "stored"
        memory.verify(views=True)
    place.open().close()


def test_memories_keep_everything_but_their_ids(behind: tuple[Place, dict[str, str], dict[str, Record], Any]) -> None:
    """Text, times, authorship, metadata, versions in order, status; and the old id, given whole, leads to the new."""
    place, ids, records, _ = behind
    outcome = recovered(place)
    assert outcome.withheld == ()
    with place.open() as memory:
        found = {what: memory.get(each) for what, each in ids.items()}
        assert {what: essence(record) for what, record in found.items()} == {
            what: essence(record) for what, record in records.items()
        }
        assert {record.stored.nonce.hex() for record in found.values() if record.stored.nonce} == set(ids.values())
        assert not {record.id for record in found.values()} & set(ids.values())
        links = found["plain"].links
        assert [(link.kind, link.to) for link in links] == [("causes", found["newer"].stream)]
        assert found["older"].superseded_by == found["newer"].stream
        texts = [getattr(e.event, "text", None) for e in memory.history(ids["revised"])]
        assert texts == ["the first version", "the second version", None]
        with pytest.raises(NotFound):
            memory.get("0" * 32)
        with pytest.raises(NotFound):
            memory.get(ids["plain"][:12])


def test_claims_go_over(behind: tuple[Place, dict[str, str], Any, Any]) -> None:
    """Texts, keys and command ids are held by whom they were: nothing becomes two, and a protected one stays so."""
    place, ids, _, _ = behind
    recovered(place)
    with place.open() as memory:
        assert memory.store("a plain text").status == "reinforced"
        assert memory.store("once only", command_id="c1").repeated
        with pytest.raises(Refused, match="protected"):
            memory.store("works at C", key="employer")
        assert memory.store("a secret").status == "stored"
        assert not [hit for hit in memory.recall("secret") if hit.id == memory.get(ids["forgotten"]).id]


def test_receipts_still_explain(behind: tuple[Place, dict[str, str], Any, str]) -> None:
    """An event keeps its id, and a recall that is on record names the memories by the ids they have now."""
    place, ids, _, receipt = behind
    recovered(place)
    with place.open() as memory:
        why = memory.why(receipt, ids["plain"])
        assert [hit.record.text for hit in why.hits] == ["a plain text"]
        assert why.recalled.filters == {"tags": ["a"], "where": {"n": {"$in": [1, 2]}}}


@pytest.mark.parametrize("way", ["back_up", "decline"])
def test_what_is_on_record_of_the_keys_goes_over(place: Place, way: str, tmp_path: Path) -> None:
    """The keys are the same ones, so a backup of them still counts, or that none was wanted; also the second time."""
    with place.open() as memory:
        if way == "decline":
            memory.decline_key_backup(reason="they are in a vault")
        else:
            memory.back_up_keys(tmp_path / "backup", "four words will do")
    for n in range(2):
        copy = shutil.copytree(place.store, place.store.with_name("copy"))
        with place.open() as memory:
            memory.store(f"lost {n}")
        shutil.rmtree(place.store)
        copy.rename(place.store)
        recovered(place)
        with place.open() as memory:
            assert not [remark for remark in memory.status().remarks if "backed up" in remark]
    with place.open() as memory:
        memory.decline_key_backup()
        memory.verify()


def test_the_old_log_is_named_and_kept(behind: tuple[Place, Any, Any, Any]) -> None:
    """Origin, size and root, what was lost, who did it and why: the first event of each log; the file lies beside."""
    place = behind[0]
    old = Memory.open(place.store, keys=place.keys, model="none", until=2)
    origin = old._opened.log.origin
    old.close()
    outcome = recovered(place)
    with place.open() as memory:
        first = next(iter(memory.events())).event
        assert isinstance(first, Recovered)
        assert (first.origin, first.reason) == (origin, "the disk died")
        assert (first.events, outcome.logs[0].lost) == (outcome.logs[0].events, ((first.size - 1, first.size - 1),))
        assert [(lost.first, lost.last) for lost in first.lost] == [*outcome.logs[0].lost]
        assert memory._opened.log.event_at(0).header.origin.hex() == outcome.logs[0].origin != origin.hex()
        assert any("keeps a log that was replaced" in remark for remark in memory.status().remarks)
    assert (Path(outcome.kept) / FILE).is_file()


def test_the_log_that_was_given_up_is_not_gone_on_from(behind: tuple[Place, Any, Any, Any]) -> None:
    """Put back, it is refused: there is one history, and it is the recovered one."""
    place = behind[0]
    outcome = recovered(place)
    with place.open() as memory:
        memory.store("a new text")
    given_up = place.at("given-up")
    given_up.store.mkdir()
    shutil.copy(Path(outcome.kept) / FILE, given_up.store)
    with pytest.raises(LogBehindMark, match="goes on with"):
        given_up.open()
    with given_up.open(until=2) as memory:
        assert memory.status().logs["memory"] == 2


def test_a_store_can_be_recovered_again_and_again(place: Place) -> None:
    """Ids of every time before lead to the memory, and the mark does not grow."""
    ids = []
    with place.open() as memory:
        ids.append(memory.store("a text").id)
    for n in range(8):
        copy = shutil.copytree(place.store, place.store.with_name("copy"))
        with place.open() as memory:
            memory.store(f"lost {n}")
        shutil.rmtree(place.store)
        copy.rename(place.store)
        recovered(place)
        with place.open() as memory:
            assert {memory.get(each).text for each in ids} == {"a text"}
            ids.append(memory.get(ids[0]).id)
    assert len(set(ids)) == 9


def test_what_is_sound_is_neither_recovered_nor_salvaged(place: Place) -> None:
    """Nobody gives up a history for nothing."""
    place.open().close()
    with pytest.raises(Refused, match="nothing to recover"):
        recovered(place)
    with pytest.raises(Refused, match="nothing to salvage"):
        place.salvage()
    place.open().close()


def test_what_is_open_is_not_recovered(place: Place) -> None:
    """Whoever has it open would write to what is given up."""
    with place.open(), pytest.raises(Busy):
        recovered(place)


def test_a_damaged_copy_is_not_recovered(behind: tuple[Place, Any, Any, Any]) -> None:
    """What does not verify is salvaged, where what is lost is said."""
    place = behind[0]
    with tampering(place) as cursor:
        cursor.execute("UPDATE payload SET body = zeroblob(100) WHERE place = 3")
    with pytest.raises(LogDamaged, match="position 3"):
        recovered(place)
    assert place.salvage().logs[0].lost[0] == (3, 3)


# ---- salvage

DAMAGES = {
    "a payload": "UPDATE payload SET body = zeroblob(9) WHERE place = {place}",
    "an entry": "UPDATE entry SET entry = zeroblob(9) WHERE place = {place}",
    "a signature": "UPDATE entry SET entry = CAST(substr(entry, 1, 200) || x'00' AS BLOB) WHERE place = {place}",
    "a row": "DELETE FROM entry WHERE place = {place}",
}


@pytest.mark.parametrize("how", DAMAGES)
def test_what_verifies_is_moved(place: Place, how: str) -> None:
    """The lost position is named; everything else is there, each memory as it was; the damaged store is untouched."""
    with place.open() as memory:
        first, second = memory.store("the first text", tags=["a"]), memory.store("the second text")
        third = memory.store("the third text")
    with tampering(place) as cursor:
        cursor.execute(DAMAGES[how].format(place=second.position))
    before = (place.store / FILE).read_bytes()
    with pytest.raises(LogDamaged):
        place.open()
    outcome = place.salvage()
    assert (place.store / FILE).read_bytes() == before
    assert outcome.logs[0].lost == ((second.position, second.position),)
    assert outcome.withheld == ()
    with place.at("saved").open() as memory:
        memory.verify(views=True)
        assert {hit.text for hit in memory.recall("text")} == {"the first text", "the third text"}
        assert (memory.get(first.id).tags, memory.get(third.id).text) == (("a",), "the third text")
        with pytest.raises(NotFound):
            memory.get(second.id)
        assert memory.store("the second text").status == "stored"


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("sort", ["plain", "turn", "keyed"])
def test_nothing_that_was_retracted_comes_back(place: Place, how: str, sort: str) -> None:
    """The event that forgot a memory, or superseded it, is lost: it comes over forgotten, and can be brought back."""
    with place.open() as memory:
        if sort == "turn":
            secret = memory.store_conversation(["the secret", "something else"], thread="t")[0]
        else:
            secret = memory.store("the secret", key="k" if sort == "keyed" else None)
        retracted = memory.store("not it", key="k") if sort == "keyed" else memory.forget(secret.id)
        position = retracted.position + (1 if sort == "keyed" else 0)
        memory.store("the last text")
    with tampering(place) as cursor:
        cursor.execute(DAMAGES[how].format(place=position))
    outcome = place.salvage()
    with place.at("saved").open() as memory:
        assert "the secret" not in {hit.text for hit in memory.recall("the secret")}
        record = memory.get(secret.id)
        assert (record.status, record.forgotten_for) == ("forgotten", WITHHELD)
        assert record.id in outcome.withheld
        memory.verify(views=True)
        if sort == "plain":
            memory.restore(secret.id)
            assert "the secret" in {hit.text for hit in memory.recall("the secret")}


def test_a_lost_beginning_takes_its_stream_along(place: Place) -> None:
    """Without its first event a memory has no text: all positions of it are said to be lost."""
    with place.open() as memory:
        stored = memory.store("a text")
        forgotten = memory.forget(stored.id)
        memory.store("another text")
    with tampering(place) as cursor:
        cursor.execute(DAMAGES["an entry"].format(place=stored.position))
    outcome = place.salvage()
    assert outcome.logs[0].lost == ((stored.position, forgotten.position),)


def test_a_lost_end_is_known_from_the_mark(place: Place) -> None:
    """What was cut off counts as lost, although nothing of it is in the file."""
    with place.open() as memory:
        memory.store("a text")
        cut = memory.store("a text that will be cut off")
    with tampering(place) as cursor:
        cursor.execute("DELETE FROM entry WHERE place >= ? AND place < ?", (cut.position, PLACES))
        cursor.execute("DELETE FROM payload WHERE place >= ? AND place < ?", (cut.position, PLACES))
    assert place.salvage().logs[0].lost == ((cut.position, cut.position),)


@pytest.mark.parametrize("damage", ["genesis", "claims", "a data key", "settings", "the access log", "pages"])
def test_other_things_that_break(place: Place, damage: str) -> None:
    """Whatever else of log.db is gone, what is signed and opens is moved."""
    with place.open() as memory:
        ids = [memory.store(f"text number {n} {'x' * 500}").id for n in range(60)]
        memory.recall("text")
    statements = {
        "genesis": "DELETE FROM entry WHERE place = 0",
        "claims": "UPDATE claim SET place = place + 1",
        "a data key": "UPDATE data_key SET wrapped = zeroblob(72) WHERE rowid IN (SELECT 1)",
        "settings": "UPDATE setting SET value = zeroblob(30)",
        "the access log": f"UPDATE payload SET body = zeroblob(5) WHERE place >= {PLACES}",
    }
    if damage == "a data key":
        first = f"(SELECT place FROM entry WHERE stream = x'{ids[7]}')"
        statements[damage] = f"UPDATE data_key SET wrapped = zeroblob(72) WHERE place = {first}"
    if damage == "pages":
        content = bytearray((place.store / FILE).read_bytes())
        for page in range(8, 12):
            content[page * 4096 : (page + 1) * 4096] = bytes(4096)
        (place.store / FILE).write_bytes(content)
    else:
        with tampering(place) as cursor:
            cursor.execute(statements[damage])
    outcome = place.salvage()
    with place.at("saved").open() as memory:
        memory.verify(views=True)
        found = memory.status().memories
        lost = sum(last - first + 1 for first, last in outcome.logs[0].lost)
        assert sum(found.values()) == outcome.logs[0].events == 60 - lost
        assert lost == {"a data key": 1}.get(damage, lost if damage == "pages" else 0)
        assert len(outcome.withheld) == found.get("forgotten", 0)
        assert damage != "claims" or outcome.withheld == ()


def test_without_a_mark_claims_that_are_gone_leave_every_memory_in_doubt(place: Place) -> None:
    """Nobody knows how far the log went: what was forgotten in an event that was cut off must not come back."""
    with place.open() as memory:
        for n in range(3):
            memory.store(f"text number {n}")
    with tampering(place) as cursor:
        cursor.execute("DELETE FROM claim")
    (place.keys / "mark").unlink()
    assert len(place.salvage().withheld) == 3


def test_a_file_that_is_no_database_can_not_be_salvaged(place: Place) -> None:
    """Then a snapshot is the way back, and the message says so."""
    place.open().close()
    (place.store / FILE).write_bytes(b"\0" * 8192)
    with pytest.raises(LogDamaged, match="Restore a snapshot"):
        place.salvage()
    assert list(place.at("saved").store.glob("log.db*")) == []


def test_salvage_writes_into_an_empty_directory_elsewhere(place: Place) -> None:
    """Nothing is overwritten, and the evidence is not written to."""
    with place.open() as memory:
        damaged = memory.store("a text").position
    with tampering(place) as cursor:
        cursor.execute(DAMAGES["an entry"].format(place=damaged))
    with pytest.raises(Refused, match="lies inside"):
        Memory.salvage(place.store, place.store / "inside", keys=place.keys)
    place.at("full").store.mkdir()
    (place.at("full").store / "a file").touch()
    with pytest.raises(Refused, match="has something in it"):
        Memory.salvage(place.store, place.at("full").store, keys=place.keys)


@settings(max_examples=15)
@given(data=st.data())
def test_whatever_is_lost_nothing_else_is(data: st.DataObject) -> None:
    """Any rows lost, of any history: what remains verifies, was there before, and shows nothing that was hidden."""
    folder = Path(tempfile.mkdtemp(prefix="tallystick-"))
    try:
        place = Place(folder / "store", folder / "keys")
        with place.open() as memory:
            a_history(memory)
            hidden = {"a secret", "works at A", "the first version"}
            size = memory.status().logs["memory"]
        gone = data.draw(st.sets(st.integers(1, size - 1), min_size=1, max_size=4))
        how = data.draw(st.sampled_from(sorted(DAMAGES)))
        with tampering(place) as cursor:
            for position in gone:
                cursor.execute(DAMAGES[how].format(place=position))
        outcome = place.salvage()
        lost = {p for first, last in outcome.logs[0].lost for p in range(first, last + 1)}
        assert gone <= lost
        with place.at("saved").open() as memory:
            memory.verify(views=True)
            found = memory.recall("text secret works version plain back once who me there", limit=99)
            assert not {hit.text for hit in found} & hidden
    finally:
        shutil.rmtree(folder)


def test_every_id_and_hash_in_an_event_is_carried_over_by_what_it_is() -> None:
    """A kind with a field that is neither a stream, a leaf, an event id nor a root has to be thought about here."""
    names = {name for kind in REGISTRY.values() for name, field in kind.model_fields.items() if "bytes" in str(field)}
    assert names == {
        "nonce", "parents", "derived_from", "by", "to", "memory", "memories", "receipt",  # ids and leaves
        "yields_to", "through",
        "log_root", "memory_root", "access_root", "sha256", "root", "origin", "backup", "digest",  # what was, as it was
        "store", "writer", "checkpoint", "kek", "index", "root_signature", "writer_signature", "checkpoint_signature",
        "scores",  # numbers
    }  # fmt: skip
    json = {name for kind in REGISTRY.values() for name, field in kind.model_fields.items() if "Json" in str(field)}
    assert json == set(AS_SAID)


def test_names_of_namespaces_go_over(place: Place) -> None:
    """What was renamed is found by both names after a recovery, and claims what it did; so do command ids."""
    with place.open() as memory:
        memory.store("a text", namespace="a", command_id="c")
        memory.store("a text", namespace="b", key="k")
        memory.rename("a", "x")
        memory.store("a text", namespace="a", command_id="d")
        memory.merge("b", "x")
        memory.rename("x", "a")
        memory.rename("a", "y")
    copy = shutil.copytree(place.store, place.store.with_name("copy"))
    with place.open() as memory:
        memory.store("stored after the copy was taken")
    shutil.rmtree(place.store)
    copy.rename(place.store)
    recovered(place)
    with place.open() as memory:
        for name in ("a", "b", "x", "y"):
            assert memory.search(namespaces=[name]).total == 2
            assert memory.store("a text", namespace=name).status == "reinforced"
        assert memory.store("a text", namespace="a", command_id="c").repeated
        assert memory.store("another text", key="k", namespace="b").status == "superseded"
        assert memory.verify(views=True).views


def test_a_store_without_its_mark_can_be_recovered(place: Place) -> None:
    """Nothing says that it is the newest: a person may say that it is to be gone on from, and the next mark holds."""
    with place.open() as memory:
        memory.store("a text")
    (place.keys / "mark").unlink()
    assert recovered(place).logs[0].events == 1
    with place.open() as memory:
        assert [hit.text for hit in memory.recall("text")] == ["a text"]
        assert memory.store("another text").status == "stored"
        memory.verify(views=True)
    with pytest.raises(Refused, match="nothing to recover"):
        recovered(place)


@pytest.mark.skipif(not os.path.isdir("/sys"), reason="needs a directory that nobody can write to")
def test_a_store_goes_on_where_no_mark_can_be_kept(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """With keys from the environment and no directory of state the new log is made all the same."""
    for number, name in enumerate(NAMES, 1):
        monkeypatch.setenv(f"TALLYSTICK_KEY_{name.upper()}", (bytes([number]) * 32).hex())
    monkeypatch.setenv("HOME", "/sys")
    with Memory.open(place.store, keys="env", model="none") as memory:
        memory.store("a text")
    outcome = Memory.recover(place.store, reason="moved", keys="env")
    assert (outcome.logs[0].events, outcome.withheld) == (1, ())
    with Memory.open(place.store, keys="env", model="none") as memory:
        assert [hit.text for hit in memory.recall("text")] == ["a text"]
        memory.verify(views=True)


def test_a_recovery_that_finds_no_room_changes_nothing(behind: tuple[Place, Any, Any, Any]) -> None:
    """The store stays what it was, no half of a new one lies in it, and with room it is recovered."""
    place = behind[0]
    before = {path: path.read_bytes() for path in place.store.rglob("*") if path.is_file()}
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (120 << 10, hard))
    try:
        with pytest.raises(Unavailable, match="try again"):
            recovered(place)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    after = {path: path.read_bytes() for path in place.store.rglob("*") if path.is_file()}
    assert before.items() <= after.items()
    added = {path.name: content for path, content in after.items() if path not in before}
    assert set(added) <= {"lease", f"{FILE}-wal", f"{FILE}-shm"}  # what a reader leaves
    assert not added.get(f"{FILE}-wal")
    with pytest.raises(LogBehindMark):
        place.open()
    recovered(place)
    place.open().close()
