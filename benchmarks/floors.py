"""What the pieces cost alone, on the rows of a real store: the least that the log's work can take."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgpack  # type: ignore[import-untyped]

from tallystick.errors import LogDamaged, ViewsDamaged
from tallystick.events import claims, recorder, sealing
from tallystick.events.driver import Datastore, File
from tallystick.events.entries import Entry
from tallystick.events.envelope import is_signed_by
from tallystick.events.installation import Installation
from tallystick.events.signing import SeedSigner

SAMPLE = 3000
RUNS = 5

_ROWS = (
    "SELECT place, log, id, stream, revision, entry, body, wrapped FROM entry JOIN payload USING (place) "
    "JOIN data_key USING (place) WHERE place BETWEEN 1 AND ? ORDER BY place"  # those that begin a stream
)
_TABLES = (
    "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%' AND name NOT GLOB ? ORDER BY name"
)


def cpu_us(call: Callable[[], object], count: int) -> float:
    """Microseconds of processor time for each of `count` things that a call does: the least of five runs."""
    runs = []
    for _ in range(RUNS):
        start = time.process_time()
        call()
        runs.append(time.process_time() - start)
    return min(runs) / count * 1e6


class LogFloors:
    """The pieces of reading and writing the memory log, each alone, by the entries of this one: microseconds."""

    def __init__(self, installation: Installation) -> None:
        assert installation.keys is not None
        self._installation = installation
        self._keys = installation.keys
        self._origin = installation.memory.origin
        with installation.datastore.transaction(commit=False) as cursor:
            self._entries = installation.memory.recorder.between(cursor, 1, 1 + SAMPLE)
            self._rows = cursor.execute(_ROWS, (SAMPLE,)).fetchall()
            self.select = cpu_us(lambda: cursor.execute(_ROWS, (SAMPLE,)).fetchall(), len(self._rows))
        self._size = installation.memory.tip.size

    def _each(self, call: Callable[[Entry], object]) -> float:
        return cpu_us(lambda: [call(entry) for entry in self._entries], len(self._entries))

    @property
    def hashes(self) -> float:
        """The leaf, the payload, and the nodes of a root: half as many as the tree is high, and one for the append."""
        nodes = self._size.bit_length() / 2 + 1
        leaf = self._each(lambda e: sha256(e.data).digest())
        return leaf + self._each(lambda e: sha256(e.payload).digest()) + nodes * self._node

    @property
    def _node(self) -> float:
        return self._each(lambda e: sha256(e.leaf + e.leaf + b"\1").digest())

    @property
    def header(self) -> float:
        """A header unpacked and packed again, since only its own encoding is accepted."""
        pack = msgpack.Packer().pack
        return self._each(lambda e: pack(msgpack.unpackb(e.data[:-64], use_list=False)))

    @property
    def body(self) -> float:
        """A body of that size unpacked and packed again."""
        pack = msgpack.Packer().pack
        return self._each(lambda e: pack(msgpack.unpackb(pack({"text": "x" * (len(e.payload) - 60)}))))

    @property
    def verify(self) -> float:
        """One Ed25519 signature verified."""
        return self._each(lambda e: is_signed_by(e.data, self._keys.writer.public))

    @property
    def sign(self) -> float:
        """One Ed25519 signature made."""
        signer = SeedSigner.generate()
        return self._each(lambda e: signer.sign(e.data[:-64]))

    @property
    def seal(self) -> float:
        """One payload of that size sealed."""
        key = bytes(32)

        def seal(e: Entry) -> object:
            place = {"event_id": e.header.id, "origin": self._origin, "stream": e.header.stream}
            return sealing.seal(key, e.payload[44:], **place, generation=1)

        return self._each(seal)

    @property
    def unseal(self) -> float:
        """One data key unwrapped and one payload opened with it, its commitment checked."""

        def unseal(wrapped: bytes, e: Entry) -> object:
            where = {"origin": self._origin, "stream": e.header.stream}
            key = sealing.unwrap(self._keys.kek, wrapped, **where, generation=1)
            return sealing.unseal(key, e.payload, event_id=e.header.id, **where, commitment=e.header.commitment)

        wrapped = {row[0]: row[7] for row in self._rows}
        pairs = [(wrapped[e.header.position], e) for e in self._entries if e.header.position in wrapped]
        return cpu_us(lambda: [unseal(key, entry) for key, entry in pairs], len(pairs))

    def insert(self, folder: Path, batch: int) -> float:
        """The rows of an event with its payload, data key and claim, inserted in batches into tables like log.db's.

        The last of the log's rows, after all others of the log, since a row costs more the more there are.
        """
        everything = self._installation.datastore.rows(_ROWS, (self._installation.memory.tip.size,))
        there, coming = everything[:-SAMPLE], everything[-SAMPLE:]
        folder.mkdir()
        datastore = Datastore(File(folder / "log.db", LogDamaged, durable=False))
        with datastore.transaction(commit=True) as cursor:
            for statement in (*recorder.SCHEMA, *claims.SCHEMA):
                cursor.execute(statement)
            _insert(cursor, there)
        spent = []
        for first in range(0, len(coming), batch):
            rows = coming[first : first + batch]
            start = time.process_time()
            with datastore.transaction(commit=True) as cursor:
                _insert(cursor, rows)
            spent.append((time.process_time() - start) / len(rows))
        datastore.close()
        return statistics.median(spent) * 1e6


def _insert(cursor: Any, rows: list[tuple[Any, ...]]) -> None:
    cursor.executemany("INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?)", [row[:6] for row in rows])
    cursor.executemany("INSERT INTO payload VALUES (?, ?)", [(row[0], row[6]) for row in rows])
    keys = [(row[0], 1, row[7]) for row in rows]
    cursor.executemany("INSERT INTO data_key VALUES (?, ?, ?)", keys)
    tags = [(sha256(row[2]).digest()[:16], row[0]) for row in rows]
    cursor.executemany("INSERT INTO claim VALUES (?, ?)", tags)


class DurableCommit:
    """A commit that waits for the disk, of one row, in a file of its own."""

    def __init__(self, folder: Path) -> None:
        self._datastore = Datastore(File(folder / "bare.db", LogDamaged))
        with self._datastore.transaction(commit=True) as cursor:
            cursor.execute("CREATE TABLE bare (number INTEGER PRIMARY KEY, body BLOB)")

    def __call__(self) -> None:
        """Insert a row of an event's size and commit."""
        with self._datastore.transaction(commit=True) as cursor:
            cursor.execute("INSERT INTO bare (body) VALUES (?)", (bytes(700),))

    def close(self) -> None:
        """Close the file."""
        self._datastore.close()


def view_rows(views: Path, key: bytes, folder: Path) -> float:
    """Seconds of processor time to insert the rows of these views' plain tables, words left out, into an empty file."""
    source = Datastore(File(views, ViewsDamaged, key, read_only=True))
    with source.transaction(commit=False) as cursor:
        names = [name for (name,) in cursor.execute(_TABLES, ("keyword*",)).fetchall()]
        tables = {name: cursor.execute(f"SELECT * FROM {name}").fetchall() for name in names}
        schema = cursor.execute(
            "SELECT sql FROM sqlite_master WHERE tbl_name IN (SELECT value FROM json_each(?)) AND sql NOT NULL",
            (json.dumps(names),),
        ).fetchall()
    source.close()
    copy = Datastore(File(folder / "copy.db", ViewsDamaged, key, durable=False))
    start = time.process_time()
    with copy.transaction(commit=True) as cursor:
        for (statement,) in schema:
            cursor.execute(statement)
        for name, rows in tables.items():
            if rows:
                cursor.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})", rows)
    spent = time.process_time() - start
    copy.close()
    return spent


def median_ms(walls: list[float]) -> float:
    """The median of seconds, in milliseconds."""
    return statistics.median(walls) * 1000
