"""The documents of the command line, as docs/json.md describes them, and a document compared with that."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "json.md"

Fields = dict[str, str]


def _sections(level: str) -> Iterator[tuple[str, Fields]]:
    text = re.sub(r"^(?=##+ )", "\0", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for section in (each.removeprefix(f"{level} ") for each in text.split("\0") if each.startswith(f"{level} ")):
        heading, _, rest = section.partition("\n")
        fields = dict(re.findall(r"^\| `(\w+)` \| ([a-z ]+?) \|", rest, re.MULTILINE))
        for name in re.findall(r"`([^`]+)`", heading) or [heading]:
            yield name, fields


OBJECTS = dict(_sections("###"))
"""The fields of each object inside a document, by its name."""
DOCUMENTS = {**dict(_sections("##")), "get": OBJECTS["memory"]}
"""The fields of each document, by the command that prints it."""

PLAIN: dict[str, Callable[[Any], bool]] = {
    "text": lambda value: isinstance(value, str),
    "hex": lambda value: isinstance(value, str) and re.fullmatch(r"(?:[0-9a-f]{2})*", value) is not None,
    "time": lambda value: isinstance(value, str) and value.endswith("Z") and bool(datetime.fromisoformat(value)),
    "whole": lambda value: type(value) is int,
    "number": lambda value: type(value) in (int, float),
    "yes or no": lambda value: isinstance(value, bool),
    "any": lambda _value: True,
}
"""What each word for a type means."""


def differences(command: str, document: Any) -> list[str]:
    """Where a document is not what its section says: names that are missing or too many, and values of another type."""
    return _fields(DOCUMENTS[command], document, command)


def _fields(fields: Fields, document: Any, place: str) -> list[str]:
    if not isinstance(document, dict) or set(document) != set(fields):
        return [f"{place}: {document!r:.200} has not the fields {sorted(fields)}"]
    return [each for field, kind in fields.items() for each in _of(kind, document[field], f"{place}.{field}")]


def _of(kind: str, value: Any, place: str) -> list[str]:
    if kind in PLAIN:
        return [] if PLAIN[kind](value) else [f"{place}: {value!r:.80} is not {kind}"]
    if kind.startswith("list of "):
        listed = value if isinstance(value, list) else [None]
        return [
            each for n, one in enumerate(listed) for each in _of(kind.removeprefix("list of "), one, f"{place}[{n}]")
        ]
    if kind.startswith("map of "):
        named = value if isinstance(value, dict) else {"": None}
        return [each for n, one in named.items() for each in _of(kind.removeprefix("map of "), one, f"{place}.{n}")]
    if kind.endswith(" or null"):
        return [] if value is None else _of(kind.removesuffix(" or null"), value, place)
    return _fields(OBJECTS[kind], value, place)
