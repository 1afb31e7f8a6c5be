"""The shape of a view: rows folded from events, that can be thrown away, rebuilt and compared."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import msgpack  # type: ignore[import-untyped]

from ..events.mapper import LoggedEvent
from .record import Record


class Change(NamedTuple):
    """What a page did to one memory: its number in the views, as it was when last folded, and as it is now."""

    number: int
    before: Record | None
    after: Record


class Page(NamedTuple):
    """A run of events of one log, the memories they changed, and a way to read one that they did not change."""

    log: str
    events: Sequence[LoggedEvent]
    changes: Sequence[Change]
    record: Callable[[int], Record]


class View(Protocol):
    """One read model. `apply` folds a page, inside the transaction that also moves the position."""

    @property
    def name(self) -> str:
        """What the view is called."""

    @property
    def version(self) -> int:
        """Raised whenever the same events would give other rows."""

    @property
    def schema(self) -> tuple[str, ...]:
        """The statements that make its tables."""

    def apply(self, cursor: Any, page: Page) -> None:
        """Fold a page: recompute the rows of what it changed."""

    def clear(self, cursor: Any) -> None:
        """Remove every row."""

    def digest(self, cursor: Any) -> str:
        """A hash of everything the view would answer from, equal for equal histories."""


def digest_of(rows: Iterable[Sequence[Any]]) -> str:
    """BLAKE2b-256, in hexadecimal, over rows in the order given, each as MessagePack."""
    digest = hashlib.blake2b(digest_size=32)
    pack = msgpack.Packer().pack
    for row in rows:
        digest.update(pack(row))
    return digest.hexdigest()
