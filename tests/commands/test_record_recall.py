"""What is read is on record: who asked what, and what was answered."""

import struct
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tallystick import Memory
from tallystick.errors import NotFound, Refused, Unavailable
from tallystick.events import driver
from tallystick.events.driver import Datastore, File
from tallystick.events.kinds import Exported, Read, Recalled, Used
from tallystick.events.log import Append, Log
from tallystick.events.mapper import LoggedEvent

TEXT = "Use WAL mode for concurrent readers"


@pytest.fixture
def memory() -> Iterator[Memory]:
    """A memory of its own, by words alone, with one text in it."""
    with Memory.temporary(namespace="project:app", actor="agent:planner") as opened:
        opened.store(TEXT)
        yield opened


def read_back(memory: Memory) -> list[LoggedEvent]:
    """The events of the access log, genesis left out."""
    log = memory._opened.installation.access
    return [logged for page in log.pages(0, log.follow().size - 1) for logged in page]


def only_id(memory: Memory) -> str:
    """The id of the one memory, without leaving a trace."""
    return memory._opened.installation.memory.event_at(1).header.stream.hex()


READS: dict[str, Callable[[Memory], Any]] = {
    "recall": lambda memory: memory.recall("many readers"),
    "get": lambda memory: memory.get(only_id(memory)),
    "history": lambda memory: memory.history(only_id(memory)),
    "events": lambda memory: list(memory.events()),
    "search": lambda memory: memory.search(),
    "blame": lambda memory: memory.blame(only_id(memory)),
    "sql": lambda memory: memory.sql("select * from memories"),
    "receipts": lambda memory: memory.receipts(),
}


def test_a_recall_is_on_record_as_it_was_answered(memory: Memory) -> None:
    """The event holds question, scope, limit, each hit with its scores, what was missing, and the log's state."""
    recall = memory.recall("many readers", limit=3, namespaces=["project:app", "user:ana"])
    (logged,) = read_back(memory)
    event, tip = logged.event, memory._opened.installation.memory.tip
    assert isinstance(event, Recalled)
    assert logged.header.id.hex() == recall.receipt
    assert (event.query, event.namespaces, event.limit) == ("many readers", ("project:app", "user:ana"), 3)
    assert (event.actor, event.degraded) == ("agent:planner", recall.degraded)
    assert (event.log_size, event.log_root) == (tip.size, tip.frontier.root())
    (hit,) = event.hits
    assert (hit.memory, hit.head) == (recall.hits[0].record.stream, recall.hits[0].record.revision)
    *scores, relevance = struct.unpack(f"<{len(event.stages)}e", hit.scores)
    said = {stage: score for stage, score in recall.hits[0].scores.items() if score}
    assert event.stages == (*said, "relevance")
    assert {*said} == {"fused", "content", "utility"}
    assert scores == pytest.approx(list(said.values()), rel=1e-3)
    assert relevance != relevance


def test_a_recall_without_an_answer_is_on_record(memory: Memory) -> None:
    """What was asked in vain was asked too."""
    recall = memory.recall("zebra")
    (logged,) = read_back(memory)
    assert isinstance(logged.event, Recalled)
    assert (len(recall), logged.event.hits, logged.event.query) == (0, (), "zebra")


@pytest.mark.parametrize("verb", ["get", "history"])
def test_reading_a_memory_by_name_is_on_record(memory: Memory, verb: str) -> None:
    """The event names the memory, the verb, the actor and the state of the log."""
    READS[verb](memory)
    (logged,) = read_back(memory)
    tip = memory._opened.installation.memory.tip
    assert isinstance(logged.event, Read)
    assert (logged.event.memory.hex(), logged.event.verb) == (only_id(memory), verb)
    assert logged.event.actor == "agent:planner"
    assert (logged.event.log_size, logged.event.log_root) == (tip.size, tip.frontier.root())


def test_asking_why_is_on_record(memory: Memory) -> None:
    """Who looks at an old recall reads its texts, and that is recorded with the recall's stream."""
    recall = memory.recall("many readers")
    memory.why(recall.receipt)
    recalled, logged = read_back(memory)
    assert isinstance(logged.event, Read)
    assert (logged.event.verb, logged.event.memory) == ("why", recalled.header.stream)


def test_handing_out_events_is_on_record(memory: Memory) -> None:
    """The event names the positions that were handed out, before the first of them is."""
    memory.store("The office is in Lisbon")
    following = memory.events(after=1)
    assert next(following).header.position == 2
    (logged,) = read_back(memory)
    assert isinstance(logged.event, Exported)
    assert (logged.event.after, logged.event.upto, logged.event.log_size) == (1, 2, 3)


@pytest.mark.parametrize("verb", ["verify", "status", "log", "embed"])
def test_what_hands_out_no_text_leaves_no_record(memory: Memory, verb: str) -> None:
    """Looking after a store is not reading its memories."""
    getattr(memory, verb)()
    assert read_back(memory) == []


