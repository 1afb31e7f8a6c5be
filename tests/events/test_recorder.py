"""The recorder puts events in order under one lock, and builds on nothing that it has not verified."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID, uuid4

import pytest
from eventsourcing.persistence import IntegrityError, StoredEvent

from tallystick.errors import LogBehindMark, LogDamaged, NotFound, Refused, RevisionConflict, StreamErased
from tallystick.events import entries as entries_module
from tallystick.events import recorder as recorder_module
from tallystick.events.clock import milliseconds
from tallystick.events.driver import Datastore, File
from tallystick.events.envelope import Header, payload_hash, sign_entry
from tallystick.events.installation import FILE, Installation
from tallystick.events.kinds import Forgotten, Stored
from tallystick.events.log import Append, Log
from tallystick.events.mapper import NEXT, Draft, new_id
from tallystick.events.merkle import EMPTY_ROOT, Frontier, leaf_hash
from tallystick.events.recorder import POLL_SECONDS
from tallystick.events.signing import SeedSigner, Signer

from .conftest import Place, forgotten, log_created, read, store, stored


@pytest.fixture
def log(installation: Installation) -> Log:
    """The memory log."""
    return installation.memory


@pytest.fixture
def other(place: Place, installation: Installation) -> Iterator[Installation]:
    """The same store, as another process has it open."""
    opened = place.open()
    yield opened
    opened.abandon()


@contextmanager
def tampering(place: Place) -> Iterator[Any]:
    """A cursor on log.db for somebody who does not use the recorder."""
    datastore = Datastore(File(place.store / FILE, LogDamaged))
    try:
        with datastore.transaction(commit=True) as cursor:
            yield cursor
    finally:
        datastore.close()


def append(log: Log, stream: bytes, event: Any, revision: int = NEXT) -> int:
    """Append one event to a stream that is there; returns its position."""
    return log.append(Append((log.following(stream, event, revision),)))[0].position


def revisions(log: Log, stream: bytes) -> list[int]:
    """The revisions of a stream."""
    return [logged.header.revision for logged in log.events_of(stream)]


# ---- the two ways to append


def test_an_append_at_the_next_revision(log: Log) -> None:
    """Wherever the stream ends, the event goes there."""
    stream = store(log, "a text")
    assert [append(log, stream, forgotten()) for _ in range(3)] == [2, 3, 4]
    assert revisions(log, stream) == [0, 1, 2, 3]


def test_an_append_at_the_expected_revision(log: Log) -> None:
    """Only where the stream ends as the writer has seen it."""
    stream = store(log, "a text")
    append(log, stream, forgotten(), 1)
    append(log, stream, forgotten(), 2)
    assert revisions(log, stream) == [0, 1, 2]


@pytest.mark.parametrize("expected", [1, 3, 7])
def test_a_stream_that_has_changed_is_a_conflict(log: Log, expected: int) -> None:
    """Older or newer than expected: it says where the stream is, and nothing is written."""
    stream = store(log, "a text")
    append(log, stream, forgotten())
    with pytest.raises(RevisionConflict, match=f"is at revision 1 and not at {expected - 1}: .* Read it again"):
        append(log, stream, forgotten(), expected)
    assert (revisions(log, stream), log.follow().size) == ([0, 1], 3)


def test_an_append_is_all_or_nothing(log: Log) -> None:
    """A conflict in its last draft undoes the first."""
    stream, (new, nonce) = store(log, "a text"), log.new_stream()
    drafts = (log.opening(new, stored("another", nonce)), log.following(stream, forgotten(), 5))
    with pytest.raises(RevisionConflict):
        log.append(Append(drafts))
    assert log.follow().size == 2
    assert log.events_of(new) == []
    with pytest.raises(Refused):
        append(log, new, forgotten())


def test_several_events_of_one_stream_in_one_append(log: Log) -> None:
    """Each is counted on from the one before, in either mode."""
    stream = store(log, "a text")
    drafts = (
        log.following(stream, forgotten("1")),
        log.following(stream, forgotten("2"), 2),
        log.following(stream, forgotten("3")),
    )
    assert [appended.position for appended in log.append(Append(drafts))] == [2, 3, 4]
    assert revisions(log, stream) == [0, 1, 2, 3]


def test_a_stream_can_be_opened_and_followed_in_one_append(log: Log) -> None:
    """The second event is sealed with the key that came with the first."""
    stream, nonce = log.new_stream()
    opening = log.opening(stream, stored("a text", nonce))
    log.append(Append((opening, Draft(stream, 1, forgotten("at once"), opening.data_key))))
    assert [type(logged.event) for logged in log.events_of(stream)] == [Stored, Forgotten]


@pytest.mark.parametrize("revision", [NEXT, 1])
def test_a_stream_that_was_never_opened_takes_nothing(log: Log, revision: int) -> None:
    """There is nothing to follow, and no key to seal with."""
    key = log.opening(*_opening(log)).data_key
    with pytest.raises(StreamErased):
        log.append(Append((Draft(b"s" * 16, revision, forgotten(), key),)))
    assert log.follow().size == 1


def _opening(log: Log) -> tuple[bytes, Stored]:
    stream, nonce = log.new_stream()
    return stream, stored("a text", nonce)


def test_an_event_is_found_by_position_and_by_id(log: Log) -> None:
    """Or there is none."""
    stream, nonce = log.new_stream()
    appended = log.append(Append((log.opening(stream, stored("a text", nonce)),)))[0]
    assert log.event_at(appended.position) == log.find(appended.id) == log.events_of(stream)[0]
    with pytest.raises(NotFound, match="no position 2"):
        log.event_at(2)
    with pytest.raises(NotFound, match="no event"):
        log.find(b"x" * 16)


# ---- what an entry says


def test_each_entry_commits_to_all_before_it(log: Log) -> None:
    """Position, clock, and the root of RFC 6962 over the entries before, genesis included."""
    for n in range(9):
        store(log, f"text {n}")
    entries = [entry for (entry,) in log._datastore.rows("SELECT entry FROM entry WHERE log = 0 ORDER BY place")]
    frontier, last = Frontier(), 0
    for position, entry in enumerate(entries):
        header = log.event_at(position).header
        assert (header.position, header.root) == (position, frontier.root())
        assert header.time > last
        frontier, last = frontier.append(leaf_hash(entry)), header.time
    assert frontier.root() == log.tip.frontier.root() != EMPTY_ROOT


def test_the_clock_never_goes_back(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the wall clock does, the counter goes on, and the log verifies."""
    store(log, "before")
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() - 3600 * 10**9)
    for n in range(3):
        store(log, f"an hour earlier {n}")
    times = [log.event_at(position).header.time for position in range(1, 5)]
    assert times == sorted(set(times))
    assert {milliseconds(moment) for moment in times} == {milliseconds(times[0])}


