"""The seal of the claims: a keyed sum of their rows and of the end of the log, moved in each append's transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ..errors import LogDamaged
from .settings import read_setting_within, write_setting

SETTING = "claims"
_BYTES = 16
_ALL = 1 << 8 * _BYTES
_ROW, _END = b"tally.claimrow.1", b"tally.claimend.1"

Row = tuple[bytes, int]
"""A tag, and the place of the entry that took it."""


class Changed(NamedTuple):
    """Rows of claims as they were and as they are; one that stays may be among both, or among none."""

    before: Iterable[Row]
    after: Iterable[Row]


class ClaimSeal:
    """Seals the claims of one log, so that a row taken away, added, changed or brought back at rest shows.

    Each row has a weight, which only the index key tells. The seal is their sum, plus a weight of the log's last
    event: so no two seals tell anything of the weights, and a seal fits one end of the log only.
    """

    def __init__(self, index_key: bytes) -> None:
        self._row, self._end = (
            hashlib.blake2b(key=index_key, digest_size=_BYTES, person=person) for person in (_ROW, _END)
        )

    def renew(self, cursor: Any, position: int, event_id: bytes) -> None:
        """Seal the claims as they are, whatever they were: the log ends with this position and event."""
        write_setting(cursor, SETTING, self.of(_rows(cursor), position, event_id))

    def move(self, cursor: Any, first: int, end: tuple[int, bytes], changed: Changed) -> None:
        """After an append of the positions from `first` on: seal what the claims have become with the last of them.

        Raises LogDamaged where the seal is not that of the claims before.
        """
        sealed = read_setting_within(cursor, SETTING) or bytes(8 + 2 * _BYTES)
        position, event_id, seal = int.from_bytes(sealed[:8], "big"), sealed[8:24], int.from_bytes(sealed[24:], "big")
        if position != first - 1:
            raise _damaged(first)
        total = seal - self._of_end(position, event_id)
        total += self._sum(changed.after) - self._sum(changed.before)
        write_setting(cursor, SETTING, self._sealed(*end, total))

    def check(self, cursor: Any, position: int, event_id: bytes) -> None:
        """Raise LogDamaged unless the claims are those that were sealed when the log got its last event, this one."""
        if read_setting_within(cursor, SETTING) != self.of(_rows(cursor), position, event_id):
            raise _damaged(position + 1)

    def of(self, claims: Iterable[Row], position: int, event_id: bytes) -> bytes:
        """The seal of some claims, in a log that ends with this position and event."""
        return self._sealed(position, event_id, self._sum(claims))

    def _sum(self, claims: Iterable[Row]) -> int:
        total, begun = 0, self._row.copy
        for tag, place in claims:
            weighed = begun()
            weighed.update(place.to_bytes(8, "big") + tag)
            total += int.from_bytes(weighed.digest(), "big")
        return total

    def _sealed(self, position: int, event_id: bytes, total: int) -> bytes:
        seal = (total + self._of_end(position, event_id)) % _ALL
        return position.to_bytes(8, "big") + event_id + seal.to_bytes(_BYTES, "big")

    def _of_end(self, position: int, event_id: bytes) -> int:
        weighed = self._end.copy()
        weighed.update(position.to_bytes(8, "big") + event_id)
        return int.from_bytes(weighed.digest(), "big")


def _rows(cursor: Any) -> Iterator[Row]:
    """The rows there are; what damage has made to be none weighs nothing."""
    for tag, place in cursor.execute("SELECT tag, place FROM claim"):
        if type(tag) is bytes and type(place) is int and place >= 0:
            yield tag, place


def _damaged(size: int) -> LogDamaged:
    return LogDamaged(
        f"memory log: the claims (which memory holds a text, a key or a command id) are not those that were sealed at "
        f"size {size}: rows of log.db were taken away, added or changed. {LogDamaged.remedy}",
        log="memory",
    )
