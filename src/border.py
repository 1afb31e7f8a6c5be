"""The border of the public verbs: what comes in is of the declared kind, what the system says goes out in our words."""

from __future__ import annotations

import errno
import inspect
import os
import typing
from collections.abc import Callable, Iterable, Mapping
from functools import cache, wraps
from pathlib import Path
from reprlib import repr as shown
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, TypeVar

from .errors import NotFound, Refused, TallystickError, Unavailable

Kind = TypeVar("Kind")

MOST_BITS = 4096
"""No number has more: Python would not even write it out."""

_ABSENT = {errno.ENOENT, errno.ENOTDIR}
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NO_PATH = {errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL}
_TOO_MANY = {errno.EMFILE, errno.ENFILE}


class _Sort(NamedTuple):
    """What a value has to be, in words, and how to tell."""

    words: str
    fits: Callable[[Any], bool]


def guarded(kind: type[Kind]) -> type[Kind]:
    """Guard every public verb of a class: see `guard`."""
    for name, member in list(vars(kind).items()):
        if name.startswith("_"):
            continue
        if isinstance(member, staticmethod | classmethod):
            setattr(kind, name, type(member)(guard(member.__func__)))
        elif inspect.isfunction(member):
            setattr(kind, name, guard(member))
    return kind


def guard(verb: Callable[..., Any]) -> Callable[..., Any]:
    """A verb that refuses arguments of another kind than it declares, and raises no error of the system's own."""
    names = tuple(inspect.signature(verb).parameters)

    @cache
    def declared() -> dict[str, tuple[_Sort, ...]]:
        hints = typing.get_type_hints(verb)
        return {name: _sorts(hint) for name, hint in hints.items() if name in names and hint is not Any}

    @wraps(verb)
    def run(*arguments: Any, **options: Any) -> Any:
        sorts = declared()
        for name, value in (*zip(names, arguments, strict=False), *options.items()):
            if type(value) is int and value.bit_length() > MOST_BITS:
                raise Refused(f"{name} is a number of {value.bit_length():,} bits. Give a smaller one.")
            if name in sorts:
                _require(name, value, sorts[name])
        try:
            return verb(*arguments, **options)
        except (OSError, RecursionError) as error:
            if isinstance(error, BrokenPipeError):
                raise
            raise in_our_words(error) from error

    return run


def in_our_words(error: OSError | RecursionError) -> TallystickError:
    """What an error of the system means to who asked, and what to do about it."""
    if isinstance(error, RecursionError):
        return Refused("A value is nested too deep to be read; nothing was written. Give a flat one.")
    name, said = error.filename2 or error.filename, error.strerror or str(error) or type(error).__name__
    if name is None and error.errno in _ABSENT:
        return NotFound("The current directory is gone. Use one that is there.")
    place = shown_path(name)
    for meant, message in (
        (_ABSENT, NotFound(f"There is no {place} ({said}). Check its name.")),
        (_FORBIDDEN, Unavailable(f"{place}: {said}. Give yourself the right that it needs, or name another place.")),
        (_FULL, Unavailable(f"There is no room left for {place} ({said}). Free some, then try again.")),
        (_NO_PATH, Refused(f"{place} can't be a path ({said}). Name another one.")),
        (_TOO_MANY, Unavailable(f"{place} can't be opened ({said}). Close what else is open, then try again.")),
        (
            {errno.EISDIR},
            Refused(f"{place} is a directory and should be a file. Put it elsewhere and try again."),
        ),
        ({errno.EEXIST, errno.ENOTEMPTY}, Refused(f"{place} is in the way ({said}). Put it elsewhere and try again.")),
    ):
        if error.errno in meant:
            return message
    return Unavailable(f"{place}: {said}. Mend that, then try again.")


def shown_path(name: object) -> str:
    """A path in a message, cut where it is long."""
    text = os.fsdecode(name) if isinstance(name, str | bytes | os.PathLike) else "what was open"
    return text if len(text) < 200 else f"{text[:90]}...{text[-90:]}"  # noqa: PLR2004


def require_path(name: str, value: object) -> None:
    """Refuse a path that leads nowhere on any system: nothing, U+0000, half a character."""
    if isinstance(value, str) and not value:
        raise Refused(f"{name} is empty, which is no path. Give one; `.` is the current directory.")
    try:
        written = os.fsencode(value)  # type: ignore[arg-type]
    except UnicodeEncodeError as error:
        raise Refused(f"{name} has half a character at {error.start}, which no path has. Give another one.") from error
    if b"\0" in written:
        raise Refused(f"{name} has U+0000 in it, which no path has. Give another one.")


def _require(name: str, value: Any, sorts: tuple[_Sort, ...]) -> None:
    for sort in sorts:
        if sort.fits(value):
            break
    else:
        words = " or ".join(dict.fromkeys(sort.words for sort in sorts))
        raise Refused(f"{name} is {shown(value)}. Give {words}.")
    if _PATH in sorts and isinstance(value, str | os.PathLike):
        require_path(name, value)


def _sorts(hint: Any) -> tuple[_Sort, ...]:
    """What fits a declared type: each alternative. Of a collection only that it is one."""
    origin = typing.get_origin(hint)
    if origin in (typing.Union, UnionType):
        return tuple(sort for each in typing.get_args(hint) for sort in _sorts(each))
    if origin is Literal:
        return tuple(_Sort(f"`{each}`", _is(each)) for each in typing.get_args(hint))
    return (_PLAIN.get(origin or hint) or _collection(origin) or _ANYTHING,)


def _collection(origin: Any) -> _Sort | None:
    return _LIST if isinstance(origin, type) and issubclass(origin, Iterable) else None


def _is(word: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and value == word


def _is_list(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


_PATH = _Sort("a path", lambda value: isinstance(value, str | os.PathLike))
_LIST = _Sort("a list", _is_list)
_ANYTHING = _Sort("another value", lambda _: True)
_PLAIN: dict[Any, _Sort] = {
    NoneType: _Sort("None", lambda value: value is None),
    bool: _Sort("True or False", lambda value: isinstance(value, bool)),
    int: _Sort("a whole number", lambda value: type(value) is int),
    float: _Sort("a number", lambda value: isinstance(value, int | float) and not isinstance(value, bool)),
    str: _Sort("a text", lambda value: isinstance(value, str)),
    Path: _PATH,
    Callable: _Sort("a function", callable),
}
