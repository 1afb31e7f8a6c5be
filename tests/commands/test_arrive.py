"""Importing: what the file tells comes in as its claim, once; what is known here stands; poison stops nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tallystick import Memory
from tallystick.commands import arrive, rows, session
from tallystick.errors import Busy, NotFound, Refused
from tallystick.events.kinds import Imported
from tallystick.events.log import Append
from tallystick.queries import export

ORIGIN = "ab" * 32


@pytest.fixture
def there() -> Iterator[Memory]:
    """The store that is exported."""
    with Memory.temporary(actor="user:ana") as opened:
        yield opened


@pytest.fixture
def here() -> Iterator[Memory]:
    """The store that is imported into; at the end all of it verifies."""
    with Memory.temporary(actor="user:mover") as opened:
        yield opened
        opened.verify(views=True)


def stored(number: int, text: object = "A text", **fields: Any) -> dict[str, Any]:
    """A row of a memory that was stored."""
    event = {
        "event": "memory.stored", "schema": 1, "id": f"{number:032x}", "at": "2026-05-08T13:56:00.000001Z",
        "actor": "user:ana", "namespace": "default", "text": text,
    }  # fmt: skip
    return {"memory": f"{ORIGIN}/{number:032x}", "events": [{**event, **fields}]}


def happened(row: dict[str, Any], number: int, what: str, /, **fields: Any) -> dict[str, Any]:
    """The row, and something that happened then."""
    event = {"event": f"memory.{what}", "schema": 1, "id": f"{number:032x}", "at": "2026-05-09T00:00:00Z", "actor": "a"}
    return {**row, "events": [*row["events"], {**event, **fields}]}


def write(folder: Path, *lines: object, name: str = "in.jsonl") -> Path:
    """An export file of these rows; bytes are written as they are."""
    head = {"tallystick": "export", "version": 1, "log": ORIGIN}
    written = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    path = folder / name
    path.write_bytes(b"\n".join([json.dumps(head).encode(), *written, json.dumps({"end": len(lines)}).encode(), b""]))
    return path


def only(memory: Memory) -> str:
    """The id of the one memory there is."""
    (stream,) = {logged.header.stream for logged in memory.events()}
    return stream.hex()


def reasons(path: Path) -> dict[int, str]:
    """Why which lines were refused."""
    refused = [json.loads(line) for line in (path.parent / f"{path.name}.rejected.jsonl").read_text().splitlines()]
    return {each["line"]: each["reason"] for each in refused}


# ---- who said what


def test_nobody_here_is_said_to_have_said_what_a_file_tells(here: Memory, tmp_path: Path) -> None:
    """The importer acted, on record; who the file names, as which source, is kept as the file's claim."""
    row = stored(1, actor="user:boss", source="human", trust="high", via={"user": "boss"}, author="Boss")
    row = happened(row, 2, "revised", source="human", trust="high", actor="user:boss", importance=1.0)
    here.import_(write(tmp_path, row))
    record = here.get(only(here))
    assert (record.stored.actor, record.stored.source, record.stored.trust) == ("user:mover", "imported", None)
    assert record.stored.via["file"] == "in.jsonl"
    assert "boss" not in record.stored.via.values()
    assert record.imported is not None
    assert (record.imported.actor, record.imported.source) == ("user:boss", "human")
    assert (record.imported.origin.hex(), record.imported.memory.hex()) == (ORIGIN, f"{1:032x}")
    assert {row.actor for row in here.log() if row.log == "memory" and row.kind == "memory.imported"} == {"user:mover"}
    assert (record.stored.author, record.stored.importance) == ("Boss", 1.0)
    assert record.recorded_at.isoformat() == "2026-05-08T13:56:00.000001+00:00"


def test_what_is_here_is_no_file_s_to_change(here: Memory, tmp_path: Path) -> None:
    """A row of a memory that began here changes nothing, whatever it tells."""
    mine = here.store("Mine", key="k")
    path = tmp_path / "mine.jsonl"
    here.export(path)
    head, row, end = (json.loads(line) for line in path.read_bytes().splitlines())
    forged = happened(row, 7, "forgotten")
    path.write_text("\n".join(json.dumps(each) for each in (head, forged, end)) + "\n")
    assert here.import_(path).known == 1
    assert here.get(mine.id).status == "current"


