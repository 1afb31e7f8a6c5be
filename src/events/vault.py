"""The data keys of a log's streams: made, wrapped, found and remembered for a while."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from ..errors import LogDamaged
from .driver import Datastore, rows_in
from .sealing import SealBroken, new_data_key, unwrap, wrap

REMEMBERED = 65536
FIRST_GENERATION = 1


class DataKey(NamedTuple):
    """The key that seals one stream, and the generation of its wrapping."""

    generation: int
    key: bytes


KEY_OF = (
    "SELECT generation, wrapped FROM entry JOIN data_key USING (place) WHERE log = ? AND stream = ? AND revision = 0"
)
"""The data key of a stream, which stands at the place of the stream's first entry."""

_OF = (
    "SELECT stream, generation, wrapped FROM entry JOIN data_key USING (place) "
    "WHERE log = ? AND revision = 0 AND stream IN ({})"
)
_BEGUN_BETWEEN = (
    "SELECT stream, generation, wrapped FROM data_key JOIN entry USING (place) WHERE place >= ? AND place < ?"
)
_JOINED_BETWEEN = (
    "SELECT entry.stream, generation, wrapped FROM entry JOIN entry AS first USING (log, stream) "
    "JOIN data_key ON data_key.place = first.place "
    "WHERE entry.place >= ? AND entry.place < ? AND entry.revision > 0 AND first.revision = 0"
)

FindKey = Callable[[bytes], DataKey | None]
"""Finds the data key of a stream; None where it has none."""


class Vault:
    """Data keys, random, one for each stream, wrapped by the KEK and kept in log.db."""

    def __init__(self, datastore: Datastore, kek: bytes, name: str, number: int, origin: bytes) -> None:
        self._datastore = datastore
        self._kek = kek
        self._name = name
        self._number = number
        self._origin = origin
        self._remembered: OrderedDict[bytes, DataKey] = OrderedDict()

    def create(self, stream: bytes) -> tuple[DataKey, bytes]:
        """A new data key for a new stream, and its wrapped form for log.db."""
        key = DataKey(FIRST_GENERATION, new_data_key())
        wrapped = wrap(self._kek, key.key, origin=self._origin, stream=stream, generation=key.generation)
        if stream not in self._remembered:
            self._remember(stream, key)
        return key, wrapped

    def forget(self, stream: bytes) -> None:
        """Remember no key for a stream: what is in log.db counts."""
        self._remembered.pop(stream, None)

    def find(self, stream: bytes) -> DataKey | None:
        """The data key of a stream, or None where it has none. Raises LogDamaged where it can't be unwrapped."""
        known = self._remembered.get(stream)
        if known is None:
            rows = self._datastore.rows(KEY_OF, (self._number, stream))
            if not rows:
                return None
            known = self.unwrap(stream, *rows[0])
            self._remember(stream, known)
        return known

    def between(self, cursor: Any, first: int, stop: int) -> FindKey:
        """As `find`, for the streams with entries from place `first` to before `stop`: by what log.db has now."""
        rows = cursor.execute(_BEGUN_BETWEEN, (first, stop)).fetchall()
        rows += cursor.execute(_JOINED_BETWEEN, (first, stop)).fetchall()
        return self._found(rows)

    def of(self, cursor: Any, streams: Sequence[bytes]) -> FindKey:
        """As `find`, for these streams: by what log.db has now."""
        return self._found(rows_in(cursor, _OF, streams, self._number))

    def _found(self, rows: Iterable[tuple[bytes, Any, Any]]) -> FindKey:
        kept = {stream: (generation, wrapped) for stream, generation, wrapped in rows}

        @cache
        def find(stream: bytes) -> DataKey | None:
            return self.unwrap(stream, *kept[stream]) if stream in kept else None

        return find

    def unwrap(self, stream: bytes, generation: Any, wrapped: Any) -> DataKey:
        """The data key in these columns of log.db. Raises LogDamaged where they are not one."""
        try:
            key = unwrap(self._kek, wrapped, origin=self._origin, stream=stream, generation=generation)
        except (SealBroken, TypeError, ValueError, OverflowError, AttributeError) as error:
            raise LogDamaged(
                f"{self._name} log: the data key of stream {stream.hex()} does not open: {error}. {LogDamaged.remedy}",
                log=self._name,
            ) from error
        return DataKey(generation, key)

    def _remember(self, stream: bytes, key: DataKey) -> None:
        self._remembered[stream] = key
        if len(self._remembered) > REMEMBERED:
            self._remembered.popitem(last=False)
