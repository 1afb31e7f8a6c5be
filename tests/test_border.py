"""The border: whatever the verbs are given, out comes an answer or an error of ours, and nothing is half done."""

import errno
import inspect
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tallystick import Memory
from tallystick.border import guard, in_our_words
from tallystick.commands.revise import FIELDS
from tallystick.commands.store import Store
from tallystick.config import load_settings
from tallystick.errors import NotFound, Refused, TallystickError, Unavailable
from tallystick.queries.filters import Filters
from tallystick.queries.trail import TrailFilters

from .test_errors import says_what_to_do

PASSPHRASE = "four words will do"


def deep(levels: int) -> dict[str, Any]:
    """An object inside an object, and so on."""
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


ODD: tuple[Any, ...] = (
    None, 5, -1, 10**30, -(10**400), 10**5000, True, 1.5, math.nan, math.inf, "x", "", "a\0b", "\ud800", "x" * 300,
    "a/" * 3000, b"x", [], [5], [None], ["\ud800", "\0"], [[]], {}, {"a": object()}, {5: 5}, object(), deep(5000), {1},
    ("x", 10**30),
)  # fmt: skip
"""What nobody should give to a verb, and what one may but hardly would."""

OWN_NAMES = {
    **dict.fromkeys(("store", "store_many", "store_conversation"), tuple(Store.__dataclass_fields__)),
    **dict.fromkeys(("recall", "search"), tuple(Filters.__dataclass_fields__)),
    **dict.fromkeys(("log", "follow", "receipts"), tuple(TrailFilters.__dataclass_fields__)),
    "revise": FIELDS,
}
"""What verbs take by name beyond their signature."""

VERBS = [name for name, verb in vars(Memory).items() if not name.startswith("_") and name != "close"]


class Swept(NamedTuple):
    """A store to be asked, and what each verb would be given by somebody in their right mind."""

    memory: Memory
    sane: dict[str, Any]

    def sizes(self) -> list[int]:
        """How many events both logs have."""
        return [log.follow().size for log in self.memory._opened.installation.logs]


