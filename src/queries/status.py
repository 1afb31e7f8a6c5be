"""The state of a store at a glance, and whether it is clean."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ..events.installation import Installation
from ..events.keys import is_private
from ..projections import memories
from ..projections.views import GROUPS, Views


class Status(NamedTuple):
    """What is there, where it lies, and what is not as it should be. `clean` is whether `remarks` is empty.

    `root` is the public root key, by which anybody can verify the logs.
    """

    store: str
    keys: str
    root: str
    memories: dict[str, int]
    namespaces: dict[str, int]
    logs: dict[str, int]
    roots: dict[str, str]
    views: str
    behind: dict[str, int]
    bytes: dict[str, int]
    model: str
    missing_vectors: int
    checked: str
    remarks: tuple[str, ...]

    @property
    def clean(self) -> bool:
        """Whether there is nothing to remark."""
        return not self.remarks


def status(installation: Installation, views: Views, model: str, missing_vectors: int) -> Status:
    """Look at a store that is open."""
    with views.reading() as cursor:
        counted, namespaces = memories.counts(cursor), memories.namespaces(cursor)
    tips = {log.name: log.follow() for log in installation.logs}
    behind = {
        group.name: sum(tips[name].size - 1 - views.position(group, name) for name in group.logs) for group in GROUPS
    }
    directory = installation.keys.directory if installation.keys else Path()
    return Status(
        store=str(installation.path),
        keys=str(directory),
        root=installation.keys.root.public.hex() if installation.keys else "",
        memories=counted,
        namespaces=namespaces,
        logs={name: tip.size for name, tip in tips.items()},
        roots={name: tip.frontier.root().hex() for name, tip in tips.items()},
        views=views.path.name,
        behind=behind,
        bytes={file.name: file.stat().st_size for file in sorted(installation.path.iterdir()) if file.is_file()},
        model=model,
        missing_vectors=missing_vectors,
        checked=installation.checked,
        remarks=tuple(_remarks(installation, directory)),
    )


def _remarks(installation: Installation, directory: Path) -> list[str]:
    remarks = []
    if installation.mark is None:
        remarks.append("no mark is kept, since the keys can't be written to: a log that is cut would not be noticed")
    elif installation.unmarked:
        remarks.append(
            "the mark was missing at this opening: a log that was cut before went unnoticed; compare its root"
        )
    if directory.is_dir() and not is_private(directory):
        remarks.append(f"the keys in {directory} can be read by others")
    return remarks
