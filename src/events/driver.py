"""The one place that opens SQLite, on the library's connection, pool, transaction and datastore."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import local
from types import TracebackType
from typing import Any, NamedTuple
from urllib.parse import quote
from weakref import WeakSet

from eventsourcing import persistence
from eventsourcing import sqlite as stock
from sqlcipher3 import dbapi2

from ..errors import Busy, Forked, LogDamaged, Unavailable, ViewsDamaged

BUSY_SECONDS = 30
_VALUES_AT_ONCE = 1000

_LIBRARY_ERRORS: tuple[tuple[type[Exception], type[persistence.PersistenceError]], ...] = (
    (dbapi2.IntegrityError, persistence.IntegrityError),
    (dbapi2.DataError, persistence.DataError),
    (dbapi2.InternalError, persistence.InternalError),
    (dbapi2.ProgrammingError, persistence.ProgrammingError),
    (dbapi2.NotSupportedError, persistence.NotSupportedError),
    (dbapi2.OperationalError, persistence.OperationalError),
    (dbapi2.InterfaceError, persistence.InterfaceError),
    (dbapi2.DatabaseError, persistence.DatabaseError),
)
DRIVER_ERRORS = (dbapi2.Error, UnicodeDecodeError)
"""What the driver raises; the second where what is wrong stands in a message that damage has made unreadable."""

# Primary result codes, https://www.sqlite.org/rescode.html
_BUSY = {5, 6}
_READ_ONLY = 8
_UNWRITABLE = {
    _READ_ONLY: "is read-only",
    10: "could not be read or written",
    13: "has no room left",
    14: "can't be opened",
}
# Our statements are fixed, so SQLITE_ERROR (1) means that the schema they name is not there.
_DAMAGED = {1, 11, 20, 24, 26}


_FORBIDDEN = {"load_extension", "sqlcipher_export", "readfile", "writefile", "edit", "fts3_tokenizer"}
"""Functions that reach beyond the database."""

_CONNECTIONS: WeakSet[Connection] = WeakSet()
_INHERITED: set[tuple[int, int]] = set()
"""Device and inode of the files that were open when this process was forked."""


class File(NamedTuple):
    """How one database file is opened: where, with which key, how durable, and what damage is called.

    `still` says that nobody changes it meanwhile: to be read without locks, which leaves no file beside it.
    """

    path: Path
    damaged: type[LogDamaged] | type[ViewsDamaged]
    key: bytes | None = None
    read_only: bool = False
    durable: bool = True
    still: bool = False

    @property
    def uri(self) -> str:
        """The file as SQLite's URI."""
        path = quote(os.fsencode(self.path))
        if not self.read_only:
            return f"file:{path}?mode=rwc"
        fixed = self.still or not os.access(self.path.parent, os.W_OK)  # what can't change needs no locks
        return f"file:{path}?mode=ro{'&immutable=1' if fixed else ''}"


def translate(error: Exception, file: File) -> Exception:
    """What a driver error means to the caller: one of ours where a person can act on it, else the library's."""
    code = getattr(error, "sqlite_errorcode", None)
    primary = None if code is None else code & 0xFF
    if primary in _BUSY:
        return Busy(f"Another writer holds {file.path.name} for more than {BUSY_SECONDS} s. Try again.")
    if primary == _READ_ONLY and not file.read_only and os.access(file.path, os.W_OK):
        return file.damaged(f"{file.path.name} is damaged: its header forbids writing. {file.damaged.remedy}")
    if primary in _UNWRITABLE:
        return Unavailable(
            f"{file.path} {_UNWRITABLE[primary]} ({error}). Nothing was written: free the room or the right that it "
            f"needs, and try again."
        )
    if primary in _DAMAGED or (primary is None and isinstance(error, dbapi2.OperationalError | UnicodeDecodeError)):
        return file.damaged(f"{file.path.name} is damaged: {error}. {file.damaged.remedy}")
    for ours, library in _LIBRARY_ERRORS:
        if isinstance(error, ours):
            return library(error)
    return persistence.PersistenceError(error)


@contextmanager
def translated(file: File) -> Iterator[None]:
    """Raise driver errors as what they mean."""
    try:
        yield
    except DRIVER_ERRORS as error:
        raise translate(error, file) from error


def refuse_open(path: Path) -> None:
    """Refuse a file that this process has open: to read it any other way would drop SQLite's locks on it."""
    identity = _identity(path)
    if any(not c.closed and c.identity == identity for c in _CONNECTIONS):
        raise Busy(f"{path} is open in this process. Close it, then try again.")


