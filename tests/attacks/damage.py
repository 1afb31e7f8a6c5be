"""A store to be damaged one byte at a time: its history, its damaged copies, and what is seen of one."""

from __future__ import annotations

import re
import shutil
import signal
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any, NamedTuple

from tallystick import Memory
from tallystick.errors import LogDamaged, ViewsDamaged
from tallystick.events.installation import stamp
from tallystick.events.mark import Mark
from tallystick.projections.record import Record
from tallystick.queries.verify import LogReport, Report

from .layout import PAGE, Structure, cells, small_rows, structures

SEED = 20260508
SECONDS = 30  # no look at a damaged store may take longer
IN_MEMORY = Path("/dev/shm")

APP, ANA = "project:app", "org/acme/user:ana"
TEXTS = {
    "Use WAL mode for concurrent readers of SQLite": APP,
    "The nightly build runs at 02:30 and mails the maintainers": APP,
    "Deploys to production are frozen on Fridays": APP,
    "café, naïve and Ærøskøbing keep their accents in the address book": APP,
    "数据库使用预写日志模式": APP,
    "The parser lives in src/parse_tree.py and is called by loadConfig()": APP,
    "Retry a busy database three times before giving up": APP,
    "The staging server has 16 GB of memory and two cores": APP,
    "Prefer small pull requests of under 300 lines": APP,
    "Пароль хранится в связке ключей": APP,
    "The HTTP client times out after 30 seconds": APP,
    "Log lines carry ids and counts, never a text": APP,
    "Ana prefers tea to coffee in the morning": ANA,
    "Ana's sister Marta lives in Lisbon 🏡 and visits in June": ANA,
    "Ana is allergic to peanuts": ANA,
    "She reads mystery novels on the train": ANA,
    "The dentist's appointment is on 12 May at 9:00": ANA,
    "ありがとう is the first word Ana learnt in Japanese": ANA,
}
QUESTIONS = (
    (APP, "how do I let many readers in?"), (APP, "when does the nightly build run"),
    (APP, "deploys to production on Fridays"), (APP, "Aeroskobing cafe"), (APP, "数据库"), (APP, "parse tree"),
    (APP, "busy database retry"), (APP, "memory and cores of the staging server"), (APP, "pull requests"),
    (APP, "пароль"), (APP, "HTTP timeout seconds"), (APP, "where does the team meet"), (APP, "nothing of the kind"),
    (ANA, "tea or coffee"), (ANA, "Marta Lisbon"), (ANA, "allergic to peanuts"), (ANA, "mystery novels"),
    (ANA, "dentist appointment"), (ANA, "ありがとう"), (ANA, "where does Ana work"),
)  # fmt: skip

_WHAT = re.compile(
    r"\b(memory|access) log\b|\blog\.db\b|\bviews-[\da-f-]+\.db\b|\bvectors\.db\b|\bview\b|data key|claim"
)
_WHERE = re.compile(
    r"position \d+|page \d+|size \d+|first entry|first \d+ entries|has \d+ entries|setting '|which store it is|"
    r"stream [\da-f]{32}|claim [\da-f]{32}|says of [\da-f]{32}|view `\w+`|db is damaged: ."
)
_REMEDY = re.compile(r"`tallystick (verify|replay)`")

Answer = tuple[tuple[str, str, float], ...]
"""The hits of one recall, best first: id, text, score."""


class Flip(NamedTuple):
    """One byte to be changed: the file, where in it, and the bits that are turned over (1 to 255)."""

    file: str
    offset: int
    mask: int


class Seen(NamedTuple):
    """What is seen of a store: the verify report, the answers, and the memory log after them."""

    report: Report
    answers: tuple[Answer, ...]
    after: LogReport


