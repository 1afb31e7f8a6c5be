"""What there is can be reached from Python and from the command line, and is documented; and the other way round."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import tallystick
from tallystick import Memory, errors
from tallystick.commands.revise import FIELDS
from tallystick.commands.store import Store
from tallystick.config import PASSPHRASE_VARIABLE, PREFIX, Settings
from tallystick.events.driver import Datastore, File
from tallystick.events.installation import FORMAT
from tallystick.events.kinds import REGISTRY
from tallystick.events.settings import write_setting
from tallystick.projections.vector_cache import Made
from tallystick.queries.filters import Filters
from tallystick.queries.trail import TrailFilters

from .commands import COMMANDS, command_of, options_of, parameters_of
from .conftest import Answer, Tally
from .schema import DOCUMENTS, differences
from .test_keeping import flip

ROOT = Path(__file__).parents[2]
SOURCE = Path(tallystick.__file__).parent
PAGES = {
    page: page.read_text(encoding="utf-8") for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
}
OF_OTHER_PROGRAMS = {ROOT / "docs" / "benchmarks.md"}


def code_of(pages: Iterable[Path]) -> str:
    """What pages show as code."""
    return "\n".join(code for page in pages for code in re.findall(r"```.*?```|`[^`\n]+`", PAGES[page], re.DOTALL))


CODE = code_of(PAGES)
"""Everything that the documentation shows as code."""

# ---- the deliberate exceptions, each with its reason: one that is no longer needed fails a test

NO_COMMAND = {
    "open": "every command opens the store",
    "close": "every command closes the store",
    "temporary": "for tests of programs",
    "rebuild": "`replay` does it, whatever state the views are in",
    "events": "for programs: people have `log` and `history`",
    "at": "the reading commands take `--until`, which opens the store as it was",
}
"""Verbs of Memory that are no command."""

OTHER_WORDS = {
    "import_": "import file",
    "models": "models list",
    "use_model": "models use",
    "drop_model": "models drop",
    "fetch_model": "models fetch",
    "pack_model": "models pack",
    "verify_models": "models verify",
    "evaluate": "eval",
    "follow": "log",
    "diagnose": "doctor",
    "list_keys": "keys list",
    "back_up_keys": "keys backup",
    "decline_key_backup": "keys backup",
    "restore_keys": "keys restore",
    "snapshot": "snapshot create",
    "snapshots": "snapshot list",
    "rotate_snapshots": "snapshot rotate",
    "restore_snapshot": "snapshot restore",
}
"""Verbs of Memory whose command is found among others of its sort."""

NO_VERB = {
    "init": "Memory.open makes a store",
    "import git": "a way in: it stores with Memory.store",
}
"""Commands that are no verb of Memory."""

NOT_OFFERED = {
    "progress": "the bar shows it",
    "store-many.text": "each line has its own",
    "store-many.key": "a key has one value: each line names its own",
    "store-many.supersedes": "each line names its own",
    "store-many.place": "each line has its own",
    "store-many.command_id": "each line has its own",
    "store-conversation.text": "each line has its own",
    "store-conversation.key": "each line has its own",
    "store-conversation.supersedes": "each line names its own",
    "store-conversation.place": "where the turn stands among the lines says it",
    "store-conversation.command_id": "thread and place make one",
    "sql.parameters": "a person writes the values into the statement",
    "models use.seconds": "a person presses Ctrl-C: what is made is kept",
    "embed.seconds": "a person presses Ctrl-C: what is made is kept",
    "doctor.model": "a setting",
    "path": "-C",
    "keys": "a setting",
    "actor": "a setting",
    "passphrase": "never an argument, which others can see: a file, the environment or a terminal",
}
"""Parameters of Memory's verbs that the command has no option for."""

ONLY_OFFERED = {
    "verify.root_key": "an audit without keys opens no Memory",
    "log.follow": "chooses between two verbs",
    "eval.from_log": "says where the questions come from: there is one place yet",
    "recall.tokens": "what the verb returns renders itself",
    "keys backup.decline": "chooses between two verbs",
    "keys backup.passphrase_file": "see passphrase",
    "keys restore.passphrase_file": "see passphrase",
}
"""Options that are no parameter of the verb, nor of Memory.open."""

RENAMED = {
    "identifier": "memory",
    "identifiers": "memories",
    "query": "question",
    "off": "on",
    "before": "until",
    "log.which": "log",
    "receipts.by": "verb",
    "verify.quick": "depth",
    "snapshot restore.folder": "snapshot",
    "snapshot restore.out": "path",
}
"""Options that bear another name than the parameter: to type `--off` is easier than `--on false`."""

