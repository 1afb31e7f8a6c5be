"""An installation is made whole, opened only with its own keys, and checked as deeply as is due before it serves."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tallystick import Memory
from tallystick.errors import (
    KeysMissing,
    LogBehindMark,
    LogDamaged,
    NotFound,
    Refused,
    StoreExists,
    StoreIsNewer,
    StreamErased,
    TallystickError,
    Unavailable,
    ViewsDamaged,
)
from tallystick.events import installation as installation_module
from tallystick.events.checkpoint import open_note
from tallystick.events.claims import PLACES
from tallystick.events.driver import Datastore, File
from tallystick.events.envelope import Header, payload_hash, sign_entry
from tallystick.events.installation import FILE, FORMAT, Installation, stamp
from tallystick.events.key_places import Directory
from tallystick.events.keys import NAMES, Keys, create_keys
from tallystick.events.kinds import LogCreated, Stored
from tallystick.events.mapper import new_id
from tallystick.events.mark import SLOT_BYTES, Mark
from tallystick.events.settings import write_setting
from tallystick.events.signing import SeedSigner
from tallystick.projections.views import GROUPS
from tallystick.queries.verify import verify

from .conftest import Place, read, store

TEXTS = ("the first text", "the second text", "the third text")


@pytest.fixture
def written(place: Place) -> Place:
    """A closed store: three memories, one of them with a key, one forgotten; a recall; a checkpoint; a mark.

    In the memory log positions 1 to 3 are the texts and 4 is the end of the second one's stream.
    """
    with Memory.open(place.store, keys=place.keys, model="none") as memory:
        stored = [memory.store(text, key="k" if n == 2 else None, command_id=f"c{n}") for n, text in enumerate(TEXTS)]
        memory.forget(stored[1].id)
        memory.recall("text")
        memory.get(stored[0].id)
    return place


@contextmanager
def tampering(place: Place) -> Iterator[Any]:
    """A cursor on log.db without the triggers, for somebody who has the file and no key."""
    datastore = Datastore(File(place.store / FILE, LogDamaged))
    try:
        with datastore.transaction(commit=True) as cursor:
            triggers = cursor.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
            for name, _ in triggers:
                cursor.execute(f"DROP TRIGGER {name}")
            yield cursor
            for _, statement in triggers:
                cursor.execute(statement)
    finally:
        datastore.close()


def opened(place: Place) -> None:
    """Open the store as a person does, and close it."""
    Memory.open(place.store, keys=place.keys, model="none").close()


def audited(place: Place, root: bytes | None = None) -> None:
    """Verify the store without opening it to be served, as `tallystick verify` does."""
    installation = Installation.audit(place.store, root, None if root else place.keys)
    try:
        verify(installation)
    finally:
        installation.abandon()


def read_all(place: Place) -> list[str]:
    """Open the store and read every memory by recall, by name and from the log."""
    with Memory.open(place.store, keys=place.keys, model="none") as memory:
        found = [hit.text for hit in memory.recall("first second third text")]
        for logged in memory.events():
            if isinstance(logged.event, Stored):
                memory.history(logged.header.stream.hex())
        return found


# ---- making a store


def test_a_store_is_made(place: Place) -> None:
    """Two logs, each with its first event, signed; nothing else yet."""
    installation = place.create()
    assert [log.name for log in installation.logs] == ["memory", "access"]
    for log in installation.logs:
        created = log.event_at(0)
        assert isinstance(created.event, LogCreated)
        assert (created.event.log, log.tip.size, created.header.revision) == (log.name, 1, 0)
    assert installation.memory.origin != installation.access.origin
    installation.abandon()


def test_a_store_is_not_made_twice(place: Place) -> None:
    """What is there is left as it is."""
    place.create().abandon()
    with pytest.raises(StoreExists, match="already holds a store"):
        Installation.create(place.store, place.keys.with_name("others"))
    assert not place.keys.with_name("others").exists()
    place.open().abandon()


def test_a_store_is_made_in_one_transaction(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where making it fails nothing is left that would be taken for a store: it can be made again."""
    real = installation_module._log_created

    def broken(store_id: bytes, name: str, keys: Keys) -> LogCreated:
        if name == "access":
            raise Unavailable("half way")
        return real(store_id, name, keys)

    monkeypatch.setattr(installation_module, "_log_created", broken)
    with pytest.raises(Unavailable, match="half way"):
        place.create()
    monkeypatch.undo()
    with pytest.raises(NotFound):
        place.open()
    shutil.rmtree(place.keys)
    place.create().abandon()
    audited(place)


