"""The filters of recall and search: which memories may be found at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from reprlib import repr as short
from typing import Any

from ..errors import Refused
from ..events.instants import instant
from ..projections.condition import ALWAYS, Condition, among, called, every, number, some, tagged, where
from ..projections.validity import valid_at

STATUSES = ("current", "expired", "forgotten", "superseded")
VALID = ("current", "expired", "superseded")
"""What can have been valid at some time."""
MOST_VALUES = 800
_EXPIRY = {
    "current": "(memories.expires_at IS NULL OR memories.expires_at > ?)",
    "expired": "(memories.expires_at <= ?)",
}
_WHEN = "coalesce(memories.occurred_at, memories.recorded_at)"


@dataclass(frozen=True, kw_only=True)
class Filters:
    """What a memory must fulfil to be found; what is not said is not asked for, but that it is current, or was valid.

    `tags`: it has all of them. `kinds`, `actors`, `sources`: it is one of them. `since` and `until`, which is not
    included: when it occurred, or was recorded where that was not said. `as_of`: it was valid then, see
    `validity.valid_at`. `status`: one or several of `current`, `expired`, `forgotten`, `superseded`; where nothing is
    said, what is current, or with `as_of` whatever was valid then. `where`: see `condition.where`.
    """

    where: Mapping[str, Any] = field(default_factory=dict)
    tags: Sequence[str] = ()
    kinds: Sequence[str] = ()
    actors: Sequence[str] = ()
    sources: Sequence[str] = ()
    subject: str | None = None
    since: datetime | str | None = None
    until: datetime | str | None = None
    as_of: datetime | str | None = None
    min_importance: float | None = None
    status: str | Sequence[str] | None = None

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Filters:
        """The filters given by name, None being as good as nothing. Raises Refused for what is no filter."""
        unknown = [name for name in fields if name not in cls.__dataclass_fields__]
        if unknown:
            raise Refused(f"{unknown[0]} is not a filter. Give one of {', '.join(cls.__dataclass_fields__)}.")
        return cls(**{name: value for name, value in fields.items() if value is not None})

    @property
    def statuses(self) -> tuple[str, ...]:
        """The statuses asked for. Raises Refused for what is none, or can't have been valid where that is asked."""
        if self.status is None:
            return ("current",) if self.as_of is None else VALID
        asked = (self.status,) if isinstance(self.status, str) else _listed(self.status, "status")
        unknown = [status for status in asked if status not in STATUSES]
        if self.as_of is not None and "forgotten" in asked:
            raise Refused("What is forgotten was valid at no time. Ask for it without as_of.")
        if unknown or not asked:
            what = repr(unknown[0]) if unknown else "an empty list"
            raise Refused(f"status: {what} is none. Give one or several of {', '.join(STATUSES)}.")
        return asked

    @property
    def folded(self) -> frozenset[str]:
        """The statuses asked for, as the events of a memory tell them: whether it has expired is up to the time."""
        return frozenset("current" if status == "expired" else status for status in self.statuses)

    def of_all(self, now: int) -> Condition:
        """What a row of the `memories` view must fulfil at a time (microseconds). Raises Refused, naming the filter."""
        return self._with([_has_status(status, now) for status in self.statuses])

    def of_current(self, now: int) -> Condition:
        """As `of_all`, for rows of memories that are current anyway. Raises Refused where others are asked for."""
        unfit = [status for status in self.statuses if status not in _EXPIRY]
        if unfit and self.as_of is None:
            raise Refused(f"What is {unfit[0]} is not recalled. Look for it with search, by status {unfit[0]}.")
        return self._with([Condition(_EXPIRY[status], (now,)) for status in self.statuses if status in _EXPIRY])

    def of_superseded(self) -> Condition | None:
        """As `of_all`, for rows of memories that are superseded anyway; None where those are not asked for."""
        return self._with([ALWAYS]) if self.as_of is not None and "superseded" in self.statuses else None

    def _with(self, statuses: Sequence[Condition]) -> Condition:
        parts = [some(statuses), where(self.where)]
        parts += [tagged(tag) for tag in _listed(self.tags, "tags")]
        for name in ("kinds", "actors", "sources"):
            if values := _listed(getattr(self, name), name):
                parts.append(among(name.removesuffix("s"), values))
        if self.subject is not None:
            parts.append(Condition("(memories.subject = ?)", (called(self.subject, "subject"),)))
        parts += self._when()
        if self.min_importance is not None:
            parts.append(Condition("(memories.importance >= ?)", (number(self.min_importance, "min_importance"),)))
        condition = every(parts)
        if len(condition.parameters) > MOST_VALUES:
            raise Refused(f"The filters hold over {MOST_VALUES} values. Ask in parts.")
        return condition

    def _when(self) -> list[Condition]:
        parts = []
        for name, sign in (("since", ">="), ("until", "<")):
            if (limit := instant(getattr(self, name), name)) is not None:
                parts.append(Condition(f"({_WHEN} {sign} ?)", (limit,)))
        if (at := instant(self.as_of, "as_of")) is not None:
            parts.append(valid_at(at))
        return parts

    def recorded(self) -> dict[str, Any]:
        """The filters that were given, as they are put on record: times as microseconds, sets and tuples as lists."""
        given = {name: value for name in self.__dataclass_fields__ if (value := getattr(self, name))}
        given |= {name: instant(given[name], name) for name in ("since", "until", "as_of") if name in given}
        if self.as_of is None and self.statuses == ("current",):
            given.pop("status", None)
        return {name: _plain(value) for name, value in given.items()}


def _has_status(status: str, now: int) -> Condition:
    if status in _EXPIRY:
        return Condition(f"(memories.status = 'current' AND {_EXPIRY[status]})", (now,))
    return Condition("(memories.status = ?)", (status,))


def _listed(values: Any, name: str) -> tuple[str, ...]:
    if isinstance(values, str | Mapping) or not isinstance(values, Sequence | set | frozenset):
        raise Refused(f"{name} is {short(values)}: give a list of texts.")
    return tuple(called(value, name) for value in values)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(_plain, value), key=repr)
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, datetime):
        return value.isoformat()
    return number(value, "where") if type(value) is int else value