def test_the_two_logs_are_apart(installation: Installation) -> None:
    """Each has its own positions, streams and tree."""
    memory, access = installation.logs
    stream = read(access, durable=True)
    store(memory, "a text")
    assert (memory.tip.size, access.tip.size) == (2, 2)
    assert memory.events_of(stream) == []
    assert memory.event_at(1).header.origin != access.event_at(1).header.origin


# ---- append-only


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM entry",
        "DELETE FROM entry WHERE place = 1",
        "UPDATE entry SET entry = x'00'",
        "UPDATE entry SET revision = 7 WHERE place = 1",
        "UPDATE entry SET place = 99 WHERE place = 1",
        "UPDATE payload SET body = x'00'",
        "UPDATE payload SET place = 99",
    ],
)
def test_entries_are_append_only(place: Place, log: Log, statement: str) -> None:
    """SQLite itself refuses to change or delete what was written, whoever asks."""
    store(log, "a text")
    with pytest.raises(IntegrityError, match="append-only|never changed"), tampering(place) as cursor:
        cursor.execute(statement)
    assert log.event_at(1).header.revision == 0


@pytest.mark.parametrize(
    "statement",
    [
        "REPLACE INTO entry SELECT * FROM entry WHERE place = 1",
        "INSERT OR REPLACE INTO entry SELECT place, log, id, stream, revision, x'00' FROM entry WHERE place = 1",
        "REPLACE INTO payload VALUES (1, x'00')",
    ],
)
def test_entries_are_not_replaced(place: Place, log: Log, statement: str) -> None:
    """Replacing is deleting and inserting; where SQLite lets it pass, the signature does not."""
    stream = store(log, "a text")
    try:
        with tampering(place) as cursor:
            cursor.execute(statement)
    except IntegrityError:
        return
    if "SELECT *" not in statement:
        with pytest.raises(LogDamaged):
            log.events_of(stream)


