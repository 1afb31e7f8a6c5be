"""Store memories: decide of each whether it is new, said before, or takes the place of an older value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from ..errors import Busy, Claimed, NotFound, Refused, RevisionConflict
from ..events.kinds import Source, Stored
from .batch import Batch, Row
from .echo import Echoes
from .fields import check_command_id, check_namespace, check_text, given
from .naming import canonical
from .outcome import Outcome, refused
from .protect import PinnedIn
from .session import Session, attempts


@dataclass(frozen=True, kw_only=True)
class Store:
    """The wish to store a memory. Times are datetimes with a zone, or ISO 8601 text with one."""

    text: str
    namespace: str
    kind: str = "note"
    source: Source = "agent"
    subject: str | None = None
    key: str | None = None
    tags: Sequence[str] = ()
    importance: float = 0.5
    confidence: float | None = None
    author: str | None = None
    thread: str | None = None
    place: int | None = None
    occurred_at: datetime | str | None = None
    valid_from: datetime | str | None = None
    expires_at: datetime | str | None = None
    evidence: Sequence[str] = ()
    label: str | None = None
    trust: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    derived_from: Sequence[bytes] = ()
    supersedes: str | None = None
    """The id of a memory whose place it takes, or the beginning of one."""
    command_id: str | None = None


class Asked(NamedTuple):
    """A memory to be stored, and the one whose place it is to take, if one is named."""

    stored: Stored
    supersedes: bytes | None = None


class Known(NamedTuple):
    """What a store is decided by besides the claims: what was just recalled, what is pinned in a namespace, and ids."""

    echoes: Echoes
    pinned: PinnedIn
    resolve: Callable[[str], bytes]


def store(session: Session, row: Mapping[str, Any], known: Known) -> Outcome:
    """Append what one wish comes to, durable when this returns. Raises Refused where a rule says no."""
    outcome = store_many(session, [_asked(session, _command(row), known)], known)[0]
    if outcome.status == "refused":
        raise Refused(outcome.reason)
    return outcome


def store_rows(session: Session, rows: Sequence[Mapping[str, Any]], known: Known) -> list[Outcome]:
    """As `store`, for many at once and in one transaction; a row that a rule says no to is `refused` and no other."""
    wishes: list[Asked | Outcome] = []
    for row in rows:
        try:
            asked = _asked(session, _command(row), known)
            session.installation.memory.require_writable(asked.stored)
            wishes.append(asked)
        except (NotFound, Refused) as error:
            wishes.append(refused(str(error)))
    accepted = [wish for wish in wishes if isinstance(wish, Asked)]
    came = iter(store_many(session, accepted, known))
    return [wish if isinstance(wish, Outcome) else next(came) for wish in wishes]


def store_many(session: Session, wishes: Sequence[Asked], known: Known) -> list[Outcome]:
    """Append what the wishes come to, all in one transaction, in order, and say what each came to.

    Writers that claim the same text, key or command id are put in order by the log: one holds it, the others
    are told, and decide again.
    """
    for _ in attempts():
        names = {name: canonical(session, name) for name in {wish.stored.namespace for wish in wishes}}
        rows = [
            Row.of(session, stored, names[stored.namespace], known.echoes)._replace(supersedes=older)
            for stored, older in wishes
        ]
        try:
            return Batch(session, rows, known.pinned).append()
        except (Claimed, RevisionConflict):
            continue
    raise Busy("Other writers keep changing the same memory. Try again.")


def _command(row: Any) -> Store:
    if not isinstance(row, Mapping):
        raise Refused(f"A row is a {type(row).__name__}. Give a text, or a mapping of the fields of a memory.")
    unknown = [name for name in row if name not in Store.__dataclass_fields__]
    if unknown:
        raise Refused(f"{unknown[0]} is not a field of a memory. Give one of {field_names()}.")
    if "text" not in row:
        raise Refused("There is no text to store. Give one, as `text`.")
    return Store(**row)


def field_names() -> str:
    """The fields that a memory can be stored with, besides its text."""
    return ", ".join(name for name in Store.__dataclass_fields__ if name not in ("text", "namespace"))


def _asked(session: Session, command: Store, known: Known) -> Asked:
    older = None if command.supersedes is None else known.resolve(command.supersedes)
    return Asked(_stored(session, command), older)


def _stored(session: Session, command: Store) -> Stored:
    check_text(command.text)
    check_namespace(command.namespace)
    check_command_id(command.command_id, command.thread, command.place)
    fields = {name: getattr(command, name) for name in Stored.model_fields if hasattr(command, name)}
    return session.event(Stored, **given(fields))
