"""Keys can be kept in a directory, the environment, the keyring of the system or the caller's program; never lost."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keyring
import keyring.backends.fail
import keyring.errors
import pytest
from keyrings.alt.file import PlaintextKeyring

from tallystick import Memory, Signer
from tallystick.errors import KeysMissing, NotFound, Refused, Unavailable
from tallystick.events.key_places import Directory, default_directory, place_of, write_new
from tallystick.events.keys import ENTRIES, NAMES, SIGNING, KeyPlace, create_keys
from tallystick.events.signing import SeedSigner

STORE = b"s" * 16
SEED = {name: bytes([number]) * 32 for number, name in enumerate(NAMES, 1)}


def set_keys(patch: pytest.MonkeyPatch) -> None:
    """Put a set of keys into the environment."""
    for name, seed in SEED.items():
        patch.setenv(f"TALLYSTICK_KEY_{name.upper()}", seed.hex())


@pytest.fixture
def system_keyring(home: Path) -> Iterator[PlaintextKeyring]:
    """A keyring in a file of the test's own home."""
    before = keyring.get_keyring()
    backend = PlaintextKeyring()
    keyring.set_keyring(backend)
    yield backend
    keyring.set_keyring(before)


class Module:
    """Keys in a piece of hardware: what signs never comes out of it."""

    def __init__(self) -> None:
        self.root: Signer = SeedSigner(SEED["root"])
        self.writer: Signer = SeedSigner(SEED["writer"])
        self.log: Signer = SeedSigner(SEED["log"])
        self.kek, self.views, self.index = SEED["kek"], SEED["views"], SEED["index"]


class Lone:
    """The public half of a key, and something in the place of its signatures."""

    def __init__(self, public: bytes, signature: bytes) -> None:
        self.public = public
        self.signature = signature

    def sign(self, message: bytes) -> bytes:
        """Return what it was made with."""
        return self.signature


def there_and_back(path: Path, keys: Any) -> Memory:
    """Make a store with these keys, close it, and open it again."""
    with Memory.open(path, keys=keys, model="none") as memory:
        memory.store("The office is in Lisbon")
    memory = Memory.open(path, keys=keys, model="none", create=False)
    assert [hit.text for hit in memory.recall("where is the office?")] == ["The office is in Lisbon"]
    memory.verify(views=True)
    return memory


