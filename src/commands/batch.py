"""Decide a batch of wishes to store against the claims there are and against each other, and append it whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, Self

from ..errors import Refused
from ..events.claims import Claim, Release, command_tag, content_tag, essence, held_tags, key_tag, renamed_tag
from ..events.kinds import Event, Pinned, Reinforced, Stored, Superseded
from ..events.log import Append
from ..events.mapper import NEXT, Draft
from ..events.portable import done_under
from ..projections.record import Record, fold
from .change import refuse_protected
from .echo import Echoes
from .naming import canonical
from .outcome import Came, Outcome, refused
from .protect import PinnedIn, require_room
from .session import Session


class Row(NamedTuple):
    """What one row asks for, and what it would claim. `echo_of` is the memory whose text it repeats, just recalled.

    `given` is the claim on its command id under the name it gave to the namespace, `name` what stays free while that
    is the name it has. `supersedes` is the memory that was named to give up its place, whatever that holds.
    """

    stored: Stored
    content: bytes | None
    key: bytes | None
    command: bytes | None
    given: bytes | None
    name: bytes
    echo_of: bytes | None
    supersedes: bytes | None = None

    @classmethod
    def of(cls, session: Session, wish: Stored, namespace: str, echoes: Echoes) -> Self:
        """The row that asks to store this in a namespace, which goes by this name now."""
        index = session.index_key
        given, stored = command_tag(index, wish.namespace, wish.command_id), wish
        if namespace != wish.namespace:
            stored = wish.model_copy(update={"namespace": namespace})
        command = command_tag(index, namespace, wish.command_id)
        tags = content_tag(index, stored), key_tag(index, stored), command, given
        return cls(stored, *tags, renamed_tag(index, namespace), echoes.find(stored))

    @property
    def tags(self) -> list[bytes]:
        """All that decides what becomes of it."""
        return [tag for tag in (self.content, self.key, self.command, self.given) if tag is not None]


class _Came(NamedTuple):
    """What a row came to: the memory, and which draft says so."""

    status: Came
    id: str
    draft: int
    superseded_id: str | None = None
    repeated: bool = False
    reason: str | None = None


class Batch:
    """One attempt, from the claims as they are. Raises Claimed or RevisionConflict where they have changed by then."""

    def __init__(self, session: Session, rows: Sequence[Row], pinned: PinnedIn) -> None:
        self._session = session
        self._log = session.installation.memory
        self._size = self._log.tip.size
        self._pinned_before = pinned
        self._repinned: dict[bytes, Record] = {}
        self._rows = rows
        self._held = self._log.holders([tag for row in rows for tag in row.tags])
        self._records: dict[bytes, Record] = {}
        self._holders: dict[bytes, bytes | None] = {tag: stream for tag, (stream, _) in self._held.items()}
        self._takers: dict[bytes, int] = {}
        self._done: dict[bytes, tuple[Stored, _Came]] = {}
        self._drafts: list[Draft] = []
        self._ahead: dict[bytes, int] = {}

    def append(self) -> list[Outcome]:
        """Decide each row in turn, append all of it, and say what each came to."""
        decided = [self._decide(row) for row in self._rows]
        free = tuple(dict.fromkeys(row.name for row in self._rows))
        size = self._size if self._repinned else None  # what is pinned was counted
        request = Append(tuple(self._drafts), self._claims(), self._releases(), free=free, size=size)
        appended = self._log.append(request) if self._drafts else []
        return [
            came
            if isinstance(came, Outcome)
            else Outcome(
                came.status, came.id, appended[came.draft].position, came.superseded_id, came.repeated, came.reason
            )
            for came in decided
        ]

    # ---- one row

    def _decide(self, row: Row) -> _Came | Outcome:
        try:
            for done in (row.given, row.command):
                if done is not None and done in self._holders:
                    return self._repeated(row, done)
            came = self._new_or_known(row)
        except Refused as error:
            return refused(str(error))
        if row.command is not None:
            self._take(row.command, came.draft, bytes.fromhex(came.id))
            self._done[row.command] = row.stored, came
        return came

    def _new_or_known(self, row: Row) -> _Came:
        same = self._holder(row.content) or self._echo(row)
        if row.supersedes is not None:
            return self._store(row, self._named(row, row.supersedes, same or self._holder(row.key)))
        if same is not None and not self._has_expired(same):
            return self._reinforce(row, same)
        return self._store(row, same or self._holder(row.key))

    def _named(self, row: Row, stream: bytes, holder: Record | None) -> Record:
        """The memory whose place a row asks for. Raises Refused for one that can't give it up to what the row says."""
        older = self._record(stream)
        older = older.renamed(canonical(self._session, older.stored.namespace))
        if older.status != "current" or older.namespace != row.stored.namespace:
            where = f"{older.status}, in {older.namespace}"
            raise Refused(f"{older.id} is {where}. Name a memory that is current in {row.stored.namespace}.")
        if holder is not None and (holder.stream != stream or self._holders.get(row.content or b"") == stream):
            raise Refused(f"{holder.id} holds that text or key already. Revise that one, or forget {older.id}.")
        return older

    def _store(self, row: Row, older: Record | None) -> _Came:
        """A new memory, in the place of an older one where that holds its key, or its text and has expired."""
        if older is not None:
            refuse_protected(older)
            if older.pinned:
                self._require_pin(older, row.stored)
        stream, nonce = self._log.new_stream()
        stored = row.stored.model_copy(update={"nonce": nonce})
        draft = self._add(self._log.opening(stream, stored))
        self._records[stream] = Record(stream, stored, 0, 0, 0, b"")
        if older is not None:
            event = self._session.event(Superseded, by=stream, parents=_leaf(older))
            self._follow(older, event, exact=bool(older.leaf))
            self._records[older.stream] = replace(older, status="superseded", superseded_by=stream)
            self._holders |= dict.fromkeys(held_tags(self._session.index_key, older.stored, stored.namespace))
            if older.pinned:
                self._pin_instead(self._records[stream], self._records[older.stream])
        for tag in (row.content, row.key):
            if tag is not None:
                self._take(tag, draft, stream)
        return _Came("superseded" if older else "stored", stream.hex(), draft, older.id if older else None)

    def _require_pin(self, older: Record, stored: Stored) -> None:
        """Raise Refused where a text is too long to be pinned in the place of an older one."""
        require_room(older.renamed(stored.namespace), stored.text, self._pinned)

    def _pin_instead(self, record: Record, older: Record) -> None:
        """What takes the place of a pinned memory is pinned."""
        self._follow(record, self._session.event(Pinned, on=True, parents=_leaf(record)), exact=False)
        self._records[record.stream] = replace(record, pinned=True)
        first = next((stream for stream, now in self._repinned.items() if now.stream == older.stream), older.stream)
        self._repinned[first] = record

    def _pinned(self, namespace: str) -> list[Record]:
        """What is pinned in a namespace after what was decided so far."""
        return [self._repinned.get(record.stream, record) for record in self._pinned_before(namespace)]

    def _reinforce(self, row: Row, same: Record) -> _Came:
        event = self._session.event(Reinforced, parents=_leaf(same), command_id=row.stored.command_id)
        claimed = row.content is not None and self._holders.get(row.content) == same.stream
        draft = self._follow(same, event, exact=bool(same.leaf) and not claimed)
        if claimed and row.content is not None:
            self._take(row.content, draft, same.stream)
        return _Came("reinforced", same.id, draft)

    def _add(self, draft: Draft) -> int:
        self._drafts.append(draft)
        return len(self._drafts) - 1

    def _follow(self, record: Record, event: Event, *, exact: bool) -> int:
        """An event after the last one of a memory, counting those of this batch; or, not `exact`, wherever it ends."""
        self._ahead[record.stream] = ahead = self._ahead.get(record.stream, 0) + 1
        return self._add(self._log.following(record.stream, event, record.revision + ahead if exact else NEXT))

    def _take(self, tag: bytes, draft: int, stream: bytes) -> None:
        self._holders[tag], self._takers[tag] = stream, draft

    # ---- what is claimed in the end

    def _claims(self) -> tuple[Claim, ...]:
        return tuple(
            Claim(tag, draft, instead_of=self._held[tag][0] if tag in self._held else None)
            for tag, draft in self._takers.items()
            if self._holders[tag] is not None
        )

    def _releases(self) -> tuple[Release, ...]:
        """What was held before and is given up: looked for as well among what the superseded held beyond the rows."""
        given_up = [tag for tag, stream in self._holders.items() if stream is None]
        held = self._held | self._log.holders([tag for tag in given_up if tag not in self._held])
        return tuple(Release(tag, held[tag][0]) for tag in given_up if tag in held)

    # ---- what is there

    def _holder(self, tag: bytes | None) -> Record | None:
        stream = self._holders.get(tag) if tag is not None else None
        return None if stream is None else self._record(stream)

    def _echo(self, row: Row) -> Record | None:
        record = self._record(row.echo_of) if row.echo_of else None
        fits = record is not None and record.status == "current" and not self._has_expired(record)
        return record if fits else None

    def _record(self, stream: bytes) -> Record:
        if stream not in self._records:
            record = fold(self._log.events_of(stream))
            if record is None:
                raise Refused(f"{stream.hex()} is not a memory. Run `tallystick verify`.")
            self._records[stream] = record
        return self._records[stream]

    def _has_expired(self, record: Record) -> bool:
        expires = record.stored.expires_at
        return expires is not None and expires <= self._session.now()

    # ---- a command id that was used before

    def _repeated(self, row: Row, tag: bytes) -> _Came | Outcome:
        """The command was carried out before, in this batch or earlier: say again what came of it."""
        if tag in self._done:
            before, came = self._done[tag]
            self._require_same(row, before, came.id)
            return came._replace(repeated=True, reason=_what_stays(row.stored, before))
        holder, position = self._held[tag]
        logged = self._log.event_at(position)
        done = done_under(logged.event, row.stored.command_id)
        then = fold(self._log.events_of(holder, upto=logged.header.revision))
        if then is None or not isinstance(done, Stored | Reinforced):
            raise Refused(f"The command id {row.stored.command_id!r} was used for something else. Give another one.")
        self._require_same(row, done if isinstance(done, Stored) else then.stored, then.id)
        if isinstance(done, Reinforced):
            return Outcome("reinforced", then.id, position, repeated=True)
        older, reason = self._superseded_with(holder, position), _what_stays(row.stored, done)
        return Outcome("superseded" if older else "stored", then.id, position, older, repeated=True, reason=reason)

    def _require_same(self, row: Row, before: Stored, memory: str) -> None:
        if _meant(row.stored) != _meant(before):
            raise Refused(
                f"The command id {row.stored.command_id!r} was used for another text, the memory {memory}. "
                f"Give each command an id of its own."
            )

    def _superseded_with(self, holder: bytes, position: int) -> str | None:
        """The memory that was superseded in the same append, by the event after the one that stored."""
        if self._log.follow().size <= position + 1:
            return None
        following = self._log.event_at(position + 1)
        by = following.event.by if isinstance(following.event, Superseded) else None
        return following.header.stream.hex() if by == holder else None


def _leaf(record: Record) -> tuple[bytes, ...]:
    """The last event of a memory; none for one that this batch stores, whose events have no leaves yet."""
    return (record.leaf,) if record.leaf else ()


_BESIDES = {*Event.model_fields, "namespace"}


def _what_stays(asked: Stored, before: Stored) -> str | None:
    """What a repeated command says otherwise than the first time, which is not done. None where there is nothing."""
    said = asked.model_dump(exclude_defaults=True, exclude=_BESIDES)
    other = [name for name in said if getattr(asked, name) != getattr(before, name)]
    if not other:
        return None
    return f"It was stored before with another {', '.join(other)}, which stays. Revise the memory to change it."


def _meant(stored: Stored) -> tuple[str, str | None, str | None]:
    """What makes two commands the same: the text as it is compared, and what it is about."""
    return essence(stored.text), stored.key, stored.subject
