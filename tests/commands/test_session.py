"""What every command needs to know: who acts, when, and what a value that is not allowed is answered with."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from tallystick import Memory
from tallystick.commands.session import Session
from tallystick.errors import Refused
from tallystick.events.installation import Installation
from tallystick.events.instants import instant
from tallystick.events.kinds import Forgotten, Stored

NOW = 1683554160_000001


@pytest.fixture
def session() -> Iterator[Session]:
    """A session whose clock stands still."""
    with Memory.temporary() as memory:
        yield Session(memory._opened.installation, "agent:planner", {"user": "ana"}, lambda: NOW)


def test_an_event_of_a_session_says_who_when_and_how(session: Session) -> None:
    """Actor, way in and wall clock come from the session, the rest from the caller."""
    event = session.event(Forgotten, reason="outdated")
    assert (event.actor, event.via, event.recorded_at) == ("agent:planner", {"user": "ana"}, NOW)
    assert event.reason == "outdated"


def test_the_way_in_is_copied(session: Session) -> None:
    """What an event says of how a call came in does not change afterwards."""
    event = session.event(Forgotten)
    session.via["user"] = "ben"  # type: ignore[index]
    assert event.via == {"user": "ana"}


def test_a_value_that_is_not_allowed_is_refused_by_name(session: Session) -> None:
    """The refusal names the field and shows the value, cut to what a person reads."""
    with pytest.raises(Refused, match=r"^importance: .*1\.5.*nothing was stored\.$"):
        session.event(Stored, text="Use WAL mode", namespace="a", importance=1.5)
    with pytest.raises(Refused) as refusal:
        session.event(Stored, text="Use WAL mode", namespace="a", key="k" * 100_000)
    assert len(str(refusal.value)) < 300


def test_a_store_that_was_opened_to_be_read_takes_no_command() -> None:
    """Commands need the key of the claims: without the right to write there is none."""
    with Memory.temporary() as memory:
        status = memory.status()
        memory.store("Use WAL mode")
        audit = Installation.audit(Path(status.store), None, status.keys)
        try:
            reader = Session(audit, "agent:planner", {}, lambda: NOW)
            with pytest.raises(Refused, match="opened to be read"):
                reader.index_key  # noqa: B018
        finally:
            audit.abandon()
        assert status.logs["memory"] == 1


@pytest.mark.parametrize(
    ("value", "microseconds"),
    [
        (None, None),
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00.000001Z", 1),
        ("1970-01-01T02:00:00+02:00", 0),
        ("1969-12-31T23:59:59.999999Z", -1),
        ("20230508T135600Z", 1683554160_000000),
        (datetime(1970, 1, 1, tzinfo=UTC), 0),
        (datetime(1970, 1, 1, 5, 30, tzinfo=timezone(timedelta(hours=5, minutes=30))), 0),
        (datetime(2023, 5, 8, 13, 56, 0, 1, tzinfo=UTC), NOW),
    ],
)
def test_an_instant_is_microseconds_since_1970(value: datetime | str | None, microseconds: int | None) -> None:
    """A time with a zone, as a datetime or ISO 8601, is one number of microseconds, UTC."""
    assert instant(value, "occurred_at") == microseconds


@pytest.mark.parametrize("value", ["2023-05-08T13:56:00", "2023-05-08", datetime(2023, 5, 8, 13, 56)])
def test_a_time_without_a_zone_is_refused(value: datetime | str) -> None:
    """A time that may mean any of a day's hours is never guessed at: the caller is told what to add."""
    with pytest.raises(Refused, match=r"^occurred_at: .* has no time zone\. Add one"):
        instant(value, "occurred_at")


@pytest.mark.parametrize("value", ["", "yesterday", "2023-13-01T00:00:00Z", "1683554160", "2023-05-08T25:00:00Z", "\0"])
def test_what_is_no_time_is_refused(value: str) -> None:
    """Whatever else is given for a time is refused, showing how one is written."""
    with pytest.raises(Refused, match=r"^occurred_at: .* is not a time\. Write it as"):
        instant(value, "occurred_at")
