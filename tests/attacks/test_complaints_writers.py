"""Writers at the same time, killed, slow or refused: what was acknowledged is there, what failed changed nothing."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tallystick.projections.embedding import Embedded
from tallystick.projections.models import places

from .test_complaints_forgetting import Animals
from .ways import SECONDS, Place, Process, Python, Way, everywhere

# ---- an update is a delete and an upload, and the second fails

WRONG: list[dict[str, Any]] = [
    {"text": "x" * (2**20 + 1)}, {"text": " "}, {"text": "zebra \ud800"}, {"importance": 7.0}, {"kind": "No Kind"},
    {"occurred_at": "yesterday"}, {"text": "okapi", "importance": -1.0}, {"text": "okapi", "if_revision": 7},
    {"text": "okapi", "tags_added": ["x\0"]}, {"text": "held by another"},
]  # fmt: skip


def test_a_revision_that_is_refused_leaves_the_memory_as_it_was(place: Place) -> None:
    """Whatever is wrong with it, and for whichever of its fields: text, tags and revision stand, and it is found."""
    with Python(place) as way:
        way.store("held by another")
        memory = way.store("The zebra sleeps", tags=["a"])
        before = way.get(memory)
        for wrong in WRONG:
            assert way.refusal("revise", memory, **wrong).kind in {"Refused", "RevisionConflict"}, wrong
            assert way.get(memory) == before, wrong
        for each in everywhere(way):
            assert each.get(memory) == before, each.state
            assert each.ids("zebra") == [memory], each.state


def test_a_new_value_that_is_refused_leaves_the_old_one(way: Way) -> None:
    """A correction of a key that can't be stored does not take the older value away."""
    memory = way.store("Company A", key="employer")
    for wrong in ({"importance": 7.0}, {"occurred_at": "yesterday"}, {"kind": "No Kind"}):
        assert way.refusal("store", "Company B", key="employer", **wrong).kind == "Refused"
    way.ask("protect", memory)
    assert way.refusal("store", "Company B", key="employer").kind == "Refused"
    for each in everywhere(way):
        assert each.listed(where={"key": "employer"}) == ["Company A"], each.state


REVISING = """
import sys
from tallystick import Memory
with Memory.open(sys.argv[1], keys=sys.argv[2], namespace="app", model="none") as memory:
    for n in range(int(sys.argv[4]), 10**9):
        memory.revise(sys.argv[3], text=f"zebra version {n}")
        memory.store(f"okapi version {n}", key="animal")
        print(n, flush=True)
"""


def test_a_killed_revision_loses_neither_the_old_text_nor_the_new(place: Place) -> None:
    """Killed at any moment: one whole text is there, no older than what was acknowledged; of a key, one value."""
    way = Python(place)
    memory, last = way.store("zebra version -1"), 0
    way.store("okapi version -1", key="animal")
    way.close()
    for wait in (0.0, 0.003, 0.02):
        child = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", REVISING, *map(str, place), memory, str(last)], stdout=subprocess.PIPE
        )
        assert child.stdout is not None
        said = int(child.stdout.readline())
        time.sleep(wait)
        child.send_signal(signal.SIGKILL)
        last = max([said, *map(int, child.stdout.read().split())])
        child.stdout.close()
        child.wait()
        with way:
            version = int(way.get(memory)["text"].split()[-1])
            assert version in (last, last + 1)
            assert way.ids("zebra") == [memory]
            (animal,) = way.listed(where={"key": "animal"})
            assert int(animal.split()[-1]) in (last, last + 1)
            way.ask("verify", views=True)
        last = version + 1


# ---- concurrent writers overwrite each other

PROCESSES, EACH = 4, 40
STORING = """
import sys
from tallystick import Memory
me = sys.argv[3]
with Memory.open(sys.argv[1], keys=sys.argv[2], namespace="app", model="none") as memory:
    sys.stdin.readline()
    for n in range(40):
        memory.store(f"zebra {me} {n}")
        memory.store(f"shared {n}")
        memory.store(f"value {n} by {me}", key="last")
        memory.recall(f"zebra {n}")
"""