@pytest.mark.parametrize("columns", ["log, id", "log, stream, revision"])
def test_ids_and_revisions_are_unique_within_a_log(place: Place, log: Log, columns: str) -> None:
    """Never an id alone, since other writers choose ids: the same may stand in another log."""
    store(log, "a text")
    row = "SELECT {} FROM entry WHERE place = 1"
    same = {"place": "99", "log": "log", "id": "id", "stream": "stream", "revision": "revision", "entry": "entry"}
    differs = {"id": "randomblob(16)", "stream": "randomblob(16)"}
    changed = {n: differs[n] if n in differs and n not in columns else v for n, v in same.items()}
    with pytest.raises(IntegrityError), tampering(place) as cursor:
        cursor.execute(f"INSERT INTO entry {row.format(', '.join(changed.values()))}")
    with tampering(place) as cursor:
        elsewhere = {**changed, "log": "7", "place": "7 << 48"}
        cursor.execute(f"INSERT INTO entry {row.format(', '.join(elsewhere.values()))}")


# ---- a stream that was erased


def erase_key(place: Place, stream: bytes) -> None:
    """Delete a stream's data key, as another process does that erases it."""
    with tampering(place) as cursor:
        cursor.execute("DELETE FROM data_key WHERE place IN (SELECT place FROM entry WHERE stream = ?)", (stream,))
        assert cursor.execute("SELECT changes()").fetchone() == (1,)


def keys(log: Log) -> set[bytes]:
    """The streams that have a data key in log.db."""
    return {stream for (stream,) in log._datastore.rows("SELECT stream FROM data_key JOIN entry USING (place)")}


@pytest.mark.parametrize("revision", [NEXT, 1])
def test_a_stale_process_does_not_append_to_an_erased_stream(place: Place, log: Log, revision: int) -> None:
    """Whoever still remembers the key is told that the memory was erased; the key does not come back."""
    stream = store(log, "a text")
    log.events_of(stream)
    erase_key(place, stream)
    assert log.following(stream, forgotten()).data_key is not None
    with pytest.raises(StreamErased, match=f"{stream.hex()} was erased"):
        append(log, stream, forgotten(), revision)
    assert (keys(log), log.follow().size) == (set(), 2)


def test_a_stale_process_does_not_open_an_erased_stream_again(place: Place, log: Log) -> None:
    """A new data key for a stream that began before is refused, however the draft is made."""
    stream, nonce = log.new_stream()
    first = log.opening(stream, stored("a text", nonce))
    log.append(Append((first,)))
    erase_key(place, stream)
    again = log.opening(stream, stored("the same stream", nonce))
    assert again.wrapped is not None
    for draft in (first, again, Draft(stream, 1, forgotten(), again.data_key, again.wrapped),
                  Draft(stream, NEXT, forgotten(), again.data_key, again.wrapped)):  # fmt: skip
        with pytest.raises(StreamErased):
            log.append(Append((draft,)))
    assert (keys(log), log.follow().size) == (set(), 2)


def test_a_first_event_for_a_stream_that_is_there_is_refused(log: Log) -> None:
    """A stream begins once, and its data key is not replaced."""
    stream, nonce = log.new_stream()
    log.append(Append((log.opening(stream, stored("a text", nonce)),)))
    wrapped = log._datastore.rows("SELECT wrapped FROM data_key")
    with pytest.raises(StreamErased, match=f"The stream {stream.hex()} began before"):
        log.append(Append((log.opening(stream, stored("again", nonce)),)))
    assert log._datastore.rows("SELECT wrapped FROM data_key") == wrapped
    assert [logged.event for logged in log.events_of(stream)] == [stored("a text", nonce)]


