"""A process killed at any moment has lost nothing that it had acknowledged, and has damaged nothing."""

from __future__ import annotations

import os
import shutil
import time
from random import Random
from typing import Any

from tallystick import Memory
from tallystick.errors import Refused
from tallystick.events.installation import Installation
from tallystick.events.mark import Mark

from .conftest import Place, Start, Worker

ROUNDS = 30
ROUNDS_OF_TWO = 5
CREATIONS = 12
LONGEST_SECONDS = 0.05
LINES = (0, 1, 2, 10, 30, 60)
PATIENCE = 20.0
SEED = 20260508

GOES_TO = {"forget": "forgotten", "restore": "current"}
WENT_TO = {"stored": "current", "forgotten": "forgotten", "restored": "current"}


class Account:
    """What workers have acknowledged, to be compared with what the store then holds."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.allowed: dict[str, set[str]] = {}
        self.receipts: list[str] = []

    def read(self, lines: list[list[Any]]) -> int:
        """Take in a worker's lines; what it had begun and not acknowledged may have happened or not."""
        begun: tuple[str, str] | None = None
        for verb, what, *more in (line for line in lines if len(line) > 1):
            begun = (more[0], what) if verb == "begin" else None
            if verb == "begin":
                begun = (what, more[0])
            elif verb == "recalled":
                self.receipts.append(what)
            else:
                self.texts |= {what: more[0]} if more else {}
                self.allowed[what] = {WENT_TO[verb]}
        if begun is not None and begun[0] in GOES_TO:
            self.allowed[begun[1]] = self.allowed[begun[1]] | {GOES_TO[begun[0]]}
        return sum(line[0] in WENT_TO or line[0] == "recalled" for line in lines)

    def compare(self, memory: Memory) -> None:
        """Every acknowledged memory has its text and an acknowledged status, every receipt its recall."""
        for stream, text in self.texts.items():
            record = memory.get(stream)
            assert (record.text, record.status in self.allowed[stream]) == (text, True)
            self.allowed[stream] = {record.status}
        for receipt in self.receipts:
            assert memory.why(receipt).receipt == receipt
        self.texts, self.receipts = {}, []


def require_mark_behind(place: Place) -> None:
    """The mark never says more than the log holds, nor anything else than it holds."""
    mark = Mark(place.keys)
    marked = mark.read()
    mark.release()
    installation = Installation.audit(place.store, None, place.keys)
    try:
        for log in installation.logs:
            tip = log.follow()
            assert marked.frontiers[log.origin].size <= tip.size
    finally:
        installation.abandon()


def require_clean(place: Place, account: Account) -> None:
    """The store opens, holds what was acknowledged, and its views are those of a rebuild."""
    require_mark_behind(place)
    with place.open() as memory:
        account.compare(memory)
        memory.verify(views=True)


def run_and_kill(worker: Worker, random: Random) -> list[list[Any]]:
    """Let a worker that is ready open the store and say so many lines, or only begin to open it, and kill it."""
    worker.say()
    heard = [worker.hear() for _ in range(random.choice(LINES))]
    time.sleep(random.uniform(0, LONGEST_SECONDS))
    return heard + worker.kill()


def test_thirty_kills_lose_nothing(place: Place, start: Start) -> None:
    """After each of thirty kills the store opens clean, with all that was acknowledged; some are two in a row."""
    random, done = Random(SEED), 0
    account = Account()
    place.open().close()
    worker = start("kill_worker.py", place.store, place.keys, "w0", 0)
    for n in range(ROUNDS):
        following = start("kill_worker.py", place.store, place.keys, f"w{n + 1}", n + 1)
        assert worker.hear() == ["ready"]
        done += account.read(run_and_kill(worker, random))
        if n % 5:
            require_clean(place, account)
        worker = following
    worker.kill()
    assert done > 5 * ROUNDS


def test_a_killed_comparison_leaves_nothing_behind(place: Place, start: Start) -> None:
    """Views that were being built to compare are gone after the next opening; only those in force are there."""
    with place.open() as memory:
        for n in range(200):
            memory.store(f"text {n}")
    os.utime(next(place.store.glob("views-*.db")))
    worker = start("kill_worker.py", place.store, place.keys, "w", 0)
    worker.hear()
    worker.say()
    until = time.monotonic() + PATIENCE
    while len(list(place.store.glob("views-*.db"))) < 2:
        assert time.monotonic() < until
    worker.kill()
    with place.open() as memory:
        memory.verify(views=True)
    assert len(list(place.store.glob("views-*"))) == 1


def test_one_of_two_writers_is_killed(place: Place, start: Start) -> None:
    """The other one does not notice, and neither has lost anything."""
    random = Random(SEED)
    place.open().close()
    for n in range(ROUNDS_OF_TWO):
        account = Account()
        staying, killed = (start("kill_worker.py", place.store, place.keys, f"{w}{n}", n) for w in ("stays", "dies"))
        assert [staying.hear(), killed.hear()] == [["ready"], ["ready"]]
        assert staying.say().hear() == ["open"]
        account.read(run_and_kill(killed, random))
        assert account.read(staying.say("stop").succeed()) > 0
        require_clean(place, account)


def test_a_killed_creation_can_be_repeated(place: Place, start: Start) -> None:
    """Whenever the creation of a store is killed, the next opening makes it, or names the keys that are there."""
    random = Random(SEED)
    for n in range(CREATIONS):
        at = Place(place.store / str(n), place.keys / str(n))
        worker = start("kill_worker.py", at.store, at.keys, "w", n)
        worker.hear()
        worker.say()
        time.sleep(random.uniform(0, LONGEST_SECONDS))
        worker.kill()
        try:
            at.open().close()
        except Refused as refusal:
            assert str(at.keys) in str(refusal)
            shutil.rmtree(at.keys)  # as the refusal allows: another directory, or this one emptied
        with at.open() as memory:
            memory.store("the store is there")
            memory.verify(views=True)
