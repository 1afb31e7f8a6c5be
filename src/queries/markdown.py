"""Export for people: the current memories as Markdown that shows what was stored and obeys none of it."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from ..errors import Refused
from ..events.instants import moment
from ..projections.record import Record, fold
from ..visible import one_line, visible
from .export import Life, beside, require_folder

INDEX = "index.md"
_PLAIN = re.compile(r"[^\w ,.:/-]|_")
_NO_NAME = re.compile(r"[^a-z0-9]+")
_LONGEST_NAME = 60


def write_markdown(
    folder: Path, told: Iterable[Life], named: Callable[[Record], Record], tell: Callable[[int], None]
) -> int:
    """Write a folder with a file for each namespace, and an index of them; returns how many memories it shows.

    The folder is there when it is whole. Raises Refused where there is something already. `named` gives a memory the
    name that its namespace has now, and `tell` is told up to which position of the log.
    """
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise Refused(f"There is something at {folder} already. Name a new folder.")
    require_folder(folder.absolute())
    part = beside(folder)
    part.mkdir(mode=0o700)
    counts: dict[str, int] = {}
    try:
        for first, life in told:
            record = fold(life)
            if record is not None and record.status == "current":
                record = named(record)
                counts[record.namespace] = counts.get(record.namespace, 0) + 1
                beginning = "" if counts[record.namespace] > 1 else f"# {plain(record.namespace)}\n"
                _append(part / file_of(record.namespace), beginning + entry(record))
            tell(first.header.position)
        _append(part / INDEX, _index(counts))
        if folder.exists():
            folder.rmdir()
        part.rename(folder)
    except BaseException:
        shutil.rmtree(part)
        raise
    return sum(counts.values())


def entry(record: Record) -> str:
    """One memory: when and by whom, what else is known of it, and its text as it is."""
    stored = record.stored
    when, who = record.occurred_at or record.recorded_at, stored.author or _claimed(record)
    known = {
        "claimed by": _claimed(record) if stored.author else "",
        "stored": f"{record.recorded_at:%Y-%m-%d %H:%M}" if record.occurred_at else "",
        "kind": "" if stored.kind == "note" else stored.kind,
        "thread": stored.thread or "",
        "key": stored.key or "",
        "about": stored.subject or "",
        "tags": ", ".join(stored.tags),
        "until": f"{moment(stored.expires_at):%Y-%m-%d %H:%M}" if stored.expires_at is not None else "",
        "id": record.id,
    }
    facts = " · ".join(f"{name} {plain(value)}" for name, value in known.items() if value)
    text = "\n".join(f"    {line}" for line in visible(record.text).split("\n"))
    return f"\n## {when:%Y-%m-%d %H:%M} UTC, {plain(who)}\n\n{facts}\n\n{text}\n"


def plain(name: str) -> str:
    """A name on one line, every character that Markdown or HTML could take for more than itself written as a number."""
    return _PLAIN.sub(lambda found: f"&#{ord(found.group())};", one_line(name))


def file_of(namespace: str) -> str:
    """The name of a namespace's file: readable, harmless on any file system, and no other namespace's."""
    name = _NO_NAME.sub("-", namespace.lower()).strip("-")[:_LONGEST_NAME]
    return f"{name or 'namespace'}-{hashlib.blake2b(namespace.encode(), digest_size=4).hexdigest()}.md"


def _claimed(record: Record) -> str:
    imported = record.imported
    return record.stored.actor if imported is None else f"{imported.actor}, as an imported file says"


def _index(counts: dict[str, int]) -> str:
    lines = [f"- [{plain(name)}]({file_of(name)}): {count:,}" for name, count in sorted(counts.items())]
    return "\n".join(("# Memories", "", *(lines or ["There are none."]), ""))


def _append(path: Path, text: str) -> None:
    with open(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600), "a", encoding="utf-8", newline="") as file:
        file.write(text)
