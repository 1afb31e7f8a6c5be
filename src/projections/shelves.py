"""Under which name the indexes hold a memory: its namespace while it is current, another once it is superseded."""

from __future__ import annotations

from .record import Record, Status

_SUPERSEDED = "/"
"""No namespace begins so."""
NAMED = f"CASE memories.status WHEN 'superseded' THEN '{_SUPERSEDED}' || memories.namespace ELSE memories.namespace END"
"""The name for a row of the `memories` view, in SQL."""


def superseded_in(namespace: str) -> str:
    """The name under which what is superseded in a namespace is held: who asks for what is current never reads it."""
    return _SUPERSEDED + namespace


def held_under(record: Record) -> str | None:
    """The name for a memory; None for one that is forgotten, which no index holds."""
    namespace = record.stored.namespace
    return {"current": namespace, "superseded": superseded_in(namespace)}.get(record.status)


def held_of(name: str) -> tuple[str, Status]:
    """Of which namespace, and of which status, the memories under a name are."""
    namespace = name.removeprefix(_SUPERSEDED)
    return namespace, "current" if namespace == name else "superseded"


def other_of(name: str) -> str:
    """Under which name else a memory may have been held."""
    namespace, status = held_of(name)
    return superseded_in(namespace) if status == "current" else namespace
