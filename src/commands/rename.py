"""Rename a namespace, or merge it into another one: its memories move with their claims, in one append."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ..errors import Busy, NotFound, Refused, RevisionConflict
from ..events.claims import Claim, Move, Release, held_tags, renamed_tag
from ..events.kinds import NamespaceRenamed, Pinned, Superseded
from ..events.log import Append
from ..events.mapper import Draft
from ..projections.record import Record, fold
from .change import refuse_protected
from .naming import canonical
from .protect import PINNED_BYTES
from .session import Session, attempts


class Members(NamedTuple):
    """What is known of a namespace at a size of the log.

    How many memories, the revision of each that is current, and how many bytes of text are pinned in it.
    """

    size: int
    memories: int
    current: Mapping[bytes, int]
    pinned: int


class Renamed(NamedTuple):
    """What came of a rename: both names, the event's position, how many current memories moved, and who was superseded.

    `superseded` are the ids of the memories whose text or key was held on both sides, and newer on the other.
    """

    old: str
    new: str
    position: int
    moved: int
    superseded: tuple[str, ...]


class _Held(NamedTuple):
    """A memory as it was folded, and the position of its first event."""

    record: Record
    began: int


MembersOf = Callable[[str], Members]
"""Tells what the views know of a namespace, by the name it has now."""


def rename(session: Session, old: str, new: str, members_of: MembersOf, *, merge: bool) -> Renamed:
    """Append that a namespace has another name, durable when this returns.

    Raises NotFound where there is no such namespace; Refused where `new` has memories and this is no merge, where it
    has none and this is one, and where a protected memory would be superseded.
    """
    moving = _Moving(session, members_of, merge)
    for _ in attempts():
        try:
            return moving.append(canonical(session, old), canonical(session, new), new)
        except RevisionConflict:
            continue
    raise Busy("Other writers keep changing the store. Try again.")


class _Moving:
    """The attempts of one rename: what was folded for one is known to the next."""

    def __init__(self, session: Session, members_of: MembersOf, merge: bool) -> None:
        self._session = session
        self._log = session.installation.memory
        self._members_of = members_of
        self._merge = merge
        self._known: dict[bytes, _Held] = {}

    def append(self, old: str, new: str, given: str) -> Renamed:
        """Decide from the store as it is, and append. Raises RevisionConflict where it has changed by then."""
        back = new == old  # to a name that it had
        new = given if back else new
        if new == old:
            raise Refused(f"The namespace {old} is called that already. Give another name.")
        members, others = self._members_of(old), Members(0, 0, {}, 0) if back else self._members_of(new)
        self._check(members, others, old, new)
        stream, nonce = self._log.new_stream()
        event = self._session.event(NamespaceRenamed, old=old, new=new, nonce=nonce)
        plan = _Plan(self._log.opening(stream, event))
        self._plan_all(plan, members, old, new)
        self._pin_instead(plan, members.pinned + others.pinned)
        tag = renamed_tag(self._session.index_key, new)
        held = self._log.holders([tag]).get(tag)
        appended = self._log.append(
            Append(
                tuple(plan.drafts),
                (Claim(renamed_tag(self._session.index_key, old), 0),),
                (*plan.releases, *([Release(tag, held[0])] if held else [])),
                moves=tuple(plan.moves),
                size=members.size,
            )
        )
        superseded = tuple(stream.hex() for stream in plan.superseded)
        return Renamed(old, new, appended[0].position, len(members.current), superseded)

    def _check(self, members: Members, others: Members, old: str, new: str) -> None:
        if not members.memories:
            raise NotFound(f"There is no namespace {old}. Look for its name with `tallystick namespaces`.")
        if others.memories and not self._merge:
            raise Refused(f"The namespace {new} has memories of its own. Merge into it, or choose another name.")
        if self._merge and not others.memories:
            raise Refused(f"There is no namespace {new} to merge into. Look for its name with `tallystick namespaces`.")
        _require_room(new, members.pinned + others.pinned)

    def _plan_all(self, plan: _Plan, members: Members, old: str, new: str) -> None:
        index = self._session.index_key
        held = {stream: self._hold(stream, revision) for stream, revision in members.current.items()}
        tags = {
            stream: (held_tags(index, each.record.stored, old), held_tags(index, each.record.stored, new))
            for stream, each in held.items()
        }
        taken = self._log.holders([tag for _, after in tags.values() for tag in after])
        for stream, (before, after) in tags.items():
            rivals = {taken[tag][0] for tag in after if tag in taken}
            self._plan_one(plan, held[stream], before, after, [self._hold(rival) for rival in rivals])

    def _plan_one(
        self, plan: _Plan, moved: _Held, before: Sequence[bytes], after: Sequence[bytes], rivals: Sequence[_Held]
    ) -> None:
        if any(rival.began > moved.began for rival in rivals):
            newer = max(rivals, key=lambda rival: rival.began)
            self._supersede(plan, moved.record, before, newer.record)
            return
        for rival in rivals:
            namespaced = held_tags(self._session.index_key, rival.record.stored, plan.new)
            self._supersede(plan, rival.record, namespaced, moved.record)
        plan.moves += [Move(a, b, moved.record.stream) for a, b in zip(before, after, strict=True)]

    def _supersede(self, plan: _Plan, older: Record, tags: Sequence[bytes], newer: Record) -> None:
        refuse_protected(older)
        plan.superseded[older.stream] = older, newer
        event = self._session.event(Superseded, by=newer.stream, parents=(older.leaf,))
        plan.drafts.append(self._log.following(older.stream, event, older.revision + 1))
        plan.releases += [Release(tag, older.stream) for tag in tags]

    def _pin_instead(self, plan: _Plan, pinned: int) -> None:
        """What takes the place of a pinned memory is pinned. Raises Refused where all is too much for a context."""
        heirs: dict[bytes, Record] = {}
        for older, newer in plan.superseded.values():
            if older.pinned:
                pinned -= len(older.text.encode())
                while newer.stream in plan.superseded:
                    newer = plan.superseded[newer.stream][1]
                if not newer.pinned:
                    heirs[newer.stream] = newer
        _require_room(plan.new, pinned + sum(len(heir.text.encode()) for heir in heirs.values()))
        for heir in heirs.values():
            event = self._session.event(Pinned, on=True, parents=(heir.leaf,))
            plan.drafts.append(self._log.following(heir.stream, event, heir.revision + 1))

    def _hold(self, stream: bytes, revision: int | None = None) -> _Held:
        known = self._known.get(stream)
        if known is None or known.record.revision != revision:
            events = self._log.events_of(stream)
            record = fold(events)
            if record is None:
                raise Refused(f"{stream.hex()} is not a memory. Run `tallystick verify`.")
            known = self._known[stream] = _Held(record, events[0].header.position)
        return known


def _require_room(namespace: str, pinned: int) -> None:
    if pinned > PINNED_BYTES:
        raise Refused(
            f"Together {pinned:,} bytes would be pinned in {namespace}, and {PINNED_BYTES:,} is the most. Unpin some "
            f"memories, then repeat the command."
        )


class _Plan:
    """What one attempt appends: the rename, what it does to the claims, and which memory is superseded by which."""

    def __init__(self, renamed: Draft) -> None:
        self.new = renamed.event.new  # type: ignore[attr-defined]
        self.drafts = [renamed]
        self.superseded: dict[bytes, tuple[Record, Record]] = {}
        self.releases: list[Release] = []
        self.moves: list[Move] = []
