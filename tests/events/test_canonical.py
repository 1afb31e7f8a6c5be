"""One value has one encoding, and no other bytes are read."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.events.canonical import (
    NotCanonical,
    Value,
    decode_body,
    decode_header,
    encode_body,
    encode_header,
)

HEADER = (
    1,
    b"\x01" * 16,
    b"\xff" * 32,
    5,
    b"\x03" * 32,
    b"\x04" * 8,
    1_764_476_719_123 << 16,
    "memory.stored",
    1,
    b"\x05" * 16,
    300,
    1,
    b"",
    b"\x06" * 32,
    70_000,
)
BODY: dict[str, Value] = {
    "actor": "agent:planner",
    "confidence": 0.75,
    "evidence": [b"\x01" * 32, {"at": -1, "note": None}],
    "recorded_at": 1_764_476_719_123,
    "tags": ["a", "b"],
    "text": "Prefer WAL mode",
    "trusted": True,
}


class Colour(StrEnum):
    """A type that compares equal to text without being text."""

    RED = "red"


class Weight(float):
    """A type that compares equal to a number without being one."""


def nested(depth: int) -> Value:
    """A list inside a list, `depth` deep."""
    value: Value = 1
    for _ in range(depth):
        value = [value]
    return value


def as_read(value: Value) -> Value:
    """What a value is after it was written and read."""
    if isinstance(value, Mapping):
        return {key: as_read(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [as_read(each) for each in value]
    return value


def flips(data: bytes) -> list[bytes]:
    """The bytes with each single bit turned."""
    number = int.from_bytes(data, "big")
    return [(number ^ 1 << bit).to_bytes(len(data), "big") for bit in range(len(data) * 8)]


def test_a_header_comes_back_as_it_was() -> None:
    """All fifteen fields, in 216 bytes at most."""
    data = encode_header(HEADER)
    assert decode_header(data) == HEADER
    assert len(data) <= 216


@pytest.mark.parametrize(
    ("number", "encoded"),
    [
        (0, "9100"),
        (127, "917f"),
        (128, "91cc80"),
        (255, "91ccff"),
        (256, "91cd0100"),
        (65_536, "91ce00010000"),
        (2**32, "91cf0000000100000000"),
        (2**64 - 1, "91cfffffffffffffffff"),
    ],
)
def test_integers_take_their_shortest_form(number: int, encoded: str) -> None:
    """The bytes that the specification gives, at each boundary."""
    assert encode_header((number,)).hex() == encoded
    assert decode_header(bytes.fromhex(encoded)) == (number,)


@pytest.mark.parametrize(
    "alternative",
    [
        pytest.param(b"\x93\xcc\x05\xa1k\xc4\x01\xff", id="uint8 for 5"),
        pytest.param(b"\x93\x05\xd9\x01k\xc4\x01\xff", id="str8 for one character"),
        pytest.param(b"\xdc\x00\x03\x05\xa1k\xc4\x01\xff", id="array16 for three fields"),
        pytest.param(b"\x93" + b"\xcb" + struct.pack(">d", 9.0) + b"\xa1k\xc4\x01\xff", id="float"),
        pytest.param(b"\x93\xc3\xa1k\xc4\x01\xff", id="true"),
        pytest.param(b"\x93\xc0\xa1k\xc4\x01\xff", id="nil"),
        pytest.param(b"\x93\x05\xa1k\xa1\xff", id="bytes written as text"),
        pytest.param(b"\x93\xff\xa1k\xc4\x01\xff", id="negative"),
        pytest.param(b"\x93\x05\xa1k\xc4\x01\xff\x00", id="one field more than counted"),
        pytest.param(b"\x93\x05\xa1\xc3\xc4\x01\xff", id="text that is not UTF-8"),
        pytest.param(b"\x93\x05\xa1k\xc4\x01\xff" + b"\xc1", id="a byte after the end"),
        pytest.param(b"\x93\xcd\x00\x05\xa1k\xc4\x01\xff", id="uint16 for 5"),
        pytest.param(b"\x93\xce\x00\x00\x00\x05\xa1k\xc4\x01\xff", id="uint32 for 5"),
        pytest.param(b"\x93\xcf" + bytes(7) + b"\x05\xa1k\xc4\x01\xff", id="uint64 for 5"),
        pytest.param(b"\x93\xd0\x05\xa1k\xc4\x01\xff", id="int8 for 5"),
        pytest.param(b"\x93\x05\xda\x00\x01k\xc4\x01\xff", id="str16"),
        pytest.param(b"\x93\x05\xa1k\xc5\x00\x01\xff", id="bin16"),
        pytest.param(b"\xdd\x00\x00\x00\x03\x05\xa1k\xc4\x01\xff", id="array32"),
        pytest.param(b"\x93\x05\xa1k\xd4\x05\xff", id="extension"),
        pytest.param(b"\x93\x05\xa1k\xd6\xff\x00\x00\x00\x01", id="timestamp"),
        pytest.param(b"\x93\x05\xa1k\x91\x01", id="array in a field"),
        pytest.param(b"\x93\x05\xa1k\x80", id="map in a field"),
        pytest.param(b"\x93\x05\xa1k\xc4\x01", id="cut short"),
        pytest.param(b"\x05", id="no array"),
        pytest.param(b"\x81\x05\x05", id="a map"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_other_encodings_of_a_header_are_refused(alternative: bytes) -> None:
    """Two sequences of bytes never mean the same header."""
    assert encode_header((5, "k", b"\xff")) == b"\x93\x05\xa1k\xc4\x01\xff"
    with pytest.raises(NotCanonical):
        decode_header(alternative)


@pytest.mark.parametrize(
    "field", [True, False, None, 1.0, -1, 2**64, "\ud800", (), [], {}, bytearray(b"x"), Colour.RED]
)
def test_fields_of_another_type_are_not_written(field: Any) -> None:
    """A header holds integers from 0 to 2**64 - 1, text and bytes."""
    with pytest.raises(NotCanonical):
        encode_header((1, field))


def test_a_header_has_at_most_1024_bytes() -> None:
    """The limit holds for writing and for reading, and is itself allowed."""
    assert len(encode_header((b"x" * 1020,))) == 1024
    assert decode_header(encode_header((b"x" * 1020,))) == (b"x" * 1020,)
    with pytest.raises(NotCanonical, match="1025"):
        encode_header((b"x" * 1021,))
    with pytest.raises(NotCanonical, match="1025"):
        decode_header(b"\x91\xc5\x03\xfd" + b"x" * 1021)
    with pytest.raises(NotCanonical, match="1025"):
        decode_header(b"\xc1" * 1025)


@given(
    st.lists(
        st.integers(0, 2**64 - 1)
        | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
        | st.binary(max_size=20)
    )
)
def test_every_header_round_trips(fields: list[int | str | bytes]) -> None:
    """What is written is read as the same values of the same types."""
    header = tuple(fields[:15])
    read = decode_header(encode_header(header))
    assert read == header
    assert list(map(type, read)) == list(map(type, header))


@given(st.binary(max_size=60) | st.binary(max_size=8).map(lambda fields: b"\x93" + fields))
def test_bytes_read_as_a_header_are_its_encoding(data: bytes) -> None:
    """Whatever is accepted would be written as the very same bytes; nothing else goes wrong."""
    assert _read_and_written(decode_header, encode_header, data) in (None, data)


def test_a_body_comes_back_as_it_was() -> None:
    """Every type a body may hold."""
    assert decode_body(encode_body(BODY)) == BODY


def test_keys_are_sorted_by_their_bytes_at_every_level() -> None:
    """The order in which a body was built does not show."""
    accents: Value = {"é": 1, "z": 2, "\U0001f600": 3, "\uffff": 4}
    written = b"\x84\xa1z\x02\xa2\xc3\xa9\x01\xa3\xef\xbf\xbf\x04\xa4\xf0\x9f\x98\x80\x03"
    shuffled: dict[str, Value] = {"b": accents, "a": [{"y": 1, "x": 2}]}
    assert encode_body(shuffled) == b"\x82\xa1a\x91\x82\xa1x\x02\xa1y\x01\xa1b" + written


@pytest.mark.parametrize(
    "alternative",
    [
        pytest.param(b"\x82\xa1b\x01\xa1a\x01", id="keys out of order"),
        pytest.param(b"\x81\xa1a\x82\xa1b\x01\xa1a\x01", id="inner keys out of order"),
        pytest.param(b"\x82\xa1a\x01\xa1a\x01", id="a key twice"),
        pytest.param(b"\x81\xc4\x01a\x01", id="bytes for a key"),
        pytest.param(b"\x81\x01\x01", id="a number for a key"),
        pytest.param(b"\x82\x01\x01\xa1a\x01", id="a number and a text for keys"),
        pytest.param(b"\x81\x91\x01\x01", id="a list for a key"),
        pytest.param(b"\xde\x00\x01\xa1a\x01", id="map16"),
        pytest.param(b"\x81\xa1a\xcc\x01", id="uint8 for 1"),
        pytest.param(b"\x81\xa1a\xd0\x01", id="int8 for 1"),
        pytest.param(b"\x81\xa1a\xd0\xff", id="int8 for -1"),
        pytest.param(b"\x81\xa1a\xca" + struct.pack(">f", 1.5), id="float32"),
        pytest.param(b"\x81\xa1a\xcb" + struct.pack(">d", -0.0), id="minus zero"),
        pytest.param(b"\x81\xa1a\xcb" + struct.pack(">d", float("nan")), id="not a number"),
        pytest.param(b"\x81\xa1a\xcb" + struct.pack(">d", float("inf")), id="infinity"),
        pytest.param(b"\x81\xa1a\xd9\x01x", id="str8"),
        pytest.param(b"\x81\xa1a\xdc\x00\x01\x01", id="array16"),
        pytest.param(b"\x81\xa1a\xa3\xed\xa0\x80", id="a lone surrogate"),
        pytest.param(b"\x81\xa1a\xa1\x00", id="U+0000 in a field"),
        pytest.param(b"\x81\xa1\x00\x01", id="U+0000 in a key"),
        pytest.param(b"\x81\xa1a\x81\xa4text\xa1\x00", id="U+0000 in an inner text"),
        pytest.param(b"\x81\xa1a\xd4\x05\x00", id="extension"),
        pytest.param(b"\x81\xa1a\xd6\xff\x00\x00\x00\x01", id="timestamp"),
        pytest.param(b"\x81\xa1a\x01\x01", id="a byte after the end"),
        pytest.param(b"\x81\xa1a", id="cut short"),
        pytest.param(b"\x91\x01", id="a list"),
        pytest.param(b"\xc0", id="nil"),
        pytest.param(b"", id="nothing"),
        pytest.param(b"\x81\xa1a" + b"\x91" * 32 + b"\x01", id="33 deep"),
        pytest.param(b"\x81\xa1a" + b"\x91" * 5000 + b"\x01", id="5001 deep"),
        pytest.param(b"\xdf\xff\xff\xff\xff", id="four thousand million entries promised"),
    ],
)
def test_other_encodings_of_a_body_are_refused(alternative: bytes) -> None:
    """Two sequences of bytes never mean the same body, and none makes the reader fail otherwise."""
    with pytest.raises(NotCanonical):
        decode_body(alternative)


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        float("-inf"),
        2**64,
        -(2**63) - 1,
        "\ud800",
        "a\0b",
        ["\0"],
        {"inner": "\0"},
        {"text": "\0"},
        {"in\0ner": 1},
        {1: 1},
        {1: 1, "a": 1},
        {b"a": 1},
        {"\ud800": 1},
        {1, 2},
        bytearray(b"x"),
        memoryview(b"x"),
        object(),
        1j,
        Colour.RED,
        Weight(1),
        {Colour.RED: 1},
    ],
    ids=lambda value: repr(value).split(" at ")[0],
)
def test_values_of_another_type_are_not_written(value: Any) -> None:
    """A body holds what every language reads alike, and nothing that only looks like it."""
    with pytest.raises(NotCanonical):
        encode_body({"a": value})
    with pytest.raises(NotCanonical):
        encode_body({"a": [{"b": [value]}]})


def test_an_error_names_the_field() -> None:
    """Whoever built the body learns where to look."""
    with pytest.raises(NotCanonical, match="'weight' holds a Weight"):
        encode_body({"a": [{"weight": [Weight(1)]}]})


def test_nul_is_allowed_in_the_text_alone() -> None:
    """The text of a memory is stored as it is; every other string stays free of U+0000."""
    body: dict[str, Value] = {"z": 1, "text": "a\0b", "a": 1}
    assert encode_body(body) == b"\x83\xa1a\x01\xa4text\xa3a\x00b\xa1z\x01"
    assert decode_body(encode_body(body)) == body
    with pytest.raises(NotCanonical):
        encode_body({"text": ["\0"]})
    with pytest.raises(NotCanonical):
        encode_body({"text": "\0", "key": "\0"})


def test_minus_zero_is_written_as_zero() -> None:
    """Numbers that compare equal have equal bytes, also inside lists and maps."""
    assert encode_body({"a": -0.0, "b": [-0.0], "c": {"d": -0.0}}) == encode_body(
        {"a": 0.0, "b": [0.0], "c": {"d": 0.0}}
    )


def test_a_tuple_is_written_as_a_list() -> None:
    """The two are one type outside Python."""
    assert encode_body({"a": (1, (2,))}) == encode_body({"a": [1, [2]]})


def test_nesting_ends_at_32() -> None:
    """The body itself is the first level; the 32nd may hold values, not containers."""
    assert decode_body(encode_body({"a": nested(31)})) == {"a": nested(31)}
    with pytest.raises(NotCanonical, match="32 deep"):
        encode_body({"a": nested(32)})


def test_a_list_that_holds_itself_is_refused() -> None:
    """A cycle is too deep, not a crash."""
    cycle: list[Any] = []
    cycle.append({"again": cycle})
    with pytest.raises(NotCanonical, match="32 deep"):
        encode_body({"a": cycle})


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
    | st.binary(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=4) | st.lists(inner, max_size=4).map(tuple) | st.dictionaries(TEXTS, inner, max_size=4)
    ),
    max_leaves=12,
)
BODIES = st.dictionaries(TEXTS, VALUES, max_size=6)


@given(BODIES)
def test_every_body_round_trips(body: dict[str, Value]) -> None:
    """What is written is read as the same values, and written again as the same bytes."""
    data = encode_body(body)
    assert decode_body(data) == as_read(body)
    assert encode_body(decode_body(data)) == data


@given(BODIES, st.randoms())
def test_the_order_of_building_does_not_show(body: dict[str, Value], random: Any) -> None:
    """Equal bodies have equal bytes."""
    keys = list(body)
    random.shuffle(keys)
    assert encode_body({key: body[key] for key in keys}) == encode_body(body)


@given(st.binary(max_size=60) | st.binary(max_size=8).map(lambda value: b"\x81\xa1a" + value))
def test_bytes_read_as_a_body_are_its_encoding(data: bytes) -> None:
    """Whatever is accepted would be written as the very same bytes; nothing else goes wrong."""
    assert _read_and_written(decode_body, encode_body, data) in (None, data)


def test_no_flipped_bit_is_read_as_the_same() -> None:
    """A changed bit is refused, or gives another value whose own encoding it is."""
    for header in flips(encode_header(HEADER)):
        assert _read_and_written(decode_header, encode_header, header) in (None, header)
    for body in flips(encode_body(BODY)):
        assert _read_and_written(decode_body, encode_body, body) in (None, body)


def _read_and_written(read: Callable[[bytes], Any], write: Callable[[Any], bytes], data: bytes) -> bytes | None:
    try:
        return write(read(data))
    except NotCanonical:
        return None
