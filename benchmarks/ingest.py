"""What it costs to remember: `python -m benchmarks.ingest [--sizes 1000 10000]`.

Engineering notes (`benchmarks.notes`) stored one by one and five hundred at a time, without a model and with its
vectors; each way in a process of its own. The processor time of a memory counts until it is durable and can be found:
its words indexed, its vectors made.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.notes import Journal
from benchmarks.running import disk_mib, in_its_own, most_mib, parser, say, tell
from tallystick import Memory

SIZES = (1000, 10_000)
BATCHES = {"singly": 1, "in batches of 500": 500}
MODELS = {"words alone": "none", "with vectors": "auto"}


def _chunks(size: int, batch: int) -> Iterator[list[dict[str, Any]]]:
    journal = Journal()
    for first in range(0, size, batch):
        yield [{"text": note.text, "occurred_at": note.at} for note in journal.write(min(batch, size - first))]


def act(size: int, batch: int, model: str, folder: Path) -> dict[str, Any]:
    """Store so many notes in a new store, and say what that cost."""
    with Memory.open(folder / "store", keys=folder / "keys", model=model) as memory:
        memory.embed()
        memory.recall("the first one loads the model")
        chunks = list(_chunks(size, batch))
        before = time.process_time()
        for chunk in chunks:
            if batch == 1:
                memory.store(**chunk[0])
            else:
                memory.store_many(chunk)
        memory.embed()
        memory.recall("the last one indexes what is new")
        spent = time.process_time() - before
    return {
        "cpu_ms": round(spent * 1000 / size, 3),
        "per_cpu_second": round(size / spent, 1),
        "rss_mib": most_mib(),
        "disk_mib": disk_mib(folder / "store"),
    }


def measure(sizes: Sequence[int], folder: Path) -> dict[str, Any]:
    """Each way of storing at each size, in a process of its own."""
    found: dict[str, Any] = {}
    for number, (size, (model, setting), (way, batch)) in enumerate(product(sizes, MODELS.items(), BATCHES.items())):
        script = ["--act", f"{size}", f"{batch}", setting, str(folder / str(number))]
        found.setdefault(f"{size:,}", {})[f"{model}, {way}"] = in_its_own(
            sys.executable, ["-m", "benchmarks.ingest", *script]
        )
        tell(f"{size:,} {way}, {model}: stored")
    return {"sizes": found}


def _table(report: Mapping[str, Any]) -> str:
    lines = [f"{'':40} {'CPU ms each':>12} {'a CPU second':>13} {'RSS MiB':>8} {'disk MiB':>9}"]
    for size, ways in report["sizes"].items():
        for way, cost in ways.items():
            told = f"{cost['cpu_ms']:12} {cost['per_cpu_second']:13,} {cost['rss_mib']:8} {cost['disk_mib']:9}"
            lines.append(f"{size + ', ' + way:40} {told}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a table or one JSON document."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    takes = parser("benchmarks.ingest", __doc__)
    takes.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="how many memories")
    takes.add_argument("--act", nargs=4, help=argparse.SUPPRESS)
    options = takes.parse_args(given)
    if options.act:
        size, batch, model, folder = options.act
        print(json.dumps(act(int(size), int(batch), model, Path(folder))))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        report = measure(options.sizes, Path(folder))
    say(report, "benchmarks.ingest", given, _table)


if __name__ == "__main__":
    main()