class Transaction(stock.SQLiteTransaction):
    """A transaction that takes the write lock when it begins, and rolls back when its commit fails."""

    connection: Connection

    def __enter__(self) -> stock.SQLiteCursor:
        """Begin: IMMEDIATE for a writer, so that what it reads cannot change under it."""
        cursor = self.connection.cursor()
        with translated(self.connection.file):
            cursor.execute("BEGIN IMMEDIATE" if self.commit else "BEGIN")
        return cursor

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Commit, or roll back and raise what went wrong as what it means."""
        try:
            if self.commit and error is None:
                with translated(self.connection.file):
                    self.connection.commit()
        finally:
            if self.connection.in_transaction:
                self.connection.rollback()
        if isinstance(error, DRIVER_ERRORS):
            raise translate(error, self.connection.file) from error


class Connection(stock.SQLiteConnection):
    """A connection that knows its file, and how durable its commits are."""

    def __init__(self, connection: Any, file: File) -> None:
        super().__init__(connection, max_age=None)
        self.file = file
        self._durable = file.durable
        self._process = os.getpid()
        self.identity = _identity(file.path)
        _CONNECTIONS.add(self)

    def _close(self) -> None:
        if self._process == os.getpid():
            super()._close()

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return bool(self._sqlite_conn.in_transaction)

    @contextmanager
    def transaction(self, *, commit: bool) -> Iterator[Any]:
        """A cursor inside a transaction."""
        with Transaction(self, commit=commit) as cursor, cursor as raw:
            yield raw

    def execute(self, statement: str, parameters: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """All rows of one statement outside any transaction."""
        rows: list[tuple[Any, ...]] = self._sqlite_conn.execute(statement, parameters).fetchall()
        return rows

    def set_durable(self, durable: bool) -> None:
        """Whether the next commits wait for the disk."""
        if durable is not self._durable:
            self._sqlite_conn.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            self._durable = durable


class Pool(stock.SQLiteConnectionPool):
    """Connections to one file, all opened alike."""

    def __init__(self, file: File) -> None:
        super().__init__(db_name=file.uri, lock_timeout=BUSY_SECONDS, pool_timeout=BUSY_SECONDS)
        self.file = file
        self._path = os.fspath(file.path)
        self._identity: tuple[int, int] | None = None
        self._asking = local()
        self._process = os.getpid()

    def in_place(self) -> bool:
        """Whether the file that was opened is still the one at its path: else what is written is lost with it."""
        return self._identity is None or _identity(self._path) == self._identity

    def get_connection(self, timeout: float | None = None, *, is_writer: bool | None = None) -> Connection:
        """A connection. Where none can be had the locks are given back, which the library forgets."""
        self._asking.failed = False
        try:
            return super().get_connection(timeout, is_writer=is_writer)  # type: ignore[return-value]
        except BaseException:
            if self._asking.failed:
                self._give_back(is_writer)
            raise

    def _get_connection(self, timeout: float = 0.0) -> stock.SQLiteConnection:
        try:
            return super()._get_connection(timeout)
        except BaseException:
            self._asking.failed = True
            raise

    def _give_back(self, is_writer: bool | None) -> None:
        if is_writer:
            self._num_writers -= 1
            self._writer_lock.release()
        elif is_writer is False:
            with self._no_readers:
                self._num_readers -= 1

    def close(self) -> None:
        """Close every connection, once those that another thread is using have come back. In a forked child, none."""
        if self._process != os.getpid():
            return
        with self._put_condition:
            self._put_condition.wait_for(lambda: not self._in_use, BUSY_SECONDS)
            super().close()

    def _create_connection(self) -> Connection:
        if not self.in_place():
            raise self.file.damaged(f"{self.file.path} was deleted or replaced while open. {self.file.damaged.remedy}")
        with translated(self.file):
            connection = dbapi2.connect(
                self.file.uri, uri=True, check_same_thread=False, isolation_level=None, timeout=BUSY_SECONDS
            )
            try:
                _prepare(connection, self.file)
            except DRIVER_ERRORS:
                connection.close()
                raise
        opened = Connection(connection, self.file)
        self._identity = self._identity or opened.identity
        return opened


class Datastore(stock.SQLiteDatastore):
    """One database file, as the library's recorders want it."""

    def __init__(self, file: File) -> None:
        self.file = file
        self.pool: Pool = Pool(file)
        if _identity(file.path) in _INHERITED:
            raise Forked(
                f"{file.path} was open when this process was forked: SQLite would lose what is written to it. "
                f"Open it only after the fork, or start the child with the `spawn` method."
            )
        self.single_row_tracking = True
        self.originator_id_type = "uuid"

    def rows(self, statement: str, parameters: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """The rows of one reading statement, from a snapshot of its own: a third of the cost of a transaction."""
        with self.get_connection(commit=False) as connection, translated(self.file):
            return list(connection.execute(statement, parameters))  # type: ignore[attr-defined]

    driver_errors = DRIVER_ERRORS

    def translate(self, error: BaseException) -> BaseException:
        """What an error of this file means to the caller."""
        return translate(error, self.file) if isinstance(error, DRIVER_ERRORS) else error

    @contextmanager
    def transaction(self, *, commit: bool, durable: bool | None = None) -> Iterator[Any]:
        """A cursor inside a transaction; `durable` says whether this commit waits for the disk."""
        with self.get_connection(commit=commit) as connection:
            if commit:
                connection.set_durable(self.file.durable if durable is None else durable)  # type: ignore[attr-defined]
            with connection.transaction(commit=commit) as cursor:
                yield cursor


class Scratch:
    """A database of its own in memory: filled, then only read, within limits."""

    def __init__(self) -> None:
        self._connection = dbapi2.connect(":memory:", isolation_level=None)
        self._connection.execute("PRAGMA temp_store=MEMORY")

    def execute(self, statement: str) -> None:
        """Run a statement of ours."""
        self._connection.execute(statement)

    def value(self, statement: str) -> Any:
        """The one value that a statement of ours gives."""
        return self._connection.execute(statement).fetchone()[0]

    def fill(self, table: str, columns: int, rows: Iterable[Sequence[Any]]) -> None:
        """Put rows into a table."""
        self._connection.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * columns)})", rows)

    def select(
        self, statement: str, parameters: tuple[Any, ...], seconds: float, limit: int
    ) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        """The columns and the first rows of a statement of a stranger. It can read, and is interrupted in time.

        Raises one of the driver's errors for a statement that does anything else. From then on nothing else can run.
        """
        deadline = time.monotonic() + seconds
        self._connection.set_authorizer(_may_only_read)
        self._connection.set_progress_handler(lambda: time.monotonic() > deadline, 1000)
        try:
            cursor = self._connection.execute(statement, parameters)
            columns = tuple(column[0] for column in cursor.description or ())
            return columns, cursor.fetchmany(limit)
        except (dbapi2.Warning, UnicodeEncodeError, OverflowError, MemoryError) as error:
            raise dbapi2.ProgrammingError(str(error)) from error

    def close(self) -> None:
        """Throw it away."""
        self._connection.close()