def test_several_threads_make_one_store(place: Place) -> None:
    """One makes it, the others are told that it is there; all of them see the same log."""

    def make(_: int) -> bytes:
        try:
            installation = place.create()
        except StoreExists:
            installation = place.open()
        origin = installation.memory.origin
        installation.abandon()
        return origin

    with ThreadPoolExecutor(6) as pool:
        assert len(set(pool.map(make, range(6)))) == 1
    audited(place)


def test_opening_never_makes_a_store(place: Place) -> None:
    """Nor a directory, nor a key; it says how a store is made."""
    for open_it in (place.open, lambda: Installation.audit(place.store, None, place.keys)):
        with pytest.raises(NotFound, match=r"There is no store in .*tallystick init"):
            open_it()
    with pytest.raises(NotFound):
        Memory.open(place.store, keys=place.keys, model="none", create=False)
    assert (place.store.exists(), place.keys.exists()) == (False, False)


def test_what_is_left_of_a_store_is_not_made_anew(written: Place) -> None:
    """Views without a log are what remains of a loss, not an empty place."""
    (written.store / FILE).unlink()
    with pytest.raises(LogDamaged, match=r"holds views-.* and no log\.db: the log is gone"):
        opened(written)
    assert not (written.store / FILE).exists()


def test_a_store_is_one_file_once_it_is_closed(written: Place) -> None:
    """No write-ahead log stays behind: what is copied then is whole."""
    assert [path.name for path in written.store.glob("log.db*")] == ["log.db"]
    assert stamp(written.store / FILE) is not None


# ---- opening with keys


@pytest.mark.parametrize("name", [name for name in NAMES if name != "views"])  # views are made anew, under any key
def test_a_key_of_another_store_is_named(written: Place, tmp_path: Path, name: str) -> None:
    """Each key is this store's or is refused, and nothing is written with it."""
    create_keys(Directory(tmp_path / "others", named=True))
    shutil.copy(tmp_path / "others" / f"{name}.key", written.keys / f"{name}.key")
    before = (written.store / FILE).read_bytes()
    with pytest.raises((KeysMissing, LogDamaged)) as error:
        opened(written)
    assert f"{name}.key" in str(error.value) or (name == "root" and "root key" in str(error.value))
    assert (written.store / FILE).read_bytes() == before


def test_another_key_of_the_views_is_damage_of_the_views(written: Place, tmp_path: Path) -> None:
    """The views are disposable: under another key they do not open, and are rebuilt; the log is untouched."""
    create_keys(Directory(tmp_path / "others", named=True))
    shutil.copy(tmp_path / "others" / "views.key", written.keys / "views.key")
    with pytest.raises(ViewsDamaged, match="tallystick replay"):
        read_all(written)
    audited(written)
    Memory.replay(written.store, keys=written.keys)
    assert sorted(read_all(written)) == sorted((TEXTS[0], TEXTS[2]))


@pytest.mark.parametrize(
    ("first", "second"), [("writer", "log"), ("writer", "root"), ("kek", "index"), ("kek", "views"), ("log", "kek")]
)
def test_keys_that_were_exchanged_are_found(written: Place, first: str, second: str) -> None:
    """Two files swapped by a careless copy."""
    one, two = (written.keys / f"{name}.key" for name in (first, second))
    kept = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(kept)
    with pytest.raises((KeysMissing, LogDamaged)) as error:
        opened(written)
    assert first in str(error.value) or second in str(error.value)


def test_all_keys_of_another_store_are_refused(written: Place, tmp_path: Path) -> None:
    """Whoever mixes up two directories is told, and neither store is written to."""
    other = Place(tmp_path / "other-store", tmp_path / "other-keys")
    other.create().abandon()
    before = (written.store / FILE).read_bytes()
    with pytest.raises(TallystickError) as error:
        Memory.open(written.store, keys=other.keys, model="none")
    assert isinstance(error.value, KeysMissing | LogDamaged)
    assert str(other.keys) in str(error.value) or "root key" in str(error.value)
    assert (written.store / FILE).read_bytes() == before


def test_an_auditor_needs_the_root_public_key_only(written: Place) -> None:
    """No secret, no keys directory: entries, roots, signatures and checkpoints are verified all the same."""
    root = written.open()
    public = root.keys.root.public if root.keys else b""
    root.abandon()
    shutil.rmtree(written.keys)
    audited(written, public)
    with pytest.raises(LogDamaged, match="it was not begun by the root key"):
        audited(written, SeedSigner(bytes(32)).public)


