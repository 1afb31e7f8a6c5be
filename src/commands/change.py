"""Change a memory that is there: decide on it as it is now, append after its last event, decide again after a clash."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..errors import Busy, Claimed, NotFound, Refused, RevisionConflict
from ..events.claims import Claim, Release, command_tag, composed, renamed_tag
from ..events.kinds import Event, Forgotten, Linked, Pinned, Protected, Restored, Revised, Unlinked
from ..events.log import Append, Log
from ..events.portable import done_under
from ..projections.record import Record, fold
from .fields import check_command_id
from .naming import canonical
from .outcome import Came, Outcome
from .session import Session, attempts


class Change(NamedTuple):
    """What is decided of a memory: the event, and the tags it takes and gives up with it.

    `alone`: it was decided from other memories too, so nothing else may be appended in between.
    """

    status: Came
    event: Event
    takes: tuple[bytes, ...] = ()
    gives_up: tuple[bytes, ...] = ()
    alone: bool = False


class Wish(NamedTuple):
    """Which memory is to be changed; only while it is at this revision, and only once under this command id."""

    memory: bytes
    if_revision: int | None = None
    command_id: str | None = None


def change(session: Session, wish: Wish, asked: Event, decide: Callable[[Record], Change]) -> Outcome:
    """Append what is decided of what is asked, durable when this returns.

    Raises NotFound; RevisionConflict where the memory is not at the revision it had to be at; Refused where `decide`
    says no, or where another memory holds what the change would claim.
    """
    _require_id(wish)
    wish = wish._replace(command_id=wish.command_id and composed(wish.command_id))
    for _ in attempts():
        size = session.installation.memory.follow().size
        record = current(session.installation.memory, wish.memory)
        record = record.renamed(canonical(session, record.stored.namespace))
        done = _done_before(session, wish, record, asked)
        if done is not None:
            return done
        _require_revision(wish, record)
        try:
            decided = decide(record)
            return _append(session, wish, record, decided, size if decided.alone else None)
        except RevisionConflict:
            continue
        except Claimed as clash:
            if clash.tag != _command(session, wish, record):
                raise Refused(_held(record, clash)) from clash
    raise Busy("Other writers keep changing this memory. Try again.")


def current(log: Log, memory: bytes) -> Record:
    """The memory as its events say it is now. Raises NotFound."""
    record = fold(log.events_of(memory))
    if record is None:
        raise NotFound(f"There is no memory {memory.hex()}. Look for its id with `tallystick recall`.")
    return record


def refuse_protected(record: Record) -> None:
    """Raise Refused for a memory that nothing may change."""
    if record.protected:
        raise Refused(f"The memory {record.id} is protected: nothing changes it. Run `tallystick protect --off` first.")


def _append(session: Session, wish: Wish, record: Record, decided: Change, size: int | None) -> Outcome:
    log = session.installation.memory
    event = decided.event.model_copy(update={"parents": (record.leaf,), "command_id": wish.command_id})
    draft = log.following(record.stream, event, record.revision + 1)
    command = _command(session, wish, record)
    claims = tuple(Claim(tag, 0) for tag in (*decided.takes, *([command] if command else [])))
    releases = tuple(Release(tag, record.stream) for tag in decided.gives_up)
    free = (renamed_tag(session.index_key, record.namespace),)
    appended = log.append(Append((draft,), claims, releases, free=free, size=size))[0]
    return Outcome(decided.status, record.id, appended.position)


def _require_id(wish: Wish) -> None:
    if wish.if_revision is not None and type(wish.if_revision) is not int:
        raise Refused(f"if_revision is {wish.if_revision!r}: give the number of the revision you have read.")
    check_command_id(wish.command_id)


def _require_revision(wish: Wish, record: Record) -> None:
    if wish.if_revision is not None and record.revision != wish.if_revision:
        raise RevisionConflict(
            f"The memory {record.id} is at revision {record.revision} and not at {wish.if_revision}: it has changed "
            f"since you read it. Read it again, then repeat the command."
        )


def _command(session: Session, wish: Wish, record: Record) -> bytes | None:
    return command_tag(session.index_key, record.stored.namespace, wish.command_id)


def _done_before(session: Session, wish: Wish, record: Record, asked: Event) -> Outcome | None:
    """What came of this command id the first time, where it was used before for the same."""
    tag = _command(session, wish, record)
    found = session.installation.memory.holders([tag]).get(tag) if tag else None
    if found is None:
        return None
    stream, position = found
    done = done_under(session.installation.memory.event_at(position).event, wish.command_id)
    came = _came_of(done)
    if stream != record.stream or came is None or not _meant(done) <= _meant(asked):
        raise Refused(
            f"The command id {wish.command_id!r} was used for something else, the memory {stream.hex()}. "
            f"Give each command an id of its own."
        )
    return Outcome(came, record.id, position, repeated=True)


_BESIDES = {*Event.model_fields, "reason"}


def _meant(event: Event) -> set[str]:
    """What an event says of a memory, its kind included. A revision leaves out what the memory said already."""
    said = event.model_dump(exclude_defaults=True, exclude=_BESIDES)
    parts = ((name, part) for name, value in said.items() for part in (value if type(value) is tuple else (value,)))
    return {event.KIND, *(f"{name}: {part!r}" for name, part in parts)}


def _came_of(event: Event) -> Came | None:
    """What a command is said to have come to, by the event it appended."""
    match event:
        case Revised():
            return "revised"
        case Forgotten():
            return "forgotten"
        case Restored():
            return "restored"
        case Linked():
            return "linked"
        case Unlinked():
            return "unlinked"
        case Protected():
            return "protected" if event.on else "unprotected"
        case Pinned():
            return "pinned" if event.on else "unpinned"
        case _:
            return None


def _held(record: Record, clash: Claimed) -> str:
    holder = clash.holder.hex() if clash.holder else "another memory"
    return (
        f"The memory {record.id} can't have this text or key: {holder} holds it now. Forget or revise that one first."
    )
