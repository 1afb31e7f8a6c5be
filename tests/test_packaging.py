"""The package holds every room, is seen under its name, and asks for one Python everywhere."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def pyproject() -> dict[str, Any]:
    """The project's own description."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_every_room_is_packaged() -> None:
    """A folder of code that `packages` forgets would be missing from the wheel."""
    found = {path.relative_to(ROOT / "src").parent for path in (ROOT / "src").rglob("*.py")}
    rooms = [".".join(("tallystick", *room.parts)) for room in found]
    assert sorted(pyproject()["tool"]["setuptools"]["packages"]) == sorted(rooms)


def test_every_room_has_an_init() -> None:
    """Without `__init__.py` a room is a namespace package, which other distributions could add to."""
    folders = {path.parent for path in (ROOT / "src").rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_the_link_shows_src_under_the_name_of_the_package() -> None:
    """Type checkers and editors find `tallystick` through the link in the root."""
    assert (ROOT / "tallystick").readlink() == Path("src")


def test_make_refuses_the_pythons_that_the_package_refuses() -> None:
    """The oldest Python is named in pyproject.toml and in the Makefile: they must agree."""
    major, minor = pyproject()["project"]["requires-python"].removeprefix(">=").split(".")
    assert f"sys.version_info < ({major}, {minor})" in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_what_is_no_code_is_packaged() -> None:
    """A file that the code reads beside itself would be missing from the wheel if `package-data` did not name it."""
    named = pyproject()["tool"]["setuptools"]["package-data"]
    found = [path for path in (ROOT / "src").rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")]
    for path in found:
        room = ".".join(("tallystick", *path.relative_to(ROOT / "src").parent.parts))
        assert any(path.match(pattern) for pattern in named.get(room, [])), path
    assert found