def test_an_auditor_writes_nothing(written: Place) -> None:
    """Neither to the log nor to the keys."""
    before = {path: path.read_bytes() for path in (written.store / FILE, written.keys / "mark")}
    audited(written)
    assert {path: path.read_bytes() for path in before} == before


# ---- what is checked when


def test_an_untouched_store_is_trusted_up_to_the_mark(written: Place) -> None:
    """Nobody has written since it was closed: only what is new is checked, which is nothing."""
    installation = written.open()
    assert installation.checked == "new"
    installation.abandon()


def test_a_store_that_was_touched_is_checked_whole(written: Place) -> None:
    """A changed time of the file is enough."""
    os.utime(written.store / FILE)
    installation = written.open()
    assert installation.checked == "structure"
    installation.abandon()


def test_a_store_that_was_not_closed_is_checked_whole(written: Place) -> None:
    """Whoever was killed left no word of how the files were."""
    abandoned = written.open()
    store(abandoned.memory, "and then the power went")
    abandoned.abandon()
    installation = written.open()
    assert installation.checked == "structure"
    installation.abandon()


def test_whoever_joins_an_open_store_trusts_it_up_to_the_mark(written: Place) -> None:
    """The first to open it has checked it, and has it since."""
    first = written.open()
    os.utime(written.store / FILE)
    second = written.open()
    assert (second.checked, second.alone) == ("new", False)
    for installation in (second, first):
        installation.abandon()


def test_a_checkpoint_is_signed_at_the_close(written: Place) -> None:
    """By the checkpoint key that the log's first event names, over its size and root, once for each size."""
    opened(written)
    installation = written.open()
    for number, log in enumerate(installation.logs):
        created = log.event_at(0).event
        assert isinstance(created, LogCreated)
        rows = installation.datastore.rows("SELECT size, note FROM checkpoint WHERE log = ?", (number,))
        assert [size for size, _ in rows] == [log.tip.size]
        checkpoint = open_note(rows[0][1].decode(), log.origin.hex(), created.checkpoint)
        assert (checkpoint.size, checkpoint.root) == (log.tip.size, log.tip.frontier.root())
    installation.abandon()


# ---- what was tampered with


class Answer(NamedTuple):
    """The error that names what was done: its type, its log and position, and words that its message must hold."""

    kind: type[TallystickError]
    log: str | None
    position: int | None
    words: str


class Tampering(NamedTuple):
    """Something that somebody does to a closed store, and what opening and auditing it answer; None is no answer."""

    what: str
    act: Callable[[Place], None]
    at_open: Answer | None
    in_audit: Answer | None


def both(what: str, act: Callable[[Place], None], answer: Answer) -> Tampering:
    """A tampering that opening and auditing find alike."""
    return Tampering(what, act, answer, answer)


def by_audit(what: str, act: Callable[[Place], None], answer: Answer) -> Tampering:
    """A tampering that only an audit looks for."""
    return Tampering(what, act, None, answer)


def at(position: int | None, words: str, log: str | None = "memory") -> Answer:
    """The log is damaged, at a position."""
    return Answer(LogDamaged, log, position, words)


def behind(position: int, words: str) -> Answer:
    """The log is behind its mark."""
    return Answer(LogBehindMark, "memory", position, words)


def sql(*statements: str) -> Callable[[Place], None]:
    """Statements by somebody who has the file."""

    def act(place: Place) -> None:
        with tampering(place) as cursor:
            for statement in statements:
                assert cursor.execute(statement).rowcount != 0, statement  # it did something

    return act


def entry_byte(position: int, from_end: int, log: int = 0) -> Callable[[Place], None]:
    """Change one byte of an entry, counted from its end; the signature is the last 64 of them."""

    def act(place: Place) -> None:
        with tampering(place) as cursor:
            where = (log * PLACES + position,)
            entry = bytearray(cursor.execute("SELECT entry FROM entry WHERE place = ?", where).fetchone()[0])
            entry[-from_end] ^= 1
            cursor.execute("UPDATE entry SET entry = ? WHERE place = ?", (bytes(entry), *where))

    return act


def longer(position: int) -> Callable[[Place], None]:
    """Add a byte to a payload."""

    def act(place: Place) -> None:
        with tampering(place) as cursor:
            body = cursor.execute("SELECT body FROM payload WHERE place = ?", (position,)).fetchone()[0]
            cursor.execute("UPDATE payload SET body = ? WHERE place = ?", (body + b"\0", position))

    return act


