"""Why a recall answered as it did: from receipt to event, signer and scores."""

import math
import struct
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick import Memory, Recall
from tallystick.errors import NotFound, Refused
from tallystick.queries.why import packed


@pytest.fixture
def memory() -> Iterator[Memory]:
    """A memory of its own, by words alone, with two memories about an office."""
    with Memory.temporary(namespace="project:app", actor="agent:planner") as opened:
        opened.store("The office is in Lisbon", key="office")
        opened.store("The office closes at six")
        opened.store("Use WAL mode")
        yield opened


@pytest.fixture
def recalled(memory: Memory) -> Recall:
    """What was recalled about the office."""
    return memory.recall("where is the office, in Lisbon?", limit=5)


def test_a_receipt_leads_to_the_question_and_who_asked(memory: Memory, recalled: Recall) -> None:
    """The receipt is the id of a signed event of the access log, with all that was asked."""
    why = memory.why(recalled.receipt)
    assert (why.receipt, why.logged.header.id.hex()) == (recalled.receipt, recalled.receipt)
    assert why.logged.header.key == memory._opened.installation.access.recorder._key_id
    assert why.recalled.query == "where is the office, in Lisbon?"
    assert (why.recalled.actor, why.recalled.limit, why.recalled.namespaces) == ("agent:planner", 5, ("project:app",))


def test_every_hit_is_explained_in_its_order(memory: Memory, recalled: Recall) -> None:
    """Rank, memory, scores of every stage to float16, and the events behind each."""
    hits = memory.why(recalled.receipt).hits
    assert [because.rank for because in hits] == list(range(1, len(recalled) + 1))
    for because, hit in zip(hits, recalled, strict=True):
        assert because.record == hit.record
        assert [logged.header.stream for logged in because.events] == [hit.record.stream]
        assert because.scores.pop("relevance") is None  # no model, which would tell
        said = {stage: score for stage, score in hit.scores.items() if stage in because.scores}
        assert sum(score or 0 for score in said.values()) == pytest.approx(2 * hit.score)
        for stage, score in said.items():
            assert because.scores[stage] == struct.unpack("<e", struct.pack("<e", score))[0]


def test_one_hit_can_be_asked_for(memory: Memory, recalled: Recall) -> None:
    """A memory, by its id or the beginning of it, picks its hit, with the rank it had."""
    second = recalled.hits[1]
    (because,) = memory.why(recalled.receipt, second.id[:8]).hits
    assert (because.rank, because.record.id) == (2, second.id)


def test_a_memory_is_explained_as_it_was_then(memory: Memory, recalled: Recall) -> None:
    """What happened to a memory after the recall is not part of why it was recalled."""
    closing = next(hit.id for hit in recalled if "six" in hit.text)
    memory.forget(closing)
    memory.store("The office is in Porto", key="office")
    after = memory.why(recalled.receipt)
    assert [because.record for because in after.hits] == [hit.record for hit in recalled]
    assert {because.record.status for because in after.hits} == {"current"}


def test_a_recall_without_hits_can_be_explained(memory: Memory) -> None:
    """Asked in vain is explained too: what was asked, and no hits."""
    why = memory.why(memory.recall("zebra").receipt)
    assert (why.hits, why.recalled.query) == ((), "zebra")


def test_a_receipt_is_good_in_every_later_session(memory: Memory, recalled: Recall) -> None:
    """Another opening of the store explains it alike."""
    status = memory.status()
    with Memory.open(status.store, keys=status.keys, model="none") as other:
        assert other.why(recalled.receipt) == memory.why(recalled.receipt)


def test_a_memory_that_was_not_a_hit_is_not_found(memory: Memory, recalled: Recall) -> None:
    """Nothing is explained that was not answered."""
    other = memory.store("Something else").id
    with pytest.raises(NotFound, match=f"{other} was not among the 2 hits"):
        memory.why(recalled.receipt, other)


def test_the_receipt_of_a_read_explains_no_recall(memory: Memory, recalled: Recall) -> None:
    """The id of another event of the access log is told apart."""
    memory.get(recalled.hits[0].id)
    read = next(row for row in memory.log() if row.kind == "memory.read")
    with pytest.raises(NotFound, match=r"memory\.read"):
        memory.why(read.id.hex())


def test_an_unknown_receipt_is_not_found(memory: Memory) -> None:
    """An id that no event of the access log has is no receipt, be it an event of the memory log."""
    stored = next(memory.events()).header.id.hex()
    for receipt in ("0" * 32, stored):
        with pytest.raises(NotFound, match=receipt):
            memory.why(receipt)


@pytest.mark.parametrize("receipt", ["", "12", "x" * 32, "0" * 33, "0" * 31, "\0"])
def test_what_is_no_receipt_is_refused(memory: Memory, receipt: str) -> None:
    """Anything but 32 hexadecimal digits is refused, saying what a receipt is."""
    with pytest.raises(Refused, match="32 hexadecimal digits"):
        memory.why(receipt)


@given(st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False), max_size=4))
def test_scores_are_packed_as_float16(scores: list[float | None]) -> None:
    """Two bytes a score, little-endian; NaN where there was none; what float16 can't hold is cut to its largest."""
    data = packed(scores)
    assert len(data) == 2 * len(scores)
    for score, kept in zip(scores, struct.unpack(f"<{len(scores)}e", data), strict=True):
        if score is None:
            assert math.isnan(kept)
        else:
            assert kept == pytest.approx(max(-65504.0, min(65504.0, score)), rel=2**-10, abs=2**-24)
