"""How an answer looks: tables for people, one JSON document for programs, progress on standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from threading import Lock, Timer
from typing import TYPE_CHECKING, Any, NamedTuple

from ..visible import one_line, visible

if TYPE_CHECKING:
    from rich.console import Console

SHORT_DIGITS = 12
PATIENCE_SECONDS = 1.0
LEAST_WIDE = 24
"""Columns of a terminal that the wide column of a table needs beside the others."""

Progress = Callable[[str, int, int], None]

_GAP = "  "
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Column(NamedTuple):
    """One column of a table.

    The wide one takes the room that is left, and on a terminal is cut to it. Where that is too little the `spare`
    ones go, the highest number first; then the wide one gets a line of its own below each row.
    """

    heading: str
    right: bool = False
    wide: bool = False
    spare: int = 0


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
        """A table with headings, one line to a row; on a narrow terminal two."""
        for n, line in enumerate(laid_out(columns, rows, self._console.width if self._console else None)):
            self.say(line, style="" if n else "bold")


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


def open_closed_streams() -> None:
    """Let standard streams that were closed lead nowhere, or a file of the store would be opened in their place."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))


def give_up_output() -> None:
    """After output that can't be written: what is left of it goes nowhere, instead of failing again at the end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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


def laid_out(columns: Sequence[Column], rows: Rows, width: int | None) -> list[str]:
    """A table as lines: whole, or fitted to a terminal of this width."""
    lines = [[column.heading for column in columns], *([one_line(cell) for cell in row] for row in rows)]
    widths = [max(cell_len(line[n]) for line in lines) for n in range(len(columns))]
    shown, below = list(range(len(columns))), False
    if width is not None:
        shown, below = _fitting(columns, widths, width)
    laid = []
    for number, line in enumerate(lines):
        beside = [n for n in shown if not (below and columns[n].wide)]
        laid.append(_cut(_GAP.join(_aligned(line[n], widths[n], columns[n]) for n in beside).rstrip(), width))
        laid += [_cut(_GAP + line[n], width) for n in shown if n not in beside and number and line[n]]
    return laid


def _fitting(columns: Sequence[Column], widths: Sequence[int], width: int) -> tuple[list[int], bool]:
    """Which columns fit beside each other, and whether the wide one has to go below."""
    every = range(len(columns))
    for below in (False, True):
        least = [
            0 if below and c.wide else min(w, LEAST_WIDE) if c.wide else w for c, w in zip(columns, widths, strict=True)
        ]
        for most_spare in sorted({column.spare for column in columns}, reverse=True):
            shown = [n for n in every if columns[n].spare <= most_spare]
            beside = [least[n] for n in shown if least[n]]
            if sum(beside) + len(_GAP) * (len(beside) - 1) <= width:
                return shown, below
    return [n for n in every if not columns[n].spare], True


def _aligned(cell: str, width: int, column: Column) -> str:
    space = " " * (width - cell_len(cell))
    return space + cell if column.right else cell + space


def _cut(line: str, width: int | None) -> str:
    if width is None or cell_len(line) <= width:
        return line
    kept = line
    while kept and cell_len(kept) >= width:
        kept = kept[: min(len(kept) - 1, width)]
    return f"{kept}…"


def cell_len(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len as measured  # noqa: PLC0415  most tables are ASCII

    return measured(text)


def _as_json(value: Any) -> str:
    if isinstance(value, bytes):
        return value.hex()
    raise TypeError(f"{type(value).__name__} has no place in a document")
