"""The driver opens every file alike, waits for the disk when told to, and says what an error means."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eventsourcing.persistence import IntegrityError, OperationalError, PersistenceError, ProgrammingError
from sqlcipher3 import dbapi2

import tallystick
from tallystick.errors import Busy, LogDamaged, TallystickError, Unavailable, ViewsDamaged
from tallystick.events import driver
from tallystick.events.driver import Datastore, File, translate

KEY = bytes(range(32))
PACKAGE = Path(tallystick.__file__).parent
FULL, NORMAL = 2, 1


@pytest.fixture
def file(tmp_path: Path) -> File:
    """A plain file that is not there yet, with a table."""
    return File(tmp_path / "log.db", LogDamaged)


@pytest.fixture
def datastore(file: File) -> Iterator[Datastore]:
    """The file, open, with a table `t` of numbers."""
    opened = Datastore(file)
    with opened.transaction(commit=True) as cursor:
        cursor.execute("CREATE TABLE t (n INTEGER PRIMARY KEY) STRICT")
    yield opened
    opened.close()


def numbers(datastore: Datastore) -> list[int]:
    """What the table holds."""
    return [n for (n,) in datastore.rows("SELECT n FROM t ORDER BY n")]


def insert(datastore: Datastore, *values: int, durable: bool | None = None) -> None:
    """Add numbers in one transaction."""
    with datastore.transaction(commit=True, durable=durable) as cursor:
        cursor.executemany("INSERT INTO t VALUES (?)", [(value,) for value in values])


def test_a_writer_locks_when_it_begins(file: File, datastore: Datastore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two writers never read the same state: the second waits, and is told when it has waited too long."""
    monkeypatch.setattr(driver, "BUSY_SECONDS", 0.05)
    other = Datastore(file)
    try:
        with datastore.transaction(commit=True) as cursor:
            cursor.execute("SELECT * FROM t").fetchall()
            with pytest.raises(Busy, match=r"Another writer holds log\.db"), other.transaction(commit=True):
                pytest.fail("a second writer began")
            cursor.execute("INSERT INTO t VALUES (1)")
        insert(other, 2)
    finally:
        other.close()
    assert numbers(datastore) == [1, 2]


def test_a_reader_does_not_wait_for_a_writer(datastore: Datastore) -> None:
    """It sees what was committed when it began."""
    with datastore.transaction(commit=True) as cursor:
        cursor.execute("INSERT INTO t VALUES (1)")
        assert numbers(datastore) == []
    assert numbers(datastore) == [1]


def test_a_reader_keeps_its_snapshot(datastore: Datastore) -> None:
    """What it reads does not change under it."""
    with datastore.transaction(commit=False) as cursor:
        assert cursor.execute("SELECT count(*) FROM t").fetchone() == (0,)
        insert(datastore, 1)
        assert cursor.execute("SELECT count(*) FROM t").fetchone() == (0,)
    assert numbers(datastore) == [1]


def test_a_transaction_that_raises_is_rolled_back(datastore: Datastore) -> None:
    """Nothing of it stays, and the connection can be used again."""
    with pytest.raises(ZeroDivisionError), datastore.transaction(commit=True) as cursor:
        cursor.execute("INSERT INTO t VALUES (1)")
        raise ZeroDivisionError
    insert(datastore, 2)
    assert numbers(datastore) == [2]


def test_a_reading_transaction_writes_nothing(datastore: Datastore) -> None:
    """What is written where no commit was asked for is undone."""
    with datastore.transaction(commit=False) as cursor:
        cursor.execute("INSERT INTO t VALUES (1)")
    assert numbers(datastore) == []