def test_a_first_event_in_clear_for_a_stream_that_is_there_is_refused(log: Log) -> None:
    """It needs no key, and is refused all the same."""
    stream, nonce = log.new_stream()
    event = log_created(nonce)
    log.append(Append((log.opening(stream, event),)))
    with pytest.raises(StreamErased, match="began before"):
        log.append(Append((log.opening(stream, event),)))
    assert log.follow().size == 2


def test_one_stream_is_not_opened_twice_in_one_append(log: Log) -> None:
    """Nor by two drafts at once."""
    stream, nonce = log.new_stream()
    drafts = tuple(log.opening(stream, stored(text, nonce)) for text in ("one", "two"))
    with pytest.raises((IntegrityError, StreamErased)):
        log.append(Append(drafts))
    assert (keys(log), log.follow().size) == (set(), 1)


# ---- what others append


def test_what_another_process_appends_is_built_upon(log: Log, other: Installation) -> None:
    """Positions, roots and clock go on from there, both ways, without a gap."""
    for n in range(4):
        assert store(log, f"mine {n}")
        assert store(other.memory, f"theirs {n}")
    assert log.follow().size == 9
    assert log.follow().frontier.root() == other.memory.follow().frontier.root()
    assert [log.event_at(n).header.position for n in range(9)] == list(range(9))


def entry_after(log: Log, signer: Signer, **changes: Any) -> tuple[Header, bytes, bytes]:
    """An entry that fits behind a log's tip in every respect but its signer, and its payload."""
    tip, payload = log.follow(), b"a forged payload"
    fields: dict[str, Any] = {
        "v": 1, "id": new_id(), "origin": log.origin, "position": tip.size, "root": tip.frontier.root(),
        "key": log.event_at(0).header.key, "time": tip.time + 1, "kind": "memory.stored", "schema": 1,
        "stream": b"f" * 16, "revision": 0, "cipher": 1, "commitment": b"c" * 32,
        "payload_hash": payload_hash(payload), "payload_length": len(payload),
    }  # fmt: skip
    header = Header(**{**fields, **changes})
    return header, sign_entry(header, signer), payload


def plant(place: Place, header: Header, entry: bytes, payload: bytes) -> None:
    """Write an entry into log.db as the recorder would."""
    with tampering(place) as cursor:
        row = (header.position, 0, header.id, header.stream, header.revision, entry)
        cursor.execute("INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?)", row)
        cursor.execute("INSERT INTO payload VALUES (?, ?)", (header.position, payload))


STRANGER = SeedSigner(bytes(range(32)))


def uses(log: Log) -> dict[str, Callable[[], object]]:
    """Everything that would build on, serve or skip the newest entry."""
    return {
        "append": lambda: store(log, "on top of it"),
        "follow": log.follow,
        "event": lambda: log.event_at(3),
        "stream": lambda: log.events_of(b"f" * 16),
    }


@pytest.mark.parametrize("use", ["append", "follow", "event", "stream"])
@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({}, "not signed by the key in force"),
        ({"key": STRANGER.public[:8]}, "not signed by the key in force"),
        ({"root": b"r" * 32}, "not signed by the key in force"),
    ],
    ids=["right in all else", "stranger's key", "wrong root"],
)
def test_an_event_with_a_junk_signature_is_never_used(
    place: Place, log: Log, use: str, changes: dict[str, Any], what: str
) -> None:
    """It fits behind the last one in all but its signature: nothing is appended to it and nothing serves it."""
    for n in range(2):
        store(log, f"text {n}")
    plant(place, *entry_after(log, STRANGER, **changes))
    for _ in range(2):
        with pytest.raises(LogDamaged, match=f"memory log, position 3: .*{what}") as damage:
            uses(log)[use]()
        assert (damage.value.log, damage.value.position) == ("memory", 3)
    assert log.tip.size == 3
    assert log._datastore.rows("SELECT count(*) FROM entry WHERE log = 0") == [(4,)]


