"""The options by which recall and search leave memories out."""

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
    "until": (str | None, "--until", "Only what occurred, or was recorded, before this time."),
    "min_importance": (float | None, "--min-importance", "Only what is at least so important, from 0 to 1."),
    "status": (_Texts, "--status", "current, expired, forgotten or superseded. Can be repeated: any of them."),
    "where": (str | None, "--where", 'Fields and metadata, as JSON: {"team": "web", "importance": {"$gt": 0.5}}.'),
}


def filtered(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that filter, as its `filters`: those that were given, by the names that Python has."""

    @wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        filters = {name: value for name in _OPTIONS if (value := options.pop(name)) is not None}
        if "where" in filters:
            filters["where"] = _where(filters["where"])
        command(*arguments, filters=filters, **options)

    own = [each for each in inspect.signature(command, eval_str=True).parameters.values() if each.name != "filters"]
    run.__signature__ = inspect.Signature([*own, *map(_parameter, _OPTIONS)])  # type: ignore[attr-defined]
    return run


def _parameter(name: str) -> inspect.Parameter:
    kind, option, explained = _OPTIONS[name]
    metavar = {"since": "TIME", "until": "TIME", "where": "JSON"}.get(name)
    shown = typer.Option(option, metavar=metavar, help=explained, show_default=False)
    annotation = Annotated[kind, shown]  # type: ignore[valid-type]  # typer reads it when it runs
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _where(written: str) -> Any:
    try:
        return json.loads(written)
    except ValueError as error:
        raise typer.BadParameter(f"{written!r} is not JSON ({error}).", param_hint="--where") from error
