"""Search: the memories that fulfil filters, sorted, counted, and a page at a time."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..errors import Refused, ViewsDamaged
from ..events.log import Log
from ..projections import memories
from ..projections.condition import Condition, every
from ..projections.record import Record
from ..projections.views import RECALL, Views
from .filters import Filters
from .lookup import hydrate

SORTS = ("recorded_at", "occurred_at", "revised_at", "expires_at", "importance", "confidence", "reinforced", "place")


class Sought(NamedTuple):
    """What is searched: where, by which filters, in which order, how many at a time, after what, and when.

    `namespaces` and `aliases` as in a `Question`. `scope` is how the namespaces were asked for.
    """

    namespaces: tuple[str, ...]
    scope: Any
    filters: Filters
    sort: str
    limit: int
    after: str | None
    now: int
    aliases: Mapping[str, str]


class Found(NamedTuple):
    """One page: its memories, how many there are on all pages, the cursor of the next page, and the log's state."""

    records: tuple[Record, ...]
    total: int
    cursor: str | None
    log_size: int
    log_root: bytes


class _Place(NamedTuple):
    """Where a page ends: in which list, the newest memory that was there when the first page was read, and the keys."""

    list: str
    newest: int
    keys: tuple[float, float, int]


def search(log: Log, views: Views, sought: Sought) -> Found:
    """A page of the memories that fulfil the filters, each read from the log.

    Raises Refused for an order that there is not, and for a cursor of another search.
    """
    condition, order = sought.filters.of_all(sought.now), _order(sought.sort)
    after = None if sought.after is None else _opened(sought)
    tip = log.follow()
    views.catch_up(RECALL)
    with views.reading() as cursor:
        tip = log.tip_at(views.position(RECALL, log.name, cursor) + 1, tip)
        newest = memories.next_number(cursor) - 1 if after is None else after.newest
        known = every([condition, Condition("memories.number <= ?", (newest,))])
        total = memories.count(cursor, sought.namespaces, known)
        rest = known if after is None else every([known, Condition(f"({order}) > (?, ?, ?)", after.keys)])
        rows = memories.sorted_rows(cursor, sought.namespaces, rest, order, sought.limit + 1)
    page = rows[: sought.limit]
    more = len(rows) > sought.limit
    cursor_ = _sealed(_Place(_name(sought), newest, page[-1][0])) if more else None
    return Found(_records(log, page, sought), total, cursor_, tip.size, tip.frontier.root())


def _records(log: Log, page: list[tuple[Any, tuple[Any, ...]]], sought: Sought) -> tuple[Record, ...]:
    records = hydrate(log, [row for _, row in page])
    for record in records:
        if record.stored.namespace not in sought.namespaces:
            raise ViewsDamaged(f"The views give {record.id} to another namespace. {ViewsDamaged.remedy}")
    wanted, names = sought.filters.folded, sought.aliases
    return tuple(r.renamed(names.get(r.namespace, r.namespace)) for r in records if r.status in wanted)


def _order(sort: Any) -> str:
    """What rows are sorted by, upwards: what has no value comes last, and equal ones go by number."""
    field = sort.removeprefix("-") if isinstance(sort, str) else ""
    if field not in SORTS:
        raise Refused(f"sort is {sort!r}. Give one of {', '.join(SORTS)}, with a - before it to begin at the greatest.")
    sign = "-" if sort.startswith("-") else ""
    return f"memories.{field} IS NULL, {sign}coalesce(memories.{field}, 0), {sign}memories.number"


def _name(sought: Sought) -> str:
    """What tells one search from another, so that a cursor is not used for another one."""
    asked = json.dumps([sought.scope, sought.filters.recorded(), sought.sort], sort_keys=True)
    return hashlib.blake2b(asked.encode(), digest_size=8).hexdigest()


def _sealed(place: _Place) -> str:
    return base64.urlsafe_b64encode(json.dumps([place.list, place.newest, *place.keys]).encode()).decode().rstrip("=")


def _opened(sought: Sought) -> _Place:
    try:
        written = base64.urlsafe_b64decode(str(sought.after) + "==")
        name, newest, absent, key, number = json.loads(written)
        place = _Place(
            name, int(newest), (int(absent), float(key) if isinstance(key, float) else int(key), int(number))
        )
    except (ValueError, TypeError, OverflowError) as error:
        raise Refused(f"{sought.after!r} is no cursor. Give the one that came with the page before.") from error
    if place.list != _name(sought):
        raise Refused("The cursor is that of another search. Give the same namespaces, filters and order with it.")
    return place
