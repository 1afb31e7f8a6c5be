"""Views and vectors that are corrupt or gone are named, kill nobody, and come back from the log as they were."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tallystick.errors import ViewsDamaged
from tallystick.events.driver import Datastore, File
from tallystick.events.key_places import Directory
from tallystick.events.keys import load_keys
from tallystick.projections.models import places

from .test_complaints_forgetting import Animals
from .ways import SECONDS, Document, Place, Process, Python, Way, everywhere

QUESTIONS = ["zebra", "okapi stable", "斑馬", "gnu number 7", "nothing of the kind"]


def flip_every_page(content: bytes) -> bytes:
    """One bit of each page turned over."""
    changed = bytearray(content)
    for page in range(0, len(content), 4096):
        changed[page + 2000] ^= 1
    return bytes(changed)


CORRUPTIONS: dict[str, Callable[[bytes], bytes]] = {
    "one bit of each page": flip_every_page,
    "one bit of the last page": lambda content: content[:-100] + bytes([content[-100] ^ 1]) + content[-99:],
    "noise": lambda content: Random(1).randbytes(len(content)),
    "noise in the middle": lambda content: content[:4096] + Random(2).randbytes(4096) + content[8192:],
    "zeros": lambda content: bytes(len(content)),
    "cut in half": lambda content: content[: len(content) // 2],
    "cut within a page": lambda content: content[:5000],
    "a header of another make": lambda content: b"SQLite format 3\0" + content[16:],
    "two pages swapped": lambda content: content[4096:8192] + content[:4096] + content[8192:],
    "a text file": lambda _content: b"not a database\n" * 500,
}


@pytest.fixture
def used(way: Way, monkeypatch: pytest.MonkeyPatch) -> Way:
    """A way to a store that was used, with vectors, and is closed."""
    monkeypatch.setattr(places, "resolve_embedder", lambda model: None if model == "none" else Animals())
    monkeypatch.setattr(places, "name_of", lambda model: model if model == "none" else "animals")
    way.settings["model"] = "auto"
    ids = way.store_all([f"gnu number {n}" for n in range(10)] + ["The zebra sleeps in the stable", "斑馬睡在馬廄裡"])
    way.ask("forget", ids[3])
    way.ask("revise", ids[4], text="An okapi, not a gnu")
    way.store("old value", key="k")
    way.store("new value of zebra", key="k")
    way.ids("zebra")
    way.close()
    return way


def answers(way: Way) -> list[Any]:
    """Everything that is asked, without what differs each time."""
    hits = [way.ask("recall", question, limit=20)["hits"] for question in QUESTIONS]
    listed = way.ask("search", limit=99, status=["current", "forgotten", "superseded"])["memories"]
    return [[[hit["memory"], hit["score"]] for hit in each] for each in hits] + [listed]


def files(place: Place) -> list[Path]:
    """The views in force, and the vectors."""
    return sorted(file for file in place.derived if file.suffix == ".db")


BY_COMMAND = ["noise", "cut in half"]
"""The corruptions that the command line is tried with too."""


@pytest.mark.parametrize(
    ("way", "corruption"),
    [*product(["python"], CORRUPTIONS), *product(["command line"], BY_COMMAND)],
    indirect=["way"],
)
def test_a_corrupt_index_is_named_and_comes_back_as_it_was(used: Way, corruption: str) -> None:
    """The vectors, then the views: every verb says what to do, and after `replay` each answer is the same."""
    before = answers(used)
    used.close()
    memory = before[-1][0]["id"]
    for n in range(2):
        file = files(used.place)[n]
        file.write_bytes(CORRUPTIONS[corruption](file.read_bytes()))
        for verb, words in (("recall", "zebra"), ("get", memory), ("store", "x"), ("forget", memory)):
            refused = used.refusal(verb, words)
            assert refused.kind == "ViewsDamaged", (file.name, verb)
            assert "tallystick replay" in refused.message, (file.name, verb)
            used.close()
        used.ask("replay")
        assert answers(used) == before, file.name
        assert [e["kind"] for e in used.ask("log", log="memory", limit=1)["events"]] == ["views.rebuilt"], n
        used.close()
    for each in everywhere(used):
        assert [each.get(m["id"])["text"] for m in before[-1][:3]] == [m["text"] for m in before[-1][:3]], each.state


@pytest.mark.parametrize("file", [0, 1], ids=["vectors", "views"])
def test_an_index_that_is_gone_is_made_again(used: Way, file: int) -> None:
    """No new empty one is taken for it: views are named, vectors are made anew, the answers are the same."""
    before = answers(used)
    used.close()
    gone = files(used.place)[file]
    gone.unlink()
    if gone.name.startswith("views"):
        assert used.refusal("recall", "zebra").kind == "ViewsDamaged"
        used.close()
        used.ask("replay")
    assert answers(used) == before


def test_indexes_of_another_store_are_not_taken_for_these(used: Way, tmp_path: Path) -> None:
    """Put in their place, they are refused; nothing in them is served."""
    before = answers(used)
    used.close()
    with Python(Place(tmp_path / "other", tmp_path / "other keys"), model="auto") as other:
        other.store("The secret zebra of another store")
        other.ids("zebra")
    for n in range(2):
        mine = files(used.place)[n]
        shutil.copyfile(files(other.place)[n], mine)
        assert used.refusal("recall", "zebra").kind == "ViewsDamaged", mine.name
        used.close()
        used.ask("replay")
        assert answers(used) == before
        used.close()


def test_older_indexes_are_not_served_in_silence(used: Way, tmp_path: Path) -> None:
    """A copy of the views from before something was forgotten does not bring it back."""
    old = {file.name: file.read_bytes() for file in files(used.place)}
    memory = used.ids("zebra")[0]
    used.ask("forget", memory)
    used.close()
    for name, content in old.items():
        (used.place.store / name).write_bytes(content)
    assert memory not in used.ids("zebra", limit=20)
    assert used.get(memory)["status"] == "forgotten"


FORGETTING = """
import subprocess, sys
from pathlib import Path
from tallystick import Memory
from tallystick.errors import ViewsDamaged
noise = '''
import random, sys
for file in sys.argv[1:]:
    with open(file, "r+b") as opened:
        size = len(opened.read())
        opened.seek(0)
        opened.write(random.randbytes(size))
'''
with Memory.open(sys.argv[1], keys=sys.argv[2], namespace="app", model="none") as memory:
    first, second = (memory.recall(word).hits[0].id for word in ("stable", "value"))
    damaged = [str(f) for f in Path(sys.argv[1]).iterdir() if f.name.startswith(("views", "vectors"))]
    subprocess.run([sys.executable, "-c", noise, *damaged], check=True)
    for act in (lambda: memory.forget(first), lambda: memory.recall("zebra"), lambda: memory.forget(second)):
        try:
            act()
        except ViewsDamaged as error:
            assert "tallystick replay" in str(error)
    print(first)