def appended(signed: bool, **changes: Any) -> Callable[[Place], None]:
    """Append an entry that fits in all but its signature, or in all but what is changed."""

    def act(place: Place) -> None:
        installation = Installation.audit(place.store, None, place.keys)
        tip, body = installation.memory.follow(), b"a forged payload"
        own = installation.keys.writer if installation.keys else None
        fields: dict[str, Any] = {
            "v": 1, "id": new_id(), "origin": installation.memory.origin, "position": tip.size,
            "root": tip.frontier.root(), "key": installation.memory.event_at(0).header.key, "time": tip.time + 1,
            "kind": "memory.stored", "schema": 1, "stream": b"f" * 16, "revision": 0, "cipher": 1,
            "commitment": b"c" * 32, "payload_hash": payload_hash(body), "payload_length": len(body),
        }  # fmt: skip
        installation.abandon()
        header = Header(**{**fields, **changes})
        entry = sign_entry(header, own if signed and own else SeedSigner(bytes(range(32))))
        with tampering(place) as cursor:
            row = (tip.size, 0, header.id, header.stream, header.revision, entry)
            cursor.execute("INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?)", row)
            cursor.execute("INSERT INTO payload VALUES (?, ?)", (tip.size, body))

    return act


def setting(name: str, value: bytes) -> Callable[[Place], None]:
    """Write a setting with its checksum, which is no secret."""

    def act(place: Place) -> None:
        with tampering(place) as cursor:
            write_setting(cursor, name, value)

    return act


def over_the_mark(act: Callable[[Place], None]) -> Callable[[Place], None]:
    """Do it to what was appended after the mark: as when a killed process has left events behind it."""

    def later(place: Place) -> None:
        mark = (place.keys / "mark").read_bytes()
        with Memory.open(place.store, keys=place.keys, model="none") as memory:
            memory.store("after the mark")
        (place.keys / "mark").write_bytes(mark)
        act(place)

    return later


NOT_SIGNED = "it is not signed by the key in force"
ANOTHER = "it is not the entry that later ones were signed over"
COLUMNS = "its index columns are not those of its header"
PAYLOAD = "its payload is not the one that was signed"
PLACE = "another place or log"
GONE = "the entry is missing"
CLAIM = "is not held as the events say"
FIRST = "(SELECT stream FROM entry WHERE place = 1)"
SMALLEST = "(SELECT min(tag) FROM claim)"


def exchanged(table: str) -> Callable[[Place], None]:
    """Exchange the rows of positions 1 and 2."""
    return sql(*(f"UPDATE {table} SET place = {new} WHERE place = {old}" for old, new in ((1, 99), (2, 1), (99, 2))))


def copied(column: str, table: str, source: int, target: int) -> Callable[[Place], None]:
    """Put what stands in one place into another."""
    return sql(
        f"UPDATE {table} SET {column} = (SELECT {column} FROM {table} WHERE place = {source}) WHERE place = {target}"
    )