class Original:
    """The untouched store: its files, where its structures lie, what is seen of it. Copies of it are damaged."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store, self.keys = folder / "store", folder / "keys"
        write_history(self.store, self.keys)
        self.files = {file.name: file.read_bytes() for file in self.store.iterdir()}
        self.mark = (self.keys / "mark").read_bytes()
        self.structures = structures(self.store / "log.db")
        self.small_rows = small_rows(self.store / "log.db")
        self.seen = self.look(None)
        self.records = self.read_all()

    @property
    def views(self) -> str:
        """The name of the views file."""
        return next(name for name in self.files if name.startswith("views-"))

    @contextmanager
    def copy(self, flip: Flip | None, *, forged: bool = False) -> Iterator[Path]:
        """A fresh copy with one byte flipped, and the mark as it was; `forged` makes it pass for the files it knows."""
        copy = self.folder / "copy"
        copy.mkdir()
        try:
            for name, content in self.files.items():
                (copy / name).write_bytes(content if flip is None or flip.file != name else flipped(content, flip))
            (self.keys / "mark").write_bytes(self.mark)
            if forged:
                self._forge(copy)
            yield copy
        finally:
            shutil.rmtree(copy)

    def look(self, flip: Flip | None) -> Seen:
        """Open a copy with one byte flipped, verify it, ask the questions, verify again."""
        with self.copy(flip) as copy, at_most(SECONDS), self.open(copy) as memory:
            report = memory.verify(views=True)
            answers = tuple(answer_to(memory, *question) for question in QUESTIONS)
            return Seen(report, answers, memory.verify().logs[0])

    def read_all(self) -> Mapping[str, Record]:
        """Every memory by id, as the untouched store has it."""
        with self.copy(None) as copy, self.open(copy) as memory:
            ids = {logged.header.stream.hex() for logged in memory.events() if logged.header.kind == "memory.stored"}
            return {name: memory.get(name) for name in sorted(ids)}

    def open(self, copy: Path) -> Memory:
        """Open a copy with the store's keys."""
        return Memory.open(copy, keys=self.keys, model="none")

    def structure_at(self, flip: Flip) -> Structure | None:
        """The entry, payload or data key that a flip damages, if it does."""
        inside = [s for s in self.structures if flip.file == "log.db" and s.start <= flip.offset < s.end]
        return inside[0] if inside else None

    def describe(self, flip: Flip) -> str:
        """Where a flip lies, for a person: file, offset, page, structure, old and new byte."""
        old, structure = self.files[flip.file][flip.offset], self.structure_at(flip)
        return (
            f"{flip.file}, offset {flip.offset} (page {flip.offset // PAGE + 1}, byte {flip.offset % PAGE}), "
            f"{structure.name if structure else 'outside entries, payloads and data keys'}: "
            f"{old:#04x} became {old ^ flip.mask:#04x}"
        )

    def _forge(self, copy: Path) -> None:
        """Write into the mark that the copy's files are those of the last close."""
        stamps = [(stamp(self.store / name), stamp(copy / name)) for name in self.files]
        mark = Mark(self.keys)
        mark.close({name: _replaced(value, stamps) for name, value in mark.read().closed.items()})
        mark.release()


def write_history(store: Path, keys: Path) -> None:
    """A history of about 50 events of the memory log, of every kind, with recalls and reads in the access log."""
    with Memory.open(store, namespace=APP, actor="agent:writer", keys=keys, model="none") as memory:
        ids = {
            text: memory.store(text, namespace=namespace, tags=["größe", f"n{n % 3}"][: n % 3]).id
            for n, (text, namespace) in enumerate(TEXTS.items())
        }
        for where in ("Zürich", "Oslo", "Porto"):
            memory.store(f"The team meets in {where}", key="meeting")
            memory.store(f"Ana works at the {where} office", key="employer", namespace=ANA, author="Ana")
        texts = list(TEXTS)
        for text in texts[::4]:
            memory.store(text, namespace=TEXTS[text])
        for text in texts[1::3]:
            memory.forget(ids[text], reason="überholt")
        for text in texts[1::6]:
            memory.restore(ids[text])
    with Memory.open(store, namespace=APP, actor="user:ana", keys=keys, model="none") as memory:
        memory.rebuild(reason="an event in clear")
        for namespace, question in QUESTIONS[::2]:
            memory.recall(question, namespaces=[namespace])
        for text in texts[::5]:
            memory.get(ids[text])
            memory.history(ids[text])
        memory.store("The last thing said before closing", metadata={"n": 1, "größe": [1.5, None]})
        memory.verify(views=True)


