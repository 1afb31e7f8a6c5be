"""docs/log-format.md is true of our code and its vectors, and is enough for a verifier that imports nothing of ours."""

from __future__ import annotations

import ast
import json
import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tallystick import Memory
from tallystick.errors import LogDamaged, TallystickError
from tallystick.events.canonical import decode_body, encode_body
from tallystick.events.driver import Datastore, File
from tallystick.events.installation import Installation
from tallystick.events.key_places import Directory
from tallystick.events.keys import load_keys
from tallystick.events.kinds import Event, body_of
from tallystick.events.signing import SMALL_ORDER_KEYS
from tallystick.queries.verify import verify

from ..events.test_kinds import WHOLE
from . import independent, vectors

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "log-format.md"
VECTORS: dict[str, Any] = json.loads(vectors.FILE.read_text(encoding="utf-8"))
DEPTHS = ("structure", "full", "secrets")
CASES = [pytest.param(case, id=case["name"]) for case in VECTORS["refused"]]
KEYED_BY = {"checkpoint": 2}  # columns of the primary key, where it is more than one
SLOT = 8192

# What our verifier says where a step of the page does not hold.
SAID = {
    "setting": "setting 'format' of log.db is not what was written",
    "genesis": "not begun by the root key",
    "missing": "entry is missing|payload is gone",
    "entry": "it is not an entry",
    "place": "belongs to another place or log",
    "columns": "index columns are not those",
    "payload": "payload is not the one that was signed",
    "root": "not the entry that later ones were signed over",
    "clock": "runs backwards",
    "checkpoint": "checkpoint of",
    "mark": "has 4 entries and this installation has verified 5|not the one this installation verified",
    "signature": "not signed by the key in force",
    "seal": "were changed, moved, or sealed with another key",
    "commitment": "opens, but to another text",
    "body": "not in canonical form|is not one: |holds U.0000",
    "stream": "stream's id is not that of its first event",
    "data_key": "data key there is missing or not accounted for",
    "claim": "claim .* is not held",
    "claim_seal": "not those that were sealed at size 5",
}

Tables = dict[str, list[independent.Row]]


class Given:
    """What a verifier is given: the vectors, with a change where there is one."""

    def __init__(self, change: dict[str, Any] | None = None) -> None:
        change = dict(change or {})
        without = change.pop("without", {})
        slots = change.pop("mark", VECTORS["mark"])
        self.mark = bytes.fromhex(slots["0"]).ljust(SLOT, b"\0") + bytes.fromhex(slots["8192"])
        self.root = bytes.fromhex(VECTORS["root"])
        self.secrets = {name: bytes.fromhex(secret) for name, secret in VECTORS["secrets"].items()}
        self.tables: Tables = {}
        for table, rows in VECTORS["tables"].items():
            keys = KEYED_BY.get(table, 1)
            found = {tuple(row[:keys]): row for row in rows}
            found |= {tuple(row[:keys]): row for row in change.pop(table, [])}
            gone = [tuple(key) for key in without.get(table, [])]
            self.tables[table] = [_row(table, row) for key, row in found.items() if key not in gone]
        assert not change

    def independently(self, depth: str) -> dict[str, tuple[int, bytes]]:
        """What the verifier written from the page says."""
        if depth != "secrets":
            return independent.verify(independent.Store(self.root, self.tables), depth)
        secrets = independent.Secrets(self.secrets["kek"], self.secrets["index"])
        return independent.verify(independent.Store(self.root, self.tables, self.mark, secrets), "full")

    def lay_down(self, folder: Path, schema: list[str]) -> LaidDown:
        """The same as a store and its keys, for our verifier."""
        (folder / "keys").mkdir()
        for name, secret in {**self.secrets, "views": bytes(32)}.items():
            (folder / "keys" / f"{name}.key").write_text(secret.hex() + "\n", encoding="ascii")
        (folder / "keys" / "mark").write_bytes(self.mark)
        datastore = Datastore(File(folder / "log.db", LogDamaged, durable=False))
        with datastore.transaction(commit=True) as cursor:
            for statement in schema:
                cursor.execute(statement)
            for table, rows in self.tables.items():
                for row in rows:
                    cursor.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
        datastore.close()
        return LaidDown(folder, folder / "keys", self.root)


class LaidDown(NamedTuple):
    """A store on the disk, and what is needed to verify it."""

    store: Path
    keys: Path
    root: bytes

    def by_ours(self, depth: str) -> dict[str, tuple[int, bytes]]:
        """What our verifier says of it."""
        known = (None, self.keys) if depth == "secrets" else (self.root, None)
        installation = Installation.audit(self.store, *known)
        try:
            report = verify(installation, depth="structure" if depth == "structure" else "full")
        finally:
            installation.abandon()
        return {log.log: (log.size, bytes.fromhex(log.root)) for log in report.logs}


