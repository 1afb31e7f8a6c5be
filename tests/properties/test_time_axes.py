"""Two time axes: what was known at any position or time, and of that what was valid at any other time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tallystick import Memory
from tallystick.errors import Refused
from tallystick.events.instants import moment

KEYS = (None, "office", "employer")
YEARS = range(2020, 2026)
NEVER = datetime(9000, 1, 1, tzinfo=UTC)


def start_of(year: int) -> datetime:
    """The first instant of a year."""
    return datetime(year, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Expected:
    """A memory as this test works it out on its own."""

    id: str
    text: str
    key: str | None
    since: datetime
    until: datetime
    status: str = "current"
    successor: str | None = None


Known = dict[str, Expected]
"""What was known at some position, by id."""


class Step(NamedTuple):
    """Something that happens to a store; which of the memories there are is told by `which`."""

    act: str
    which: int
    key: str | None
    since: int | None
    until: int | None


STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from(["store", "store", "store", "forget", "restore", "revise"]),
        st.integers(0, 9),
        st.sampled_from(KEYS),
        st.none() | st.sampled_from(YEARS),
        st.none() | st.sampled_from(YEARS),
    ),
    min_size=1,
    max_size=9,
)


def store(memory: Memory, known: Known, step: Step) -> Known:
    """A new memory; the current one of its key is superseded."""
    text = f"office {len(known)}"
    since, until = (None if year is None else start_of(year) for year in (step.since, step.until))
    id_ = memory.store(text, key=step.key, valid_from=since, expires_at=until).id
    recorded = memory.get(id_).recorded_at
    older = {
        each.id: replace(each, status="superseded", successor=id_)
        for each in known.values()
        if step.key is not None and each.key == step.key and each.status == "current"
    }
    return known | older | {id_: Expected(id_, text, step.key, since or recorded, until or NEVER)}


def change(memory: Memory, known: Known, step: Step) -> Known:
    """One of the memories is forgotten, restored, or said to hold from another time; where a rule says no, nothing."""
    chosen = list(known.values())[step.which % len(known)]
    try:
        if step.act == "forget":
            memory.forget(chosen.id)
            return known | {chosen.id: replace(chosen, status="forgotten")}
        if step.act == "restore":
            memory.restore(chosen.id)
            return known | {chosen.id: replace(chosen, status="current")}
        since = start_of(step.since or YEARS[0])
        memory.revise(chosen.id, valid_from=since)
        return known | {chosen.id: replace(chosen, since=since)}
    except Refused:
        return known


def valid(known: Known, at: datetime) -> list[str]:
    """What was valid then, by what was known."""

    def holds(each: Expected) -> bool:
        if each.status == "forgotten" or not each.since <= at < each.until:
            return False
        return each.status == "current" or all(later.since > at for later in successors(known, each))

    return sorted(each.text for each in known.values() if holds(each))


def successors(known: Known, each: Expected) -> list[Expected]:
    """What came in the place of a memory, next and later."""
    found = []
    while each.successor is not None and each.status != "current":
        each = known[each.successor]
        found.append(each)
    return found


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS, ask=st.lists(st.tuples(st.integers(0, 9), st.sampled_from(YEARS)), min_size=4, max_size=4))
def test_what_was_valid_by_what_was_known(steps: list[Step], ask: list[tuple[int, int]]) -> None:
    """Recall and search, at any position and at its time, as of any other time: what a table kept by hand says."""
    with Memory.temporary() as memory:
        known: Known = {}
        past: list[tuple[int, Known]] = [(0, {})]
        for step in steps:
            known = store(memory, known, step) if step.act == "store" or not known else change(memory, known, step)
            past.append((memory.status().logs["memory"] - 1, known))
        for which, year in ask:
            position, then = past[which % len(past)]
            expected = valid(then, start_of(year))
            for asked in ({"at_position": position}, {"known_at": time_of(memory, position)}):
                listing = memory.search(as_of=start_of(year), **asked)
                assert sorted(record.text for record in listing) == expected
                recall = memory.recall("office", limit=99, as_of=start_of(year), **asked)
                assert sorted(hit.text for hit in recall) == expected
        for year in YEARS:
            assert sorted(record.text for record in memory.search(as_of=start_of(year))) == valid(known, start_of(year))
        now = datetime.now(UTC) + timedelta(seconds=1)
        assert sorted(record.text for record in memory.search()) == valid(known, now)


def time_of(memory: Memory, position: int) -> datetime:
    """When the event at a position was recorded."""
    return moment(memory._opened.log.event_at(position).event.recorded_at)
