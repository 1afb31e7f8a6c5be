"""The state of a store at a glance, and whether it is clean."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..events.installation import Installation
from ..events.key_history import is_backup_settled
from ..events.key_places import exposure
from ..events.keys import Keys
from ..events.replacing import KEPT
from ..projections import memories
from ..projections.aliases import aliases
from ..projections.views import GROUPS, Views
from .namespaces import namespaces as namespaces_of


class Status(NamedTuple):
    """What is there, where it lies, and what is not as it should be. `clean` is whether `remarks` is empty.

    `root` is the public root key, by which anybody can verify the logs. `notes` are things to know that were asked for.
    """

    store: str
    keys: str
    mark: str
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
    notes: tuple[str, ...]

    @property
    def clean(self) -> bool:
        """Whether there is nothing to remark."""
        return not self.remarks


def status(installation: Installation, views: Views, model: str, missing_vectors: int, *, kept: bool) -> Status:
    """Look at a store that is open; `kept` says whether it outlives this opening, and so needs its keys kept."""
    with views.reading() as cursor:
        counted, names = memories.counts(cursor), aliases(cursor)
        namespaces = {each.name: each.current for each in namespaces_of(cursor, names)}
    tips = {log.name: log.follow() for log in installation.logs}
    behind = {
        group.name: sum(tips[name].size - 1 - views.position(group, name) for name in group.logs) for group in GROUPS
    }
    keys = installation.keys
    remarks, notes = ([], []) if keys is None else exposure(keys.place)
    return Status(
        store=str(installation.path),
        keys=str(keys.place) if keys else "",
        mark=str(installation.mark.path) if installation.mark else "",
        root=keys.root.public.hex() if keys else "",
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
        remarks=(
            *_about_log(installation),
            *_about_mark(installation),
            *remarks,
            *(_about_keys(installation, keys) if keys and kept else ()),
        ),
        notes=tuple(notes),
    )


def _about_log(installation: Installation) -> Iterator[str]:
    if installation.until is not None:
        yield f"what is after position {installation.until - 1} of the memory log is not served"
    if installation.read_only:
        yield "opened to be read: no recall is put on record"
    for kept in sorted(installation.path.glob(f"{KEPT}*")):
        yield f"{kept.name} keeps a log that was replaced: delete it when nobody wants it any more"


def _about_mark(installation: Installation) -> Iterator[str]:
    if installation.read_only:
        return
    if installation.mark is None:
        yield "no mark is kept, since there is no place to write it to: a log that is cut would not be noticed"
    elif installation.unmarked:
        yield "the mark was missing at this opening: a log that was cut before went unnoticed; compare its root"


def _about_keys(installation: Installation, keys: Keys) -> Iterator[str]:
    if not keys.sign:
        yield "the keys read and verify, and don't sign: nothing can be stored, and reads are not on record"
    if not is_backup_settled(installation.memory, keys):
        yield (
            "the keys were never backed up, and losing them loses the memories: run `tallystick keys backup FILE`, "
            "or `tallystick keys backup --decline`"
        )