def test_the_text_and_key_held_here_stand(here: Memory, tmp_path: Path) -> None:
    """What comes in with a text or a key that a memory here holds arrives superseded by that one, with all its past."""
    text, key = here.store("The same text"), here.store("Company A", key="employer")
    path = write(tmp_path, stored(1, "The same text "), stored(2, "Company B", key="employer"))
    assert here.import_(path).new == 2
    came = [logged.header.stream.hex() for logged in here.events() if isinstance(logged.event, Imported)]
    by = {record.superseded_by and record.superseded_by.hex() for record in map(here.get, came)}
    assert by == {text.id, key.id}
    assert {hit.id for hit in here.recall("company same text")} == {text.id, key.id}


# ---- once


def test_a_second_import_changes_nothing(there: Memory, here: Memory, tmp_path: Path) -> None:
    """The same file again, or another export of the same memories, adds no event."""
    there.store("One")
    there.store_conversation(["Two", "Three"], thread="s1")
    for name in ("first", "second"):
        there.export(tmp_path / name)
    assert here.import_(tmp_path / "first") == (3, 0, 0, 0, None)
    size = here.status().logs["memory"]
    assert here.import_(tmp_path / "first") == here.import_(tmp_path / "second") == (0, 0, 3, 0, None)
    assert here.status().logs["memory"] == size


def test_what_was_done_there_under_a_command_id_is_done(there: Memory, here: Memory, tmp_path: Path) -> None:
    """A conversation that was stored there and came in is not stored again here, nor is any command repeated."""
    turns = ["Hello", "Good evening"]
    there.store_conversation(turns, thread="s1")
    fact = there.store("A fact", command_id="c1")
    there.store("A fact", command_id="c2")
    there.revise(fact.id, text="Another fact", command_id="c3")
    there.export(tmp_path / "out")
    here.import_(tmp_path / "out")
    assert [(came.status, came.repeated) for came in here.store_conversation(turns, thread="s1")] == [
        ("stored", True), ("stored", True),
    ]  # fmt: skip
    assert here.store("A fact", command_id="c1")[::4] == ("stored", True)
    id_ = here.store("A fact", command_id="c1").id
    assert here.revise(id_, text="Another fact", command_id="c3")[::4] == ("revised", True)
    with pytest.raises(Refused, match="used for another text"):
        here.store("Something else", command_id="c1")


def test_what_was_forgotten_here_stays_so(there: Memory, here: Memory, tmp_path: Path) -> None:
    """An import that says it is current brings nothing back that this store has forgotten since."""
    secret = there.store("The old office is in Lisbon")
    there.export(tmp_path / "out")
    here.import_(tmp_path / "out")
    here.forget(only(here))
    assert here.import_(tmp_path / "out").known == 1
    there.store("The old office is in Lisbon")
    there.export(tmp_path / "newer")
    newer = here.import_(tmp_path / "newer")
    assert (newer.refused, newer.updated) == (1, 0)
    assert "changed there and here" in reasons(tmp_path / "newer")[2]
    assert not here.recall("where is the old office?")
    there.forget(secret.id)
    there.export(tmp_path / "own")
    there.import_(tmp_path / "out")
    assert not there.recall("where is the old office?")


def test_a_newer_export_adds_what_has_happened_since(there: Memory, here: Memory, tmp_path: Path) -> None:
    """Revisions, tombstones and newer values of a key follow; claims on texts and keys with them."""
    kept, gone = there.store("First version"), there.store("To be forgotten")
    there.store("Company A", key="employer")
    there.export(tmp_path / "out")
    here.import_(tmp_path / "out")
    there.revise(kept.id, text="Second version")
    there.forget(gone.id)
    there.store("Company B", key="employer")
    there.export(tmp_path / "out")
    assert here.import_(tmp_path / "out") == (1, 3, 0, 0, None)
    assert {hit.text for hit in here.recall("version company forgotten")} == {"Second version", "Company B"}
    assert here.store("First version").status == "stored"
    assert here.store("Second version").status == "reinforced"
    assert here.store("Company C", key="employer").status == "superseded"


