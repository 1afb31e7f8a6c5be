"""A process whose disk is full, or can't be written to; which case is played is the third argument.

Arguments: store, keys, case. Says what happened, one JSON line each.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tallystick import Memory
from tallystick.errors import TallystickError
from tallystick.events import installation

MOST = 2000
ROOM = 20_000
UNLIMITED = resource.RLIM_INFINITY


def say(*line: object) -> None:
    """Write one line at once."""
    print(json.dumps(line), flush=True)


def tried(name: str, call: Callable[[], object]) -> bool:
    """Say what came of a call; whether it succeeded."""
    try:
        say(name, "done", str(call()))
    except TallystickError as error:
        say(name, type(error).__name__, str(error))
        return False
    return True


def fill(memory: Memory, free: Callable[[], None]) -> None:
    """Store until there is no room, then free it and go on. What was acknowledged must be there."""
    stored = [memory.store("before the disk was full").id]

    def store() -> str:
        stored.append(memory.store(f"text {len(stored)} {'x' * 2000}").id)
        return stored[-1]

    while len(stored) < MOST and tried("store", store):
        pass
    tried("recall", lambda: [hit.text for hit in memory.recall("before")])
    free()
    tried("store again", store)
    texts = [memory.get(each).text for each in stored]
    say("kept", len(texts), len(stored))
    memory.verify(views=True)
    say("verified")


def limited(store: Path, keys: Path) -> None:
    """Files of this process may not grow, as under a quota."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with Memory.open(store, keys=keys, model="none") as memory:
        memory.recall("nothing yet")
        largest = max(file.stat().st_size for file in store.iterdir())
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest + ROOM, UNLIMITED))
        fill(memory, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (UNLIMITED, UNLIMITED)))


def full(store: Path, keys: Path) -> None:
    """The file system has little room besides a file that can be deleted."""
    ballast = store.parent / "ballast"
    ballast.write_bytes(bytes(1_000_000))
    with Memory.open(store, keys=keys, model="none") as memory:
        fill(memory, ballast.unlink)


def fixed(store: Path, keys: Path) -> None:
    """The store is there and can't be written to."""
    tried("open", lambda: Memory.open(store, keys=keys, model="none"))
    with Memory.open(store, keys=keys, model="none", read_only=True) as memory:
        recall = memory.recall("a text")
        say("read", [hit.text for hit in recall], recall.receipt, recall.degraded)
        tried("store", lambda: memory.store("another text"))
        tried("forget", lambda: memory.forget(recall.hits[0].id))
        tried("used", lambda: memory.used("00" * 16, [recall.hits[0].id]))
        tried("rebuild", memory.rebuild)
        memory.verify(views=True)
        say("verified")


def refused(store: Path, keys: Path) -> None:
    """There is room for the keys of a new store and not for its log; then there is room."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, UNLIMITED))
    for place in (keys, None):
        tried("create", partial(Memory.open, store, keys=place, model="none"))
        say("left", sorted(str(each.relative_to(store.parent)) for each in store.parent.rglob("*")))
    resource.setrlimit(resource.RLIMIT_FSIZE, (UNLIMITED, UNLIMITED))
    with Memory.open(store, keys=keys, model="none") as memory:
        say("stored", memory.store("There is room").status)


def killed(store: Path, keys: Path) -> None:
    """The process ends between the keys of a new store and its log."""
    installation.write_store = lambda *_: os._exit(9)
    Memory.open(store, keys=keys, model="none")


CASES = {"limited": limited, "full": full, "fixed": fixed, "refused": refused, "killed": killed}

if __name__ == "__main__":
    CASES[sys.argv[3]](Path(sys.argv[1]), Path(sys.argv[2]))