def test_four_processes_that_write_at_once_lose_nothing(place: Place) -> None:
    """Each keeps its forty; what all said is one memory each; of one key there is one value."""
    way = Python(place)
    way.ask("status")
    way.close()
    command = [sys.executable, "-W", "error", "-c", STORING, *map(str, place)]
    children = [
        subprocess.Popen([*command, str(n)], stdin=subprocess.PIPE, stderr=subprocess.PIPE) for n in range(PROCESSES)
    ]
    for child in children:
        assert child.stdin is not None
        child.stdin.write(b"go\n")
        child.stdin.flush()
    errors = [child.communicate(timeout=SECONDS)[1] for child in children]
    assert errors == [b""] * PROCESSES
    with way:
        for each in everywhere(way):
            texts = each.listed(limit=999)
            assert {text for text in texts if text.startswith("zebra")} == {
                f"zebra {n} {m}" for n in range(PROCESSES) for m in range(EACH)
            }, each.state
            assert sorted(text for text in texts if text.startswith("shared")) == sorted(
                f"shared {n}" for n in range(EACH)
            )
            assert len(each.listed(where={"key": "last"})) == 1, each.state
        shared = way.ask("search", where={"reinforced": PROCESSES - 1})
        assert shared["total"] == EACH


def runs_at_once(place: Place, each: int) -> list[str]:
    """Commands of four at a time, each a process: what they stored."""
    way = Process(place)
    way.ask("status")

    def write(number: int) -> list[str]:
        return [way.store(f"zebra {number} {n}") for n in range(each)]

    with ThreadPoolExecutor(PROCESSES) as pool:
        return [memory for stored in pool.map(write, range(PROCESSES)) for memory in stored]


def test_commands_run_at_once_lose_nothing(place: Place) -> None:
    """Four command lines at a time, twice."""
    stored = runs_at_once(place, 2)
    with Python(place) as way:
        assert {memory["id"] for memory in way.ask("search")["memories"]} == set(stored)
        assert len(set(stored)) == PROCESSES * 2
        way.ask("verify", views=True)


@pytest.mark.exhaustive
def test_forty_commands_of_each_of_four_lose_nothing(place: Place) -> None:
    """As above, 160 processes."""
    stored = runs_at_once(place, EACH)
    with Python(place) as way:
        assert {memory["id"] for memory in way.ask("search", limit=999)["memories"]} == set(stored)
        assert len(set(stored)) == PROCESSES * EACH


# ---- "database is locked", or the memory silently reads only

HOLDING = """
import sys, time
from pathlib import Path
from tallystick.errors import LogDamaged
from tallystick.events.driver import Datastore, File
datastore = Datastore(File(Path(sys.argv[1]) / "log.db", LogDamaged))
with datastore.transaction(commit=True) as cursor:
    cursor.execute("UPDATE setting SET value = value")
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
datastore.close()
"""


@pytest.fixture
def holding(place: Place) -> Iterator[Any]:
    """Starts a process that holds the lock to write for so many seconds."""
    children = []

    def hold(seconds: float) -> None:
        command = [sys.executable, "-W", "error", "-c", HOLDING, str(place.store), str(seconds)]
        children.append(subprocess.Popen(command, stdout=subprocess.PIPE))
        assert children[-1].stdout is not None
        assert children[-1].stdout.readline() == b"held\n"

    yield hold
    for child in children:
        child.communicate(timeout=SECONDS)
        assert child.returncode == 0


HELD_SECONDS = 1.5