def test_a_key_goes_from_one_to_another_in_one_import(there: Memory, here: Memory, tmp_path: Path) -> None:
    """What one memory gives up in a newer export another may take in it, though it stands before it there."""
    old = there.store("Company A", key="employer")
    there.forget(old.id)
    new = there.store("Company B", key="employer")
    there.export(tmp_path / "out")
    here.import_(tmp_path / "out")
    there.forget(new.id)
    there.restore(old.id)
    there.export(tmp_path / "out")
    assert here.import_(tmp_path / "out") == (0, 2, 0, 0, None)
    assert [hit.text for hit in here.recall("company")] == ["Company A"]


def test_two_imports_at_once_are_as_one(here: Memory, tmp_path: Path) -> None:
    """Threads and processes that import the same file bring each memory in once."""
    path = write(tmp_path, *(stored(n, f"Text {n}") for n in range(1, 40)))
    others = [write(tmp_path, *(stored(n, f"Text {n}") for n in range(1, 40)), name=f"in{n}") for n in range(3)]
    with ThreadPoolExecutor(3) as pool:
        arrivals = list(pool.map(here.import_, others))
    assert sum(each.new for each in arrivals) == here.import_(path).known == 39


def test_pins_that_are_too_much_are_refused(here: Memory, tmp_path: Path) -> None:
    """What comes in pinned counts with what is pinned here, and with what comes in beside it."""
    here.pin(here.store("x" * 3000).id)
    pinned = [happened(stored(n, str(n) * 3000), n + 10, "pinned", on=True) for n in (1, 2)]
    path = write(tmp_path, *pinned)
    assert here.import_(path)[:4] == (1, 0, 0, 1)
    assert "bytes would be pinned" in reasons(path)[3]


# ---- poison

