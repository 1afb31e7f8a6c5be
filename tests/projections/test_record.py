"""Given these events of a stream, then this memory."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.events.envelope import Header
from tallystick.events.instants import moment
from tallystick.events.kinds import Event, Forgotten, Reinforced, Restored, Stored, Superseded, ViewsRebuilt
from tallystick.events.mapper import LoggedEvent
from tallystick.projections.record import Record, fold, status_after

STREAM, OTHER = bytes(16), bytes(range(16))
NOW = 1683554160_000000

Kind = TypeVar("Kind", bound=Event)


def event(kind: type[Kind], **fields: Any) -> Kind:
    """An event of a kind, by somebody, at some time."""
    return kind(recorded_at=NOW, actor="agent:planner", **fields)


STORED = event(Stored, text="The office is in Lisbon", namespace="project:app", tags=("office",), occurred_at=1)
FORGOTTEN, RESTORED = event(Forgotten, reason="they moved"), event(Restored, reason="they did not")
REINFORCED, SUPERSEDED = event(Reinforced), event(Superseded, by=OTHER)


def logged(*events: Event, first: int = 5) -> list[LoggedEvent]:
    """The events of one stream as a log holds them: at every second position."""
    return [_logged(each, revision, first + 2 * revision) for revision, each in enumerate(events)]


def _logged(each: Event, revision: int, position: int) -> LoggedEvent:
    none = bytes(32)
    header = Header(
        1, bytes(16), none, position, none, bytes(8), 0, each.KIND, 1, STREAM, revision, 1, none, none, 0
    )  # fmt: skip
    return LoggedEvent("memory", header, leaf(position), each)


def leaf(position: int) -> bytes:
    """A leaf hash for a position."""
    return hashlib.sha256(bytes([position])).digest()


BORN = Record(STREAM, STORED, text_position=5, revision=0, position=5, leaf=leaf(5))


@pytest.mark.parametrize(
    ("later", "record"),
    [
        ([], BORN),
        ([REINFORCED], replace(BORN, reinforced=1)),
        ([REINFORCED, REINFORCED], replace(BORN, reinforced=2)),
        ([SUPERSEDED], replace(BORN, status="superseded", superseded_by=OTHER)),
        ([FORGOTTEN], replace(BORN, status="forgotten", forgotten_for="they moved")),
        ([FORGOTTEN, RESTORED], replace(BORN, status="current", forgotten_for=None)),
        ([REINFORCED, FORGOTTEN, RESTORED, REINFORCED], replace(BORN, reinforced=2)),
        ([event(Forgotten)], replace(BORN, status="forgotten")),
        (
            [SUPERSEDED, FORGOTTEN],
            replace(BORN, status="forgotten", superseded_by=OTHER, forgotten_for="they moved"),
        ),
    ],
    ids=lambda value: "-".join(each.KIND for each in value) if isinstance(value, list) else "",
)
def test_a_memory_is_what_its_events_add_up_to(later: Sequence[Event], record: Record) -> None:
    """Each kind of event does one thing to a memory; text and fields stay those of the first."""
    head = len(later)
    expected = replace(record, revision=head, position=5 + 2 * head, leaf=leaf(5 + 2 * head))
    assert fold(logged(STORED, *later)) == expected


@pytest.mark.parametrize("events", [[], [FORGOTTEN], [event(ViewsRebuilt, reason="asked", before={}, after={})]])
def test_a_stream_that_does_not_begin_with_a_text_is_no_memory(events: list[Event]) -> None:
    """Only a stream that begins with a stored text is a memory."""
    assert fold(logged(*events)) is None


def test_an_event_that_says_nothing_of_a_memory_only_moves_its_head() -> None:
    """A kind that a memory does not know changes neither its text nor its status."""
    record = fold(logged(STORED, event(ViewsRebuilt, reason="asked", before={}, after={})))
    assert record == replace(BORN, revision=1, position=7, leaf=leaf(7))


@given(st.lists(st.sampled_from([REINFORCED, SUPERSEDED, FORGOTTEN, RESTORED]), max_size=10))
def test_the_status_is_that_of_the_last_event_that_sets_one(later: list[Event]) -> None:
    """Folding all events or one after another, with `status_after`, comes to the same status."""
    record = fold(logged(STORED, *later))
    assert record is not None
    status = record.status
    stepwise = status_after("current", STORED)
    for each in later:
        stepwise = status_after(stepwise, each)
    assert status == stepwise
    assert record.reinforced == sum(each is REINFORCED for each in later)


def test_a_record_reads_as_what_was_stored() -> None:
    """Id, text, namespace, tags and times are there under their own names, times in UTC."""
    assert (BORN.id, BORN.text, BORN.namespace, BORN.tags) == (
        "00" * 16,
        "The office is in Lisbon",
        "project:app",
        ("office",),
    )
    assert BORN.recorded_at == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert BORN.occurred_at == datetime(1970, 1, 1, microsecond=1, tzinfo=UTC)
    undated = replace(BORN, stored=STORED.model_copy(update={"occurred_at": None}))
    assert undated.occurred_at is None


@pytest.mark.parametrize(
    ("microseconds", "instant"),
    [
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
        (-1, datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)),
        (253402300799_999999, datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)),
        (-62135596800_000000, datetime(1, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_moment_is_exact(microseconds: int, instant: datetime) -> None:
    """No time of the calendar loses a microsecond."""
    assert moment(microseconds) == instant