def test_a_commit_that_fails_is_rolled_back(datastore: Datastore) -> None:
    """A constraint that is checked at the commit fails it, and nothing of it stays."""
    with datastore.transaction(commit=True) as cursor:
        cursor.execute(
            "CREATE TABLE child (n INTEGER REFERENCES t (n) DEFERRABLE INITIALLY DEFERRED, PRIMARY KEY (n)) STRICT"
        )
    with datastore.get_connection(commit=True) as connection:
        connection.execute("PRAGMA foreign_keys=ON", ())  # type: ignore[attr-defined]
    with pytest.raises(IntegrityError), datastore.transaction(commit=True) as cursor:
        cursor.execute("INSERT INTO child VALUES (7)")
    assert datastore.rows("SELECT * FROM child") == []
    insert(datastore, 1)
    assert numbers(datastore) == [1]


@pytest.mark.parametrize(("durable", "level"), [(None, FULL), (True, FULL), (False, NORMAL)])
def test_a_commit_waits_for_the_disk_when_told_to(datastore: Datastore, durable: bool | None, level: int) -> None:
    """FULL waits for the disk, NORMAL does not; each commit is as durable as it asks, whatever the one before was."""
    for before in (True, False):
        insert(datastore, 10 + before, durable=before)
        with datastore.transaction(commit=True, durable=durable) as cursor:
            assert cursor.execute("PRAGMA synchronous").fetchone() == (level,)
        with datastore.transaction(commit=True) as cursor:
            cursor.execute("DELETE FROM t")


def test_a_file_that_need_not_be_durable_never_waits(tmp_path: Path) -> None:
    """The views are NORMAL from the first commit on."""
    datastore = Datastore(File(tmp_path / "views.db", ViewsDamaged, KEY, durable=False))
    with datastore.transaction(commit=True) as cursor:
        assert cursor.execute("PRAGMA synchronous").fetchone() == (NORMAL,)
    datastore.close()


def test_every_connection_is_prepared(datastore: Datastore) -> None:
    """WAL, a 64 MB cache, 4 KiB pages, no trusted schema, temporary tables in memory."""
    settings = {"journal_mode": "wal", "cache_size": -64000, "page_size": 4096, "trusted_schema": 0, "temp_store": 2}
    with datastore.transaction(commit=False), datastore.transaction(commit=False) as second:
        found = {name: second.execute(f"PRAGMA {name}").fetchone()[0] for name in settings}
    assert found == settings


def test_an_encrypted_file_tells_nothing(tmp_path: Path) -> None:
    """Neither the file nor its write-ahead log holds the text, and it has no SQLite header."""
    path = tmp_path / "views.db"
    datastore = Datastore(File(path, ViewsDamaged, KEY))
    with datastore.transaction(commit=True) as cursor:
        cursor.execute("CREATE TABLE t (text TEXT)")
        cursor.execute("INSERT INTO t VALUES ('a secret that nobody may read')")
    script = "import sys; [sys.stdout.buffer.write(open(name, 'rb').read()) for name in sys.argv[1:]]"
    names = [str(path), f"{path}-wal"]
    # In a process of its own: opening the file here would drop SQLite's locks.
    content = subprocess.run([sys.executable, "-c", script, *names], capture_output=True, check=True).stdout
    datastore.close()
    assert len(content) > 4096
    assert b"secret" not in content
    assert b"SQLite format" not in content + path.read_bytes()


@pytest.mark.parametrize("key", [None, bytes(32)])
def test_a_wrong_key_is_damage_of_the_views(tmp_path: Path, key: bytes | None) -> None:
    """Without its key, or with another, an encrypted file does not open."""
    path = tmp_path / "views.db"
    first = Datastore(File(path, ViewsDamaged, KEY))
    with first.transaction(commit=True) as cursor:
        cursor.execute("CREATE TABLE t (n)")
    first.close()
    second = Datastore(File(path, ViewsDamaged, key))
    with pytest.raises(ViewsDamaged, match=r"views\.db is damaged.*tallystick replay"):
        second.rows("SELECT * FROM t")
    second.close()


