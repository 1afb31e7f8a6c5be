"""The views file in force: folded from the logs, compared, rebuilt beside itself and switched."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache, partial
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from eventsourcing.persistence import Tracking
from eventsourcing.sqlite import SQLiteTrackingRecorder

from ..errors import KeysMissing, ViewsDamaged
from ..events.driver import Datastore, File
from ..events.installation import Installation
from ..events.log import Log
from ..events.settings import read_setting, write_setting
from .access import Access
from .aliases import Aliases
from .audit import Audit
from .changes import changes_of, record_of
from .keyword import Keyword
from .memories import Memories
from .tokens import words_version
from .vector import Vector
from .view import Page, View

if TYPE_CHECKING:
    from .columns import KeptColumns

PAGES = 32
"""How many pages are folded in one transaction: what they write to the same places is written once."""

Positions = Mapping[str, int]
"""Up to where each group has folded each log."""


class Group(NamedTuple):
    """Views that move together, and the logs they follow."""

    name: str
    logs: tuple[str, ...]
    views: tuple[View, ...]


RECALL = Group("recall", ("memory",), (Memories(), Keyword(), Vector(), Aliases()))
TRAIL = Group("trail", ("memory", "access"), (Access(), Audit()))
GROUPS = (RECALL, TRAIL)
ALL_VIEWS: tuple[View, ...] = RECALL.views + TRAIL.views


def _tracked(group: Group, log: Log) -> str:
    """The name under which the library's tracking table keeps how far a group has folded a log."""
    return f"{group.name}/{log.name}"