@pytest.fixture
def swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Swept]:
    """A store with two memories; relative paths lead to an empty directory."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with Memory.open(tmp_path / "store", keys=tmp_path / "keys", model="none", namespace="n") as memory:
        first, second = memory.store("alpha text").id, memory.store("beta text").id
        memory.export(tmp_path / "export.jsonl")
        yield Swept(
            memory,
            {
                "text": "some text", "rows": ["a"], "turns": ["a"], "thread": "t", "memory": first, "to": second,
                "old": "n", "new": "n2", "into": "n2", "receipt": memory.recall("alpha").receipt, "memories": [first],
                "question": "alpha", "statement": "select 1 a", "path": tmp_path / "other", "directory": tmp_path,
                "file": tmp_path / "backup", "passphrase": PASSPHRASE, "snapshot": tmp_path, "out": tmp_path / "out",
                "reason": "r", "position": 1, "model": "no-such-model",
            },
        )  # fmt: skip


def given(swept: Swept, verb: str) -> Iterator[dict[str, Any]]:
    """Everything odd that a verb can be given: each argument in turn, the others as they should be."""
    taken = [p for p in inspect.signature(getattr(swept.memory, verb)).parameters.values() if p.kind != p.VAR_KEYWORD]
    sane = {p.name: swept.sane[p.name] for p in taken if p.default is p.empty}
    if any(p.name == "keys" for p in taken):
        sane["keys"] = swept.sane["out"] / "keys"
    if verb in ("open", "temporary"):
        sane["model"] = "none"
    for name in dict.fromkeys((*(p.name for p in taken), *OWN_NAMES.get(verb, ()))):
        for value in ODD:
            yield {**sane, name: value}


@pytest.mark.parametrize("verb", VERBS)
def test_odd_arguments_are_answered_or_refused(swept: Swept, verb: str) -> None:
    """With an error of our own that says what to do, and then neither log has grown."""
    refusals = 0
    for arguments in given(swept, verb):
        before = swept.sizes()
        try:
            answer = getattr(swept.memory, verb)(**arguments)
        except TallystickError as error:
            refusals += 1
            assert swept.sizes() == before, arguments
            assert str(error)
        else:
            if isinstance(answer, Memory):
                answer.close()
    assert refusals or not inspect.signature(getattr(swept.memory, verb)).parameters


REFUSED: dict[str, tuple[Callable[[Memory], Any], str]] = {
    "a passphrase that is a number": (lambda m: m.back_up_keys("x", 5), "passphrase is 5"),  # type: ignore[arg-type]
    "days in words": (lambda m: m.rotate_snapshots(".", daily="x"), "daily is 'x'.*a whole number"),  # type: ignore[arg-type]
    "a position in words": (lambda m: m.events("x"), "after is 'x'.*a whole number"),  # type: ignore[arg-type]
    "a position below all": (lambda m: m.events(-1), "after is -1"),
    "a position beyond all": (lambda m: m.events(10**30), "after is 10"),
    "fields that are a number": (lambda m: m.revise(m.store("a").id, cleared=5), "cleared"),
    "no turns": (lambda m: m.store_conversation(None, thread="t"), "turns is None"),  # type: ignore[arg-type]
    "deep metadata": (lambda m: m.store("a", metadata=deep(5000)), "metadata"),
    "deep filters": (lambda m: m.recall("a", kinds=deep(5000)), r"^kinds is .{1,200}: give a list of texts\.$"),
    "no hits": (lambda m: m.used(m.recall("a").receipt, []), "No hit is named"),
    "no path": (lambda m: Memory.open(""), "path is empty"),
    "half a path": (lambda m: Memory.open("\ud800"), "half a character"),
    "U+0000 in a path": (lambda m: m.export("a\0b"), r"U\+0000"),
    "no keys": (lambda m: Memory.open("s", keys=""), "keys is empty"),
    "an unknown place of keys": (lambda m: Memory.open("s", keys="nonsense:x"), "`env`, `keyring` or a directory"),
    "a place of keys in capitals": (lambda m: Memory.open("s", keys="Keyring"), "`env`, `keyring` or a directory"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    """What was given is named, and what to give instead; nothing is made in the current directory."""
    monkeypatch.chdir(tmp_path)
    act, words = REFUSED[case]
    with Memory.temporary() as memory:
        memory.store("something")
        with pytest.raises(Refused, match=words) as refusal:
            act(memory)
    assert says_what_to_do(str(refusal.value))
    assert list(tmp_path.iterdir()) == []


def test_a_directory_may_be_called_like_a_scheme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is written as a path, or is one."""
    monkeypatch.chdir(tmp_path)
    names: tuple[str | Path, ...] = ("./nonsense:x", Path("nonsense:y"), "C:")
    for number, keys in enumerate(names):
        Memory.open(f"store{number}", keys=keys, model="none").close()
    assert (tmp_path / "nonsense:x" / "root.key").is_file()
    assert (tmp_path / "nonsense:y" / "root.key").is_file()


