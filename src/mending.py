"""What can be done for a store that is not open: look at it, put a snapshot back, recover, salvage, take it over."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from .commands.fields import check_namespace
from .commands.recover import Asked, Recovery, recover, salvage
from .commands.session import Session
from .config import Found, Wrong, find_settings, load_settings, user
from .errors import LogDamaged, Refused
from .events.installation import Installation, store_of
from .events.key_places import KeySource, find_keys
from .events.keys import Keys
from .events.lease import Lease
from .events.snapshot import Check, LogState, read_snapshot, restore
from .opened import now
from .queries.doctor import Asked as Examined
from .queries.doctor import Diagnosis, diagnose
from .queries.verify import verify


def verified(keys: Keys) -> Check:
    """Verifies a store in full with these keys, whatever their mark says of it."""

    def check(folder: Path) -> Mapping[str, LogState]:
        installation = Installation.audit(folder, None, keys, marked=False)
        try:
            report = verify(installation)
        finally:
            installation.abandon()
        return {log.log: LogState(log.size, log.root) for log in report.logs}

    return check


def examine(
    path: Path | None,
    start: Path | None,
    *,
    keys: KeySource | Keys = None,
    model: str | None = None,
    kept: bool = True,
) -> Diagnosis:
    """Look at the store in a directory, or at the one that the settings name, and change nothing.

    `start` is where the project file is looked for; `kept` says whether the store outlives this process.
    """
    found = find_settings(start)
    asked = Examined(
        found.settings.path if path is None else path,
        found.settings.keys if keys is None else keys,
        model or found.settings.model,
        found._replace(wrong=(*found.wrong, *_about_namespace(found))),
        path is not None,
        kept,
    )
    return diagnose(asked)


def _about_namespace(found: Found) -> tuple[Wrong, ...]:
    try:
        check_namespace(found.settings.namespace)
    except Refused as error:
        what, _, way = str(error).partition(" is not allowed. ")
        return (Wrong("namespace", None, f"{what} is not allowed", way),)
    return ()


def restore_snapshot(path: Path, store: Path, *, over: bool, keys: KeySource) -> Path | None:
    """Put a snapshot into an empty folder, or `over` the store that is there. Returns where its log.db is kept."""
    snapshot = read_snapshot(path)
    return restore(snapshot, store, verified(find_keys(_source(keys), bytes.fromhex(snapshot.store))), over=over)


def recover_store(store: Path, *, reason: str, keys: KeySource, actor: str | None) -> Recovery:
    """Let a store go on that is an older copy of what was verified last, as the start of a new origin."""
    return recover(_asked(store, reason, keys, actor))


def salvage_store(store: Path, out: Path, *, reason: str, keys: KeySource, actor: str | None) -> Recovery:
    """Make a store of every event of a damaged one that verifies."""
    return salvage(_asked(store, reason, keys, actor), out)


def take_over(store: Path) -> None:
    """Free a store from the lease of another host. Raises NotFound where there is no store."""
    store_of(store)
    Lease.take(store, over=True).release()


def _asked(store: Path, reason: str, keys: KeySource, actor: str | None) -> Asked:
    source = _source(keys)
    identity = _id_of(store, source)
    found = find_keys(source, identity)
    who = actor or load_settings().actor or f"user:{user()}"

    def begin(installation: Installation) -> Session:
        return Session(installation, who, {"process": str(os.getpid()), "user": user()}, now)

    return Asked(store, identity, source, found, reason, begin, verified(found))


def _id_of(store: Path, source: KeySource) -> bytes:
    """The store's id; another one where it can't be read, and the keys are found without it."""
    try:
        return store_of(store)
    except LogDamaged:
        if source is None:
            raise
        return secrets.token_bytes(16)


def _source(keys: KeySource) -> KeySource:
    return load_settings().keys if keys is None else keys
