"""Revise a memory: some of its fields get other values, and every version is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import Refused
from ..events.claims import held_tags
from ..events.kinds import Revised
from ..projections.record import CLEARABLE, REVISABLE, Record, revision_of
from .change import Change, Wish, change, refuse_protected
from .fields import check_text, given
from .outcome import Outcome
from .protect import PinnedIn, require_room
from .session import Session

_TAGS = ("tags_added", "tags_removed")
FIELDS = (*REVISABLE, *_TAGS, "cleared", "derived_from", "reason")
"""What a revision can say."""


def revise(session: Session, wish: Wish, fields: Mapping[str, Any], pinned: PinnedIn) -> Outcome:
    """Append the fields that change. Raises NotFound, RevisionConflict, or Refused where a rule says no.

    Fields that already have the value given are left out; a revision that changes nothing is refused.
    """
    unknown = [name for name in fields if name not in FIELDS]
    if unknown:
        raise Refused(f"{unknown[0]} is not a field that can be revised. Give one of {', '.join(FIELDS)}.")
    if fields.get("text") is not None:
        check_text(fields["text"])
    asked = session.event(Revised, **given({name: value for name, value in fields.items() if value is not None}))
    check_cleared(asked.cleared)

    def decide(record: Record) -> Change:
        if record.status != "current":
            raise Refused(f"The memory {record.id} is {record.status}, not current. Restore it, or store a new one.")
        refuse_protected(record)
        if record.pinned and asked.text is not None:
            require_room(record, asked.text, pinned)
        event = _what_differs(record, asked)
        revised = record.stored.model_copy(update=revision_of(record.stored, event))
        before, after = (held_tags(session.index_key, each, record.namespace) for each in (record.stored, revised))
        return Change(
            "revised",
            event,
            takes=tuple(tag for tag in after if tag not in before),
            gives_up=tuple(tag for tag in before if tag not in after),
            alone=record.pinned,
        )

    return change(session, wish, asked, decide)


def check_cleared(cleared: Sequence[str]) -> None:
    """Refuse names of fields that always have a value, and of none."""
    fixed = [name for name in cleared if name not in CLEARABLE]
    if fixed:
        raise Refused(f"{fixed[0]} can't be left without a value. Name one of {', '.join(CLEARABLE)}.")


def _what_differs(record: Record, asked: Revised) -> Revised:
    stored = record.stored
    same = {name: None for name in REVISABLE if getattr(asked, name) == getattr(stored, name)}
    event = asked.model_copy(
        update={
            **same,
            "tags_added": tuple(tag for tag in dict.fromkeys(asked.tags_added) if tag not in stored.tags),
            "tags_removed": tuple(tag for tag in dict.fromkeys(asked.tags_removed) if tag in stored.tags),
            "cleared": tuple(name for name in dict.fromkeys(asked.cleared) if getattr(stored, name) is not None),
        }
    )
    if not revision_of(stored, event):
        raise Refused(f"The memory {record.id} says that already. Give a field another value to revise it.")
    return event
