"""Keys are made once, never by accident, and a key that is not this store's is named."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tallystick.errors import KeysMissing, Refused
from tallystick.events import key_places
from tallystick.events.key_places import Directory, default_directory, exposure, refuse_losing_place
from tallystick.events.keys import NAMES, Keys
from tallystick.events.keys import create_keys as create_in
from tallystick.events.keys import load_keys as load_from

BOTH_WAYS = ("Memory.open(path, keys=DIRECTORY)", "TALLYSTICK_KEYS=DIRECTORY", "No new keys were made")


def create_keys(directory: Path) -> Keys:
    """Make keys in a directory."""
    return create_in(Directory(directory, named=True))


def load_keys(directory: Path) -> Keys:
    """The keys in a directory."""
    return load_from(Directory(directory, named=True))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory with a set of keys."""
    create_keys(tmp_path / "keys")
    return tmp_path / "keys"


def contents(directory: Path) -> dict[str, bytes]:
    """What each file holds."""
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_a_set_of_keys_is_made(tmp_path: Path) -> None:
    """Six files of 64 hexadecimal digits, all different, each the owner's alone in a directory of the owner's alone."""
    old = os.umask(0)
    try:
        create_keys(tmp_path / "a" / "keys")
    finally:
        os.umask(old)
    found = contents(tmp_path / "a" / "keys")
    assert sorted(found) == sorted(f"{name}.key" for name in NAMES)
    assert len({bytes.fromhex(text.decode()) for text in found.values()}) == len(NAMES)
    assert {len(text) for text in found.values()} == {65}
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "a" / "keys").iterdir()} == {0o600}
    assert stat.S_IMODE((tmp_path / "a" / "keys").stat().st_mode) == 0o700


def test_keys_are_read_back_as_they_were_made(tmp_path: Path) -> None:
    """Whoever reads them signs, wraps and encrypts as the one who made them."""
    made = create_keys(tmp_path / "keys")
    found = load_keys(tmp_path / "keys")
    assert (found.root.public, found.writer.public, found.log.public) == (
        made.root.public,
        made.writer.public,
        made.log.public,
    )
    assert (found.kek, found.views, found.index) == (made.kek, made.views, made.index)


def test_two_sets_have_nothing_in_common(tmp_path: Path) -> None:
    """Keys are random."""
    for name in ("a", "b"):
        create_keys(tmp_path / name)
    sets = [contents(tmp_path / name) for name in ("a", "b")]
    assert not set(sets[0].values()) & set(sets[1].values())


def test_no_key_is_shown(directory: Path) -> None:
    """Neither repr nor an error tells a secret."""
    found = load_keys(directory)
    secrets = [text.decode().strip() for text in contents(directory).values()]
    shown = repr(found) + str(found) + repr(found.root)
    assert not [secret for secret in secrets if secret in shown]
    (directory / "kek.key").write_text(secrets[0][:-2])
    with pytest.raises(KeysMissing) as error:
        load_keys(directory)
    assert secrets[0][:16] not in str(error.value)


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_key_is_named(directory: Path, name: str) -> None:
    """Which, where it was looked for, both ways to supply it; and none is made."""
    (directory / f"{name}.key").unlink()
    with pytest.raises(KeysMissing) as error:
        load_keys(directory)
    for part in (f"{name}.key", str(directory), *BOTH_WAYS):
        assert part in str(error.value)
    assert not (directory / f"{name}.key").exists()


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    """As a missing key is; the directory is not made."""
    with pytest.raises(KeysMissing, match=f"{tmp_path}/nowhere"):
        load_keys(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"00" * 31, b"00" * 33, b"zz" * 32, b"0" * 63, b"\xff" * 64, b"00" * 32 + b"x", bytes(32)],
    ids=["empty", "blank", "short", "long", "not hexadecimal", "odd", "not text", "followed", "raw"],
)
@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_is_no_key_is_named(directory: Path, name: str, content: bytes) -> None:
    """Short, long or not a key at all: never used, never replaced."""
    path = directory / f"{name}.key"
    path.write_bytes(content)
    with pytest.raises(KeysMissing) as error:
        load_keys(directory)
    for part in (str(path), *BOTH_WAYS):
        assert part in str(error.value)
    assert path.read_bytes() == content


def test_a_key_that_may_not_be_read_is_named(directory: Path) -> None:
    """A directory in the place of a key stands for every file that can't be read."""
    (directory / "kek.key").unlink()
    (directory / "kek.key").mkdir()
    with pytest.raises(KeysMissing, match=r"kek\.key can't be read"):
        load_keys(directory)


def test_a_key_may_be_written_by_hand(directory: Path) -> None:
    """Capitals and white space around it do no harm: people copy keys."""
    path = directory / "kek.key"
    before = load_keys(directory).kek
    path.write_text(f"\n{path.read_text().strip().upper()} \r\n")
    assert load_keys(directory).kek == before


