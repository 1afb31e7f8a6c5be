"""Recalls that are on record, as they can be asked again, and what another answer to one changes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from math import fsum
from typing import Any, Literal, NamedTuple

from ..events.instants import moment
from ..events.kinds import Recalled, Used
from ..events.log import Log
from ..projections import audit
from .answer import Answer
from .filters import Filters

_TIMES = ("since", "until", "as_of")
_OF_RANKING = ("without", "rerank")
_PASTS = ("at_position", "known_at")

Change = Literal["same", "reordered", "changed", "not asked"]


class Asked(NamedTuple):
    """A recall that is on record: its receipt, its stream, the event, and which hits were used, as far as was said."""

    receipt: bytes
    stream: bytes
    event: Recalled
    used: frozenset[bytes]

    @property
    def position(self) -> int:
        """The position that the memory log ended with."""
        return self.event.log_size - 1


class Compared(NamedTuple):
    """A recall that was asked again, beside what is on record of it.

    `change` is `same`, `reordered` (the same memories in another order), `changed`, or `not asked`, `reason` says why
    then. `gained` and `lost` are memories that only the one or the other answer has; `overlap` is the share of the
    longer answer that both have. `first_used` is the rank of the first memory that was used: 0 where it is none of the
    hits. `pipelines` are the fingerprints of the ranking, `degraded` what was missing; each before and now.
    """

    receipt: str
    query: str
    position: int
    change: Change
    reason: str | None = None
    before: tuple[str, ...] = ()
    now: tuple[str, ...] = ()
    used: tuple[str, ...] = ()
    pipelines: tuple[str, str] = ("", "")
    degraded: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    @property
    def gained(self) -> tuple[str, ...]:
        """The memories that are new among the hits, best first."""
        return tuple(memory for memory in self.now if memory not in self.before)

    @property
    def lost(self) -> tuple[str, ...]:
        """The memories that are no longer among the hits, best first."""
        return tuple(memory for memory in self.before if memory not in self.now)

    @property
    def overlap(self) -> float:
        """The share of the longer answer that both have; 1 where both are empty."""
        longer = max(len(self.before), len(self.now))
        return len({*self.before} & {*self.now}) / longer if longer else 1.0

    @property
    def first_used(self) -> tuple[int, int]:
        """The rank of the first memory that was used, before and now."""
        return _first(self.before, self.used), _first(self.now, self.used)


class OfUsed(NamedTuple):
    """How well the memories that were used are found: the share of them among the hits, and the mean of 1 / rank.

    The rank is that of the first one used; where none is among the hits, 0 counts.
    """

    hit: float
    mrr: float


class Evaluation(NamedTuple):
    """What became of the recalls on record under a model and without some stages, the newest first.

    `overlap` is the mean over those that were asked; `used_before` and `used_now` are of those of which it is known
    which hits were used, None where that is known of none.
    """

    model: str
    without: tuple[str, ...]
    recalls: tuple[Compared, ...]

    @property
    def counts(self) -> dict[Change, int]:
        """How many came to what."""
        kinds: tuple[Change, ...] = ("same", "reordered", "changed", "not asked")
        return {kind: sum(each.change == kind for each in self.recalls) for kind in kinds}

    @property
    def overlap(self) -> float | None:
        """The mean overlap of those that were asked; None where none was."""
        return _mean([each.overlap for each in self.recalls if each.change != "not asked"])

    @property
    def used_before(self) -> OfUsed | None:
        """Of the answers on record."""
        return self._of_used(0)

    @property
    def used_now(self) -> OfUsed | None:
        """Of the new answers."""
        return self._of_used(1)

    @property
    def labelled(self) -> list[Compared]:
        """Those that were asked, and of which it is known which hits were used."""
        return [each for each in self.recalls if each.used and each.change != "not asked"]

    def _of_used(self, which: int) -> OfUsed | None:
        found = [(each.used, (each.before, each.now)[which]) for each in self.labelled]
        hit = _mean([len({*used} & {*hits}) / len(used) for used, hits in found])
        mrr = _mean([1 / rank if (rank := _first(hits, used)) else 0.0 for used, hits in found])
        return None if hit is None or mrr is None else OfUsed(hit, mrr)


def recorded(log: Log, cursor: Any, limit: int) -> list[Asked]:
    """The newest recalls of the access log, newest first, each with the hits that were used."""
    return list(_recorded(log, cursor, limit))


def _recorded(log: Log, cursor: Any, limit: int) -> Iterator[Asked]:
    used: dict[bytes, set[bytes]] = {}
    for position in audit.latest(cursor, log.name, (Recalled.KIND, Used.KIND)):
        logged = log.event_at(position)
        event, receipt = logged.event, logged.header.id
        if isinstance(event, Used):  # which comes after its recall
            used.setdefault(event.receipt, set()).update(event.memories)
        elif isinstance(event, Recalled) and event.verb == "recall":
            yield Asked(receipt, logged.header.stream, event, frozenset(used.pop(receipt, ())))
            limit -= 1
            if not limit:
                return


def filters_of(event: Recalled) -> Filters:
    """The filters of a recall, from what is on record of them. Raises Refused for what is no filter by now."""
    given: dict[str, Any] = {n: value for n, value in event.filters.items() if n not in (*_PASTS, *_OF_RANKING)}
    for name in _TIMES:
        if name in given:
            given[name] = moment(given[name])
    return Filters.of(given)


def when(event: Recalled, then: int) -> int:
    """The time that a recall took for now (microseconds); `then` is when the last event it knew was recorded."""
    known = event.filters.get("known_at")
    if isinstance(known, int):
        return known
    return then if "at_position" in event.filters else event.recorded_at


def without_of(event: Recalled, without: Collection[str]) -> frozenset[str]:
    """The stages that a recall left out, and these."""
    left_out = event.filters.get("without", [])
    return frozenset(map(str, left_out if isinstance(left_out, list | tuple) else [])) | {*without}


def compared(asked: Asked, answer: Answer) -> Compared:
    """A recall beside another answer to it."""
    before = tuple(memory.hex() for memory in asked.event.memories)
    now = tuple(hit.id for hit in answer.hits)
    change: Change = "same" if now == before else "reordered" if sorted(now) == sorted(before) else "changed"
    return told(asked, None)._replace(
        change=change,
        before=before,
        now=now,
        pipelines=(asked.event.pipeline, answer.pipeline),
        degraded=(asked.event.degraded, answer.degraded),
    )


def told(asked: Asked, reason: str | None) -> Compared:
    """A recall that was not asked again, and why."""
    used = tuple(memory.hex() for memory in asked.event.memories if memory in asked.used)
    return Compared(asked.receipt.hex(), asked.event.query, asked.position, "not asked", reason, used=used)


def _first(hits: Sequence[str], used: Collection[str]) -> int:
    return next((rank for rank, memory in enumerate(hits, 1) if memory in used), 0)


def _mean(values: Sequence[float]) -> float | None:
    return fsum(values) / len(values) if values else None