ENTRIES = (
    both("a signature", entry_byte(2, 1), at(2, NOT_SIGNED)),
    both("the last signature", entry_byte(4, 1), at(4, NOT_SIGNED)),
    both("a signature of the access log", entry_byte(1, 1, 1), at(1, NOT_SIGNED, "access")),
    both("a header's last byte", entry_byte(2, 65), at(2, "position 2")),
    both(
        "nothing but zeros",
        sql("UPDATE entry SET entry = zeroblob(length(entry)) WHERE place = 2"),
        at(2, "it is not an entry"),
    ),
    both("an empty entry", sql("UPDATE entry SET entry = x'' WHERE place = 3"), at(3, "it is not an entry")),
    both("an entry in another's place", copied("entry", "entry", 1, 2), at(2, PLACE)),
    both("an entry of the other log", copied("entry", "entry", PLACES + 1, 1), at(1, PLACE)),
    both("a middle entry is missing", sql("DELETE FROM entry WHERE place = 2"), at(2, GONE)),
    both("the first entry is missing", sql("DELETE FROM entry WHERE place = 0"), at(0, "has no first entry")),
    both("the first entry is changed", entry_byte(0, 1), at(0, "not begun by the root key")),
    both("two entries are exchanged", exchanged("entry"), at(1, PLACE)),
    both("an id column", sql("UPDATE entry SET id = zeroblob(16) WHERE place = 2"), at(2, COLUMNS)),
    both("a stream column", sql("UPDATE entry SET stream = zeroblob(16) WHERE place = 2"), at(2, COLUMNS)),
    both("a revision column", sql("UPDATE entry SET revision = 7 WHERE place = 2"), at(2, COLUMNS)),
    both("a log column", sql("UPDATE entry SET log = 1 WHERE place = 2"), at(2, COLUMNS)),
)
PAYLOADS = (
    both("a payload", sql("UPDATE payload SET body = zeroblob(length(body)) WHERE place = 3"), at(3, PAYLOAD)),
    both("a longer payload", longer(3), at(3, PAYLOAD)),
    both("a missing payload", sql("DELETE FROM payload WHERE place = 1"), at(1, "its payload is gone")),
    both(
        "a missing payload of the access log",
        sql(f"DELETE FROM payload WHERE place = {PLACES + 1}"),
        at(1, "its payload is gone", "access"),
    ),
    both("payloads in another order", exchanged("payload"), at(1, PAYLOAD)),
    both("the payload of the first entry", sql("UPDATE payload SET body = x'80' WHERE place = 0"), at(0, PAYLOAD)),
)
KEYS_AND_CLAIMS = (
    by_audit("a data key", sql("UPDATE data_key SET wrapped = zeroblob(72) WHERE place = 1"), at(1, "data key")),
    by_audit("a data key that was cut", sql("UPDATE data_key SET wrapped = x'00' WHERE place = 1"), at(1, "data key")),
    by_audit("a data key's generation", sql("UPDATE data_key SET generation = 2 WHERE place = 1"), at(1, "data key")),
    by_audit("a missing data key", sql("DELETE FROM data_key WHERE place = 1"), at(1, "its data key is gone")),
    by_audit(
        "a data key too many",
        sql("INSERT INTO data_key SELECT 99, generation, wrapped FROM data_key WHERE place = 1"),
        at(99, "the data key there is missing or not accounted for"),
    ),
    by_audit(
        "another stream's data key",
        sql("UPDATE data_key SET wrapped = (SELECT wrapped FROM data_key WHERE place = 2) WHERE place = 1"),
        at(1, "data key"),
    ),
    by_audit("a missing claim", sql(f"DELETE FROM claim WHERE tag = {SMALLEST}"), at(None, CLAIM)),
    by_audit("a claim too many", sql("INSERT INTO claim VALUES (zeroblob(16), 1)"), at(None, CLAIM)),
    by_audit(
        "a claim of another", sql(f"UPDATE claim SET place = 1 + place % 3 WHERE tag = {SMALLEST}"), at(None, CLAIM)
    ),
    by_audit("a claim of nobody", sql(f"UPDATE claim SET place = 77 WHERE tag = {SMALLEST}"), at(None, CLAIM)),
)
ENDS = (
    Tampering(
        "a tail that was cut",
        sql("DELETE FROM entry WHERE place = 4", "DELETE FROM payload WHERE place = 4"),
        behind(4, "it was cut"),
        behind(4, "it was cut"),
    ),
    Tampering(
        "a tail that was cut, and its checkpoint",
        sql("DELETE FROM entry WHERE place = 4", "DELETE FROM checkpoint"),
        behind(4, "it was cut"),
        None,
    ),
    both("an event with the right root and a junk signature", appended(signed=False), at(5, NOT_SIGNED)),
    both("an event with a wrong root, signed", appended(signed=True, root=b"r" * 32), at(4, ANOTHER)),
    both("an event of another log, signed", appended(signed=True, origin=b"o" * 32), at(5, PLACE)),
    by_audit("an event that nothing opens, signed", appended(signed=True), at(5, "data key is gone")),
    both("a signature after the mark", over_the_mark(entry_byte(5, 1)), at(5, NOT_SIGNED)),
    both(
        "a payload after the mark",
        over_the_mark(sql("UPDATE payload SET body = x'00' WHERE place = 5")),
        at(5, PAYLOAD),
    ),
)
REST = (
    by_audit(
        "a checkpoint",
        sql("UPDATE checkpoint SET note = zeroblob(100) WHERE log = 0"),
        at(None, "the checkpoint of size 5 does not open"),
    ),
    by_audit(
        "a checkpoint of the other log",
        sql("UPDATE checkpoint SET note = (SELECT note FROM checkpoint WHERE log = 1) WHERE log = 0"),
        at(None, "the checkpoint of size 5"),
    ),
    by_audit(
        "a checkpoint of another size",
        sql("UPDATE checkpoint SET size = 3 WHERE log = 0"),
        at(None, "the checkpoint of size 3"),
    ),
    both(
        "a newer format",
        setting("format", (FORMAT + 1).to_bytes(4, "big")),
        Answer(StoreIsNewer, None, None, "pgrade"),
    ),
    both(
        "a format that says nothing",
        sql("UPDATE setting SET value = x'00' WHERE name = 'format'"),
        at(None, "'format' of log.db is not what was written", None),
    ),
    both("no format", sql("DELETE FROM setting WHERE name = 'format'"), at(None, "does not say which store", None)),
    both("no store id", sql("DELETE FROM setting WHERE name = 'store'"), at(None, "does not say which store", None)),
    by_audit("a missing table", sql("DROP TABLE claim"), at(None, "no such table", None)),
)
TAMPERINGS = (*ENTRIES, *PAYLOADS, *KEYS_AND_CLAIMS, *ENDS, *REST)


