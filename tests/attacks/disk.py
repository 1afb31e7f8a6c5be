"""What somebody can do who has the disk and no key: edits of a closed store, as consistent as they can be made."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

from tallystick.errors import LogDamaged
from tallystick.events.canonical import decode_body, encode_body
from tallystick.events.claims import PLACES
from tallystick.events.driver import Datastore, File
from tallystick.events.envelope import Header, origin_of, payload_hash, read_entry, sign_entry
from tallystick.events.kinds import LogCreated, body_of
from tallystick.events.mapper import new_id
from tallystick.events.merkle import Frontier, leaf_hash
from tallystick.events.settings import write_setting
from tallystick.events.signing import SeedSigner, key_id

from .ways import Place, Python

OWN = SeedSigner(bytes(range(32)))
"""The attacker's own key."""
MEMORY, ACCESS = 0, 1
SIGNATURE_BYTES = 64


Row = tuple[Header, bytes, bytes]
"""The header of an entry, the entry and its payload."""


class Scene(NamedTuple):
    """A closed store that was used, an older copy of it, another store, and what the memories in it are called."""

    place: Place
    older: Place
    other: Place
    ids: dict[str, str]
    positions: dict[str, int]
    receipt: str


def make_scene(folder: Path) -> Scene:
    """A history with everything that an attack needs: keys, revisions, protected, forgotten, and reads on record."""
    place = Place(folder / "store", folder / "keys")
    ids = {}
    with Python(place) as way:
        for name in ("zebra", "okapi", "gnu"):
            ids[name] = way.store(f"The {name} sleeps in the stable", tags=[name])
        ids["old value"] = way.store("The keeper is Ana", key="keeper")
        way.ids("zebra")
    older = place.copy_to(folder / "older")
    with Python(place) as way:
        ids["value"] = way.store("The keeper is Bob", key="keeper")
        way.ask("protect", ids["value"])
        ids["elsewhere"] = way.store("A secret of elsewhere", namespace="elsewhere")
        way.ask("revise", ids["okapi"], text="The okapi is awake")
        way.ask("forget", ids["gnu"])
        receipt = way.ask("recall", "zebra okapi")["receipt"]
        for name in ("zebra", "okapi"):
            way.get(ids[name])
        ids["last but one"] = way.store("The last but one thing that was said")
        ids["last"] = way.store("The last thing that was said")
        positions = {e.header.stream.hex(): e.header.position for e in way.memory.events() if e.header.revision == 0}
    other = Place(folder / "another store", folder / "its keys")
    with Python(other) as way:
        for n in range(20):
            way.store(f"A text of another store, {n}")
    return Scene(place, older, other, ids, {name: positions[memory] for name, memory in ids.items()}, receipt)


