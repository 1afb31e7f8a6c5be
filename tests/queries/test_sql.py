"""SQL over a copy of the views: it reads what is documented, changes nothing, and comes to an end."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tallystick import Memory, Rows
from tallystick.errors import Refused
from tallystick.queries import sql

PAGE = Path(__file__).parents[2] / "docs" / "python.md"


@pytest.fixture(scope="module")
def memory() -> Iterator[Memory]:
    """A memory with a little of everything."""
    with Memory.temporary(namespace="a", actor="agent:planner") as opened:
        opened.store("The office is in Lisbon", tags=["x"], metadata={"n": [1, 2]}, importance=0.75)
        opened.forget(opened.store("A secret word: vermilion").id)
        opened.recall("office")
        opened.rename("a", "b")
        yield opened


def test_the_views_can_be_asked(memory: Memory) -> None:
    """A statement with parameters gives names and rows, as they are now."""
    found = memory.sql("select kind, importance as i from memories where status = ? order by 1", ["current"])
    assert found == Rows(("kind", "i"), (("note", 0.75),))
    assert memory.sql("select old, new from alias").rows == (("a", "b"),)
    assert memory.sql("select count(*) from access where verb = 'recall'").rows == ((1,),)
    query = "select kind from audit where log = 'memory' order by position"
    assert [kind for (kind,) in memory.sql(query).rows][:2] == ["memory.stored"] * 2
    tags = "select value from memories, json_each(tags)"
    assert memory.sql(tags).rows == (("x",),)
    assert memory.sql(
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < 3) select * from n"
    ).rows


def test_every_table_and_column_is_documented(memory: Memory) -> None:
    """The page lists the tables there are, and the columns of each, in order."""
    names = [name for (name,) in memory.sql("select name from sqlite_schema where type = 'table' order by name").rows]
    assert names == sorted(sql.TABLES)
    for table in sql.TABLES:
        (row,) = re.findall(rf"^\| `{table}` \| .* \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
        said = re.findall(r"`(\w+)`", re.sub(r"\([^)]*\)", "", row))
        assert said == list(memory.sql(f"select * from {table} limit 0").columns)


def test_no_table_holds_a_text(memory: Memory) -> None:
    """Neither the text of a memory nor a question stands in any cell."""
    for table in sql.TABLES:
        assert "vermilion" not in repr(memory.sql(f"select * from {table}").rows)
        assert "office" not in repr(memory.sql(f"select * from {table}").rows)


WRITES = [
    "delete from memories", "update memories set importance = 1", "insert into alias values ('x', 'y')",
    "drop table memories", "create table t (a)", "create temp table t (a)", "attach ':memory:' as other",
    "attach '/etc/passwd' as other", "pragma user_version = 3", "pragma table_info(memories)", "vacuum into 'x.db'",
    "begin", "reindex", "analyze", "select load_extension('x')", "select sqlcipher_export('main')",
    "with x as (select 1) insert into alias select 'a', 'b'",
    "replace into alias values ('x', 'y')",
    "select 1; delete from memories", "create view v as select 1", "explain delete from memories",
]  # fmt: skip


@pytest.mark.parametrize("statement", WRITES)
def test_a_statement_that_does_more_than_read_is_refused(memory: Memory, statement: str) -> None:
    """Nothing is written, attached, loaded or set, not even in the copy; and nothing of it is on record."""
    before = memory.status().logs["access"], memory.sql("select * from alias").rows
    with pytest.raises(Refused) as refused:
        memory.sql(statement)
    assert ".." not in str(refused.value)
    assert (memory.status().logs["access"] - 1, memory.sql("select * from alias").rows) == before


@pytest.mark.parametrize(
    "statement", ["", "  ", ";", "selekt", "select", "select * from nothing", "\0", "-- x", "select ?"]
)
def test_a_statement_that_is_none_is_refused(memory: Memory, statement: str) -> None:
    """What SQLite can't read is said to the caller, with a way to go on."""
    with pytest.raises(Refused, match="select"):
        memory.sql(statement)


@pytest.mark.parametrize("parameters", [[2**70], [object()], ["\ud800"], [1, 2]])
def test_parameters_that_are_none_are_refused(memory: Memory, parameters: Any) -> None:
    """A value that SQLite does not have is refused."""
    with pytest.raises(Refused):
        memory.sql("select ?", parameters)


def test_a_statement_comes_to_an_end(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that would go on for ever is interrupted; one that gives too much is refused."""
    monkeypatch.setattr(sql, "SECONDS", 0.2)
    endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select {} from n"
    with pytest.raises(Refused, match="interrupted"):
        memory.sql(endless.format("count(*)"))
    monkeypatch.setattr(sql, "SECONDS", 10.0)
    monkeypatch.setattr(sql, "MOST_ROWS", 1000)
    with pytest.raises(Refused, match="1,000 rows"):
        memory.sql(endless.format("i"))


def test_a_statement_is_on_record(memory: Memory) -> None:
    """Tags, subjects and metadata are handed out, so the statement is put on record."""
    memory.sql("select subject from memories")
    (receipt,) = memory.receipts(verb="sql", limit=1)
    assert receipt.query == "select subject from memories"
