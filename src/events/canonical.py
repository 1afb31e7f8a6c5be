"""Canonical MessagePack: one value, one sequence of bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from threading import local
from typing import TypeAlias

import msgpack  # type: ignore[import-untyped]

Value: TypeAlias = None | bool | int | float | str | bytes | Sequence["Value"] | Mapping[str, "Value"]
Field: TypeAlias = int | str | bytes

MAX_HEADER_BYTES = 1024
MAX_DEPTH = 32
TEXT_KEY = "text"

_FIELD_TYPES = frozenset({int, str, bytes})
_KEY_TYPES = frozenset({str})
_PLAIN = frozenset({type(None), bool, int, bytes})


class NotCanonical(ValueError):
    """These bytes or values have no canonical encoding, or are not in it. Refuse them; never repair them."""


def encode_header(fields: tuple[Field, ...]) -> bytes:
    """Return the header: a MessagePack array of non-negative integers below 2**64, text and bytes.

    Every value takes its shortest form. At most 1024 bytes. Raises NotCanonical for any other
    type (a bool is not an integer), a negative integer, text that is not Unicode, or more bytes.
    """
    numbers = [field for field in fields if type(field) is int]
    if not _FIELD_TYPES.issuperset(map(type, fields)) or min(numbers, default=0) < 0:
        raise NotCanonical("a header field can't be written: use integers from 0 to 2**64 - 1, text or bytes")
    data = _pack(fields)
    _require_header_size(data)
    return data


def decode_header(data: bytes) -> tuple[Field, ...]:
    """Return the fields of a header, if `data` is exactly what `encode_header` writes for them.

    Raises NotCanonical for every other sequence of bytes.
    """
    _require_header_size(data)
    fields = _unpack(data, use_list=False)
    if type(fields) is not tuple or encode_header(fields) != data:
        raise NotCanonical("the header is not in canonical form: refuse the entry")
    return fields


def encode_body(body: Mapping[str, Value]) -> bytes:
    """Return the body: a MessagePack map with its keys sorted by their UTF-8 bytes, at every level.

    Values are None, bool, integers from -2**63 to 2**64 - 1, finite float64 (-0.0 is written as
    0.0), text, bytes, lists (a tuple is written as one) and maps, nested at most 32 deep counting
    the body itself. U+0000 may stand in the text under the top-level key `text` and nowhere else.
    Types are exact: a subclass of one of them is refused, as is everything else, with NotCanonical.
    """
    text = body.get(TEXT_KEY)
    if type(text) is str and "\0" in text:
        return _pack(_normal_map({**body, TEXT_KEY: ""}, 1) | {TEXT_KEY: text})
    return _pack(_normal_map(body, 1))


def decode_body(data: bytes) -> dict[str, Value]:
    """Return the body, if `data` is exactly what `encode_body` writes for it; lists come back as lists.

    Raises NotCanonical for every other sequence of bytes.
    """
    body = _unpack(data, use_list=True)
    if type(body) is not dict or encode_body(body) != data:
        raise NotCanonical("the body is not in canonical form: refuse the event")
    return body


def _normal_map(values: Mapping[str, Value], depth: int) -> dict[str, Value]:
    """Return the map with normal values under sorted keys: code points sort as UTF-8 does (RFC 3629, 1)."""
    _require_depth(depth)
    if not _KEY_TYPES.issuperset(map(type, values)):
        raise NotCanonical("a map key is not text: write it as text")
    normal: dict[str, Value] = {}
    for key in sorted(values):
        value = values[key]
        normal[key] = value if type(value) in _PLAIN else _normal(value, key, depth)
    if "\0" in "".join(normal):
        raise NotCanonical("a map key holds U+0000: remove it")
    return normal


def _normal(value: Value, key: str, depth: int) -> Value:
    """Return the one value that stands for `value`, found under `key` in a container at `depth`."""
    if type(value) is str:
        if "\0" in value:
            raise NotCanonical(f"{key!r} holds U+0000, which only the top-level text may: remove it")
        return value
    if type(value) is dict or isinstance(value, Mapping):
        return _normal_map(value, depth + 1)
    if type(value) is list or type(value) is tuple:
        _require_depth(depth + 1)
        return [each if type(each) in _PLAIN else _normal(each, key, depth + 1) for each in value]
    if type(value) is float:
        return _normal_float(value, key)
    raise NotCanonical(f"{key!r} holds a {type(value).__name__}: convert it to a plain value")


def _normal_float(value: float, key: str) -> float:
    if not isfinite(value):
        raise NotCanonical(f"{key!r} holds {value}, which can't be written: use a finite number or None")
    return value + 0.0  # -0.0 + 0.0 is 0.0 (IEEE 754 section 6.3)


def _require_header_size(data: bytes) -> None:
    if len(data) > MAX_HEADER_BYTES:
        raise NotCanonical(f"the header takes {len(data)} bytes, more than {MAX_HEADER_BYTES}: refuse it")


def _require_depth(depth: int) -> None:
    if depth > MAX_DEPTH:
        raise NotCanonical(f"the body is nested more than {MAX_DEPTH} deep: flatten it")


class _Packing(local):
    """A packer for each thread: making one costs more than it takes to pack an event."""

    def __init__(self) -> None:
        self.packer = msgpack.Packer(use_bin_type=True)


_packing = _Packing()


def _pack(value: object) -> bytes:
    try:
        packed: bytes = _packing.packer.pack(value)
    except OverflowError as too_large:
        raise NotCanonical("an integer is outside -2**63 to 2**64 - 1: store it as text") from too_large
    except UnicodeEncodeError as lone_surrogate:
        raise NotCanonical("a text holds half a surrogate pair: replace that character") from lone_surrogate
    return packed


def _unpack(data: bytes, *, use_list: bool) -> object:
    try:
        value: object = msgpack.unpackb(data, use_list=use_list)
    except ValueError as malformed:
        raise NotCanonical("the bytes are not MessagePack: refuse them") from malformed
    return value
