"""What came of a command."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Outcome(NamedTuple):
    """What a command came to: which memory, and the position of the event that says so.

    `stored`: a new memory. `reinforced`: the same text was there, and counts once more. `superseded`: a new memory,
    and the older value of its key, `superseded_id`, is no longer recalled. `forgotten` and `restored`: as asked.
    `repeated` says that the command id had been carried out before, and this is what came of it then.
    """

    status: Literal["stored", "reinforced", "superseded", "forgotten", "restored"]
    id: str
    position: int
    superseded_id: str | None = None
    repeated: bool = False
