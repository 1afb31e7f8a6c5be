"""A backup of keys opens with its passphrase whole, and in no other way."""

from __future__ import annotations

import os
import resource
import stat
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tallystick.errors import KeysMissing, Refused, Unavailable
from tallystick.events.canonical import decode_body, encode_body
from tallystick.events.key_backup import (
    DIGEST_BYTES,
    ENOUGH,
    LEAST_CHARACTERS,
    LENGTH_BYTES,
    MAGIC,
    MOST,
    Backup,
    Effort,
    read_backup,
    write_backup,
)

PASSPHRASE = "correct horse battery"
ENTRIES = {f"{name}.key": name.encode().ljust(32, b"!") for name in ("root", "kek", "views", "index")}
QUICK = Effort(1, 8192)
"""The least the library takes: what a guess costs is not what these tests are about."""


def backup(passphrase: str = PASSPHRASE, effort: Effort = QUICK) -> Backup:
    """A sealed backup."""
    return Backup.seal(ENTRIES, passphrase, store=b"s" * 16, made_at=1, effort=effort)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A backup on the disk."""
    write_backup(tmp_path / "keys.backup", backup())
    return tmp_path / "keys.backup"


def rewritten(path: Path, head: dict[str, object]) -> None:
    """Give the file another head, with a length and a checksum that fit."""
    content = path.read_bytes()
    start = len(MAGIC) + LENGTH_BYTES
    end = start + int.from_bytes(content[len(MAGIC) : start], "big")
    known = decode_body(content[start:end])
    new = encode_body({**known, **head})  # type: ignore[dict-item]
    framed = MAGIC + len(new).to_bytes(LENGTH_BYTES, "big") + new + content[end:-DIGEST_BYTES]
    path.write_bytes(framed + sha256(framed).digest())


def test_what_was_sealed_comes_back(file: Path) -> None:
    """Every key, under its name, and in clear which store they are of and when."""
    found = read_backup(file)
    assert (found.store, found.made_at, found.effort) == (b"s" * 16, 1, QUICK)
    assert found.open(PASSPHRASE) == ENTRIES


def test_a_backup_is_made_at_the_cost_that_is_promised(tmp_path: Path) -> None:
    """At the library's moderate limits, which stand in the file; nothing secret is in clear."""
    write_backup(tmp_path / "a", backup(effort=ENOUGH))
    assert read_backup(tmp_path / "a").effort == ENOUGH == Effort(3, 256 << 20)
    assert read_backup(tmp_path / "a").open(PASSPHRASE) == ENTRIES
    content = (tmp_path / "a").read_bytes()
    assert not [key for key in ENTRIES.values() if key in content or key.hex().encode() in content]
    assert len(content) < 1000


def test_two_backups_of_the_same_keys_have_nothing_in_common(tmp_path: Path) -> None:
    """Another id, another salt, another ciphertext."""
    one, other = backup(), backup()
    assert one.id != other.id
    assert one.salt != other.salt
    assert one.sealed != other.sealed


def test_the_file_is_the_owners_and_takes_no_ones_place(tmp_path: Path) -> None:
    """0600 whatever the umask says; a file or a link that is there is left as it is."""
    old = os.umask(0)
    try:
        digest = write_backup(tmp_path / "a", backup())
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600
    before = (tmp_path / "a").read_bytes()
    assert digest == sha256(before).digest()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for there in ("a", "link"):
        with pytest.raises(Refused, match="is there already"):
            write_backup(tmp_path / there, backup())
    assert (tmp_path / "a").read_bytes() == before
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("where", ["nowhere/a", "file/a", "."])
def test_a_place_that_can_not_be_written_is_named(tmp_path: Path, where: str) -> None:
    """With what to do about it."""
    (tmp_path / "file").touch()
    with pytest.raises(Refused, match="Name another"):
        write_backup(tmp_path / where, backup())


@pytest.mark.parametrize("typed", ["correct horse batterx", PASSPHRASE + " ", PASSPHRASE.upper(), "", "x" * 10_000])
def test_another_passphrase_is_refused(file: Path, typed: str) -> None:
    """As what it is: the file is whole."""
    with pytest.raises(Refused, match="The passphrase is not the one"):
        read_backup(file).open(typed)


def test_a_passphrase_is_the_same_on_every_keyboard() -> None:
    """Composed or decomposed, a letter is a letter."""
    assert backup("caf\N{LATIN SMALL LETTER E WITH ACUTE} au lait!").open("cafe\N{COMBINING ACUTE ACCENT} au lait!")


