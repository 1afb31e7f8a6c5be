"""The doctor from Python: of a store that is open, of one that does not open, of a long one, and of names."""

from __future__ import annotations

import subprocess
import sys
import time
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick import Diagnosis, Memory
from tallystick.events.keys import NAMES
from tallystick.queries.doctor import CHECKS, log, patient
from tallystick.queries.doctor.names import skeleton

ALLOWED_SECONDS = 1.0
CHANGE = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript(sys.argv[2])"


class Place:
    """A store with its keys, whose texts were stored and backup declined."""

    def __init__(self, folder: Path, memories: int) -> None:
        self.store, self.keys = folder / "store", folder / "keys"
        self.store.mkdir(mode=0o700)
        with self.open() as memory:
            memory.store_many([{"text": f"note {n}", "key": f"k{n}"} for n in range(memories)])
            memory.recall("note")
            memory.decline_key_backup()
            memory.namespaces()

    def open(self) -> Memory:
        """The memory that is there, by words alone."""
        return Memory.open(self.store, keys=self.keys, model="none")

    def diagnosed(self) -> Diagnosis:
        """What the doctor says of it, closed or not."""
        return Memory.diagnose(self.store, keys=self.keys, model="none")

    def change(self, statement: str) -> None:
        """Change log.db by other means."""
        subprocess.run([sys.executable, "-c", CHANGE, str(self.store / "log.db"), statement], check=True)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A small store."""
    return Place(tmp_path, 5)


@pytest.fixture
def long(place: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    """The same, taken for one that is too long to be read whole."""
    monkeypatch.setattr(patient, "WHOLE", 3)
    assert place.diagnosed().findings == ()
    return place


def found(diagnosis: Diagnosis) -> list[tuple[str, str]]:
    """Which checks found what."""
    return [(finding.check, finding.what) for finding in diagnosis.findings]


def test_an_open_store_is_looked_at(place: Place) -> None:
    """Its own keys and model are those it was opened with; it goes on, and nothing was added to it."""
    with place.open() as memory:
        before = memory.status()
        diagnosis = memory.doctor()
        assert (diagnosis.healthy, diagnosis.findings, diagnosis.not_made) == (True, (), ())
        assert diagnosis.checks == tuple(check.name for check in CHECKS)
        assert (diagnosis.store, diagnosis.keys) == (str(place.store), str(place.keys))
        assert memory.status().logs == before.logs
        memory.store("one more")
        assert memory.doctor().findings == ()
        memory.verify()
    assert place.diagnosed().findings == ()


def test_a_store_that_was_opened_to_be_read_is_looked_at(place: Place) -> None:
    """Also while another Memory writes to it."""
    with place.open() as writing, Memory.open(place.store, keys=place.keys, model="none", read_only=True) as memory:
        writing.store("one more")
        assert memory.doctor().findings == ()


def test_warnings_leave_a_store_healthy(place: Place) -> None:
    """Health is that nothing is wrong."""
    place.store.chmod(0o755)
    diagnosis = place.diagnosed()
    assert (diagnosis.healthy, [each.level for each in diagnosis.findings]) == (True, ["warning"])
    (place.keys / "mark").write_bytes(b"x" * 16384)
    diagnosis = place.diagnosed()
    assert (diagnosis.healthy, [each.level for each in diagnosis.findings]) == (False, ["wrong", "warning"])


def test_a_command_names_the_keys_where_no_setting_does(place: Place) -> None:
    """So that it can be copied as it stands."""
    next(place.store.glob("views-*")).unlink()
    expected = f"Run `TALLYSTICK_KEYS={place.keys} tallystick -C {place.store} replay`."
    assert [each.remedy for each in place.diagnosed().findings] == [expected]


def test_what_another_process_writes_meanwhile_is_no_finding(place: Place) -> None:
    """A store that is written to is as healthy as one at rest."""
    program = (
        "import sys, time\nfrom tallystick import Memory\n"
        "with Memory.open(sys.argv[1], keys=sys.argv[2], model='none') as memory:\n"
        "    print(flush=True)\n"
        "    for n in range(100):\n"
        "        memory.store(f'live {n}', key='live'); memory.recall('live')\n"
        "        time.sleep(0.005)\n"
    )
    command = [sys.executable, "-c", program, str(place.store), str(place.keys)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        while writer.poll() is None:
            assert place.diagnosed().findings == ()
    assert writer.returncode == 0
    assert place.diagnosed().findings == ()


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM claim WHERE place = (SELECT max(place) FROM claim)",
        "UPDATE claim SET place = (SELECT min(place) FROM claim)",
        "INSERT INTO claim VALUES (x'00112233445566778899aabbccddeeff', 1)",
        "DELETE FROM data_key WHERE place = 2",
    ],
)
def test_what_is_beside_the_entries_is_compared(place: Place, statement: str) -> None:
    """A claim that is gone, leads elsewhere or was added, and a data key that is gone, are noticed before use."""
    place.change(statement)
    assert [check for check, _ in found(place.diagnosed())] == ["log.holdings"]


@pytest.mark.parametrize(
    ("statement", "check", "what"),
    [
        ("UPDATE claim SET place = 99999", "log.holdings", "claims are held by no entry"),
        ("UPDATE claim SET place = (SELECT min(place) FROM claim)", "log.holdings", "does not hold what it claims"),
        ("DELETE FROM claim", "log.holdings", "does not hold what it claims"),
        (
            "DELETE FROM data_key WHERE place = 2",
            "log.holdings",
            "memory log, position 2: the data key there is missing",
        ),
        (
            "DROP TRIGGER payload_unchanged; UPDATE payload SET body = zeroblob(length(body)) WHERE place = 2; "
            "CREATE TRIGGER payload_unchanged BEFORE UPDATE ON payload "
            "BEGIN SELECT RAISE(ABORT, 'payloads are never changed'); END",
            "log.entries",
            "memory log, position 2: its payload is not the one that was signed",
        ),
        ("DELETE FROM payload WHERE place = 3", "log.entries", "memory log, position 3"),
    ],
)
def test_a_long_log_is_sampled(long: Place, statement: str, check: str, what: str) -> None:
    """What is not read whole is looked at where damage would show first."""
    long.change(statement)
    ((name, said),) = found(long.diagnosed())
    assert (name, what in said) == (check, True), said


def test_a_long_log_without_a_mark_is_not_read_whole(long: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sample stands alone then, and the missing mark is told."""
    monkeypatch.setattr(log, "SAMPLE", 2)
    (long.keys / "mark").unlink()
    assert [check for check, _ in found(long.diagnosed())] == ["mark.missing"]


