"""The fields of a memory as options of a command."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Annotated, Any, NamedTuple

import typer

from ..rows import digests


class Field(NamedTuple):
    """One field: its name, its type as an option, and what --help says of it. `taken` makes it what Memory takes."""

    name: str
    type: Any
    help: str
    option: str = ""
    metavar: str | None = None
    taken: Callable[[Any], Any] | None = None


def pairs(given: Sequence[str]) -> dict[str, str]:
    """NAME=VALUE pairs as a mapping."""
    found = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        if not (name and equals):
            raise typer.BadParameter(f"{pair!r} is not NAME=VALUE.", param_hint="--meta")
        found[name] = value
    return found


KEY = Field("key", str, "What it is the value of: it takes an older value's place.")
PLACE = Field("place", int, "Its place in the thread, from 0.", metavar="N")
THREAD = Field("thread", str, "The conversation it is a turn of.")
COMMAND_ID = Field("command_id", str, "Names this command: repeated, it changes nothing.", metavar="NAME")
SUPERSEDES = Field("supersedes", str, "The memory whose place it takes, by its id.", metavar="ID")
REASON = Field("reason", str, "Why. It is put on record.")

REVISED = (
    Field("kind", str, "What kind of memory it is: a word, `note` where nothing is said."),
    Field("source", str, "human, agent, tool, consolidated or imported."),
    Field("subject", str, "Whose data it is."),
    Field("importance", float, "From 0 to 1; 0.5 where nothing is said."),
    Field("confidence", float, "How sure it is, from 0 to 1."),
    Field("author", str, "Who wrote it."),
    Field("occurred_at", str, "When it happened: 2026-05-08T13:56:00Z.", metavar="TIME"),
    Field("valid_from", str, "From when on it is true.", metavar="TIME"),
    Field("expires_at", str, "From when on it is not recalled.", metavar="TIME"),
    Field("evidence", list[str], "What bears it out: a link, a file. Can be repeated."),
    Field("label", str, "How confidential it is: a word of your own."),
    Field("trust", str, "How far it is trusted: a word of your own."),
    Field("metadata", list[str], "Metadata. Can be repeated.", "--meta", "NAME=VALUE", pairs),
    Field("derived_from", list[str], "The `leaf` of an event it was made from. Can be repeated.", "", "HEX", digests),
)
"""The fields that a memory is stored with, and that a revision can give other values."""

SHARED = (Field("tags", list[str], "A tag. Can be repeated.", "--tag"), *REVISED)
"""The fields that many memories can be stored with at once."""

STORED = (*SHARED, KEY, SUPERSEDES, THREAD, PLACE, COMMAND_ID)
"""All that a memory can be stored with, besides its text and its namespace."""

CHANGED = (
    Field("tags_added", list[str], "A tag to add. Can be repeated.", "--add-tag", "TAG"),
    Field("tags_removed", list[str], "A tag to take away. Can be repeated.", "--remove-tag", "TAG"),
    Field("cleared", list[str], "A field to leave without a value. Can be repeated.", "--clear", "FIELD"),
    *REVISED,
    REASON,
    COMMAND_ID,
)
"""All that a revision can say, besides the text."""


def takes(*fields: Field) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for each field; those that were given come to it as `fields`, a mapping."""
    known = {field.name: field for field in fields}

    def give(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True)

        @wraps(command)
        def run(*arguments: Any, **options: Any) -> None:
            given = {name: options.pop(name) for name in known}
            command(*arguments, fields=_taken(known, given), **options)

        parameters = [p for p in own.parameters.values() if p.name != "fields"]
        run.__signature__ = own.replace(  # type: ignore[attr-defined]  # what `verb` reads
            parameters=[*parameters, *(_parameter(field) for field in fields)]
        )
        return run

    return give


def _taken(known: Mapping[str, Field], given: Mapping[str, Any]) -> dict[str, Any]:
    said = {name: value for name, value in given.items() if value not in (None, [])}
    return {name: taken(value) if (taken := known[name].taken) else value for name, value in said.items()}


def _parameter(field: Field) -> inspect.Parameter:
    option = field.option or f"--{field.name.replace('_', '-')}"
    metavar = field.metavar or ("NUMBER" if field.type is float else field.name.removesuffix("s").upper())
    described = typer.Option(option, help=field.help, metavar=metavar, show_default=False)
    return inspect.Parameter(
        field.name,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=None,
        annotation=Annotated[field.type | None, described],
    )