NEVER_APPENDED: dict[str, str] = {}
"""Kinds of events that no verb appends."""

NEVER_SHOWN = {
    "TallystickError": "the tree's root is never raised itself",
    "Claimed": "the commands decide again, or say Refused",
    "StreamErased": "no verb erases yet",
    "Busy": "takes another writer, and ten seconds: tests/events/test_driver.py",
    "Forked": "no command forks: tests/scenarios/test_fork.py",
}
"""Errors that no command ends with."""

OTHER_OPTIONS = {"--compare", "--keys", "--json", "--help", "--env-file"}
OTHER_OPTIONS |= {"--version", "--install-completion", "--show-completion"}
"""Options that the documentation names of `tools/replay`, of docker, and of `tallystick` itself."""

SECRETS = {"PASSPHRASE", "KEY_ROOT", "KEY_WRITER", "KEY_LOG", "KEY_KEK", "KEY_VIEWS", "KEY_INDEX", "KEY_"}
"""Variables that are no settings: they are read where they are needed, and kept by nobody."""

# ---- verbs and their parameters

VERBS = [name for name in vars(Memory) if not name.startswith("_")]
OPENING = set(inspect.signature(Memory.open).parameters)
STORED = {field.name for field in dataclasses.fields(Store)}
FILTERS, OF_TRAIL = ({field.name for field in dataclasses.fields(kind)} for kind in (Filters, TrailFilters))
TAKEN = {
    "recall": FILTERS, "search": FILTERS, "log": OF_TRAIL, "follow": OF_TRAIL, "receipts": OF_TRAIL - {"kind", "log"},
    "store": STORED, "store_many": STORED, "store_conversation": STORED, "revise": {*FIELDS},
}  # fmt: skip
"""What stands behind `**fields` and `**filters`."""


def word_of(verb: str) -> str:
    """The command that a verb of Memory is called by."""
    return OTHER_WORDS.get(verb) or verb.rstrip("_").replace("_", "-")


def parameters(verb: str) -> set[str]:
    """What a verb of Memory can be given."""
    named = set(inspect.signature(getattr(Memory, verb)).parameters) - {"self", "fields", "filters"}
    return named | TAKEN.get(verb, set())


def asked(command: str) -> set[str]:
    """What the verbs behind a command can be given."""
    return {name for verb in VERBS if word_of(verb) == command for name in parameters(verb)}


def offered(command: str) -> set[str]:
    """What a command can be given, by the names of the verb's parameters."""
    return {RENAMED.get(f"{command}.{name}", RENAMED.get(name, name)) for name in parameters_of(command)}


def less(names: set[str], command: str, excepted: dict[str, str]) -> set[str]:
    """The names without the exceptions."""
    return {name for name in names if name not in excepted and f"{command}.{name}" not in excepted}


BOTH = sorted({word_of(verb) for verb in VERBS} & set(COMMANDS))


def test_every_verb_is_a_command() -> None:
    """What Memory can be asked for, the command line can be asked for by the same word."""
    assert {verb for verb in VERBS if word_of(verb) not in COMMANDS} == set(NO_COMMAND)


def test_every_command_is_a_verb() -> None:
    """What the command line can be asked for, Memory can be asked for by the same word."""
    assert set(COMMANDS) - {word_of(verb) for verb in VERBS} == set(NO_VERB)


@pytest.mark.parametrize("command", BOTH)
def test_every_parameter_is_an_option(command: str) -> None:
    """What a verb can be given, its command can be given."""
    assert less(asked(command), command, NOT_OFFERED) - offered(command) == set()


@pytest.mark.parametrize("command", BOTH)
def test_every_option_is_a_parameter(command: str) -> None:
    """What a command can be given, its verb or the opening of the store can be given."""
    assert less(offered(command), command, ONLY_OFFERED) - asked(command) - OPENING == set()


def test_no_exception_is_left_over() -> None:
    """An exception whose reason is gone goes too."""
    can_be_asked = {each for c in BOTH for name in asked(c) for each in (name, f"{c}.{name}")}
    are_offered = {f"{c}.{name}" for c in BOTH for name in offered(c)}
    typed = {each for c in BOTH for name in parameters_of(c) for each in (name, f"{c}.{name}")}
    assert set(NOT_OFFERED) <= can_be_asked - are_offered
    assert set(ONLY_OFFERED) <= are_offered
    assert set(RENAMED) <= typed
    assert set(OTHER_WORDS) <= set(VERBS)
    assert set(NEVER_APPENDED) <= {kind for kind, _ in REGISTRY}
    assert set(NEVER_SHOWN) <= set(ERRORS)


