"""Each thing that can be wrong: it is broken here, the doctor names it, and what it says to do mends it."""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from tallystick import Memory
from tallystick.config import PASSPHRASE_VARIABLE
from tallystick.entrypoints.cli import app
from tallystick.errors import LogDamaged
from tallystick.events import lease
from tallystick.events.driver import Datastore, File
from tallystick.events.installation import FORMAT
from tallystick.events.key_places import file_system
from tallystick.events.lease import Host
from tallystick.events.settings import write_setting
from tallystick.projections.models.choice import begin
from tallystick.projections.models.places import name_of
from tallystick.projections.vector_cache import Made, VectorCache
from tallystick.queries.doctor import CHECKS
from tallystick.queries.doctor import log as of_log

from ..conftest import isolate
from .commands import COMMANDS
from .conftest import Answer, Tally
from .test_keeping import flip

ROOT = Path(__file__).parents[2]
RUN = "import sys; from tallystick.entrypoints.cli import app; app(sys.argv[1:])"
SCRIPT = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript(sys.argv[2])"
DAY_NS = 24 * 3600 * 10**9
SHM = Path("/dev/shm")


class Ward(NamedTuple):
    """A store that can be broken: its project, the user's home, and the command line."""

    project: Path
    home: Path
    patch: pytest.MonkeyPatch
    tally: Tally

    @property
    def store(self) -> Path:
        """The store's folder."""
        return self.project / ".tallystick"

    @property
    def keys(self) -> Path:
        """The directory of its keys."""
        (directory,) = (self.home / ".local/share/tallystick/keys").iterdir()
        return directory

    @property
    def views(self) -> Path:
        """The views in force."""
        return next(self.store.glob("views-*.db"))

    def done(self, *arguments: str, text: str | None = None) -> Answer:
        """A command that does what it is asked to."""
        answer = self.tally(*arguments, text=text)
        assert answer.code == 0, answer.err
        return answer

    def change(self, statement: str) -> None:
        """Change log.db by other means."""
        subprocess.run([sys.executable, "-c", SCRIPT, str(self.store / "log.db"), statement], check=True)

    def write(self, name: str, value: bytes) -> None:
        """Write a setting of log.db."""
        datastore = Datastore(File(self.store / "log.db", LogDamaged))
        with datastore.transaction(commit=True) as cursor:
            write_setting(cursor, name, value)
        datastore.close()

    def shift(self, days: int) -> None:
        """Let the clock show another day from here on."""
        before = time.time_ns
        self.patch.setattr(time, "time_ns", lambda: before() + days * DAY_NS)

    # ---- what a remedy says

    def follow(self, remedy: str, *which: int) -> None:
        """Do what a remedy says, by its commands: the first, or which of them."""
        spans = re.findall(r"`([^`]+)`", remedy)
        for number in which or (0,):
            self._do(spans[number])

    def _do(self, command: str) -> None:
        names = {
            "FILE": "keys.backup", "SNAPSHOT": str(next((self.project / "snapshots").iterdir())), "WHY": "why",
            "NEW": "new", "DIRECTORY": str(self.project / "elsewhere"),
        }  # fmt: skip
        words = [re.sub(r"\b[A-Z]+$", lambda word: names.get(word[0], word[0]), each) for each in shlex.split(command)]
        while "=" in words[0]:
            self.patch.setenv(*words.pop(0).split("=", 1))
            if not words:
                return
        if words[0] == "tallystick":
            self.done(*words[1:])
        elif words[0] == "unset":
            self.patch.delenv(words[1])
        elif words[0] == "sqlite3":
            subprocess.run([sys.executable, "-c", SCRIPT, *words[1:]], check=True)
        else:
            subprocess.run(words, check=True)


class Case(NamedTuple):
    """How one thing is broken, what is then said, and how its remedy is followed.

    `also` are other checks that find something, `left` those that still do once the remedy was followed. `mount` is
    what is mounted meanwhile, in a namespace of its own.
    """

    breaks: Callable[[Ward], Any]
    says: str
    mends: Callable[[Ward, str], Any] = lambda ward, remedy: ward.follow(remedy)
    also: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    mount: str = ""
    at: tuple[str, ...] = ()


def commands(*which: int) -> Callable[[Ward, str], None]:
    """Follow these commands of a remedy."""
    return lambda ward, remedy: ward.follow(remedy, *which)


