"""Store a memory: decide whether it is new, said before, or takes the place of an older value."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ..errors import Busy, Claimed, Refused, RevisionConflict
from ..events.claims import Claim, Release, command_tag, content_tag, key_tag
from ..events.kinds import MAX_TEXT_BYTES, Reinforced, Source, Stored, Superseded
from ..events.log import Append
from ..projections.record import Record, fold
from .outcome import Outcome
from .session import Session, attempts, instant

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
    attempt = _Attempt(session, _stored(session, command))
    for _ in attempts():
        try:
            return attempt.run()
        except Claimed as clash:
            attempt.clash = clash
        except RevisionConflict:
            continue
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
            return self._repeated(clash.holder, clash.position or 0)
        older = self._record(clash.holder)
        if clash.tag == self._content and not self._has_expired(older):
            return self._reinforce(older)
        return self._store(older)

    def _store(self, older: Record | None) -> Outcome:
        """A new memory, in the place of an older one where that holds its key, or its text and has expired."""
        stream, nonce = self._log.new_stream()
        drafts = [self._log.opening(stream, self._stored.model_copy(update={"nonce": nonce}))]
        held = self._tags(older)
        claims = [
            Claim(tag, 0, instead_of=older.stream if older and tag in held else None)
            for tag in (self._command, self._content, self._key)
            if tag
        ]
        releases: list[Release] = []
        if older is not None:
            event = self._session.event(Superseded, by=stream, parents=(older.leaf,))
            drafts.append(self._log.following(older.stream, event, older.revision + 1))
            releases = [Release(tag, older.stream) for tag in held if tag not in (self._content, self._key)]
        position = self._log.append(Append(tuple(drafts), tuple(claims), tuple(releases)))[0].position
        return Outcome("superseded" if older else "stored", stream.hex(), position, older.id if older else None)

    def _reinforce(self, older: Record) -> Outcome:
        event = self._session.event(Reinforced, parents=(older.leaf,), command_id=self._stored.command_id)
        claims = [Claim(self._content, 0, instead_of=older.stream)] if self._content else []
        claims += [Claim(self._command, 0)] if self._command else []
        position = self._log.append(Append((self._log.following(older.stream, event),), tuple(claims)))[0].position
        return Outcome("reinforced", older.id, position)

    def _repeated(self, holder: bytes, position: int) -> Outcome:
        """The command was carried out before: say again what came of it."""
        record, done = self._record(holder), self._log.event_at(position).event
        if _essence(record.stored) != _essence(self._stored):
            raise Refused(
                f"The command id {self._stored.command_id!r} was used for another text, the memory {record.id}. "
                f"Give each command an id of its own."
            )
        if isinstance(done, Reinforced):
            return Outcome("reinforced", record.id, position, repeated=True)
        older = self._superseded_with(holder, position)
        return Outcome("superseded" if older else "stored", record.id, position, older, repeated=True)

    def _superseded_with(self, holder: bytes, position: int) -> str | None:
        """The memory that was superseded in the same append, by the event after the one that stored."""
        if self._log.follow().size <= position + 1:
            return None
        following = self._log.event_at(position + 1)
        by = following.event.by if isinstance(following.event, Superseded) else None
        return following.header.stream.hex() if by == holder else None

    def _has_expired(self, older: Record) -> bool:
        expires = older.stored.expires_at
        return expires is not None and expires <= self._session.now()

    def _tags(self, older: Record | None) -> tuple[bytes, ...]:
        if older is None:
            return ()
        key = self._session.index_key
        return tuple(tag for tag in (content_tag(key, older.stored), key_tag(key, older.stored)) if tag)

    def _record(self, stream: bytes) -> Record:
        record = fold(self._log.events_of(stream))
        if record is None:
            raise Refused(f"{stream.hex()} is not a memory. Run `tallystick verify`.")
        return record


def _essence(stored: Stored) -> tuple[str, str | None, str | None]:
    """What makes two commands the same: the text after NFC and outer white space, and what it is about."""
    return unicodedata.normalize("NFC", stored.text).strip(), stored.key, stored.subject


def _stored(session: Session, command: Store) -> Stored:
    check_text(command.text)
    check_namespace(command.namespace)
    fields = {name: getattr(command, name) for name in Stored.model_fields if hasattr(command, name)}
    fields |= {name: instant(fields[name], name) for name in ("occurred_at", "valid_from", "expires_at")}
    for name in ("tags", "evidence", "derived_from"):
        fields[name] = tuple(fields[name]) if isinstance(fields[name], list | tuple | set) else fields[name]
    for name in ("importance", "confidence"):
        fields[name] = float(fields[name]) if type(fields[name]) is int else fields[name]
    return session.event(Stored, **fields)


def check_text(text: str) -> None:
    """Refuse a text that can't be kept byte for byte: empty, over 1 MiB, or with lone surrogates."""
    if not isinstance(text, str):
        raise Refused(f"text is a {type(text).__name__}. Give a str.")
    if not text.strip():
        raise Refused("There is no text to store. Give one that is not white space only.")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise Refused(f"The text has a lone surrogate at character {error.start}. Replace that character.") from error
    if size > MAX_TEXT_BYTES:
        raise Refused(f"The text has {size:,} bytes and a memory holds at most {MAX_TEXT_BYTES:,}: store it in parts.")


def check_namespace(namespace: str) -> None:
    """Refuse a name that is not one to eight segments, of 1 to 64 visible characters each, between slashes."""
    segments = namespace.split("/")
    fits = len(segments) <= MAX_SEGMENTS and all(_is_segment(segment) for segment in segments)
    if not fits or not unicodedata.is_normalized("NFC", namespace):
        raise Refused(
            f"The namespace {namespace!r} is not allowed. Name one to {MAX_SEGMENTS} segments between slashes, each of "
            f"1 to {MAX_SEGMENT} visible characters (NFC) without spaces, such as org/acme/user:ana."
        )


def _is_segment(segment: str) -> bool:
    return 0 < len(segment) <= MAX_SEGMENT and segment.isprintable() and not any(c.isspace() for c in segment)
