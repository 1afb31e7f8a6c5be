"""What a command is asked with: which store, and an answer for whom."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from .output import Bar, Screen, print_document

if TYPE_CHECKING:
    from ..commands.rebuild import Rebuilt
    from ..commands.recover import Recovery
    from ..config import Settings
    from ..memory import Memory
    from ..queries.doctor import Diagnosis
    from ..queries.verify import Depth, Report

Result = TypeVar("Result")


class Created(NamedTuple):
    """A new store: its directory, where its keys went, its public root key, and the project file that names it."""

    store: Path
    keys: str
    root_key: str
    project: Path


class PutBack(NamedTuple):
    """A snapshot that was put back: where to, and where the log that was there is kept."""

    store: Path
    kept: Path | None


@dataclass(frozen=True)
class Request:
    """The options every command has, and the bar that shows how far it is.

    `at` is the store's directory where one was named; `read_only` and `until` are those of Memory.open.
    """

    at: Path | None
    as_json: bool
    debug: bool
    bar: Bar
    read_only: bool = False
    until: int | None = None

    def settings(self) -> Settings:
        """The settings in force: those of the project around the named store, or around the current directory."""
        from ..config import load_settings  # noqa: PLC0415  pydantic; --help needs none of it

        found = load_settings(self.at or Path.cwd())
        return found if self.at is None else found.model_copy(update={"path": self.at})

    def memory(self, *, namespace: str | None = None, model: str | None = None) -> Memory:
        """Open the store. Never makes one: raises NotFound where there is none."""
        from ..memory import Memory  # noqa: PLC0415  the store and its libraries; --help needs none of it

        settings = self.settings()
        self.bar.show("opening the store", 0, 0)
        return Memory.open(
            settings.path,
            namespace=namespace or settings.namespace,
            actor=settings.actor,
            keys=settings.keys,
            audit=settings.audit,
            model=model or settings.model,
            create=False,
            read_only=self.read_only,
            until=self.until,
        )

    def create(self, directory: Path | None, namespace: str | None, keys: str | None) -> Created:
        """Make a store, and the project file in the current directory. Both or neither."""
        from ..commands.fields import check_namespace  # noqa: PLC0415  as above
        from ..config import load_settings, write_project  # noqa: PLC0415
        from ..events.installation import Installation  # noqa: PLC0415

        settings = load_settings()
        store, name = directory or self.at or settings.path, namespace or settings.namespace
        check_namespace(name)
        project = write_project(Path.cwd(), store, name, keys)
        try:
            installation = Installation.create(store, keys or settings.keys)
        except BaseException:
            project.unlink()
            raise
        assert installation.keys is not None
        made = Created(store, str(installation.keys.place), installation.keys.root.public.hex(), project)
        installation.close({})
        return made

    def audit(self, root: bytes | None, depth: Depth) -> Report:
        """Verify the logs of the store: with its public root key alone, or with its keys."""
        from ..events.installation import Installation  # noqa: PLC0415  as above
        from ..queries.verify import verify  # noqa: PLC0415

        settings = self.settings()
        installation = Installation.audit(settings.path, root, settings.keys)
        try:
            return verify(installation, depth=depth, progress=self.bar.show)
        finally:
            installation.abandon()

    def diagnose(self) -> Diagnosis:
        """Look at the store, whatever state it and the settings are in."""
        from ..mending import examine  # noqa: PLC0415  as above

        self.bar.show("looking at the store", 0, 0)
        return examine(self.at, self.at or Path.cwd())

    def replay(self, reason: str | None = None, keys: str | None = None) -> Rebuilt:
        """Rebuild every view of the store, whatever state they are in, and put the new ones in force."""
        from ..memory import Memory  # noqa: PLC0415  as above

        settings = self.settings()
        self.bar.show("rebuilding the views", 0, 0)
        return Memory.replay(settings.path, keys=keys or settings.keys, actor=settings.actor, reason=reason or "replay")

    def restore(self, snapshot: Path, out: Path | None) -> PutBack:
        """Put a snapshot into an empty directory, or over the store."""
        from ..memory import Memory  # noqa: PLC0415  as above

        settings = self.settings()
        self.bar.show("verifying the snapshot", 0, 0)
        target = out or settings.path
        kept = Memory.restore_snapshot(snapshot, target, over=out is None, keys=settings.keys)
        return PutBack(target, kept)

    def recover(self, reason: str) -> Recovery:
        """Go on from an older copy of the store."""
        from ..memory import Memory  # noqa: PLC0415  as above

        settings = self.settings()
        self.bar.show("recovering the store", 0, 0)
        return Memory.recover(settings.path, reason=reason, keys=settings.keys, actor=settings.actor)

    def salvage(self, out: Path, reason: str) -> Recovery:
        """Make a new store of what verifies of this one."""
        from ..memory import Memory  # noqa: PLC0415  as above

        settings = self.settings()
        self.bar.show("reading what is left", 0, 0)
        return Memory.salvage(settings.path, out, reason=reason, keys=settings.keys, actor=settings.actor)

    def take_over(self) -> Path:
        """Take the lease of the store over, and return the store's directory."""
        from ..memory import Memory  # noqa: PLC0415  as above

        store = self.settings().path
        Memory.take_over(store)
        return store

    def answer(
        self, result: Result, document: Callable[[Result], Mapping[str, Any]], table: Callable[[Screen, Result], None]
    ) -> None:
        """Print a result: a JSON document where that was asked for, else a table."""
        self.bar.close()
        if self.as_json:
            print_document(document(result))
        else:
            table(Screen(), result)
        sys.stdout.flush()

    def tell(
        self, result: Result, document: Callable[[Result], Mapping[str, Any]], line: Callable[[Screen, Result], None]
    ) -> None:
        """Print one of many results at once: a JSON document on one line where that was asked for, else a line."""
        self.bar.close()
        if self.as_json:
            print_document(document(result), lines=False)
        else:
            line(Screen(), result)
        sys.stdout.flush()