def by_hand(*acts: Callable[[Ward], Any]) -> Callable[[Ward, str], None]:
    """Do what a remedy says that has no command for it."""

    def follow(ward: Ward, _: str) -> None:
        for act in acts:
            act(ward)

    return follow


# ---- how each is broken


def another_release(ward: Ward) -> None:
    """Another release has made views of its own."""
    (ward.store / "views-00000000-00000000.db").write_bytes(bytes(4096))
    ward.write("views-00000000", b"views-00000000-00000000.db")


def older(ward: Ward) -> None:
    """An older copy is put in the store's place."""
    shutil.copytree(ward.store, ward.project / "older")
    ward.done("store", "one more")
    shutil.rmtree(ward.store)
    (ward.project / "older").rename(ward.store)


def replaced(ward: Ward) -> None:
    """A snapshot was put back, and the store recovered."""
    ward.done("snapshot", "restore", str(next((ward.project / "snapshots").iterdir())), "--over")
    ward.done("recover", "--reason", "test")


def far_from_writing(ward: Ward) -> None:
    """A reader keeps the write-ahead log from being taken over."""
    ward.patch.setattr(of_log, "MOST_AHEAD_BYTES", 1 << 16)
    datastore = Datastore(File(ward.store / "log.db", LogDamaged, read_only=True))
    reading = datastore.transaction(commit=False)
    reading.__enter__().execute("SELECT * FROM entry").fetchone()
    held.append((reading, datastore))
    ward.done("store", "x" * 300_000)


held: list[tuple[Any, Datastore]] = []
"""Readers that are at it."""


def read_no_more(_: Ward) -> None:
    """The readers end."""
    while held:
        reading, datastore = held.pop()
        reading.__exit__(None, None, None)
        datastore.close()


def written_tomorrow(ward: Ward) -> None:
    """The clock was wrong for a while."""
    with pytest.MonkeyPatch.context() as patch:
        ward._replace(patch=patch).shift(1)
        ward.done("store", "from tomorrow")


def long_ago(ward: Ward) -> None:
    """Time goes by, and no other snapshot is taken."""
    ward.done("store", "after the snapshot")
    ward.shift(40)


def keys_inside(ward: Ward) -> None:
    """The keys were moved into the store."""
    ward.keys.rename(ward.store / "keys")
    ward.patch.setenv("TALLYSTICK_KEYS", str(ward.store / "keys"))


def keys_in_memory(ward: Ward) -> None:
    """The keys were moved to a file system that is gone with the machine."""
    if file_system(SHM) != "tmpfs" or file_system(ward.project) in ("tmpfs", "overlay"):
        pytest.skip("there is no such pair of file systems here")
    folder = SHM / f"tallystick-{secrets.token_hex(4)}"
    shutil.move(ward.keys, folder)
    on_shm.append(folder)
    ward.patch.setenv("TALLYSTICK_KEYS", str(folder))


on_shm: list[Path] = []
"""Folders to be removed."""


def only_public(ward: Ward) -> None:
    """The keys were lost, and brought back from a backup."""
    shutil.copytree(ward.keys, ward.project / "saved")
    for name in ("root", "writer", "log", "kek", "views", "index"):
        (ward.keys / f"{name}.key").unlink()
    ward.done("keys", "restore", "keys.backup")


def signing_again(ward: Ward) -> None:
    """The keys that sign are found."""
    for name in ("writer.key", "log.key"):
        shutil.copy(ward.project / "saved" / name, ward.keys)


def never_backed_up(ward: Ward) -> None:
    """A new store."""
    (ward.project / ".tallystick.toml").unlink()
    ward.done("init", "fresh")
    (ward.project / "keys.backup").unlink()


def keys_in_environment(ward: Ward) -> None:
    """A container without a volume for its state."""
    for name in ("root", "writer", "log", "kek", "views", "index"):
        ward.patch.setenv(f"TALLYSTICK_KEY_{name.upper()}", (ward.keys / f"{name}.key").read_text().strip())
    ward.patch.setenv("TALLYSTICK_KEYS", "env")
    (ward.project / "state").write_text("a file")
    ward.patch.setenv("XDG_STATE_HOME", str(ward.project / "state"))


def many_without_vectors(ward: Ward) -> None:
    """More was stored than recalls make vectors for by the way."""
    if name_of("auto") == "none":
        pytest.skip("the offline model is not installed")
    with Memory.open(ward.store, model="none") as memory:
        memory.store_many([f"note {number}" for number in range(101)])
    ward.patch.setenv("TALLYSTICK_MODEL", "auto")


