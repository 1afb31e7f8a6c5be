"""A process that forks while it has a store open; which case is played is the third argument.

Arguments: store, keys, case. Says what parent and child saw, one JSON line each.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import select
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

from tallystick import Memory
from tallystick.errors import Forked, TallystickError

STORES = 10
FORKS = 10
SECONDS = 20


class Pipe:
    """A line from one process to another: `tell` here, `wait` there."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()

    def tell(self) -> None:
        """Let the other one go on."""
        os.write(self._write, b".")

    def wait(self) -> None:
        """Wait until the other one says so, or for so long that it must have failed."""
        select.select([self._read], [], [], SECONDS)


def say(*line: object) -> None:
    """Write one line, never half of one: several threads and processes write."""
    os.write(1, (json.dumps(line) + "\n").encode())


def forked(child: Callable[[], object]) -> int:
    """Fork; the child does its part and then ends as a program ends, with finalisers. Returns the child's pid."""
    pid = os.fork()
    if pid == 0:
        child()
        gc.collect()
        sys.exit(0)
    return pid


def reap(pid: int) -> None:
    """Wait for a child and say how it ended."""
    say("child ended", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def opened() -> Memory:
    """The memory of the store named on the command line."""
    return Memory.open(Path(sys.argv[1]), keys=Path(sys.argv[2]), model="none")


def stores(memory: Memory, who: str, number: int = STORES) -> None:
    """Store so many memories and acknowledge each."""
    for n in range(number):
        say("stored", memory.store(f"{who} says {n}").id)


def again(who: str, number: int = STORES) -> Callable[[], None]:
    """A child's part: open the store again itself and store; being told to start afresh is an answer too."""

    def part() -> None:
        try:
            with opened() as memory:
                stores(memory, who, number)
        except Forked:
            say("told to start afresh")

    return part


def verbs() -> None:
    """Every verb of a Memory that was carried through a fork says so, and closing it does nothing."""
    memory = opened()
    stored = memory.store("before the fork").id
    memory.store("something else before the fork")
    receipt = memory.recall("fork").receipt
    begun = memory.events()
    next(begun)
    calls: dict[str, Callable[[], object]] = {
        "store": lambda: memory.store("in the child"),
        "forget": lambda: memory.forget(stored),
        "restore": lambda: memory.restore(stored),
        "recall": lambda: memory.recall("fork"),
        "get": lambda: memory.get(stored),
        "history": lambda: memory.history(stored),
        "why": lambda: memory.why(receipt),
        "events": lambda: list(memory.events()),
        "events begun before": lambda: list(begun),
        "log": lambda: memory.log(),
        "verify": lambda: memory.verify(),
        "status": lambda: memory.status(),
        "rebuild": lambda: memory.rebuild(),
        "embed": lambda: memory.embed(),
    }

    def child() -> None:
        for name, call in calls.items():
            try:
                call()
                say(name, "nothing")
            except Forked:
                say(name, "Forked")
            except TallystickError as error:
                say(name, type(error).__name__)
        memory.close()

    reap(forked(child))
    stores(memory, "the parent goes on")
    memory.close()


def ends() -> None:
    """Children end normally, one after another, while the parent writes on."""
    with opened() as memory:
        for n in range(FORKS):
            stores(memory, f"before fork {n}", 2)
            memory.recall(f"before fork {n}")
            reap(forked(lambda: None))
        stores(memory, "after the forks")


def ends_inside_with() -> None:
    """A child leaves the parent's `with` block by sys.exit."""
    with opened() as memory:
        stores(memory, "before")
        pid = os.fork()
        if pid == 0:
            sys.exit(0)
        reap(pid)
        stores(memory, "after")


def fails() -> None:
    """What a child ends with is told, finalisers and all."""
    with opened() as memory:
        stores(memory, "before")
        pid = os.fork()
        if pid == 0:
            sys.exit(7)
        reap(pid)


def temporary() -> None:
    """A child leaves the `with` block of a temporary memory: the folder is the parent's."""
    with Memory.temporary() as memory:
        stores(memory, "before")
        pid = os.fork()
        if pid == 0:
            sys.exit(0)
        reap(pid)
        stores(memory, "after")
        say("size", memory.verify(views=True).logs[0].size)


def threads() -> None:
    """The parent forks while its own threads are in the middle of commands."""
    with opened() as memory:
        work = [threading.Thread(target=stores, args=(memory, f"thread {n}", 60)) for n in range(4)]
        for thread in work:
            thread.start()
        for _ in range(FORKS):
            reap(forked(lambda: None))
        for thread in work:
            thread.join()
        stores(memory, "after the forks")


def opens_again() -> None:
    """Parent and child write at once, the child through a Memory of its own."""
    with opened() as memory:
        stores(memory, "before")
        pid = forked(again("the child"))
        stores(memory, "the parent")
        reap(pid)
        stores(memory, "after")


def opens_again_elsewise() -> None:
    """As the next case, but the child has let go of what it inherited, and reaches the store by a link."""
    inherited, ready, closed, wrote, done = [opened()], Pipe(), Pipe(), Pipe(), Pipe()
    stores(inherited[0], "before")
    link = Path(sys.argv[1]).with_name("link")
    link.symlink_to(sys.argv[1], target_is_directory=True)

    def child() -> None:
        inherited.clear()
        gc.collect()
        try:
            with Memory.open(link, keys=Path(sys.argv[2]), model="none") as own:
                stores(own, "the child")
                ready.tell()
                closed.wait()
                stores(own, "the child after")
                wrote.tell()
                done.wait()
        except Forked:
            say("told to start afresh")
            ready.tell()
            wrote.tell()

    pid = forked(child)
    ready.wait()
    stores(inherited[0], "the parent")
    inherited.pop().close()
    closed.tell()
    wrote.wait()
    with opened() as anew:
        stores(anew, "the parent anew")
    done.tell()
    reap(pid)


def opens_again_and_outlives() -> None:
    """The parent closes and opens anew while the child, with a Memory of its own, goes on writing."""
    memory, ready, closed, wrote, done = opened(), Pipe(), Pipe(), Pipe(), Pipe()
    stores(memory, "before")

    def child() -> None:
        try:
            with opened() as own:
                stores(own, "the child")
                ready.tell()
                closed.wait()
                stores(own, "the child after")
                wrote.tell()
                done.wait()
        except Forked:
            say("told to start afresh")
            ready.tell()
            wrote.tell()

    pid = forked(child)
    ready.wait()
    stores(memory, "the parent")
    memory.close()
    closed.tell()
    wrote.wait()
    with opened() as anew:
        stores(anew, "the parent anew")
    done.tell()
    reap(pid)


def lingers() -> None:
    """The parent closes; the child holds what it inherited while another process opens, writes and is killed."""
    memory, done = opened(), Pipe()
    stores(memory, "before")
    inherited = [memory]

    def child() -> None:
        done.wait()
        inherited.clear()

    pid = forked(child)
    inherited.clear()
    memory.close()
    other = subprocess.Popen([sys.executable, __file__, *sys.argv[1:3], "killed"], stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    for line in other.stdout:
        os.write(1, line.encode())
    say("other ended", other.wait())
    del memory
    done.tell()
    reap(pid)


def killed() -> None:
    """What the other process of `lingers` does: write, and end without closing anything."""
    stores(opened(), "the other")
    os.kill(os.getpid(), 9)


def another_store() -> None:
    """The child opens a store that the parent does not have."""
    with opened() as memory:
        stores(memory, "before")

        def child() -> None:
            with Memory.temporary() as own:
                own.store("in the child's own store")
                say("own", own.verify(views=True).logs[0].size)

        reap(forked(child))
        stores(memory, "after")


def processes() -> None:
    """A pool of forked workers is handed the Memory as a global; each is told that it can't be used."""
    global handed
    context = multiprocessing.get_context("fork")
    with opened() as memory:
        handed = memory
        stores(memory, "before")
        with context.Pool(2) as pool:
            for answer in pool.map(use_handed, range(4)):
                say("worker", answer)
        stores(memory, "after")


handed: Memory


def use_handed(number: int) -> str:
    """Use the Memory that this worker inherited."""
    try:
        return handed.store(f"worker {number} says").id
    except Forked:
        return "Forked"


CASES = (
    verbs, ends, ends_inside_with, fails, temporary, threads, opens_again, opens_again_elsewise,
    opens_again_and_outlives, lingers, killed, another_store, processes,
)  # fmt: skip

if __name__ == "__main__":
    # Python 3.12 and later warn of what is tested here: a fork while there are threads.
    warnings.filterwarnings("ignore", category=DeprecationWarning, message=".*fork.*")
    {case.__name__: case for case in CASES}[sys.argv[3]]()
