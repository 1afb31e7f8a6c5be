"""What one act costs in a store of a thousand memories: `python -m benchmarks.thousand [--json]`."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from benchmarks.running import machine
from tallystick import Memory

MEMORIES = 1000
REPEATS = 200
SUBJECTS = ("the index", "a migration", "the cache", "a deadlock", "the parser", "a timeout", "the queue", "a token")
VERBS = ("failed on", "was moved to", "now depends on", "should not touch", "was measured against", "is owned by")


class Cost(NamedTuple):
    """Milliseconds of one call: median wall time, and processor time over all calls divided by their number."""

    wall_ms: float
    cpu_ms: float


def text(number: int) -> str:
    """A line of a dozen words, different for each number."""
    subject, verb = SUBJECTS[number % len(SUBJECTS)], VERBS[number % len(VERBS)]
    return f"In release {number} {subject} {verb} host {number * 7 % 91} because of ticket {number * 13 % 997}"


def cost(call: Callable[[int], object], repeats: int) -> Cost:
    """Call so many times and say what one costs."""
    walls, cpu = [], time.process_time()
    for number in range(repeats):
        start = time.perf_counter()
        call(number)
        walls.append(time.perf_counter() - start)
    return Cost(round(statistics.median(walls) * 1000, 3), round((time.process_time() - cpu) / repeats * 1000, 3))


def durable_floor(folder: Path) -> Cost:
    """What the disk asks for: one append of 4 KiB to a file, and the wait for it."""
    with (folder / "floor").open("ab", buffering=0) as file:
        return cost(lambda _: os.fsync(file.fileno()) if file.write(b"\0" * 4096) else None, REPEATS)


def measure(folder: Path, model: str) -> dict[str, Cost]:
    """Fill a store and time one store, one recall and one opening."""

    def opened() -> Memory:
        return Memory.open(folder / f"store-{model}", keys=folder / f"keys-{model}", model=model)

    with opened() as memory:
        filling = cost(lambda n: memory.store(text(n)), MEMORIES)
        memory.embed()
        if model != "none":
            memory.recall("the first one loads the model")
        recall = cost(lambda n: memory.recall(f"what happened to {SUBJECTS[n % 8]} on host {n % 91}?"), REPEATS)
        storing = cost(lambda n: memory.store(text(MEMORIES + n)), REPEATS)
    opening = cost(lambda _: opened().close(), 20)
    return {
        "store, filling": filling,
        "store, durable, at 1,000": storing,
        "recall, at 1,000": recall,
        "open and close": opening,
    }


def import_cost() -> Cost:
    """What importing Memory costs in a fresh interpreter: medians of nine."""
    script = "import time; w, c = time.perf_counter(), time.process_time()\nfrom tallystick import Memory\n"
    script += "print(time.perf_counter() - w, time.process_time() - c)"
    runs = [
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True) for _ in range(9)
    ]
    walls, cpus = zip(*(map(float, run.stdout.split()) for run in runs), strict=True)
    return Cost(round(statistics.median(walls) * 1000, 1), round(statistics.median(cpus) * 1000, 1))


def main() -> None:
    """Measure without and with the model, beside the floor, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON document instead of a table")
    parser.add_argument("--folder", type=Path, help="where to put the stores (default: the temporary directory)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        found = {"from tallystick import Memory": import_cost(), "4 KiB and fsync (floor)": durable_floor(Path(folder))}
        for model in ("none", "auto"):
            found |= {f"{what}, {model}": value for what, value in measure(Path(folder), model).items()}
    if arguments.json:
        print(json.dumps({"machine": machine(), "costs": {k: v._asdict() for k, v in found.items()}}, indent=2))
        return
    for what, value in found.items():
        print(f"{what:36} {value.wall_ms:9.3f} ms wall {value.cpu_ms:9.3f} ms CPU")


if __name__ == "__main__":
    main()