def require(expected: Answer | None, look: Callable[[Place], None], place: Place) -> None:
    """Looking answers as expected; where nothing is expected, any damage is an answer, and no other error is."""
    if expected is None:
        with suppress(LogDamaged):
            look(place)
        return
    with pytest.raises(expected.kind) as error:
        look(place)
    assert type(error.value) is expected.kind
    assert expected.words in str(error.value)
    if isinstance(error.value, LogDamaged):
        assert (error.value.log, error.value.position) == (expected.log, expected.position)
        assert "Stop writing, keep the files" in str(error.value)
        assert expected.log is None or expected.log in str(error.value)


@pytest.mark.parametrize("tampering", TAMPERINGS, ids=lambda t: t.what)
def test_what_was_tampered_with_is_named(written: Place, tampering: Tampering) -> None:
    """At the opening where it is due, by `verify` always: which error, which log, which position, what to do."""
    tampering.act(written)
    changed = (written.store / FILE).read_bytes()
    require(tampering.at_open, opened, written)
    if tampering.at_open is not None:
        assert (written.store / FILE).read_bytes() == changed  # nothing heals silently
    require(tampering.in_audit, audited, written)


@pytest.mark.parametrize("tampering", TAMPERINGS, ids=lambda t: t.what)
def test_nothing_tampered_with_is_served(written: Place, tampering: Tampering) -> None:
    """Whoever gets as far as reading gets the texts that were signed, or an error: never another text, or fewer."""
    tampering.act(written)
    try:
        found = read_all(written)
    except TallystickError:
        return
    assert sorted(found) == sorted((TEXTS[0], TEXTS[2]))


def test_an_event_with_a_junk_signature_is_never_folded(written: Place) -> None:
    """Appended under an open Memory it stops every verb with its position, and no view moves onto it."""
    with Memory.open(written.store, keys=written.keys, model="none") as memory:
        known = memory.recall("first").hits[0].id
        views = memory._opened.views.opened()
        before = [views.position(group, "memory") for group in GROUPS]
        appended(False)(written)
        verbs: dict[str, Callable[[], object]] = {
            "store": lambda: memory.store("on top of it"),
            "forget": lambda: memory.forget(known),
            "recall": lambda: memory.recall("first"),
            "get": lambda: memory.get(known),
            "events": lambda: list(memory.events()),
            "log": memory.log,
            "verify": memory.verify,
            "status": memory.status,
            "rebuild": memory.rebuild,
        }
        for name, verb in verbs.items():
            with pytest.raises(LogDamaged, match=f"position 5: {NOT_SIGNED}"):
                verb()
                pytest.fail(f"{name} went on")
        assert [views.position(group, "memory") for group in GROUPS] == before
        with tampering(written) as cursor:
            cursor.execute("DELETE FROM entry WHERE place = 5")
            cursor.execute("DELETE FROM payload WHERE place = 5")
        assert [hit.text for hit in memory.recall("first")] == [TEXTS[0]]


def test_a_stale_memory_does_not_write_to_what_was_erased(written: Place) -> None:
    """A Memory that has the key of an erased stream in mind is told that it was erased; the key is not back."""
    with Memory.open(written.store, keys=written.keys, model="none") as memory:
        erased = memory.recall("first").hits[0].id
        memory.get(erased)
        with tampering(written) as cursor:
            cursor.execute(
                "DELETE FROM data_key WHERE place IN (SELECT place FROM entry WHERE stream = ?)",
                (bytes.fromhex(erased),),
            )
        for verb in (memory.forget, lambda _: memory.store(TEXTS[0], command_id="new")):
            with pytest.raises(StreamErased, match=f"{erased} was erased"):
                verb(erased)
        datastore = memory._opened.installation.datastore
        rows = datastore.rows(
            "SELECT * FROM data_key WHERE place IN (SELECT place FROM entry WHERE stream = ?)", (bytes.fromhex(erased),)
        )
        assert (rows, memory._opened.installation.memory.follow().size) == ([], 5)


