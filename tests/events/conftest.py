"""What the tests of the logs share: a fresh installation, and a way to write to it without a Memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tallystick.events.installation import Installation
from tallystick.events.kinds import Forgotten, LogCreated, Read, Stored
from tallystick.events.log import Append, Log

NOW = 1_767_225_600_000_000


class Place(NamedTuple):
    """Where a store and its keys lie."""

    store: Path
    keys: Path

    def create(self) -> Installation:
        """Make the store, and let others open it too."""
        made = Installation.create(self.store, self.keys)
        made.share()
        return made

    def open(self) -> Installation:
        """Open the store for writing, and let others open it too."""
        opened = Installation.open(self.store, self.keys)
        opened.share()
        return opened


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A place where nothing is yet."""
    return Place(tmp_path / "store", tmp_path / "keys")


@pytest.fixture
def installation(place: Place) -> Iterator[Installation]:
    """An installation with nothing in it but the first event of each log."""
    made = place.create()
    yield made
    made.abandon()


def stored(text: str, nonce: bytes | None = None) -> Stored:
    """A memory's first event."""
    return Stored(recorded_at=NOW, actor="agent:test", text=text, namespace="test", nonce=nonce)


def forgotten(reason: str | None = None) -> Forgotten:
    """An event of a memory that is there."""
    return Forgotten(recorded_at=NOW, actor="agent:test", reason=reason)


def store(log: Log, text: str, *, durable: bool = True) -> bytes:
    """Append a memory; returns its stream."""
    stream, nonce = log.new_stream()
    log.append(Append((log.opening(stream, stored(text, nonce)),)), durable=durable)
    return stream


def read(log: Log, *, durable: bool = False) -> bytes:
    """Append a read to the access log, as it is done by default: without waiting for the disk. Returns its stream."""
    stream, nonce = log.new_stream()
    event = Read(
        recorded_at=NOW, actor="agent:test", nonce=nonce, memory=b"m" * 16, verb="get", log_size=1, log_root=b"r" * 32
    )
    log.append(Append((log.opening(stream, event),)), durable=durable)
    return stream


def log_created(nonce: bytes) -> LogCreated:
    """The one kind of event that is written in clear."""
    keys: dict[str, Any] = dict.fromkeys(("root", "writer", "checkpoint"), b"h" * 32)
    signatures: dict[str, Any] = {f"{name}_signature": b"s" * 64 for name in keys}
    ids: dict[str, Any] = {"store": b"s" * 16, "kek": b"k" * 8, "index": b"i" * 8}
    return LogCreated(recorded_at=NOW, actor="a", nonce=nonce, log="memory", **keys, **signatures, **ids)
