"""What a page of events does to the memories: each as it was last folded, and as it is now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import ViewsDamaged
from ..events.log import Log
from ..events.mapper import LoggedEvent
from .memories import next_number, numbers_and_revisions, stream_and_revision
from .record import Record, fold
from .view import Change


def changes_of(cursor: Any, log: Log, events: Sequence[LoggedEvent]) -> list[Change]:
    """One change for each memory of a page, in the order of the log. New memories get the next numbers."""
    streams: dict[bytes, list[LoggedEvent]] = {}
    for logged in events:
        streams.setdefault(logged.header.stream, []).append(logged)
    begun = [stream for stream, (first, *_) in streams.items() if first.header.revision]  # the others begin here
    known, number, changes = numbers_and_revisions(cursor, begun), next_number(cursor), []
    earlier = log.earlier({stream: revision for stream, (_, revision) in known.items()})
    for stream, new in streams.items():
        before = fold(earlier.get(stream, ()))
        after = fold(new, before)
        if after is None:
            continue
        changes.append(Change(known[stream][0] if stream in known else number, before, after))
        number += stream not in known
    return changes


def record_of(cursor: Any, log: Log, number: int) -> Record:
    """A memory as it was last folded."""
    stream, revision = stream_and_revision(cursor, number)
    record = fold(log.earlier({stream: revision})[stream])
    if record is None:
        raise ViewsDamaged(f"The views hold {stream.hex()}, which is no memory. {ViewsDamaged.remedy}")
    return record