DEEP = b'{"memory":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
POISON: dict[str, tuple[object, str]] = {
    "no JSON": (b'{"memory": ', "not JSON"),
    "no UTF-8": (b'{"memory": "\xff"}', "not JSON in UTF-8"),
    "no object": (b"[1]", "not a JSON object"),
    "NaN": (json.dumps(stored(1, importance=float("nan"))).encode(), "NaN is no number"),
    "a name twice": (b'{"memory": "a", "memory": "b", "events": []}', "twice"),
    "too deep": (DEEP, "nested too deep"),
    "huge number": (b'{"memory": ' + b"9" * 5000 + b"}", "not JSON"),
    "no events": ({"memory": f"{ORIGIN}/{1:032x}", "events": []}, "no list of events"),
    "unknown field of the row": ({**stored(1), "extra": 1}, "'extra' is unknown"),
    "no memory": ({"events": []}, "'memory' is missing"),
    "no name": ({**stored(1), "memory": "1"}, "64 hexadecimal digits"),
    "name in capitals": ({**stored(1), "memory": f"{ORIGIN.upper()}/{1:032x}"}, "in lower case"),
    "event is no object": ({**stored(1), "events": [1]}, "Event 1 of 1: it is not a JSON object"),
    "unknown field": (stored(1, colour="red"), "'colour' is not a field of memory.stored"),
    "nonce": (stored(1, nonce="00" * 16), "'nonce' is not a field"),
    "unknown kind": (stored(1, event="log.created"), "no event of a memory's life"),
    "kind of another type": (stored(1, event=["memory.stored"]), "no event of a memory's life"),
    "newer schema": (stored(1, schema=2), "no schema 2"),
    "naive time": (stored(1, at="2026-05-08T13:56:00"), "no time zone"),
    "naive other time": (stored(1, occurred_at="2026-05-08"), "no time zone"),
    "time that is none": (stored(1, occurred_at=5), "is not a time"),
    "no time": (stored(1, at=None), "does not say when"),
    "bad namespace": (stored(1, namespace="a//b"), "namespace 'a//b' is not allowed"),
    "lone surrogate in the text": (json.dumps(stored(1, "\ud800")).encode(), "unicode string"),
    "lone surrogate in a tag": (stored(1, tags=["\udfff"]), "tags"),
    "lone surrogate in metadata": (stored(1, metadata={"a": {"b": "\ud800"}}), "surrogate"),
    "lone surrogate in the namespace": (stored(1, namespace="\ud800"), "namespace"),
    "empty text": (stored(1, " "), "no text to store"),
    "text of another type": (stored(1, 5), "text"),
    "text too large": (stored(1, "x" * 1_048_577), "at most 1,048,576"),
    "revision too large": (happened(stored(1), 2, "revised", text="x" * 1_048_577), "Event 2 of 2: The text has"),
    "number too large": (stored(1, metadata={"a": 2**64}), "can't be kept"),
    "zero byte": (stored(1, metadata={"a": "\0"}), "can't be kept"),
    "nested too deep to keep": (stored(1, metadata={"a": json.loads("[" * 40 + "]" * 40)}), "nested"),
    "no beginning": ({**stored(1), "events": happened(stored(1), 2, "forgotten")["events"][1:]}, "begins with one"),
    "two beginnings": ({**stored(1), "events": [*stored(1)["events"], *stored(2)["events"]]}, "begins with one"),
    "the same event twice": ({**stored(1), "events": stored(1)["events"] * 2}, "id of an earlier one"),
    "a link to nothing": (happened(stored(1), 2, "linked", to="x", kind="causes"), "the other memory"),
    "a link to itself": (
        happened(stored(1), 2, "linked", to=f"{ORIGIN}/{1:032x}", kind="causes"), "Event 2 of 2: the memory points to"),
    "superseded by itself": (happened(stored(1), 2, "superseded", by=f"{ORIGIN}/{1:032x}"), "the memory points to"),
    "a revision of nothing": (happened(stored(1), 2, "revised", reason="none"), "it revises nothing"),
    "a field that is always there": (happened(stored(1), 2, "revised", cleared=["kind"]), "kind can't be left without"),
    "a field that is none": (happened(stored(1), 2, "revised", cleared=["colour"]), "colour can't be left without"),
    "hashes that are none": (stored(1, derived_from=["x"]), "derived_from"),
    "hashes that are no list": (stored(1, parents="ab" * 32), "parents is no list"),
}  # fmt: skip


def test_poison_is_refused_and_stops_nothing(here: Memory, tmp_path: Path) -> None:
    """A row that is wrong goes to the file beside it with a reason; the rows around it come in; the file stays."""
    lines = [
        line for n, (poison, _) in enumerate(POISON.values(), 1) for line in (poison, stored(1000 + n, f"Row {n}"))
    ]
    path = write(tmp_path, *lines)
    before = path.read_bytes()
    arrivals = here.import_(path)
    assert arrivals == (len(POISON), 0, 0, len(POISON), tmp_path / "in.jsonl.rejected.jsonl")
    found = reasons(path)
    for line, (name, (_, reason)) in enumerate(POISON.items(), 1):
        assert reason in found[2 * line], name
    assert here.import_(path)[:4] == (0, 0, len(POISON), len(POISON))
    assert path.read_bytes() == before


def test_a_line_that_is_too_long_is_not_read(here: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line costs more memory than a row may have, and the next one is read from its beginning."""
    monkeypatch.setattr(rows, "MAX_ROW_BYTES", 4096)
    monkeypatch.setattr(rows, "CHUNK", 1000)
    path = write(tmp_path, stored(1, "x" * 9000), stored(2), b"y" * 5000)
    assert here.import_(path)[:4] == (1, 0, 0, 2)
    assert all("The line has more than" in reason for reason in reasons(path).values())


def test_another_history_under_the_same_name_is_refused(here: Memory, tmp_path: Path) -> None:
    """A file can't put other words into a memory that another file brought in."""
    here.import_(write(tmp_path, stored(1, "The truth")))
    forged = stored(1, "A lie")
    forged["events"][0]["id"] = f"{5:032x}"
    path = write(tmp_path, forged)
    assert here.import_(path).refused == 1
    assert "Another history" in reasons(path)[2]
    assert here.get(only(here)).text == "The truth"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"{}\n", "no export"),
        (b"hello\n", "not JSON"),
        (b'{"tallystick":"export","version":2,"log":""}\n', "Upgrade"),
        (b'{"tallystick":"export","version":1,"log":"x"}\n', "log is 'x'"),
    ],
)
def test_what_is_no_export_is_refused_whole(here: Memory, tmp_path: Path, content: bytes, message: str) -> None:
    """A file whose first line is not that of an export is not read any further."""
    path = tmp_path / "in.jsonl"
    path.write_bytes(content)
    with pytest.raises(Refused, match=message):
        here.import_(path)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["in.jsonl"]