@pytest.mark.parametrize("name", ["TALLYSTICK_PATH", "TALLYSTICK_KEYS"])
def test_an_empty_setting_is_not_the_current_directory(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A variable that was meant to hold a path and holds nothing."""
    monkeypatch.setenv(name, "")
    with pytest.raises(Refused, match=f"{name} is empty"):
        load_settings()


@pytest.mark.parametrize(
    ("line", "words"),
    [('keys = "vault:x"', "no place"), ('keys = ""', "keys is empty"), ('path = ""', "path is empty")],
)
def test_a_project_file_names_places(tmp_path: Path, line: str, words: str) -> None:
    """What is none there is not taken for a directory beside it."""
    (tmp_path / ".tallystick.toml").write_text(line)
    with pytest.raises(Refused, match=words):
        load_settings(tmp_path)


def test_a_refused_export_is_not_on_record(tmp_path: Path) -> None:
    """The log says what was handed out, not what was asked for and refused."""
    (tmp_path / "there").write_text("something else")
    with Memory.temporary() as memory:
        memory.store("something")
        before = memory._opened.installation.access.follow().size
        for markdown in (False, True):
            with pytest.raises(Refused):
                memory.export(tmp_path / "there", markdown=markdown)
            with pytest.raises(Refused, match="can't be a path"):
                memory.export(tmp_path / ("x" * 300), markdown=markdown)
        assert memory._opened.installation.access.follow().size == before
        assert memory.export(tmp_path / "new") == 1
        assert memory._opened.installation.access.follow().size == before + 1


# ---- what the system says no to


def store_at(folder: Path) -> Path:
    """A closed store with its keys."""
    with Memory.open(folder / "store", keys=folder / "keys", model="none") as memory:
        memory.store("something")
    return folder / "store"


def test_export_into_nothing(tmp_path: Path) -> None:
    """A folder that is not there, a device, a name that is too long: each is said, and nothing is left behind."""
    with Memory.temporary() as memory:
        memory.store("something")
        for path in (tmp_path / "no" / "x", Path("/dev/full"), tmp_path / ("x" * 300)):
            with pytest.raises(Refused):
                memory.export(path)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_in_the_place_of_refusals(tmp_path: Path) -> None:
    """The file of refused rows can't be written where a directory lies: it is named."""
    with Memory.temporary() as memory:
        memory.store("something")
        memory.export(tmp_path / "x.jsonl")
        (tmp_path / "x.jsonl.rejected.jsonl").mkdir()
        with pytest.raises(Refused, match=r"x\.jsonl\.rejected\.jsonl is a directory"):
            memory.import_(tmp_path / "x.jsonl")


@pytest.mark.parametrize("name", ["mark", "held"])
def test_a_directory_in_the_place_of_the_mark(tmp_path: Path, name: str) -> None:
    """It is named, and the store is not opened without its mark."""
    store = store_at(tmp_path)
    (tmp_path / "keys" / name).unlink()
    (tmp_path / "keys" / name).mkdir()
    for _ in range(2):
        with pytest.raises(Refused, match=f"{name} is a directory"):
            Memory.open(store, keys=tmp_path / "keys")


@pytest.mark.parametrize("path", ["x" * 300, "x/" * 3000, "loop/store"])
def test_a_path_that_leads_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """A name that is too long, a link that leads to itself."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    for act in (Memory.open, Memory.replay, Memory.snapshots, Memory.take_over):
        with pytest.raises((Refused, NotFound)):
            act(path)


NOBODY = """
import os, sys
from tallystick import Memory
from tallystick.errors import Unavailable, KeysMissing
Memory.temporary().close()  # what is loaded late is loaded while it can be read
os.setgid(65534); os.setuid(65534)
for act in (lambda: Memory.open(sys.argv[1], keys=sys.argv[2], create=False), lambda: Memory.take_over(sys.argv[1])):
    try:
        act()
    except (Unavailable, KeysMissing) as error:
        print(error)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_the_store_of_another_user(tmp_path: Path) -> None:
    """Who may not look into it is told so, by name."""
    store = store_at(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", NOBODY, str(store), str(tmp_path / "keys")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("Give yourself the right") == 2


MEANS = {
    errno.ENOENT: NotFound, errno.ENOTDIR: NotFound, errno.EACCES: Unavailable, errno.EROFS: Unavailable,
    errno.ENOSPC: Unavailable, errno.ENAMETOOLONG: Refused, errno.EISDIR: Refused, errno.EMFILE: Unavailable,
    errno.EEXIST: Refused, errno.EIO: Unavailable,
}  # fmt: skip


@pytest.mark.parametrize("number", MEANS)
def test_what_the_system_says_in_our_words(number: int) -> None:
    """With the place, the system's words, and what to do about it."""
    said = in_our_words(OSError(number, os.strerror(number), "/some/place"))
    assert type(said) is MEANS[number]
    assert "/some/place" in str(said)
    assert says_what_to_do(str(said))


def test_errors_that_are_not_the_systems_pass() -> None:
    """A bug is not dressed up, a reader that has left is not our business, and the cause is kept."""

    def verb(error: Any) -> None:
        raise error

    for error in (ZeroDivisionError(), BrokenPipeError()):
        with pytest.raises(type(error)):
            guard(verb)(error)
    with pytest.raises(Unavailable) as said:
        guard(verb)(OSError(errno.EIO, "Input/output error"))
    assert isinstance(said.value.__cause__, OSError)
