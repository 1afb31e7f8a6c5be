"""The origins that a log had before it was recovered, and what the streams of each are called in it now."""

from __future__ import annotations

from .envelope import stream_of
from .kinds import Imported, Recovered
from .log import Log
from .mapper import LoggedEvent
from .portable import Began


class Lineage:
    """Tells where memories of a log began, and finds them by that, however often the log was recovered since."""

    def __init__(self, log: Log) -> None:
        self._log = log
        size, found = log.follow().size, list[Recovered]()
        while size > len(found) + 1 and isinstance(event := log.event_at(len(found) + 1).event, Recovered):
            found.append(event)
        self._origins = (*(event.origin for event in reversed(found)), log.origin)
        self._came_over = found[0].events + 1 if found else 0  # up to which position

    def began(self, first: LoggedEvent) -> Began:
        """Where the memory began whose first event this is. What came over in a recovery keeps the name it had."""
        header, event = first.header, first.event
        if isinstance(event, Imported):
            return Began(event.origin, event.memory)
        if header.position <= self._came_over and event.nonce is not None:
            return Began(self._origins[-2], event.nonce)
        return Began(header.origin, header.stream)

    def stream(self, began: Began, nonce: bytes) -> bytes:
        """The stream of a memory that began somewhere: the one there is, or the one that this nonce will make here."""
        for number, origin in enumerate(self._origins):
            stream = began.memory if began.origin == origin else stream_of(origin, nonce)
            for later in self._origins[number + 1 :]:
                stream = stream_of(later, stream)
            if self._log.events_of(stream, upto=0):
                return stream
        return stream_of(self._log.origin, nonce)
