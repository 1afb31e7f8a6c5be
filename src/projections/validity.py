"""Valid time: since when what a memory says holds, and until when."""

from __future__ import annotations

from .condition import Condition

_SINCE = "coalesce({0}.valid_from, {0}.occurred_at, {0}.recorded_at)"
_SUCCEEDED = (
    "EXISTS (WITH RECURSIVE later (stream) AS (SELECT memories.superseded_by UNION "
    "SELECT next.superseded_by FROM memories AS next JOIN later ON next.stream = later.stream "
    "WHERE next.status <> 'current' AND next.superseded_by IS NOT NULL) "
    "SELECT 1 FROM later LEFT JOIN memories AS newer ON newer.stream = later.stream "
    f"WHERE newer.stream IS NULL OR {_SINCE.format('newer')} <= ?)"
)


def valid_at(at: int) -> Condition:
    """The memory held at a time (microseconds), by what is known of it now.

    It holds from `valid_from`, else from when it occurred, else from when it was recorded. It holds until it expires,
    or until a memory that came after it, next or later, begins to hold. One that was forgotten never holds.
    """
    return Condition(
        f"({_SINCE.format('memories')} <= ? AND (memories.expires_at IS NULL OR memories.expires_at > ?) "
        f"AND (memories.status = 'current' OR memories.status = 'superseded' AND NOT {_SUCCEEDED}))",
        (at, at, at),
    )
