"""Who did what when, over both logs: the newest first, or as it happens; and what every read was answered with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from ..errors import Refused
from ..events.instants import instant
from ..events.kinds import REGISTRY, Event, Exported, Read, Recalled, Rendered, Used
from ..events.log import Log
from ..projections import audit
from ..projections.audit import AuditRow
from ..projections.condition import Condition, called, every

LOGS = ("memory", "access")
KINDS = tuple(dict.fromkeys(kind for kind, _ in REGISTRY))
_READS = (Recalled, Rendered, Read, Used, Exported)
VERBS = (
    "recall", "search", "sql", "get", "history", "blame", "why", "receipts", "context", "used", "events",
    "eval",
)  # fmt: skip
"""Each verb that a receipt can have."""
_OF_MEMORY = "(stream = ? OR (log = 'access' AND position IN (SELECT position FROM access WHERE memory = ?)))"


@dataclass(frozen=True, kw_only=True)
class TrailFilters:
    """What an event must fulfil to be listed: its kind, its log, who acted, about which memory, and when.

    A kind goes by its name or by what follows the dot: `stored` is `memory.stored`. `until` is not included.
    """

    kind: str | None = None
    actor: str | None = None
    memory: bytes | None = None
    since: datetime | str | None = None
    until: datetime | str | None = None
    log: str | None = None

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> TrailFilters:
        """The filters given by name. Raises Refused for what is no filter."""
        unknown = [name for name in fields if name not in cls.__dataclass_fields__]
        if unknown:
            raise Refused(f"{unknown[0]} is not a filter. Give one of {', '.join(cls.__dataclass_fields__)}.")
        return cls(**fields)

    def condition(self) -> Condition:
        """What a row of the `audit` view must fulfil. Raises Refused for what can't be asked."""
        parts = []
        if self.kind is not None:
            parts.append(_among("kind", _kinds(self.kind)))
        if self.log is not None:
            if self.log not in LOGS:
                raise Refused(f"log is {self.log!r}. Give `memory` or `access`.")
            parts.append(_among("log", (self.log,)))
        if self.actor is not None:
            parts.append(_among("actor", (called(self.actor, "actor"),)))
        if self.memory is not None:
            parts.append(Condition(_OF_MEMORY, (self.memory, self.memory)))
        for name, sign in (("since", ">="), ("until", "<")):
            if (limit := instant(getattr(self, name), name)) is not None:
                parts.append(Condition(f"(at {sign} ?)", (limit,)))
        return every(parts)


class Receipt(NamedTuple):
    """One read as it is on record: what was asked by which verb, by whom and when, and which memories it handed out.

    `receipt` is the id of the event, `at` wall-clock microseconds. `query` and `namespaces` are empty where the verb
    has none; `of` is the receipt of the recall that a use or a context goes back to.
    """

    receipt: str
    verb: str
    actor: str
    at: int
    query: str
    namespaces: tuple[str, ...]
    memories: tuple[str, ...]
    of: str | None


def receipts(
    log: Log, cursor: Any, filters: TrailFilters, verb: str | None, limit: int
) -> Iterator[tuple[bytes, Receipt]]:
    """The newest reads that fulfil the filters, newest first, each with the stream it is on, verified.

    Raises Refused for what is no verb.
    """
    if verb not in (None, *VERBS):
        raise Refused(f"{verb!r} is not a verb that reads. Give one of {', '.join(VERBS)}.")
    condition = every(
        [filters.condition(), _among("kind", [kind.KIND for kind in (Recalled, Rendered, Read, Used, Exported)])]
    )
    for row in audit.newest(cursor, condition):
        logged = log.event_at(row.position)
        receipt = _receipt(row, logged.event)
        if verb in (None, receipt.verb):
            yield row.stream, receipt
            limit -= 1
        if not limit:
            return


def _receipt(row: AuditRow, event: Event) -> Receipt:
    head = (row.id.hex(), _verb(event), row.actor, row.at)
    match event:
        case Recalled():
            return Receipt(*head, event.query, event.namespaces, tuple(memory.hex() for memory in event.memories), None)
        case Read():
            return Receipt(*head, "", (), (event.memory.hex(),), None)
        case Used() | Rendered():
            return Receipt(*head, "", (), tuple(memory.hex() for memory in event.memories), event.receipt.hex())
        case _:
            return Receipt(*head, "", (), (), None)


def _verb(event: Event) -> str:
    match event:
        case Recalled() | Read():
            return event.verb
        case Used():
            return "used"
        case Rendered():
            return "context"
        case _:
            return "events"


def _among(column: str, values: Any) -> Condition:
    return Condition(f"{column} IN ({', '.join('?' * len(values))})", tuple(values))


def _kinds(asked: str) -> list[str]:
    found = [kind for kind in KINDS if asked == kind or kind.partition(".")[2] == asked]
    if not found:
        raise Refused(f"{asked!r} is not a kind of event. Give one of {', '.join(KINDS)}.")
    return found
