"""The fields of a memory as people give them, made into what an event holds, or refused with a reason."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

from ..errors import Refused
from ..events.instants import instant
from ..events.kinds import MAX_TEXT_BYTES

MAX_SEGMENTS = 8
MAX_SEGMENT = 64
TIMES = ("occurred_at", "valid_from", "expires_at")
LISTS = ("tags", "tags_added", "tags_removed", "evidence", "derived_from", "cleared")
SHARES = ("importance", "confidence")


def given(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Times as microseconds, lists as tuples, whole numbers as shares. Raises Refused for a time without a zone."""
    taken = dict(fields)
    for name in TIMES:
        if name in taken:
            taken[name] = instant(taken[name], name)
    for name in LISTS:
        if isinstance(taken.get(name), list | set | frozenset):
            taken[name] = tuple(taken[name])
    for name in SHARES:
        if type(taken.get(name)) is int:
            taken[name] = float(taken[name])
    return taken


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
