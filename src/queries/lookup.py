"""Looking things up by name: one memory, its history, and ids by an unambiguous prefix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import NotFound, Refused, ViewsDamaged
from ..events.envelope import stream_of
from ..events.kinds import Recovered
from ..events.log import Log
from ..events.mapper import LoggedEvent
from ..projections import memories
from ..projections.record import Record, fold
from ..projections.views import RECALL, Views

ID_DIGITS = 32
LEAST_DIGITS = 4


def resolve(log: Log, views: Views, prefix: str) -> bytes:
    """The memory whose id begins with these hexadecimal digits, four at least. Raises NotFound; Refused if two do.

    An id from before the store was recovered, given whole, leads to the one that the memory has now.
    """
    digits = prefix.strip().lower() if isinstance(prefix, str) else ""
    if not LEAST_DIGITS <= len(digits) <= ID_DIGITS or any(c not in "0123456789abcdef" for c in digits):
        raise Refused(f"{prefix!r} is not a memory's id: give {LEAST_DIGITS} to {ID_DIGITS} of its hexadecimal digits.")
    views.catch_up(RECALL)
    low, high = (bytes.fromhex(digits.ljust(ID_DIGITS, filler)) for filler in "0f")
    with views.reading() as cursor:
        found = memories.streams_like(cursor, low, high)
        if not found and low == high:
            found = [now for now in ids_now(log, low) if memories.number_and_revision(cursor, now)]
    if not found:
        raise NotFound(f"There is no memory {prefix}. Look for its id with `tallystick recall`.")
    if len(found) > 1:
        raise Refused(f"{prefix} begins more than one id ({', '.join(s.hex()[:12] for s in found)} ...): add digits.")
    return found[0]


def ids_now(log: Log, stream: bytes) -> list[bytes]:
    """The ids that a memory of one of the logs before this one would have now: one for each recovery since."""
    origins = [log.origin]
    size = log.tip.size
    while len(origins) < size and isinstance(event := log.event_at(len(origins)).event, Recovered):
        origins.insert(0, event.origin)
    ids = []
    for first in range(1, len(origins)):
        now = stream
        for origin in origins[first:]:
            now = stream_of(origin, now)
        ids.append(now)
    return ids


def history(log: Log, views: Views, memory: bytes) -> list[LoggedEvent]:
    """Every event of a memory, oldest first, verified. Raises ViewsDamaged where the view has seen more than these."""
    events = log.events_of(memory)
    with views.reading() as cursor:
        known = memories.number_and_revision(cursor, memory)
    if not events and known is None:
        raise NotFound(f"There is no memory {memory.hex()}. Look for its id with `tallystick recall`.")
    if not events or (known is not None and events[-1].header.revision < known[1]):
        raise ViewsDamaged(f"The last events of {memory.hex()} are gone from the log. Run `tallystick verify`.")
    return events


def get(log: Log, views: Views, memory: bytes) -> Record:
    """The memory as its events say it is now, whatever its status."""
    record = fold(history(log, views, memory))
    if record is None:
        raise NotFound(f"{memory.hex()} is not a memory. Look for its id with `tallystick recall`.")
    return record


def hydrate(log: Log, rows: Sequence[Sequence[Any]]) -> list[Record]:
    """The memories behind rows of the `memories` view, read and verified from the log, as the rows have them.

    One whose status has changed since is as it is now: nobody is shown what was forgotten meanwhile. Raises
    ViewsDamaged where a row is not what its events say.
    """
    events = log.events_of_each([row[1] for row in rows])
    return [_hydrated(row, events[row[1]]) for row in rows]


def _hydrated(row: Sequence[Any], events: Sequence[LoggedEvent]) -> Record:
    number, stream = row[0], row[1]
    until = row[memories.REVISION] + 1
    then = fold(events[:until])
    record = fold(events) if len(events) > until else then
    if then is None or record is None or memories.row_of(number, then) != tuple(row):
        raise ViewsDamaged(f"The `memories` view says of {stream.hex()} what its events do not. {ViewsDamaged.remedy}")
    return then if then.status == record.status else record