class Views(SQLiteTrackingRecorder):
    """One file of read models. Rows and position move in one transaction, by `catch_up` and nothing else."""

    def __init__(self, installation: Installation, path: Path, *, read_only: bool = False, still: bool = False) -> None:
        """Open a file of views. `read_only` and `still` are those of a File."""
        if installation.keys is None:
            raise KeysMissing("The views are encrypted: they open with this store's keys only. Supply them.")
        file = File(path, ViewsDamaged, installation.keys.views, read_only, durable=False, still=still)
        self._file = Datastore(file)
        super().__init__(self._file)
        self.path = path
        self._folded: dict[str, int] = {}
        self._logs: dict[str, Log] = {log.name: log for log in installation.logs}

    @cached_property
    def columns(self) -> KeptColumns:
        """What recall looks at of the namespaces that were asked last."""
        from .columns import KeptColumns  # noqa: PLC0415  numpy

        return KeptColumns()

    @classmethod
    def create(cls, installation: Installation) -> Views:
        """A new, empty file of views beside the one in force."""
        views = cls(installation, installation.derived / f"views-{schema_hash()}-{secrets.token_hex(4)}.db")
        views.create_table()
        return views

    def construct_create_table_statements(self) -> list[str]:
        """The library's tracking table, and the tables of every view."""
        statements: list[str] = super().construct_create_table_statements()
        return statements + [statement for view in ALL_VIEWS for statement in view.schema]

    def create_table(self) -> None:
        """Make the tables of a new file. The library would first look for older tables, which a new file has not."""
        with self.datastore.transaction(commit=True) as cursor:
            self._create_table(cursor)

    # ---- folding

    def catch_up(self, *groups: Group, upto: Positions | None = None) -> int:
        """Fold what the logs have gained, once it is verified: all of it, or up to these positions.

        Groups that stand at the same position of a log fold it together, from one reading. Returns how many events
        were folded.
        """
        return sum(
            self._follow(together, log, upto)
            for log in self._logs.values()
            for together in self._together(groups, log, upto)
        )

    def _together(self, groups: Sequence[Group], log: Log, upto: Positions | None) -> list[tuple[Group, ...]]:
        """The groups that follow a log, as one where all have equally far to go, else each for itself."""
        following = tuple(group for group in groups if log.name in group.logs)
        tracked = [_tracked(group, log) for group in following]
        ways = {(self._folded.get(name, 0), None if upto is None else upto[name]) for name in tracked}
        return [following] if len(ways) == 1 else [(group,) for group in following]

    def position(self, group: Group, log: str, cursor: Any = None) -> int:
        """The position of a log up to which a group is folded, in a transaction if one is given; genesis is 0."""
        name = f"{group.name}/{log}"
        return (self.max_tracking_id(name) if cursor is None else self._max_tracking_id(name, cursor)) or 0

    def _follow(self, groups: tuple[Group, ...], log: Log, upto: Positions | None) -> int:
        tracked = [_tracked(group, log) for group in groups]
        last = log.follow().size - 1 if upto is None else upto[tracked[0]]
        folded = 0
        while min(self._folded.get(name, 0) for name in tracked) < last:
            folded += self._fold_pages(groups, log, last)
        at = max(self._folded.get(name, 0) for name in tracked)
        if at > last and at > (last := log.follow().size - 1):  # others may have folded what they appended since
            raise ViewsDamaged(
                f"The views are at position {at} of the {log.name} log, which ends at {last}. {ViewsDamaged.remedy}"
            )
        return folded

    def _fold_pages(self, groups: tuple[Group, ...], log: Log, last: int) -> int:
        """Fold some pages in one transaction, under the lock that serialises the projectors of all processes."""
        folded = 0
        with self.datastore.transaction(commit=True) as cursor:
            reached = {group: self._max_tracking_id(_tracked(group, log), cursor) or 0 for group in groups}
            at = min(reached.values())
            behind = [group for group in groups if reached[group] == at]
            for events in islice(log.pages(at, last), PAGES):
                changes = changes_of(cursor, log, events) if RECALL in behind else ()
                page = Page(log.name, events, changes, partial(record_of, cursor, log))
                for view in (view for group in behind for view in group.views):
                    view.apply(cursor, page)
                at, folded = events[-1].header.position, folded + len(events)
            reached |= dict.fromkeys(behind, at)
            for group in behind if folded else ():
                self._insert_tracking(cursor, Tracking(_tracked(group, log), at))
        self._folded |= {_tracked(group, log): position for group, position in reached.items()}  # once it is committed
        return folded

    # ---- comparing

    def digests(self) -> dict[str, str]:
        """The digest of each view."""
        return self.snapshot()[0]

    def snapshot(self) -> tuple[dict[str, str], dict[str, int]]:
        """The digest of each view, and the positions they were taken at."""
        with self.datastore.transaction(commit=False) as cursor:
            tracked = [f"{group.name}/{log}" for group in GROUPS for log in group.logs]
            positions = {name: self._max_tracking_id(name, cursor) or 0 for name in tracked}
            return {view.name: view.digest(cursor) for view in ALL_VIEWS}, positions

    def check_pages(self) -> None:
        """Read every page and check its authentication code. Raises ViewsDamaged naming the first bad one."""
        check_pages(self._file)

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """A cursor to read with."""
        with self.datastore.transaction(commit=False) as cursor:
            yield cursor

    def close(self) -> None:
        """Close the file."""
        self.datastore.close()

    def remove(self) -> None:
        """Close the file and delete it."""
        self.close()
        delete(self.path)


