"""The command line: what each command prints, to whom, and how it ends."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tallystick import Memory
from tallystick.events.key_places import Directory
from tallystick.events.keys import load_keys
from tallystick.projections.models import places

from ..queries.test_recall import WordEmbedder
from .commands import COMMANDS
from .conftest import Tally

PROGRAM = [sys.executable, "-c", "from tallystick.entrypoints.cli import main; main()"]


def shell(*arguments: str, text: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run the command line as a process of its own."""
    return subprocess.run([*PROGRAM, *arguments], input=text, capture_output=True, check=False)


def stored(tally: Tally, *arguments: str) -> str:
    """The id of a memory stored just now."""
    identifier = tally("store", *arguments, "--json").document["id"]
    assert isinstance(identifier, str)
    return identifier


# ---- as a person begins


def test_a_first_day_in_an_empty_directory(project: Path) -> None:
    """Every command works as a process of its own, from an empty directory on, and says nothing on standard error."""
    steps = [["init"], ["store", "Use WAL mode for concurrent readers", "--tag", "sqlite"], ["recall", "WAL readers"]]
    outputs = [shell(*step) for step in steps]
    stored, recalled = (done.stdout.decode() for done in outputs[1:])
    identifier = stored.split()[1]
    receipt = recalled.split()[-1] if "degraded" not in recalled else recalled.partition("receipt")[2].split()[0]
    assert identifier[:12] in recalled
    later = [["get", identifier[:8]], ["history", identifier], ["why", receipt], ["forget", identifier], ["status"]]
    later += [["restore", identifier], ["log"], ["verify", "--views"], ["replay"], ["recall", "nothing like it"]]
    outputs += [shell(*step) for step in later]
    assert [(done.returncode, done.stderr) for done in outputs] == [(0, b"")] * len(outputs)


@pytest.mark.parametrize("verb", COMMANDS)
def test_every_command_has_help(tally: Tally, verb: str) -> None:
    """--help says what the command does and names the options that all have."""
    done = tally(*verb.split(), "--help")
    assert done.code == 0
    assert all(option in done.out for option in ("-C", "--json", "--debug"))


def test_the_version_is_that_of_the_package(tally: Tally) -> None:
    """--version prints the name and the version of the installed package."""
    assert re.fullmatch(r"tallystick \d+\.\d+\.\d+\S*\n", tally("--version").out)


# ---- which store


def test_init_makes_a_store_and_says_where_its_keys_went(tally: Tally, project: Path, home: Path) -> None:
    """init names the store, the keys, the project file and the root key, and says what losing the keys means."""
    done = tally("init")
    assert done.code == 0
    assert str(home) in done.out
    assert str(project / ".tallystick.toml") in done.out
    assert "Losing the keys loses the memories" in done.out
    assert (project / ".tallystick" / "log.db").is_file()


def test_init_twice_is_refused_and_changes_nothing(store: Tally, project: Path) -> None:
    """A second init ends with 1, and the first store, its project file and its memories are as they were."""
    identifier = stored(store, "hello")
    before = (project / ".tallystick.toml").read_text()
    done = store("init", "elsewhere")
    assert (done.code, done.out) == (1, "")
    assert not (project / "elsewhere").exists()
    assert (project / ".tallystick.toml").read_text() == before
    assert store("get", identifier).code == 0


def test_init_that_fails_leaves_no_project_file(tally: Tally, project: Path) -> None:
    """Where the store can't be made, no project file is left that names it."""
    (project / "file").write_text("")
    assert tally("init", "file").code == 1
    assert tally("init", "mem", "--keys", "mem/keys").code == 1
    shutil.rmtree(project / "mem", ignore_errors=True)
    assert list(project.iterdir()) == [project / "file"]


def test_init_puts_namespace_and_keys_where_it_is_told(tally: Tally, project: Path, home: Path) -> None:
    """--namespace is what the project stores under; --keys is where its keys go and are found, from below too."""
    made = tally("init", "mem", "--namespace", "project:x", "--keys", 'the "keys"', "--json").document
    assert set(made) == {"store", "keys", "root_key", "project"}
    assert (project / 'the "keys"' / "root.key").is_file()
    assert list(home.iterdir()) == []
    assert tally("get", stored(tally, "hello"), "--json").document["namespace"] == "project:x"


