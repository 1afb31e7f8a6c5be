"""What is public is exported, explained and documented, and nothing else is public."""

import ast
import dataclasses
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tallystick
from tallystick import Memory
from tallystick.commands.store import Store

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
DOCUMENTS = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)

VERBS = [name for name in vars(Memory) if not name.startswith("_")]


def documented(name: str) -> bool:
    """Whether a name stands in a code span or block of the README or of a page of the documentation."""
    code = re.findall(r"```.*?```|`[^`\n]+`", DOCUMENTS, re.DOTALL)
    return any(re.search(rf"(?<![\w]){re.escape(name)}(?![\w])", each) for each in code)


def test_the_public_names_are_the_exported_ones() -> None:
    """`from tallystick import *` gives what is public, in order, and type checkers see the same names."""
    tree = ast.parse(Path(tallystick.__file__).read_text(encoding="utf-8"))
    relative = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level == 1]
    imported = sorted(alias.name for node in relative for alias in node.names)
    assert sorted(tallystick.__all__) == tallystick.__all__ == imported
    names: dict[str, Any] = {}
    exec("from tallystick import *", names)
    assert set(names) - {"__builtins__"} == set(tallystick.__all__)


def test_what_is_not_public_is_not_there() -> None:
    """A name that the package does not have is an AttributeError, as of any module."""
    with pytest.raises(AttributeError, match="Memori"):
        tallystick.Memori  # noqa: B018
    assert not hasattr(tallystick, "Store")


@pytest.mark.parametrize("name", tallystick.__all__)
def test_every_public_name_is_documented(name: str) -> None:
    """A public name stands in the README or in the documentation."""
    assert documented(name)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_documented(verb: str) -> None:
    """What Memory can be asked for is shown in the README or in the documentation."""
    assert re.search(rf"(?:\bmemory|\bMemory)\.{verb}\(|`{verb}(?:\(|`)", DOCUMENTS)


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(Store)])
def test_every_field_of_a_memory_is_documented(field: str) -> None:
    """What a memory can be stored with is said where `store` is explained."""
    explained = inspect.getdoc(Memory.store) or ""
    assert re.search(rf"\b{field}\b", explained + str(inspect.signature(Memory.store)))


def members() -> list[tuple[str, Any]]:
    """Every public class, and its public methods and properties."""
    found: list[tuple[str, Any]] = []
    for name in tallystick.__all__:
        kind = getattr(tallystick, name)
        found.append((name, kind))
        for member, value in vars(kind).items():
            if not member.startswith("_") and (callable(value) or isinstance(value, property | classmethod)):
                found.append((f"{name}.{member}", value))
    return found


@pytest.mark.parametrize(("name", "member"), members(), ids=[name for name, _ in members()])
def test_every_public_name_has_a_docstring(name: str, member: Any) -> None:
    """Whoever asks for help gets a sentence that begins with a capital letter and ends with a full stop."""
    lines = (inspect.getdoc(member) or "").splitlines()
    assert lines, name
    assert re.match(r"[A-Z`]", lines[0]), lines[0]
    assert re.search(r"[.:?]$", lines[0]), lines[0]
    assert not lines[0].startswith(f"{name}("), "a named tuple explains itself in its own words"


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_says_what_its_types_are(verb: str) -> None:
    """Types of parameters and results are written down, for people and for type checkers."""
    function: Callable[..., Any] = getattr(Memory, verb)
    signature = inspect.signature(function)
    assert signature.return_annotation is not inspect.Signature.empty
    for parameter in signature.parameters.values():
        assert parameter.name == "self" or parameter.annotation is not inspect.Parameter.empty


def test_the_types_of_the_package_are_published() -> None:
    """The marker that tells type checkers to read our types is part of the package."""
    assert (Path(tallystick.__file__).parent / "py.typed").is_file()
