"""Why a recall answered as it did: from receipt to event, signer and scores."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

from ..errors import NotFound
from ..events.kinds import Recalled, Rendered
from ..events.log import Log
from ..events.mapper import LoggedEvent
from ..projections.record import Record, fold


class Because(NamedTuple):
    """One hit of a recall: its rank and scores by stage, the memory as it was then, and the events behind it."""

    rank: int
    scores: dict[str, float | None]
    record: Record
    events: tuple[LoggedEvent, ...]


class Why(NamedTuple):
    """A recall as it was recorded, and what stood behind each hit.

    `context` is the rendering for a prompt whose receipt was asked about, with the hash of what was handed out.
    """

    receipt: str
    logged: LoggedEvent
    recalled: Recalled
    hits: tuple[Because, ...]
    context: Rendered | None = None


def why(memory_log: Log, access_log: Log, named: Callable[[Record], Record], asked: tuple[bytes, bytes | None]) -> Why:
    """Explain the recall of a receipt or of a context's receipt, or one of its hits. Every event named is verified.

    Raises NotFound for what is no receipt of a recall, or for a memory that was not among its hits.
    """
    receipt, memory = asked
    logged = access_log.find(receipt)
    event, context = logged.event, None
    if isinstance(event, Rendered):
        context, receipt = event, event.receipt
        logged = access_log.find(receipt)
        event = logged.event
    if not isinstance(event, Recalled):
        raise NotFound(
            f"{receipt.hex()} is the receipt of a {logged.header.kind}, not of a recall. Give the receipt of a recall."
        )
    hits = [_because(memory_log, event, n, named) for n, hit in enumerate(event.hits) if memory in (None, hit.memory)]
    if memory is not None and not hits:
        raise NotFound(
            f"The memory {memory.hex()} was not among the {len(event.hits)} hits of {receipt.hex()}. Ask without it."
        )
    return Why(receipt.hex(), logged, event, tuple(hits), context)


def packed(scores: list[float | None]) -> bytes:
    """Scores as they are recorded: float16, little-endian, NaN where a stage had none."""
    return struct.pack(
        f"<{len(scores)}e", *(float("nan") if s is None else max(-65504.0, min(65504.0, s)) for s in scores)
    )


def _because(log: Log, event: Recalled, n: int, named: Callable[[Record], Record]) -> Because:
    hit = event.hits[n]
    values = struct.unpack(f"<{len(event.stages)}e", hit.scores)
    scores = {stage: None if value != value else value for stage, value in zip(event.stages, values, strict=True)}
    events = log.events_of(hit.memory, upto=hit.head)
    record = fold(events)
    if record is None:
        raise NotFound(f"The memory {hit.memory.hex()} is gone. Run `tallystick verify`.")
    return Because(n + 1, scores, named(record), tuple(events))