@pytest.mark.parametrize("verb", [["recall", "x"], ["store", "x"], ["get", "abcd"], ["status"], ["verify"], ["replay"]])
def test_only_init_makes_a_store(tally: Tally, project: Path, verb: list[str]) -> None:
    """Every other command ends with 1 where there is no store, says how to make one, and leaves nothing behind."""
    done = tally(*verb)
    assert (done.code, done.out) == (1, "")
    assert "tallystick init" in done.err
    assert list(project.iterdir()) == []


def test_the_store_is_found_as_git_finds_a_repository(store: Tally, project: Path, monkeypatch: Any) -> None:
    """Commands below the project find its store by the project file."""
    identifier = stored(store, "hello")
    below = project / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert store("get", identifier).code == 0


@pytest.mark.parametrize("place", ["before", "after", "environment"])
def test_a_store_is_named_from_anywhere(store: Tally, project: Path, place: str, monkeypatch: Any) -> None:
    """-C before or after the command, and TALLYSTICK_PATH, name a store outside the current directory."""
    identifier = stored(store, "hello")
    monkeypatch.chdir("/")
    named = str(project / ".tallystick")
    if place == "environment":
        monkeypatch.setenv("TALLYSTICK_PATH", named)
    arguments = {"before": ("-C", named, "get", identifier), "after": ("get", identifier, "-C", named)}
    assert store(*arguments.get(place, ("get", identifier))).code == 0


def test_a_named_store_goes_before_the_environment(store: Tally, project: Path, monkeypatch: Any) -> None:
    """-C wins over TALLYSTICK_PATH."""
    monkeypatch.setenv("TALLYSTICK_PATH", str(project / "nowhere"))
    assert store("status", "-C", ".tallystick").code == 0


def test_a_misspelt_setting_is_named(store: Tally, monkeypatch: Any) -> None:
    """An unknown TALLYSTICK_ variable is an error that names the nearest one."""
    monkeypatch.setenv("TALLYSTICK_NAMESPCE", "x")
    assert "TALLYSTICK_NAMESPACE" in store("status").err


# ---- storing


OUTCOME = {"outcome", "id", "position", "superseded", "repeated", "reason"}


def test_store_says_what_came_of_it(store: Tally) -> None:
    """A new text, the same text again, and a newer value of a key have outcomes of their own."""
    first = store("store", "The office is in Porto", "--key", "office", "--json").document
    again = store("store", "The office is in Porto", "--key", "office", "--json").document
    newer = store("store", "The office is in Lisbon", "--key", "office", "--json").document
    assert [made["outcome"] for made in (first, again, newer)] == ["stored", "reinforced", "superseded"]
    assert (again["id"], newer["superseded"]) == (first["id"], first["id"])
    assert set(first) == OUTCOME


def test_a_repeated_command_id_changes_nothing(store: Tally) -> None:
    """The same command id gives the same memory at the same position."""
    first, again = (store("store", "hello", "--command-id", "c", "--json").document for _ in range(2))
    assert again == {**first, "repeated": True}


def test_store_reads_standard_input(store: Tally) -> None:
    """A dash stores what comes on standard input, without the last line feed."""
    identifier = store("store", "-", "--json", text="two\nlines\n").document["id"]
    assert store("get", identifier, "--json").document["text"] == "two\nlines"


@pytest.mark.parametrize("text", [b"caf\xe9", b"", b" \n"])
def test_store_refuses_what_is_no_text(store: Tally, text: bytes) -> None:
    """What is not UTF-8, and what is empty, ends with 1 and one line."""
    done = store("store", "-", text=text)
    assert (done.code, done.out) == (1, "")
    assert re.fullmatch(r"tallystick: .+\n", done.err)


@pytest.mark.parametrize("options", [["--meta", "y"], ["--meta", "=y"], ["--importance", "high"], ["--no-such"], []])
def test_wrong_usage_ends_with_2(store: Tally, options: list[str]) -> None:
    """An option that is not one, or has not the form of one, or an argument too few, is wrong usage."""
    arguments = ["store", "text", *options] if options else ["store"]
    assert store(*arguments).code == 2


