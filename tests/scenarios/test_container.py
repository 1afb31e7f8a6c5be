"""The container mistake: keys in a home that is gone at the next start. It is refused, or named; never papered over."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tallystick import Memory
from tallystick.errors import KeysMissing, Refused
from tallystick.events.keys import NAMES

from .conftest import Place, Start

SHM = Path("/dev/shm")
EPHEMERAL = {"tmpfs", "ramfs", "overlayfs", "aufs"}


def file_system(path: Path) -> str:
    """The type of file system a path lies on, according to coreutils."""
    try:
        return subprocess.run(
            ["stat", "-f", "-c", "%T", str(path)], capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"`stat -f` does not tell the file system of {path}: {error}")


@pytest.fixture
def shm() -> Iterator[Path]:
    """A folder on a file system in memory."""
    if not SHM.is_dir() or file_system(SHM) != "tmpfs":
        pytest.skip("/dev/shm is not a tmpfs here: nothing is ephemeral")
    with tempfile.TemporaryDirectory(prefix="tallystick-", dir=SHM) as folder:
        yield Path(folder)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A folder on a file system that outlives a restart."""
    if file_system(tmp_path) in EPHEMERAL:
        pytest.skip(f"{tmp_path} is itself on {file_system(tmp_path)}: nothing is kept here. Use --basetemp=DIR.")
    return tmp_path


def home(folder: Path, **settings: str) -> dict[str, str]:
    """The environment of one run of a container: a home of its own, with all user directories in it."""
    user_directories = {
        f"XDG_{name}_HOME": str(folder / place)
        for name, place in {"DATA": ".local/share", "CONFIG": ".config", "CACHE": ".cache", "STATE": ".state"}.items()
    }
    folder.mkdir(exist_ok=True)
    return {**os.environ, **user_directories, "HOME": str(folder), **settings}


def key_files(folder: Path) -> list[Path]:
    """Every key below a folder."""
    return sorted(folder.rglob("*.key"))


def test_the_second_run_names_the_key_and_both_ways_to_supply_it(tmp_path: Path, start: Start) -> None:
    """With a fresh home and a kept store: which key, where it looked, what to do; no new key, nothing written."""
    store, first, second = tmp_path / "kept", tmp_path / "first", tmp_path / "second"
    made = start("open_worker.py", store, "", "first", environment=home(first)).say().say().succeed()
    keys = Path(made[1]["keys"])
    assert keys.is_relative_to(first)
    before = {path: path.read_bytes() for path in store.iterdir()}
    said = start("open_worker.py", store, "", "second", environment=home(second)).say().say().succeed()
    assert said[1]["error"] == "KeysMissing"
    message = said[1]["message"]
    assert "root.key" in message
    assert str(second / ".local/share/tallystick/keys" / keys.name) in message
    assert "Memory.open(path, keys=DIRECTORY)" in message
    assert "TALLYSTICK_KEYS=DIRECTORY" in message
    assert key_files(second) == []
    assert {path: path.read_bytes() for path in before} == before
    with_variable = home(second, TALLYSTICK_KEYS=str(keys))
    assert "id" in start("open_worker.py", store, "", "third", environment=with_variable).say().say().succeed()[1]
    assert "id" in start("open_worker.py", store, keys, "fourth", environment=home(second)).say().say().succeed()[1]
    assert key_files(second) == []


def test_keys_that_would_vanish_are_refused(kept: Path, shm: Path, start: Start) -> None:
    """A home in memory and a store on disk: nothing is made, and the refusal says why and what to name."""
    environment = home(shm / "home")
    said = start("open_worker.py", kept / "store", "", "first", environment=environment).say().say().succeed()
    assert said[1]["error"] == "Refused"
    for part in (str(shm / "home"), str(kept / "store"), "keys=DIRECTORY", "TALLYSTICK_KEYS=DIRECTORY"):
        assert part in said[1]["message"]
    assert key_files(shm) == []
    assert not (kept / "store" / "log.db").exists()


