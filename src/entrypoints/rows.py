"""What is read from standard input or from a file: a text, or memories as JSON lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import NotFound, Refused

STANDARD_INPUT = "-"
DIGEST_BYTES = 32

Row = str | dict[str, Any]


def read_text(given: str) -> str:
    """A text as it was given; `-` is what comes on standard input, without its last line feed."""
    return _standard_input().removesuffix("\n") if given == STANDARD_INPUT else given


def read_rows(file: Path) -> list[Row]:
    """The rows of a file, or `-`: one JSON value to a line, a text or an object. Empty lines are passed over.

    Raises Refused, naming the line, where one is neither: a file that is broken is not half stored.
    """
    text = _standard_input() if str(file) == STANDARD_INPUT else _decoded(_bytes_of(file), str(file))
    return [_row(line, number) for number, line in enumerate(text.split("\n"), 1) if line.strip()]


def digests(given: Sequence[str]) -> list[bytes]:
    """Hashes from their hexadecimal digits. Raises Refused for what is none."""
    found = []
    for digits in given:
        try:
            found.append(bytes.fromhex(digits))
        except (TypeError, ValueError) as error:
            raise Refused(f"{digits!r} is not a hash. Give its {2 * DIGEST_BYTES} hexadecimal digits.") from error
    return found


def _row(line: str, number: int) -> Row:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Refused(f"Line {number} is not JSON ({error}). Nothing was stored: mend that line.") from error
    if isinstance(row, dict) and isinstance(row.get("derived_from"), list):
        row["derived_from"] = digests(row["derived_from"])
    if not isinstance(row, str | dict):
        raise Refused(f"Line {number} is neither a text nor an object. Nothing was stored: mend that line.")
    return row


def _standard_input() -> str:
    return _decoded(sys.stdin.buffer.read(), "What came on standard input")


def _bytes_of(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError as error:
        raise NotFound(f"There is no file {file}. Check its name.") from error


def _decoded(given: bytes, name: str) -> str:
    try:
        return given.decode()
    except UnicodeDecodeError as error:
        raise Refused(f"{name} is not UTF-8 ({error.reason} at byte {error.start}). Give UTF-8.") from error