# ---- asking


def test_recall_shows_hits_and_receipt(store: Tally) -> None:
    """Each hit has rank, the first digits of its id, its time and its text; then comes the receipt."""
    identifier = stored(store, "Use WAL mode for concurrent readers", "--occurred-at", "2025-03-01T12:30:00Z")
    found = store("recall", "WAL mode")
    assert found.code == 0
    assert re.search(rf"^1  {identifier[:12]}  2025-03-01 12:30  Use WAL mode for concurrent readers$", found.out, re.M)
    assert re.search(r"^receipt +[0-9a-f]{32}$", found.out, re.M)
    assert re.search(r"^degraded +no embedding model", found.out, re.M)


def test_recall_leaves_stages_out(store: Tally) -> None:
    """--without leaves a stage out, and can be repeated; one that is none is refused, naming those there are."""
    stored(store, "apples", "--author", "Ana", "--occurred-at", "2025-03-01T12:30:00Z")
    asked = ("recall", "Which apples of Ana in March 2025?", "--json")
    every, less = (
        store(*asked, *without).document["hits"][0]["scores"]
        for without in ((), ("--without", "dates", "--without", "author"))
    )
    assert every["dates"] > 0 < every["author"]
    assert less["dates"] == less["author"] == 0
    for stage in ("fused", "zebra"):
        refused = store("recall", "apples", "--without", stage)
        assert refused.code == 1
        assert f"{stage} is no stage" in refused.err
        assert "dates" in refused.err


