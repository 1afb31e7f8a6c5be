"""Write docs/command-line-reference.md from the commands themselves: `python tools/command_line_reference.py`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from tallystick.entrypoints.cli import app

PAGE = Path(__file__).parents[1] / "docs" / "command-line-reference.md"
HEAD = """# The command line, command by command

Made from the commands by `python tools/command_line_reference.py`; [command-line.md](command-line.md) explains them.
"""
COMMON = ("at", "as_json", "debug")


def page() -> str:
    """The whole page."""
    root = typer.main.get_command(app)
    common = [p for p in next(iter(_commands(root)))[1].params if p.name in COMMON]
    parts = [HEAD, "## Every command\n", _table(common)]
    for name, command in _commands(root):
        own = [p for p in command.params if p.name not in COMMON]
        parts += [f"## `{name}`\n", f"```sh\n{_usage(name, own)}\n```\n", f"{inspect.cleandoc(command.help)}\n"]
        parts += [_table(own)] if own else []
    return "\n".join(parts)


def _commands(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


def _usage(name: str, parameters: list[Any]) -> str:
    words = [_argument(p) for p in parameters if p.param_type_name == "argument"]
    needed = [_typed(p) for p in parameters if p.param_type_name == "option" and p.required]
    return " ".join(["tallystick", name, *needed, *words, "[OPTIONS]"])


def _table(parameters: list[Any]) -> str:
    rows = [f"| `{_named(p)}` | {p.help}{_default(p)} |" for p in parameters]
    return "\n".join(["| | |", "|---|---|", *rows, ""])


def _named(parameter: Any) -> str:
    return _argument(parameter) if parameter.param_type_name == "argument" else _typed(parameter)


def _argument(parameter: Any) -> str:
    name = parameter.metavar or parameter.name.upper()
    return name if parameter.required else f"[{name}]"


def _typed(parameter: Any) -> str:
    """An option as it is typed, with what follows it."""
    if parameter.is_flag:
        return str(parameter.opts[0])
    return f"{parameter.opts[0]} {parameter.metavar or parameter.name.upper()}"


def _default(parameter: Any) -> str:
    shown = parameter.param_type_name == "option" and not parameter.is_flag and parameter.default not in (None, ())
    return f" `{parameter.default}` unless said otherwise." if shown else ""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
