"""Pools of memories that differ from an ordinary one in what a test says."""

from datetime import UTC, datetime
from typing import Any

import numpy

from tallystick.projections.columns import NOWHERE, ROW
from tallystick.queries.pool import Pool

NOW = int(datetime(2024, 5, 15, 12, tzinfo=UTC).timestamp()) * 1_000_000
ORDINARY: dict[str, Any] = {
    "at": NOW, "importance": 0.5, "confidence": None, "reinforced": 0, "words": 8, "cues": 0, "author": None,
    "kind": "note", "thread": None, "stream": None,
}  # fmt: skip


def pool(*each: dict[str, Any]) -> Pool:
    """Memories with these fields, numbered from 1 on; a stream is given by one byte of its id."""
    memories = [{**ORDINARY, "stream": number % 256, **fields} for number, fields in enumerate(each, 1)]
    authors, kinds, threads = ([*dict.fromkeys(one[name] for one in memories if one[name] is not None)]
                               for name in ("author", "kind", "thread"))  # fmt: skip
    rows = numpy.zeros(len(memories), dtype=ROW)
    for row, one in zip(rows, memories, strict=True):
        for name in ("at", "importance", "reinforced", "words", "cues"):
            row[name] = one[name]
        row["confidence"] = numpy.nan if one["confidence"] is None else one["confidence"]
        row["author"] = NOWHERE if one["author"] is None else authors.index(one["author"])
        row["kind"] = kinds.index(one["kind"])
        row["stream"] = numpy.frombuffer(bytes([one["stream"]]) * 16, dtype=">u8")
    in_thread = [NOWHERE if one["thread"] is None else threads.index(one["thread"]) for one in memories]
    numbers = numpy.arange(1, len(memories) + 1)
    return Pool(numbers, numpy.array(in_thread, dtype=numpy.int64), rows, authors, kinds)
