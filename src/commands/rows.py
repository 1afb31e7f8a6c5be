"""The lines of an export, read one by one: each becomes a memory's life, or is refused with a reason."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any, NamedTuple

from pydantic import ValidationError

from ..errors import Refused
from ..events.canonical import NotCanonical
from ..events.instants import instant
from ..events.kinds import Event, Named, Revised, Stored, Told
from ..events.portable import HASHES, LIFE, MAX_ROW_BYTES, REFERENCES, VERSION, Began, telling
from .fields import check_namespace, check_text, given
from .revise import check_cleared
from .session import explanation

CHUNK = 1 << 20
LOG_BYTES, STREAM_BYTES = 32, 16
_ROW = {"memory", "events"}
_ENVELOPE = {"event", "schema", "id", "at"}
_SAYS_NOTHING = {*Event.model_fields, "reason"}

Local = Callable[[Began], bytes]
"""Tells which stream of this store stands for a memory."""


class Line(NamedTuple):
    """One line of a file: its number, its bytes, and up to where the file is read. Too long a line is cut off."""

    number: int
    raw: bytes
    whole: bool
    upto: int


class Life(NamedTuple):
    """What a row tells of a memory: where it began, its events, and the other memories that they name."""

    began: Began
    events: tuple[Event, ...]
    told: tuple[Told, ...]
    others: tuple[Named, ...]


def lines(file: IO[bytes]) -> Iterator[Line]:
    """The lines of a file, those without anything on them left out; never more of one in memory than it may have."""
    number = upto = 0
    while raw := file.readline(MAX_ROW_BYTES + 1):
        number, upto = number + 1, upto + len(raw)
        whole = len(raw) <= MAX_ROW_BYTES
        ended = raw.endswith(b"\n")
        while not ended and not whole and (rest := file.readline(CHUNK)):
            upto, ended = upto + len(rest), rest.endswith(b"\n")
        if raw.strip():
            yield Line(number, raw.rstrip(b"\r\n"), whole, upto)


def parse(line: Line) -> dict[str, Any]:
    """The JSON object on a line. Raises Refused."""
    if not line.whole:
        raise Refused(f"The line has more than {MAX_ROW_BYTES >> 20} MiB. Store that memory in parts.")
    try:
        value = json.loads(line.raw.decode(), object_pairs_hook=_object, parse_constant=_no_constant)
    except RecursionError as error:
        raise Refused("The line is nested too deep to be read. Write it anew.") from error
    except ValueError as error:
        raise Refused(f"The line is not JSON in UTF-8 ({error}). Mend it.") from error
    if not isinstance(value, dict):
        raise Refused("The line is not a JSON object. Write it as the export format says.")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


def exported_log(header: Mapping[str, Any]) -> bytes:
    """The log that the first line of an export names. Raises Refused for what is no export."""
    if header.get("tallystick") != "export" or not isinstance(header.get("version"), int):
        raise Refused("This file is no export: its first line does not say so. Write one with `tallystick export`.")
    if header["version"] > VERSION:
        raise Refused(f"This export has version {header['version']}, which this release can't read. Upgrade first.")
    return _bytes(header.get("log"), LOG_BYTES, "log")


def life(row: Mapping[str, Any], local: Local) -> Life:
    """What a row tells. Raises Refused, saying which event of it is wrong, and how."""
    _require_fields(row, _ROW)
    written = row["events"]
    if not isinstance(written, list) or not written:
        raise Refused("events is no list of events. Write at least one.")
    began, others, read = _began(row["memory"], "memory"), dict[bytes, Named](), dict[bytes, Event]()
    for number, each in enumerate(written, 1):
        try:
            event_id, event = _event(each, lambda name: _named(name, local, others))
            _refuse_odd(event, local(began))
        except Refused as error:
            reason = f"Event {number} of {len(written)}: {error}"
            raise Refused(reason) from error
        if event_id in read:
            raise Refused(f"Event {number} has the id of an earlier one. Give each its own.")
        read[event_id] = event
    try:
        told = tuple(telling(event_id, event) for event_id, event in read.items())
    except NotCanonical as error:
        raise Refused(f"A value can't be kept: {error}. Give another one.") from error
    return Life(began, tuple(read.values()), told, tuple(others.values()))


def _event(written: Any, stream: Callable[[str], bytes]) -> tuple[bytes, Event]:
    if not isinstance(written, dict):
        raise Refused("it is not a JSON object. Write it as the export format says.")
    kind = _kind(written)
    fields = {name: value for name, value in written.items() if name not in _ENVELOPE}
    unknown = sorted(set(fields) - set(kind.model_fields) | {"nonce", "recorded_at"} & set(fields))
    if unknown:
        raise Refused(f"{unknown[0]!r} is not a field of {kind.KIND}. Name one of its own, or leave it out.")
    if not isinstance(written.get("at"), str):
        raise Refused("it does not say when it was. Write at as 2026-05-08T13:56:00Z.")
    fields |= {name: tuple(_hashes(fields[name], name)) for name in HASHES if name in fields}
    fields |= {name: stream(fields[name]) for name in REFERENCES if name in fields}
    event_id = _bytes(written.get("id"), STREAM_BYTES, "id")
    try:
        event = kind.model_validate({"recorded_at": instant(written["at"], "at"), **_tuples(given(fields))})
    except ValidationError as error:
        raise Refused(explanation(error)) from error
    if isinstance(event, Stored):
        check_namespace(event.namespace)
    if isinstance(event, Stored | Revised) and event.text is not None:
        check_text(event.text)
    return event_id, event


def _refuse_odd(event: Event, own: bytes) -> None:
    """Refuse what no store appends: a memory that points to itself, and a revision that says nothing."""
    if own in (getattr(event, name, None) for name in REFERENCES):
        raise Refused("the memory points to itself. Name another one.")
    if isinstance(event, Revised):
        check_cleared(event.cleared)
        if not event.model_dump(exclude_defaults=True, exclude=_SAYS_NOTHING):
            raise Refused("it revises nothing. Give a field another value, or leave it out.")


def _kind(written: Mapping[str, Any]) -> type[Event]:
    name, version = written.get("event"), written.get("schema")
    kind = LIFE.get(name) if isinstance(name, str) else None
    if kind is None:
        raise Refused(f"{name!r} is no event of a memory's life. Write one of {', '.join(LIFE)}.")
    if version != kind.SCHEMA or isinstance(version, bool):
        raise Refused(f"{name} has no schema {version!r} in this release. Upgrade, or write schema {kind.SCHEMA}.")
    return kind


def _tuples(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}


def _require_fields(row: Mapping[str, Any], wanted: set[str]) -> None:
    wrong = sorted(wanted ^ set(row))
    if wrong:
        verb = "is missing" if wrong[0] in wanted else "is unknown"
        raise Refused(f"The field {wrong[0]!r} {verb}. Write a row as the export format says.")


def _named(written: Any, local: Local, others: dict[bytes, Named]) -> bytes:
    began = _began(written, "the other memory")
    here = local(began)
    others[here] = Named(here=here, origin=began.origin, memory=began.memory)
    return here


def _began(written: Any, field: str) -> Began:
    origin, _, memory = written.partition("/") if isinstance(written, str) else ("", "", "")
    return Began(_bytes(origin, LOG_BYTES, field), _bytes(memory, STREAM_BYTES, field))


def _hashes(written: Any, field: str) -> Iterator[bytes]:
    if not isinstance(written, list):
        raise Refused(f"{field} is no list. Write a list of hexadecimal hashes.")
    for each in written:
        yield _bytes(each, LOG_BYTES, field)


def _bytes(written: Any, length: int, field: str) -> bytes:
    digits = written if isinstance(written, str) and written == written.lower() else ""
    try:
        value = bytes.fromhex(digits)
    except ValueError:
        value = b""
    if len(value) != length or len(digits) != 2 * length:
        raise Refused(f"{field} is {written!r:.80}. Write its {2 * length} hexadecimal digits, in lower case.")
    return value