@pytest.mark.parametrize("verb", ["store", "recall", "forget", "revise"])
def test_a_busy_store_is_waited_for(way: Way, holding: Any, verb: str) -> None:
    """Another writer that takes its time is no error, and nothing that was asked meanwhile is left out."""
    memory = way.store("The zebra sleeps")
    arguments = {"store": ["The okapi sleeps"], "recall": ["zebra"], "forget": [memory], "revise": [memory]}[verb]
    way.close()
    way.ask("status")
    holding(HELD_SECONDS)
    began = time.monotonic()
    answer = way.ask(verb, *arguments, **({"text": "The gnu sleeps"} if verb == "revise" else {}))
    assert time.monotonic() - began > HELD_SECONDS / 3
    assert answer.get("receipt") or answer["position"] > 0
    way.ask("verify", views=True)


MANY = """
import sys
from tallystick import Memory
with Memory.open(sys.argv[1], keys=sys.argv[2], namespace="app", model="none") as memory:
    print("begun", flush=True)
    for n in range(6):
        memory.store_many([f"okapi {n} {m}" for m in range(500)])
"""


def test_long_writers_let_others_in_between(place: Place) -> None:
    """While one process stores thousands, another's single texts are stored and found, none of them refused."""
    with Python(place) as way:
        way.ask("status")
        child = subprocess.Popen([sys.executable, "-W", "error", "-c", MANY, *map(str, place)], stdout=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.readline()
        ids: list[str] = []
        while child.poll() is None and len(ids) < 200:
            ids.append(way.store(f"zebra {len(ids)}"))
            assert way.ids(f"zebra {len(ids) - 1}", limit=1) == ids[-1:]
        child.communicate(timeout=SECONDS)
        assert child.returncode == 0
        assert len(ids) >= 3
        assert way.ask("status")["memories"] == {"current": 3000 + len(ids)}


def test_a_store_that_can_not_be_written_to_says_so(place: Place) -> None:
    """What is opened to be read says so in every answer, and refuses what would write: it never pretends."""
    with Python(place) as way:
        memory = way.store("zebra")
    with Python(place, read_only=True) as reader:
        answer = reader.ask("recall", "zebra")
        assert answer["receipt"] is None
        assert any("not on record" in said for said in answer["degraded"])
        for verb, arguments in (("store", ["okapi"]), ("forget", [memory]), ("pin", [memory])):
            assert "read_only" in reader.refusal(verb, *arguments).message
        assert reader.ask("status")["clean"] is False


# ---- minutes for each text

MILLISECONDS = 100
"""The most a text may take, at the median, on a machine where other tests run: it takes one or two."""


class Slow(Animals):
    """An embedder that takes its time."""

    def __init__(self) -> None:
        self.gate = threading.Event()

    def document(self, text: str) -> Embedded:
        """Waits until it may."""
        self.gate.wait(SECONDS)
        return super().document(text)


def test_storing_takes_milliseconds_and_waits_for_no_model(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Short and long texts are on the disk at once, and found by their words before the model has seen them."""
    slow = Slow()
    monkeypatch.setattr(places, "resolve_embedder", lambda _model: slow)
    monkeypatch.setattr(places, "name_of", lambda _model: "slow")
    with Python(place, model="auto") as way:
        way.ids("load the model")
        took = []
        for n in range(40):
            text = f"zebra number {n} " + "and so on " * (100 if n % 2 else 1)
            began = time.perf_counter()
            memory = way.store(text)
            took.append((time.perf_counter() - began) * 1000)
            if n % 20 == 0:
                answer = way.ask("recall", f"zebra number {n}", limit=1)
                assert answer["hits"][0]["memory"]["id"] == memory
                assert any("with no vector yet" in said for said in answer["degraded"])
        assert statistics.median(took) < MILLISECONDS, took
        slow.gate.set()
    assert os.path.getsize(place.store / "log.db") > 0
    with Python(place) as way:
        assert way.ask("search", limit=1)["total"] == 40


def test_a_command_that_stores_takes_no_model(place: Place) -> None:
    """The command line returns without loading one; a later recall makes the vectors."""
    way = Process(place, model="auto")
    code, out, error = way.run(["store", "The zebra sleeps", "--json"])
    assert code == 0, error
    assert json.loads(out)["outcome"] == "stored"