class ViewsInForce:
    """Whichever views file log.db names: opened, followed when another process switches, replaced by a rebuild."""

    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self._views: Views | None = None
        self._left: list[Views] = []  # other threads may still be reading them
        self._switching = Lock()

    def current(self, group: Group) -> Views:
        """The views in force, caught up with the logs."""
        views = self.opened()
        views.catch_up(group)
        return views

    def opened(self) -> Views:
        """The views in force, as they are; made where the store has none yet. ViewsDamaged where they are gone."""
        name = self.name()
        with self._switching:
            if self._views is None or self._views.path.name != name:
                self._leave_for(self._open(name))
            assert self._views is not None
            return self._views

    def remove_strays(self) -> None:
        """Delete views that a killed process left unfinished. Only while nobody else has the store open."""
        for path in self.strays():
            path.unlink()

    def strays(self) -> list[Path]:
        """The files of views that log.db does not name: unfinished, or just being made."""
        named = self.named().values()
        found = sorted(self._installation.path.glob("views-*"))
        return [path for path in found if path.name.partition(".db")[0] + ".db" not in named]

    def named(self) -> dict[str, str]:
        """The file that log.db names for each schema, of other releases too, by the setting that names it."""
        rows = self._installation.datastore.rows("SELECT name FROM setting WHERE name GLOB 'views-*'")
        return {name: str(self._file_of(name)) for (name,) in rows}

    def close(self) -> None:
        """Close the file, and those that were in force before."""
        with self._switching:
            for views in (*self._left, *([self._views] if self._views else [])):
                views.close()
            self._left, self._views = [], None

    def _leave_for(self, views: Views) -> None:
        if self._views is not None:
            self._left.append(self._views)
        self._views = views

    def name(self) -> str | None:
        """The file that log.db names; None where the store has no views yet."""
        return self._file_of(in_force())

    def _file_of(self, setting: str) -> str | None:
        value = read_setting(self._installation.datastore, setting)
        return None if value is None else value.decode()

    def _open(self, name: str | None) -> Views:
        if name is None:
            views = Views.create(self._installation)
            self._installation.commits.run(lambda cursor: write_setting(cursor, in_force(), views.path.name.encode()))
            return views
        path = self._installation.path / name
        if not path.exists():
            raise ViewsDamaged(f"The views file {name} is gone. {ViewsDamaged.remedy}")
        return Views(self._installation, path)

    def compared_with(self, fresh: Views) -> tuple[dict[str, str], dict[str, str]]:
        """The digests of the views in force and of these, at one position, whoever goes on writing meanwhile."""
        live = self.opened()
        live.catch_up(*GROUPS)
        digests, positions = live.snapshot()
        fresh.catch_up(*GROUPS, upto=positions)
        return digests, fresh.digests()

    def put_in_force(self, fresh: Views) -> None:
        """Let log.db name this file, and delete the one it named before."""
        old, name = self.name(), fresh.path.name
        self._installation.commits.run(lambda cursor: write_setting(cursor, in_force(), name.encode()))
        with self._switching:
            self._leave_for(fresh)
        if old is not None:
            delete(self._installation.path / old)


class ScratchViews(ViewsInForce):
    """The views of a store that is only read: folded from its log into a folder of this process's own."""

    def name(self) -> str | None:
        """The one file there is."""
        return f"{in_force()}.db"

    def _open(self, name: str | None) -> Views:
        views = Views(self._installation, self._installation.derived / str(name))
        views.create_table()
        return views


@contextmanager
def building(installation: Installation) -> Iterator[Views]:
    """New views folded from the whole log. They are deleted at the end unless they were put in force."""
    fresh = Views.create(installation)
    try:
        fresh.catch_up(*GROUPS)
        yield fresh
    finally:
        if read_setting(installation.datastore, in_force()) != fresh.path.name.encode():
            fresh.remove()


def delete(path: Path) -> None:
    """Delete a database file, and what SQLite keeps beside it."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def in_force() -> str:
    """The setting that names the views file in force. Each schema has its own, so that two releases can run at once."""
    return f"views-{schema_hash()}"


@lru_cache(maxsize=1)
def schema_hash() -> str:
    """Eight hexadecimal digits that change with any view's name, version or tables, and with what makes words."""
    digest = hashlib.blake2b(repr(words_version()).encode(), digest_size=4)
    for view in ALL_VIEWS:
        digest.update(repr((view.name, view.version, view.schema)).encode())
    return digest.hexdigest()


def check_pages(datastore: Datastore) -> None:
    """Check the authentication code of every page of an encrypted file. Raises ViewsDamaged."""
    with datastore.transaction(commit=False) as cursor:
        problems = cursor.execute("PRAGMA cipher_integrity_check").fetchall()
    if problems:
        raise ViewsDamaged(f"{datastore.file.path.name}: {problems[0][0]}. {ViewsDamaged.remedy}")
