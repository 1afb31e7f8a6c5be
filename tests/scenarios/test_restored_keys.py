"""The restore drill: a machine is lost, its store and a backup of its keys are not, and everything is read again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tallystick.events.keys import NAMES

SECONDS = 120
PASSPHRASE = "correct horse battery"
TEXTS = ("The office is in Lisbon", "Deploys need an approval since May")


class Machine:
    """A computer: a home of its own, a project in it, and the command line run there in processes of its own."""

    def __init__(self, folder: Path) -> None:
        self.home, self.project = folder / "home", folder / "project"
        for directory in (self.home, self.project):
            directory.mkdir(parents=True)
        self.environment = {**os.environ, "HOME": str(self.home), "TALLYSTICK_MODEL": "none"}

    @property
    def store(self) -> Path:
        """The project's store."""
        return self.project / ".tallystick"

    def read(self, ids: list[str]) -> Any:
        """All that can be read of these memories."""
        return json.loads(self._python(READ, [str(self.store), *ids], 0, ""))

    def run(self, *arguments: str, code: int = 0, passphrase: str = "") -> str:
        """Run `tallystick ARGUMENTS`; returns what it said, on both streams where it had to fail."""
        return self._python("from tallystick.entrypoints.cli import main; main()", list(arguments), code, passphrase)

    def _python(self, program: str, arguments: list[str], code: int, passphrase: str) -> str:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", program, *arguments],
            cwd=self.project,
            env={**self.environment, **({"TALLYSTICK_PASSPHRASE": passphrase} if passphrase else {})},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout if code == 0 else done.stdout + done.stderr

    def ask(self, *arguments: str, passphrase: str = "") -> Any:
        """The JSON document of a command that succeeds."""
        return json.loads(self.run(*arguments, "--json", passphrase=passphrase))


READ = """
import json, sys
from tallystick import Memory
with Memory.open(sys.argv[1], model="none", create=False) as memory:
    ids = sys.argv[2:]
    texts = [[memory.get(each).text, memory.get(each).status] for each in ids]
    histories = [[logged.leaf.hex() for logged in memory.history(each)] for each in ids]
    hits = [[hit.id, hit.score] for hit in memory.recall("where is the office?")]
    print(json.dumps([texts, histories, hits, len(list(memory.events()))]))
"""


def test_the_keys_of_a_lost_machine_are_restored_on_another(tmp_path: Path) -> None:
    """Backup, loss, restore: the same answers, a clean verification, the whole history; and nothing can be signed."""
    first, second = Machine(tmp_path / "first"), Machine(tmp_path / "second")
    root_key = first.ask("init")["root_key"]
    ids = [first.ask("store", text)["id"] for text in TEXTS]
    first.run("forget", ids[1])
    assert "never backed up" in first.run("status")
    first.run("keys", "backup", str(tmp_path / "usb.backup"), passphrase=PASSPHRASE)
    assert first.run("status").startswith("clean\n")
    before = first.read(ids)
    shutil.copytree(first.store, tmp_path / "copy")
    shutil.rmtree(tmp_path / "first")

    shutil.copytree(tmp_path / "copy", second.store)
    message = second.run("recall", "office", code=1)
    for part in ("root.key", str(second.home), "TALLYSTICK_KEYS=DIRECTORY", "tallystick keys restore FILE"):
        assert part in message
    second.run("keys", "restore", str(tmp_path / "usb.backup"), code=1, passphrase="a wrong passphrase")
    assert list(second.home.rglob("*.key")) == []
    restored = second.ask("keys", "restore", str(tmp_path / "usb.backup"), passphrase=PASSPHRASE)
    assert (restored["sign"], "writer.key" in restored["written"]) == (False, False)

    assert second.read(ids) == before
    report = second.ask("verify", "--views")
    assert {log["log"]: log["signatures"] for log in report["logs"]} == {"memory": 5, "access": 9}
    second.run("verify", "--root-key", root_key)
    assert second.ask("status")["root"] == root_key
    assert {key["state"] for key in second.ask("keys", "list")["keys"]} == {"here", "public half"}
    before_writing = (second.store / "log.db").read_bytes()
    assert "don't sign" in second.run("store", "from another machine", code=1)
    assert second.ask("recall", "office")["receipt"] is None
    assert (second.store / "log.db").read_bytes() == before_writing


def test_the_signing_keys_that_were_kept_make_it_whole(tmp_path: Path) -> None:
    """Who still has writer.key and log.key of the old machine puts them beside the restored ones and goes on."""
    machine = Machine(tmp_path / "machine")
    keys = Path(machine.ask("init")["keys"])
    machine.run("keys", "backup", str(tmp_path / "usb.backup"), passphrase=PASSPHRASE)
    kept = {name: (keys / f"{name}.key").read_bytes() for name in NAMES if name in ("writer", "log")}
    shutil.rmtree(keys)
    machine.run("keys", "restore", str(tmp_path / "usb.backup"), passphrase=PASSPHRASE)
    machine.run("store", TEXTS[0], code=1)
    for name, key in kept.items():
        (keys / f"{name}.key").write_bytes(key)
    machine.run("store", TEXTS[0])
    machine.run("verify", "--views")