def test_views_that_are_ahead_of_the_log_are_damaged(place: Place) -> None:
    """A log that was cut, with its mark gone too, shows by what the views know."""
    for folder in ("store", "keys"):
        subprocess.run(["cp", "-a", getattr(place, folder), f"{getattr(place, folder)}.old"], check=True)
    with place.open() as memory:
        memory.store("one more")
    for mine, old in ((place.store / "log.db", "store.old/log.db"), (place.keys / "mark", "keys.old/mark")):
        (place.store.parent / old).replace(mine)
    assert found(place.diagnosed()) == [("views.damaged", "The views know more of the memory log than there is of it.")]


def test_it_is_quick(tmp_path: Path) -> None:
    """A store of a thousand memories is looked at in less than a second of processor time."""
    place, least = Place(tmp_path, 1000), float("inf")
    for _ in range(3):
        before = time.process_time()
        assert place.diagnosed().findings == ()
        least = min(least, time.process_time() - before)
    assert least < ALLOWED_SECONDS


@pytest.mark.parametrize("place_of_keys", ["keyring", "env"])
def test_keys_that_are_in_no_directory(
    place: Place, place_of_keys: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where they are looked for is said once, and what is missing."""
    monkeypatch.setitem(sys.modules, "keyring", None)
    diagnosis = Memory.diagnose(place.store, keys=place_of_keys)
    ((check, what),) = found(diagnosis)
    assert (check, what) in [
        ("keys.missing", "Every key of this store is missing in env."),
        (
            "keys.unreadable",
            "The keys are said to be in the keyring of the system, and the library for it is not installed.",
        ),
    ]
    assert diagnosis.keys == place_of_keys


def test_keys_that_the_program_holds(place: Place) -> None:
    """They are compared with the store; the mark is then in the user's own state directory, where there is none."""
    with place.open() as memory:
        keys = memory._opened.installation.keys
    assert keys is not None
    held = SimpleNamespace(**{name: getattr(keys, name) for name in NAMES})
    assert [check for check, _ in found(Memory.diagnose(place.store, keys=held))] == ["mark.missing"]
    other = SimpleNamespace(**{**vars(held), "index": bytes(32)})
    assert [check for check, _ in found(Memory.diagnose(place.store, keys=other))] == ["keys.other"]


def test_a_temporary_store_is_healthy() -> None:
    """Its keys need no backup: they go with it."""
    with Memory.temporary() as memory:
        memory.store("a text")
        assert memory.doctor().findings == ()


# ---- names


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("project:app", "Project:App"),
        ("project:app", "project:app_"),
        ("my-app", "my_app"),
        ("my-app", "my.app"),
        ("org/acme", "org/acme-"),
        ("org/acme", "Org./acme"),
        ("acme", "ac\N{CYRILLIC SMALL LETTER EM}e"),
        ("paypal", "\N{CYRILLIC SMALL LETTER ER}\N{CYRILLIC SMALL LETTER A}ypal"),
        ("acme", "\N{FULLWIDTH LATIN SMALL LETTER A}cme"),
        ("acme", "acme\N{ZERO WIDTH SPACE}"),
        ("acme", "ac\N{VARIATION SELECTOR-16}me"),
        ("caf\N{LATIN SMALL LETTER E WITH ACUTE}", "cafe\N{COMBINING ACUTE ACCENT}"),
        ("stra\N{LATIN SMALL LETTER SHARP S}e", "strasse"),
    ],
)
def test_names_that_look_alike(one: str, other: str) -> None:
    """Case, width, look-alike and invisible letters, what joins parts and what ends them make no difference."""
    assert one != other
    assert skeleton(one) == skeleton(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("app1", "app2"), ("user:ana", "user:anna"), ("org/acme", "orgacme"), ("org/acme", "acme/org"), ("v1.1", "v11")],
)
def test_names_that_differ(one: str, other: str) -> None:
    """What is another word is another namespace."""
    assert skeleton(one) != skeleton(other)


@given(st.text(max_size=30))
def test_a_skeleton_is_its_own(name: str) -> None:
    """What is left of a name does not depend on how it was typed: made again, or from another form, it is the same."""
    assert skeleton(unicodedata.normalize("NFD", name)) == skeleton(unicodedata.normalize("NFC", name))


@pytest.fixture(autouse=True)
def _no_model(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TALLYSTICK_MODEL", "none")
    yield
