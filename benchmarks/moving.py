"""What export and import cost, and whether that grows with the store: `python -m benchmarks.moving [--json]`."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tallystick import Memory

from .running import in_its_own, machine, most_mib
from .thousand import text

SIZES = (10_000, 100_000)
CHUNK = 500


def fill(memory: Memory, size: int) -> None:
    """Store so many memories."""
    for first in range(0, size, CHUNK):
        memory.store_many([text(number) for number in range(first, min(size, first + CHUNK))])


def measure(act: str, size: int, folder: Path) -> dict[str, float]:
    """One act in a process of its own: processor seconds, and how much memory the process had at most."""
    script = ["-m", "benchmarks.moving", "--act", act, "--size", str(size), "--folder", str(folder)]
    found = in_its_own(sys.executable, script)
    return {**found, "per_second": round(size / found["cpu_seconds"], 1)}


def act(name: str, size: int, folder: Path) -> dict[str, float]:
    """Do one act and say what it cost."""
    store = "there" if name in ("store", "export") else "here"
    with Memory.open(folder / store, keys=folder / f"{store}-keys", model="none") as memory:
        acts: dict[str, Callable[[], object]] = {
            "store": lambda: fill(memory, size),
            "export": lambda: memory.export(folder / "out.jsonl"),
            "import": lambda: memory.import_(folder / "out.jsonl"),
            "import again": lambda: memory.import_(folder / "out.jsonl"),
        }
        before = time.process_time()
        acts[name]()
        seconds = time.process_time() - before
    return {"cpu_seconds": round(seconds, 2), "most_mib": most_mib()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure each act at each size, and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.moving", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="how many memories")
    parser.add_argument("--folder", type=Path, help="where to put the stores (default: the temporary directory)")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of a table")
    parser.add_argument("--act", help=argparse.SUPPRESS)
    parser.add_argument("--size", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.act:
        print(json.dumps(act(options.act, options.size, options.folder)))
        return
    found: dict[str, Any] = {}
    for size in options.sizes:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            for name in ("store", "export", "import", "import again"):
                found[f"{name} {size:,}"] = measure(name, size, Path(folder))
    if options.json:
        print(json.dumps({"machine": machine(), "costs": found}, indent=2))
        return
    for name, cost in found.items():
        print(f"{name:22} {cost['cpu_seconds']:8} s CPU {cost['per_second']:10,} a second {cost['most_mib']:6} MiB")
    print(machine())


if __name__ == "__main__":
    main()
