"""Forget a memory, and restore it: retracted it is recalled by nobody, and kept."""

from __future__ import annotations

from typing import NamedTuple

from ..errors import Busy, Claimed, NotFound, Refused, RevisionConflict
from ..events.claims import Claim, Release, content_tag, key_tag
from ..events.kinds import Forgotten, Restored
from ..events.log import Append, Log
from ..projections.record import Record, fold
from .outcome import Outcome
from .session import Session, attempts


class Forget(NamedTuple):
    """The wish that a memory be recalled by nobody."""

    memory: bytes
    reason: str | None = None


class Restore(NamedTuple):
    """The wish that a forgotten memory be recalled again."""

    memory: bytes
    reason: str | None = None


def forget(session: Session, command: Forget) -> Outcome:
    """Append the retraction. Raises NotFound, or Refused where it is forgotten already."""
    for _ in attempts():
        record = _record(session.installation.memory, command.memory)
        if record.status == "forgotten":
            raise Refused(f"The memory {record.id} is forgotten already. Restore it first to forget it again.")
        try:
            return Outcome("forgotten", record.id, _forget(session, record, command.reason))
        except RevisionConflict:
            continue
    raise Busy("Other writers keep changing this memory. Try again.")


def restore(session: Session, command: Restore) -> Outcome:
    """Append the restoration. Raises NotFound, or Refused where there is nothing to restore."""
    for _ in attempts():
        record = _record(session.installation.memory, command.memory)
        if record.status != "forgotten":
            raise Refused(f"The memory {record.id} is {record.status}, not forgotten. Give the id of a forgotten one.")
        if record.superseded_by is not None:
            raise Refused(f"The memory {record.id} was superseded by {record.superseded_by.hex()}. Recall that one.")
        try:
            return Outcome("restored", record.id, _restore(session, record, command.reason))
        except RevisionConflict:
            continue
        except Claimed as clash:
            holder = clash.holder.hex() if clash.holder else "another memory"
            raise Refused(
                f"The memory {record.id} can't be restored: {holder} now holds its text or key. Forget that one first."
            ) from clash
    raise Busy("Other writers keep changing this memory. Try again.")


def _forget(session: Session, record: Record, reason: str | None) -> int:
    log = session.installation.memory
    draft = log.following(
        record.stream, session.event(Forgotten, reason=reason, parents=(record.leaf,)), record.revision + 1
    )
    releases = tuple(Release(tag, record.stream) for tag in _tags(session, record))
    return log.append(Append((draft,), releases=releases))[0].position


def _restore(session: Session, record: Record, reason: str | None) -> int:
    log = session.installation.memory
    draft = log.following(
        record.stream, session.event(Restored, reason=reason, parents=(record.leaf,)), record.revision + 1
    )
    claims = tuple(Claim(tag, 0) for tag in _tags(session, record))
    return log.append(Append((draft,), claims))[0].position


def _tags(session: Session, record: Record) -> list[bytes]:
    tags = (content_tag(session.index_key, record.stored), key_tag(session.index_key, record.stored))
    return [tag for tag in tags if tag is not None]


def _record(log: Log, memory: bytes) -> Record:
    record = fold(log.events_of(memory))
    if record is None:
        raise NotFound(f"There is no memory {memory.hex()}. Look for its id with `tallystick recall`.")
    return record