# ---- documents


def acts_of_models(act: Callable[..., Any], project: Path) -> None:
    """The commands for models, on files that are no model; and vectors that no model has made."""
    (project / "model").mkdir()
    for name in ("model.onnx", "tokenizer.json"):
        (project / "model" / name).write_bytes(b"{}")
    act("models", "pack", "./model", "model.zip")
    act("models", "fetch", "model.zip")
    for command in (["list"], ["verify"], ["use", "none"]):
        act("models", *command)
    with Memory.open(project / ".tallystick", model="none") as memory:
        memory._opened.vectors().put("0" * 16, (bytes(16), bytes(16)), Made(b"vector", b"", "runtime"))
    act("models", "drop", "0" * 16)


def acts_of_keeping(act: Callable[..., Any], project: Path) -> None:
    """The commands that move, back up and mend a store."""
    subprocess.run(["git", "init", "-q", "repository"], check=True)
    for moving in (["import", "git", "repository"], ["export", "out.jsonl"], ["import", "file", "out.jsonl"]):
        act(*moving)
    (*_, views_key, _) = act("keys", "list")["keys"]
    act("keys", "backup", "keys.backup")
    Path(views_key["where"]).unlink()
    act("keys", "restore", "keys.backup")
    shutil.copytree(project / ".tallystick", project / "damaged")
    flip(project / "damaged" / "log.db", b"memory.forgotten")
    (taken,) = act("snapshot", "create", "snapshots")["snapshots"]
    act("snapshot", "list", "snapshots")
    act("snapshot", "rotate", "snapshots")
    act("snapshot", "restore", taken["snapshot"], "--over")
    for last in (["recover", "--reason", "old"], ["take-over"], ["-C", "damaged", "salvage", "--out", "saved"]):
        act(*last)


def acts_documented(tally: Tally, project: Path) -> dict[str, Answer]:
    """Every command, asked for a document."""
    done = {"init": tally("init", "--json")}

    def act(*arguments: str, text: str | None = None) -> dict[str, Any]:
        done[command_of(arguments)] = tally(*arguments, "--json", text=text)
        return done[command_of(arguments)].document

    first, other = (act("store", text)["id"] for text in ("a", "b"))
    receipt = act("recall", "a")["receipt"]
    done["recall --context"] = tally("recall", "a", "--context", "500", "--json")
    for other_words in (
        ["search", "--limit", "1"], ["store", "e", "--namespace", "n1"], ["rename", "n1", "n2"],
        ["store", "f", "--namespace", "n3"], ["merge", "n3", "n2"], ["sql", "select count(*) from memories"],
    ):  # fmt: skip
        act(*other_words)
    act("store-many", text='"c"')
    act("store-conversation", "--thread", "t", text='"d"')
    act("revise", first, "--importance", "0.1", "--valid-from", "2026-01-01T00:00:00Z")
    for command in ("link", "unlink"):
        act(command, first, other)
    for command in ("pin", "protect"):
        act(command, other)
    for command in ("forget", "restore", "get", "history", "blame"):
        act(command, first)
    for command in ("why", "used"):
        act(command, receipt, first)
    act("eval", "--from-log")
    for command in ("log", "namespaces", "receipts", "status", "doctor", "verify", "replay", "embed"):
        act(command)
    acts_of_models(act, project)
    acts_of_keeping(act, project)
    return done


def test_every_command_prints_the_document_that_is_described(tally: Tally, project: Path, monkeypatch: Any) -> None:
    """Each command prints a document with --json, and it is as docs/json.md says: the fixture compares each."""
    monkeypatch.setenv(PASSPHRASE_VARIABLE, "correct horse battery")
    done = acts_documented(tally, project)
    assert set(done) == {*COMMANDS, "recall --context"}
    assert {command: answer.err for command, answer in done.items() if answer.code} == {}


def test_only_documents_that_exist_are_described() -> None:
    """docs/json.md has a section for every command, and for no other."""
    assert set(DOCUMENTS) == {*COMMANDS, "recall --context", "An error"}