def test_keys_named_in_a_place_that_vanishes_are_refused(kept: Path, shm: Path) -> None:
    """Naming the directory does not make it last."""
    with pytest.raises(Refused, match="lost with the keys"):
        Memory.open(kept / "store", keys=shm / "keys", model="none")
    assert key_files(shm) == []


def test_keys_and_store_that_vanish_together_are_allowed(shm: Path) -> None:
    """A store in memory may have its keys in memory."""
    with Memory.open(shm / "store", keys=shm / "keys", model="none") as memory:
        assert memory.store("for a while").status == "stored"


def test_keys_that_outlive_the_store_are_allowed(kept: Path, shm: Path) -> None:
    """Only keys that vanish before their store are a mistake."""
    with Memory.open(shm / "store", keys=kept / "keys", model="none") as memory:
        assert memory.store("for a while").status == "stored"


def test_a_store_on_an_ephemeral_file_system_is_seen_through_a_link(kept: Path, shm: Path) -> None:
    """What counts is where the files really lie."""
    (kept / "link").symlink_to(shm, target_is_directory=True)
    with pytest.raises(Refused, match="lost with the keys"):
        Memory.open(kept / "store", keys=kept / "link" / "keys", model="none")


@pytest.mark.parametrize("how", ["argument", "variable"])
def test_keys_lie_where_they_were_asked_for(
    place: Place, how: str, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    """An explicit directory, or TALLYSTICK_KEYS, and not the user's own directory."""
    if how == "variable":
        monkeypatch.setenv("TALLYSTICK_KEYS", str(place.keys))
    with Memory.open(place.store, keys=place.keys if how == "argument" else None, model="none") as memory:
        assert memory.status().keys == str(place.keys)
    assert [path.stem for path in key_files(place.keys)] == sorted(NAMES)
    assert key_files(home) == []


def test_an_argument_goes_before_the_variable(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nearest word counts."""
    monkeypatch.setenv("TALLYSTICK_KEYS", str(place.keys.with_name("others")))
    place.open().close()
    assert key_files(place.keys) != []
    assert not place.keys.with_name("others").exists()


@pytest.mark.parametrize("inside", [".", "keys", "a/b/keys", "../store/keys"])
def test_keys_inside_the_store_are_refused(place: Place, inside: str) -> None:
    """A copy of the store must not be a copy of its keys."""
    with pytest.raises(Refused, match="may not lie inside the store"):
        Memory.open(place.store, keys=place.store / inside, model="none")
    assert key_files(place.store) == []
    assert not (place.store / "log.db").exists()


def test_keys_that_lead_into_the_store_by_a_link_are_refused(place: Place) -> None:
    """What counts is where they really lie."""
    place.store.mkdir()
    place.keys.symlink_to(place.store, target_is_directory=True)
    with pytest.raises(Refused, match="may not lie inside the store"):
        place.open()


def test_keys_and_store_are_private(place: Place) -> None:
    """Directories 0700, files 0600, whatever the umask says."""
    old = os.umask(0)
    try:
        with place.open() as memory:
            memory.store("something private")
            memory.recall("something")
            modes = {path: stat.S_IMODE(path.stat().st_mode) for path in place.keys.rglob("*")}
            directories = [stat.S_IMODE(path.stat().st_mode) for path in (place.keys, place.store)]
    finally:
        os.umask(old)
    assert {path.stem for path in modes} >= set(NAMES)
    assert set(modes.values()) == {0o600}
    assert directories == [0o700, 0o700]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("target", ["existing", "nowhere"])
def test_a_link_in_place_of_a_key_is_not_followed(place: Place, name: str, target: str) -> None:
    """Creating keys never writes through a link that somebody has put there."""
    place.keys.mkdir()
    elsewhere = place.keys.with_name("elsewhere")
    if target == "existing":
        elsewhere.write_text("not a key")
    (place.keys / f"{name}.key").symlink_to(elsewhere)
    with pytest.raises(Refused, match=f"{name}"):
        place.open()
    assert elsewhere.exists() is (target == "existing")
    if target == "existing":
        assert elsewhere.read_text() == "not a key"
    assert not (place.store / "log.db").exists()


def test_a_mounted_secret_opens_the_store(place: Place) -> None:
    """Keys named explicitly may be links to files that others may read, and status says so; they work all the same."""
    place.open().close()
    mounted = place.keys.with_name("mounted")
    mounted.mkdir(mode=0o755)
    for key in key_files(place.keys):
        (mounted / key.name).symlink_to(key)
    with place._replace(keys=mounted).open() as memory:
        memory.store("with mounted keys")
        status = memory.status()
    assert any("read by others" in remark for remark in status.remarks)
    assert not status.clean


def given() -> dict[str, str]:
    """A set of keys as the variables of a container."""
    return {f"TALLYSTICK_KEY_{name.upper()}": f"{number:02x}" * 32 for number, name in enumerate(NAMES)}


def test_keys_in_the_environment_serve_one_run_after_the_other(tmp_path: Path, start: Start) -> None:
    """With a fresh home each time and nothing to mount but the store; without one of them nothing opens."""
    store = tmp_path / "kept"
    for run in ("first", "second"):
        environment = home(tmp_path / run, TALLYSTICK_KEYS="env", **given())
        said = start("open_worker.py", store, "", run, environment=environment).say().say().succeed()
        assert said[1]["keys"] == "env"
    lacking = home(tmp_path / "third", TALLYSTICK_KEYS="env", **{**given(), "TALLYSTICK_KEY_KEK": ""})
    said = start("open_worker.py", store, "", "third", environment=lacking).say().say().succeed()
    assert (said[1]["error"], "TALLYSTICK_KEY_KEK holds 0 bytes" in said[1]["message"]) == ("KeysMissing", True)
    assert key_files(tmp_path) == []


def test_the_mark_is_kept_where_the_state_directory_is(tmp_path: Path, start: Start) -> None:
    """A container whose XDG_STATE_HOME is a volume notices that its store was rolled back; it has no key directory."""
    store, environment = tmp_path / "kept", home(tmp_path / "home", TALLYSTICK_KEYS="env", **given())
    environment["XDG_STATE_HOME"] = str(tmp_path / "state")
    start("open_worker.py", store, "", "first", environment=environment).say().say().succeed()
    shutil.copytree(store, tmp_path / "older")
    start("open_worker.py", store, "", "second", environment=environment).say().say().succeed()
    shutil.rmtree(store)
    (tmp_path / "older").rename(store)
    said = start("open_worker.py", store, "", "third", environment=environment).say().say().succeed()
    assert said[1]["error"] == "LogBehindMark"


def test_a_secret_that_is_mounted_read_only_opens_the_store(place: Place, home: Path) -> None:
    """The kernel refuses every write to it: the mark goes to the state directory, and status says what is so."""
    place.open().close()
    program = (
        "import json, sys; from tallystick import Memory\n"
        "with Memory.open(sys.argv[1], keys=sys.argv[2], model='none') as memory:\n"
        "    memory.store('with mounted keys'); s = memory.status()\n"
        "    print(json.dumps([s.mark, s.notes, s.remarks]))"
    )
    mount = 'mount --bind "$2" "$2" && mount -o remount,ro,bind "$2" && exec "$0" -c "$3" "$1" "$2"'
    inside = ["sh", "-c", mount, sys.executable, str(place.store), str(place.keys), program]
    done = subprocess.run(["unshare", "-m", *inside], capture_output=True, text=True, check=False)
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"nothing can be mounted here: {done.stderr}")
    mark, notes, remarks = json.loads(done.stdout)
    assert Path(mark).is_relative_to(home)
    assert notes == [f"the keys in {place.keys} can't be written to"]
    assert ["backed up" in remark for remark in remarks] == [True]


def test_a_missing_key_is_named_each_for_itself(place: Place) -> None:
    """Whichever key is gone, the error names that one, and none is made in its place."""
    place.open().close()
    for name in NAMES:
        file = place.keys / f"{name}.key"
        kept = file.read_bytes()
        file.unlink()
        with pytest.raises(KeysMissing, match=f"{name}.key"):
            place.open()
        assert not file.exists()
        file.write_bytes(kept)
    place.open().close()