@pytest.mark.parametrize(
    ("changes", "position", "what"),
    [
        ({"root": b"r" * 32}, 1, "it is not the entry that later ones were signed over"),
        ({"time": 1}, 2, "runs backwards"),
        ({"position": 7}, 2, "the entry is missing"),
        ({"origin": b"o" * 32}, 2, "it belongs to another place or log"),
        ({"payload_hash": b"p" * 32}, 2, "its payload is not the one that was signed"),
        ({"payload_length": 1}, 2, "its payload is not the one that was signed"),
    ],
    ids=["root", "time", "gap", "origin", "payload hash", "payload length"],
)
def test_an_event_that_does_not_fit_is_found(
    place: Place, installation: Installation, changes: dict[str, Any], position: int, what: str
) -> None:
    """Even signed by the key in force: what others append is checked before it is built upon."""
    assert installation.keys is not None
    log = installation.memory
    store(log, "a text")
    plant(place, *entry_after(log, installation.keys.writer, **changes))
    with pytest.raises(LogDamaged, match=what) as damage:
        store(log, "on top of it")
    assert (damage.value.log, damage.value.position) == ("memory", position)


def test_an_entry_in_the_place_of_another_is_found(place: Place, installation: Installation) -> None:
    """A valid entry of another position does not stand for this one."""
    log = installation.memory
    store(log, "a text")
    store(log, "another")
    with tampering(place) as cursor:
        cursor.execute(
            "INSERT INTO entry SELECT 3, 0, randomblob(16), randomblob(16), 0, entry FROM entry WHERE place = 2"
        )
        cursor.execute("INSERT INTO payload SELECT 3, body FROM payload WHERE place = 2")
    with pytest.raises(LogDamaged, match="position 3: it belongs to another place or log"):
        log.follow()


def test_a_log_that_becomes_shorter_is_found(place: Place, log: Log) -> None:
    """What this process has seen can't go away."""
    for n in range(3):
        store(log, f"text {n}")
    with tampering(place) as cursor:
        cursor.execute("DROP TRIGGER entry_kept")
        cursor.execute("DELETE FROM entry WHERE place = 3")
    for use in (log.follow, lambda: store(log, "on top of it")):
        with pytest.raises(LogBehindMark, match="has 3 entries and had 4: it was cut or rolled back") as damage:
            use()
        assert (damage.value.log, damage.value.position) == ("memory", 3)


def test_an_entry_that_was_taken_out_is_found_when_it_is_read(place: Place, log: Log) -> None:
    """Reading in order never skips a position."""
    for n in range(4):
        store(log, f"text {n}")
    with tampering(place) as cursor:
        cursor.execute("DROP TRIGGER entry_kept")
        cursor.execute("DELETE FROM entry WHERE place = 2")
    with pytest.raises(LogDamaged, match="position 2: the entry is missing"):
        list(log.pages(0, 4))


