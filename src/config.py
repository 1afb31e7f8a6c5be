"""Every setting: from arguments, TALLYSTICK_* variables and the project file, in that order."""

from __future__ import annotations

import difflib
import getpass
import json
import os
import tomllib
from pathlib import Path
from typing import Any, Literal

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
    """`auto` (the weights of the offline-models extra), `none` (words only), or the folder of an ONNX model."""


def load_settings(start: Path | None = None) -> Settings:
    """The settings in force: TALLYSTICK_* before the project file found from `start` upwards before the defaults.

    Raises Refused for a name that is no setting, naming the nearest one, and for a value that is not allowed.
    """
    _refuse_unknown([name for name in os.environ if name.startswith(PREFIX)], PREFIX)
    found = _project_file(start) if start is not None else None
    written = _read_project(found) if found else {}
    from_file = {name: value for name, value in written.items() if f"{PREFIX}{name.upper()}" not in os.environ}
    try:
        return Settings(**from_file)
    except ValidationError as error:
        first = error.errors()[0]
        raise Refused(
            f"The setting {'.'.join(map(str, first['loc']))} is not allowed ({first['msg']}). Set another value."
        ) from error


def user() -> str:
    """The name of the operating system's user."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid-{os.getuid()}"


def write_project(directory: Path, store: Path, namespace: str, keys: str | None = None) -> Path:
    """Write the project file, by which commands below this directory find the store. Refuses where one is there."""
    file = directory / PROJECT_FILE
    text = f"path = {_toml(os.path.relpath(store, directory))}\nnamespace = {_toml(namespace)}\n"
    if keys is not None:
        text += f"keys = {_toml(keys if _is_word(keys) else str(Path(keys).absolute()))}\n"
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


def _read_project(file: Path) -> dict[str, Any]:
    try:
        written = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Refused(f"{file} can't be read: {error}. Mend it or delete it.") from error
    _refuse_unknown(list(written), "", file)
    for name, value in written.items():
        if not isinstance(value, str):
            raise Refused(f"{file}: {name} is {value!r}, and every setting is a text. Write it in quotes.")
    paths = [name for name, value in written.items() if name == "path" or (name == "keys" and not _is_word(value))]
    return {**written, **{name: str(file.parent / written[name]) for name in paths}}


def _is_word(keys: str) -> bool:
    """Whether a value of `keys` names a place that is no directory."""
    return keys in (KEYS_IN_ENVIRONMENT, KEYS_IN_KEYRING)


def _refuse_unknown(names: list[str], prefix: str, file: Path | None = None) -> None:
    known = [f"{prefix}{name.upper() if prefix else name}" for name in Settings.model_fields]
    for name in names:
        if name not in known and not (prefix and name in _NO_SETTINGS):
            by_case = {each.casefold(): each for each in known}
            nearest = by_case[difflib.get_close_matches(name.casefold(), by_case, 1, cutoff=0.0)[0]]
            where = f" ({file})" if file else ""
            raise Refused(f"{name} is not a setting{where}. Did you mean {nearest}?")


def _toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")  # then a JSON string is a TOML string
