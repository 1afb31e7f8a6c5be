"""A store to be damaged one byte at a time: its history, where its structures lie, and what is seen of a copy."""

from __future__ import annotations

import re
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any, NamedTuple

from tallystick import Memory
from tallystick.errors import LogDamaged, ViewsDamaged
from tallystick.events.driver import Datastore, File
from tallystick.events.installation import stamp
from tallystick.events.mark import Mark
from tallystick.queries.verify import Report

SEED = 20260508
APP, ANA = "project:app", "org/acme/user:ana"
LOGS = ("memory", "access")
PLACES = 1 << 48
SECONDS = 30
"""No look at a damaged store may take longer."""

TEXTS = {
    APP: (
        "Use WAL mode for concurrent readers of SQLite",
        "The nightly build runs at 02:30 and mails the maintainers",
        "Deploys to production are frozen on Fridays",
        "café, naïve and Ærøskøbing are spelt with their accents in the address book",
        "数据库使用预写日志模式",
        "The parser lives in src/parse_tree.py and is called by loadConfig()",
        "Retry a busy database three times before giving up",
        "The staging server has 16 GB of memory and two cores",
        "Prefer small pull requests of under 300 lines",
        "Пароль хранится в связке ключей",
        "The HTTP client times out after 30 seconds",
        "Log lines carry ids and counts, never a text",
    ),
    ANA: (
        "Ana prefers tea to coffee in the morning",
        "Ana's sister Marta lives in Lisbon 🏡 and visits in June",
        "Ana is allergic to peanuts",
        "She reads mystery novels on the train",
        "The dentist's appointment is on 12 May at 9:00",
        "ありがとう is the first word Ana learnt in Japanese",
    ),
}
QUESTIONS = (
    (APP, "how do I let many readers in?"), (APP, "when does the nightly build run"),
    (APP, "deploys to production on Fridays"), (APP, "Aeroskobing cafe"), (APP, "数据库"), (APP, "parse tree"),
    (APP, "busy database retry"), (APP, "memory and cores of the staging server"), (APP, "pull requests"),
    (APP, "пароль"), (APP, "HTTP timeout seconds"), (APP, "where does the team meet"), (APP, "nothing of the kind"),
    (ANA, "tea or coffee"), (ANA, "Marta Lisbon"), (ANA, "allergic peanuts"), (ANA, "mystery novels"),
    (ANA, "dentist appointment"), (ANA, "ありがとう"), (ANA, "where does Ana work"),
)  # fmt: skip


class Flip(NamedTuple):
    """One byte to be changed: the file, where in it, and the bits that are turned over (1 to 255)."""

    file: str
    offset: int
    mask: int


class Region(NamedTuple):
    """Bytes of log.db that hold one structure, and its name."""

    start: int
    end: int
    what: str


class Seen(NamedTuple):
    """What a person sees of a store: the verify report, the answers, and the report after the answers."""

    report: Report
    answers: tuple[tuple[tuple[str, float], ...], ...]
    after: Report


class Original:
    """The untouched store: its files, its mark, and the folder in which each damaged copy is put."""

    def __init__(self, folder: Path) -> None:
        self.keys = folder / "keys"
        self.texts = write_history(folder / "store", self.keys)
        self.folder = folder
        self.files = {file.name: file.read_bytes() for file in (folder / "store").iterdir()}
        self.mark = (self.keys / "mark").read_bytes()
        self.regions = regions_of(folder)
        self.seen = self.look(None)

    @contextmanager
    def copy(self, flip: Flip | None) -> Iterator[Path]:
        """A fresh copy of the store with one byte flipped, and the mark as it was."""
        copy = self.folder / "copy"
        copy.mkdir()
        try:
            for name, content in self.files.items():
                (copy / name).write_bytes(content if flip is None or flip.file != name else flipped(content, flip))
            (self.keys / "mark").write_bytes(self.mark)
            yield copy
        finally:
            shutil.rmtree(copy)

    def look(self, flip: Flip | None) -> Seen:
        """Open a copy with one byte flipped, verify it, ask the questions, verify again."""
        with self.copy(flip) as copy, at_most(SECONDS), Memory.open(copy, keys=self.keys, model="none") as memory:
            report = memory.verify(views=True)
            answers = tuple(answer_to(memory, namespace, question) for namespace, question in QUESTIONS)
            return Seen(report, answers, without_access(memory.verify()))

    def structure(self, flip: Flip) -> str:
        """What lies where a byte is flipped."""
        for region in self.regions if flip.file == "log.db" else ():
            if region.start <= flip.offset < region.end:
                return region.what
        return f"{flip.file} page {flip.offset // 4096 + 1}"


def write_history(store: Path, keys: Path) -> set[str]:
    """A history of about 50 events that uses every verb; returns every text in it."""
    texts = set()
    with Memory.open(store, namespace=APP, actor="agent:writer", keys=keys, model="none") as memory:
        ids = {}
        for namespace, stored in TEXTS.items():
            for n, text in enumerate(stored):
                ids[text] = memory.store(text, namespace=namespace, tags=[f"tag{n % 3}", "größe"][: n % 3]).id
        for where in ("Zürich", "Oslo", "Porto"):
            memory.store(f"The team meets in {where}", key="meeting")
            memory.store(f"Ana works at the {where} office", key="employer", namespace=ANA, author="Ana")
            texts |= {f"The team meets in {where}", f"Ana works at the {where} office"}
        order = list(ids)
        for text in order[::4]:
            memory.store(text, namespace=APP if text in TEXTS[APP] else ANA)
        for text in order[1::3]:
            memory.forget(ids[text], reason="outdated: ünused")
        for text in order[1::6]:
            memory.restore(ids[text])
    with Memory.open(store, namespace=APP, actor="user:ana", keys=keys, model="none") as memory:
        memory.rebuild(reason="a clear event")
        for namespace, question in QUESTIONS[::2]:
            memory.recall(question, namespaces=[namespace])
        for text in order[::5]:
            memory.get(ids[text])
            memory.history(ids[text])
        memory.store("The last thing said before closing", metadata={"n": 1, "größe": [1.5, None]})
        memory.verify(views=True)
    return texts | set(ids) | {"The last thing said before closing"}


def answer_to(memory: Memory, namespace: str, question: str) -> tuple[tuple[str, float], ...]:
    """The ids and scores a question is answered with."""
    return tuple((hit.id, hit.score) for hit in memory.recall(question, limit=4, namespaces=[namespace]))


def without_access(report: Report) -> Report:
    """A report without the log that asking makes longer."""
    return report._replace(logs=tuple(log for log in report.logs if log.log != "access"))


def flipped(content: bytes, flip: Flip) -> bytes:
    """The content with one byte changed."""
    changed = bytearray(content)
    changed[flip.offset] ^= flip.mask
    return bytes(changed)


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Raise TimeoutError where what is inside takes longer."""

    def late(_signal: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"took longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
