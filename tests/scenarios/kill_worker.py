"""A writer to be killed: says what it begins and what it has done, one JSON line each, until it is told to stop.

Arguments: store, keys, the worker's name, a seed. Any line on standard input stops it.
"""

from __future__ import annotations

import json
import select
import sys
from pathlib import Path
from random import Random

from tallystick import Memory


def say(*line: object) -> None:
    """Write one line at once."""
    print(json.dumps(line), flush=True)


def told() -> bool:
    """Whether a line has come."""
    return bool(select.select([sys.stdin], [], [], 0)[0])


def work(memory: Memory, name: str, random: Random) -> None:
    """Store, forget, restore and recall in a random order, each command announced and then acknowledged."""
    current: list[str] = []
    forgotten: list[str] = []
    number = 0
    while not told():
        verb = random.choices(("store", "forget", "restore", "recall"), (5, 2, 2, 2))[0]
        if verb == "store":
            text = f"{name} noticed number {number} {random.random()}"
            number += 1
            say("begin", "store", text)
            current.append(memory.store(text).id)
            say("stored", current[-1], text)
        elif verb == "forget" and current:
            moved = current.pop(random.randrange(len(current)))
            say("begin", "forget", moved)
            memory.forget(moved)
            forgotten.append(moved)
            say("forgotten", moved)
        elif verb == "restore" and forgotten:
            moved = forgotten.pop(random.randrange(len(forgotten)))
            say("begin", "restore", moved)
            memory.restore(moved)
            current.append(moved)
            say("restored", moved)
        elif verb == "recall":
            say("recalled", memory.recall(f"what did {name} notice", limit=3).receipt)


def main(store: str, keys: str, name: str, seed: str) -> None:
    """Wait for a line, then work until the next one, or until killed."""
    with Memory.temporary() as warm:  # loads what a first command loads
        warm.store("a text")
        warm.recall("text")
    say("ready")
    sys.stdin.readline()
    with Memory.open(Path(store), keys=Path(keys), model="none", actor=f"agent:{name}") as memory:
        say("open")
        work(memory, name, Random(seed))


if __name__ == "__main__":
    main(*sys.argv[1:])
