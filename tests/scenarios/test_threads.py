"""One Memory is used from many threads at once: every command is carried out, once, and nothing gets mixed up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from random import random
from threading import Thread, get_ident
from time import sleep
from typing import Any

import pytest

from tallystick import Memory
from tallystick.errors import Refused, TallystickError
from tallystick.events.driver import Datastore
from tallystick.events.kinds import Recalled, Stored

from .conftest import Place

THREADS = 8
ROUNDS = 25


@pytest.fixture
def memory(place: Place) -> Iterator[Memory]:
    """A memory that all threads share."""
    with place.open() as opened:
        yield opened


def at_once(work: Callable[[int], Any], threads: int = THREADS) -> list[Any]:
    """What the work gives in each of so many threads, which begin together; raises what any of them raised."""
    together = threading.Barrier(threads)

    def begin(number: int) -> Any:
        together.wait()
        return work(number)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(begin, range(threads)))


def test_eight_threads_store_recall_and_forget(memory: Memory) -> None:
    """No command fails, each id and receipt is there, positions are gapless, and live views equal rebuilt ones."""

    def work(thread: int) -> tuple[dict[str, str], list[str], list[str | None]]:
        texts, forgotten, receipts = {}, [], []
        for n in range(ROUNDS):
            text = f"thread {thread} noticed number {n}"
            texts[memory.store(text).id] = text
            receipts.append(memory.recall(f"number {n}", limit=3).receipt)
            if n % 3 == 0:
                forgotten.append(list(texts)[-1])
                memory.forget(forgotten[-1])
        return texts, forgotten, receipts

    results = at_once(work)
    report = memory.verify(views=True)
    positions = [event.header.position for event in memory.events()]
    assert positions == list(range(1, report.logs[0].size))
    for texts, forgotten, receipts in results:
        assert {stream: memory.get(stream).text for stream in texts} == texts
        assert {memory.get(stream).status for stream in forgotten} == {"forgotten"}
        assert all(memory.why(receipt).receipt == receipt for receipt in receipts)
    assert len(positions) == THREADS * (ROUNDS + len(range(0, ROUNDS, 3)))


def test_threads_that_store_the_same_text(memory: Memory) -> None:
    """One thread stores it, the others reinforce it."""
    outcomes = at_once(lambda _: memory.store("everybody says this"))
    assert sorted(outcome.status for outcome in outcomes) == ["reinforced"] * (THREADS - 1) + ["stored"]
    assert len({outcome.id for outcome in outcomes}) == 1
    assert memory.get(outcomes[0].id).reinforced == THREADS - 1


def test_threads_that_store_one_key(memory: Memory) -> None:
    """Each value takes the place of the one before, and one stays in force."""
    outcomes = sorted(at_once(lambda n: memory.store(f"it is {n}", key="time")), key=lambda o: o.position)
    assert [outcome.superseded_id for outcome in outcomes] == [None, *(outcome.id for outcome in outcomes[:-1])]
    assert memory.status().memories == {"current": 1, "superseded": THREADS - 1}


def test_threads_that_repeat_a_command(memory: Memory) -> None:
    """It is carried out once, and all are told the same."""
    outcomes = at_once(lambda _: memory.store("what is to be done", command_id="one"))
    assert len({(outcome.id, outcome.position, outcome.status) for outcome in outcomes}) == 1
    assert [outcome.repeated for outcome in outcomes].count(False) == 1
    assert len([event for event in memory.events() if isinstance(event.event, Stored)]) == 1


def test_threads_that_forget_the_same_memory(memory: Memory) -> None:
    """One thread forgets it, the others are told that it is forgotten."""
    stored = memory.store("this will be forgotten").id

    def work(_: int) -> str:
        try:
            memory.forget(stored)
        except Refused:
            return "refused"
        return "forgotten"

    assert sorted(at_once(work)) == ["forgotten"] + ["refused"] * (THREADS - 1)
    assert memory.history(stored)[-1].header.revision == 1


def test_threads_open_and_close_memories_of_one_store(place: Place) -> None:
    """Several Memory objects of one process are as good as several processes; closing one leaves the others open."""

    def work(thread: int) -> str:
        with place.open() as own:
            return own.store(f"thread {thread} was here").id

    place.open().close()
    stored = at_once(work)
    with place.open() as memory:
        assert memory.verify(views=True).logs[0].size == 1 + THREADS
        assert {memory.get(stream).id for stream in stored} == set(stored)


def test_concurrent_stores_share_their_waits_for_the_disk(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores that wait at the same time are committed together: fewer waits for the disk than stores."""
    commits: list[str] = []
    begin = Datastore.transaction

    @contextmanager
    def counted(self: Datastore, *, commit: bool, durable: bool | None = None) -> Iterator[Any]:
        with begin(self, commit=commit, durable=durable) as cursor:
            yield cursor
        if commit and durable and self.file.path.name == "log.db":
            commits.append(self.file.path.name)

    monkeypatch.setattr(Datastore, "transaction", counted)
    at_once(lambda thread: [memory.store(f"thread {thread}, number {n}") for n in range(ROUNDS)])
    assert 0 < len(commits) < THREADS * ROUNDS


def test_readers_are_recorded_on_one_stream(memory: Memory) -> None:
    """The first recalls of a session, made at once, open one stream of the access log and no more."""
    memory.store("something to be recalled")
    receipts = [recall.receipt for recall in at_once(lambda n: memory.recall(f"something recalled {n}"))]
    recalls = [memory.why(receipt).logged for receipt in receipts]
    assert len({logged.header.stream for logged in recalls}) == 1
    assert sorted(logged.header.revision for logged in recalls) == list(range(THREADS))
    assert all(isinstance(logged.event, Recalled) for logged in recalls)


def test_closing_waits_for_what_others_are_at() -> None:
    """A verb that another thread is at ends as if nothing happened; the next one is told that the Memory is closed."""
    for _ in range(5):
        ended: list[str] = []

        def work(memory: Memory, ended: list[str] = ended) -> None:
            try:
                while True:
                    memory.store(f"{get_ident()} {len(ended)} {random()}")
                    memory.recall("text")
                    memory.log()
            except TallystickError as error:
                ended.append(f"{type(error).__name__}: {error}")

        with Memory.temporary() as memory:
            threads = [Thread(target=work, args=(memory,)) for _ in range(6)]
            for thread in threads:
                thread.start()
            sleep(0.05)
        for thread in threads:
            thread.join()
        assert ended == ["Unavailable: This Memory is closed. Open the store again."] * 6