def _may_only_read(action: int, one: str | None, two: str | None, *_: str | None) -> int:
    reads = action in (dbapi2.SQLITE_SELECT, dbapi2.SQLITE_READ, dbapi2.SQLITE_RECURSIVE)
    calls = action == dbapi2.SQLITE_FUNCTION and two not in _FORBIDDEN
    return int(dbapi2.SQLITE_OK if reads or calls else dbapi2.SQLITE_DENY)


def rows_in(cursor: Any, statement: str, values: Sequence[Any], *before: Any) -> Iterator[tuple[Any, ...]]:
    """The rows of a statement with `IN ({})`, for these values, a thousand at a time; `before` stands first."""
    for first in range(0, len(values), _VALUES_AT_ONCE):
        asked = values[first : first + _VALUES_AT_ONCE]
        yield from cursor.execute(statement.format(", ".join("?" * len(asked))), (*before, *asked)).fetchall()


def _prepare(connection: Any, file: File) -> None:
    if file.key is not None:
        connection.set_key(f"x'{file.key.hex()}'")
        connection.execute("PRAGMA cipher_log_level=none")
        connection.execute("PRAGMA cipher_hmac_algorithm=HMAC_SHA256")
    if not file.read_only:
        connection.execute("PRAGMA journal_mode=WAL")
    connection.execute(f"PRAGMA synchronous={'FULL' if file.durable else 'NORMAL'}")
    connection.execute("PRAGMA cache_size=-64000")
    connection.execute("PRAGMA trusted_schema=OFF")
    connection.execute("PRAGMA temp_store=MEMORY")


def _identity(path: str | Path) -> tuple[int, int] | None:
    """Device and inode of a file, whatever it is called; None where there is none."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_dev, status.st_ino


def _keep_inherited() -> None:
    """In a forked child, let no inherited connection ever be closed, not even when the interpreter ends.

    SQLite would take itself for the last user of the file, and write back what it knew at the fork. What the driver
    does when a process ends is left out: it would wait for a lock that a thread of the parent may have held.
    """
    inherited = [connection for connection in _CONNECTIONS if not connection.closed]
    for connection in inherited:
        if connection.identity is not None:
            _INHERITED.add(connection.identity)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection._sqlite_conn))
    library = ctypes.CDLL(None)
    if inherited and hasattr(library, "on_exit"):
        library.on_exit(library._exit, None)


# For each value that is neither number nor text the driver looks for an adapter, and to find none costs more than the
# rest of the row. These two give the value as it is.
dbapi2.register_adapter(bytes, bytearray)
dbapi2.register_adapter(type(None), {}.get)

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_keep_inherited)
