"""How an answer looks: tables for people, one JSON document for programs, progress on standard error."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from rich.console import Console

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
        cells = [[one_line(cell) for cell in row] for row in rows]
        if self._console is None:
            _print_aligned(columns, cells)
        else:
            _print_fitted(self._console, columns, cells)


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


def print_document(document: Mapping[str, Any]) -> None:
    """Print one JSON document, in ASCII. Bytes are written as hexadecimal digits."""
    print(json.dumps(document, indent=2, default=_as_json))


@contextmanager
def progress() -> Iterator[Progress]:
    """A bar on standard error, from the moment the work has taken a second; none where that is no terminal.

    Tell it what is being done, how much is done, and of how much (0 where that is not known).
    """
    bar = _Bar() if sys.stderr.isatty() else None
    try:
        yield bar.show if bar else _nothing
    finally:
        if bar:
            bar.close()


class _Bar:
    def __init__(self) -> None:
        self._since = time.monotonic()
        self._bar: Any = None
        self._tasks: dict[str, Any] = {}

    def show(self, what: str, done: int, of: int) -> None:
        if self._bar is None:
            if time.monotonic() - self._since < PATIENCE_SECONDS:
                return
            self._bar = _progress_bar()
            self._bar.start()
        if what not in self._tasks:
            self._tasks[what] = self._bar.add_task(what, total=of or None)
        self._bar.update(self._tasks[what], completed=done)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()


def _nothing(_what: str, _done: int, _of: int) -> None:
    pass


def _progress_bar() -> Any:
    from rich import progress as rich  # noqa: PLC0415  most commands are done before a bar is due

    columns = (rich.TextColumn("{task.description}"), rich.BarColumn(), rich.MofNCompleteColumn())
    return rich.Progress(*columns, rich.TimeRemainingColumn(), console=_console(stderr=True), transient=True)


def _console(*, stderr: bool) -> Console:
    from rich.console import Console  # noqa: PLC0415  pipes and programs do without it

    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)


def _print_aligned(columns: Sequence[Column], rows: Rows) -> None:
    lines = [[column.heading for column in columns], *rows]
    widths = [max(len(line[n]) for line in lines) for n in range(len(columns))]
    for line in lines:
        cells = [c.rjust(w) if column.right else c.ljust(w) for c, w, column in zip(line, widths, columns, strict=True)]
        print("  ".join(cells).rstrip())


def _print_fitted(console: Console, columns: Sequence[Column], rows: Rows) -> None:
    from rich.table import Table  # noqa: PLC0415  pipes and programs do without it
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", expand=False)
    for n, column in enumerate(columns):
        width = max([len(column.heading), *(len(row[n]) for row in rows)])
        table.add_column(
            column.heading,
            justify="right" if column.right else "left",
            no_wrap=True,
            overflow="ellipsis",
            min_width=None if column.wide else width,
        )
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)


def _as_json(value: Any) -> str:
    if isinstance(value, bytes):
        return value.hex()
    raise TypeError(f"{type(value).__name__} has no place in a document")