def test_the_environment_can_hold_the_keys(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One variable for each; nothing of them is written anywhere, and the mark is in the user's state directory."""
    set_keys(monkeypatch)
    with there_and_back(tmp_path / "store", "env") as memory:
        status = memory.status()
    assert status.keys == "env"
    assert Path(status.mark).is_relative_to(home)
    assert any("child process" in note for note in status.notes)
    files = [path for path in (*home.rglob("*"), *tmp_path.rglob("*")) if path.is_file()]
    assert not [path for path in files if path.suffix in (".key", ".pub")]
    assert not [path for path in files for seed in SEED.values() if seed.hex().encode() in path.read_bytes()]


def test_the_setting_takes_the_same_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TALLYSTICK_KEYS=env is keys="env"."""
    set_keys(monkeypatch)
    monkeypatch.setenv("TALLYSTICK_KEYS", "env")
    with there_and_back(tmp_path / "store", None) as memory:
        assert memory.status().keys == "env"


def test_a_directory_can_be_called_as_a_word_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written as a path it is a directory."""
    monkeypatch.chdir(tmp_path)
    with Memory.open("store", keys="./env", model="none") as memory:
        assert memory.status().keys == str(tmp_path / "env")
    assert (tmp_path / "env" / "root.key").is_file()


@pytest.mark.parametrize("name", NAMES)
def test_a_variable_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """No store is made without all keys, and none is opened; what is there is not changed."""
    set_keys(monkeypatch)
    variable = f"TALLYSTICK_KEY_{name.upper()}"
    monkeypatch.delenv(variable)
    with pytest.raises(KeysMissing, match=f"{name}.key of this store is missing: {variable} is not there"):
        Memory.open(tmp_path / "store", keys="env", model="none")
    with pytest.raises(NotFound):
        Memory.open(tmp_path / "store", keys="env", model="none", create=False)
    monkeypatch.setenv(variable, "not a key")
    with pytest.raises(KeysMissing, match=f"{variable} can't be read as a key") as error:
        Memory.open(tmp_path / "store", keys="env", model="none")
    assert "not a key" not in str(error.value).replace("read as a key", "")


def test_a_variable_of_another_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As any name with the prefix that means nothing is."""
    monkeypatch.setenv("TALLYSTICK_KEY_WRITTER", "00" * 32)
    with pytest.raises(Refused, match="TALLYSTICK_KEY_WRITTER is not a setting"):
        Memory.open(tmp_path / "store", keys="env", model="none")


@pytest.mark.parametrize("name", SIGNING)
def test_of_a_key_that_signs_the_public_half_is_enough_to_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The root key may stay in a safe; without the keys that sign events and checkpoints a store is only read."""
    set_keys(monkeypatch)
    there_and_back(tmp_path / "store", "env").close()
    monkeypatch.delenv(f"TALLYSTICK_KEY_{name.upper()}")
    monkeypatch.setenv(f"TALLYSTICK_KEY_{name.upper()}_PUB", SeedSigner(SEED[name]).public.hex())
    with Memory.open(tmp_path / "store", keys="env", model="none", create=False) as memory:
        found = memory.recall("office")
        assert [hit.text for hit in found] == ["The office is in Lisbon"]
        if name == "root":
            assert (found.receipt is not None, memory.store("The office moved").status) == (True, "stored")
            return
        assert (found.receipt, found.degraded[-1].startswith("not on record")) == (None, True)
        with pytest.raises(Refused, match="don't sign"):
            memory.store("The office moved")
        with pytest.raises(Refused, match="no receipt"):
            memory.why(found.receipt)
        assert any("don't sign" in remark for remark in memory.status().remarks)


def test_the_keyring_of_the_system_can_hold_the_keys(
    tmp_path: Path, home: Path, system_keyring: PlaintextKeyring
) -> None:
    """They are made in it, and found in it; no file of ours holds one."""
    with there_and_back(tmp_path / "store", "keyring") as memory:
        status = memory.status()
    assert (status.keys, Path(status.mark).is_relative_to(home)) == ("keyring", True)
    assert list(home.rglob("*.key")) == []
    listed = Memory.list_keys(tmp_path / "store", keys="keyring")
    assert {row.state for row in listed.keys} == {"here"}
    service = f"tallystick {listed.store}"
    assert len(str(system_keyring.get_password(service, "kek.key"))) == 64
    system_keyring.delete_password(service, "kek.key")
    with pytest.raises(
        KeysMissing, match=r"kek\.key of this store is missing: kek\.key of the service .* is not there"
    ):
        Memory.open(tmp_path / "store", keys="keyring", model="none")
    assert system_keyring.get_password(service, "kek.key") is None


def test_two_stores_in_one_keyring_have_their_own_keys(tmp_path: Path, system_keyring: PlaintextKeyring) -> None:
    """Each under the store's id."""
    rows = []
    for name in ("a", "b"):
        there_and_back(tmp_path / name, "keyring").close()
        rows.append({row.id for row in Memory.list_keys(tmp_path / name, keys="keyring").keys})
    assert rows[0].isdisjoint(rows[1])


def test_a_backup_comes_back_to_the_keyring(tmp_path: Path, system_keyring: PlaintextKeyring) -> None:
    """What was lost from it is put into it again."""
    with there_and_back(tmp_path / "store", "keyring") as memory:
        memory.back_up_keys(tmp_path / "backup", "correct horse battery")
    service = f"tallystick {Memory.list_keys(tmp_path / 'store', keys='keyring').store}"
    system_keyring.delete_password(service, "kek.key")
    restored = Memory.restore_keys(tmp_path / "store", tmp_path / "backup", "correct horse battery", keys="keyring")
    assert (restored.entries, restored.sign) == (("kek.key",), True)
    with Memory.open(tmp_path / "store", keys="keyring", model="none") as memory:
        assert memory.store("and goes on").status == "stored"


def test_a_system_without_a_keyring_is_named(tmp_path: Path, system_keyring: PlaintextKeyring) -> None:
    """Nothing is made, and it is said what to do."""
    keyring.set_keyring(keyring.backends.fail.Keyring())  # type: ignore[no-untyped-call]
    with pytest.raises(KeysMissing, match="The keyring can't be read"):
        Memory.open(tmp_path / "store", keys="keyring", model="none")
    assert not (tmp_path / "store" / "log.db").exists()


def test_the_keyring_library_is_loaded_only_where_it_is_used(tmp_path: Path) -> None:
    """It is an extra; where it is missing and needed, the way to it is named."""
    program = (
        "import sys; from tallystick import Memory; Memory.open('a', keys='k', model='none').close();"
        "assert 'keyring' not in sys.modules; sys.modules['keyring'] = None;"
        "Memory.open('b', keys='keyring', model='none')"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "pip install 'tallystick[keyring]'" in done.stderr.splitlines()[-1]


def test_a_program_can_hold_the_keys(tmp_path: Path, home: Path) -> None:
    """It signs for us, and gives the secrets that open; nothing of them is written."""
    with there_and_back(tmp_path / "store", Module()) as memory:
        assert memory.status().keys == "held by the program"
        assert Path(memory.status().mark).is_relative_to(home)
        memory.back_up_keys(tmp_path / "backup", "correct horse battery")
    assert list(home.rglob("*.key")) == []
    assert {row.state for row in Memory.list_keys(tmp_path / "store", keys=Module()).keys} == {"held"}
    restored = Memory.restore_keys(
        tmp_path / "store", tmp_path / "backup", "correct horse battery", keys=tmp_path / "keys"
    )
    assert "root.pub" in restored.entries  # the root key stays in the hardware
    with Memory.open(tmp_path / "store", keys=tmp_path / "keys", model="none") as memory:
        assert len(memory.recall("office")) == 1


def test_the_root_key_signs_only_when_a_store_is_made(tmp_path: Path) -> None:
    """Afterwards it may be out of reach."""
    there_and_back(tmp_path / "store", Module()).close()
    module = Module()
    module.root = Lone(module.root.public, b"")
    there_and_back(tmp_path / "store", module).close()
    with pytest.raises(Unavailable, match=r"What root\.sign returned is no Ed25519 signature"):
        Memory.open(tmp_path / "other", keys=module, model="none")
    with pytest.raises(NotFound):
        Memory.open(tmp_path / "other", keys=Module(), model="none", create=False)


def test_a_wrong_signature_of_a_program_is_not_appended(tmp_path: Path) -> None:
    """It would damage the log for ever."""
    module = Module()
    memory = there_and_back(tmp_path / "store", module)
    size = memory.status().logs["memory"]
    memory.close()
    module.writer = Lone(module.writer.public, bytes(64))
    memory = Memory.open(tmp_path / "store", keys=module, model="none")
    with pytest.raises(Unavailable, match=r"writer\.sign"):
        memory.store("The office moved")
    memory.close()
    with Memory.open(tmp_path / "store", keys=Module(), model="none") as memory:
        assert memory.status().logs["memory"] == size
        memory.verify()


@pytest.mark.parametrize("lacking", NAMES)
def test_an_object_that_lacks_a_key_is_refused(tmp_path: Path, lacking: str) -> None:
    """A signer alone is not enough: the message says what else it must have."""
    module = Module()
    delattr(module, lacking)
    with pytest.raises(Refused, match=f"without {lacking}. Give a directory"):
        Memory.open(tmp_path / "store", keys=module, model="none")
    with pytest.raises(Refused, match="was given a SeedSigner without root, writer, log, kek, views, index"):
        Memory.open(tmp_path / "store", keys=SeedSigner(SEED["writer"]), model="none")  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [b"short", "0" * 32, None])
def test_a_secret_of_another_shape_is_refused(tmp_path: Path, wrong: Any) -> None:
    """32 bytes, and not their digits."""
    module = Module()
    module.kek = wrong
    with pytest.raises(KeysMissing, match="kek of the object given as keys= is not 32 bytes"):
        Memory.open(tmp_path / "store", keys=module, model="none")


@pytest.mark.parametrize("source", ["env", Module()], ids=["env", "program"])
def test_what_is_only_found_is_not_written(source: Any) -> None:
    """Keys are never put where somebody else keeps them."""
    place = place_of(source, STORE)
    assert place.given
    with pytest.raises(Refused, match="can't be written"):
        place.write({"kek.key": "00" * 32})


def test_a_directory_that_can_not_be_written_keeps_nothing(tmp_path: Path) -> None:
    """All keys or none: those that were written are taken back."""
    place = Directory(tmp_path / "keys", named=True)
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "index.key").mkdir()
    with pytest.raises(Refused, match="can't be written"):
        place.write({entry: "00" * 32 for entry in ENTRIES})
    assert place.holds() == ["index.key"]
    (tmp_path / "file").touch()
    with pytest.raises(Refused, match="Name another directory"):
        create_keys(Directory(tmp_path / "file", named=True))