def two_models(ward: Ward) -> None:
    """Another model was in use."""
    with Memory.open(ward.store, model="none") as memory:
        cache = VectorCache(memory._opened.installation)
        for space in ("one", "two"):
            cache.put(space, (bytes(16), bytes(16)), Made(b"vector", b"", "runtime"))
        cache.close()


def half_changed(ward: Ward) -> None:
    """A change of the model was broken off."""
    begin(ward.store, "none")


def not_installed(ward: Ward) -> None:
    """What runs models is not installed."""
    ward.patch.setitem(sys.modules, "onnxruntime", None)
    ward.patch.setenv("TALLYSTICK_MODEL", "auto")


def look_alikes(ward: Ward) -> None:
    """One project, spelled in two ways."""
    for name in ("project:app", "project:app", "Project:Ap\N{CYRILLIC SMALL LETTER ER}_"):
        ward.done("store", f"in {name} {secrets.token_hex(4)}", "--namespace", name)


def on_a_network(ward: Ward) -> None:
    """The store's folder is mounted from another machine."""
    ward.patch.setattr(lease, "file_system", lambda path: "nfs4" if path.name == ".tallystick" else "ext4")


def moved(ward: Ward) -> None:
    """The store is moved to a disk of this machine."""
    ward.store.rename(ward.project / "here")
    ward.patch.setenv("TALLYSTICK_PATH", str(ward.project / "here"))


def nothing_left(ward: Ward) -> None:
    """Neither store nor project file are there."""
    shutil.rmtree(ward.store)
    (ward.project / ".tallystick.toml").unlink()


def two_keys_gone(ward: Ward) -> None:
    """Somebody deleted two keys."""
    for name in ("root.key", "views.key"):
        (ward.keys / name).unlink()


def open_elsewhere(ward: Ward) -> None:
    """Another host holds the lease."""
    (ward.store / "lease").write_text(json.dumps(Host("beta", "machine-2", "boot-2")._asdict()))


def as_another_user(ward: Ward) -> None:
    """A command was run as another user."""
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    os.chown(ward.store / "log.db", 12345, 12345)


def colourful(ward: Ward) -> None:
    """The project file says what is no setting."""
    file = ward.project / ".tallystick.toml"
    file.write_text(file.read_text() + 'colour = "red"\n')


def edit(ward: Ward) -> None:
    """The line that does not belong there is taken out of the project file."""
    file = ward.project / ".tallystick.toml"
    file.write_text(file.read_text().replace('colour = "red"\n', ""))


def new_copy(ward: Ward, remedy: str) -> None:
    """What verifies of the store is saved, and looked at from then on."""
    ward.follow(remedy, 1)
    ward.patch.setenv("TALLYSTICK_PATH", str(ward.project / "new"))


def put_back(ward: Ward, remedy: str) -> None:
    """What is there instead of a key is moved away, and the backup brought back."""
    for name in ("kek.key", "index.key"):
        (ward.keys / name).rename(ward.project / name)
    ward.follow(remedy, 1)


