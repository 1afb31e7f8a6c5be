"""Whatever happened in a store: exported and imported it is the same memories, which answer in the same order."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tallystick import Memory, Record
from tallystick.errors import NotFound, Refused
from tallystick.events.portable import REFERENCES

IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
NAMESPACES = ("project:app", "org/größe/user:ana")
QUESTIONS = ("which reader prefers tea", "größe café 漢字")
WORDS = (
    "reader",
    "tea",
    "coffee",
    "prefers",
    "Größe",
    "café",
    "漢字",
    "loadConfig",
    "ไทย",
    "🏡",
    "e\u0301",
    "\u2028",
    "\0",
)
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join).filter(lambda text: text.strip())
VALUES = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
METADATA = st.dictionaries(st.sampled_from(("a", "größe", "c d")), VALUES | st.lists(VALUES, max_size=2), max_size=2)
TIMES = st.none() | st.datetimes(timezones=st.just(UTC))
FIELDS = st.fixed_dictionaries(
    {
        "namespace": st.sampled_from(NAMESPACES),
        "key": st.sampled_from((None, None, "employer", "schlüssel 鍵")),
        "thread": st.sampled_from((None, None, "s1")),
        "place": st.none() | st.integers(0, 3),
        "subject": st.sampled_from((None, "user:ana")),
        "author": st.sampled_from((None, "Ida", "Omar")),
        "tags": st.lists(st.sampled_from(("sqlite", "größe", "🏡")), max_size=2),
        "importance": st.floats(0, 1),
        "occurred_at": TIMES,
        "expires_at": TIMES,
        "metadata": METADATA,
        "source": st.sampled_from(("human", "agent")),
        "command_id": st.none() | st.uuids().map(str),
    }
)
REASONS = st.none() | st.just("überholt")
N = st.integers(0, 99)
STEPS = st.one_of(
    st.tuples(st.just("store"), TEXTS, FIELDS),
    st.tuples(st.just("store"), TEXTS, FIELDS),
    st.tuples(st.just("again"), N),
    st.tuples(st.just("revise"), N, TEXTS, METADATA, st.floats(0, 1)),
    st.tuples(st.sampled_from(("forget", "restore")), N, REASONS),
    st.tuples(st.sampled_from(("link", "unlink")), N, N),
    st.tuples(st.sampled_from(("pin", "protect")), N, st.booleans()),
)


class Grown(NamedTuple):
    """A store, and the ids of its memories in order."""

    memory: Memory
    ids: list[str]

    def step(self, what: str, *said: Any) -> None:
        """Do one thing."""
        if what == "store":
            fields = {**said[1], "place": said[1]["place"] if said[1]["thread"] else None}
            outcome = self.memory.store(said[0], **fields)
            if outcome.id not in self.ids:
                self.ids.append(outcome.id)
            return
        if not self.ids:
            return
        record = self.memory.get(self.ids[said[0] % len(self.ids)])
        match what:
            case "again":
                again = {name: getattr(record.stored, name) for name in ("namespace", "key", "subject", "thread")}
                self.step("store", record.text, {**again, "place": None})
            case "revise":
                text, metadata, importance = said[1:]
                self.memory.revise(record.id, text=text, metadata=metadata, importance=importance, reason="neu")
            case "forget" | "restore":
                getattr(self.memory, what)(record.id, reason=said[1])
            case "link" | "unlink":
                getattr(self.memory, what)(record.id, self.ids[said[1] % len(self.ids)], kind="causes")
            case _:
                getattr(self.memory, what)(record.id, on=said[1])


def rows(path: Path) -> list[dict[str, Any]]:
    """The rows of an export, without its first and last line."""
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[1:-2]]


def essence(record: Record, names: Mapping[bytes, str]) -> Record:
    """A record without what is another one's in another store: places, and who acted here."""
    nowhere: dict[str, Any] = {
        "actor": "-",
        "via": {},
        "source": "imported",
        "nonce": None,
        "parents": (),
        "command_id": None,
    }
    return replace(
        record,
        stream=b"",
        stored=record.stored.model_copy(update=nowhere),
        text_position=0,
        revision=0,
        position=0,
        leaf=b"",
        superseded_by=record.superseded_by and names[record.superseded_by].encode(),
        links=tuple(link._replace(to=names[link.to].encode()) for link in record.links),
        provenance={},
        imported=None,
    )


