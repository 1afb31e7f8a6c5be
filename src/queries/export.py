"""Export every memory of a log, whole: its events from the first on, as lines of JSON."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import Refused
from ..events.entries import Tip
from ..events.kinds import Imported, Stored, Superseded
from ..events.lineage import Lineage
from ..events.log import Log
from ..events.mapper import LoggedEvent
from ..events.portable import Began, document, footer, header, told

ROW_BYTES = 16 << 20
"""From this size on, what else is told of a memory stands in a further row."""
REMEMBERED = 4096
BEGINNING = b'{"tallystick":"export"'
"""What an export begins with."""


class Line(NamedTuple):
    """A line of the file, how many memories have begun with it, and up to which position of the log it is told."""

    text: str
    memories: int
    position: int


Life = tuple[LoggedEvent, list[LoggedEvent]]
"""The first event of a memory, and all its events."""


def export(log: Log, tip: Tip, at: int, actor: str) -> Iterator[Line]:
    """The lines of an export of a log, as it was at this tip: memories in the order in which they came.

    What is read is the log alone, each event verified.
    """
    lineage, rows, memories = Lineage(log), 0, 0
    teller = _Teller(log, lineage)
    yield Line(_json(header(log.origin, tip.size, tip.frontier.root(), at, actor)), 0, 0)
    for first, life in lives(log, tip.size - 1):
        memories += 1
        for events in _portions(map(_json, teller.tell(life))):
            rows += 1
            row = f'{{"memory":"{lineage.began(first)}","events":[{",".join(events)}]}}'
            yield Line(row, memories, first.header.position)
    yield Line(_json(footer(rows)), memories, tip.size - 1)


def write(path: Path, lines: Iterable[Line], tell: Callable[[int], None]) -> int:
    """Write the lines to a file that only its owner can read; returns how many memories they tell of.

    The file is there when it is whole. `tell` is told up to which position of the log. Raises Refused where there is
    something that is no export.
    """
    target = path.resolve()
    require_folder(target)
    _require_export(target)
    part = beside(target)
    memories = 0
    try:
        with open(
            os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8", newline=""
        ) as file:
            for text, memories, position in lines:
                file.write(text + "\n")
                tell(position)
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    return memories


def beside(path: Path) -> Path:
    """Where to write what will have this name when it is whole."""
    return path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")


def require_folder(path: Path) -> None:
    """Raise Refused where nothing can be written beside this path."""
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise Refused(f"{path.parent} is no folder that can be written to. Name another place.")


def _require_export(path: Path) -> None:
    if not path.exists():
        return
    beginning = b""
    if path.is_file():
        with path.open("rb") as file:
            beginning = file.read(len(BEGINNING))
    if beginning != BEGINNING:
        raise Refused(f"{path} is there already and is no export. Name another file.")


def lives(log: Log, last: int) -> Iterator[Life]:
    """Each memory that began up to a position: its first event, and all its events up to there."""
    for page in log.pages(0, last):
        for logged in page:
            if logged.header.revision == 0 and isinstance(logged.event, Stored | Imported):
                events = log.events_of(logged.header.stream)
                yield logged, [each for each in events if each.header.position <= last]


class _Teller:
    """Tells what happened to memories, each of which is named by where it began."""

    def __init__(self, log: Log, lineage: Lineage) -> None:
        self._log = log
        self._lineage = lineage
        self._named = lru_cache(REMEMBERED)(self._name)

    def tell(self, events: Iterable[LoggedEvent]) -> Iterator[dict[str, Any]]:
        """A memory's events as documents: those that came in from elsewhere as they were told, then those of here."""
        for logged in events:
            if isinstance(logged.event, Imported):
                yield from self._tell_import(logged, logged.event)
            else:
                yield document(logged.header.id, logged.event, self._named)

    def _tell_import(self, logged: LoggedEvent, event: Imported) -> Iterator[dict[str, Any]]:
        others = {other.here: Began(other.origin, other.memory) for other in event.others}
        for each in event.events:
            yield document(each.id, told(each), others.__getitem__)
        if event.yields_to is not None:
            yields = Superseded(recorded_at=event.recorded_at, actor=event.actor, via=event.via, by=event.yields_to)
            yield document(logged.header.id, yields, self._named)

    def _name(self, stream: bytes) -> Began:
        first = self._log.events_of(stream, upto=0)
        return self._lineage.began(first[0]) if first else Began(self._log.origin, stream)


def _portions(events: Iterable[str]) -> Iterator[list[str]]:
    portion: list[str] = []
    size = 0
    for event in events:
        portion.append(event)
        size += len(event)
        if size > ROW_BYTES:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