CASES = {
    "settings.name": Case(
        lambda ward: ward.patch.setenv("TALLYSTICK_AKTOR", "ana"), "TALLYSTICK_AKTOR is not a setting"
    ),
    "settings.value": Case(lambda ward: ward.patch.setenv("TALLYSTICK_AUDIT", "lax"), "setting audit is not allowed"),
    "project.file": Case(
        colourful,
        r"colour is not a setting \(.*\.tallystick\.toml\)",
        by_hand(edit),
    ),
    "project.store": Case(
        lambda ward: shutil.rmtree(ward.store),
        r"\.tallystick\.toml names the store .*\.tallystick, and there is none",
        commands(1, 2),
        left=("keys.backup",),
    ),
    "store.missing": Case(
        nothing_left,
        r"no store in \.tallystick",
        left=("keys.backup",),
    ),
    "store.network": Case(on_a_network, r"network file system \(nfs4\)", by_hand(moved)),
    "store.read-only": Case(
        lambda _: None,
        r"\.tallystick can't be written to \(its disk is read-only\)",
        by_hand(),
        mount="mount --bind {project} {project} && mount -o remount,bind,ro {project}",
    ),
    "store.room": Case(
        lambda ward: (ward.project / "small").mkdir(),
        r"The disk of .*small has 1[0-9]\.\d MB left",
        by_hand(),
        mount="cd {project} && mount -t tmpfs -o size=16m,mode=700 none small && cp -a .tallystick/. small",
        at=("-C", "small"),
    ),
    "store.open": Case(lambda ward: ward.store.chmod(0o755), "Other users have rights in .*tallystick"),
    "store.owner": Case(as_another_user, r"log\.db belongs to user 12345, and its folder to user 0"),
    "store.host": Case(open_elsewhere, "open on the host 'beta'"),
    "store.replaced": Case(replaced, "replaced-.* keeps a log that was replaced"),
    "store.unfinished": Case(lambda ward: (ward.store / ".recovering-ab12").mkdir(), ".recovering-ab12 was left"),
    "store.strays": Case(
        lambda ward: (ward.store / "notes.txt").touch(),
        "notes.txt in .* none of the store's files",
        by_hand(lambda ward: (ward.store / "notes.txt").rename(ward.project / "notes.txt")),
    ),
    "log.gone": Case(
        lambda ward: (ward.store / "log.db").unlink(), r"log\.db is gone, and .*views-.* is there", left=("log.behind",)
    ),
    "log.unreadable": Case(
        lambda ward: (ward.store / "log.db").write_bytes(b"nonsense" * 1000),
        r"log\.db is damaged: file is not a database",
        left=("log.behind", "store.replaced"),
    ),
    "log.format": Case(
        lambda ward: ward.write("format", (FORMAT + 1).to_bytes(4, "big")),
        "store format 2 and this release knows 1",
        by_hand(lambda ward: ward.write("format", FORMAT.to_bytes(4, "big"))),
    ),
    "log.tables": Case(
        lambda ward: ward.change(
            "DROP TRIGGER entry_kept; DROP INDEX entry_stream; "
            "CREATE TRIGGER mine AFTER INSERT ON entry BEGIN DELETE FROM payload; END"
        ),
        "definition of entry_kept, entry_stream, mine is not the one",
        commands(0, 1),
    ),
    "log.entries": Case(
        lambda ward: flip(ward.store / "log.db", b"memory.stored"),
        r"memory log, position \d+: ",
        new_copy,
    ),
    "log.behind": Case(older, "and this installation has verified", left=("store.replaced",)),
    "log.holdings": Case(
        lambda ward: ward.change("DELETE FROM claim WHERE place = (SELECT min(place) FROM claim)"),
        "the claim [0-9a-f]{32} is not held",
        new_copy,
    ),
    "log.write-ahead": Case(
        far_from_writing, "log.db-wal has .* MB", by_hand(read_no_more, lambda ward: ward.done("status"))
    ),
    "log.clock": Case(written_tomorrow, "The newest event is of ", by_hand(lambda ward: ward.shift(2))),
    "log.snapshot": Case(long_ago, "The last snapshot was taken 40 days ago"),
    "keys.missing": Case(
        two_keys_gone,
        "root.key, views.key of this store is missing in /.*",
        commands(1),
    ),
    "keys.unreadable": Case(
        lambda ward: (ward.keys / "kek.key").write_text("nonsense"), "kek.key can't be read as a key", put_back
    ),
    "keys.other": Case(
        lambda ward: (ward.keys / "index.key").write_text("ab" * 32), "index.key is not this store's key", put_back
    ),
    "keys.inside": Case(
        keys_inside, "The keys lie inside the store, in .*/keys", commands(0, 1), also=("store.strays",)
    ),
    "keys.open": Case(lambda ward: ward.keys.chmod(0o755), "The keys in .* can be read by others"),
    "keys.vanishing": Case(keys_in_memory, "does not outlive this machine", commands(0, 1)),
    "keys.sign": Case(only_public, "don't sign: nothing can be stored", by_hand(signing_again)),
    "keys.backup": Case(never_backed_up, "never backed up"),
    "mark.missing": Case(lambda ward: (ward.keys / "mark").unlink(), "There is no mark"),
    "mark.damaged": Case(
        lambda ward: (ward.keys / "mark").write_bytes(b"x" * 16384), "The mark .*/mark is damaged", commands(0, 1)
    ),
    "mark.place": Case(keys_in_environment, "No mark can be kept in .*/state", commands(0), left=("mark.missing",)),
    "views.gone": Case(lambda ward: ward.views.unlink(), "The views file views-.* is gone"),
    "views.damaged": Case(lambda ward: ward.views.write_bytes(b"nonsense" * 1000), "views-.* is damaged"),
    "views.strays": Case(
        lambda ward: shutil.copy(ward.views, ward.store / "views-12345678-dead.db"), "views-12345678-dead.db is not"
    ),
    "views.release": Case(another_release, "views-00000000-00000000.db .* are the views of another release"),
    "vectors.damaged": Case(
        lambda ward: (ward.store / "vectors.db").write_bytes(b"nonsense" * 1000),
        "vectors.db is damaged",
        commands(0, 1),
    ),
    "vectors.missing": Case(many_without_vectors, "10[0-9] memories have no vector yet"),
    "vectors.models": Case(two_models, "vectors.db holds vectors of 2 models", commands(0, 1)),
    "model.next": Case(half_changed, "The vectors of the model none are not all made yet"),
    "model.missing": Case(
        lambda ward: ward.patch.setenv("TALLYSTICK_MODEL", "/nowhere"),
        "The model /nowhere has no model.onnx and no tokenizer.json",
        by_hand(lambda ward: ward.patch.setenv("TALLYSTICK_MODEL", "none")),
    ),
    "model.none": Case(not_installed, "There is no embedding model", commands(1)),
    "namespaces.alike": Case(look_alikes, "Project:Ap.* and project:app .2. look alike"),
}  # fmt: skip