@pytest.mark.parametrize("name", NAMES)
def test_keys_are_never_overwritten(directory: Path, name: str) -> None:
    """Where one key is there already, none is made; the refusal names it and what to do."""
    for other in NAMES:
        if other != name:
            (directory / f"{other}.key").unlink()
    before = contents(directory)
    with pytest.raises(Refused) as refusal:
        create_keys(directory)
    for part in (str(directory), name, "keys=", "TALLYSTICK_KEYS"):
        assert part in str(refusal.value)
    assert contents(directory) == before


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("there", [True, False])
def test_a_link_in_place_of_a_key_is_refused(tmp_path: Path, name: str, there: bool) -> None:
    """Whether it leads somewhere or nowhere: nothing is written through it, and no other key is made."""
    directory, elsewhere = tmp_path / "keys", tmp_path / "elsewhere"
    directory.mkdir()
    (directory / f"{name}.key").symlink_to(elsewhere)
    if there:
        elsewhere.write_bytes(b"precious")
    with pytest.raises(Refused, match=name):
        create_keys(directory)
    assert elsewhere.exists() is there
    assert [path.name for path in directory.iterdir()] == [f"{name}.key"]


@pytest.mark.parametrize("inside", ["", "keys", "a/b", "../store/keys"])
def test_keys_inside_the_store_are_refused(tmp_path: Path, inside: str) -> None:
    """Whoever copies the store would copy its keys."""
    store = tmp_path / "store"
    store.mkdir()
    with pytest.raises(Refused, match="may not lie inside the store"):
        refuse_losing_place(store / inside, store)
    assert list(store.rglob("*")) == []


def test_keys_beside_the_store_are_allowed(tmp_path: Path) -> None:
    """A name that begins like the store's is another directory."""
    refuse_losing_place(tmp_path / "store-keys", tmp_path / "store")


@pytest.mark.parametrize(
    ("keys_on", "store_on", "refused"),
    [
        ("tmpfs", "ext4", True),
        ("overlay", "ext4", True),
        ("ramfs", "xfs", True),
        ("tmpfs", "tmpfs", False),
        ("overlay", "tmpfs", False),
        ("ext4", "tmpfs", False),
        ("ext4", "ext4", False),
        (None, "ext4", False),
    ],
)
def test_keys_that_would_vanish_before_the_store_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys_on: str | None, store_on: str, refused: bool
) -> None:
    """The container mistake, on each kind of file system; where the system does not tell, it is allowed."""
    directory, store = tmp_path / "keys", tmp_path / "store"
    kinds = {directory: keys_on, store: store_on}
    monkeypatch.setattr(key_places, "file_system", kinds.__getitem__)
    if not refused:
        refuse_losing_place(directory, store)
        return
    with pytest.raises(Refused) as refusal:
        refuse_losing_place(directory, store)
    for part in (str(directory), str(store), "keys=DIRECTORY", "TALLYSTICK_KEYS=DIRECTORY"):
        assert part in str(refusal.value)


def test_the_file_system_is_that_of_the_nearest_mount(tmp_path: Path) -> None:
    """A path that is not there yet lies where its nearest parent does."""
    if not Path("/proc/self/mountinfo").exists():
        pytest.skip("this system does not tell its file systems")
    kind = key_places.file_system(tmp_path)
    assert kind is not None
    assert key_places.file_system(tmp_path / "not" / "there" / "yet") == kind
    assert key_places.file_system(Path("/proc/self")) == "proc"


def test_the_default_directory_is_the_users_own(home: Path) -> None:
    """One for each store, and nothing is made by asking."""
    one, other = default_directory(b"1" * 16), default_directory(b"2" * 16)
    assert one != other
    assert one.is_relative_to(home)
    assert not one.exists()


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(
    ("mode", "words"),
    [
        (0o700, None),
        (0o500, None),
        (0o750, "read by their group"),
        (0o701, "read by others"),
        (0o705, "read by others"),
    ],
)
def test_a_directory_that_is_not_the_owners_alone_is_told(
    directory: Path, mode: int, words: str | None, named: bool
) -> None:
    """What others can read is wrong; what the group can is too, unless it is a directory that the caller named."""
    directory.chmod(mode)
    remarks, notes = exposure(Directory(directory, named=named))
    directory.chmod(0o700)
    said = notes if named and words == "read by their group" else remarks
    found = [each for each in said if "written" not in each]
    assert found == ([f"the keys in {directory} can be {words}"] if words else [])


def test_links_to_keys_are_told(directory: Path, tmp_path: Path) -> None:
    """As a mounted secret has them: to be known where the directory was named, and wrong where it was not."""
    mounted = tmp_path / "mounted"
    mounted.mkdir(mode=0o700)
    for key in directory.iterdir():
        (mounted / key.name).symlink_to(key)
    assert exposure(Directory(mounted, named=True)) == ([], [f"the keys in {mounted} are links"])
    assert exposure(Directory(mounted, named=False)) == ([f"the keys in {mounted} are links"], [])
    assert load_keys(mounted).kek == load_keys(directory).kek
