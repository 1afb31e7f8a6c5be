"""Every setting: from arguments, TALLYSTICK_* variables and the project file, in that order."""

from __future__ import annotations

import difflib
import getpass
import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from .errors import Refused

PREFIX = "TALLYSTICK_"
PROJECT_FILE = ".tallystick.toml"
KEYS_IN_ENVIRONMENT, KEYS_IN_KEYRING = "env", "keyring"
KEY_VARIABLE = f"{PREFIX}KEY_"
PASSPHRASE_VARIABLE = f"{PREFIX}PASSPHRASE"
_NO_SETTINGS = (
    PASSPHRASE_VARIABLE,
    *(f"{KEY_VARIABLE}{name}" for name in ("ROOT", "WRITER", "LOG", "KEK", "VIEWS", "INDEX")),
    *(f"{KEY_VARIABLE}{name}_PUB" for name in ("ROOT", "WRITER", "LOG")),
)
"""Secrets that only the environment may hold, read where they are needed and kept by nobody."""
_PATHS = ("path", "keys")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")  # one letter is a drive


class Settings(BaseSettings):
    """What a store is opened with where the caller says nothing."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True)

    path: Path = Path(".tallystick")
    """The store's directory."""
    namespace: str = "default"
    """The namespace that is stored to and recalled from."""
    actor: str | None = None
    """Who acts, as claimed; the user of the operating system where nothing is said."""
    keys: str | None = None
    """Where the store's keys are: a directory, `env` or `keyring`; the user's own key directory by default."""
    audit: Literal["grouped", "strict"] = "grouped"
    """When a read is on the disk: `grouped`, within 100 ms; `strict`, before anything is handed out."""
    model: str = "auto"
    """`auto` (what was chosen for the store, else the default), `none` (words only), or a model by name or folder."""


class Wrong(NamedTuple):
    """What is wrong with one variable or one line, `name`, of the project file where there is a `file`; and a way out.

    `file` is None for a variable, and for a value wherever it stands.
    """

    name: str
    file: Path | None
    what: str
    remedy: str


class Found(NamedTuple):
    """The settings as far as they can be read, the project file in force, and all that is wrong."""

    settings: Settings
    project: Path | None
    wrong: tuple[Wrong, ...]


def load_settings(start: Path | None = None) -> Settings:
    """The settings in force: TALLYSTICK_* before the project file found from `start` upwards before the defaults.

    Raises Refused for a name that is no setting, naming the nearest one, and for a value that is not allowed.
    """
    found = find_settings(start)
    for wrong in found.wrong:
        raise Refused(f"{wrong.what}. {wrong.remedy}")
    return found.settings


def find_settings(start: Path | None = None) -> Found:
    """As `load_settings`, but what can't be read is told and left out: a default stands for it."""
    wrong = list(_unknown([name for name in os.environ if name.startswith(PREFIX)], PREFIX))
    empty = {name: f"{PREFIX}{name.upper()}" for name in _PATHS if os.environ.get(f"{PREFIX}{name.upper()}") == ""}
    wrong += [_no_path(variable, None, variable) for variable in empty.values()]
    project = _project_file(start) if start is not None else None
    written, of_project = _read_project(project) if project else ({}, [])
    from_file = {name: value for name, value in written.items() if f"{PREFIX}{name.upper()}" not in os.environ}
    from_file |= {name: Settings.model_fields[name].default for name in empty}
    try:
        return Found(Settings(**from_file), project, (*wrong, *of_project))
    except ValidationError as error:
        refused = {".".join(map(str, each["loc"])): each["msg"] for each in error.errors()}
    values = [
        Wrong(name, None, f"The setting {name} is not allowed ({said})", "Set another value.")
        for name, said in refused.items()
    ]
    defaults = {name: Settings.model_fields[name].default for name in refused}
    return Found(Settings(**{**from_file, **defaults}), project, (*wrong, *of_project, *values))


def user() -> str:
    """The name of the operating system's user."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid-{os.getuid()}"


def write_project(directory: Path, store: Path, namespace: str, keys: str | None = None) -> Path:
    """Write the project file, by which commands below this directory find the store. Refuses where one is there."""
    file = directory / PROJECT_FILE
    text = f"path = {toml_text(os.path.relpath(store, directory))}\nnamespace = {toml_text(namespace)}\n"
    if keys is not None:
        text += f"keys = {toml_text(keys if _is_word(keys) else str(Path(keys).absolute()))}\n"
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError as error:
        raise Refused(f"{file} is there already and names a store. Use that one, or delete the file.") from error
    return file


def _project_file(start: Path) -> Path | None:
    for directory in (start.absolute(), *start.absolute().parents):
        if (directory / PROJECT_FILE).is_file():
            return directory / PROJECT_FILE
    return None


def _read_project(file: Path) -> tuple[dict[str, Any], list[Wrong]]:
    """The settings that stand in a project file, and what is wrong with it."""
    try:
        written = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        return {}, [Wrong("", file, f"{file} can't be read: {error}", "Mend it or delete it.")]
    wrong = list(_unknown(list(written), "", file))
    for name, value in written.items():
        if not isinstance(value, str):
            what = f"{file}: {name} is {value!r}, and every setting is a text"
            wrong.append(Wrong(name, file, what, "Write it in quotes."))
    wrong += [_no_path(name, file, f"{file}: {name}") for name in _PATHS if written.get(name) == ""]
    wrong += [each._replace(name="keys", file=file) for each in _no_place(written.get("keys"))]
    bad = {each.name for each in wrong}
    taken = {name: value for name, value in written.items() if name not in bad}
    paths = [name for name, value in taken.items() if name == "path" or (name == "keys" and not _is_word(value))]
    return {**taken, **{name: str(file.parent / taken[name]) for name in paths}}, wrong


def _is_word(keys: str) -> bool:
    """Whether a value of `keys` names a place that is no directory."""
    return keys in (KEYS_IN_ENVIRONMENT, KEYS_IN_KEYRING)


def refuse_no_place(keys: str) -> None:
    """Refuse what looks like a place of keys and is none, such as `vault:x`: it would be taken for a directory."""
    for wrong in _no_place(keys):
        raise Refused(f"{wrong.what}. {wrong.remedy}")


def _no_place(keys: Any) -> Iterator[Wrong]:
    if isinstance(keys, str) and not _is_word(keys) and (_SCHEME.match(keys) or _is_word(keys.strip().casefold())):
        yield Wrong(
            "keys",
            None,
            f"{keys!r} is no place that keys can be in",
            f"Give `{KEYS_IN_ENVIRONMENT}`, `{KEYS_IN_KEYRING}` or a directory; one of that name as {f'./{keys}'!r}.",
        )


def _no_path(name: str, file: Path | None, shown: str) -> Wrong:
    return Wrong(name, file, f"{shown} is empty, which is no path", "Give one; `.` is the current directory.")


def _unknown(names: Iterable[str], prefix: str, file: Path | None = None) -> Iterator[Wrong]:
    known = [f"{prefix}{name.upper() if prefix else name}" for name in Settings.model_fields]
    for name in names:
        if name not in known and not (prefix and name in _NO_SETTINGS):
            by_case = {each.casefold(): each for each in known}
            nearest = by_case[difflib.get_close_matches(name.casefold(), by_case, 1, cutoff=0.0)[0]]
            where = f" ({file})" if file else ""
            yield Wrong(name, file, f"{name} is not a setting{where}", f"Did you mean {nearest}?")


def toml_text(text: str) -> str:
    """A text as a TOML file has it, in quotes."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")  # then a JSON string is a TOML string
