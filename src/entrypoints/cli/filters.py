"""The options that leave memories out of what is found, and events out of what is listed."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

_Texts = list[str] | None
_OPTIONS: dict[str, tuple[Any, str, str]] = {
    "namespaces": (_Texts, "--namespace", "Where to look, instead of the project's namespace. Can be repeated."),
    "under": (str | None, "--under", "Look in this namespace and all below it."),
    "tags": (_Texts, "--tag", "Only what has this tag. Can be repeated: all of them."),
    "kinds": (_Texts, "--kind", "Only this kind. Can be repeated: any of them."),
    "actors": (_Texts, "--actor", "Only what this actor stored. Can be repeated: any of them."),
    "sources": (_Texts, "--source", "Only from this source. Can be repeated: any of them."),
    "subject": (str | None, "--subject", "Only the data of this person."),
    "since": (str | None, "--since", "Only what occurred, or was recorded, at this time or later."),
    "before": (str | None, "--before", "Only what occurred, or was recorded, before this time."),
    "min_importance": (float | None, "--min-importance", "Only what is at least so important, from 0 to 1."),
    "as_of": (str | None, "--as-of", "Only what was valid at this time, also if it is superseded by now."),
    "status": (_Texts, "--status", "current, expired, forgotten or superseded. Can be repeated: any of them."),
    "at_position": (int | None, "--at-position", "As the store stood when the memory log ended with this position."),
    "known_at": (str | None, "--known-at", "As the store stood at this time."),
    "where": (str | None, "--where", 'Fields and metadata, as JSON: {"team": "web", "importance": {"$gt": 0.5}}.'),
}


_TRAIL: dict[str, tuple[Any, str, str]] = {
    "actor": (str | None, "--actor", "Only what this actor did."),
    "memory": (str | None, "--memory", "Only what was done with this memory, by its id."),
    "since": (str | None, "--since", "Only what happened at this time or later."),
    "before": (str | None, "--before", "Only what happened before this time."),
}
_METAVARS = {
    "namespaces": "NAMESPACE", "under": "NAMESPACE", "tags": "TAG", "kinds": "KIND", "actors": "ACTOR",
    "sources": "SOURCE", "subject": "SUBJECT", "since": "TIME", "before": "TIME", "min_importance": "NUMBER",
    "status": "STATUS", "at_position": "POSITION", "known_at": "TIME", "as_of": "TIME", "where": "JSON",
    "actor": "ACTOR", "memory": "ID",
}  # fmt: skip


def filtered(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that filter memories, as its `filters`: those given, by the names Python has."""
    return _with_options(command, _OPTIONS)


def trailed(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that filter events, as its `filters`: those given, by the names Python has."""
    return _with_options(command, _TRAIL)


def _with_options(command: Callable[..., None], offered: dict[str, tuple[Any, str, str]]) -> Callable[..., None]:
    @wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        filters = {name: value for name in offered if (value := options.pop(name)) is not None}
        if "where" in filters:
            filters["where"] = _where(filters["where"])
        if "before" in filters:  # --until is a position of the log
            filters["until"] = filters.pop("before")
        command(*arguments, filters=filters, **options)

    own = [each for each in inspect.signature(command, eval_str=True).parameters.values() if each.name != "filters"]
    added = [_parameter(name, *option) for name, option in offered.items()]
    run.__signature__ = inspect.Signature([*own, *added])  # type: ignore[attr-defined]  # what typer reads
    return run


def _parameter(name: str, kind: Any, option: str, explained: str) -> inspect.Parameter:
    shown = typer.Option(option, metavar=_METAVARS[name], help=explained, show_default=False)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind, shown])


def _where(written: str) -> Any:
    try:
        return json.loads(written)
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"{written!r:.80} is not JSON ({error}).", param_hint="--where") from error
