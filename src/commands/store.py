"""Store a memory: decide whether it is new, said before, or takes the place of an older value."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from ..errors import Busy, Claimed, Refused
from ..events.claims import Claim, Release, command_tag, content_tag, key_tag
from ..events.kinds import MAX_TEXT_BYTES, Reinforced, Source, Stored, Superseded
from ..events.log import Append
from ..projections.record import Record, fold
from .outcome import Outcome
from .session import Session, instant

ATTEMPTS = 8
MAX_SEGMENTS = 8
MAX_SEGMENT = 64


@dataclass(frozen=True, kw_only=True)
class Store:
    """The wish to store a memory. Times are datetimes with a zone, or ISO 8601 text with one."""

    text: str
    namespace: str
    kind: str = "note"
    source: Source = "agent"
    subject: str | None = None
    key: str | None = None
    tags: Sequence[str] = ()
    importance: float = 0.5
    confidence: float | None = None
    author: str | None = None
    thread: str | None = None
    place: int | None = None
    occurred_at: datetime | str | None = None
    valid_from: datetime | str | None = None
    expires_at: datetime | str | None = None
    evidence: Sequence[str] = ()
    label: str | None = None
    trust: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    derived_from: Sequence[bytes] = ()
    command_id: str | None = None


def store(session: Session, command: Store) -> Outcome:
    """Append what the wish comes to, durable when this returns. Raises Refused where a rule says no.

    Two writers that claim the same text, key or command id are put in order by the log: one holds it, the
    other is told, and decides again.
    """
    stored = _stored(session, command)
    attempt = _Attempt(session, stored)
    for _ in range(ATTEMPTS):
        try:
            return attempt.run()
        except Claimed as clash:
            attempt.clash = clash
    raise Busy("Other writers keep changing the same memory. Try again.")


class _Attempt:
    """One wish, decided again after each clash."""

    def __init__(self, session: Session, stored: Stored) -> None:
        self._session = session
        self._log = session.installation.memory
        self._stored = stored
        self._command = command_tag(session.index_key, stored.namespace, stored.command_id)
        self._content = content_tag(session.index_key, stored)
        self._key = key_tag(session.index_key, stored)
        self.clash: Claimed | None = None

    def run(self) -> Outcome:
        """Append what is right after the last clash."""
        clash = self.clash
        if clash is None or clash.holder is None:
            return self._store(None)
        if clash.tag == self._command:
            return self._repeated(clash)
        if clash.tag == self._content:
            return self._reinforce(clash.holder)
        return self._store(clash.holder)

    def _store(self, holder: bytes | None) -> Outcome:
        stream, nonce = self._log.new_stream()
        drafts = [self._log.opening(stream, self._stored.model_copy(update={"nonce": nonce}))]
        claims = [Claim(tag, 0) for tag in (self._command, self._content) if tag]
        releases: list[Release] = []
        if self._key is not None:
            claims.append(Claim(self._key, 0, instead_of=holder))
        if holder is not None:
            older = self._record(holder)
            event = self._session.event(Superseded, by=stream, parents=(older.leaf,))
            drafts.append(self._log.following(holder, event, older.revision + 1))
            releases += [Release(t, holder) for t in (content_tag(self._session.index_key, older.stored),) if t]
        position = self._log.append(Append(tuple(drafts), tuple(claims), tuple(releases)))[0].position
        return Outcome("superseded" if holder else "stored", stream.hex(), position, holder.hex() if holder else None)

    def _reinforce(self, holder: bytes) -> Outcome:
        older = self._record(holder)
        event = self._session.event(Reinforced, parents=(older.leaf,), command_id=self._stored.command_id)
        claims = [Claim(self._content, 0, instead_of=holder)] if self._content else []
        claims += [Claim(self._command, 0)] if self._command else []
        position = self._log.append(Append((self._log.following(holder, event),), tuple(claims)))[0].position
        return Outcome("reinforced", holder.hex(), position)

    def _repeated(self, clash: Claimed) -> Outcome:
        """The command was carried out before: say again what came of it."""
        assert clash.holder is not None
        assert clash.position is not None
        done = self._log.event_at(clash.position)
        if not isinstance(done.event, Stored | Reinforced):
            raise Refused(
                f"The command id {self._stored.command_id!r} was used for another command: {done.header.kind}."
            )
        status: Literal["stored", "reinforced"] = "stored" if isinstance(done.event, Stored) else "reinforced"
        return Outcome(status, clash.holder.hex(), clash.position, repeated=True)

    def _record(self, stream: bytes) -> Record:
        record = fold(self._log.events_of(stream))
        if record is None:
            raise Refused(f"{stream.hex()} is not a memory.")
        return record


def _stored(session: Session, command: Store) -> Stored:
    check_text(command.text)
    check_namespace(command.namespace)
    fields = {name: getattr(command, name) for name in Stored.model_fields if hasattr(command, name)}
    fields |= {name: instant(fields[name], name) for name in ("occurred_at", "valid_from", "expires_at")}
    fields |= {name: tuple(fields[name]) for name in ("tags", "evidence", "derived_from")}
    return session.event(
        Stored, **{**fields, "importance": float(command.importance), "metadata": dict(command.metadata)}
    )


def check_text(text: str) -> None:
    """Refuse a text that can't be kept byte for byte: empty, over 1 MiB, or with lone surrogates."""
    if not text.strip():
        raise Refused("There is no text to store.")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise Refused(f"The text has a lone surrogate at character {error.start}: it is not valid Unicode.") from error
    if size > MAX_TEXT_BYTES:
        raise Refused(f"The text has {size:,} bytes and a memory holds at most {MAX_TEXT_BYTES:,}: store it in parts.")


def check_namespace(namespace: str) -> None:
    """Refuse a name that is not one to eight segments, of 1 to 64 visible characters each, between slashes."""
    segments = namespace.split("/")
    fits = len(segments) <= MAX_SEGMENTS and all(_is_segment(segment) for segment in segments)
    if not fits or not unicodedata.is_normalized("NFC", namespace):
        raise Refused(
            f"The namespace {namespace!r} is not one to {MAX_SEGMENTS} segments between slashes, each of 1 to "
            f"{MAX_SEGMENT} visible characters (NFC) without spaces, such as org/acme/user:ana."
        )


def _is_segment(segment: str) -> bool:
    return 0 < len(segment) <= MAX_SEGMENT and segment.isprintable() and not any(c.isspace() for c in segment)
