"""Bring memories in from an export: what the file tells is appended as a claim, and what is known here stands."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any, Literal, NamedTuple

from ..errors import Busy, Claimed, Refused, RevisionConflict, StreamErased
from ..events.claims import Claim, Release, command_tag, held_tags, renamed_tag
from ..events.kinds import Forgotten, Imported, Protected, Revised, Stored, Superseded
from ..events.lineage import Lineage
from ..events.log import Append, Log
from ..events.mapper import Draft, LoggedEvent
from ..events.portable import Began
from ..projections.record import Record, fold, would_be
from .naming import canonical
from .protect import PinnedIn, require_room
from .rows import Life, life
from .session import Session, attempts

Result = Literal["new", "updated", "known"]

_ONE_AT_A_TIME = Lock()


class Refusal(NamedTuple):
    """A row that nothing came of, and why."""

    reason: str


class _Wanted(NamedTuple):
    """What one row asks for: the event, the memory before and after it, and the command ids it was told by."""

    event: Imported
    before: Record | None
    after: Record
    commands: tuple[bytes, ...]

    @property
    def stream(self) -> bytes:
        """The memory's stream in this store."""
        return self.after.stream


def bring(
    session: Session, through: bytes, rows: Sequence[Mapping[str, Any]], pinned: PinnedIn
) -> list[Result | Refusal]:
    """Append what rows of an export of the log `through` tell, in one transaction.

    Returns what each came to. What is there already stays as it is. No two rows may
    be of one memory.
    """
    with _ONE_AT_A_TIME:
        for _ in attempts():
            try:
                return _Rows(session, through, pinned).append(rows)
            except (Claimed, RevisionConflict, StreamErased):  # another process has brought in the same
                continue
    raise Busy("Other writers keep changing the same memories. Try again.")