def test_a_file_that_is_not_there_is_named(here: Memory, tmp_path: Path) -> None:
    """Who misspells a name learns it; so does who names a folder."""
    for path in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(NotFound, match="There is no file"):
            here.import_(path)


def test_a_file_that_was_cut_off_is_told(there: Memory, here: Memory, tmp_path: Path) -> None:
    """What is whole comes in, and that there was more is not passed over."""
    for n in range(5):
        there.store(f"Text {n}")
    whole = tmp_path / "whole"
    there.export(whole)
    cut = tmp_path / "cut"
    cut.write_bytes(b"\n".join(whole.read_bytes().split(b"\n")[:4]) + b"\n")
    arrivals = here.import_(cut)
    assert (arrivals.new, arrivals.refused) == (3, 1)
    assert "not whole" in reasons(cut)[4]
    assert here.import_(whole) == (2, 0, 3, 0, None)


def test_refusals_of_before_are_gone(here: Memory, tmp_path: Path) -> None:
    """A file of refusals is of the last import only."""
    path = write(tmp_path, stored(1), b"poison")
    assert here.import_(path).refused == 1
    write(tmp_path, stored(1))
    assert here.import_(path).refusals is None
    assert sorted(each.name for each in tmp_path.iterdir()) == ["in.jsonl"]