def test_an_older_copy_is_found(written: Place, tmp_path: Path) -> None:
    """Rolled back to what it was: every signature in it holds, and it is still not what was verified before."""
    shutil.copytree(written.store, tmp_path / "copy")
    with Memory.open(written.store, keys=written.keys, model="none") as memory:
        memory.store("after the copy")
    shutil.rmtree(written.store)
    shutil.copytree(tmp_path / "copy", written.store)
    with pytest.raises(LogBehindMark, match="has 5 entries and this installation has verified 6") as error:
        opened(written)
    assert (error.value.log, error.value.position) == ("memory", 5)


def test_an_older_copy_that_went_on_is_found(written: Place, tmp_path: Path) -> None:
    """Another history of the same length, signed with the same key elsewhere, is not this one."""
    shutil.copytree(written.store, tmp_path / "copy")
    shutil.copytree(written.keys, tmp_path / "copy-keys")
    for where, keys in ((written.store, written.keys), (tmp_path / "copy", tmp_path / "copy-keys")):
        with Memory.open(where, keys=keys, model="none") as memory:
            memory.store(f"after the copy, in {where.name}")
    shutil.rmtree(written.store)
    shutil.copytree(tmp_path / "copy", written.store)
    with pytest.raises(LogBehindMark, match="another root") as error:
        opened(written)
    assert (error.value.log, error.value.position) == ("memory", 5)


def test_an_older_copy_under_an_open_store_is_found(written: Place) -> None:
    """A process that has the store open notices at its next look, and builds nothing on it."""
    installation = written.open()
    store(installation.memory, "seen by this process")
    with tampering(written) as cursor:
        cursor.execute("DELETE FROM entry WHERE place = 5")
    with pytest.raises(LogBehindMark, match="had 6: it was cut or rolled back"):
        store(installation.memory, "on top of it")
    installation.abandon()


# ---- the mark


def test_a_missing_mark_checks_everything(written: Place) -> None:
    """Every signature from the first on, since nothing says what was checked before; and it is made anew."""
    (written.keys / "mark").unlink()
    entry_byte(2, 1)(written)
    with pytest.raises(LogDamaged, match=f"position 2: {NOT_SIGNED}"):
        opened(written)
    entry_byte(2, 1)(written)
    opened(written)
    mark = Mark(written.keys)
    assert {frontier.size for frontier in mark.read().frontiers.values()} == {5, 3}
    mark.release()


def test_a_missing_mark_is_remarked(written: Place) -> None:
    """That a log which was cut would not have been noticed is no clean status."""
    (written.keys / "mark").unlink()
    with Memory.open(written.store, keys=written.keys, model="none") as memory:
        assert any("mark" in remark for remark in memory.status().remarks)


@pytest.mark.parametrize("slot", [0, 1])
def test_a_torn_slot_of_the_mark_is_survived(written: Place, slot: int) -> None:
    """A crash while it was written leaves the other slot, from which everything since is checked."""
    with (written.keys / "mark").open("r+b") as file:
        file.seek(slot * SLOT_BYTES + 20)
        file.write(b"torn")
    opened(written)
    audited(written)
    assert sorted(read_all(written)) == sorted((TEXTS[0], TEXTS[2]))


def test_a_torn_mark_is_named(written: Place) -> None:
    """Both slots gone is no crash: it says so, and that deleting it starts a new one."""
    with (written.keys / "mark").open("r+b") as file:
        for slot in (0, 1):
            file.seek(slot * SLOT_BYTES + 20)
            file.write(b"torn")
    with pytest.raises(LogDamaged, match=r"The mark .*/mark is damaged.*delete the file"):
        opened(written)
    (written.keys / "mark").unlink()
    opened(written)


def test_a_mark_of_another_store_is_refused(written: Place, tmp_path: Path) -> None:
    """Frontiers are kept by origin: a log that the mark does not name is none that this installation goes on with."""
    other = Place(tmp_path / "other-store", tmp_path / "other-keys")
    with Memory.open(other.store, keys=other.keys, model="none") as memory:
        for n in range(20):
            memory.store(f"text {n}")
    shutil.copy(other.keys / "mark", written.keys / "mark")
    with pytest.raises(LogBehindMark, match="the mark is another store's"):
        opened(written)


def test_a_mark_that_is_ahead_is_not_believed_away(written: Place) -> None:
    """A log shorter than the mark is refused, each time, until a person decides."""
    with tampering(written) as cursor:
        cursor.execute("DELETE FROM entry WHERE place = 4")
    for _ in range(3):
        with pytest.raises(LogBehindMark, match="it was cut"):
            opened(written)


