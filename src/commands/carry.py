"""Carry events over to logs of a new origin: signed anew, in their order, each with its id and body."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from ..events.canonical import decode_body, encode_body
from ..events.claims import Claim, Holder, command_tag, held_tags, renamed_tag
from ..events.envelope import stream_of
from ..events.key_history import NONCE
from ..events.kinds import (
    Event,
    Forgotten,
    Imported,
    NamespaceRenamed,
    Positions,
    Recovered,
    Reinforced,
    Stored,
    body_of,
    event_from,
)
from ..events.log import Log
from ..events.mapper import Draft, LoggedEvent
from ..events.portable import told
from ..events.salvage import OldLog, Remains
from ..projections.aliases import after
from ..projections.record import Record, fold
from .session import Session

BATCH = 500
AS_SAID = ("metadata", "screening", "filters")
"""The fields that hold any JSON: no name in it is one of ours, and lists stay lists."""
WITHHELD = "events of this memory may be lost: restore it if it was neither forgotten nor superseded"


class Carried(NamedTuple):
    """One log that goes on: from which origin to which, how many events came over, and which positions did not."""

    log: str
    old_origin: str
    origin: str
    events: int
    lost: tuple[tuple[int, int], ...]


class Over(NamedTuple):
    """What came over: each log, and the ids of the memories that nobody recalls since their end may be lost."""

    logs: tuple[Carried, ...]
    withheld: tuple[str, ...]


def carry(session: Session, old: Sequence[OldLog], remains: Sequence[Remains], reason: str) -> Over:
    """Append to the two empty logs of a new store what is left of two old ones.

    A stream's id hangs on the origin, so each gets a new one; the nonce that makes it is the id it had, except for the
    stream about the keys, which is found by its own. A memory of which an event may be lost comes over forgotten, so
    that nothing comes back that was retracted.
    """
    new = session.installation.logs
    carrier = _Carrier(new, remains)
    for log, source, left in zip(new, old, remains, strict=True):
        _append(session, log, [_recovered(session, log, left, reason)])
        for batch in _batches(source.events(left)):
            carrier.append(session, log, batch)
    withheld = _withhold(session, carrier, old[0], remains[0])
    return Over(
        tuple(
            Carried(log.name, left.origin.hex(), log.origin.hex(), left.events, tuple(_runs(left)))
            for log, left in zip(new, remains, strict=True)
        ),
        withheld,
    )


def _recovered(session: Session, log: Log, left: Remains, reason: str) -> Draft:
    stream, nonce = log.new_stream()
    event = session.event(
        Recovered,
        origin=left.origin,
        size=left.size,
        root=left.root,
        lost=tuple(Positions(first=first, last=last) for first, last in _runs(left)),
        events=left.events,
        reason=reason,
        nonce=nonce,
    )
    return log.opening(stream, event)


def _runs(left: Remains) -> Iterator[tuple[int, int]]:
    first = last = -1
    for position in (lost.position for lost in left.lost):
        if position != last + 1 and first >= 0:
            yield first, last
        first, last = (first if position == last + 1 and first >= 0 else position), position
    if first >= 0:
        yield first, last


def _batches(events: Iterable[LoggedEvent]) -> Iterator[list[LoggedEvent]]:
    rest = iter(events)
    while batch := list(islice(rest, BATCH)):
        yield batch


class _Carrier:
    """What the ids and hashes of the old logs are in the new ones, and what came over."""

    def __init__(self, new: Sequence[Log], remains: Sequence[Remains]) -> None:
        self._nonces = {stream_of(left.origin, NONCE): NONCE for left in remains}
        self.streams = {
            stream: stream_of(log.origin, self._nonces.get(stream, stream))
            for log, left in zip(new, remains, strict=True)
            for stream in left.revisions
        }
        self._revisions = {stream: kept for left in remains for stream, kept in left.revisions.items()}
        self._leaves: dict[bytes, bytes] = {}
        self.memories: dict[bytes, str] = {}  # the old stream of each, and its namespace
        self.positions: dict[int, bytes] = {}  # the old stream at each old position of the memory log
        self.commands: dict[bytes, Holder] = {}
        self.renames: dict[str, Holder] = {}
        self._names: dict[str, str] = {}

    def tags(self, session: Session, record: Record) -> tuple[bytes, ...]:
        """What a memory claims while it is current, under the name that its namespace has in the end."""
        namespace = record.stored.namespace
        return held_tags(session.index_key, record.stored, self._names.get(namespace, namespace))

    def append(self, session: Session, log: Log, events: Sequence[LoggedEvent]) -> None:
        """Carry some events over, in one transaction."""

        def part(cursor: Any) -> None:
            for logged in events:
                self._append(cursor, session, log, logged)

        session.installation.commits.run(part)

    def _append(self, cursor: Any, session: Session, log: Log, logged: LoggedEvent) -> None:
        header = logged.header
        stream, revision = self.streams[header.stream], self._revision(header.stream, header.revision)
        event = self._translated(logged)
        draft = log.following(stream, event, revision) if revision else log.opening(stream, event)
        position, leaf = log.append_within(cursor, draft._replace(id=header.id))
        self._leaves[logged.leaf] = leaf
        if log is session.installation.memory:
            self._note(session, logged, position)

    def _note(self, session: Session, logged: LoggedEvent, position: int) -> None:
        stream, event = logged.header.stream, logged.event
        self.positions[logged.header.position] = stream
        if isinstance(event, Stored | Imported):
            self.memories[stream] = event.namespace
        if isinstance(event, NamespaceRenamed):
            self._names = after(self._names, event)
            renames = {**self.renames, event.old: Holder(self.streams[stream], position)}
            self.renames = {name: holder for name, holder in renames.items() if name in self._names}
        namespace = self.memories.get(stream, "")
        if isinstance(event, Reinforced):  # claimed under the name that the namespace had by then
            namespace = self._names.get(namespace, namespace)
        tag = command_tag(session.index_key, namespace, event.command_id)
        if tag is not None and stream in self.memories:
            self.commands[tag] = Holder(self.streams[stream], position)
        if isinstance(event, Imported):
            for command_id in (told(each).command_id for each in event.events):
                tag = command_tag(session.index_key, event.namespace, command_id)
                if tag is not None:
                    self.commands.setdefault(tag, Holder(self.streams[stream], position))

    def _translated(self, logged: LoggedEvent) -> Event:
        header = logged.header
        body = self._replaced(body_of(logged.event))
        if header.revision == 0:
            body["nonce"] = self._nonces.get(header.stream, header.stream)
        return event_from(header.kind, header.schema, body)

    def _replaced(self, value: Any) -> Any:
        """A body with each stream id and leaf hash of the old logs replaced by the one it has now."""
        if isinstance(value, bytes):
            return self.streams.get(value) or self._leaves.get(value, value)
        if isinstance(value, list | tuple):
            return tuple(self._replaced(item) for item in value)
        if isinstance(value, dict):
            found = {n: item if n in AS_SAID else self._replaced(item) for n, item in value.items()}
            if "here" in found:  # where another memory began stays as it was told
                found["memory"] = value["memory"]
            if "version" in found and isinstance(value.get("body"), bytes):
                found["body"] = encode_body(self._replaced(decode_body(value["body"])))
            if "heads" in found:
                found["heads"] = tuple(map(self._head, value["memories"], value["heads"]))
            return found
        return value

    def _head(self, stream: bytes, revision: int) -> int:
        """The revision that a memory's newest event up to this one has now."""
        kept = self._revisions.get(stream)
        return revision if kept is None else max(0, bisect_right(kept, revision) - 1)

    def _revision(self, stream: bytes, revision: int) -> int:
        return bisect_left(self._revisions[stream], revision)