def test_signatures_that_were_checked_are_remembered(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is checked once, by leaf hash; and the memory is bounded."""
    checked: list[bytes] = []

    def check(entry: bytes, _: bytes) -> bool:
        checked.append(entry)
        return True

    monkeypatch.setattr(entries_module, "is_signed_by", check)
    monkeypatch.setattr(entries_module, "SIGNATURES_REMEMBERED", 2)
    streams = [store(log, f"text {n}") for n in range(3)]
    for stream in streams:
        for _ in range(3):
            log.events_of(stream)
    assert len(checked) == 3
    log.events_of(streams[0])
    assert len(checked) == 4


# ---- the library's way in and out


def test_an_event_of_the_librarys_own_is_kept_in_clear(log: Log) -> None:
    """With the revision it brings; a taken one is the library's conflict."""
    stream = uuid4()
    event = StoredEvent(stream, 4, "topic", b"state")
    assert log.recorder.insert_events([event]) == [1]
    with pytest.raises(IntegrityError):
        log.recorder.insert_events([event])
    found = log.recorder.select_events(stream)
    assert [(e.originator_id, e.originator_version) for e in found] == [(stream, 4)]
    assert [(e.topic, e.state) for e in found] == [("topic", b"state")]


def test_an_empty_insert_does_nothing(log: Log) -> None:
    """No position is spent."""
    assert log.recorder.insert_events([]) == []
    assert log.append(Append(())) == []
    assert log.follow().size == 1


def test_notifications_are_the_events_after_genesis(log: Log) -> None:
    """Their ids are positions; genesis is none."""
    assert log.recorder.max_notification_id() is None
    streams = [store(log, f"text {n}") for n in range(3)]
    found = log.recorder.select_notifications(None, 10)
    assert [(n.id, n.originator_id) for n in found] == [(p + 1, UUID(bytes=s)) for p, s in enumerate(streams)]
    assert log.recorder.max_notification_id() == 3


def test_notifications_of_some_kinds_are_found_past_many_others(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """However far apart they are, in pages of any size."""
    monkeypatch.setattr(recorder_module, "PAGE", 3)
    streams = [store(log, f"text {n}") for n in range(10)]
    forgotten_at = [append(log, stream, forgotten()) for stream in (streams[0], streams[9])]
    kind = Forgotten.KIND
    assert [n.id for n in log.recorder.select_notifications(None, 10, topics=[kind])] == forgotten_at
    assert [n.id for n in log.recorder.select_notifications(None, 1, topics=[kind])] == forgotten_at[:1]
    assert [n.id for n in log.recorder.select_notifications(1, 10, stop=11, topics=[kind])] == forgotten_at[:1]
    assert log.recorder.select_notifications(None, 10, topics=["memory.unheard"]) == []


def received(log: Log, number: int, seconds: float) -> Callable[[], list[tuple[int, float]]]:
    """Start a subscription for so many events; call it for what came, and when, within so many seconds."""
    found: list[tuple[int, float]] = []
    subscription = log.recorder.subscribe(gt=log.tip.size - 1)

    def listen() -> None:
        with subscription:
            for notification in subscription:
                found.append((notification.id, time.monotonic()))
                if len(found) == number:
                    return

    thread = threading.Thread(target=listen)
    thread.start()

    def result() -> list[tuple[int, float]]:
        thread.join(seconds)
        subscription.stop()
        thread.join()
        return found

    return result


def test_a_subscriber_is_woken_by_this_process(log: Log) -> None:
    """As soon as the commit is done, and by each commit."""
    listening = received(log, 3, 5)
    for n in range(3):
        store(log, f"text {n}")
    assert [position for position, _ in listening()] == [1, 2, 3]


def test_a_subscriber_finds_what_another_process_appends(log: Log, other: Installation) -> None:
    """Within 100 ms, or little more on a busy machine."""
    listening = received(log, 1, 5)
    time.sleep(2 * POLL_SECONDS)
    store(other.memory, "theirs")
    appended = time.monotonic()
    ((position, seen),) = listening()
    assert position == 1
    assert seen - appended < POLL_SECONDS + 0.9


def test_closing_ends_every_subscription(place: Place) -> None:
    """No thread stays behind."""
    installation = place.create()
    before = threading.active_count()
    listening = received(installation.memory, 1, 5)
    installation.abandon()
    assert listening() == []
    assert threading.active_count() == before


def test_a_subscriber_is_served_nothing_unverified(place: Place, log: Log) -> None:
    """An event with a junk signature ends the subscription with an error; it is never handed out."""
    store(log, "a text")
    plant(place, *entry_after(log, STRANGER))
    found: list[int] = []
    subscription = log.recorder.subscribe(gt=0)
    giving_up = threading.Timer(5, subscription.stop)
    giving_up.start()
    with pytest.raises(LogDamaged), subscription:
        for notification in subscription:
            found.append(notification.id)
            if len(found) == 2:
                break
    giving_up.cancel()
    assert found in ([], [1])


def test_notifications_that_are_not_verified_are_not_selected(place: Place, log: Log) -> None:
    """Whoever pulls is served no more than a subscriber."""
    store(log, "a text")
    plant(place, *entry_after(log, STRANGER))
    with pytest.raises(LogDamaged, match="position 2: it is not signed"):
        log.recorder.select_notifications(None, 10)