def compare(first: Memory, second: Memory, path: Path) -> None:
    """The second is what a file says of the first, and answers as it does."""
    moved = rows(path)
    old = {bytes.fromhex(row["memory"][-32:]): row["memory"] for row in moved}
    places = {each.header.stream: each.event for each in second.events()}
    new = {stream: f"{event.origin.hex()}/{event.memory.hex()}" for stream, event in places.items()}  # type: ignore[attr-defined]
    assert list(old.values()) == list(new.values())
    for (before, name), after in zip(old.items(), new, strict=True):
        one, two = first.get(before.hex()), second.get(after.hex())
        assert essence(one, old) == essence(two, new), name
        assert two.imported is not None
        assert (two.imported.actor, two.imported.source) == (one.stored.actor, one.stored.source)
        assert two.stored.source == "imported"
    for question in (*QUESTIONS, *{row["events"][0]["text"].replace("\0", " ") for row in moved}):
        for namespace in NAMESPACES:
            one_, two_ = (m.recall(question, namespaces=[namespace], limit=1000) for m in (first, second))
            assert [hit.score for hit in one_] == [hit.score for hit in two_]
            told = [
                {(hit.score, names[hit.record.stream]) for hit in hits} for hits, names in ((one_, old), (two_, new))
            ]
            assert told[0] == told[1]  # equal scores are ordered by id, which is another


def opened(folder: str, name: str) -> Memory:
    """A store of somebody else's."""
    return Memory.open(Path(folder, name), keys=Path(folder, f"{name}-keys"), actor=f"user:{name}", model="none")


def run(steps: list[tuple[Any, ...]]) -> None:
    """Let a history happen, move it on twice, and compare."""
    with (
        tempfile.TemporaryDirectory(prefix="tallystick-moving-", dir=IN_MEMORY) as folder,
        opened(folder, "first") as first,
        opened(folder, "second") as second,
        opened(folder, "third") as third,
    ):
        grown = Grown(first, [])
        for step in steps:
            with suppress(Refused, NotFound):
                grown.step(*step)
        one, two, three = (Path(folder, name) for name in ("one.jsonl", "two.jsonl", "three.jsonl"))
        assert first.export(one) == len(grown.ids)
        arrivals = second.import_(one)
        assert arrivals._replace(new=0) == (0, 0, 0, 0, None)
        assert arrivals.new == len(grown.ids)
        compare(first, second, one)
        second.verify(views=True)
        second.export(two)
        assert rows(one) == rows(two)
        for again in (first, second):
            assert again.import_(two) == (0, 0, len(grown.ids), 0, None)
        third.import_(two)
        third.export(three)
        assert rows(three) == rows(one)


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(st.lists(STEPS, max_size=25))
def test_a_moved_store_is_the_same_memories(steps: list[tuple[Any, ...]]) -> None:
    """Each memory with its versions, times, links and fate; in the same order when asked; and moved on once more."""
    run(steps)


@pytest.mark.exhaustive
@settings(max_examples=300, suppress_health_check=list(HealthCheck))
@given(st.lists(STEPS, max_size=60))
def test_a_store_with_a_long_history_moves(steps: list[tuple[Any, ...]]) -> None:
    """The same, for more and longer histories."""
    run(steps)


def test_references_are_part_of_the_histories() -> None:
    """The fields that name another memory are those that these histories have."""
    assert REFERENCES == ("by", "to")
