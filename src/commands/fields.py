"""The fields of a memory as people give them, made into what an event holds, or refused with a reason."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from reprlib import repr as shown
from typing import Any

from ..errors import Refused
from ..events.claims import composed
from ..events.instants import instant
from ..events.kinds import MAX_TEXT_BYTES

MAX_SEGMENTS = 8
MAX_SEGMENT = 64
TIMES = ("occurred_at", "valid_from", "expires_at")
LISTS = ("tags", "tags_added", "tags_removed", "evidence", "derived_from", "cleared")
SHARES = ("importance", "confidence")
NAMES = ("subject", "key", "author", "thread", "command_id")
TAGS = ("tags", "tags_added", "tags_removed")
_OF_TURN = re.compile(r"turn \d+ of ")


def given(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Times as microseconds, lists as tuples, names as NFC, whole numbers as shares.

    Raises Refused for a time without a zone.
    """
    return {name: _taken(name, value) for name, value in fields.items()}


def _taken(name: str, value: Any) -> Any:
    if name in TIMES:
        return instant(value, name)
    if name in NAMES and isinstance(value, str):
        return composed(value)
    if name in SHARES and type(value) is int and value in (0, 1):
        return float(value)
    if name in LISTS and isinstance(value, list | tuple | set | frozenset):
        return tuple(composed(each) if name in TAGS and isinstance(each, str) else each for each in value)
    return value


def turn_id(thread: str, place: int) -> str:
    """The command id of a turn of a conversation: its place is filled once."""
    return f"turn {place} of {composed(thread)}"


def check_command_id(command_id: object, thread: object = None, place: object = None) -> None:
    """Refuse an id that is no printable text, or that is a conversation's for another turn than this one."""
    if command_id is None:
        return
    if not isinstance(command_id, str) or not command_id.isprintable():
        raise Refused(f"command_id is {shown(command_id)}: give a text of printable characters.")
    own = isinstance(thread, str) and isinstance(place, int) and composed(command_id) == turn_id(thread, place)
    if _OF_TURN.match(command_id) and not own:
        raise Refused(
            f"The command id {command_id!r} is the one of a turn of a conversation, whose place it would take. Give "
            f"another one."
        )


def check_text(text: str) -> None:
    """Refuse a text that can't be kept byte for byte: empty, over 1 MiB, or with lone surrogates."""
    if not isinstance(text, str):
        raise Refused(f"text is a {type(text).__name__}. Give a str.")
    if not text.strip():
        raise Refused("There is no text to store. Give one that is not white space only.")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise Refused(f"The text has a lone surrogate at character {error.start}. Replace that character.") from error
    if size > MAX_TEXT_BYTES:
        raise Refused(f"The text has {size:,} bytes and a memory holds at most {MAX_TEXT_BYTES:,}: store it in parts.")


def check_namespace(namespace: str) -> None:
    """Refuse a name that is not one to eight segments, of 1 to 64 visible characters each, between slashes."""
    if not isinstance(namespace, str):
        raise Refused(f"The namespace {namespace!r} is not a text. Give a str, such as org/acme/user:ana.")
    if not isinstance(namespace, str):
        raise Refused(f"namespace is a {type(namespace).__name__}. Give a str.")
    segments = namespace.split("/")
    fits = len(segments) <= MAX_SEGMENTS and all(_is_segment(segment) for segment in segments)
    if not fits or not unicodedata.is_normalized("NFC", namespace):
        raise Refused(
            f"The namespace {namespace!r} is not allowed. Name one to {MAX_SEGMENTS} segments between slashes, each of "
            f"1 to {MAX_SEGMENT} visible characters (NFC) without spaces, such as org/acme/user:ana."
        )


def _is_segment(segment: str) -> bool:
    return 0 < len(segment) <= MAX_SEGMENT and segment.isprintable() and not any(c.isspace() for c in segment)
