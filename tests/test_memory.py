"""Memory as a whole: opening and closing, journeys through all verbs, damaged views, and a model at work."""

import logging
import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

from tallystick import Memory
from tallystick.errors import (
    KeysMissing,
    LogDamaged,
    ModelMissing,
    NotFound,
    Refused,
    Unavailable,
    ViewsDamaged,
)
from tallystick.events import driver
from tallystick.events.driver import Datastore, File
from tallystick.projections.embedding import Embedded, Embedder, Space
from tallystick.projections.models import places
from tallystick.projections.models.places import resolve_embedder
from tallystick.projections.views import ALL_VIEWS

TEXT = "The office is in Lisbon"


class Place:
    """Where a store and its keys lie, and how it is opened there."""

    def __init__(self, folder: Path) -> None:
        self.store = folder / "store"
        self.keys = folder / "keys"

    def open(self, **options: Any) -> Memory:
        """Open the store, by words alone unless something else is said."""
        return Memory.open(self.store, **{"keys": self.keys, "model": "none", "namespace": "project:app", **options})

    def replay(self, **options: Any) -> Any:
        """Rebuild the views from outside."""
        return Memory.replay(self.store, keys=self.keys, **options)

    @property
    def views(self) -> Path:
        """The one views file."""
        (file,) = self.store.glob("views-*.db")
        return file

    def edit(self, file: Path, statement: str) -> None:
        """Change rows of an encrypted file, with the key that encrypts it."""
        key = bytes.fromhex((self.keys / "views.key").read_text(encoding="ascii"))
        datastore = Datastore(File(file, ViewsDamaged, key))
        with datastore.transaction(commit=True) as cursor:
            cursor.execute(statement)
            assert cursor.execute("SELECT changes()").fetchone()[0] > 0
        datastore.close()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """An empty place."""
    return Place(tmp_path)


@pytest.fixture
def used(place: Place) -> Place:
    """A place with a store that was used and closed."""
    with place.open() as memory:
        memory.store(TEXT, tags=["office"], importance=0.25)
        memory.store("Use WAL mode for concurrent readers")
        memory.forget(memory.store("Deploys are frozen on Fridays").id)
        memory.store("A secret of Ana", namespace="user:ana")
        memory.recall("office")
        memory.log()
    return place


# ---- opening and closing


def test_a_store_is_made_where_there_is_none(place: Place) -> None:
    """Opening an empty directory makes a store; what is stored is there the next time."""
    with place.open() as memory:
        stored = memory.store(TEXT)
    with place.open(create=False) as memory:
        assert memory.get(stored.id).text == TEXT


def test_a_store_is_not_made_where_that_is_not_wanted(place: Place) -> None:
    """With create=False a place without a store stays as it is."""
    with pytest.raises(NotFound, match="no store"):
        place.open(create=False)
    assert not place.store.exists()
    assert not place.keys.exists()


def test_replay_makes_no_store(place: Place) -> None:
    """Replaying a store that is not there is an error, and leaves nothing."""
    with pytest.raises(NotFound, match="no store"):
        place.replay()
    assert not place.store.exists()