def test_grouped_commits_survive_the_end_of_the_process(written: Place) -> None:
    """A read that did not wait for the disk is in the log when its process ends without closing."""
    installation = written.open()
    stream = read(installation.access)
    installation.abandon()
    again = written.open()
    assert len(again.access.events_of(stream)) == 1
    again.abandon()


@pytest.mark.parametrize("refused", [Refused, NotFound])
def test_errors_that_say_no_leave_nothing_open(place: Place, refused: type[TallystickError]) -> None:
    """An opening that fails gives its files and locks back: the next one is alone."""
    place.create().close({})
    if refused is Refused:
        with pytest.raises(Refused):
            Installation.create(place.store, place.keys)
    else:
        with pytest.raises(NotFound):
            Installation.open(place.store / "elsewhere", place.keys)
    (place.store / FILE).touch()
    entry = Installation.open(place.store, place.keys)
    assert entry.alone
    entry.abandon()


# ---- what is served of a log that does not verify to its end, and where no mark can be kept


@pytest.mark.parametrize("until", [-1, 0, 6, 99])
def test_what_is_asked_for_beyond_the_log_is_refused(written: Place, until: int) -> None:
    """Nobody is served a shorter log than the one they asked for."""
    with pytest.raises(Refused, match="so none before position .* Give a lower position"):
        Installation.read(written.store, written.keys, until=until)
    opened(written)


def test_a_damaged_access_log_does_not_keep_memories_back(written: Place) -> None:
    """Up to a position of the memory log all is served, and of the access log as much as verifies."""
    entry_byte(2, 65, 1)(written)
    with pytest.raises(LogDamaged):
        Installation.read(written.store, written.keys)
    installation = Installation.read(written.store, written.keys, until=3)
    try:
        sizes = [log.tip.size for log in installation.logs]
        assert (installation.checked, sizes) == ("full", [3, 0])
        assert [page[0].header.position for page in installation.memory.pages(0, 1)] == [1]
    finally:
        installation.abandon()


def test_a_store_whose_write_ahead_log_can_not_be_opened_is_not_taken_for_none(written: Place) -> None:
    """It is there and can't be read now: that is said, and no new one is made in its place."""
    (written.store / f"{FILE}-wal").mkdir()
    before = (written.store / FILE).stat().st_size
    for act in (Installation.open, Installation.create):
        with pytest.raises(Unavailable, match="try again"):
            act(written.store, written.keys)
    assert (written.store / FILE).stat().st_size == before
    (written.store / f"{FILE}-wal").rmdir()
    opened(written)


def test_where_no_mark_can_be_kept_all_is_checked_each_time(
    place: Place, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys from the environment and no directory of state: every opening reads the whole log, and says so."""
    for number, name in enumerate(NAMES, 1):
        monkeypatch.setenv(f"TALLYSTICK_KEY_{name.upper()}", (bytes([number]) * 32).hex())
    (home / ".local").touch()
    with Memory.open(place.store, keys="env", model="none") as memory:
        memory.store("a text")
    for _ in range(2):
        installation = Installation.open(place.store, "env")
        installation.share()
        assert (installation.mark, installation.checked, installation.unmarked) == (None, "structure", True)
        installation.close({})
    entry_byte(1, 65)(place)
    with pytest.raises(LogDamaged):
        Installation.open(place.store, "env")


KILLED = """
import os, sys
from sqlcipher3 import dbapi2

connection = dbapi2.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA cache_size=1")
connection.execute("BEGIN")
connection.execute("CREATE TABLE setting (name TEXT, value BLOB)")
connection.executemany("INSERT INTO setting VALUES ('x', zeroblob(?))", [(4000,)] * 50)
os._exit(9)
"""


def test_what_a_killed_creation_had_begun_is_rolled_back(place: Place) -> None:
    """Half of a log.db with its journal beside it is no store: opening says so, and one is made there."""
    place.store.mkdir()
    killed = subprocess.run([sys.executable, "-c", KILLED, str(place.store / FILE)], check=False)
    assert killed.returncode == 9
    assert (place.store / FILE).stat().st_size > 4096
    assert (place.store / f"{FILE}-journal").stat().st_size > 0
    with pytest.raises(NotFound, match="There is no store"):
        Installation.open(place.store, place.keys)
    assert not (place.store / f"{FILE}-journal").exists()
    place.create().close({})
    opened(place)