@pytest.mark.parametrize("length", [0, LEAST_CHARACTERS - 1])
def test_a_short_passphrase_is_refused(length: int) -> None:
    """Whoever has the file can guess as long as they like."""
    with pytest.raises(Refused, match="at least 12: four words will do"):
        backup("x" * length)


@given(data=st.data())
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_altered_byte_is_refused(file: Path, data: st.DataObject) -> None:
    """Wherever it is and whatever it became: nobody is asked for a passphrase by a damaged file."""
    content = bytearray(file.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    altered = file.with_name("altered")
    altered.write_bytes(content)
    with pytest.raises(Refused, match=r"was cut or altered|is not a backup of keys|by another release"):
        read_backup(altered)


def test_every_cut_and_every_addition_is_refused(file: Path) -> None:
    """A file that was not copied whole is named as that."""
    content, cut = file.read_bytes(), file.with_name("cut")
    for length in range(len(content)):
        cut.write_bytes(content[:length])
        with pytest.raises(Refused, match=r"was cut or altered|is not a backup of keys"):
            read_backup(cut)
    for more in (b"\n", b"\0" * 100_000):
        cut.write_bytes(content + more)
        with pytest.raises(Refused, match="was cut or altered"):
            read_backup(cut)


@pytest.mark.parametrize(
    "head",
    [
        {"store": b"t" * 16},
        {"backup": b"b" * 16},
        {"made_at": 2},
        {"passes": 2},
        {"memory": 16384},
        {"salt": b"x" * 16},
    ],
    ids=lambda head: next(iter(head)),
)
def test_what_is_in_clear_is_bound_to_what_is_sealed(file: Path, head: dict[str, object]) -> None:
    """Whoever rewrites the head and its checksum has another file, which the passphrase does not open."""
    rewritten(file, head)
    with pytest.raises(Refused, match="The passphrase is not the one"):
        read_backup(file).open(PASSPHRASE)


@pytest.mark.parametrize(
    "head",
    [
        {"memory": MOST.memory + 1},
        {"memory": 2**40},
        {"memory": 0},
        {"passes": MOST.passes + 1},
        {"passes": 0},
        {"passes": "1"},
        {"salt": b"short"},
        {"more": 1},
    ],
    ids=str,
)
def test_a_file_can_not_ask_for_anything(file: Path, head: dict[str, object]) -> None:
    """Not for all memory, not for ever, not in another shape."""
    rewritten(file, head)
    with pytest.raises(Refused, match="was altered: its head is none"):
        read_backup(file)


def test_a_later_format_is_named(file: Path) -> None:
    """A whole file of a version that is not known here was written by another release."""
    framed = file.read_bytes()[:-DIGEST_BYTES].replace(MAGIC, MAGIC.replace(b"v1", b"v2"))
    file.write_bytes(framed + sha256(framed).digest())
    with pytest.raises(Refused, match="written by another release"):
        read_backup(file)


def test_what_is_no_backup_is_named(tmp_path: Path) -> None:
    """Nothing there, a directory, another file."""
    (tmp_path / "text").write_text("hello")
    with pytest.raises(Refused, match="is not a backup of keys"):
        read_backup(tmp_path / "text")
    for none in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(KeysMissing, match="can't be read"):
            read_backup(none)


def test_a_backup_of_other_keys_is_not_taken(tmp_path: Path) -> None:
    """What opens and holds a key of another name or length is of another release: nothing of it is put anywhere."""
    for entries in ({**ENTRIES, "quantum.key": b"q" * 32}, {**ENTRIES, "kek.key": b"short"}):
        sealed = Backup.seal(entries, PASSPHRASE, store=b"s" * 16, made_at=1, effort=QUICK)
        with pytest.raises(Refused, match="no key of this release.*Upgrade and try again"):
            sealed.open(PASSPHRASE)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="asks Linux how much memory is in use")
def test_a_passphrase_that_can_not_be_checked_for_want_of_memory_is_not_wrong(file: Path) -> None:
    """Who has not enough memory is told how much it takes, and that it is no matter of the passphrase."""
    dear = read_backup(file)._replace(effort=Effort(1, 1 << 30))
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (256 << 20), hard))
    try:
        with pytest.raises(Unavailable, match="takes 1024 MiB of memory, which can't be had now. Free it"):
            dear.open(PASSPHRASE)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    assert read_backup(file).open(PASSPHRASE) == ENTRIES