@pytest.mark.parametrize("verb", READS)
def test_what_cannot_be_put_on_record_is_not_answered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, verb: str
) -> None:
    """While the log can't be written a read raises Unavailable and hands out nothing."""
    monkeypatch.setattr(driver, "BUSY_SECONDS", 0.05)
    with Memory.open(tmp_path / "store", keys=tmp_path / "keys", model="none", namespace="project:app") as memory:
        memory.store(TEXT)
        memory.recall("readers")
        elsewhere = Datastore(File(tmp_path / "store" / "log.db", Unavailable))  # type: ignore[arg-type]
        with elsewhere.transaction(commit=True), pytest.raises(Unavailable, match=r"log\.db"):
            READS[verb](memory)
        elsewhere.close()
        READS[verb](memory)
        assert len(read_back(memory)) == 2


def test_the_reads_of_a_session_are_one_stream(memory: Memory) -> None:
    """What one opening of a store reads is one stream, in order; another opening begins another."""
    for act in READS.values():
        act(memory)
    status = memory.status()
    with Memory.open(status.store, keys=status.keys, model="none", namespace="project:app") as other:
        other.recall("many readers")
    headers = [logged.header for logged in read_back(memory)]
    assert [header.revision for header in headers] == [*range(len(READS)), 0]
    assert len({header.stream for header in headers[:-1]}) == 1
    assert headers[-1].stream != headers[0].stream


def test_the_first_reads_of_several_threads_are_one_stream(memory: Memory) -> None:
    """Threads that read at once do not begin a stream each, and no record is lost."""
    with ThreadPoolExecutor(8) as pool:
        receipts = list(pool.map(lambda _: memory.recall("many readers").receipt, range(24)))
    headers = [logged.header for logged in read_back(memory)]
    assert sorted(header.revision for header in headers) == list(range(24))
    assert {header.id.hex() for header in headers} == set(receipts)
    assert len({header.stream for header in headers}) == 1


def test_nothing_that_was_stored_or_asked_stands_in_a_file_in_clear(tmp_path: Path) -> None:
    """Texts, names, questions and reasons are sealed: a copy of the store without its keys shows none of them."""
    with Memory.open(tmp_path / "store", keys=tmp_path / "keys", model="none", namespace="quokka") as memory:
        stored = memory.store(
            "zanzibar", tags=["xylophone"], key="marimba", author="Ygritte", metadata={"gnu": "okapi"}
        )
        memory.recall("kinkajou")
        memory.forget(stored.id, reason="wombat")
    words = ("quokka", "zanzibar", "xylophone", "marimba", "ygritte", "okapi", "kinkajou", "wombat")
    for file in (tmp_path / "store").iterdir():
        content = file.read_bytes().lower()
        assert [word for word in words if word.encode() in content] == []


@pytest.mark.parametrize(("audit", "durable"), [("grouped", False), ("strict", True), (None, False)])
def test_a_strict_record_waits_for_the_disk(
    audit: Any, durable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`audit="strict"` makes each read durable before it answers, as an argument and as a setting."""
    waited: list[bool] = []
    fresh = Log.append

    def watched(log: Log, request: Append, *, durable: bool = True) -> Any:
        if log.name == "access":
            waited.append(durable)
        return fresh(log, request, durable=durable)

    monkeypatch.setattr(Log, "append", watched)
    for name, given in (("argument", audit), ("setting", None)):
        if name == "setting" and audit:
            monkeypatch.setenv("TALLYSTICK_AUDIT", audit)
        with Memory.open(tmp_path / name, keys=tmp_path / "k" / name, model="none", audit=given) as opened:
            opened.store(TEXT)
            opened.recall("WAL")
            opened.search()
    assert waited == [durable] * 4


def test_what_is_no_way_to_record_is_refused(tmp_path: Path) -> None:
    """Neither laxer nor misspelt: a record is grouped or strict."""
    with pytest.raises(Refused, match="audit"):
        Memory.open(tmp_path / "store", keys=tmp_path / "keys", audit="none")  # type: ignore[arg-type]
    assert not (tmp_path / "store").exists()


def test_what_was_used_of_a_recall_is_on_record() -> None:
    """Which hits an agent relied on, of which recall; only hits of that recall can be named."""
    with Memory.temporary() as memory:
        one, two = memory.store("The office is in Lisbon").id, memory.store("The museum is in Porto").id
        recall = memory.recall("office Lisbon")
        receipt = memory.used(recall.receipt, [one, one[:8]])
        used = memory._opened.installation.access.find(bytes.fromhex(receipt)).event
        assert isinstance(used, Used)
        assert (used.receipt.hex(), [m.hex() for m in used.memories]) == (recall.receipt, [one])
        for memories, words in (([two], "was not among"), ([], "No hit is named")):
            with pytest.raises(Refused, match=words):
                memory.used(recall.receipt, memories)
        with pytest.raises(Refused, match="receipt of a memory.used"):
            memory.used(receipt, [one])
        with pytest.raises(NotFound):
            memory.used("0" * 32, [one])