"""


def test_an_index_that_breaks_under_a_process_does_not_end_it(used: Way) -> None:
    """Overwritten while it is open: what is asked is answered or is ViewsDamaged, and no signal ends the process."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", FORGETTING, *map(str, used.place)],
        capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode >= 0, done.stderr
    Process(used.place).ask("replay")
    used.ask("verify", views=True)
    for each in everywhere(used):
        forgotten = each.ask("status")["memories"]["forgotten"]
        assert forgotten in (1, 2, 3) and each.ask("search", status=["forgotten"])["total"] == forgotten, each.state


OF_ONE = "WHERE number = (SELECT number FROM made WHERE stream = x'{memory}')"
VECTORS = {
    "too short": f"UPDATE vector SET value = x'003c' {OF_ONE}",
    "too long": f"UPDATE vector SET value = CAST(value || value AS BLOB) {OF_ONE}",
    "too short and too long": "UPDATE vector SET value = CASE number % 2 WHEN 1 THEN x'003c003c' ELSE zeroblob(12) END",
    "all too long": "UPDATE vector SET value = zeroblob(4000)",
    "odd": "UPDATE vector SET value = zeroblob(7)",
    "empty": "UPDATE vector SET value = x''",
    "no numbers": "UPDATE vector SET value = x'007e007e007e007e'",
    "infinite": "UPDATE vector SET value = x'007c007c007c007c'",
    "zero": "UPDATE vector SET value = zeroblob(8)",
    "tokens of another length": "UPDATE tokens SET codes = x'77'",
    "of another model": "UPDATE space SET id = 'another ' || hex(randomblob(4))",
}


def change_vectors(place: Place, statement: str) -> None:
    """Change vectors.db with its key, as a bug would that writes what it should not."""
    keys = load_keys(Directory(place.keys, named=True))
    datastore = Datastore(File(place.store / "vectors.db", ViewsDamaged, keys.views))
    with datastore.transaction(commit=True) as cursor:
        cursor.execute(statement)
    datastore.close()


@pytest.mark.parametrize(
    ("way", "wrong"),
    [*product(["python"], VECTORS), *product(["command line"], ["too short", "odd"])],
    indirect=["way"],
)
def test_a_vector_that_is_none_is_no_crash_and_hinders_no_forgetting(used: Way, wrong: str) -> None:
    """Vectors of another length or of no numbers: every verb answers or says ViewsDamaged, and `replay` mends it."""
    before = answers(used)
    memory: Document = before[0][0][0]
    used.close()
    change_vectors(used.place, VECTORS[wrong].format(memory=memory["id"]))
    if wrong != "of another model":
        refused = used.refusal("recall", "zebra")
        assert (refused.kind, "vectors.db" in refused.message) == ("ViewsDamaged", True)
    assert used.ask("get", memory["id"]) == memory  # as does whatever needs no vector
    used.close()
    used.ask("replay")
    assert answers(used) == before
    used.close()
    change_vectors(used.place, VECTORS[wrong].format(memory=memory["id"]))
    with type(used)(used.place, model="none") as words_alone:
        assert words_alone.ask("forget", memory["id"])["outcome"] == "forgotten"
        assert memory["id"] not in words_alone.ids("zebra", limit=20)