def test_keys_go_to_the_users_own_directory(home: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Where no keys are named they are made outside the store, in the user's data directory, which is said once."""
    for _ in range(2):
        with Memory.open(tmp_path / "store", model="none") as memory:
            keys = Path(memory.status().keys)
            memory.store(TEXT)
    assert keys.is_relative_to(home)
    assert not list((tmp_path / "store").glob("*.key"))
    assert capfd.readouterr().err.count(str(keys)) == 1


def test_nothing_is_said_of_keys_that_were_named(place: Place, capfd: pytest.CaptureFixture[str]) -> None:
    """Who names the directory of the keys knows where they are."""
    place.open().close()
    assert capfd.readouterr() == ("", "")


def test_a_store_without_its_keys_is_not_opened(used: Place, tmp_path: Path) -> None:
    """A missing key is named with where it was looked for; no new one is made."""
    with pytest.raises(KeysMissing, match=str(tmp_path / "elsewhere")):
        used.open(keys=tmp_path / "elsewhere")
    assert not (tmp_path / "elsewhere").exists()


def test_a_store_whose_log_is_gone_is_not_made_anew(used: Place) -> None:
    """Where views are left and the log is not, somebody lost it: that is no empty directory."""
    (used.store / "log.db").unlink()
    with pytest.raises(LogDamaged, match=r"log\.db"):
        used.open()
    assert not (used.store / "log.db").exists()


@pytest.mark.parametrize("namespace", ["a b", "a/", "/"])
def test_a_namespace_that_is_none_opens_nothing(place: Place, namespace: str) -> None:
    """A bad namespace is refused before a store is made."""
    with pytest.raises(Refused, match="namespace"):
        place.open(namespace=namespace)
    assert not place.store.exists()


def test_namespace_and_actor_are_those_of_the_opening(place: Place) -> None:
    """What is stored without naming a namespace goes where this opening works, in the name of its actor."""
    with place.open(namespace="user:ana", actor="agent:scout") as memory:
        record = memory.get(memory.store(TEXT).id)
    assert (record.namespace, record.stored.actor) == ("user:ana", "agent:scout")


def test_settings_of_the_environment_are_used_and_arguments_come_first(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TALLYSTICK_* variables say what the caller does not."""
    monkeypatch.setenv("TALLYSTICK_NAMESPACE", "user:ana")
    monkeypatch.setenv("TALLYSTICK_ACTOR", "agent:scout")
    monkeypatch.setenv("TALLYSTICK_KEYS", str(place.keys))
    monkeypatch.setenv("TALLYSTICK_MODEL", "none")
    with Memory.open(place.store) as memory:
        record = memory.get(memory.store(TEXT).id)
        assert (record.namespace, record.stored.actor) == ("user:ana", "agent:scout")
        assert (memory.status().model, memory.status().keys) == ("none", str(place.keys))
    with Memory.open(place.store, namespace="user:ben", actor="agent:planner") as memory:
        record = memory.get(memory.store(TEXT).id)
        assert (record.namespace, record.stored.actor) == ("user:ben", "agent:planner")


def test_without_an_actor_it_is_the_user_of_the_system(place: Place) -> None:
    """Who acts is claimed: where nobody says, the operating system's user is."""
    with place.open() as memory:
        stored = memory.get(memory.store(TEXT).id).stored
    assert stored.actor == f"user:{stored.via['user']}"


def test_a_temporary_memory_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Store and keys of a temporary memory lie in one folder that is gone after closing it, also after an error."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with Memory.temporary() as memory:
        memory.store(TEXT)
        assert Path(memory.status().store).parent.parent == tmp_path
    with pytest.raises(ZeroDivisionError), Memory.temporary():
        raise ZeroDivisionError
    with pytest.raises(Refused):
        Memory.temporary(namespace="a b")
    assert list(tmp_path.iterdir()) == []


def test_closing_twice_is_no_error(place: Place) -> None:
    """A memory that is closed stays closed."""
    memory = place.open()
    memory.close()
    memory.close()


VERBS: dict[str, Callable[[Memory], Any]] = {
    "store": lambda memory: memory.store(TEXT),
    "store_many": lambda memory: memory.store_many([TEXT]),
    "store_conversation": lambda memory: memory.store_conversation([TEXT], thread="s1"),
    "revise": lambda memory: memory.revise("0" * 32, text=TEXT),
    "link": lambda memory: memory.link("0" * 32, "1" * 32),
    "unlink": lambda memory: memory.unlink("0" * 32, "1" * 32),
    "protect": lambda memory: memory.protect("0" * 32),
    "pin": lambda memory: memory.pin("0" * 32),
    "used": lambda memory: memory.used("0" * 32, ["0" * 32]),
    "forget": lambda memory: memory.forget("0" * 32),
    "restore": lambda memory: memory.restore("0" * 32),
    "recall": lambda memory: memory.recall("office"),
    "search": lambda memory: memory.search(),
    "evaluate": lambda memory: memory.evaluate(),
    "get": lambda memory: memory.get("0" * 32),
    "history": lambda memory: memory.history("0" * 32),
    "blame": lambda memory: memory.blame("0" * 32),
    "why": lambda memory: memory.why("0" * 32),
    "events": lambda memory: list(memory.events()),
    "log": lambda memory: memory.log(),
    "export": lambda memory: memory.export("out.jsonl"),
    "import_": lambda memory: memory.import_("out.jsonl"),
    "follow": lambda memory: next(memory.follow(limit=1)),
    "receipts": lambda memory: memory.receipts(),
    "sql": lambda memory: memory.sql("select 1"),
    "namespaces": lambda memory: memory.namespaces(),
    "rename": lambda memory: memory.rename("default", "other"),
    "merge": lambda memory: memory.merge("default", "other"),
    "at": lambda memory: memory.at(0),
    "verify": lambda memory: memory.verify(),
    "doctor": lambda memory: memory.doctor(),
    "status": lambda memory: memory.status(),
    "rebuild": lambda memory: memory.rebuild(),
    "embed": lambda memory: memory.embed(),
    "models": lambda memory: memory.models(),
    "use_model": lambda memory: memory.use_model("none"),
    "drop_model": lambda memory: memory.drop_model("0" * 16),
    "back_up_keys": lambda memory: memory.back_up_keys("keys.backup", "correct horse battery"),
    "decline_key_backup": lambda memory: memory.decline_key_backup(),
    "snapshot": lambda memory: memory.snapshot("snapshots"),
}


def test_every_verb_is_listed() -> None:
    """A verb that is added is asked the same questions."""
    outside = {"open", "close", "replay", "temporary", "restore_keys", "list_keys"}
    outside |= {"fetch_model", "pack_model", "verify_models"}
    outside |= {"snapshots", "rotate_snapshots", "restore_snapshot", "recover", "salvage", "take_over", "diagnose"}
    assert set(VERBS) == {name for name in vars(Memory) if not name.startswith("_")} - outside


@pytest.fixture(scope="module")
def closed() -> Memory:
    """A memory that was closed."""
    with Memory.temporary() as memory:
        return memory


@pytest.mark.parametrize("verb", VERBS)
def test_a_closed_memory_answers_nothing(closed: Memory, verb: str) -> None:
    """After close every verb says that this memory is closed, and opens nothing again."""
    with pytest.raises(Unavailable, match="closed"):
        VERBS[verb](closed)


CARRIED = """
import os, sys
from tallystick import Memory
from tallystick.errors import Forked
memory = Memory.open(sys.argv[1], keys=sys.argv[2], model="none")
memory.store("before the fork")
child = os.fork()
if child == 0:
    refused = []
    again = lambda: Memory.open(sys.argv[1], keys=sys.argv[2], model="none")
    for act in (lambda: memory.store("in the child"), again):
        try:
            act()
        except Forked:
            refused.append(act)
    memory.close()
    os._exit(0 if len(refused) == 2 else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
memory.store("after the fork")
assert len(memory.recall("fork child before after")) == 2
memory.verify(views=True)
memory.close()
"""


def test_a_memory_is_not_carried_through_a_fork(place: Place) -> None:
    """A child process can neither use what its parent has open nor open the store itself, and does not disturb it."""
    done = subprocess.run(
        [sys.executable, "-c", CARRIED, str(place.store), str(place.keys)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_nothing_that_is_logged_holds_a_text(
    place: Place, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """What is written for operators holds ids, counts and places: never a text, a question or a key."""
    with caplog.at_level(logging.DEBUG), place.open() as memory:
        stored = memory.store("zanzibar", tags=["xylophone"])
        memory.recall("kinkajou zanzibar")
        memory.forget(stored.id, reason="wombat")
        memory.rebuild()
    said = caplog.text + "".join(capfd.readouterr())
    assert not any(word in said for word in ("zanzibar", "xylophone", "kinkajou", "wombat"))


# ---- through all verbs


def test_a_journey_through_all_verbs(place: Place) -> None:
    """What the verbs say of one history fits together, and verifies."""
    with place.open(actor="agent:planner") as memory:
        first = memory.store("The user works at Company A", key="employer")
        second = memory.store("The user works at Company B", key="employer")
        recall = memory.recall("where does the user work?")
        assert [hit.id for hit in recall] == [second.id]
        memory.forget(second.id, reason="they left")
        assert not memory.recall("where does the user work?")
        memory.restore(second.id)
        assert memory.why(recall.receipt).hits[0].record.text == "The user works at Company B"
        assert [logged.header.kind for logged in memory.history(first.id)] == ["memory.stored", "memory.superseded"]
        assert [row.kind for row in memory.log(limit=2)] == ["memory.read", "memory.read"]
        report = memory.verify(views=True)
        assert [log.size for log in report.logs] == [6, 5]
    with place.open() as memory:
        assert [hit.id for hit in memory.recall("where does the user work?")] == [second.id]


def test_a_recall_is_what_it_found(used: Place) -> None:
    """A recall is iterated over, counted, and true when something was found."""
    with used.open() as memory:
        some, none = memory.recall("office"), memory.recall("zebra")
    assert [hit.text for hit in some] == [TEXT]
    assert (len(some), bool(some), len(none), bool(none)) == (1, True, 0, False)
    assert some.receipt != none.receipt


def test_events_are_handed_out_after_a_position(used: Place) -> None:
    """Who has followed the log up to a position gets the rest, oldest first, to the end it has when they ask."""
    with used.open() as memory:
        assert [logged.header.position for logged in memory.events()] == [1, 2, 3, 4, 5]
        assert [logged.header.position for logged in memory.events(after=3)] == [4, 5]
        assert list(memory.events(after=5)) == list(memory.events(after=99)) == []
        following = memory.events(after=4)
        assert next(following).header.position == 5
        memory.store("What comes later")
        assert list(following) == []
        assert [logged.header.position for logged in memory.events(after=5)] == [6]


def test_events_before_the_log_are_refused(used: Place) -> None:
    """There is nothing before position 0."""
    with used.open() as memory, pytest.raises(Refused, match="after"):
        list(memory.events(after=-1))


def test_the_log_lists_both_logs_newest_first(used: Place) -> None:
    """Who did what when, over both logs, as many as are asked for, without any text."""
    with used.open(actor="agent:planner") as memory:
        memory.recall("office")
        rows = memory.log()
        assert memory.log(limit=3) == rows[:3]
    assert [row.kind for row in rows[:2]] == ["memory.recalled", "memory.recalled"]
    assert rows[0].actor == "agent:planner"
    assert len(rows) == 7
    assert TEXT not in str(rows)


def test_a_text_is_read_from_the_log_and_from_nowhere_else(used: Place) -> None:
    """Whoever takes the views away takes no text away."""
    used.views.unlink()
    used.replay()
    with used.open() as memory:
        assert [hit.text for hit in memory.recall("office")] == [TEXT]


# ---- damaged views


def _truncate(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2 // 4096 * 4096)


SPOIL: dict[str, Callable[[Path], Any]] = {
    "deleted": Path.unlink,
    "emptied": lambda file: file.write_bytes(b""),
    "truncated": _truncate,
    "cut in a page": lambda file: os.truncate(file, file.stat().st_size - 1000),
    "replaced by rubbish": lambda file: file.write_bytes(secrets.token_bytes(file.stat().st_size)),
    "replaced by a text": lambda file: file.write_text("not a database"),
    "one bit changed": lambda file: file.write_bytes(_flipped(file.read_bytes())),
}


def _flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


def assert_whole(place: Place, **options: Any) -> None:
    """The store opens, verifies, and answers as before."""
    with place.open(create=False, **options) as memory:
        assert [hit.text for hit in memory.recall("where is the office?", limit=1)] == [TEXT]
        memory.verify(views=True)
    with place.open(create=False, **options) as memory:
        assert len(memory.recall("office")) >= 1


@pytest.mark.parametrize("spoil", SPOIL)
def test_spoilt_views_are_refused_and_replay_brings_them_back(used: Place, spoil: str) -> None:
    """Views that can't be read are named at opening, never mended in silence; replay rebuilds them, on record."""
    SPOIL[spoil](used.views)
    for _ in range(2):
        with pytest.raises(ViewsDamaged, match=r"tallystick replay"):
            used.open()
    rebuilt = used.replay(reason="the views were spoilt", actor="user:operator")
    assert set(rebuilt.after) == {view.name for view in ALL_VIEWS}
    assert_whole(used)
    with used.open() as memory:
        last = [logged for logged in memory.events() if logged.header.kind == "views.rebuilt"]
        assert [(logged.event.actor, getattr(logged.event, "reason", "")) for logged in last] == [
            ("user:operator", "the views were spoilt")
        ]


def test_views_under_another_key_are_refused_and_replay_brings_them_back(used: Place) -> None:
    """A views key that was lost or replaced costs a rebuild, and no memory."""
    (used.keys / "views.key").write_text(secrets.token_hex(32) + "\n", encoding="ascii")
    with pytest.raises(ViewsDamaged, match=r"tallystick replay"), used.open() as memory:
        memory.recall("office")
    used.replay()
    assert_whole(used)


EDITS = {
    "status": "UPDATE memories SET status = 'current' WHERE status = 'forgotten'",
    "status, hiding": "UPDATE memories SET status = 'forgotten' WHERE number = 1",
    "namespace": "UPDATE memories SET namespace = 'project:app' WHERE namespace = 'user:ana'",
    "tags": "UPDATE memories SET tags = '[\"other\"]' WHERE number = 1",
    "importance": "UPDATE memories SET importance = 1.0 WHERE number = 1",
    "recorded_at": "UPDATE memories SET recorded_at = recorded_at + 1 WHERE number = 1",
    "expires_at": "UPDATE memories SET expires_at = 1 WHERE number = 1",
    "text_position": "UPDATE memories SET text_position = 2 WHERE number = 1",
    "another stream": "UPDATE memories SET stream = zeroblob(16) WHERE number = 1",
    "numbers swapped": "UPDATE memories SET number = 99 WHERE number = 1",
    "a row deleted": "DELETE FROM memories WHERE number = 1",
    "a row added": "INSERT INTO access SELECT memory, position, 99, receipt, verb, actor, at FROM access LIMIT 1",
    "words": "INSERT INTO keyword (rowid, own, tags) VALUES (2, 'office', '')",
    "words gone": "DELETE FROM keyword_docsize WHERE id = 1",
    "vector": "UPDATE vector SET input = NULL WHERE number = 1",
    "who read": "UPDATE access SET actor = 'somebody else'",
    "trail": "DELETE FROM audit WHERE kind = 'memory.recalled'",
}


@pytest.mark.parametrize("edit", EDITS)
def test_views_that_were_edited_are_refused_and_replay_brings_them_back(used: Place, edit: str) -> None:
    """Views that somebody with their key changed while the store was closed are compared with the log at opening."""
    used.edit(used.views, EDITS[edit])
    with pytest.raises(ViewsDamaged, match=r"tallystick replay"):
        used.open()
    used.replay()
    assert_whole(used)


def test_views_that_were_put_back_from_earlier_are_caught_up(used: Place) -> None:
    """An older copy of the views is true as far as it goes: it is folded on, and answers as the log says."""
    older = used.views.read_bytes()
    with used.open() as memory:
        memory.store("The office moved to Porto")
    used.views.write_bytes(older)
    with used.open() as memory:
        assert len(memory.recall("office", limit=10)) == 2
        memory.verify(views=True)


def test_the_log_stays_writable_while_the_views_are_damaged(used: Place) -> None:
    """A view that fails stops; what was stored is stored, and the caller is told its id."""
    with used.open() as memory:
        with memory._opened.views.opened().datastore.transaction(commit=True) as cursor:
            cursor.execute("DROP TABLE vector")
        outcome = memory.store("Stored all the same")
        assert outcome.status == "stored"
        memory.rebuild(reason="a table was gone")
        assert memory.get(outcome.id).text == "Stored all the same"


def test_what_was_stored_is_answered_while_the_views_are_busy(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once a text is in the log its id is given back, though another process holds the views for long."""
    monkeypatch.setattr(driver, "BUSY_SECONDS", 0.05)
    with place.open() as memory:
        memory.store(TEXT)
        key = bytes.fromhex((place.keys / "views.key").read_text(encoding="ascii"))
        holder = Datastore(File(place.views, ViewsDamaged, key))
        with holder.transaction(commit=True):
            outcome = memory.store("Stored all the same")
            with pytest.raises(Unavailable):
                memory.recall("stored")
        holder.close()
        assert memory.get(outcome.id).text == "Stored all the same"
        assert len(memory.recall("stored")) == 1


# ---- a model at work


class SlowEmbedder:
    """An embedder that takes its time over documents: a vector counts words by their hash."""

    runtime = "test"

    def __init__(self, seconds: float = 0.0) -> None:
        self.space = Space("slow", "00" * 32, "11" * 32, 64, "count", ("", ""), "float32")
        self.seconds = seconds
        self.made: list[str] = []
        self.failing = False

    def document(self, text: str) -> Embedded:
        """The vector of a text."""
        time.sleep(self.seconds)
        if self.failing:
            raise ModelMissing
        self.made.append(text)
        return self.query(text)

    def query(self, text: str) -> Embedded:
        """The vector of a question."""
        counts = numpy.full(64, 0.01, dtype=numpy.float32)
        for word in text.lower().split():
            counts[sum(word.encode()) % 64] += 1
        return Embedded(counts / numpy.linalg.norm(counts))


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> SlowEmbedder:
    """What the setting `auto` resolves to, instead of the real model."""
    embedder = SlowEmbedder()
    monkeypatch.setattr(places, "resolve_embedder", lambda model: None if model == "none" else embedder)
    return embedder


NOTES = [f"Note {number} about office {number % 3}" for number in range(10)]


def test_recall_does_not_wait_for_a_backlog(place: Place, slow: SlowEmbedder) -> None:
    """A recall waits 300 ms at most for missing vectors, answers by words what has none yet, and says how many."""
    slow.seconds = 0.1
    with place.open(model="auto") as memory:
        for note in NOTES:
            memory.store(note)
        began = time.monotonic()
        recall = memory.recall("Note 7 about office", limit=10)
        assert 0.25 < time.monotonic() - began < 1.0
        (said,) = recall.degraded
        assert 5 <= int(said.split()[0]) <= 9
        assert "no vector yet" in said
        assert len(recall) == 10
        assert memory.status().missing_vectors > 0


def test_embed_makes_every_missing_vector(place: Place, slow: SlowEmbedder) -> None:
    """Embedding in the foreground returns when nothing is missing, and says how many vectors that made."""
    with place.open() as memory:
        for note in NOTES:
            memory.store(note)
    shown: list[int] = []
    slow.seconds = 0.03
    with place.open(model="auto") as memory:
        assert memory.embed(shown.append) == 10
        assert shown == sorted(shown, reverse=True)
        assert len(shown) > 0
        assert (memory.embed(), memory.status().missing_vectors) == (0, 0)
        assert memory.recall("Note 7").degraded == ()
    assert sorted(slow.made) == sorted(NOTES)


def test_nothing_is_embedded_twice(place: Place, slow: SlowEmbedder) -> None:
    """Vectors outlive the session, a rebuild and a replay: each text is embedded once."""
    with place.open(model="auto") as memory:
        for note in NOTES:
            memory.store(note)
        memory.embed()
        memory.rebuild()
        memory.recall("Note 7")
    place.replay()
    with place.open(model="auto") as memory:
        assert memory.recall("Note 7").degraded == ()
        stored = memory.recall("Note 7 about office 1", limit=1).hits[0].id
        memory.forget(stored)
        memory.restore(stored)
        assert memory.embed() == 0
    assert sorted(slow.made) == sorted(NOTES)


def test_a_text_that_another_process_stored_is_embedded_here(place: Place, slow: SlowEmbedder) -> None:
    """What was stored by an opening without a model is found by meaning by one that has it."""
    with place.open(model="auto") as memory, place.open() as other:
        memory.recall("office")
        other.store("Something of another process")
        assert [hit.text for hit in memory.recall("office", limit=1)] == ["Something of another process"]
        assert len(slow.made) == 1


def test_a_model_never_crosses_namespaces(place: Place, slow: SlowEmbedder) -> None:
    """Search by meaning finds every memory of the namespaces asked, and none of another."""
    with place.open(model="auto") as memory:
        for number in range(5):
            memory.store(f"Same words {number}", namespace=f"n{number % 2}")
        memory.embed()
        for name, count in (("n0", 3), ("n1", 2), ("n%", 0), ("N0", 0)):
            found = memory.recall("Same words 0", namespaces=[name])
            assert [hit.record.namespace for hit in found] == [name] * count


def test_a_model_finds_only_what_is_current(place: Place, slow: SlowEmbedder) -> None:
    """Forgotten, superseded and expired memories have no place among the nearest."""
    with place.open(model="auto") as memory:
        memory.forget(memory.store("Office one").id)
        memory.store("Office two", key="office")
        memory.store("Office three", key="office")
        memory.store("Office four", expires_at="2020-01-01T00:00:00Z")
        memory.embed()
        assert [hit.text for hit in memory.recall("nothing in common")] == ["Office three"]


def test_recall_goes_on_by_words_when_the_model_fails(place: Place, slow: SlowEmbedder) -> None:
    """A model that breaks takes nothing with it but the search by meaning, and the answer says so."""
    slow.failing = True
    with place.open(model="auto") as memory:
        memory.store(TEXT)
        for _ in range(3):
            recall = memory.recall("office")
            assert [hit.text for hit in recall] == [TEXT]
            assert recall.degraded


def test_embed_ends_when_the_model_fails(place: Place, slow: SlowEmbedder) -> None:
    """Embedding with a model that breaks raises what broke it, and does not wait for ever."""
    slow.failing = True
    ended: list[str] = []

    def embed(memory: Memory) -> None:
        try:
            memory.embed()
        except ModelMissing:
            ended.append("raised")

    with place.open(model="auto") as memory:
        memory.store(TEXT)
        thread = threading.Thread(target=embed, args=(memory,), daemon=True)
        thread.start()
        thread.join(3)
    assert ended == ["raised"]


def test_a_model_that_is_not_there_is_an_error_where_it_was_named(place: Place, tmp_path: Path) -> None:
    """A folder that holds no model is refused by name: no other space is chosen instead."""
    (tmp_path / "empty").mkdir()
    with place.open(model=str(tmp_path / "empty")) as memory:
        memory.store(TEXT)
        with pytest.raises(ModelMissing, match="empty"):
            memory.recall("office")


@pytest.mark.parametrize("spoil", SPOIL)
def test_spoilt_vectors_are_made_again(used: Place, slow: SlowEmbedder, spoil: str) -> None:
    """Vectors can be computed again at any time: once vectors.db is spoilt, replay leads back to a whole store."""
    with used.open(model="auto") as memory:
        memory.embed()
    SPOIL[spoil](used.store / "vectors.db")
    try:
        used.open(model="auto").close()
    except ViewsDamaged as error:
        assert "tallystick replay" in str(error)  # noqa: PT017
    used.replay()
    assert_whole(used, model="auto")


def test_vectors_under_another_key_are_made_again(used: Place, slow: SlowEmbedder) -> None:
    """A views key that was replaced costs the vectors, which are computed again."""
    with used.open(model="auto") as memory:
        memory.embed()
    (used.keys / "views.key").write_text(secrets.token_hex(32) + "\n", encoding="ascii")
    used.replay()
    assert_whole(used, model="auto")


# ---- with the real model

PARAPHRASES = {
    "Use WAL mode for concurrent readers": "how do I let many processes look at the database at once?",
    "Ana is allergic to peanuts": "which foods must we keep away from her?",
    "The nightly build runs at half past two": "when does the continuous integration job start?",
    "Deploys to production are frozen on Fridays": "can I release a new version at the end of the week?",
    "The dentist's appointment is on the twelfth of May": "when do I get my teeth checked?",
    "She prefers tea to coffee in the morning": "what should I offer her to drink at breakfast?",
    "The staging server has two processors and 16 GB of memory": "how big is the test machine?",
    "Marta is Ana's younger sister": "who are the siblings of the user?",
    "Retry a busy database three times before giving up": "what to do when SQLite is locked?",
    "The landlord raised the rent by five per cent": "how much more does the flat cost now?",
}
OTHERS = [
    "Bananas are rich in potassium", "The cat sleeps on the radiator", "Rust has no garbage collector",
    "The museum is closed on Mondays", "Paint the fence before the rain comes", "Chess openings take years to learn",
    "The train to Porto leaves from platform four", "Granite is harder than marble", "The choir sings on Sundays",
    "Water the orchids once a week", "The bicycle needs a new chain", "Whales are mammals",
    "The printer is out of toner again", "Sourdough needs a warm kitchen", "The lighthouse was built in 1868",
    "Violins are made of spruce and maple", "The moon is full tonight", "Gravel paths get muddy in winter",
    "The parcel was left with the neighbour", "Comets have tails of gas and dust",
]  # fmt: skip


@pytest.fixture(scope="module")
def real() -> Embedder:
    """The pinned ONNX model of the `offline-models` extra."""
    embedder = resolve_embedder("auto")
    if embedder is None:
        pytest.skip("recall by meaning is not checked with real weights: tallystick[offline-models] is not installed")
    return embedder


@pytest.fixture(scope="module")
def learned(real: Embedder, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A store of thirty memories whose vectors were made by the real model."""
    place = Place(tmp_path_factory.mktemp("learned"))
    with place.open(model="auto") as memory:
        for text in (*PARAPHRASES, *OTHERS):
            memory.store(text)
        assert memory.embed() == 30
    return place


@pytest.fixture
def counted(real: Embedder, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that are embedded from here on, by the real model."""
    made: list[str] = []

    class Counted:
        space, runtime, query = real.space, real.runtime, staticmethod(real.query)

        def document(self, text: str) -> Embedded:
            """The vector of a text, noted down."""
            made.append(text)
            return real.document(text)

    monkeypatch.setattr(places, "resolve_embedder", lambda model: None if model == "none" else Counted())
    return made


def test_paraphrases_are_found_by_meaning(learned: Place, counted: list[str]) -> None:
    """Questions that share hardly a word with the answer find it among the first three, without any new vector."""
    with learned.open(model="auto") as memory:
        assert memory.status().model == "answerai-colbert-small-v1"
        ranks = {}
        for text, question in PARAPHRASES.items():
            recall = memory.recall(question, limit=30)
            assert recall.degraded == ()
            ranks[text] = [hit.text for hit in recall].index(text) + 1
    assert sum(rank <= 3 for rank in ranks.values()) >= 9, ranks
    assert sum(rank == 1 for rank in ranks.values()) >= 5, ranks
    assert counted == []


def test_words_alone_do_not_find_the_paraphrases(learned: Place) -> None:
    """The test above needs its model: by words alone the same questions find far less."""
    with learned.open(model="none") as memory:
        firsts = [[hit.text for hit in memory.recall(question, limit=3)] for question in PARAPHRASES.values()]
    assert sum(text in first for text, first in zip(PARAPHRASES, firsts, strict=True)) <= 6


def test_vectors_of_the_real_model_are_in_vectors_db(learned: Place, counted: list[str]) -> None:
    """Every text has a vector of float16 on the disk, under its memory; a new text adds one."""
    with learned.open(model="auto") as memory:
        memory.recall("anything", limit=1)
        new = memory.store("Hedgehogs hibernate in piles of leaves")
        assert memory.embed() in (0, 1)
        cache = memory._opened._cache
        assert cache is not None
        rows = cache._datastore.rows("SELECT hex(stream), length(value) FROM made JOIN vector USING (number)")
        dimensions = memory._opened._search._embedder.space.dimensions  # type: ignore[union-attr]
    assert len(rows) == 31
    assert {length for _, length in rows} == {2 * dimensions}
    assert new.id.upper() in {stream for stream, _ in rows}
    assert counted == ["Hedgehogs hibernate in piles of leaves"]


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    """Closing a memory ends the threads that it began."""
    yield
    for thread in threading.enumerate():
        if thread.name.startswith("tallystick"):
            thread.join(1)
            assert not thread.is_alive()


ODD: dict[str, tuple[Callable[[Memory, Path], Any], str]] = {
    "no folder to export to": (lambda memory, folder: memory.export(folder / "no" / "x"), "no folder"),
    "no folder for Markdown": (lambda memory, folder: memory.export(folder / "no" / "x", markdown=True), "no folder"),
    "deep metadata": (lambda memory, _: memory.store("a", metadata=deep(5000)), "metadata"),
    "a position that is none": (lambda _, folder: Memory.open(folder / "s", read_only=True, until="a"), "until"),  # type: ignore[arg-type]
    "a position beyond all": (lambda _, folder: Memory.open(folder / "s", read_only=True, until=10**30), "until"),
}


def deep(levels: int) -> dict[str, Any]:
    """An object inside an object, and so on."""
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize("case", ODD)
def test_odd_values_are_refused_in_words(tmp_path: Path, case: str) -> None:
    """Not with an error of Python's own."""
    act, words = ODD[case]
    with Memory.open(tmp_path / "s", model="none") as memory:
        memory.store("a text")
    with Memory.open(tmp_path / "s", model="none") as memory, pytest.raises(Refused, match=words):
        act(memory, tmp_path)


def test_a_store_is_not_inside_a_file(tmp_path: Path) -> None:
    """What is no directory holds no store, and becomes none."""
    (tmp_path / "file").touch()
    with pytest.raises(NotFound, match="no store"):
        Memory.open(tmp_path / "file", create=False)
    with pytest.raises(Refused, match="can't be a store's directory"):
        Memory.open(tmp_path / "file")
    with Memory.temporary() as memory:
        memory.store("a")
        assert len(memory.log(limit=10**30)) == 1
