"""The section of docs/log-format.md that lists the bodies of events, made from their definitions."""

from __future__ import annotations

import sys
import typing
from collections.abc import Collection, Iterator
from inspect import getdoc, isclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, JsonValue
from pydantic.fields import FieldInfo

from tallystick.events import kinds

PAGE = Path(__file__).parents[1] / "docs" / "log-format.md"
BEGIN = "<!-- events: made by `python -m tools.log_format --write` -->\n"
END = "<!-- end of events -->\n"

# The types that the page explains, under the names it gives them.
_NAMED = {
    "name": kinds.Name,
    "word": kinds.Word,
    "share": kinds.Share,
    "instant": kinds.Instant,
    "32 bytes": kinds.Hash,
    "16 bytes": kinds.StreamId,
    "value": JsonValue,
    "text": str,
    "bytes": bytes,
    "integer": int,
    "float": float,
    "bool": bool,
    "null": type(None),
}
_LIMITS = {"exactly": "{} long", "min_length": "at least {} long", "max_length": "at most {} long", "pattern": "`{}`"}
_LIMITS |= {"ge": "&ge; {}", "gt": "&gt; {}", "le": "&le; {}", "lt": "&lt; {}"}


def refreshed(page: str) -> str:
    """The page, its section of events as the registry has them."""
    before, _, rest = page.partition(BEGIN)
    return before + BEGIN + "\n" + section() + "\n" + END + rest.partition(END)[2]


def section() -> str:
    """The fields that all bodies share, then each registered kind, then the maps inside them."""
    common = kinds.Event.model_fields
    events = [
        _table(f"`{kind}`, schema {schema}{', in clear' * event.CLEAR}", event, common)
        for (kind, schema), event in sorted(kinds.REGISTRY.items())
    ]
    maps = [_table(f"The map `{each.__name__}`", each) for each in vars(kinds).values() if _is_map(each)]
    return "\n".join([_table("Every body", kinds.Event), *events, *maps])


def _is_map(each: Any) -> bool:
    ours = isclass(each) and each.__module__ == kinds.__name__
    return ours and issubclass(each, BaseModel) and not issubclass(each, kinds.Event)


def _table(title: str, model: type[BaseModel], left_out: Collection[str] = ()) -> str:
    hints = typing.get_type_hints(model, include_extras=True)
    rows = [
        f"| `{name}` | {_type(hints[name], field)} | {_default(field)} |\n"
        for name, field in model.model_fields.items()
        if name not in left_out
    ]
    head = "| field | type | left out where |\n|---|---|---|\n" if rows else "No fields but those of every body.\n"
    return f"### {title}\n\n{getdoc(model)}\n\n{head}{''.join(rows)}"


def _type(hint: Any, field: FieldInfo) -> str:
    """The type of a field, with the limits that its default carries."""
    return _words(hint) + (_limits(field.metadata) if isclass(hint) else "")


def _words(hint: Any) -> str:
    """A type as the page says it."""
    known = [name for name, named in _NAMED.items() if hint is named or hint == named]
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if known:
        return known[0]
    if origin is typing.Annotated:
        kind, of, content = _words(parts[0]).partition(" of ")
        return kind + _limits(hint.__metadata__) + of + content
    if origin is Literal:
        return ", ".join(f"`{part}`" for part in parts)
    if origin is tuple:
        return f"list of {_words(parts[0])}"
    if origin is dict:
        return f"map of {_words(parts[0])} to {_words(parts[1])}"
    if parts:
        return " or ".join(map(_words, parts))
    return f"map `{hint.__name__}`"


def _limits(metadata: Any) -> str:
    found = dict(limit for each in metadata for limit in _limits_of(each))
    if found.get("min_length", 0) == found.get("max_length"):
        found["exactly"] = found.pop("min_length", found.pop("max_length"))
    return f" ({', '.join(_LIMITS[name].format(found[name]) for name in found)})" if found else ""


def _limits_of(constraint: Any) -> Iterator[tuple[str, Any]]:
    for each in constraint.metadata if isinstance(constraint, FieldInfo) else [constraint]:
        yield from ((name, getattr(each, name)) for name in _LIMITS if getattr(each, name, None) is not None)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "never"
    default = field.get_default(call_default_factory=True)
    if default is None:
        return "null"
    return "empty" if default in ((), {}) else f"`{default}`"


if __name__ == "__main__":
    found = PAGE.read_text(encoding="utf-8")
    if "--write" in sys.argv:
        PAGE.write_text(refreshed(found), encoding="utf-8")
    elif refreshed(found) != found:
        sys.exit(f"{PAGE} does not list the events as they are. Refresh it: python -m tools.log_format --write")
