"""The turns of a conversation, as rows to store: each knows its thread and its place in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..errors import Refused
from .fields import turn_id

CHUNK = 500
"""Turns that are stored in one transaction."""

_SPELLINGS = {"content": "text", "role": "author", "speaker": "author"}
"""Names that chat programs give to fields of ours."""


def rows_of(
    turns: Sequence[str | Mapping[str, Any]], thread: str, preceding: int, shared: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """A row for each turn, placed after the `preceding` ones, with what they share where a turn says nothing else.

    Each has a command id of its own, so that a conversation that is stored again is stored once.
    """
    if not isinstance(thread, str) or not thread:
        raise Refused(f"thread is {thread!r}: name the conversation, such as 2023-05-08 or s1.")
    if type(preceding) is not int or preceding < 0:
        raise Refused(f"preceding is {preceding!r}: give the number of turns that came before, from 0.")
    if isinstance(turns, str | Mapping):
        raise Refused("turns is one turn. Give a list of them.")
    return [_row(turn, thread, place, shared) for place, turn in enumerate(turns, preceding)]


def chunks(rows: Sequence[dict[str, Any]]) -> Iterator[Sequence[dict[str, Any]]]:
    """The rows in the portions that are stored at a time: what is there stays, whatever becomes of the next one."""
    for first in range(0, len(rows), CHUNK):
        yield rows[first : first + CHUNK]


def _row(turn: str | Mapping[str, Any], thread: str, place: int, shared: Mapping[str, Any]) -> dict[str, Any]:
    said: dict[str, Any] = {"text": turn}
    if isinstance(turn, Mapping):
        said = {_SPELLINGS.get(name, name): turn[name] for name in turn}
    own = {"kind": "turn", "thread": thread, "place": place, "command_id": turn_id(thread, place)}
    return {**own, **shared, **said}