# ---- the store that is broken


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A healthy store with everything that remedies need: a snapshot, and a backup of its keys."""
    folder = tmp_path_factory.mktemp("template")
    for part in ("project", "home"):
        (folder / part).mkdir()
    with pytest.MonkeyPatch.context() as patch:
        isolate(patch, folder / "home")
        patch.chdir(folder / "project")
        patch.setenv("TALLYSTICK_MODEL", "none")
        patch.setenv(PASSPHRASE_VARIABLE, "correct horse battery")
        for words in (
            ["init"], ["store", "the first text"], ["store", "the second", "--key", "k", "--command-id", "c"],
            ["recall", "text"], ["keys", "backup", "keys.backup"], ["snapshot", "create", "snapshots"], ["namespaces"],
        ):  # fmt: skip
            assert CliRunner().invoke(app, words, catch_exceptions=False).exit_code == 0
    yield folder


@pytest.fixture
def ward(template: Path, project: Path, home: Path, tally: Tally, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ward]:
    """A copy of it, of one's own."""
    for mine, theirs in ((project, template / "project"), (home, template / "home")):
        shutil.copytree(theirs, mine, dirs_exist_ok=True)
    monkeypatch.setenv(PASSPHRASE_VARIABLE, "correct horse battery")
    found = Ward(project, home, monkeypatch, tally)
    yield found
    read_no_more(found)
    while on_shm:
        shutil.rmtree(on_shm.pop())


def looked_at(ward: Ward, case: Case) -> tuple[int, dict[str, Any]]:
    """What the doctor says, where something is mounted if the case wants it."""
    if not case.mount:
        answer = ward.tally("doctor", "--json")
        return answer.code, answer.document
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
        pytest.skip("this user may not mount anything here: unshare -rm is refused")
    doctor = shlex.join([sys.executable, "-c", RUN, "doctor", "--json", *case.at])
    script = f"{case.mount.format(project=ward.project)} && cd {ward.project} && exec {doctor}"
    done = subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True)
    if done.returncode == 32:  # of mount(8)
        pytest.skip(f"mounting is refused here: {done.stderr}")
    return done.returncode, json.loads(done.stdout)


def test_every_check_is_broken_here() -> None:
    """No check is without a case, and no case without a check."""
    assert set(CASES) == {check.name for check in CHECKS}
    assert len(CHECKS) >= 20


def test_every_check_is_in_the_documentation() -> None:
    """docs/doctor.md has one row for each check, with its level, in order, and for no other."""
    page = (ROOT / "docs" / "doctor.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z.-]+)` \| (wrong|warning) \|", page, re.MULTILINE)
    assert rows == [(check.name, check.level) for check in CHECKS]


@pytest.mark.parametrize("name", CASES)
def test_it_is_named_and_its_remedy_mends_it(ward: Ward, name: str) -> None:
    """What is broken is found by its own check and by no other, and what the doctor says to do does mend it."""
    case, level = CASES[name], next(check.level for check in CHECKS if check.name == name)
    case.breaks(ward)
    code, document = looked_at(ward, case)
    found = [each for each in document["findings"] if each["check"] == name]
    assert {each["check"] for each in document["findings"]} == {name, *case.also}, document["findings"]
    assert re.search(case.says, found[0]["what"]), found
    assert (found[0]["level"], code) == (level, 1 if level == "wrong" else 0)
    for each in found:
        case.mends(ward, each["remedy"])
    after = ward.tally("doctor", "--json").document
    assert {each["check"] for each in after["findings"]} == set(case.left), after["findings"]
    assert case.left or len(after["checks"]) == len(CHECKS)