def test_a_changed_page_is_found(tmp_path: Path) -> None:
    """Each page of an encrypted file has an authentication code."""
    path = tmp_path / "views.db"
    file = File(path, ViewsDamaged, KEY)
    datastore = Datastore(file)
    with datastore.transaction(commit=True) as cursor:
        cursor.execute("CREATE TABLE t (text TEXT)")
        cursor.executemany("INSERT INTO t VALUES (?)", [("x" * 1000,)] * 50)
    datastore.close()
    content = bytearray(path.read_bytes())
    content[4096 * 5 + 100] ^= 1
    path.write_bytes(content)
    datastore = Datastore(file)
    with pytest.raises(ViewsDamaged):
        datastore.rows("SELECT sum(length(text)) FROM t")
    datastore.close()


@pytest.mark.parametrize("name", ["a b.db", "what?.db", "100%.db", "#1.db", "é.db", "a&mode=memory.db"])
def test_every_file_name_is_taken_as_it_is(tmp_path: Path, name: str) -> None:
    """A name with characters that mean something in a URI names that file and no other."""
    datastore = Datastore(File(tmp_path / name, LogDamaged))
    with datastore.transaction(commit=True) as cursor:
        cursor.execute("CREATE TABLE t (n)")
    datastore.close()
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_file_opened_to_be_read_is_not_made(tmp_path: Path) -> None:
    """Reading never creates, and says which file can't be opened."""
    datastore = Datastore(File(tmp_path / "log.db", LogDamaged, read_only=True))
    with pytest.raises(Unavailable, match=r"log\.db can't be opened"):
        datastore.rows("SELECT 1")
    datastore.close()
    assert list(tmp_path.iterdir()) == []


def test_a_file_opened_to_be_read_is_not_written(file: File, datastore: Datastore) -> None:
    """A write says that the file is read-only."""
    insert(datastore, 1)
    reading = Datastore(file._replace(read_only=True))
    assert numbers(reading) == [1]
    with pytest.raises(Unavailable, match="is read-only"):
        insert(reading, 2)
    reading.close()
    assert numbers(datastore) == [1]


def test_a_full_disk_says_so(datastore: Datastore) -> None:
    """Out of room is no damage: nothing was written, and once there is room again writing goes on."""
    with datastore.transaction(commit=True) as cursor:
        cursor.execute("CREATE TABLE big (body BLOB)")
        pages = cursor.execute("PRAGMA page_count").fetchone()[0]
        cursor.execute(f"PRAGMA max_page_count={pages + 5}")
    with pytest.raises(Unavailable, match="has no room left"), datastore.transaction(commit=True) as cursor:
        cursor.execute("INSERT INTO t VALUES (1)")
        cursor.execute("INSERT INTO big VALUES (zeroblob(1000000))")
    assert numbers(datastore) == []
    insert(datastore, 2)
    assert numbers(datastore) == [2]


@pytest.mark.parametrize("content", [b"this is no database at all" * 400, b"SQLite format 3\0" + b"\xff" * 9000])
def test_a_file_that_is_no_database_is_damage(tmp_path: Path, content: bytes) -> None:
    """Whatever lies there is named, and never taken for an empty store."""
    path = tmp_path / "log.db"
    path.write_bytes(content)
    datastore = Datastore(File(path, LogDamaged, read_only=True))
    with pytest.raises(LogDamaged, match=r"log\.db is damaged.*tallystick verify"):
        datastore.rows("SELECT * FROM entry")
    datastore.close()


def test_a_missing_table_is_damage(datastore: Datastore) -> None:
    """Our statements are fixed, so what they name must be there."""
    with pytest.raises(LogDamaged, match="no such table: entry"):
        datastore.rows("SELECT * FROM entry")


def test_a_broken_rule_is_the_librarys_error(datastore: Datastore) -> None:
    """A duplicate is what the library's recorders expect it to be."""
    insert(datastore, 1)
    with pytest.raises(IntegrityError):
        insert(datastore, 1)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (dbapi2.ProgrammingError("closed"), ProgrammingError),
        (dbapi2.OperationalError("no code"), LogDamaged),
        (dbapi2.Error("something else"), PersistenceError),
    ],
)
def test_an_error_without_a_code_is_translated_by_its_type(error: dbapi2.Error, expected: type[Exception]) -> None:
    """Nothing of the driver's own errors gets through."""
    assert type(translate(error, File(Path("log.db"), LogDamaged))) is expected


