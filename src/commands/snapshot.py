"""Take a snapshot, and put on record that it was taken."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from ..events import snapshot
from ..events.kinds import SnapshotTaken
from ..events.log import Append
from ..events.snapshot import Check, Snapshot
from .session import Session

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def take(session: Session, directory: Path, check: Check) -> Snapshot:
    """Copy log.db into a folder of its own in a directory, verified before it counts, and append that this was done."""
    installation = session.installation
    installation.require_writable()
    session.require_signing()
    now = _EPOCH + timedelta(microseconds=session.now())
    taken = snapshot.create(installation, directory, now, check)
    if not installation.in_place:
        return taken
    memory, access = (taken.logs[log.name] for log in installation.logs)
    stream, nonce = installation.memory.new_stream()
    event = session.event(
        SnapshotTaken,
        name=taken.name,
        sha256=bytes.fromhex(taken.sha256),
        memory_size=memory.size,
        memory_root=bytes.fromhex(memory.root),
        access_size=access.size,
        access_root=bytes.fromhex(access.root),
        nonce=nonce,
    )
    installation.memory.append(Append((installation.memory.opening(stream, event),)))
    return taken
