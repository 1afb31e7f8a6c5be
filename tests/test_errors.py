"""The errors: one tree, drawn where it is defined, and messages that end with what to do."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import tallystick
from tallystick import errors
from tallystick.errors import LogDamaged, TallystickError, ViewsDamaged

SOURCE = Path(tallystick.__file__).parent
CLASSES = {name: kind for name, kind in vars(errors).items() if isinstance(kind, type)}
WAYS_OUT = (
    "add", "ask", "forget", "give", "install", "name", "open", "put", "read", "repeat", "run", "set", "stop", "store",
    "supply", "try", "upgrade", "use", "write", "delete", "mend", "free", "check", "choose", "create", "keep", "look",
    "rebuild", "recall", "restore", "replace",
)  # fmt: skip
"""What an instruction begins with."""


def drawn() -> dict[str, str | None]:
    """Each class of the tree in the docstring, and the class that it hangs from."""
    parents: dict[str, str | None] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"((?:│   |    |├── |└── )*)([A-Z]\w+)(?:  |$)", line)
        if found:
            depth = len(found[1]) // 4
            path = [*path[:depth], found[2]]
            parents[found[2]] = path[depth - 1] if depth else None
    return parents


def test_the_tree_is_drawn_as_it_is() -> None:
    """The drawing at the top of errors.py names every class, under its base class, and no other."""
    bases = {name: kind.__bases__[0].__name__ for name, kind in CLASSES.items()}
    assert drawn() == {**bases, "TallystickError": None}


def test_every_branch_of_the_drawing_says_what_it_means() -> None:
    """Whoever reads the tree learns what each error is about."""
    lines = [line for line in (errors.__doc__ or "").splitlines() if "── " in line]
    assert len(lines) == len(CLASSES) - 1
    assert all(re.search(r"\w {2,}\S", line) for line in lines)


def test_there_is_one_tree() -> None:
    """No error of ours is defined in another module, where nobody would look for it."""

    def below(kind: type[TallystickError]) -> set[type[TallystickError]]:
        return {kind}.union(*(below(each) for each in kind.__subclasses__()))

    assert below(TallystickError) == set(CLASSES.values())


PLAIN = [kind for kind in CLASSES.values() if "__init__" not in vars(kind) or kind in (TallystickError, LogDamaged)]


@pytest.mark.parametrize("kind", PLAIN, ids=lambda kind: kind.__name__)
def test_the_docstring_is_the_default_message(kind: type[TallystickError]) -> None:
    """An error that is raised without a message says what its class is about; a message takes its place."""
    assert str(kind()) == inspect.cleandoc(kind.__doc__ or "")
    assert str(kind("Something else.")) == "Something else."


def test_damage_says_where_it_is() -> None:
    """The log and the first bad position can be read from the error by a program."""
    damage = LogDamaged("Damaged.", log="memory", position=7)
    assert (damage.log, damage.position) == ("memory", 7)
    assert (LogDamaged().log, LogDamaged().position) == (None, None)


@pytest.mark.parametrize("kind", [kind for kind in CLASSES.values() if kind is not TallystickError])
def test_a_default_message_ends_with_what_to_do(kind: type[TallystickError]) -> None:
    """The last sentence of an error's docstring tells its reader what to do next."""
    assert says_what_to_do(inspect.cleandoc(kind.__doc__ or "")), kind.__doc__


@pytest.mark.parametrize("kind", [LogDamaged, ViewsDamaged])
def test_a_remedy_is_something_to_do(kind: type[LogDamaged] | type[ViewsDamaged]) -> None:
    """What ends every message about damage names the command that helps."""
    assert "`tallystick " in kind.remedy
    assert says_what_to_do(kind.remedy)


def says_what_to_do(message: str) -> bool:
    """Whether the last sentence of a message, or what follows its last colon, is an instruction."""
    last = re.split(r"(?<=[.?!])\s+(?=[A-Z`])", message.strip())[-1].lower()
    instruction = rf"(?:^|[;:(]\s*|^if .*, |\b(?:and|then|or)\s+)(?:{'|'.join(WAYS_OUT)})\b"
    return re.search(rf"{instruction}|goes on|did you mean", last) is not None


PARTS = {"events/kinds.py"}
"""Modules whose messages become part of another one, which says what to do."""


def raised() -> list[tuple[str, str]]:
    """Where our errors are raised with a message that stands in the source, and that message."""
    found = []
    for file in sorted({*SOURCE.rglob("*.py")} - {SOURCE / part for part in PARTS}):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CLASSES and node.args:
                found.append((f"{file.relative_to(SOURCE)} line {node.lineno}", _message(node.args[0])))
    return [(place, message) for place, message in found if message]


def _message(node: ast.expr) -> str:
    """The text of a message, what is filled in standing between braces; nothing where it is made elsewhere."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_message(value) for value in node.values)
    if isinstance(node, ast.FormattedValue):
        filled = ast.unparse(node.value)
        remedy = filled.endswith(".remedy") or filled.isupper()
        return "Run `this`." if remedy else f"{{{filled}}}"
    return ""


def test_every_message_ends_with_what_to_do() -> None:
    """Wherever one of our errors is raised its message says, at the end, what to do about it."""
    messages = raised()
    assert len(messages) > 50
    assert [(place, message) for place, message in messages if not says_what_to_do(message)] == []
