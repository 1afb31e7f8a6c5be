"""Import a file of memories: portion by portion, and what is refused is put into a file beside it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from ..errors import NotFound, Refused
from .bring import Refusal, bring
from .protect import PinnedIn
from .rows import Line, exported_log, lines, parse
from .session import Session

PORTION_ROWS, PORTION_BYTES = 500, 16 << 20
RAW_KEPT = 1 << 20

Told = Callable[[int, int], None]
"""Is told how many bytes of the file are read, of how many; after each portion."""


class Arrivals(NamedTuple):
    """What an import came to: memories that are new here, that had more to tell, and that were known.

    `refused` rows stand with their reasons in the file `refusals`.
    """

    new: int
    updated: int
    known: int
    refused: int
    refusals: Path | None


class _Refusals:
    """The file of what was refused, made when it is needed; that of an earlier import is removed."""

    def __init__(self, source: Path) -> None:
        self.path = source.with_name(f"{source.name}.rejected.jsonl")
        self.path.unlink(missing_ok=True)
        self.count = 0
        self._file: IO[str] | None = None

    def add(self, line: int, reason: str, raw: bytes) -> None:
        """Write down a row and why it was refused."""
        if self._file is None:
            descriptor = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            self._file = open(descriptor, "w", encoding="ascii")  # noqa: SIM115  closed by `close`
        row = raw[:RAW_KEPT].decode(errors="backslashreplace")
        self._file.write(json.dumps({"line": line, "reason": reason, "row": row}) + "\n")
        self.count += 1

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


class _Import:
    """One file being imported."""

    def __init__(self, session: Session, source: Path, pinned: PinnedIn) -> None:
        name = source.name.encode(errors="backslashreplace").decode()
        self._session = session._replace(via={**session.via, "file": name})
        self._pinned = pinned
        self._counts = {"new": 0, "updated": 0, "known": 0}
        self._portion: dict[str, tuple[Line, dict[str, Any]]] = {}
        self._weight = 0
        self._through = b""
        self._rows = 0
        self._end: int | None = None
        self.refusals = _Refusals(source)

    def read(self, file: IO[bytes]) -> Iterator[int]:
        """Import line by line; yields up to where the file is read, after each portion."""
        line: Line | None = None
        for line in lines(file):
            row = self._parsed(line)
            if row is None:
                continue
            if self._through:
                yield from self._take(line, row)
            else:
                self._through = exported_log(row)
        if line is None:
            raise Refused("This file is empty. Write one with `tallystick export`.")
        yield from self._flush(line.upto)
        if self._end != self._rows:
            said = "does not say how many rows it has" if self._end is None else f"says that it has {self._end:,} rows"
            self.refusals.add(
                line.number, f"The file is not whole: it {said}, and {self._rows:,} were read. Export it anew.", b""
            )

    def _parsed(self, line: Line) -> dict[str, Any] | None:
        """The row on a line; None where it is refused. Nothing can be made of a file whose first line is."""
        try:
            return parse(line)
        except Refused as error:
            if not self._through:
                raise
            self._rows += 1
            self.refusals.add(line.number, str(error), line.raw)
            return None

    def _take(self, line: Line, row: dict[str, Any]) -> Iterator[int]:
        if set(row) == {"end"} and type(row["end"]) is int:
            self._end = row["end"]
            return
        name = str(row.get("memory"))
        if name in self._portion or len(self._portion) >= PORTION_ROWS or self._weight > PORTION_BYTES:
            yield from self._flush(line.upto)
        self._rows += 1
        self._portion[name] = line, row
        self._weight += len(line.raw)

    def _flush(self, upto: int) -> Iterator[int]:
        portion = list(self._portion.values())
        self._portion, self._weight = {}, 0
        results = bring(self._session, self._through, [row for _, row in portion], self._pinned)
        for (line, _), result in zip(portion, results, strict=True):
            if isinstance(result, Refusal):
                self.refusals.add(line.number, result.reason, line.raw)
            else:
                self._counts[result] += 1
        yield upto

    def arrivals(self) -> Arrivals:
        """What it came to."""
        refused = self.refusals.count
        return Arrivals(**self._counts, refused=refused, refusals=self.refusals.path if refused else None)


def arrive(session: Session, source: Path, pinned: PinnedIn, tell: Told) -> Arrivals:
    """Import the memories of a file, 500 in a transaction. Raises NotFound, or Refused for what is no export.

    A row that is refused keeps no other from coming in. Imported again, a file changes nothing.
    """
    if not source.is_file():
        raise NotFound(f"There is no file {source}. Name one that `tallystick export` has written.")
    size = source.stat().st_size
    with source.open("rb") as file:
        importing = _Import(session, source, pinned)
        try:
            for upto in importing.read(file):
                tell(upto, size)
        finally:
            importing.refusals.close()
    return importing.arrivals()
