"""How an answer looks: tables for people, one JSON document for programs, progress on standard error."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from threading import Lock, Timer
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

SHORT_DIGITS = 12
PATIENCE_SECONDS = 1.0

Progress = Callable[[str, int, int], None]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# What could move a terminal's cursor, colour it, or turn text around: C0 and C1 controls but tab and line feed,
# lone surrogates, and the marks of bidirectional text.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class Column(NamedTuple):
    """One column of a table. The wide one takes the room that is left, and on a terminal is cut to it."""

    heading: str
    right: bool = False
    wide: bool = False


Rows = Sequence[Sequence[str]]


class Screen:
    """Standard output for people: coloured and fitted to a terminal, plain and aligned in a pipe."""

    def __init__(self) -> None:
        self._console = _console(stderr=False) if sys.stdout.isatty() else None

    def say(self, text: str = "", style: str = "") -> None:
        """A paragraph. The style is for terminals only."""
        if self._console is None:
            print(visible(text))
        else:
            self._console.print(visible(text), style=style or None, soft_wrap=True)

    def facts(self, facts: Mapping[str, str]) -> None:
        """Names and values, one to a line, aligned. What has no value is left out."""
        width = max((len(name) for name in facts), default=0)
        for name, value in facts.items():
            if value:
                self.say(f"{name:<{width}}  {one_line(value)}")

    def table(self, columns: Sequence[Column], rows: Rows) -> None:
        """A table with headings, one line to a row."""
        if self._console is None:
            _print_aligned(columns, rows)
        else:
            self._console.print(fitted(columns, rows))


def visible(text: str) -> str:
    """The text with whatever a terminal would obey instead of show written out, such as \\x1b."""
    return _UNSAFE.sub(lambda found: found.group().encode("unicode_escape").decode(), text)


def one_line(text: str) -> str:
    """The text on one line, safe to show."""
    return visible(" ".join(text.split()))


def short(identifier: bytes | str) -> str:
    """The first digits of an id, enough to name it."""
    return (identifier.hex() if isinstance(identifier, bytes) else identifier)[:SHORT_DIGITS]


def instant(microseconds: int | None) -> str | None:
    """An event's time in ISO 8601, UTC."""
    if microseconds is None:
        return None
    return (_EPOCH + timedelta(microseconds=microseconds)).isoformat().replace("+00:00", "Z")


def minute(microseconds: int) -> str:
    """An event's time for people, to the minute, UTC."""
    return f"{_EPOCH + timedelta(microseconds=microseconds):%Y-%m-%d %H:%M}"


def print_document(document: Mapping[str, Any], *, lines: bool = True) -> None:
    """Print one JSON document, in ASCII, over many lines or on one. Bytes are written as hexadecimal digits."""
    print(json.dumps(document, indent=2 if lines else None, default=_as_json))


class Bar:
    """What is being done, on standard error, once a second has passed; nothing where that is no terminal."""

    def __init__(self) -> None:
        self._now = ("", 0, 0)
        self._drawn = ""
        self._bar: Any = None
        self._task: Any = None
        self._drawing = Lock()
        self._timer = Timer(PATIENCE_SECONDS, self._begin) if sys.stderr.isatty() else None
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()

    def show(self, what: str, done: int, of: int) -> None:
        """Say what is being done, how much of it is done, and of how much (0 where that is not known)."""
        with self._drawing:
            self._now = (what, done, of)
            if self._bar is not None:
                self._draw()

    def close(self) -> None:
        """Take the bar away. Closing twice is no error."""
        if self._timer is not None:
            self._timer.cancel()
        with self._drawing:
            self._timer = None
            if self._bar is not None:
                self._bar.stop()
                self._bar = None

    def _begin(self) -> None:
        from rich import progress as rich  # noqa: PLC0415  most commands are done before a bar is due

        columns = (rich.TextColumn("{task.description}"), rich.BarColumn(), rich.TaskProgressColumn())
        with self._drawing:
            if self._timer is None:
                return
            self._bar = rich.Progress(
                *columns, rich.TimeRemainingColumn(), console=_console(stderr=True), transient=True
            )
            self._task = self._bar.add_task("", total=None)
            self._draw()
            self._bar.start()

    def _draw(self) -> None:
        what, done, of = self._now
        if what != self._drawn:
            self._bar.reset(self._task)
            self._drawn = what
        self._bar.update(self._task, description=what, completed=done, total=of or None)


def _console(*, stderr: bool) -> Console:
    from rich.console import Console  # noqa: PLC0415  pipes and programs do without it

    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)


def _print_aligned(columns: Sequence[Column], rows: Rows) -> None:
    lines = [[column.heading for column in columns], *([one_line(cell) for cell in row] for row in rows)]
    widths = [max(len(line[n]) for line in lines) for n in range(len(columns))]
    for line in lines:
        cells = [c.rjust(w) if column.right else c.ljust(w) for c, w, column in zip(line, widths, columns, strict=True)]
        print("  ".join(cells).rstrip())


def fitted(columns: Sequence[Column], rows: Rows) -> Table:
    """A table that fits a terminal: only the wide column is cut."""
    from rich.table import Table  # noqa: PLC0415  pipes and programs do without it
    from rich.text import Text  # noqa: PLC0415

    cells = [[one_line(cell) for cell in row] for row in rows]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for n, column in enumerate(columns):
        width = max([len(column.heading), *(len(row[n]) for row in cells)])
        justify: Literal["left", "right"] = "right" if column.right else "left"
        table.add_column(
            column.heading, justify=justify, no_wrap=not column.wide, min_width=0 if column.wide else width
        )
    for row in cells:
        table.add_row(*(Text(cell, no_wrap=True, overflow="ellipsis") for cell in row))
    return table


def _as_json(value: Any) -> str:
    if isinstance(value, bytes):
        return value.hex()
    raise TypeError(f"{type(value).__name__} has no place in a document")
