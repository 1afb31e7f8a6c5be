"""Conditions over the `memories` view: SQL in which every value of a caller is a parameter."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from reprlib import repr as short
from typing import Any, NamedTuple

from ..errors import Refused
from ..events.claims import composed
from ..events.instants import instant

_TEXTS = ("kind", "source", "actor", "author", "subject", "key", "thread", "label", "trust")
_NUMBERS = ("importance", "confidence", "place", "reinforced", "revision")
_TIMES = ("occurred_at", "recorded_at", "revised_at", "valid_from", "expires_at")
_FLAGS = ("protected", "pinned")
FIELDS = (*_TEXTS, *_NUMBERS, *_TIMES, *_FLAGS, "tags")
"""The fields of a memory that `where` knows by name."""
_ELSEWHERE = {"namespace": "namespaces=", "status": "status=", "text": "a question to recall"}
METADATA = "metadata."
MOST = sys.float_info.max

_ORDERS = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
OPERATORS = (*_ORDERS, "$ne", "$in")
_ITEMS = (
    "SELECT 1 FROM json_each(memories.metadata) AS field, json_each(field.value) AS item WHERE field.key = ? AND {}"
)


class Condition(NamedTuple):
    """What a row must fulfil, and the values that stand in it."""

    sql: str
    parameters: tuple[Any, ...] = ()


ALWAYS, NEVER = Condition("1"), Condition("0")


def every(conditions: Iterable[Condition]) -> Condition:
    """All of them."""
    return _joined(conditions, " AND ", ALWAYS)


def some(conditions: Iterable[Condition]) -> Condition:
    """At least one of them."""
    return _joined(conditions, " OR ", NEVER)


def among(column: str, values: Sequence[Any]) -> Condition:
    """The column holds one of these values."""
    return Condition(f"memories.{column} IN ({', '.join('?' * len(values))})", tuple(values))


def tagged(tag: Any) -> Condition:
    """The memory has this tag."""
    return Condition("EXISTS (SELECT 1 FROM json_each(memories.tags) WHERE value = ?)", (called(tag, "tags"),))


def where(wanted: Mapping[str, Any]) -> Condition:
    """What `where=` asks for: every field named has the value, or what its operators say.

    A field of the memory goes by its name, any other name is one of its metadata: `a.b` is `b` inside `a`, and
    `metadata.kind` the metadata that is called like a field. Raises Refused, naming what can't be asked.
    """
    if not isinstance(wanted, Mapping):
        raise Refused(f"where is {short(wanted)}: give a mapping of fields to values, such as {{'author': 'Ana'}}.")
    return every(_said_of(name, asked) for name, asked in wanted.items())


def text(value: Any, field: str) -> str:
    """A text that can be compared. Raises Refused for anything else."""
    if not isinstance(value, str):
        raise Refused(f"{field}: {value!r} is not a text. Give a str.")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise Refused(f"{field}: there is a lone surrogate at character {error.start}. Replace it.") from error
    if "\0" in value:
        raise Refused(f"{field}: {value!r} has a U+0000, which no record may hold. Give a text without it.")
    return value


def called(value: Any, field: str) -> str:
    """A text as names are kept. Raises Refused for anything else."""
    return composed(text(value, field))


def number(value: Any, field: str) -> float:
    """A number that can be compared. Raises Refused for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not -MOST <= value <= MOST:
        raise Refused(f"{field}: {value!r} is not a number. Give an int or a float.")
    return value if -(2**63) <= value < 2**63 else float(value)


def _joined(conditions: Iterable[Condition], word: str, nothing: Condition) -> Condition:
    parts = list(conditions)
    if not parts:
        return nothing
    return Condition(f"({word.join(c.sql for c in parts)})", tuple(p for c in parts for p in c.parameters))


def _said_of(name: Any, asked: Any) -> Condition:
    if not isinstance(name, str) or name in _ELSEWHERE:
        raise Refused(f"where can't ask for {name!r}. Give {_ELSEWHERE.get(name, 'a text as the name of a field')}.")
    if not isinstance(asked, Mapping):
        return _equal(name, asked)
    unknown = [operator for operator in asked if operator not in OPERATORS]
    if unknown or not asked:
        raise Refused(
            f"where: {name} says {short(asked)}. Give a value, or one of the operators {', '.join(OPERATORS)}."
        )
    return every(_compared(name, operator, value) for operator, value in asked.items())


def _compared(name: str, operator: str, value: Any) -> Condition:
    if operator == "$ne":
        equal = _equal(name, value)
        return Condition(f"NOT {equal.sql}", equal.parameters)
    if operator == "$in":
        if isinstance(value, str | Mapping) or not isinstance(value, Sequence | set | frozenset):
            raise Refused(f"where: $in of {name} is {short(value)}. Give a list of values.")
        return some(_equal(name, each) for each in value)
    return _ordered(name, _ORDERS[operator], value)


def _equal(name: str, value: Any) -> Condition:
    if name == "tags":
        return tagged(value)
    if name in FIELDS:
        return Condition(f"(memories.{name} IS ?)", (None if value is None else _of_field(name, value),))
    if value is None:
        return Condition(f"(NOT EXISTS ({_ITEMS.format('item.value IS NOT NULL')}))", (_metadata(name),))
    wanted = value if isinstance(value, bool) else _of_metadata(name, value)
    return Condition(f"EXISTS ({_ITEMS.format('item.value IS ?')})", (_metadata(name), wanted))


def _ordered(name: str, sign: str, value: Any) -> Condition:
    if name == "tags" or name in _FLAGS:
        raise Refused(f"where: {name} has no order. Ask for a value of it, with $ne or with $in.")
    if name in FIELDS:
        return Condition(f"(memories.{name} {sign} ?)", (_of_field(name, value),))
    wanted = _of_metadata(name, value)
    types = "'text'" if isinstance(wanted, str) else "'integer', 'real'"
    return Condition(
        f"EXISTS ({_ITEMS.format(f'item.type IN ({types}) AND item.value {sign} ?')})", (_metadata(name), wanted)
    )


def _metadata(name: str) -> str:
    return text(name.removeprefix(METADATA), "where")


def _of_metadata(name: str, value: Any) -> str | float:
    if isinstance(value, str):
        return text(value, f"where: {name}")
    return number(value, f"where: {name}")


def _of_field(name: str, value: Any) -> Any:
    field = f"where: {name}"
    if name in _TIMES:
        return instant(value if isinstance(value, datetime | str) else str(value), field)
    if name in _NUMBERS:
        return number(value, field)
    if name in _FLAGS:
        if not isinstance(value, bool):
            raise Refused(f"{field}: {value!r} is not a flag. Give True or False.")
        return int(value)
    return called(value, field)