def test_ten_thousand_rows_some_of_them_poison(here: Memory, tmp_path: Path) -> None:
    """Rows come in by portions, the bad ones are each named, and the views follow."""
    bad: dict[int, Callable[[int], object]] = {
        0: lambda _: b"\x00\xff", 1: lambda n: stored(n, "\ud83d"), 2: lambda n: stored(n, namespace="a b"),
    }  # fmt: skip
    lines = [bad[n // 97 % 3](n) if n % 97 == 0 else stored(n, f"Row {n}") for n in range(1, 10_001)]
    progress: list[int] = []
    path = write(tmp_path, *lines)
    arrivals = here.import_(path, progress=lambda done, _of: progress.append(done))
    assert (arrivals.new, arrivals.refused) == (9_897, 103)
    assert set(reasons(path)) == {n + 1 for n in range(97, 10_001, 97)}
    assert progress == sorted(progress)
    assert len(progress) >= 20
    assert progress[-1] == path.stat().st_size
    assert here.status().memories == {"current": 9_897}


def test_a_long_life_stands_in_several_rows(
    there: Memory, here: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A memory whose events are too much for one row is told in several, and comes in whole."""
    monkeypatch.setattr(export, "ROW_BYTES", 2000)
    monkeypatch.setattr(arrive, "PORTION_BYTES", 5000)
    long = there.store("Version 0")
    for n in range(1, 20):
        there.revise(long.id, text=f"Version {n} " + "x" * 500)
    there.store("Another")
    path = tmp_path / "out"
    assert there.export(path) == 2
    assert len(path.read_bytes().splitlines()) > 5
    first = here.import_(path)
    assert (first.new, first.refused) == (2, 0)
    assert here.import_(path)[:2] == (0, 0)
    assert here.recall("version").hits[0].text.startswith("Version 19 ")
    here.export(tmp_path / "again")
    told = [[json.loads(row) for row in each.read_bytes().splitlines()[1:-1]] for each in (path, tmp_path / "again")]
    assert told[0] == told[1]


def test_lines_without_anything_on_them_are_no_rows(here: Memory, tmp_path: Path) -> None:
    """A file that an editor has been in comes in as it was, and a refusal names the line of the file."""
    path = write(tmp_path, stored(1, "One"), b"", b" \t\r", stored(2, "Two"), b"", b"[1]")
    content = path.read_bytes().replace(b'{"end": 6}', b'{"end": 3}')
    path.write_bytes(content)
    assert here.import_(path)[:4] == (2, 0, 0, 1)
    assert list(reasons(path)) == [7]


def test_news_of_a_memory_whose_text_is_held_here_are_refused(there: Memory, here: Memory, tmp_path: Path) -> None:
    """What came in before stays as it was, and the one of here keeps its text; once that is forgotten it comes in."""
    moved = there.store("First version")
    there.export(tmp_path / "out")
    here.import_(tmp_path / "out")
    own = here.store("Second version")
    there.revise(moved.id, text="Second version")
    there.export(tmp_path / "out")
    assert here.import_(tmp_path / "out")[:4] == (0, 0, 0, 1)
    assert list(reasons(tmp_path / "out").values()) == [
        f"Its text or key is held here by {own.id}. Forget that one, then import it again."
    ]
    assert {hit.text for hit in here.recall("version")} == {"First version", "Second version"}
    here.forget(own.id)
    assert here.import_(tmp_path / "out")[:4] == (0, 1, 0, 0)
    assert [hit.text for hit in here.recall("version")] == ["Second version"]


def overtaken(memory: Memory, monkeypatch: pytest.MonkeyPatch, act: Callable[[Memory], Any], times: int) -> None:
    """Let another opening act so many times, each between a look of an import at the log and its append."""
    log, status = memory._opened.installation.memory, memory.status()
    append = log.append

    def append_and_be_overtaken(request: Append, *, durable: bool = True) -> Any:
        nonlocal times
        if times:
            times -= 1
            with Memory.open(status.store, keys=status.keys, model="none") as other:
                act(other)
        return append(request, durable=durable)

    monkeypatch.setattr(log, "append", append_and_be_overtaken)


def test_what_another_stores_meanwhile_stands(here: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An import that loses a text to another process decides again: the text of here stands, the file's steps back."""
    overtaken(here, monkeypatch, lambda other: other.store("One"), times=1)
    assert here.import_(write(tmp_path, stored(1, "One"), stored(2, "Two")))[:4] == (2, 0, 0, 0)
    assert here.status().memories == {"current": 2, "superseded": 1}
    assert sorted(hit.text for hit in here.recall("one two")) == ["One", "Two"]


def test_an_import_that_others_always_overtake_is_busy(
    here: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gives up after a while, with nothing of the portion written, and can be run again."""
    texts = iter(range(1, 1000))
    monkeypatch.setattr(session, "PATIENCE_SECONDS", 0.2)

    def in_the_way(other: Memory) -> None:
        other.store(f"Text {next(texts)}")

    overtaken(here, monkeypatch, in_the_way, times=999)
    path = write(tmp_path, *(stored(n, f"Text {n}") for n in range(1, 200)))
    with pytest.raises(Busy, match="keep changing the same memories. Try again"):
        here.import_(path)
    assert not [logged for logged in here.events() if isinstance(logged.event, Imported)]
    monkeypatch.undo()
    assert here.import_(path).new == 199


@pytest.mark.parametrize("change", [("revised", {"text": "EVIL"}), ("forgotten", {})], ids=["revised", "forgotten"])
@pytest.mark.parametrize("at_once", [True, False])
def test_a_file_does_not_change_what_it_protects(
    here: Memory, tmp_path: Path, change: tuple[str, dict[str, Any]], *, at_once: bool
) -> None:
    """No store writes that; once the file lifts the protection first, it is what happened."""
    protected = happened(stored(1), 2, "protected", on=True)
    evil = happened(protected, 3, change[0], **change[1])
    if not at_once:
        here.import_(write(tmp_path, protected))
    path = write(tmp_path, evil)
    assert here.import_(path).refused == 1
    assert "while it is protected" in reasons(path)[2]
    lifted = happened(happened(protected, 4, "protected", on=False), 5, change[0], **change[1])
    assert here.import_(write(tmp_path, lifted)).refused == 0