def test_no_driver_error_gets_through(datastore: Datastore) -> None:
    """Whatever fails inside a transaction is ours or the library's."""
    for statement in ("SELECT nothing", "INSERT INTO t VALUES ('text')", "SELECT json('{')", "nonsense"):
        with pytest.raises((TallystickError, PersistenceError)), datastore.transaction(commit=True) as cursor:
            cursor.execute(statement)


def test_a_closed_file_waits_for_nobody(file: File) -> None:
    """Closing twice is no error, and no write-ahead log stays behind a file that was closed well."""
    datastore = Datastore(file)
    with datastore.transaction(commit=True) as cursor:
        cursor.execute("CREATE TABLE t (n)")
    datastore.close()
    datastore.close()
    assert [path.name for path in file.path.parent.iterdir()] == ["log.db"]


def test_a_dead_connection_does_not_block_the_next(file: File, datastore: Datastore) -> None:
    """An operation that fails inside gives its connection, and the writer's turn, back."""
    for _ in range(50):
        with pytest.raises((PersistenceError, LogDamaged)):
            insert(datastore, 1, 1)
    insert(datastore, 2)
    assert datastore.pool.num_in_use == 0


def trees() -> Iterator[tuple[str, ast.Module]]:
    """The source files of the package, parsed, but the driver's."""
    for path in PACKAGE.rglob("*.py"):
        if path.name != "driver.py":
            yield path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def test_there_is_one_sqlite_library() -> None:
    """A second SQLite library in the process would lose acknowledged commits."""
    others = {"sqlite3", "apsw", "pysqlite3", "sqlean"}
    for name, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                assert not others.intersection(alias.name.split(".")[0] for alias in node.names), name
            elif isinstance(node, ast.ImportFrom) and not node.level:
                assert (node.module or "").split(".")[0] not in others, name


def test_the_driver_alone_opens_files() -> None:
    """Whoever else connects, connects to a database in memory."""
    for name, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "connect":
                assert ast.unparse(node.args[0]) == "':memory:'", name


WATCHED = """
import os, sys
from pathlib import Path
from tallystick import Memory

store = Path(sys.argv[1])
seen = []

def watch(event, arguments):
    if event == "sqlite3.connect":
        seen.append((event, str(arguments[0])))
    if event == "open" and isinstance(arguments[0], (str, bytes)) and ".db" in os.fsdecode(arguments[0]):
        seen.append((event, os.fsdecode(arguments[0])))

sys.addaudithook(watch)
for _ in range(2):
    with Memory.open(store, keys=sys.argv[2], model="none") as memory:
        stored = memory.store("a text", key="k")
        memory.store("another text", key="k")
        memory.recall("text")
        memory.forget(stored.id)
        memory.verify(views=True)
        memory.rebuild()
        memory.status()
print(seen)
"""


def test_no_store_file_is_opened_beside_the_driver(tmp_path: Path) -> None:
    """Closing any other handle on an open database drops its locks in this process: measured loss of commits."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", WATCHED, str(tmp_path / "store"), str(tmp_path / "keys")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr


def test_an_operational_error_of_the_library_is_no_busy() -> None:
    """Only a lock that is held makes Busy."""
    error: Any = dbapi2.OperationalError("cannot start a transaction within a transaction")
    error.sqlite_errorcode = 21
    assert type(translate(error, File(Path("log.db"), LogDamaged))) is OperationalError


def test_who_waited_in_vain_for_the_writer_gives_nothing_back(datastore: Datastore) -> None:
    """The turn that a thread never had stays with the one that has it, and is free once that is done."""
    pool = datastore.pool
    first = pool.get_connection(is_writer=True)
    for _ in range(2):
        with pytest.raises(PersistenceError, match="waiting for return of writer"):
            pool.get_connection(timeout=0.01, is_writer=True)
    pool.put_connection(first)
    insert(datastore, 1)
    assert (numbers(datastore), pool.num_in_use) == ([1], 0)
