"""The store that is looked at: each of its parts opened when it is first asked for, and nothing written to any."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from ...config import Found
from ...errors import KeysMissing, LogDamaged, TallystickError, ViewsDamaged
from ...events.driver import Datastore, File
from ...events.installation import FILE, Installation, Opening, marked_beside, root_named, seen_store, stamp
from ...events.key_places import KeySource, default_directory, find_keys, place_of
from ...events.keys import KeyPlace, Keys
from ...events.mapper import LoggedEvent
from ...events.mark import Marked
from ...projections.models.choice import Chosen
from ...projections.vector_cache import seen_vectors
from ...projections.views import Views, ViewsInForce

WHOLE = 5000
"""Logs of so many entries together are read whole; of longer ones what is new, and a sample."""
SAMPLE = 1000
"""How many entries of a longer log are looked at."""

Level = Literal["wrong", "warning"]
Part = TypeVar("Part")


class Sign(NamedTuple):
    """One thing that a check found: what is wrong, and the command or the act that mends it."""

    what: str
    remedy: str


class Asked(NamedTuple):
    """Which store to look at, as it would be opened: with which keys, found already or to be found, and which model.

    `found` are the settings as far as they can be read. `named` says whether a command has to be told the store, `kept`
    whether the store outlives this process.
    """

    path: Path
    keys: KeySource | Keys
    model: str
    found: Found
    named: bool
    kept: bool = True


class Patient:
    """The parts of one store. A part that can't be had raises what its opening raises, each time it is asked for."""

    def __init__(self, asked: Asked, *, still: bool) -> None:
        self.asked = asked
        self.path = asked.path
        self._still = still
        self._parts: dict[str, Any] = {}
        self._close: list[Callable[[], None]] = []
        self._stamps: dict[Path, list[int] | None] = {}

    # ---- the parts

    @property
    def store(self) -> bytes:
        """The id of the store, as log.db says."""
        return self.part("store", lambda: seen_store(self.path, still=self._at_rest(self.path / FILE)))

    @property
    def place(self) -> KeyPlace:
        """Where the keys are looked for."""
        keys = self.asked.keys
        return keys.place if isinstance(keys, Keys) else place_of(keys, self._named_store())

    @property
    def keys(self) -> Keys:
        """The keys."""
        keys, store = self.asked.keys, self._named_store()
        return keys if isinstance(keys, Keys) else self.part("keys", lambda: find_keys(keys, store))

    @property
    def log(self) -> Datastore:
        """log.db, whoever has the keys."""
        return self.part("log", self._open_log)

    @property
    def installation(self) -> Installation:
        """The logs, opened with the keys, and nothing of them checked."""
        return self.part("installation", self._open_installation)

    @property
    def marked(self) -> Marked:
        """What the mark says."""
        return self.part("marked", lambda: marked_beside(self.keys, self.store))

    @property
    def views(self) -> Views | None:
        """The views in force, as they are; None where the store has none yet."""
        return self.part("views", self._open_views)

    @property
    def vectors(self) -> Datastore | None:
        """The vectors; None where there are none."""
        return self.part("vectors", self._open_vectors)

    @property
    def chosen(self) -> Chosen:
        """The model that it would be opened with."""
        return self.part("chosen", lambda: Chosen(self.path, self.asked.model))

    def part(self, name: str, make: Callable[[], Part]) -> Part:
        """A part of the store, made when it is first asked for; what that raised is raised each time."""
        if name not in self._parts:
            try:
                self._parts[name] = make()
            except (TallystickError, OSError) as error:
                self._parts[name] = error
        if isinstance(self._parts[name], Exception):
            raise self._parts[name]
        part: Part = self._parts[name]
        return part

    def is_long(self) -> bool:
        """Whether the logs are too long to be read whole."""
        return sum(size for _, size in self.sizes()) > WHOLE

    def sizes(self) -> list[tuple[Any, int]]:
        """Each log, and how many entries it has."""
        installation = self.installation
        with installation.datastore.transaction(commit=False) as cursor:
            return [(log, log.recorder.size(cursor)) for log in installation.logs]

    def events_of(self, stream: bytes) -> list[LoggedEvent]:
        """The events of a stream of the memory log, each checked by itself: what is before them may not be verified."""
        with self.installation.datastore.transaction(commit=False) as cursor:
            return self.installation.memory.events_within(cursor, stream, None)

    # ---- what is said of it

    def run(self, words: str) -> str:
        """A command of ours as it has to be typed for this store."""
        keys = self._keys_to_name()
        given = f"TALLYSTICK_KEYS={shlex.quote(keys)} " if keys is not None else ""
        at = f"-C {shlex.quote(str(self.path))} " if self.asked.named else ""
        return f"`{given}tallystick {at}{words}`"

    def _keys_to_name(self) -> str | None:
        """The place of the keys, where no setting names it and it is not the user's own directory."""
        keys = self.asked.keys
        if isinstance(keys, Keys):
            keys = keys.place.directory
            if keys == default_directory(self._named_store()):
                return None
        return str(keys) if isinstance(keys, str | Path) and str(keys) != self.asked.found.settings.keys else None

    def entries(self, pattern: str) -> Iterator[Path]:
        """What lies in the store's folder under such a name."""
        return iter(sorted(self.path.glob(pattern)))

    # ---- opening and closing

    def close(self) -> bool:
        """Close what was opened. Returns whether all that was taken to be at rest has been."""
        for close in reversed(self._close):
            close()
        return all(stamp(path) == before for path, before in self._stamps.items())

    def _at_rest(self, path: Path) -> bool:
        """Whether nobody has a file open: then it is read without locks, which would leave files beside it."""
        if not self._still or os.path.lexists(path.with_name(f"{path.name}-wal")):
            return False
        self._stamps.setdefault(path, stamp(path))
        return True

    def _named_store(self) -> bytes:
        """The store's id; any where it can't be read and the keys are found without it."""
        try:
            return self.store
        except (TallystickError, OSError):
            if self.asked.keys is None:
                raise
            return bytes(16)

    def _open_log(self) -> Datastore:
        file = self.path / FILE
        log = Datastore(File(file, LogDamaged, read_only=True, still=self._at_rest(file)))
        self._close.append(log.close)
        return log

    def _open_installation(self) -> Installation:
        store, keys = self.store, self.keys
        with self.log.transaction(commit=False) as cursor:
            if root_named(cursor) != keys.root.public:
                raise KeysMissing(
                    f"{keys.place.where('root.key')} is not this store's key; nothing was read. {KeysMissing.remedy}"
                )
        still = self._at_rest(self.path / FILE)
        opening = Opening(store, keys, keys.root.public, read_only=True, marked=False, still=still)
        installation = Installation(self.path, opening)
        self._close.append(installation.abandon)
        return installation

    def _open_views(self) -> Views | None:
        name = ViewsInForce(self.installation).name()
        if name is None:
            return None
        path = self.path / name
        if not path.exists():
            raise ViewsDamaged(f"The views file {name} is gone. {ViewsDamaged.remedy}")
        views = Views(self.installation, path, read_only=True, still=self._at_rest(path))
        self._close.append(views.close)
        return views

    def _open_vectors(self) -> Datastore | None:
        vectors = seen_vectors(self.installation, still=self._at_rest(self.path / "vectors.db"))
        if vectors is not None:
            self._close.append(vectors.close)
        return vectors