class _Rows:
    """One attempt, from the store as it is."""

    def __init__(self, session: Session, through: bytes, pinned: PinnedIn) -> None:
        self._session = session
        self._index = session.index_key
        self._log: Log = session.installation.memory
        self._lineage = Lineage(self._log)
        self._through = through
        self._pinned_before = pinned
        self._pinned: dict[str, list[Record]] = {}
        self._drafts: list[Draft] = []
        self._takes: dict[bytes, int] = {}
        self._releases: list[Release] = []
        self._holders: dict[bytes, bytes] = {}
        self._names: dict[str, str] = {}

    def append(self, rows: Sequence[Mapping[str, Any]]) -> list[Result | Refusal]:
        """Decide each row, append all that is new, and say what each came to."""
        read = [self._read(row) for row in rows]
        wanted = [each for each in read if isinstance(each, _Wanted)]
        tags = [tag for each in wanted for tag in (*self._tags(each.after), *each.commands)]
        self._holders = {tag: stream for tag, (stream, _) in self._log.holders(tags).items()}
        for each in wanted:
            self._give_up(each)
        results = [self._add(each) if isinstance(each, _Wanted) else each for each in read]
        if self._drafts:
            claims = tuple(Claim(tag, draft) for tag, draft in self._takes.items())
            free = tuple({renamed_tag(self._index, name) for name in self._names.values()})
            self._log.append(Append(tuple(self._drafts), claims, tuple(self._releases), free=free))
        return results

    # ---- what a row asks for

    def _read(self, row: Mapping[str, Any]) -> _Wanted | Literal["known"] | Refusal:
        try:
            return self._wanted(life(row, self._local))
        except Refused as error:
            return Refusal(str(error))

    def _wanted(self, told: Life) -> _Wanted | Literal["known"]:
        stream = self._local(told.began)
        events = self._log.events_of(stream)
        known = {each.id for logged in events if isinstance(logged.event, Imported) for each in logged.event.events}
        fresh = [n for n, each in enumerate(told.told) if each.id not in known]
        if (events and not isinstance(events[0].event, Imported)) or not fresh:
            return "known"
        before = fold(events)
        _require_continuation(told, fresh, events)
        _require_unprotected(told, fresh, before)
        event = self._session.event(
            Imported,
            namespace=_namespace(told, before),
            origin=told.began.origin,
            memory=told.began.memory,
            through=self._through,
            events=tuple(told.told[n] for n in fresh),
            others=told.others,
            parents=() if before is None else (before.leaf,),
        )
        after = would_be(before, event, stream)
        tags = (command_tag(self._index, after.namespace, told.events[n].command_id) for n in fresh)
        return _Wanted(event, before, after, tuple(tag for tag in tags if tag is not None))

    def _local(self, began: Began) -> bytes:
        """The stream here of a memory that began anywhere: itself where it began here, else one made from its name."""
        return self._lineage.stream(began, self._nonce(began))

    def _nonce(self, began: Began) -> bytes:
        """Keyed, so that nobody else can tell which stream a memory will get."""
        mac = hashlib.blake2b(key=self._index, digest_size=16, person=b"tally.imported")
        mac.update(began.origin + began.memory)
        return mac.digest()

    # ---- what it comes to

    def _give_up(self, wanted: _Wanted) -> None:
        """What a memory held before and will not hold any more is free for others."""
        had = () if wanted.before is None else self._tags(wanted.before)
        for tag in set(had).difference(self._tags(wanted.after)):
            self._releases.append(Release(tag, wanted.stream))
            self._holders.pop(tag, None)

    def _add(self, wanted: _Wanted) -> Result | Refusal:
        try:
            event, after = self._fitted(wanted)
            self._pin(after)
        except Refused as error:
            return Refusal(str(error))
        self._drafts.append(self._draft(wanted, event))
        for tag in (*self._tags(after), *wanted.commands):
            if tag not in self._holders:
                self._holders[tag], self._takes[tag] = wanted.stream, len(self._drafts) - 1
        return "new" if wanted.before is None else "updated"

    def _fitted(self, wanted: _Wanted) -> tuple[Imported, Record]:
        """The event, and the memory after it: of one whose text or key is held here, that one stands."""
        stream, event = wanted.stream, wanted.event
        holder = next((h for tag in self._tags(wanted.after) if (h := self._holders.get(tag, stream)) != stream), None)
        if holder is None:
            return event, wanted.after
        if wanted.before is not None:
            raise Refused(f"Its text or key is held here by {holder.hex()}. Forget that one, then import it again.")
        event = event.model_copy(update={"yields_to": holder})
        return event, would_be(None, event, stream)

    def _pin(self, after: Record) -> None:
        """Count what is pinned. Raises Refused where it is too much for a context."""
        if after.pinned and after.status == "current":
            require_room(after, after.text, lambda name: [*self._pinned_before(name), *self._pinned.get(name, ())])
            self._pinned.setdefault(after.namespace, []).append(after)

    def _draft(self, wanted: _Wanted, event: Imported) -> Draft:
        if wanted.before is not None:
            return self._log.following(wanted.stream, event, wanted.before.revision + 1)
        nonce = self._nonce(Began(event.origin, event.memory))
        return self._log.opening(wanted.stream, event.model_copy(update={"nonce": nonce}))

    def _tags(self, record: Record) -> tuple[bytes, ...]:
        """What a memory claims, under the name that its namespace has now."""
        if record.status != "current":
            return ()
        name = record.stored.namespace
        if name not in self._names:
            self._names[name] = canonical(self._session, name)
        return held_tags(self._index, record.stored, self._names[name])


def _namespace(told: Life, before: Record | None) -> str:
    first = told.events[0]
    return first.namespace if before is None and isinstance(first, Stored) else (before.namespace if before else "")


def _require_unprotected(told: Life, fresh: Sequence[int], before: Record | None) -> None:
    """Refuse a change of a memory that is protected by then: no store would have written it."""
    protected = before is not None and before.protected
    for event in (told.events[n] for n in fresh):
        if isinstance(event, Protected):
            protected = event.on
        elif protected and isinstance(event, Revised | Forgotten | Superseded):
            raise Refused(
                "It is changed while it is protected, which nothing does. Give the file as its store exported it."
            )


def _require_continuation(told: Life, fresh: Sequence[int], events: Sequence[LoggedEvent]) -> None:
    """Refuse what does not begin, or what does not go on from what is here."""
    began = [n for n in fresh if isinstance(told.events[n], Stored)]
    if not events and began != [0]:
        raise Refused("A memory begins with one memory.stored. Give its events from the first on.")
    if events and began:
        raise Refused(f"Another history has come in under {told.began} before. Look at it with `tallystick history`.")
    if any(not isinstance(logged.event, Imported) for logged in events):
        raise Refused("It has changed there and here since it came in. Look at both, then revise it by hand.")
