"""The past: which position of the log a question means, and the few stores of then that stay folded."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime
from threading import Lock
from typing import NamedTuple

from .errors import NotFound, Refused
from .events.instants import instant, moment
from .opened import OpenStore
from .projections.audit import last_recorded
from .projections.views import TRAIL

KEPT = 4
"""How many pasts stay folded, those asked last: another question of one of them costs no fold."""


class Then(NamedTuple):
    """A past that is asked: the position the memory log ended with, the wall clock then, and how it was asked for."""

    position: int
    now: int
    said: Mapping[str, int]


class Pasts:
    """The pasts of one store. They are closed with it at the latest."""

    def __init__(self, present: OpenStore) -> None:
        self._present = present
        self._kept: OrderedDict[int, OpenStore] = OrderedDict()
        self._folding = Lock()

    def then(self, at_position: int | None, known_at: datetime | str | None) -> Then | None:
        """What is meant by a position, or by a time: the last event recorded at it or before. None for the present.

        Raises Refused where both are given, or a time that is none or is yet to come; NotFound for what was before the
        log began, and for a position that it has not.
        """
        if at_position is not None and known_at is not None:
            raise Refused("at_position and known_at are both given. Give one of them.")
        if at_position is not None:
            return Then(at_position, self._recorded_at(at_position), {"at_position": at_position})
        known = instant(known_at, "known_at")
        return None if known is None else Then(self._last_at(known), known, {"known_at": known})

    @contextmanager
    def at(self, then: Then | None) -> Iterator[OpenStore]:
        """The store as it stood then, in use; the present where no past is asked."""
        with ExitStack() as until_answered:
            if then is None:
                yield self._present
                return
            with self._folding:
                opened = self._folded(then.position)
                until_answered.enter_context(opened.in_use())
            yield opened

    def _folded(self, position: int) -> OpenStore:
        if position not in self._kept:
            self._kept[position] = self._present.at(position)
        self._kept.move_to_end(position)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)[1].close()
        return self._kept[position]

    def _recorded_at(self, position: int) -> int:
        log = self._present.log
        if type(position) is not int or not 0 <= position < log.follow().size:
            raise NotFound(f"The memory log has no position {position!r}. Give one below {log.tip.size}.")
        return log.event_at(position).event.recorded_at

    def _last_at(self, known: int) -> int:
        if known > self._present.now():
            raise Refused(f"known_at is {moment(known)}, which is yet to come. Give a time that has passed.")
        with self._present.views.current(TRAIL).reading() as cursor:
            found = last_recorded(cursor, known)
        if found is not None:
            return found
        began = self._recorded_at(0)
        if known < began:
            raise NotFound(f"Nothing was known at {moment(known)}: the log begins at {moment(began)}. Ask for later.")
        return 0
