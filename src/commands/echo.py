"""What this process has just recalled: a text that comes back from there is not a new memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from threading import Lock

from ..events.claims import essence
from ..events.kinds import Stored
from ..projections.record import Record

REMEMBERED = 4096


class Echoes:
    """The texts that recalls have handed out, and whose they are. A stored turn, key or subject is never an echo."""

    def __init__(self) -> None:
        self._given: OrderedDict[tuple[str, str], bytes] = OrderedDict()
        self._lock = Lock()

    def remember(self, records: Iterable[Record]) -> None:
        """These memories were handed out."""
        with self._lock:
            for record in records:
                self._given[record.namespace, essence(record.text)] = record.stream
            while len(self._given) > REMEMBERED:
                self._given.popitem(last=False)

    def find(self, stored: Stored) -> bytes | None:
        """The memory whose text this is, where it was handed out and the wish says nothing else about it."""
        if stored.thread is not None or stored.key is not None or stored.subject is not None:
            return None
        with self._lock:
            return self._given.get((stored.namespace, essence(stored.text)))