def answer_to(memory: Memory, namespace: str, question: str) -> Answer:
    """What a question is answered with."""
    return tuple((hit.id, hit.text, hit.score) for hit in memory.recall(question, limit=4, namespaces=[namespace]))


def judge(original: Original, flip: Flip) -> LogDamaged | ViewsDamaged | None:
    """The error that a damaged copy is refused with, or None where everything seen of it is as in the original.

    Any other error, and any difference in what is seen, goes on up with a note of where the flip lies.
    """
    try:
        seen = original.look(flip)
        different = [name for name, was, now in zip(Seen._fields, original.seen, seen, strict=True) if was != now]
        assert not different, f"this is seen differently, and no error says so: {different}"
    except (LogDamaged, ViewsDamaged) as error:
        return error
    except BaseException as error:
        error.add_note(original.describe(flip))
        raise
    return None


def count_harmless(original: Original, flips: Iterable[Flip]) -> int:
    """Judge flips; none that hits an entry, payload or data key may be harmless. Returns how many were."""
    harmless = 0
    for flip in flips:
        error = judge(original, flip)
        if error is None:
            assert original.structure_at(flip) is None, f"not noticed: {original.describe(flip)}"
            harmless += 1
        else:
            assert not unclear(error), f"{original.describe(flip)}: it does not say {unclear(error)}: {error}"
    return harmless


def unclear(error: LogDamaged | ViewsDamaged) -> str | None:
    """What an error's message leaves out, of what is damaged, where, and what to do; None where it says it all."""
    patterns = {"what": _WHAT, "where": _WHERE, "what to do": _REMEDY}
    return next((missing for missing, pattern in patterns.items() if not pattern.search(str(error))), None)


def some_flips(original: Original, seed: str, counts: Mapping[str, int]) -> list[Flip]:
    """Flips drawn by a seed, so many of each sort: `entry`, `payload`, `data key`, `row` (of log.db), or a file."""
    random = Random(f"{SEED} {seed}")
    return [_flip(original, random, sort) for sort, count in counts.items() for _ in range(count)]


def every_flip(file: str, offsets: Iterable[int]) -> list[Flip]:
    """One flip of each of these bytes of a file, each by bits that the seed decides."""
    random = Random(f"{SEED} {file}")
    return [Flip(file, offset, random.randrange(1, 256)) for offset in offsets]


def flipped(content: bytes, flip: Flip) -> bytes:
    """The content with one byte changed."""
    changed = bytearray(content)
    changed[flip.offset] ^= flip.mask
    return bytes(changed)


@contextmanager
def working_folder() -> Iterator[Path]:
    """A folder that is removed afterwards, in memory where the system has such a place."""
    folder = Path(tempfile.mkdtemp(prefix="tallystick-damage-", dir=IN_MEMORY if IN_MEMORY.is_dir() else None))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Raise TimeoutError where what is inside takes longer."""

    def late(_signal: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"this took longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _flip(original: Original, random: Random, sort: str) -> Flip:
    file = sort if sort in original.files else "log.db"
    parts = _parts(original, sort)
    place = random.randrange(sum(end - start for start, end in parts))
    for start, end in parts:
        if place < end - start:
            break
        place -= end - start
    return Flip(file, start + place, random.randrange(1, 256))


def _parts(original: Original, sort: str) -> list[tuple[int, int]]:
    """The first byte and the end of everything of a sort."""
    if sort in original.files:
        return [(0, len(original.files[sort]))]
    if sort == "row":
        return list(cells(original.files["log.db"]))
    return [(s.start, s.end) for s in original.structures if s.sort == sort]


def _replaced(value: Any, stamps: list[tuple[Any, Any]]) -> Any:
    """The value with each old stamp in it replaced by the new one."""
    for old, new in stamps:
        if value == old:
            return new
    return [_replaced(item, stamps) for item in value] if isinstance(value, list) else value
