"""What came of a command."""

from __future__ import annotations

from typing import Literal, NamedTuple

Came = Literal[
    "stored", "reinforced", "superseded", "revised", "forgotten", "restored", "linked", "unlinked", "protected",
    "unprotected", "pinned", "unpinned", "refused",
]  # fmt: skip


class Outcome(NamedTuple):
    """What a command came to: which memory, and the position of the event that says so.

    `stored`: a new memory. `reinforced`: the same text was there, and counts once more. `superseded`: a new memory,
    and the one whose place it took, `superseded_id`, is no longer recalled. `refused`: a row of a batch that a rule
    said no to, for this `reason`; it has no id, and position -1. The others: as asked. `repeated` says that the
    command id had been carried out before, and this is what came of it then; `reason` then says what was asked
    otherwise than the first time, and was not done.
    """

    status: Came
    id: str
    position: int
    superseded_id: str | None = None
    repeated: bool = False
    reason: str | None = None


def refused(reason: str) -> Outcome:
    """The outcome of a row that a rule said no to."""
    return Outcome("refused", "", -1, reason=reason)
