"""Put on record what was answered: the access log's recalls and reads."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from threading import Lock

from eventsourcing.persistence import PersistenceError

from ..errors import Refused, Unavailable
from ..events.kinds import Event, Exported, Read, Recalled, Rendered, Used
from ..events.log import Append, Log
from ..events.mapper import Draft
from .session import Session


class AccessRecord:
    """The reads of one session, on one stream of the access log: committed at once, on the disk within 100 ms.

    A power failure may lose those last 100 ms, the end of the process loses nothing. A strict record is on the disk
    before anything is handed out. Where the keys only read, nothing can be put on record, and there is no receipt.
    """

    def __init__(self, session: Session, *, strict: bool = False, answered_from: Log | None = None) -> None:
        self._session = session
        self._strict = strict
        self._answered_from = answered_from or session.installation.memory
        self._stream: bytes | None = None
        self._opening = Lock()

    def of(self, past: Log) -> AccessRecord:
        """A record on the same log, of what is answered from the memory log as it was."""
        return AccessRecord(self._session, strict=self._strict, answered_from=past)

    def recalled(self, event: Recalled) -> bytes | None:
        """Append a recall; returns its receipt, the id of the event. Raises Unavailable where it can't be recorded."""
        return self._append_if_signing(event)

    def read(self, memory: bytes, verb: str) -> bytes | None:
        """Append that one memory was read by name; returns the receipt."""
        tip = self._answered_from.tip
        event = self._session.event(Read, memory=memory, verb=verb, log_size=tip.size, log_root=tip.frontier.root())
        return self._append_if_signing(event)

    def used(self, receipt: bytes, memories: Sequence[bytes]) -> bytes:
        """Append which hits of a recall were relied on; returns the receipt of that.

        Raises NotFound for a receipt of no event, Refused for one of no recall and for a memory it did not answer with.
        """
        self._session.require_signing()
        recalled = self._session.installation.access.find(receipt).event
        if not isinstance(recalled, Recalled):
            raise Refused(f"{receipt.hex()} is the receipt of a {recalled.KIND}. Give the receipt of a recall.")
        foreign = [memory.hex() for memory in memories if memory not in recalled.memories]
        if not memories:
            raise Refused("No hit is named, so there is nothing to put on record. Name hits of that recall.")
        if foreign:
            raise Refused(f"{', '.join(foreign)} was not among the hits. Name hits of that recall.")
        return self._append(self._session.event(Used, receipt=receipt, memories=tuple(dict.fromkeys(memories))))

    def rendered(self, receipt: bytes, memories: Sequence[bytes], max_tokens: int, text: str) -> bytes | None:
        """Append that the hits of a recall were rendered for a prompt; returns the receipt of that."""
        tip = self._answered_from.tip
        event = self._session.event(
            Rendered,
            receipt=receipt,
            memories=tuple(memories),
            max_tokens=max_tokens,
            sha256=hashlib.sha256(text.encode()).digest(),
            log_size=tip.size,
            log_root=tip.frontier.root(),
        )
        return self._append_if_signing(event)

    def exported(self, after: int, upto: int) -> bytes | None:
        """Append that events were handed out; returns the receipt."""
        tip = self._answered_from.tip
        event = self._session.event(Exported, after=after, upto=upto, log_size=tip.size, log_root=tip.frontier.root())
        return self._append_if_signing(event)

    def _append_if_signing(self, event: Event) -> bytes | None:
        return self._append(event) if self._session.installation.signs else None

    def _append(self, event: Event) -> bytes:
        log = self._session.installation.access
        try:
            with self._opening:
                if self._stream is None:
                    return self._open(log, event)
            return self._put(log, log.following(self._stream, event))
        except PersistenceError as error:
            raise Unavailable(f"This can't be put on record ({error}), so nothing is handed out. Try again.") from error

    def _open(self, log: Log, event: Event) -> bytes:
        stream, nonce = log.new_stream()
        receipt = self._put(log, log.opening(stream, event.model_copy(update={"nonce": nonce})))
        self._stream = stream
        return receipt

    def _put(self, log: Log, draft: Draft) -> bytes:
        return log.append(Append((draft,)), durable=self._strict)[0].id
