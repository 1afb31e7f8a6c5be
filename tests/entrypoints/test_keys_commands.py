"""`tallystick keys`: list, backup, restore; the passphrase is never an argument."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tallystick.events.keys import NAMES

from .conftest import Tally

PASSPHRASE = "correct horse battery"
SECONDS = 60


@pytest.fixture
def passphrase(tmp_path: Path) -> Path:
    """A file with a passphrase, as an editor leaves it."""
    file = tmp_path / "passphrase"
    file.write_text(f"{PASSPHRASE}\n")
    return file


def key_directory(store: Tally) -> Path:
    """Where the keys are."""
    return Path(store("keys", "list", "--json").document["keys"][0]["where"]).parent


class Terminal:
    """`tallystick ARGUMENTS` on a terminal, answered question by question."""

    def __init__(self, *arguments: str) -> None:
        self._ours, theirs = pty.openpty()
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", "from tallystick.entrypoints.cli import main; main()", *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self.seen = ""

    def answer(self, question: str, reply: str) -> Terminal:
        """Wait for a question, and type the reply."""
        self._read_until(question)
        os.write(self._ours, f"{reply}\n".encode())
        return self

    def end(self) -> int:
        """Wait for the end; returns the exit code."""
        self._read_until(None)
        code = self._process.wait(SECONDS)
        os.close(self._ours)
        return code

    def _read_until(self, question: str | None) -> None:
        start, late = len(self.seen), time.monotonic() + SECONDS
        while question is None or question not in self.seen[start:]:
            if not select.select([self._ours], [], [], late - time.monotonic())[0]:
                pytest.fail(f"waited for {question!r} and saw {self.seen!r}")
            try:
                read = os.read(self._ours, 4096)
            except OSError:  # what Linux says of a terminal that nobody holds any more
                read = b""
            if not read:
                assert question is None, self.seen
                return
            self.seen += read.decode()


def test_a_backup_is_made_lost_keys_come_back_and_everything_is_read(
    store: Tally, tmp_path: Path, passphrase: Path
) -> None:
    """As a person does it, by files."""
    identifier = store("store", "The office is in Lisbon", "--json").document["id"]
    made = store("keys", "backup", str(tmp_path / "backup"), "--passphrase-file", str(passphrase), "--json").document
    assert (made["file"], made["declined"]) == (str(tmp_path / "backup"), False)
    assert stat.S_IMODE((tmp_path / "backup").stat().st_mode) == 0o600
    assert store("status").out.startswith("clean\n")
    shutil.rmtree(key_directory(store))
    lost = store("recall", "office")
    assert (lost.code, "tallystick keys restore FILE" in lost.err) == (1, True)
    done = store("keys", "restore", str(tmp_path / "backup"), "--passphrase-file", str(passphrase))
    assert (done.code, "The store can be read and verified. Nothing can be stored" in done.out) == (0, True)
    assert store("get", identifier).code == store("verify", "--views").code == 0
    found = store("recall", "office", "--json").document
    assert (found["receipt"], found["hits"][0]["memory"]["id"]) == (None, identifier)
    assert "receipt   none" in store("recall", "office").out
    refused = store("store", "The office moved")
    assert (refused.code, "don't sign" in refused.err) == (1, True)


def test_the_list_names_every_key_and_shows_no_secret(store: Tally) -> None:
    """As a table and as a document."""
    shown, document = store("keys", "list"), store("keys", "list", "--json").document
    assert [key["name"] for key in document["keys"]] == list(NAMES)
    assert set(document["keys"][0]) == {"name", "use", "state", "id", "public", "where"}
    assert document["keys"][0]["public"] in shown.out
    for name in NAMES:
        assert (key_directory(store) / f"{name}.key").read_text().strip() not in shown.out + json.dumps(document)


def test_the_passphrase_can_be_in_the_environment(
    store: Tally, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TALLYSTICK_PASSPHRASE; a file that is named goes before it."""
    monkeypatch.setenv("TALLYSTICK_PASSPHRASE", PASSPHRASE)
    assert store("keys", "backup", str(tmp_path / "backup")).code == 0
    (key_directory(store) / "kek.key").unlink()
    (tmp_path / "wrong").write_text("another passphrase")
    wrong = store("keys", "restore", str(tmp_path / "backup"), "--passphrase-file", str(tmp_path / "wrong"))
    assert (wrong.code, "The passphrase is not the one" in wrong.err) == (1, True)
    restored = store("keys", "restore", str(tmp_path / "backup"), "--json").document
    assert (restored["written"], restored["sign"]) == (["kek.key"], True)