def test_what_is_healthy_is_said_to_be(ward: Ward) -> None:
    """With the number of checks that were made."""
    answer = ward.done("doctor")
    assert answer.out.splitlines()[0] == f"healthy: nothing is wrong; {len(CHECKS)} checks made"
    assert str(ward.store) in answer.out


def test_nothing_is_changed(ward: Ward) -> None:
    """No file of the store, of the keys, of the project or of the home is written, made or touched."""

    def everything() -> dict[Path, tuple[int, bytes]]:
        files = [path for top in (ward.project, ward.home) for path in top.rglob("*") if path.is_file()]
        return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in files}

    before = everything()
    ward.done("doctor")
    assert everything() == before


def test_a_line_says_it_all(ward: Ward) -> None:
    """Each finding is one line: how much it matters, which check, what is wrong, and what to do."""
    ward.keys.chmod(0o755)
    ward.store.chmod(0o755)
    answer = ward.tally("doctor")
    assert answer.code == 1
    first, *lines = answer.out.splitlines()[:3]
    assert first.startswith("1 wrong, 1 warning; ")
    assert lines == [
        f"wrong    keys.open: The keys in {ward.keys} can be read by others. Run `chmod go-rwx {ward.keys}`.",
        f"warning  store.open: Other users have rights in the store's folder {ward.store}. "
        f"Run `chmod go-rwx {ward.store}`.",
    ]


def test_a_command_names_the_store_where_it_has_to(ward: Ward, tmp_path: Path) -> None:
    """With -C the commands have it too, so that they can be copied as they stand."""
    ward.views.unlink()
    ward.patch.chdir(tmp_path)
    document = ward.tally("doctor", "-C", str(ward.store), "--json").document
    assert [each["remedy"] for each in document["findings"]] == [f"Run `tallystick -C {ward.store} replay`."]


def test_what_can_not_be_looked_at_is_said(ward: Ward) -> None:
    """A check that needs what is missing is not counted as made."""
    shutil.rmtree(ward.keys)
    document = ward.tally("doctor", "--json").document
    assert [each["check"] for each in document["findings"]] == ["keys.missing"]
    assert {"log.entries", "views.damaged"} <= set(document["not_made"])
    assert len(document["checks"]) + len(document["not_made"]) == len(CHECKS)
    assert re.search("^not made  log.entries, ", ward.tally("doctor").out, re.MULTILINE)


def test_keys_of_another_store_are_told_by_the_root(ward: Ward) -> None:
    """The first thing that is compared is who began the log."""
    shutil.copytree(ward.keys, ward.project / "other")
    (ward.project / "other" / "root.key").write_text("ab" * 32)
    ward.patch.setenv("TALLYSTICK_KEYS", str(ward.project / "other"))
    (found,) = ward.tally("doctor", "--json").document["findings"]
    assert (found["check"], "root.key is not this store's key" in found["what"]) == ("keys.other", True)


def test_a_store_that_was_given_up_is_not_to_be_recovered(ward: Ward) -> None:
    """Once another store goes on in its place, that one is to be opened: there is one history."""
    flip(ward.store / "log.db", b"memory.stored")
    ward.done("salvage", "--out", "new")
    (found,) = ward.tally("doctor", "--json").document["findings"]
    assert (found["check"], "Open the store that it became" in found["remedy"]) == ("log.behind", True)
    assert "recover" not in found["remedy"]
    assert "log.behind" not in str(ward.tally("doctor", "-C", "new", "--json").document["findings"])


def test_every_command_of_a_remedy_exists() -> None:
    """What the doctor says to type can be typed."""
    folder = ROOT / "src" / "queries" / "doctor"
    source = "\n".join(file.read_text(encoding="utf-8") for file in folder.glob("*.py"))
    typed = re.findall(r"patient\.run\(f?'([a-z -]+?)(?: [A-Z{-].*?)?'\)", source)
    assert len(typed) > 10
    assert {words for words in typed if words not in COMMANDS} == set()