@pytest.mark.parametrize(
    "wrong", [{}, {"receipt": 3}, {"receipt": "xy"}, {"receipt": "ab", "more": 1}, {"receipts": "ab"}, [], None]
)
def test_a_document_that_is_not_as_described_is_found_out(wrong: Any) -> None:
    """A field too few or too many, or of another type, is a difference."""
    assert differences("used", {"receipt": "ab"}) == []
    assert differences("used", wrong)


# ---- kinds of events


def acts_in_python(memory: Memory, folder: Path) -> None:
    """Something of every kind, from Python."""
    memory.store("a", key="k")
    first = memory.store("b", key="k").id
    memory.store("b", key="k")
    other = memory.store_many(["c"])[0].id
    memory.store_conversation(["d"], thread="t")
    memory.revise(first, importance=0.1)
    memory.link(first, other)
    memory.unlink(first, other)
    memory.pin(first)
    memory.protect(first)
    memory.protect(first, on=False)
    memory.forget(first)
    memory.restore(first)
    recall = memory.recall("b")
    recall.context()
    memory.used(recall.receipt, [first])
    memory.rename("default", "renamed")
    memory.get(first)
    memory.rebuild()
    list(memory.events())
    memory.back_up_keys(folder / "backup", "correct horse battery")
    memory.decline_key_backup()
    memory.snapshot(folder / "snapshots")
    memory.export(folder / "out.jsonl")
    memory.import_(as_of_another(folder / "out.jsonl"))


def as_of_another(path: Path) -> Path:
    """An export, made into one of another store."""
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(json.loads(text.splitlines()[0])["log"], "ab" * 32), encoding="utf-8")
    return path


def acts_typed(tally: Tally) -> None:
    """Something of every kind, from the command line."""
    tally("store", "a", "--key", "k")
    first = tally("store", "b", "--key", "k", "--json").document["id"]
    tally("store", "b", "--key", "k")
    other = tally("store-many", "--json", text='"c"').document["rows"][0]["id"]
    receipt = tally("recall", "b", "--json").document["receipt"]
    for act in (
        ["store-conversation", "--thread", "t"], ["revise", first, "--importance", "0.1"], ["link", first, other],
        ["unlink", first, other], ["pin", first], ["protect", first], ["protect", first, "--off"], ["forget", first],
        ["restore", first], ["used", receipt, first], ["get", first], ["replay"], ["recall", "b", "--context", "500"],
        ["rename", "default", "renamed"],
        ["keys", "backup", "keys.backup"], ["keys", "backup", "--decline"], ["snapshot", "create", "snapshots"],
    ):  # fmt: skip
        assert tally(*act, text='"d"').code == 0, act
    assert tally("export", "out.jsonl").code == 0
    assert tally("import", str(as_of_another(Path("out.jsonl")))).code == 0


NOT_LISTED = {"log.created": "the first entry says what log it is, and `log` lists what came after"}
KINDS = {kind for kind, _ in REGISTRY} - set(NEVER_APPENDED) - set(NOT_LISTED)


def test_every_kind_of_event_comes_from_python(tmp_path: Path) -> None:
    """Each registered kind of event is appended by a verb of Memory."""
    store, keys = tmp_path / "store", tmp_path / "keys"
    with Memory.open(store, keys=keys, model="none") as memory:
        acts_in_python(memory, tmp_path)
        older = memory.snapshot(tmp_path / "snapshots").path
    Memory.restore_snapshot(older, store, over=True, keys=keys)
    Memory.recover(store, reason="an older copy", keys=keys)
    with Memory.open(store, keys=keys, model="none") as memory:
        assert {row.kind for row in memory.log(limit=1000)} == KINDS


def test_every_kind_of_event_comes_from_the_command_line(store: Tally, monkeypatch: Any) -> None:
    """Each registered kind of event is appended by a command."""
    monkeypatch.setenv(PASSPHRASE_VARIABLE, "correct horse battery")
    acts_typed(store)
    (older,) = store("snapshot", "create", "snapshots", "--json").document["snapshots"]
    assert store("snapshot", "restore", older["snapshot"], "--over").code == 0
    assert store("recover", "--reason", "an older copy").code == 0
    rows = store("log", "--limit", "1000", "--json").document["events"]
    assert {row["kind"] for row in rows} == KINDS


