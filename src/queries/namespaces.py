"""The namespaces there are: how many memories each has, what it was called, and when it was last used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..projections import access, memories


class Namespace(NamedTuple):
    """A namespace as it is called now. Times are wall-clock microseconds since 1970, UTC.

    `current` of its `memories` are current; `aliases` are the names that it had. `written_at` is when a text in it
    was last stored or revised, `read_at` when one was last handed out.
    """

    name: str
    current: int
    memories: int
    aliases: tuple[str, ...]
    written_at: int
    read_at: int | None


def namespaces(cursor: Any, names: Mapping[str, str]) -> list[Namespace]:
    """Every namespace that has memories, in order of names; `names` are the aliases."""
    current: Counter[str] = Counter()
    every: Counter[str] = Counter()
    written: dict[str, int] = {}
    for stored, count, of_them_current, at in memories.by_namespace(cursor):
        name = names.get(stored, stored)
        every[name] += count
        current[name] += of_them_current
        written[name] = max(at, written.get(name, at))
    read: dict[str, int] = {}
    for stored, at in access.last_by_namespace(cursor):
        name = names.get(stored, stored)
        read[name] = max(at, read.get(name, at))
    return [
        Namespace(name, current[name], every[name], _aliases(names, name), written[name], read.get(name))
        for name in sorted(every)
    ]


def _aliases(names: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(sorted(old for old, new in names.items() if new == name))