def test_a_backup_can_be_declined_on_the_record(store: Tally) -> None:
    """With a reason; status is clean after it."""
    done = store("keys", "backup", "--decline", "--reason", "a throwaway", "--json").document
    assert done == {"declined": True, "position": 1, "file": None, "id": None, "digest": None}
    assert store("status").out.startswith("clean\n")
    assert "declined" in store("keys", "backup", "--decline").out
    assert "keys.backup_declined" in store("log").out


@pytest.mark.parametrize("arguments", [(), ("file", "--decline"), ("file", "--reason", "x")], ids=str)
def test_a_backup_that_says_nothing_or_two_things_is_wrong_usage(store: Tally, arguments: tuple[str, ...]) -> None:
    """A file, or --decline with a reason."""
    assert store("keys", "backup", *arguments).code == 2


def test_without_a_terminal_nobody_is_asked(store: Tally, tmp_path: Path) -> None:
    """What a pipe carries is no passphrase; the ways to give one are named."""
    for verb in ("backup", "restore"):
        done = store("keys", verb, str(tmp_path / "backup"), text=f"{PASSPHRASE}\n{PASSPHRASE}\n")
        assert done.code == 1
        assert "Give --passphrase-file or TALLYSTICK_PASSPHRASE." in done.err
    assert not (tmp_path / "backup").exists()


def test_a_passphrase_file_that_can_not_be_read_is_named(store: Tally, tmp_path: Path) -> None:
    """Absent, or not text."""
    (tmp_path / "bytes").write_bytes(b"\xff" * 20)
    for name in ("nowhere", "bytes"):
        done = store("keys", "backup", str(tmp_path / "b"), "--passphrase-file", str(tmp_path / name))
        assert (done.code, "Name a text file." in done.err) == (1, True)


def test_on_a_terminal_the_passphrase_is_asked_for_twice_and_not_shown(store: Tally, tmp_path: Path) -> None:
    """Two that differ make no backup; one that is given back opens it."""
    file = str(tmp_path / "backup")
    differing = Terminal("keys", "backup", file)
    differing.answer("Passphrase: ", PASSPHRASE).answer("The same again: ", "something else")
    assert differing.end() == 1
    assert "differ: nothing was written" in differing.seen
    assert not Path(file).exists()
    equal = Terminal("keys", "backup", file)
    equal.answer("Passphrase: ", PASSPHRASE).answer("The same again: ", PASSPHRASE)
    assert equal.end() == 0
    (key_directory(store) / "kek.key").unlink()
    back = Terminal("keys", "restore", file).answer("Passphrase: ", PASSPHRASE)
    assert back.end() == 0
    assert PASSPHRASE not in differing.seen + equal.seen + back.seen


def test_init_offers_a_backup_on_a_terminal(project: Path, tally: Tally, tmp_path: Path) -> None:
    """Yes makes one at once; no leaves a store that is not clean."""
    yes = Terminal("init").answer("Back up the keys now", "y").answer("To which file", str(tmp_path / "backup"))
    yes.answer("Passphrase: ", PASSPHRASE).answer("The same again: ", PASSPHRASE)
    assert yes.end() == 0
    assert tally("status").out.startswith("clean\n")
    (project / ".tallystick.toml").unlink()
    no = Terminal("init", "second").answer("Back up the keys now", "n")
    assert no.end() == 0
    assert tally("status").out.startswith("not clean\n")


def test_init_makes_a_store_whose_keys_are_elsewhere(
    tally: Tally, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The word goes into the project file, and the commands after it find the keys by that."""
    for number, name in enumerate(NAMES):
        monkeypatch.setenv(f"TALLYSTICK_KEY_{name.upper()}", f"{number:02x}" * 32)
    assert tally("init", "--keys", "env").code == 0
    assert 'keys = "env"' in (project / ".tallystick.toml").read_text()
    assert tally("store", "The office is in Lisbon").code == 0
    assert tally("status", "--json").document["keys"] == "env"
