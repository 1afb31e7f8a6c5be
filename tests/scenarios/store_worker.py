"""One of several processes that store at once: says what came of each store, one JSON line each.

Arguments: store, keys, the worker's name, how many rounds.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tallystick import Memory, Outcome


def say(case: str, outcome: Outcome) -> None:
    """Acknowledge a store that has returned."""
    print(json.dumps({"case": case, **outcome._asdict()}), flush=True)


def main(store: str, keys: str, name: str, rounds: int) -> None:
    """Wait for a line, then store the same and different texts, keys and command ids as the others do."""
    with Memory.open(Path(store), keys=Path(keys), model="none", actor=f"agent:{name}") as memory:
        print(json.dumps("open"), flush=True)
        sys.stdin.readline()
        for n in range(rounds):
            say("own", memory.store(f"what {name} alone knows, number {n}"))
            say(f"text {n}", memory.store(f"what everybody says, number {n}"))
            say("key", memory.store(f"{name} says it is {n} o'clock", key="time"))
            say(f"key {name}", memory.store(f"{name} has counted to {n}", key=f"count/{name}"))
            say(f"command {n}", memory.store(f"what is to be done, number {n}", command_id=f"command-{n}"))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