def _withhold(session: Session, carrier: _Carrier, old: OldLog, left: Remains) -> tuple[str, ...]:
    """Forget the memories that may have been retracted in a lost event; give the others what they claim."""
    log = session.installation.memory
    doubt = _Doubt(session, carrier, old, left)
    found = ((old_stream, fold(log.events_of(carrier.streams[old_stream]))) for old_stream in carrier.memories)
    current = {old_stream: record for old_stream, record in found if record and record.status == "current"}
    sure = {s: record for s, record in current.items() if not doubt.about(s, record)}
    held: dict[bytes, Record] = {}
    for record in sure.values():
        held |= dict.fromkeys(carrier.tags(session, record), record)  # the later one of two has it
    kept = {s for s, r in sure.items() if all(held[tag] is r for tag in carrier.tags(session, r))}
    withheld = [record for s, record in current.items() if s not in kept]
    drafts = [
        log.following(r.stream, session.event(Forgotten, reason=WITHHELD, parents=(r.leaf,)), r.revision + 1)
        for r in withheld
    ]
    _append(session, log, drafts)
    tags = [*carrier.commands.items()]
    tags += [(renamed_tag(session.index_key, name), holder) for name, holder in carrier.renames.items()]
    for record in (current[s] for s in kept):
        holder = Holder(record.stream, record.text_position)
        tags += [(tag, holder) for tag in carrier.tags(session, record)]
    claims = [(Claim(tag, 0), holder) for tag, holder in tags]
    session.installation.commits.run(lambda cursor: log.hold(cursor, claims))
    return tuple(record.id for record in withheld)


def _append(session: Session, log: Log, drafts: Sequence[Draft]) -> None:
    session.installation.commits.run(lambda cursor: [log.append_within(cursor, draft) for draft in drafts])


class _Doubt:
    """Which memories may have had another event after the last one that came over."""

    def __init__(self, session: Session, carrier: _Carrier, old: OldLog, left: Remains) -> None:
        self._tags = partial(carrier.tags, session)
        self._holders = {tag: carrier.positions.get(position) for tag, position in old.claims().items()}
        self._whole = left.whole
        self._hurt = {lost.stream for lost in left.lost}
        unknown = [lost.position for lost in left.lost if lost.stream is None and lost.position < left.end]
        self._hole = max(unknown, default=0)
        self._last = {stream: position for position, stream in carrier.positions.items()}

    def about(self, stream: bytes, record: Record) -> bool:
        """A memory is current for sure where no event is lost; or none of its own, and it still held what it claims."""
        if self._whole:
            return False
        tags = self._tags(record)
        if stream in self._hurt or any(self._holders.get(tag) != stream for tag in tags):
            return True
        return not tags and self._hole > self._last[stream]