def test_recall_shows_how_relevant_each_hit_is(store: Tally, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a model that tells, a share of a hundred for each hit; where none is relevant that is said, and is found.

    Without one there is no such column.
    """
    stored(store, "red apples")
    stored(store, "green pears")
    assert "relevant" not in store("recall", "red apples").out
    monkeypatch.setattr(places, "resolve_embedder", lambda model: WordEmbedder())
    found = store("recall", "red apples")
    assert re.search(r"^# +relevant +id ", found.out, re.M)
    assert re.search(r"^1 +(9\d|100) %  [0-9a-f]{12} .* red apples$", found.out, re.M)
    assert re.search(r"^2 +[0-7] %  [0-9a-f]{12} .* green pears$", found.out, re.M)
    assert "Nothing here" not in found.out
    nothing = store("recall", "zebra crossing")
    assert nothing.code == 0
    assert "Nothing here seems to be about that." in nothing.out
    assert "red apples" in nothing.out
    document = store("recall", "zebra crossing", "--json").document
    assert document["nothing_relevant"] is True
    assert all(0 <= hit["relevance"] < 0.08 for hit in document["hits"])
    assert len(document["hits"]) == 2


def test_recall_that_finds_nothing_says_so(store: Tally) -> None:
    """Nothing found is an answer: it ends with 0, and has a receipt."""
    found = store("recall", "anything")
    assert found.code == 0
    assert "Nothing was found." in found.out
    assert "receipt" in found.out


def test_recall_looks_where_it_is_told(store: Tally) -> None:
    """--namespace, repeated, replaces the project's; --limit limits."""
    for name in ("a", "b", "c"):
        stored(store, f"apples of {name}", "--namespace", name)
    found = store("recall", "apples", "--namespace", "a", "--namespace", "b", "--json").document
    assert {hit["memory"]["namespace"] for hit in found["hits"]} == {"a", "b"}
    assert (
        len(
            store("recall", "apples", "--namespace", "a", "--namespace", "b", "--limit", "1", "--json").document["hits"]
        )
        == 1
    )
    assert store("recall", "apples", "--json").document["hits"] == []


def test_recall_leaves_out_what_it_is_told(store: Tally) -> None:
    """Filters are options; what is no filter is refused, and what is no JSON is wrong usage."""
    store("store", "Green apples", "--tag", "fruit", "--meta", "team=web")
    store("store", "Red apples", "--importance", "0.9", "--namespace", "a/b")
    for options, expected in (
        (["--tag", "fruit"], ["Green apples"]),
        (["--where", '{"team": "web"}'], ["Green apples"]),
        (["--where", '{"team": {"$ne": "web"}}'], []),
        (["--under", "a", "--min-importance", "0.8"], ["Red apples"]),
        (["--status", "expired"], []),
        (["--kind", "note", "--source", "human", "--since", "2020-01-01T00:00:00Z"], ["Green apples"]),
    ):
        hits = store("recall", "apples", *options, "--json").document["hits"]
        assert [hit["memory"]["text"] for hit in hits] == expected
    assert store("recall", "apples", "--where", '{"n": {"$like": 1}}').code == 1
    assert store("recall", "apples", "--where", "{").code == 2


def test_search_goes_through_everything_a_page_at_a_time(store: Tally) -> None:
    """Pages lead to each other by the cursor, in the order asked for."""
    for number in range(5):
        store("store", f"Apples {number}", "--importance", str(number / 10))
    first = store("search", "--sort", "importance", "--limit", "3", "--json").document
    rest = store("search", "--sort", "importance", "--after", first["cursor"], "--json").document
    assert (first["total"], rest["total"], rest["cursor"]) == (5, 5, None)
    assert [memory["text"] for memory in first["memories"] + rest["memories"]] == [f"Apples {n}" for n in range(5)]
    shown = store("search", "--limit", "2").out
    assert "Apples 4" in shown
    assert "next page" in shown
    assert store("search", "--sort", "colour").code == 1


def test_a_namespace_is_renamed_and_merged(store: Tally) -> None:
    """Both names lead to its memories, and the list of namespaces says what it was called."""
    store("store", "Apples", "--namespace", "a")
    store("store", "Pears", "--namespace", "b")
    assert "a is called c now: 1 current memory moved" in store("rename", "a", "c").out
    assert store("merge", "c", "b", "--json").document["moved"] == 1
    (found,) = store("namespaces", "--json").document["namespaces"]
    assert (found["name"], found["current"], found["aliases"]) == ("b", 2, ["a", "c"])
    assert "a c" in store("namespaces").out
    assert len(store("search", "--namespace", "a", "--json").document["memories"]) == 2
    assert store("rename", "x", "y").code == 1


def test_receipts_list_what_was_asked(store: Tally) -> None:
    """Every read with its question; filters pick some of them, and so they do in the log."""
    store("store", "Apples")
    receipt = store("recall", "apples", "--json").document["receipt"]
    store("search")
    (found,) = store("receipts", "--verb", "recall", "--json").document["receipts"]
    assert (found["receipt"], found["query"], len(found["memories"])) == (receipt, "apples", 1)
    assert receipt in store("receipts").out
    events = store("log", "--kind", "recalled", "--log", "access", "--limit", "1", "--json").document["events"]
    assert [event["kind"] for event in events] == ["memory.recalled"]
    assert store("log", "--kind", "sold").code == 1


def test_the_log_is_followed(store: Tally, project: Path) -> None:
    """`log --follow` prints each event as it happens, one to a line, until it is stopped."""
    store("store", "Apples")
    process = subprocess.Popen(
        [*PROGRAM, "log", "--follow", "--limit", "5", "--json"],
        stdout=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # tests in the background ignore it
    )
    try:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["kind"] == "memory.stored"
        store("recall", "apples")
        assert json.loads(process.stdout.readline())["kind"] == "memory.recalled"
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def test_recall_prints_a_context(store: Tally) -> None:
    """`--context` prints what goes into a prompt and nothing else; `why` takes its receipt."""
    store("store", "Apples are green")
    shown = store("recall", "apples", "--context", "300").out
    assert re.fullmatch(r"<memories (\w+)>\n.*\n\[1\] .*\n\| Apples are green\n</memories \1>\n", shown)
    found = store("recall", "apples", "--context", "300", "--json").document
    assert set(found) == {"text", "tokens", "left_out", "receipt"}
    explained = store("why", found["receipt"], "--json").document
    assert explained["context_sha256"] == sha256(found["text"].encode()).hexdigest()
    assert "SHA-256" in store("why", found["receipt"]).out
    assert store("recall", "apples", "--context", "9").code == 2


def test_blame_shows_who_wrote_each_field(store: Tally) -> None:
    """Each field with its value, its event and its signer, times as people write them."""
    identifier = stored(store, "Apples", "--tag", "a", "--occurred-at", "2026-05-08T13:56:00Z")
    fields = {field["field"]: field for field in store("blame", identifier, "--json").document["fields"]}
    assert (fields["text"]["value"], fields["text"]["revision"], fields["text"]["kind"]) == (
        "Apples",
        0,
        "memory.stored",
    )
    assert all(word in store("blame", identifier).out for word in ("Apples", "2026-05-08T13:56:00Z", "memory.stored"))


def test_sql_asks_the_views(store: Tally) -> None:
    """A table for people, columns and rows for programs; what is no question ends with 1."""
    stored(store, "Apples", "--kind", "fact")
    assert store("sql", "select kind, key from memories").out.split() == ["kind", "key", "fact", "-"]
    found = store("sql", "select stream, kind from memories", "--json").document
    assert (found["columns"], found["rows"][0][1], len(found["rows"][0][0])) == (["stream", "kind"], "fact", 32)
    assert store("sql", "delete from memories").code == 1


def test_recall_document(store: Tally) -> None:
    """The fields of a recall as JSON, which programs rely on."""
    stored(store, "apples")
    found = store("recall", "apples", "--json").document
    assert set(found) == {"hits", "nothing_relevant", "receipt", "degraded"}
    assert set(found["hits"][0]) == {"rank", "relevance", "score", "scores", "memory"}


def test_why_goes_back_to_the_signed_events(store: Tally) -> None:
    """why shows the question, the scores and the events behind every hit, or behind the one that is named."""
    first, second = stored(store, "red apples"), stored(store, "green apples")
    receipt = store("recall", "apples", "--json").document["receipt"]
    shown = store("why", receipt)
    assert shown.code == 0
    assert all(word in shown.out for word in ("apples", receipt, first[:12], second[:12], "memory.stored"))
    document = store("why", receipt, first[:10], "--json").document
    assert set(document) == {
        "receipt", "query", "namespaces", "limit", "at", "actor", "via", "signed_by", "log_size", "log_root",
        "pipeline", "degraded", "verb", "filters", "context_sha256", "hits",
    }  # fmt: skip
    assert [hit["memory"]["id"] for hit in document["hits"]] == [first]
    assert set(document["hits"][0]) == {"rank", "scores", "memory", "events"}


@pytest.mark.parametrize("receipt", ["abc", "0" * 32])
def test_why_of_no_receipt_ends_with_1(store: Tally, receipt: str) -> None:
    """What is no receipt is said to be none."""
    assert store("why", receipt).code == 1


def test_a_memory_is_forgotten_and_restored(store: Tally) -> None:
    """forget and restore take the beginning of an id, and history shows both with their reasons."""
    identifier = stored(store, "apples")
    assert set(store("forget", identifier[:8], "--reason", "eaten", "--json").document) == OUTCOME
    assert store("recall", "apples", "--json").document["hits"] == []
    assert "forgotten: eaten" in store("get", identifier).out
    assert store("forget", identifier).code == 1
    assert store("restore", identifier[:8]).code == 0
    found = store("history", identifier, "--json").document
    assert set(found) == {"id", "events"}
    assert [event["kind"] for event in found["events"]] == ["memory.stored", "memory.forgotten", "memory.restored"]
    assert "eaten" in store("history", identifier).out


def test_unknown_and_ambiguous_ids_are_told_apart(store: Tally, project: Path) -> None:
    """An id that nothing begins with is not found; one that begins two asks for more digits; both end with 1."""
    seen: dict[str, str] = {}
    with Memory.open(project / ".tallystick", create=False) as memory:
        while True:
            identifier = memory.store(f"text {len(seen)}").id
            if identifier[:4] in seen:
                break
            seen[identifier[:4]] = identifier
    ambiguous = store("get", identifier[:4])
    assert ambiguous.code == 1
    assert identifier[:12] in ambiguous.err
    assert store("get", identifier).code == 0
    free = next(f"{n:04x}" for n in range(1 << 16) if f"{n:04x}" not in seen)
    assert (store("get", free).code, store("get", "not-hex").code, store("get", identifier[:3]).code) == (1, 1, 1)


def test_log_is_newest_first_and_limited(store: Tally) -> None:
    """log shows events of both logs, newest first, at most as many as asked for, without any text."""
    stored(store, "secret words")
    store("recall", "secret")
    shown = store("log")
    assert "secret" not in shown.out
    rows = store("log", "--limit", "2", "--json").document["events"]
    assert [(row["log"], row["kind"]) for row in rows] == [("access", "memory.recalled"), ("memory", "memory.stored")]
    assert set(rows[0]) == {"log", "position", "id", "kind", "stream", "revision", "actor", "at", "namespace"}


def test_status_says_whether_it_is_clean(store: Tally, home: Path) -> None:
    """status is clean, or says why it is not."""
    assert "tallystick keys backup FILE" in store("status").out.splitlines()[1]
    assert store("keys", "backup", "--decline").code == 0
    assert store("status").out.startswith("clean\n")
    document = store("status", "--json").document
    assert {"clean", "store", "keys", "memories", "logs", "roots", "views", "model", "remarks", "mark", "notes"} <= set(
        document
    )
    keys = Path(document["keys"])
    keys.chmod(0o755)
    shown = store("status")
    assert shown.out.startswith("not clean\n")
    assert "can be read by others" in shown.out


# ---- proving and mending


def test_verify_names_what_it_checked(store: Tally) -> None:
    """verify counts entries and signatures; --quick leaves signatures; --views compares with a rebuild."""
    stored(store, "apples")
    full = store("verify", "--views", "--json").document
    assert set(full) == {"depth", "logs", "views"}
    assert set(full["logs"][0]) == {"log", "size", "root", "signatures", "payloads", "checkpoints"}
    assert full["logs"][0]["signatures"] == full["logs"][0]["size"] == 2
    assert "memories" in full["views"]
    assert store("verify", "--quick", "--json").document["logs"][0]["signatures"] == 0
    assert "verified" in store("verify", "--views").out


def test_an_auditor_needs_no_keys(store: Tally, project: Path, home: Path) -> None:
    """With the root key alone, verify works where no key directory is; with another key it refuses."""
    stored(store, "apples")
    keys = Path(store("status", "--json").document["keys"])
    key = load_keys(Directory(keys, named=True)).root.public.hex()
    shutil.move(keys, home / "hidden")
    assert store("verify").code == 1
    audited = store("verify", "--root-key", key)
    assert audited.code == 0
    assert "no text was opened" in audited.out
    assert store("verify", "--root-key", "0" * 64).code == 1


@pytest.mark.parametrize("options", [["--root-key", "abc"], ["--root-key", "0" * 64, "--views"]])
def test_an_audit_that_makes_no_sense_ends_with_2(store: Tally, options: list[str]) -> None:
    """A root key of the wrong length, and views without keys, are wrong usage."""
    assert store("verify", *options).code == 2


def test_replay_of_sound_views_is_equal(store: Tally) -> None:
    """replay shows each view's digest before and after; they are equal where nothing was damaged."""
    stored(store, "apples")
    document = store("replay", "--json").document
    assert document["equal"] is True
    assert set(document["views"][0]) == {"view", "before", "after", "equal"}
    assert re.search(r"^memories +([0-9a-f]{16})  \1 +yes$", store("replay").out, re.M)


@pytest.mark.parametrize("damage", ["edited", "gone"])
def test_replay_is_the_way_back_from_damaged_views(store: Tally, project: Path, damage: str) -> None:
    """A damaged view is refused and replay named; after it the store answers again."""
    stored(store, "apples")
    (views,) = (project / ".tallystick").glob("views-*.db")
    if damage == "gone":
        views.unlink()
    else:
        views.write_bytes(views.read_bytes()[:5000] + b"garbage" + views.read_bytes()[5007:])
    refused = store("recall", "apples")
    assert refused.code == 1
    assert "tallystick replay" in refused.err
    assert store("replay").code == 0
    assert len(store("recall", "apples", "--json").document["hits"]) == 1


def test_damage_to_the_log_is_named_and_placed(store: Tally, project: Path) -> None:
    """A log that was cut off ends every command with 1; --json says where."""
    stored(store, "apples")
    shutil.copytree(project / ".tallystick", project / "older")
    stored(store, "pears")
    shutil.rmtree(project / ".tallystick")
    shutil.move(project / "older", project / ".tallystick")
    for verb in (("recall", "apples"), ("verify",), ("replay",)):
        done = store(*verb, "--json")
        assert done.code == 1
        assert done.document["error"]["kind"] == "LogBehindMark"
        assert (done.document["error"]["log"], done.document["error"]["position"]) == ("memory", 2)


# ---- for people, for pipes and for programs


def test_an_error_is_one_line_and_a_document(store: Tally) -> None:
    """An error is one line on standard error; with --json it is a document on standard output too."""
    plain, document = store("get", "abcd"), store("get", "abcd", "--json")
    message = "There is no memory abcd. Look for its id with `tallystick recall`."
    assert (plain.out, plain.err) == ("", f"tallystick: {message}\n")
    assert document.err == plain.err
    assert document.document == {"error": {"kind": "NotFound", "message": message, "log": None, "position": None}}


def test_debug_shows_the_traceback(store: Tally) -> None:
    """--debug lets a known error through with its traceback; without it a programming error still shows its own."""
    done = shell("get", "abcd", "--debug")
    assert done.returncode == 1
    assert b"Traceback" in done.stderr


def test_a_programming_error_is_not_hidden(store: Tally, monkeypatch: Any) -> None:
    """An error that is not one of ours is not dressed up as one."""

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Memory, "status", broken)
    with pytest.raises(ZeroDivisionError):
        store("status")