def test_every_kind_of_event_is_documented() -> None:
    """docs/events.md has one row for each kind of event, and for no other; the verbs and commands it names exist."""
    rows = re.findall(r"^\| `([a-z._]+)` \|.*\|(.*)\|(.*)\|$", PAGES[ROOT / "docs" / "events.md"], re.MULTILINE)
    assert sorted(kind for kind, _, _ in rows) == sorted(kind for kind, _ in REGISTRY)
    for kind, verbs, commands in rows:
        assert set(re.findall(r"`(\w+)`", verbs)) <= set(VERBS), kind
        assert set(re.findall(r"`([a-z -]+)`", commands)) <= set(COMMANDS), kind


# ---- settings


def test_every_setting_is_a_parameter_of_open() -> None:
    """What a variable or the project file can say, Memory.open can be given."""
    assert set(Settings.model_fields) <= OPENING


def test_every_setting_reaches_the_command_line(tally: Tally, project: Path, monkeypatch: Any) -> None:
    """What a variable says is in force for every command."""
    tally("init", "mem", "--keys", "keys")
    (project / ".tallystick.toml").unlink()
    given = {
        "path": str(project / "mem"), "namespace": "n", "actor": "agent:x",
        "keys": str(project / "keys"), "model": "none", "audit": "strict",
    }  # fmt: skip
    assert set(given) == set(Settings.model_fields)
    for name, value in given.items():
        monkeypatch.setenv(f"{PREFIX}{name.upper()}", value)
    memory = tally("get", tally("store", "hello", "--json").document["id"], "--json").document
    status = tally("status", "--json").document
    found = {**{name: status[name] for name in ("keys", "model")}, "path": status["store"], "audit": "strict"}
    monkeypatch.setenv(f"{PREFIX}AUDIT", "lax")
    assert "audit" in tally("status").err
    assert found | {name: memory[name] for name in ("namespace", "actor")} == given


def test_every_setting_is_documented() -> None:
    """docs/command-line.md has one row for each setting; no page names a variable that is none."""
    rows = re.findall(rf"^\| `{PREFIX}([A-Z_]+)` \|", PAGES[ROOT / "docs" / "command-line.md"], re.MULTILINE)
    assert [name.lower() for name in rows] == list(Settings.model_fields)
    named = {name for text in PAGES.values() for name in re.findall(rf"{PREFIX}([A-Z_]+)\b", text)}
    assert {name.lower() for name in named - SECRETS} <= set(Settings.model_fields)


# ---- errors


class Provoked(NamedTuple):
    """How a command is made to end with an error: what is done to the project first, and the command."""

    command: list[str]
    before: Callable[[Path], None] = lambda project: None
    environment: dict[str, str] = {}


def newer(project: Path) -> None:
    """A later release has written the store."""
    datastore = Datastore(File(project / ".tallystick" / "log.db", errors.LogDamaged))
    with datastore.transaction(commit=True) as cursor:
        write_setting(cursor, "format", (FORMAT + 1).to_bytes(4, "big"))
    datastore.close()


def broken(project: Path) -> None:
    """Somebody writes into the log."""
    log = project / ".tallystick" / "log.db"
    log.write_bytes(log.read_bytes()[:4096] + b"garbage" * 600 + log.read_bytes()[8296:])


def rolled_back(project: Path) -> None:
    """An older copy is put in the store's place."""
    shutil.rmtree(project / ".tallystick")
    shutil.copytree(project / "older", project / ".tallystick")


def without_views(project: Path) -> None:
    """The views are gone."""
    for file in (project / ".tallystick").glob("views-*.db"):
        file.unlink()


PROVOKED = {
    "Refused": Provoked(["store", ""]),
    "RevisionConflict": Provoked(["revise", "ID", "--text", "x", "--if-revision", "9"]),
    "StoreExists": Provoked(["init", ".tallystick"], lambda project: (project / ".tallystick.toml").unlink()),
    "NotFound": Provoked(["why", "0" * 32]),
    "LogDamaged": Provoked(["status"], broken),
    "LogBehindMark": Provoked(["status"], rolled_back),
    "ViewsDamaged": Provoked(["status"], without_views),
    "KeysMissing": Provoked(["status"], environment={"HOME": "/nowhere"}),
    "Unavailable": Provoked(["import", "git"], environment={"PATH": "/nowhere"}),
    "StoreIsNewer": Provoked(["status"], newer),
    "ModelMissing": Provoked(["recall", "x", "--model", "/nowhere"]),
}
ERRORS = [name for name, kind in vars(errors).items() if isinstance(kind, type)]


def test_every_error_is_provoked() -> None:
    """Each error is one that a command can end with, or says why it can't."""
    assert set(PROVOKED) | set(NEVER_SHOWN) == set(ERRORS)