class Disk:
    """log.db in the hands of somebody without keys: no trigger, no unique index, and all that is unkeyed recomputed."""

    def __init__(self, cursor: Any) -> None:
        self.cursor = cursor
        asked = "SELECT type, name FROM sqlite_schema WHERE type IN ('trigger', 'index') AND sql IS NOT NULL"
        for kind, name in cursor.execute(asked).fetchall():
            cursor.execute(f"DROP {kind} {name}")

    def do(self, *statements: str) -> Self:
        """Run statements of SQL."""
        for statement in statements:
            self.cursor.execute(statement)
        return self

    def size(self, log: int = MEMORY) -> int:
        """How many entries a log has."""
        asked = "SELECT count(*) FROM entry WHERE log = ?"
        return int(self.cursor.execute(asked, (log,)).fetchone()[0])

    def read(self, position: int, log: int = MEMORY) -> Row:
        """The entry at a position."""
        asked = "SELECT entry, body FROM entry JOIN payload USING (place) WHERE place = ?"
        entry, body = self.cursor.execute(asked, (log * PLACES + position,)).fetchone()
        return read_entry(entry), entry, body

    def write(self, header: Header, signature: bytes | SeedSigner, body: bytes, log: int = MEMORY) -> Self:
        """Write an entry with its payload and its columns, under an old signature or one of one's own."""
        entry = sign_entry(header, OWN if isinstance(signature, bytes) else signature)
        if isinstance(signature, bytes):
            entry = entry[:-SIGNATURE_BYTES] + signature
        place = log * PLACES + header.position
        self.remove(header.position, log)
        row = (place, log, header.id, header.stream, header.revision, entry)
        self.cursor.execute("INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?)", row)
        self.cursor.execute("INSERT INTO payload VALUES (?, ?)", (place, body))
        return self

    def remove(self, position: int, log: int = MEMORY) -> Self:
        """Take an entry and its payload away."""
        for table in ("entry", "payload"):
            self.cursor.execute(f"DELETE FROM {table} WHERE place = ?", (log * PLACES + position,))
        return self

    def edit(self, position: int, body: bytes | None = None, log: int = MEMORY, **fields: Any) -> Self:
        """Give an entry another payload or other fields, its hash and columns to fit; the signature stays."""
        header, entry, old = self.read(position, log)
        body = old if body is None else body
        header = header._replace(payload_hash=payload_hash(body), payload_length=len(body))._replace(**fields)
        self.write(header, entry[-SIGNATURE_BYTES:], body, log)
        return self

    def recompute(self, log: int = MEMORY, signer: SeedSigner | None = None, first: int = 0) -> Self:
        """Give every entry from `first` on the root it would have, and drop the checkpoints that do not fit any more.

        With `signer` each is signed anew, under that key's id.
        """
        frontier = Frontier()
        for position in range(self.size(log)):
            header, entry, body = self.read(position, log)
            if position >= first:
                header = header._replace(root=frontier.root())
                if signer is not None:
                    header = header._replace(key=key_id(signer.public))
                self.write(header, signer or entry[-SIGNATURE_BYTES:], body, log)
                _, entry, _ = self.read(position, log)
            frontier = frontier.append(leaf_hash(entry))
        self.cursor.execute("DELETE FROM checkpoint WHERE log = ? AND size > ?", (log, first))
        return self

    def cut(self, count: int, log: int = MEMORY) -> Self:
        """Take the newest entries away, with all that hangs on them: keys, claims, checkpoints."""
        size = self.size(log)
        for position in range(size - count, size):
            for table in ("data_key", "claim"):
                self.cursor.execute(f"DELETE FROM {table} WHERE place = ?", (log * PLACES + position,))
            self.remove(position, log)
        self.cursor.execute("DELETE FROM checkpoint WHERE log = ? AND size > ?", (log, size - count))
        return self

    def close_gap(self, gone: int, log: int = MEMORY) -> Self:
        """Move every entry after a missing one up by one, positions and claims included."""
        last = self.cursor.execute("SELECT max(place) FROM entry WHERE log = ?", (log,)).fetchone()[0] % PLACES
        for position in range(gone + 1, last + 1):
            header, entry, body = self.read(position, log)
            self.remove(position, log)
            self.write(header._replace(position=position - 1), entry[-SIGNATURE_BYTES:], body, log)
            moved = (log * PLACES + position - 1, log * PLACES + position)
            self.cursor.execute("UPDATE claim SET place = ? WHERE place = ?", moved)
        return self

    def forge(self, signature: bytes | SeedSigner, log: int = MEMORY, **fields: Any) -> Self:
        """Append an entry of one's own at the end, which fits in all but what no key was there for."""
        size, frontier = self.size(log), Frontier()
        for position in range(size):
            frontier = frontier.append(leaf_hash(self.read(position, log)[1]))
        last, *_ = self.read(size - 1, log)
        body = encode_body({"recorded_at": 1, "actor": "ciso", "text": "A forged text", "namespace": "app"})
        header = last._replace(
            id=new_id(), position=size, root=frontier.root(), time=last.time + 1, kind="memory.stored", schema=1,
            stream=b"f" * 16, revision=0, cipher=0, commitment=b"", payload_hash=payload_hash(body),
            payload_length=len(body),
        )  # fmt: skip
        self.write(header._replace(**fields), signature, body, log)
        return self

    def rekey(self, root: SeedSigner | None = None) -> Self:
        """Sign both logs anew with a key of one's own, first entries included; with `root` as the root key too."""
        for log, name in ((MEMORY, "memory"), (ACCESS, "access")):
            header, _, body = self.read(0, log)
            created = LogCreated.model_validate(decode_body(body))
            nonce = created.nonce or b""
            public = root.public if root else created.root
            origin = origin_of(public, name, nonce)
            said = b"tallystick/root-key/v1\0" + origin + OWN.public + created.checkpoint
            possession = OWN.sign(b"tallystick/possession/v1\0" + origin)
            changed: dict[str, Any] = {"root": public, "writer": OWN.public, "writer_signature": possession}
            changed["root_signature"] = root.sign(said) if root else created.root_signature
            new = encode_body(body_of(created.model_copy(update=changed)))
            for position in range(self.size(log)):
                self.edit(position, new if position == 0 else None, log, origin=origin)
            self.recompute(log, OWN)
        self.cursor.execute("DELETE FROM checkpoint")
        return self


@contextmanager
def on_disk(place: Place) -> Iterator[Disk]:
    """Edit the log.db of a store that nobody has open."""
    datastore = Datastore(File(place.store / "log.db", LogDamaged))
    with datastore.transaction(commit=True) as cursor:
        yield Disk(cursor)
    datastore.close()


Act = Callable[[Scene, Place], None]
"""What is done to a copy of the scene's store."""


def editing(change: Callable[[Scene, Disk], object]) -> Act:
    """An act on log.db."""

    def act(scene: Scene, place: Place) -> None:
        with on_disk(place) as disk:
            change(scene, disk)

    return act


def sql(*statements: str) -> Act:
    """An act that runs statements on log.db."""
    return editing(lambda _scene, disk: disk.do(*statements))


def setting(name: str, value: bytes) -> Act:
    """An act that writes a setting with its checksum, which is no secret."""
    return editing(lambda _scene, disk: write_setting(disk.cursor, name, value))


def restored(*files: str) -> Act:
    """An act that puts files of the older copy in the place of the newer ones; without names, the whole folder."""

    def act(scene: Scene, place: Place) -> None:
        if not files:
            shutil.rmtree(place.store)
            shutil.copytree(scene.older.store, place.store)
        for name in files:
            shutil.copyfile(scene.older.store / name, place.store / name)

    return act