def test_a_reader_that_leaves_early_is_no_error(store: Tally, project: Path) -> None:
    """`tallystick get ID | head -1` shows no traceback."""
    identifier = store("store", "-", "--json", text="line\n" * 100_000).document["id"]
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*PROGRAM, "get", identifier], stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert done.stderr == b""


def test_what_a_terminal_would_obey_is_written_out(store: Tally) -> None:
    """Escape sequences and marks that turn text around are shown, not sent, wherever a text is printed."""
    text = "red \x1b[31m alert \u202e back"
    identifier = stored(store, text)
    receipt = store("recall", "red alert", "--json").document["receipt"]
    for verb in (("get", identifier), ("recall", "red alert"), ("history", identifier), ("why", receipt)):
        shown = store(*verb).out
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        assert "\\x1b[31m alert \\u202e back" in shown
    assert store("get", identifier, "--json").document["text"] == text


def test_a_terminal_gets_colours_unless_it_wants_none(store: Tally, monkeypatch: Any) -> None:
    """Tables are fitted and coloured on a terminal; NO_COLOR is respected."""
    stored(store, "apples " * 60)
    coloured, plain = (on_a_terminal(monkeypatch, no_color) for no_color in (False, True))
    assert re.search(rb"\x1b\[[\d;]*3\dm", coloured)
    assert not re.search(rb"\x1b\[[\d;]*3\dm", plain)
    lines = [line for line in coloured.decode().splitlines() if "apples" in line]
    assert lines
    assert all("…" in line for line in lines)


def on_a_terminal(monkeypatch: Any, no_color: bool) -> bytes:
    """What recall and status send to a terminal of 80 columns."""
    pty = pytest.importorskip("pty", reason="a terminal can be had on Unix only")
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80"} | ({"NO_COLOR": "1"} if no_color else {})
    shown = b""
    for arguments in (["recall", "apples"], ["status"]):
        controller, terminal = pty.openpty()
        done = subprocess.Popen([*PROGRAM, *arguments], stdout=terminal, stdin=subprocess.DEVNULL, env=environment)
        os.close(terminal)
        shown += read_all(controller)
        os.close(controller)
        assert done.wait() == 0
    return shown


def read_all(descriptor: int) -> bytes:
    """Everything a terminal is sent until nobody writes to it any more."""
    shown = b""
    try:
        while chunk := os.read(descriptor, 65536):
            shown += chunk
    except OSError:  # Linux says so at the end
        pass
    return shown