def _row(table: str, row: list[Any]) -> independent.Row:
    """A row with its bytes: all text is hexadecimal, but for the name of a setting."""
    name, cells = (row[:1], row[1:]) if table == "setting" else ([], row)
    return (*name, *(bytes.fromhex(cell) if type(cell) is str else cell for cell in cells))


def _rows(file: Path, statement: str) -> list[independent.Row]:
    datastore = Datastore(File(file, LogDamaged, read_only=True))
    try:
        return datastore.rows(statement)
    finally:
        datastore.close()


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The statements that make the tables of a store."""
    folder = tmp_path_factory.mktemp("schema")
    Installation.create(folder / "store", folder / "keys").abandon()
    found = _rows(folder / "store" / "log.db", "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid")
    return [statement for (statement,) in found]


def import_into(memory: Memory, export: Path) -> None:
    """Bring in memories of another store, and export all there is."""
    with Memory.temporary(namespace="org/acme") as other:
        moved = [other.store(text, command_id=f"c-{n}").id for n, text in enumerate(("note 3", "note 9"), 8)]
        other.revise(moved[1], text="note 10", command_id="c-1")
        other.forget(other.store("note 11", command_id="c-11").id)
        other.export(export)
    assert memory.import_(export).new == 3
    memory.export(export)


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a store, and its keys, in which everything was done that a Memory can do."""
    folder = tmp_path_factory.mktemp("used")
    with Memory.open(folder / "store", keys=folder / "keys", model="none", namespace="org/acme") as memory:
        ids = [memory.store(f"note {n} \u2003", tags=["a", "b"], command_id=f"c-{n}").id for n in range(5)]
        memory.store("note 1")
        memory.store("Company A", key="employer", metadata={"since": [2019, 0.5, None]})
        memory.store("Company B", key="employer", subject="user:ana", thread="t", place=1)
        memory.forget(ids[0], reason="outdated")
        memory.forget(ids[1])
        memory.restore(ids[1])
        memory.revise(ids[2], text="note 2, rather", subject="user:ana", tags_removed=["a"], command_id="r-1")
        memory.revise(ids[3], subject="user:ana")
        memory.revise(ids[3], cleared=["subject"], command_id="r-2")
        memory.link(ids[2], ids[3], kind="causes", command_id="l-1")
        memory.unlink(ids[2], ids[3], kind="causes")
        memory.protect(ids[4])
        memory.pin(ids[4])
        memory.used(memory.recall("note").receipt or "", [ids[4]])
        memory.get(ids[2])
        memory.search(tags=["b"], limit=2)
        memory.store("Company C", key="employer", namespace="org/old")
        memory.store("note 4", namespace="org/old", thread="t", command_id="o-1")
        memory.merge("org/old", "org/acme")
        memory.rename("org/acme", "org/acme2")
        memory.store("note 4 \u2003", namespace="org/acme", command_id="o-2")
        memory.rename("org/acme2", "org/acme")
        memory.rebuild(reason="to have one")
        import_into(memory, folder / "export.jsonl")
    yield folder


def test_the_independent_verifier_imports_nothing_of_ours() -> None:
    """It would otherwise share our mistakes."""
    tree = ast.parse(Path(independent.__file__).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "." for node in imports if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} - set(sys.stdlib_module_names) == {"msgpack", "nacl"}


@pytest.mark.parametrize("event", WHOLE.values(), ids=lambda event: event.KIND)
def test_the_page_describes_each_kind(event: Event) -> None:
    """A body with every field filled is one by the tables of the page, and with any other field or type it is not."""
    body = decode_body(encode_body(body_of(event)))
    assert independent.fits(event.KIND, event.SCHEMA, body)
    assert not independent.fits(event.KIND, event.SCHEMA, {**body, "more": None})
    for name in body:
        assert not independent.fits(event.KIND, event.SCHEMA, {**body, name: [b""]}), name


def test_the_section_of_events_is_fresh() -> None:
    """The page lists the events as the registry has them. Refresh it: python -m tools.log_format --write."""
    page = PAGE.read_text(encoding="utf-8")
    fresh = runpy.run_path(str(ROOT / "tools" / "log_format.py"))["refreshed"](page)
    assert page == fresh, "docs/log-format.md does not list the events: run `python -m tools.log_format --write`"


def test_our_code_makes_the_vectors() -> None:
    """The same keys, nonces, times and events give the same bytes, of what holds and of what must be refused."""
    assert vectors.text() == vectors.FILE.read_text(encoding="utf-8")


def test_the_page_takes_an_entry_of_the_vectors_apart() -> None:
    """The example of the page is the entry in the vectors, byte for byte."""
    page = PAGE.read_text(encoding="utf-8")
    assert vectors.with_example(page) == page, "run `python -m tests.docs.vectors --write`"


