"""What the log costs, beside the least it could: `python -m benchmarks.ledger [--json] [--events N] [--open N]`."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy

from benchmarks.floors import DurableCommit, LogFloors, cpu_us, median_ms, view_rows
from benchmarks.workload import BATCH, SHORT_TOKENS, Writer
from tallystick import Memory
from tallystick.errors import LogDamaged
from tallystick.events.driver import Datastore, File
from tallystick.events.installation import FILE, Installation
from tallystick.projections.embedding import Embedded, Space
from tallystick.projections.vector import changed_after
from tallystick.projections.vector_cache import Made, VectorCache
from tallystick.projections.vector_search import VectorSearch
from tallystick.projections.views import Views, building
from tallystick.queries.verify import Depth, verify

Opened = TypeVar("Opened")

APPENDED = 3000
OPENINGS = 20
RUNS = 3
DIMENSIONS = 192
ONE_VECTOR = numpy.full(DIMENSIONS, DIMENSIONS**-0.5, dtype="<f2").tobytes()
TOKENS_OF_A_TURN = 37
STORE, KEYS = "store", "keys"


class Figure(NamedTuple):
    """One measured cost: of how many things, and the least it could be, measured in the same run."""

    what: str
    n: int
    value: float
    unit: str
    floor: float
    floor_is: str

    @property
    def ratio(self) -> float:
        """How many times the floor."""
        return round(self.value / self.floor, 2) if self.floor else 0.0


class NoModel:
    """An embedder whose vectors are all in the cache: it runs nothing."""

    runtime = "bench"
    space = Space("bench", "0" * 64, "0" * 64, DIMENSIONS, "none", ("", ""), "none")

    def document(self, text: str) -> Embedded:
        """Never asked for: raises."""
        raise AssertionError(f"a vector was not cached: {text[:40]!r}")

    query = document


def spent(call: Callable[[], object]) -> tuple[float, float]:
    """Seconds of processor time and of wall time of a call."""
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.process_time() - cpu, time.perf_counter() - wall


def appending(folder: Path, events: int) -> Iterator[Figure]:
    """Append in batches of 1, 100 and 1,000, waiting for the disk or not; then one at a time beside a bare commit."""
    installation = Installation.create(folder / "append", folder / "append-keys")
    writer = Writer(installation)
    writer.fill(events, "S", batch=100)
    floors = LogFloors(installation)
    sign_seal = floors.sign + floors.seal
    for batch in (1, 100, BATCH):
        for durable in (False, True):
            count = max(batch, events // 10 if durable and batch == 1 else events)
            cpu = statistics.median(_append_batch(writer, batch, durable) for _ in range(count // batch))
            floor = sign_seal + floors.insert(folder / f"insert-{batch}-{durable}", batch)
            what = f"append, batch {batch}, {'FULL' if durable else 'NORMAL'}"
            yield Figure(what, count, cpu / batch * 1e6, "us CPU/event", floor, "sign + seal + insert of the same rows")
    yield _durable(folder, writer, max(1, events // 30))
    installation.close({})


def _append_batch(writer: Writer, batch: int, durable: bool) -> float:
    """Seconds of processor time to make events of ready texts, seal and append them."""
    writer.prepare(batch)
    start = time.process_time()
    for _ in range(batch):
        writer.store()
    writer.flush(durable=durable)
    return time.process_time() - start


def _durable(folder: Path, writer: Writer, count: int) -> Figure:
    bare = DurableCommit(folder)
    floors, walls = [], []
    for _ in range(count):
        floors.append(spent(bare)[1])
        writer.prepare(1)
        writer.store()
        walls.append(spent(writer.flush)[1])
    bare.close()
    floor = median_ms(floors)
    return Figure("durable append with the mark", count, median_ms(walls), "ms wall", floor, "bare durable commit")


def verifying(floors: LogFloors, folder: Path, events: int) -> Iterator[Figure]:
    """Verify both logs from position 0, as a process does that has seen nothing yet."""
    events += 2  # the first event of each log
    structure = floors.select + floors.hashes + floors.header
    parts: dict[Depth, tuple[float, str]] = {
        "structure": (structure, "select + hashes + header codec"),
        "full": (
            structure + floors.verify + floors.unseal + floors.body,
            "structure + signature + unseal + body codec",
        ),
    }
    for depth, (floor, floor_is) in parts.items():
        cpu = min(_verify_afresh(folder, depth) for _ in range(RUNS))
        yield Figure(f"verify, {depth}", events, cpu / events * 1e6, "us CPU/event", floor, floor_is)


def _verify_afresh(folder: Path, depth: Depth) -> float:
    fresh = Installation.audit(folder / STORE, None, folder / KEYS)
    cpu, _ = spent(partial(verify, fresh, depth=depth))
    fresh.abandon()
    return cpu


def replaying(floors: LogFloors, folder: Path) -> Iterator[Figure]:
    """Read and open every event; then fold all views, take their digests, and load the vectors."""
    installation = Installation.open(folder / STORE, folder / KEYS)
    events = sum(log.tip.size - 1 for log in installation.logs)
    cpu = min(spent(partial(_read_all, installation))[0] for _ in range(RUNS))
    reading = floors.select + floors.header + floors.unseal + floors.body
    yield Figure("read and open", events, cpu / events * 1e6, "us CPU/event", reading, "select + codecs + unseal")
    assert installation.keys is not None
    begun = time.process_time()
    with building(installation) as views:
        folded = time.process_time() - begun
        digests = spent(views.digests)[0]
        rows = view_rows(views.path, installation.keys.views, folder)
        cache = VectorCache(installation)
        _put_vectors(cache, views, b"")
        search = VectorSearch(cache, NoModel(), installation.memory)
        vectors = spent(lambda: search.follow(views, ["bench"]))[0]
        assert search.wait(0) == 0
        search.close()
        cache.close()
    floor = reading + rows / events * 1e6
    unit, floor_is = "us CPU/event", "read and open, least + insert of the plain rows"
    yield Figure("replay, fold", events, folded / events * 1e6, unit, floor, floor_is)
    yield Figure("replay, digests", events, digests / events * 1e6, unit, 0.0, "")
    yield Figure("replay, load vectors", events, vectors / events * 1e6, unit, 0.0, "")
    yield Figure("replay, fold and load", events, (folded + vectors) / events * 1e6, unit, floor, floor_is)
    whole = folded + digests + vectors
    yield Figure("replay, all", events, whole / events * 1e6, unit, floor, floor_is)
    installation.close({})


def _read_all(installation: Installation) -> None:
    for log in installation.logs:
        for _ in log.pages(0, log.tip.size - 1):
            pass


def _put_vectors(cache: VectorCache, views: Views, tokens: bytes) -> int:
    """Put a vector for each memory that can be recalled into the cache. Returns how many those are."""
    with views.reading() as cursor:
        wanted = [w for w in changed_after(cursor, 0) if w.input is not None]
    for w in wanted:
        cache.put(NoModel.space.id, (w.stream, w.input or b""), Made(ONE_VECTOR, tokens, NoModel.runtime))
    return len(wanted)


def sizing(folder: Path, events: int) -> Iterator[Figure]:
    """Bytes on disk by file of a store of memories that nobody has read, once it is closed."""
    least = {"log.db": "its payloads", "vectors.db": "its vectors", "views.db": ""}
    for tokens in (0, TOKENS_OF_A_TURN):
        store, keys = folder / f"size-{tokens}", folder / f"size-{tokens}-keys"
        installation = Installation.create(store, keys)
        Writer(installation).fill(events, "S")
        ((payloads,),) = installation.datastore.rows("SELECT sum(length(body)) FROM payload")
        installation.close({})
        with Memory.open(store, keys=keys, model="none", namespace="bench") as memory:
            memory.recall("folds what recall reads")
            memory.log()
            cache = VectorCache(memory._opened.installation)
            memories = _put_vectors(cache, memory._opened.recalling(), bytes(tokens * DIMENSIONS // 2))
            cache.close()
        floors = {"log.db": payloads, "vectors.db": memories * DIMENSIONS * (2 + tokens / 2), "views.db": 0.0}
        sizes = {path.name if path.name in floors else "views.db": path.stat().st_size for path in store.glob("*.db")}
        kind = f", {tokens} token vectors each" if tokens else ""
        for name, size in sizes.items():
            floor = floors[name] / memories
            yield Figure(f"size of {name}{kind}", memories, size / memories, "bytes/memory", floor, least[name])
        whole = sum(sizes.values())
        yield Figure(f"size of all{kind}", memories, whole / memories, "bytes/memory", 0.0, "")


def opening(folder: Path, events: int) -> Iterator[Figure]:
    """Open a store of so many events with nothing new since it was closed: its logs alone, then with folded views."""
    store, keys = folder / f"open-{events}", folder / f"open-{events}-keys"
    installation = Installation.create(store, keys)
    Writer(installation, tokens=SHORT_TOKENS).fill(events, "S")
    installation.close({})
    floor = cpu_us(lambda: _open_bare(store / FILE), 1) / 1000
    costs = [_opened(lambda: Installation.open(store, keys), lambda found: found.close({})) for _ in range(OPENINGS)]
    beside = "log.db opened, one row read"
    yield Figure("open, logs alone", events, statistics.median(costs), "ms CPU", floor, beside)
    with Memory.open(store, keys=keys, model="none") as memory:
        memory.recall("folds what recall reads")
        memory.log()
    costs = [_opened(lambda: Memory.open(store, keys=keys, model="none"), Memory.close) for _ in range(OPENINGS)]
    yield Figure("open, nothing new", events, statistics.median(costs), "ms CPU", floor, beside)


def _opened(make: Callable[[], Opened], close: Callable[[Opened], None]) -> float:
    """Milliseconds of processor time to open; what was opened is closed."""
    start = time.process_time()
    found = make()
    cost = time.process_time() - start
    close(found)
    return cost * 1000


def _open_bare(path: Path) -> None:
    datastore = Datastore(File(path, LogDamaged, read_only=True))
    datastore.rows("SELECT count(*) FROM sqlite_master")
    datastore.close()


def measure(folder: Path, events: int, large: int) -> Iterator[Figure]:
    """Everything, one figure after the other."""
    yield from appending(folder, min(APPENDED, events))
    installation = Installation.create(folder / STORE, folder / KEYS)
    Writer(installation).fill(events, batch=max(20, min(BATCH, events // 10)))
    floors = LogFloors(installation)
    installation.close({})
    yield from verifying(floors, folder, events)
    yield from replaying(floors, folder)
    yield from sizing(folder, events)
    for size in sorted({min(1000, large), large}):
        yield from opening(folder, size)


def report(figures: list[Figure]) -> dict[str, object]:
    """The figures with what they were measured on."""
    return {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "python": platform.python_version(),
        "command": " ".join(["python -m benchmarks.ledger", *sys.argv[1:]]),
        "load": round(os.getloadavg()[0], 2),
        "figures": [{**figure._asdict(), "ratio": figure.ratio} for figure in figures],
    }


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON document instead of a table")
    parser.add_argument("--events", type=int, default=100_000, help="how many events to verify and replay")
    parser.add_argument("--open", type=int, default=1_000_000, help="how many events the large store has")
    parser.add_argument("--folder", type=Path, help="where to put the stores (default: the temporary directory)")
    arguments = parser.parse_args()
    figures = []
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        for figure in measure(Path(folder), arguments.events, arguments.open):
            figures.append(figure)
            if not arguments.json:
                beside = f"{figure.floor:9.2f} x{figure.ratio:<6}{figure.floor_is}" if figure.floor else ""
                print(f"{figure.what:30} {figure.n:9,} {figure.value:9.2f} {figure.unit:13} {beside}", flush=True)
    if arguments.json:
        print(json.dumps(report(figures), indent=2))


if __name__ == "__main__":
    main()