def test_every_place_says_where_an_entry_is() -> None:
    """Each in its own words, none alike."""
    places: list[KeyPlace] = [place_of(source, STORE) for source in (None, "env", "keyring", "/keys")]
    for place in places:
        assert len({place.where(entry) for entry in ENTRIES}) == len(ENTRIES)
    assert place_of(None, STORE).where("kek.key") == str(default_directory(STORE) / "kek.key")
    assert place_of("env", STORE).where("writer.pub") == "TALLYSTICK_KEY_WRITER_PUB"


def test_a_keyring_takes_all_keys_or_none(system_keyring: PlaintextKeyring, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is locked half way, what it took before is taken back: half a set opens nothing and hides the loss."""
    take = system_keyring.set_password

    def take_until_it_locks(service: str, username: str, password: str) -> None:
        if username == "kek.key":
            raise keyring.errors.KeyringLocked("locked")
        take(service, username, password)

    monkeypatch.setattr(system_keyring, "set_password", take_until_it_locks)
    place = place_of("keyring", STORE)
    with pytest.raises(Refused, match=r"takes no keys \(locked\). Unlock it"):
        place.write({f"{name}.key": "00" * 32 for name in ("root", "writer", "kek", "index")})
    assert place.holds() == []


def test_a_keyring_without_its_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a look nor a write passes for an empty keyring."""
    monkeypatch.setitem(sys.modules, "keyring", None)
    place = place_of("keyring", STORE)
    for act in (place.holds, lambda: place.write({"kek.key": "00" * 32})):
        with pytest.raises(KeysMissing, match=r"pip install 'tallystick\[keyring\]'"):
            act()


def test_a_file_that_has_no_room_is_not_left_behind(tmp_path: Path) -> None:
    """Half a key would be taken for a key that is damaged: all of it is on the disk, or nothing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            write_new(tmp_path / "one", b"k" * 64)
        with pytest.raises(Refused, match="Name another directory"):
            Directory(tmp_path / "keys", named=True).write({"kek.key": "00" * 32})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_what_the_environment_holds_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the entries whose variable is set, public halves included; an object of the program tells none."""
    monkeypatch.setenv("TALLYSTICK_KEY_KEK", "00" * 32)
    monkeypatch.setenv("TALLYSTICK_KEY_WRITER_PUB", "00" * 32)
    assert set(place_of("env", STORE).holds()) == {"kek.key", "writer.pub"}
    held = place_of(Module(), STORE)
    assert (held.holds(), held.read("kek.key")) == ([], None)


def test_no_store_is_made_with_half_a_root_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The root key proves the store's first events: its public half reads and can't begin one."""
    set_keys(monkeypatch)
    monkeypatch.delenv("TALLYSTICK_KEY_ROOT")
    monkeypatch.setenv("TALLYSTICK_KEY_ROOT_PUB", SeedSigner(SEED["root"]).public.hex())
    with pytest.raises(KeysMissing, match=r"Of root\.key only the public half is here, which can't sign"):
        Memory.open(tmp_path / "store", keys="env", model="none")
    with pytest.raises(NotFound):
        Memory.open(tmp_path / "store", keys="env", model="none", create=False)