def test_the_vectors_verify(tmp_path: Path, schema: list[str]) -> None:
    """Ours and the one written from the page accept the store of the vectors, and come to the roots it has."""
    after = {working["log"]: bytes.fromhex(working["root_after"]) for working in VECTORS["workings"]}
    laid_down = Given().lay_down(tmp_path, schema)
    for depth in DEPTHS:
        found = Given().independently(depth)
        assert found == laid_down.by_ours(depth) == {"memory": (5, after["memory"]), "access": (2, after["access"])}


@pytest.mark.parametrize("case", CASES)
def test_a_change_is_refused_by_the_step_that_sees_it(case: dict[str, Any], tmp_path: Path, schema: list[str]) -> None:
    """Both refuse a change for the same reason at the depths that can see it, and accept it at the others."""
    given = Given(case["change"])
    laid_down = given.lay_down(tmp_path, schema)
    for depth in DEPTHS:
        if depth in case["depths"]:
            with pytest.raises(independent.Refused, match=f"^{case['step']}$"):
                given.independently(depth)
            with pytest.raises(TallystickError, match=SAID[case["step"]]):
                laid_down.by_ours(depth)
        else:
            assert given.independently(depth) == laid_down.by_ours(depth)


def test_every_step_of_the_page_refuses_something() -> None:
    """No step of the verification is without a change that it alone refuses."""
    part = PAGE.read_text(encoding="utf-8").split("\n## Verification\n")[1].split("\n## ")[0]
    named = {line.split("`")[1] for line in part.splitlines() if line.startswith("| `")}
    assert named == {case["step"] for case in VECTORS["refused"]} == set(SAID)


def test_another_root_key_is_refused(tmp_path: Path, schema: list[str]) -> None:
    """A whole and well-signed store is not the one whose root key was pinned."""
    given = Given()
    given.root = bytes.fromhex(VECTORS["workings"][0]["leaf"])
    laid_down = given.lay_down(tmp_path, schema)
    for depth in ("structure", "full"):
        with pytest.raises(independent.Refused, match="genesis"):
            given.independently(depth)
        with pytest.raises(TallystickError, match=SAID["genesis"]):
            laid_down.by_ours(depth)


@pytest.mark.parametrize("torn", [0, SLOT])
def test_a_torn_slot_of_the_mark_leaves_the_other(torn: int, tmp_path: Path, schema: list[str]) -> None:
    """Whichever slot a crash tore, the mark still says something, and the log is not behind it."""
    given = Given()
    given.mark = given.mark[:torn] + bytes(20) + given.mark[torn + 20 :]
    assert given.independently("secrets") == given.lay_down(tmp_path, schema).by_ours("secrets")


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_store_that_was_used_verifies_by_the_page(depth: str, used: Path) -> None:
    """What a Memory writes is what the page says, and its size and root are those that we report."""
    keys = load_keys(Directory(used / "keys", named=True))
    given = Given()
    given.root, given.mark = keys.root.public, (used / "keys" / "mark").read_bytes()
    given.secrets = {"kek": keys.kek, "index": keys.index}
    given.tables = {table: _rows(used / "store" / "log.db", f"SELECT * FROM {table}") for table in given.tables}
    assert given.independently(depth) == LaidDown(used / "store", used / "keys", given.root).by_ours(depth)


def test_the_page_names_every_table_and_column(used: Path) -> None:
    """A verifier finds every column of log.db in the page, and no more."""
    part = PAGE.read_text(encoding="utf-8").split("\n## Tables of log.db\n")[1].split("\n## ")[0]
    named: dict[str, list[str]] = {}
    for table, column in re.findall(r"^\| ?(`\w+`)? \| `(\w+)` \|", part, re.MULTILINE):
        named.setdefault(table.strip("`") or list(named)[-1], []).append(column)
    query = "SELECT t.name, c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c WHERE t.type = 'table'"
    found: dict[str, list[str]] = {}
    for table, column in _rows(used / "store" / "log.db", query):
        found.setdefault(table, []).append(column)
    assert named == found


def test_the_page_lists_the_keys_of_small_order() -> None:
    """The seven of the page, with either sign of x, are the fourteen that we refuse."""
    listed = set(independent.KEYS_OF_SMALL_ORDER)
    assert listed | {key[:31] + bytes([key[31] | 0x80]) for key in listed} == SMALL_ORDER_KEYS


def test_the_page_lists_the_white_space() -> None:
    """The white space that a claim on a text leaves out is what Python's `str.strip` removes."""
    assert set(independent.WHITE_SPACE) == {char for char in map(chr, range(sys.maxunicode + 1)) if char.isspace()}


def test_links_lead_somewhere() -> None:
    """Every relative link of the page leads to a file, and every anchor to a heading of the page."""
    page = PAGE.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^):]+)\)", page)
    headings = {"#" + line.lstrip("# ").lower().replace(" ", "-") for line in page.splitlines() if line.startswith("#")}
    assert links
    assert [link for link in links if link not in headings and not (PAGE.parent / link).exists()] == []
