"""What is left of a log is read as it stands, and what changes under the reader is never passed over."""

from __future__ import annotations

import pytest

from tallystick.errors import LogDamaged
from tallystick.events.installation import Installation
from tallystick.events.mark import NOTHING
from tallystick.events.salvage import OldLog

from .conftest import store


@pytest.fixture
def old(installation: Installation) -> OldLog:
    """The memory log of an installation with three memories, as it is read to be salvaged."""
    for text in ("first", "second", "third"):
        store(installation.memory, text)
    assert installation.keys is not None
    return OldLog(installation.datastore, 0, "memory", installation.keys)


def run(installation: Installation, statement: str) -> None:
    """Change log.db under a reader, as a failing disk does: without the triggers."""
    with installation.datastore.transaction(commit=True) as cursor:
        for (name,) in cursor.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
            cursor.execute(f"DROP TRIGGER {name}")
        cursor.execute(statement)


def test_what_is_lost_between_two_looks_is_named(installation: Installation, old: OldLog) -> None:
    """What the survey counted as coming over is not left out quietly where it can't be read any more."""
    remains = old.survey(NOTHING)
    assert (remains.events, remains.lost) == (3, ())
    run(installation, "UPDATE payload SET body = zeroblob(40) WHERE place = 2")
    events = old.events(remains)
    assert next(events).header.position == 1
    with pytest.raises(LogDamaged, match=r"memory log, position 2: it could be read a moment ago") as damage:
        next(events)
    assert damage.value.position == 2


def test_claims_that_can_not_be_read_are_none(installation: Installation, old: OldLog) -> None:
    """Without that table everything that is signed is still read; who held what is then in doubt."""
    run(installation, "DROP TABLE claim")
    assert old.claims() == {}
    assert [logged.header.position for logged in old.events(old.survey(NOTHING))] == [1, 2, 3]


def test_an_entry_of_another_log_is_lost(installation: Installation, old: OldLog) -> None:
    """A signed entry that stands where it does not belong is not taken for the one that was there."""
    run(installation, "UPDATE entry SET entry = (SELECT entry FROM entry WHERE place = 1) WHERE place = 3")
    remains = old.survey(NOTHING)
    assert [lost.position for lost in remains.lost] == [3]
    assert [logged.header.position for logged in old.events(remains)] == [1, 2]