@pytest.mark.parametrize("name", PROVOKED)
def test_a_command_ends_with_the_error(store: Tally, project: Path, monkeypatch: Any, name: str) -> None:
    """The error is named in the document, said in one line with what to do, and ends the command with 1."""
    shutil.copytree(project / ".tallystick", project / "older")
    identifier = store("store", "hello", "--json").document["id"]
    provoked = PROVOKED[name]
    provoked.before(project)
    for variable, value in provoked.environment.items():
        monkeypatch.setenv(variable, value)
    done = store(*(identifier if each == "ID" else each for each in provoked.command), "--json")
    assert done.code == 1
    assert done.document["error"]["kind"] == name
    assert re.fullmatch(r"tallystick: .+\n", done.err)


def test_every_error_is_documented() -> None:
    """docs/python.md has one row for each error, and for no other."""
    rows = re.findall(r"^\| `(\w+)` \|", PAGES[ROOT / "docs" / "python.md"].partition("\n## Errors\n")[2], re.MULTILINE)
    assert sorted(rows) == sorted(set(ERRORS) - {"TallystickError"})


# ---- what the documentation names


def test_every_command_is_documented() -> None:
    """docs/command-line.md has a row for every command, and for no other."""
    page = PAGES[ROOT / "docs" / "command-line.md"]
    table = page.partition("\n## Commands\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([a-z -]+?)(?: [A-Z\[-].*?)?` \|", table, re.MULTILINE)
    assert sorted(rows) == sorted(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_documented(command: str) -> None:
    """docs/command-line.md names every option of a command."""
    page = PAGES[ROOT / "docs" / "command-line.md"]
    assert {option for option in options_of(command) if not re.search(rf"`{option}\b", page)} == set()


def test_the_documentation_names_only_commands_that_exist() -> None:
    """After `tallystick` comes a command or an option, on every page and in every message."""
    messages = "\n".join(file.read_text(encoding="utf-8") for file in SOURCE.rglob("*.py"))
    spans = re.findall(r"`tallystick ([a-z][a-z -]*[a-z])", CODE + messages)
    spans += re.findall(r"^tallystick ([a-z][a-z -]*[a-z])", CODE, re.MULTILINE)
    firsts = {command.split()[0] for command in COMMANDS}
    assert spans
    assert {each for each in spans if each.split()[0] not in firsts} == set()


def test_the_documentation_names_only_options_that_exist() -> None:
    """Every option that a page shows is one of some command."""
    known = {option for command in COMMANDS for option in options_of(command)} | OTHER_OPTIONS
    ours = "\n".join(
        line
        for line in code_of(set(PAGES) - OF_OTHER_PROGRAMS).splitlines()
        if not re.match(r"`?(?:python|docker) ", line)
    )
    shown = set(re.findall(r"(?<![\w-])(--[a-z][a-z-]+)", ours)) - {
        "--help",
        "--version",
        "--install-completion",
        "--show-completion",
    }
    assert shown - known == set()


def calls() -> Iterator[tuple[str, str]]:
    """Every call of a verb that the documentation shows, and its arguments."""
    yield from re.findall(r"\b[mM]emory\.(\w+)\(([^()]*)", CODE)


def test_the_documentation_names_only_verbs_and_parameters_that_exist() -> None:
    """Every `memory.verb(...)` of a page is a verb, and what it is given by name it can be given."""
    shown = list(calls())
    assert shown
    assert {verb for verb, _ in shown} - set(VERBS) == set()
    given = {(verb, name) for verb, rest in shown for name in re.findall(r"\b(\w+)=", rest)}
    assert {(verb, name) for verb, name in given if name not in parameters(verb)} == set()


def test_the_documentation_names_only_classes_and_modules_that_exist() -> None:
    """Every class and every module that a page names is in the package, or is Python's."""
    source = "\n".join(file.read_text(encoding="utf-8") for file in SOURCE.rglob("*.py"))
    classes = set(re.findall(r"\bclass (\w+)", source)) | {"None", "True", "False"} | set(dir(__builtins__))
    named = set(re.findall(r"`([A-Z][a-z]+(?:[A-Z][a-z]+)*)`", CODE))
    assert named - classes == set()
    modules = set(re.findall(r"`([\w/]+/\w+\.py)`", CODE))
    assert {each for each in modules if not any((root / each).exists() for root in (ROOT, SOURCE))} == set()
