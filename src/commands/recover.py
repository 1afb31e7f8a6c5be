"""Recover and salvage: accept what is left of a store, and go on from it as the start of a new origin."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

from ..errors import LogBehindMark, LogDamaged, Refused
from ..events.driver import Datastore, File
from ..events.installation import (
    FILE,
    LOGS,
    Installation,
    Opening,
    mark_beside,
    marked_beside,
    write_store,
)
from ..events.key_places import KeySource
from ..events.keys import Keys
from ..events.replacing import alone, exchange, refuse_occupied, sync
from ..events.salvage import OldLog
from .carry import Carried, carry
from .session import Session

Check = Callable[[Path], object]
"""Verifies the store in a folder in full, or raises."""
Begin = Callable[[Installation], Session]
"""A session on a store that is being made."""


class Recovery(NamedTuple):
    """A store that goes on: where it is, where the old log is kept, and what came over.

    `withheld` are the ids of memories that came over forgotten, since an event of them may be lost.
    """

    store: str
    kept: str
    logs: tuple[Carried, ...]
    withheld: tuple[str, ...]


class Asked(NamedTuple):
    """From which store to go on, with which keys, why, and how a session on the new one begins and is verified."""

    store: Path
    id: bytes
    source: KeySource
    keys: Keys
    reason: str
    begin: Begin
    check: Check


def recover(asked: Asked) -> Recovery:
    """Let a store go on that is whole, but is not what this installation verified last: an older copy of it.

    Raises Refused where the log is what the mark says, LogDamaged where it does not verify.
    """
    with alone(asked.store):
        _require_difference(asked)
        asked.check(asked.store)
        return _go_on(asked, asked.store)


def salvage(asked: Asked, out: Path) -> Recovery:
    """Make a store in an empty folder of every event that verifies. The damaged one is only read.

    Raises Refused where nothing is damaged: the old store would be given up for nothing.
    """
    refuse_occupied(out)
    if out.resolve().is_relative_to(asked.store.resolve()):
        raise Refused(f"{out} lies inside the damaged store. Name a directory elsewhere.")
    out.mkdir(mode=0o700, parents=True, exist_ok=True)
    with alone(asked.store) if os.access(asked.store, os.W_OK) else nullcontext(), alone(out):
        _require_damage(asked)
        return _go_on(asked, out)


def _require_difference(asked: Asked) -> None:
    try:
        unmarked = _opens(asked)
    except LogBehindMark:
        return
    if not unmarked:
        raise Refused(f"There is nothing to recover: {asked.store} is what was verified last. Open it.")


def _require_damage(asked: Asked) -> None:
    try:
        asked.check(asked.store)
        _opens(asked)
    except LogDamaged:
        return
    raise Refused(f"There is nothing to salvage: {asked.store} verifies. Open it.")


def _opens(asked: Asked) -> bool:
    """Open the store as it would be to serve, and say whether there was no mark to hold it against."""
    installation = Installation.read(asked.store, asked.source)
    try:
        return installation.unmarked
    finally:
        installation.abandon()


def _go_on(asked: Asked, target: Path) -> Recovery:
    with _working_folder(target) as work:
        logs, withheld = _write(asked, work)
        asked.check(work)
        sync(work / FILE)
        kept = exchange(target, work / FILE)
    _move_mark(asked, target)
    return Recovery(str(target), str(kept or asked.store), logs, withheld)


def _write(asked: Asked, work: Path) -> tuple[tuple[Carried, ...], tuple[str, ...]]:
    """Write a log.db of a new origin with all that can be read of the old one."""
    keys = asked.keys
    source = Datastore(File(asked.store / FILE, LogDamaged, read_only=True))
    try:
        marked = marked_beside(keys, asked.id)
        old = [OldLog(source, number, name, keys) for number, name in enumerate(LOGS)]
        remains = [log.survey(marked) for log in old]
        write_store(work, asked.id, keys)
        new = Installation(work, Opening(asked.id, keys, keys.root.public, read_only=False, marked=False))
        try:
            over = carry(asked.begin(new), old, remains, asked.reason)
        except BaseException:
            new.abandon()
            raise
        new.close({})
        return over
    finally:
        source.close()


def _move_mark(asked: Asked, target: Path) -> None:
    """From here on the new origin counts, and no other."""
    mark = mark_beside(asked.keys, asked.id)
    if mark is None:
        return
    installation = Installation(target, Opening(asked.id, asked.keys, asked.keys.root.public, True, marked=False))
    try:
        mark.accept({log.origin: log.follow().frontier for log in installation.logs})
    finally:
        installation.abandon()
        mark.release()


@contextmanager
def _working_folder(target: Path) -> Iterator[Path]:
    work = target / f".recovering-{secrets.token_hex(4)}"
    work.mkdir(mode=0o700)
    try:
        yield work
    finally:
        shutil.rmtree(work)
