"""The `aliases` view: which namespace goes by which name now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..events.kinds import NamespaceRenamed
from .view import Page, digest_of


class Aliases:
    """One row for each name that a namespace had, with the one that it has now: never a name that leads on."""

    name = "aliases"
    version = 1
    schema = ("CREATE TABLE alias (old TEXT PRIMARY KEY, new TEXT NOT NULL) STRICT, WITHOUT ROWID",)

    def apply(self, cursor: Any, page: Page) -> None:
        """Take in the renames of a page, in order."""
        renames = [logged.event for logged in page.events if isinstance(logged.event, NamespaceRenamed)]
        if renames:
            names = aliases(cursor)
            for event in renames:
                names = after(names, event)
            self.clear(cursor)
            cursor.executemany("INSERT INTO alias VALUES (?, ?)", names.items())

    def clear(self, cursor: Any) -> None:
        """Remove every row."""
        cursor.execute("DELETE FROM alias")

    def digest(self, cursor: Any) -> str:
        """A hash of all rows."""
        return digest_of(cursor.execute("SELECT old, new FROM alias ORDER BY old"))


def after(names: Mapping[str, str], event: NamespaceRenamed) -> dict[str, str]:
    """The aliases after a rename: every name of the old namespace leads to the new name, which leads nowhere."""
    old, new = names.get(event.old, event.old), names.get(event.new, event.new)
    if new == old:  # back to a name that it had
        new = event.new
    moved = {old, *(name for name, leads_to in names.items() if leads_to == old)}
    return {name: leads_to for name, leads_to in {**names, **dict.fromkeys(moved, new)}.items() if name != leads_to}


def aliases(cursor: Any) -> dict[str, str]:
    """Each name that is no more, and the name of the namespace it leads to."""
    return dict(cursor.execute("SELECT old, new FROM alias ORDER BY old").fetchall())


def stored_names(names: Mapping[str, str], namespaces: Iterable[str]) -> tuple[str, ...]:
    """The exact names under which the memories of these namespaces were stored, whatever they are called now."""
    wanted = dict.fromkeys(names.get(name, name) for name in namespaces)
    return (*wanted, *(old for old, new in names.items() if new in wanted))
