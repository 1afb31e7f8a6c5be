"""The commands of the command line, as they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import typer

from tallystick.entrypoints.cli import app

COMMON = {"at", "as_json", "debug"}


def _walk(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _walk(command, f"{before}{name} ")
        else:
            yield before + name, command


COMMANDS: dict[str, Any] = dict(_walk(typer.main.get_command(app)))
"""Every command by the words that start it, such as `import git`."""


def command_of(arguments: Sequence[str]) -> str:
    """The command that these arguments start."""
    at = 2 if arguments[0] == "-C" else 0
    first, both = arguments[at], " ".join(arguments[at : at + 2])
    return next(name for name in (both, first, f"{first} file") if name in COMMANDS)


def document_of(arguments: Sequence[str]) -> str:
    """The section of docs/json.md that describes what these arguments print."""
    command = command_of(arguments)
    return "recall --context" if command == "recall" and "--context" in arguments else command


def options_of(command: str) -> set[str]:
    """The options of a command as they are typed, those that all have included."""
    return {option for parameter in COMMANDS[command].params for option in parameter.opts if option.startswith("-")}


def parameters_of(command: str) -> set[str]:
    """What a command is given, by the names in its code, without what all have."""
    return {parameter.name for parameter in COMMANDS[command].params} - COMMON
