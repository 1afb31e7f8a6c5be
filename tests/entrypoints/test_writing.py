"""The commands that store and change memories."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from tallystick.commands.revise import FIELDS
from tallystick.commands.store import Store
from tallystick.entrypoints.cli.fields import CHANGED, SHARED, STORED

from .conftest import Tally
from .test_cli import OUTCOME, stored

LEAF = "ab" * 32
EVERYTHING = {
    "--tag": ["a", "b"], "--kind": "fact", "--source": "agent", "--subject": "user:ana", "--importance": "0.9",
    "--confidence": "0.8", "--author": "Ana", "--occurred-at": "2026-01-01T02:00:00+02:00",
    "--valid-from": "2026-01-02T00:00:00Z", "--expires-at": "2999-01-01T00:00:00Z", "--evidence": ["x.md", "y.md"],
    "--label": "internal", "--trust": "high", "--meta": ["x=1", "y=a=b"], "--derived-from": LEAF, "--key": "k",
    "--thread": "t1", "--place": "7", "--command-id": "c1",
}  # fmt: skip
KEPT = {
    "tags": ["a", "b"], "kind": "fact", "source": "agent", "subject": "user:ana", "importance": 0.9, "confidence": 0.8,
    "author": "Ana", "occurred_at": "2026-01-01T00:00:00Z", "valid_from": "2026-01-02T00:00:00Z",
    "expires_at": "2999-01-01T00:00:00Z", "evidence": ["x.md", "y.md"], "label": "internal", "trust": "high",
    "metadata": {"x": "1", "y": "a=b"}, "derived_from": [LEAF], "key": "k", "thread": "t1", "place": 7,
}  # fmt: skip


def arguments(options: dict[str, Any]) -> list[str]:
    """Options and their values, as they are typed."""
    each = [(option, v) for option, value in options.items() for v in (value if isinstance(value, list) else [value])]
    return [part for pair in each for part in pair]


def rows(*given: Any) -> str:
    """JSON lines."""
    return "".join(json.dumps(row) + "\n" for row in given)


def test_store_has_an_option_for_every_field() -> None:
    """What a memory can be stored with from Python, and what a revision can say, the command line offers too."""
    assert {field.name for field in STORED} | {"text", "namespace"} == {f.name for f in dataclasses.fields(Store)}
    assert {field.name for field in CHANGED} | {"text"} == {*FIELDS, "command_id"}
    assert {field.name for field in STORED} - {field.name for field in SHARED} == {
        "key", "supersedes", "thread", "place", "command_id"
    }  # fmt: skip


def test_store_takes_every_field(store: Tally) -> None:
    """What the options say is what the memory has."""
    older = stored(store, "an older text")
    options = EVERYTHING | {"--supersedes": older}
    assert len(options) == len(STORED)
    record = store("get", stored(store, "text", *arguments(options)), "--json").document
    assert {name: record[name] for name in KEPT} == KEPT
    assert store("get", older, "--json").document["superseded_by"] == record["id"]


def test_store_many_says_what_each_line_came_to(store: Tally) -> None:
    """Texts and objects are stored with what they say and what the options say; a refused line ends it with 1."""
    given = rows("one", {"text": "two", "kind": "fact", "metadata": {"n": 2}}, {"txt": "x"}, "one")
    done = store("store-many", "--kind", "note", "--tag", "t", "--json", text=given + "\n")
    assert done.code == 1
    found = done.document["rows"]
    assert [(row["row"], row["outcome"]) for row in found] == [
        (1, "stored"), (2, "stored"), (3, "refused"), (4, "reinforced")
    ]  # fmt: skip
    assert set(found[0]) == OUTCOME | {"row", "reason"}
    assert "txt is not a field" in found[2]["reason"]
    second = store("get", found[1]["id"], "--json").document
    assert (second["kind"], second["tags"], second["metadata"]) == ("fact", ["t"], {"n": 2})
    shown = store("store-many", text=given).out
    assert "refused" in shown
    assert shown.endswith("3 reinforced, 1 refused\n")


def test_store_many_reads_a_file(store: Tally, project: Path) -> None:
    """A file that is named is read; without a refused line it ends with 0. Nothing at all is no error."""
    (project / "rows.jsonl").write_text(rows("one", "two"), encoding="utf-8")
    assert store("store-many", "rows.jsonl").code == 0
    assert store("store-many", "-", text="").out == "there was nothing to store\n"
    assert store("store-many", "nowhere.jsonl").code == 1


@pytest.mark.parametrize("broken", ["{", "3", "null", '{"text": "x", "derived_from": ["zz"]}'])
def test_a_file_that_is_broken_is_not_half_stored(store: Tally, broken: str) -> None:
    """A line that is neither a text nor an object stops the whole of it, and is named."""
    done = store("store-many", text=rows("one") + broken)
    assert (done.code, done.out) == (1, "")
    assert "Line 2" in done.err or "hash" in done.err
    assert store("status", "--json").document["memories"] == {}


def test_many_lines_are_counted_and_the_refused_ones_named(store: Tally) -> None:
    """Of many lines a person sees those that were refused, and how many came to what."""
    given = rows(*(f"text {n}" for n in range(30)), {"text": "last", "source": "nobody"})
    shown = store("store-many", text=given).out.splitlines()
    assert shown[-1] == "30 stored, 1 refused"
    assert [line.split()[:2] for line in shown[1:-2]] == [["31", "refused"]]


def test_a_conversation_is_stored_once(store: Tally) -> None:
    """The turns of a thread have their places; stored again nothing changes; another text in a place is refused."""
    turns = rows({"role": "user", "content": "Where is the office?"}, "In Lisbon.")
    first = store("store-conversation", "--thread", "s1", "--json", text=turns).document["rows"]
    assert [row["outcome"] for row in first] == ["stored", "stored"]
    answer = store("get", first[1]["id"], "--json").document
    assert (answer["thread"], answer["place"], answer["kind"]) == ("s1", 1, "turn")
    assert store("get", first[0]["id"], "--json").document["author"] == "user"
    assert store("store-conversation", "--thread", "s1", text=turns).out.endswith("2 there already\n")
    more = store("store-conversation", "--thread", "s1", "--preceding", "2", "--json", text=rows("Thanks."))
    assert [row["outcome"] for row in more.document["rows"]] == ["stored"]
    assert store("store-conversation", "--thread", "s1", text=rows("Another text.")).code == 1
    assert store("store-conversation", text=turns).code == 2


def test_a_revision_changes_what_it_names(store: Tally) -> None:
    """revise gives fields other values, tags one by one, clears fields, and get says which revision wrote what."""
    identifier = stored(store, "The office is in Porto", "--tag", "city", "--author", "Ana")
    done = store(
        "revise", identifier, "--text", "-", "--add-tag", "moved", "--remove-tag", "city", "--clear", "author",
        "--reason", "they moved", "--if-revision", "0", "--command-id", "r1", "--json",
        text="The office is in Lisbon\n",
    )  # fmt: skip
    assert done.document["outcome"] == "revised"
    record = store("get", identifier, "--json").document
    assert (record["text"], record["tags"], record["author"]) == ("The office is in Lisbon", ["moved"], None)
    assert record["provenance"] == {"text": 1, "tags": 1, "author": 1}
    assert record["revised_at"] is not None
    assert "text by revision 1" in store("get", identifier).out
    assert store("revise", identifier, "--importance", "0.1", "--if-revision", "0").code == 1


def test_a_revision_takes_every_field(store: Tally) -> None:
    """Every field that a revision can give has an option, and gets the value given."""
    options = {o: v for o, v in EVERYTHING.items() if o not in ("--tag", "--key", "--thread", "--place")}
    identifier = stored(store, "text")
    store("revise", identifier, *arguments(options))
    record = store("get", identifier, "--json").document
    changed = {name: value for name, value in KEPT.items() if name not in ("tags", "key", "thread", "place")}
    assert {name: record[name] for name in changed} == changed


def test_links_come_and_go(store: Tally) -> None:
    """link points one memory to another, get shows it, unlink takes it away."""
    cause, effect = stored(store, "it rained"), stored(store, "the match was off")
    assert store("link", cause[:8], effect[:8], "--kind", "causes", "--json").document["outcome"] == "linked"
    assert store("get", cause, "--json").document["links"] == [{"kind": "causes", "to": effect}]
    assert f"causes {effect[:12]}" in store("get", cause).out
    assert store("unlink", cause, effect).code == 1
    assert store("unlink", cause, effect, "--kind", "causes").code == 0
    assert store("get", cause, "--json").document["links"] == []


def test_protection_and_pins_are_put_on_and_lifted(store: Tally) -> None:
    """A protected memory is not forgotten; both show in get; --off takes both back."""
    identifier = stored(store, "Answer in French")
    assert store("pin", identifier).code == store("protect", identifier, "--reason", "rule").code == 0
    record = store("get", identifier, "--json").document
    assert (record["pinned"], record["protected"]) == (True, True)
    assert "nothing changes it" in store("get", identifier).out
    refused = store("forget", identifier)
    assert refused.code == 1
    assert "protect --off" in refused.err
    assert store("protect", identifier, "--off", "--json").document["outcome"] == "unprotected"
    assert store("pin", identifier, "--off", "--json").document["outcome"] == "unpinned"
    assert store("forget", identifier).code == 0


def test_what_was_used_is_on_record(store: Tally) -> None:
    """used names hits of a recall, and has a receipt of its own; what was no hit is refused."""
    identifier, other = stored(store, "red apples"), stored(store, "a pear")
    receipt = store("recall", "apples", "--json").document["receipt"]
    assert set(store("used", receipt, identifier[:8], "--json").document) == {"receipt"}
    assert store("used", receipt, other).code == 1
    assert store("used", receipt).code == 2


@pytest.mark.parametrize("verb", ["forget", "restore", "link", "unlink", "protect", "pin", "revise"])
def test_a_command_id_makes_repetition_harmless(store: Tally, verb: str) -> None:
    """Every command that changes a memory may be repeated under its command id: nothing more happens."""
    identifier, other = stored(store, "apples"), stored(store, "pears")
    before = {"restore": ["forget", identifier], "unlink": ["link", identifier, other]}.get(verb)
    if before:
        store(*before)
    more = {"link": [other], "unlink": [other], "revise": ["--importance", "0.1"]}.get(verb, [])
    first, again = (store(verb, identifier, *more, "--command-id", "c", "--json").document for _ in range(2))
    assert again == {**first, "repeated": True}
    assert "carried out before" in store(verb, identifier, *more, "--command-id", "c").out


def test_history_says_what_each_event_changed(store: Tally) -> None:
    """Whatever happened to a memory, its history says what in words: values, links, on and off, reasons."""
    identifier, other = stored(store, "apples"), stored(store, "pears")
    store("revise", identifier, "--importance", "0.1", "--add-tag", "fruit", "--add-tag", "red")
    store("link", identifier, other, "--kind", "causes")
    store("protect", identifier, "--reason", "rule")
    store("protect", identifier, "--off")
    shown = [line.split("  ")[-1].strip() for line in store("history", identifier).out.splitlines()[1:]]
    assert shown == [
        "apples", "tags added fruit, red; importance 0.1", f"to {other[:12]}; kind causes", "on; rule", "off"
    ]  # fmt: skip


def test_a_revision_of_nothing_is_wrong_usage(store: Tally) -> None:
    """revise without a field to change ends with 2, and says what to give."""
    done = store("revise", stored(store, "apples"), "--reason", "none")
    assert done.code == 2
    assert "--text" in done.err


def test_a_word_that_is_none_is_explained(store: Tally) -> None:
    """Where a field takes one word, the message says what a word is, and shows no pattern."""
    done = store("store", "apples", "--kind", "My Kind")
    assert done.code == 1
    assert "one word of small letters" in done.err
    assert "^" not in done.err
