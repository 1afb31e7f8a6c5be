"""Somebody who has the disk changes a closed store: no verb answers from it, `verify` names it, and nothing heals."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from tallystick import Memory
from tallystick.events.claims import PLACES
from tallystick.events.installation import stamp
from tallystick.events.mark import Mark
from tallystick.events.settings import write_setting
from tallystick.events.signing import SeedSigner, key_id

from .disk import (
    ACCESS,
    MEMORY,
    OWN,
    SIGNATURE_BYTES,
    Act,
    Disk,
    Row,
    Scene,
    editing,
    make_scene,
    on_disk,
    restored,
    setting,
    sql,
)
from .ways import CommandLine, Place, Process, Python, Refusal, Way


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """A store that was used, closed, and whole."""
    return make_scene(tmp_path_factory.mktemp("scene"))


Question = tuple[str, list[Any], dict[str, Any]]


def questions(scene: Scene, folder: Path) -> list[Question]:
    """Every verb that reads, then verbs that write, then those that mend: what an agent and an operator would ask."""
    zebra, receipt = scene.ids["zebra"], scene.receipt
    return [
        ("recall", ["zebra"], {}), ("get", [zebra], {}), ("search", [], {}), ("context", ["zebra"], {}),
        ("export", [str(folder / "export.jsonl")], {}), ("history", [zebra], {}), ("blame", [zebra], {}),
        ("why", [receipt], {}), ("namespaces", [], {}), ("log", [], {}), ("receipts", [], {}), ("status", [], {}),
        ("sql", ["select count(*) from memories"], {}), ("store", ["Something new"], {}), ("forget", [zebra], {}),
        ("revise", [zebra], {"text": "Something else"}), ("pin", [zebra], {}), ("rename", ["app", "ape"], {}),
        ("store_many", [["Many things"]], {}), ("replay", [], {}), ("verify", [], {}),
    ]  # fmt: skip


READ_ONLY = {"recall", "get", "search", "export"}
BY_COMMAND = {"recall", "get", "search", "context", "export", "log", "store", "forget", "replay", "verify"}


class Damage(NamedTuple):
    """What a tampering is refused with: the log and the first bad position, or what the message says."""

    log: str | None
    position: int | None
    words: str = ""
    kinds: tuple[str, ...] = ("LogDamaged", "LogBehindMark")

    def matches(self, refusal: Refusal) -> bool:
        """Whether it is this that was said, with a way out."""
        placed = (refusal.log, refusal.position) == (self.log, self.position) or self.position is None
        return refusal.kind in self.kinds and placed and self.words in refusal.message and "`" in refusal.message


def content(place: Place) -> dict[str, str]:
    """What is in the files of a store and in its mark."""
    files = [place.store / "log.db", place.keys / "mark", *place.derived]
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files if file.exists()}


def refusals(scene: Scene, place: Place) -> Iterator[tuple[str, Refusal]]:
    """What each verb is refused with, by each entrypoint, read only too; it is an error that one is not."""
    for way in (Python(place), CommandLine(place), Python(place, read_only=True)):
        way.state = f"{type(way).__name__}{', read only' * way.read_only}"
        for verb, arguments, options in questions(scene, place.store.parent):
            if verb in (READ_ONLY if way.read_only else BY_COMMAND) or type(way) is Python and not way.read_only:
                yield f"{way.state}: {verb}", way.refusal(verb, *arguments, **options)
                way.close()


def assert_refused(scene: Scene, place: Place, damage: Damage) -> None:
    """Every verb says so, `verify` says where, and nothing is written: asked again, it is all the same."""
    before = content(place)
    for asked, refusal in refusals(scene, place):
        assert damage.matches(refusal), f"{asked}: {refusal} ({refusal.log}, {refusal.position}), not {damage}"
    assert content(place) == before
    assert not (place.store.parent / "export.jsonl").exists()


def test_the_scene_answers_while_it_is_whole(scene: Scene, tmp_path: Path) -> None:
    """What these tests stand on: a copy, with its keys and its mark, answers every verb, and verifies."""
    place = scene.place.copy_to(tmp_path / "copy")
    ways: tuple[Way, ...] = (Python(place), CommandLine(place))
    for way in ways:
        with way:
            for verb, arguments, options in questions(scene, tmp_path):
                if verb not in {"forget", "rename", "revise", "pin"}:
                    way.ask(verb, *arguments, **options)
                    if verb == "replay":
                        way.close()
    assert scene.ids["zebra"] in Process(place).ids("zebra")
    with Python(scene.older.copy_to(tmp_path / "older")) as older:
        assert older.ids("okapi")


# ---- the table of tamperings: what is done to log.db, and where the first bad position is


FORGED = b"forged" * 20


def flip_payload(disk: Disk, position: int) -> None:
    """Other bytes for a payload, and nothing else."""
    body = bytearray(disk.read(position)[2])
    body[-1] ^= 1
    disk.cursor.execute("UPDATE payload SET body = ? WHERE place = ?", (bytes(body), position))


def at(name: str, change: Callable[[Disk, int], object]) -> Act:
    """A change at the position that a memory of the scene has."""
    return editing(lambda scene, disk: change(disk, scene.positions[name]))


def copy(disk: Disk, row: Row, log: int = MEMORY, **fields: Any) -> Disk:
    """Write an entry once more with other fields, under the signature that it has."""
    header, entry, body = row
    return disk.write(header._replace(**fields), entry[-SIGNATURE_BYTES:], body, log)


def swap(disk: Disk, one: int, other: int) -> Disk:
    """Exchange two entries, their positions and columns rewritten to fit."""
    rows = [disk.read(position) for position in (one, other)]
    for position, row in zip((other, one), rows, strict=True):
        copy(disk, row, position=position)
    return disk


def exchange_times(disk: Disk, one: int, other: int) -> None:
    """Give each of two entries the other's time."""
    times = [disk.read(position)[0].time for position in (one, other)]
    for position, time in zip((other, one), times, strict=True):
        disk.edit(position, time=time)


def exchange_payloads(disk: Disk, one: int, other: int) -> None:
    """Give each of two entries the other's payload, hashes to fit."""
    bodies = [disk.read(position)[2] for position in (one, other)]
    for position, body in zip((other, one), bodies, strict=True):
        disk.edit(position, body)


def insert(disk: Disk, position: int) -> Disk:
    """Push every entry from a position on down by one, and put one's own there."""
    disk.forge(OWN, key=key_id(OWN.public))
    last = disk.size() - 1
    (header, _, body), *pushed = [disk.read(each) for each in (last, *range(position, last))]
    for to, row in enumerate(pushed, position + 1):
        copy(disk, row, position=to)
    return disk.write(header._replace(position=position), OWN, body)


def replay_from(source: Callable[[Scene], Place], position: int, target: int, log: int = MEMORY) -> Act:
    """Put an entry with its payload, as it is signed elsewhere, in a place here."""

    def act(scene: Scene, place: Place) -> None:
        with on_disk(source(scene).copy_to(place.store.parent / "source")) as disk:
            row = disk.read(position, log)
        with on_disk(place) as disk:
            copy(disk, row, log, position=target)

    return act


def replay_revision(disk: Disk, scene: Scene, *, whole: bool) -> Disk:
    """Put the first entry or payload of a stream over its newest."""
    first, newest = disk.read(scene.positions["okapi"]), newest_of_okapi(scene)
    if whole:
        return copy(disk, first, position=newest, revision=1)
    return disk.edit(newest, first[2])


def newest_of_okapi(scene: Scene) -> int:
    """Where the newest event of the revised memory stands: after elsewhere was stored."""
    return scene.positions["elsewhere"] + 1


CLAIMS = Damage("memory", None, "claim")

TAMPERINGS: dict[str, tuple[Act, Callable[[Scene], Damage]]] = {
    # a memory's content
    "a payload is edited": (
        at("zebra", flip_payload),
        lambda scene: Damage("memory", scene.positions["zebra"]),
    ),
    "a payload and its hash": (
        at("zebra", lambda disk, position: disk.edit(position, FORGED)),
        lambda scene: Damage("memory", scene.positions["zebra"]),
    ),
    "a payload, its hash and every root after it": (
        at("zebra", lambda disk, position: disk.edit(position, FORGED).recompute(first=position)),
        lambda scene: Damage("memory", scene.positions["zebra"]),
    ),
    "the newest payload, hash and all": (
        at("last", lambda disk, position: disk.edit(position, FORGED).recompute(first=position)),
        lambda scene: Damage("memory", scene.positions["last"]),
    ),
    "a text in clear, without what sealed it": (
        at("zebra", lambda disk, position: disk.edit(position, b"\x80", cipher=0, commitment=b"")),
        lambda scene: Damage("memory", scene.positions["zebra"]),
    ),
    "payloads of two memories exchanged": (
        editing(lambda scene, disk: exchange_payloads(disk, scene.positions["zebra"], scene.positions["gnu"])),
        lambda scene: Damage("memory", scene.positions["zebra"]),
    ),
    # metadata
    **{
        f"the {field} of an entry": (
            at("gnu", lambda disk, position, changed={field: value}: disk.edit(position, **changed)),  # type: ignore[misc]
            lambda scene: Damage("memory", scene.positions["gnu"]),
        )
        for field, value in {
            "kind": "memory.pinned", "schema": 2, "stream": b"s" * 16, "revision": 7, "id": b"i" * 16, "key": b"k" * 8,
            "commitment": b"c" * 32, "payload_length": 7, "origin": b"o" * 32, "root": b"r" * 32,
        }.items()
    },
    "a column": (sql("UPDATE entry SET stream = zeroblob(16) WHERE place = 2"), lambda _: Damage("memory", 2)),
    "the log's column": (sql("UPDATE entry SET log = 1 WHERE place = 2"), lambda _: Damage("memory", 2)),
    # rows gone
    "a middle row is gone": (at("gnu", Disk.remove), lambda scene: Damage("memory", scene.positions["gnu"])),
    "a middle payload is gone": (
        sql("DELETE FROM payload WHERE place = 3"), lambda _: Damage("memory", 3, "payload is gone"),
    ),
    "a middle row is gone, and the gap closed": (
        at("gnu", lambda disk, position: disk.remove(position).close_gap(position).recompute()),
        lambda scene: Damage("memory", scene.positions["gnu"]),
    ),
    "the first row is gone": (editing(lambda _s, disk: disk.remove(0)), lambda _: Damage("memory", 0)),
    "the two newest rows are gone, with all that hangs on them": (
        editing(lambda _s, disk: disk.cut(2)), lambda scene: Damage("memory", scene.positions["last but one"]),
    ),
    "the newest row is gone": (
        editing(lambda _s, disk: disk.cut(1)), lambda scene: Damage("memory", scene.positions["last"]),
    ),
    "all rows but the first are gone": (
        editing(lambda _s, disk: disk.cut(disk.size() - 1)), lambda _: Damage("memory", 1),
    ),
    # order and time
    "two rows exchanged": (editing(lambda _s, disk: swap(disk, 2, 3)), lambda _: Damage("memory", 2)),
    "two rows exchanged, and every root after them": (
        editing(lambda _s, disk: swap(disk, 2, 3).recompute(first=2)), lambda _: Damage("memory", 2),
    ),
    "two times exchanged": (editing(lambda _s, disk: exchange_times(disk, 2, 4)), lambda _: Damage("memory", 2)),
    "a time moved back": (at("last", lambda disk, position: disk.edit(position, time=1)),
                          lambda scene: Damage("memory", scene.positions["last"])),
    # entries of one's own
    "an entry under one's own key": (
        editing(lambda _s, disk: disk.forge(OWN, key=key_id(OWN.public))),
        lambda scene: Damage("memory", scene.positions["last"] + 1, "not signed by the key in force"),
    ),
    "an entry under the name of the key in force": (
        editing(lambda _s, disk: disk.forge(OWN)),
        lambda scene: Damage("memory", scene.positions["last"] + 1, "not signed by the key in force"),
    ),
    "an entry without a signature": (
        editing(lambda _s, disk: disk.forge(bytes(64))), lambda scene: Damage("memory", scene.positions["last"] + 1),
    ),
    "an entry that forgets a memory": (
        editing(lambda scene, disk: disk.forge(
            OWN, kind="memory.forgotten", stream=bytes.fromhex(scene.ids["zebra"]), revision=1
        )),
        lambda scene: Damage("memory", scene.positions["last"] + 1),
    ),
    "an entry that supersedes a memory, and the first row edited": (
        editing(lambda scene, disk: disk.forge(
            OWN, kind="memory.superseded", stream=bytes.fromhex(scene.ids["zebra"]), revision=1
        ).edit(0, b"\x80")),
        lambda _: Damage("memory", 0),
    ),
    "an entry in the middle": (editing(lambda _s, disk: insert(disk, 3)), lambda _: Damage("memory", 3)),
    "an entry in the middle, and every root after it": (
        editing(lambda _s, disk: insert(disk, 3).recompute(first=3)), lambda _: Damage("memory", 3),
    ),
    # entries from elsewhere
    "an entry of the other log": (
        editing(lambda _s, disk: copy(disk, disk.read(2, ACCESS), position=2)),
        lambda _: Damage("memory", 2),
    ),
    "an entry of another store": (replay_from(lambda scene: scene.other, 2, 2), lambda _: Damage("memory", 2)),
    "an entry of another store, appended": (
        lambda scene, place: replay_from(lambda s: s.other, 2, scene.positions["last"] + 1)(scene, place),
        lambda scene: Damage("memory", scene.positions["last"] + 1),
    ),
    "an older entry, appended once more": (
        editing(lambda _s, disk: copy(disk, disk.read(2), position=disk.size(), revision=1)),
        lambda scene: Damage("memory", scene.positions["last"] + 1),
    ),
    "an older payload of a memory over its newest": (
        editing(lambda scene, disk: replay_revision(disk, scene, whole=False)),
        lambda scene: Damage("memory", newest_of_okapi(scene)),
    ),
    "an older entry of a memory over its newest": (
        editing(lambda scene, disk: replay_revision(disk, scene, whole=True)),
        lambda scene: Damage("memory", newest_of_okapi(scene)),
    ),
    "a memory moved to the other log": (
        editing(lambda _s, disk: copy(disk, disk.read(3), ACCESS, position=disk.size(ACCESS)).remove(3)),
        lambda _: Damage("memory", 3),
    ),
    # older copies
    "an older copy of the whole store": (
        restored(), lambda scene: Damage("memory", scene.positions["value"], "older copy"),
    ),
    "an older copy of the log": (
        restored("log.db"), lambda scene: Damage("memory", scene.positions["value"], "older copy"),
    ),
    # the record of what was read
    "the record of reads is cut": (editing(lambda _s, disk: disk.cut(3, ACCESS)), lambda _: Damage("access", 3)),
    "a middle read is gone": (editing(lambda _s, disk: disk.remove(2, ACCESS)), lambda _: Damage("access", 2)),
    "a middle read is gone, and the gap closed": (
        editing(lambda _s, disk: disk.remove(2, ACCESS).close_gap(2, ACCESS).recompute(ACCESS)),
        lambda _: Damage("access", 2),
    ),
    "a read is edited, and every root after it": (
        editing(lambda _s, disk: disk.edit(2, FORGED, ACCESS).recompute(ACCESS, first=2)),
        lambda _: Damage("access", 2),
    ),
    "the record of reads is gone": (
        sql(f"DELETE FROM entry WHERE place >= {PLACES}", f"DELETE FROM payload WHERE place >= {PLACES}"),
        lambda _: Damage("access", 0),
    ),
    # another key
    "everything signed anew with another key": (
        editing(lambda _s, disk: disk.rekey()), lambda _: Damage("memory", 0, "root key"),
    ),
    "everything signed anew, and another root key": (
        editing(lambda _s, disk: disk.rekey(SeedSigner(bytes(reversed(range(32)))))),
        lambda _: Damage("memory", 0, "root key"),
    ),
    "all but the first signed anew with another key": (
        editing(lambda _s, disk: disk.recompute(signer=OWN, first=1)), lambda _: Damage("memory", 1, "not signed"),
    ),
    # what stands beside the logs
    "a claim is gone": (sql("DELETE FROM claim WHERE tag = (SELECT min(tag) FROM claim)"), lambda _: CLAIMS),
    "every claim is gone": (sql("DELETE FROM claim"), lambda _: CLAIMS),
    "the claim on a key leads to the older value": (
        editing(lambda scene, disk: disk.cursor.execute(
            "UPDATE claim SET place = ? WHERE place = ?", (scene.positions["old value"], scene.positions["value"])
        )),
        lambda _: CLAIMS,
    ),
    "a claim of one's own": (sql("INSERT INTO claim VALUES (zeroblob(16), 1)"), lambda _: CLAIMS),
    "the claims and their seal from an older copy": (
        lambda scene, place: older_claims(scene, place), lambda _: CLAIMS,
    ),
    "the seal of the claims is gone": (sql("DELETE FROM setting WHERE name = 'claims'"), lambda _: CLAIMS),
    "a setting without its checksum": (
        sql("UPDATE setting SET value = zeroblob(20) WHERE name = 'store'"), lambda _: Damage(None, None, "store"),
    ),
    "the id of the store": (setting("store", b"another store id"), lambda _: Damage(None, None)),
    "a trigger that acts on each append": (
        sql("CREATE TRIGGER helper AFTER INSERT ON claim BEGIN DELETE FROM claim WHERE tag = new.tag; END"),
        lambda _: Damage(None, None, "log.db is damaged"),
    ),
    "a table in the place of another": (
        sql("ALTER TABLE claim RENAME TO was", "CREATE VIEW claim AS SELECT * FROM was"), lambda _: Damage(None, None),
    ),
}  # fmt: skip


def older_claims(scene: Scene, place: Place) -> None:
    """Put the rows of claims back that an older copy has, and the seal that fits them."""
    with on_disk(scene.older.copy_to(place.store.parent / "source")) as disk:
        rows = disk.cursor.execute("SELECT tag, place FROM claim").fetchall()
        seal = disk.cursor.execute("SELECT value FROM setting WHERE name = 'claims'").fetchone()
    with on_disk(place) as disk:
        disk.do("DELETE FROM claim")
        disk.cursor.executemany("INSERT INTO claim VALUES (?, ?)", rows)
        disk.cursor.execute("UPDATE setting SET value = ? WHERE name = 'claims'", seal)


@pytest.mark.parametrize("name", TAMPERINGS)
def test_no_verb_answers_from_a_log_that_was_tampered_with(scene: Scene, tmp_path: Path, name: str) -> None:
    """Reading, writing and mending are refused alike, by the one error that names the first bad position."""
    act, damage = TAMPERINGS[name]
    place = scene.place.copy_to(tmp_path / "copy")
    act(scene, place)
    assert_refused(scene, place, damage(scene))


IN_A_PROCESS = [*TAMPERINGS][::9]


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in IN_A_PROCESS else pytest.mark.exhaustive) for n in TAMPERINGS]
)
def test_a_new_process_refuses_it_too(scene: Scene, tmp_path: Path, name: str) -> None:
    """The program `tallystick` ends with 1 and the same error, to be read and to be verified."""
    act, damage = TAMPERINGS[name]
    place = scene.place.copy_to(tmp_path / "copy")
    act(scene, place)
    way, expected = Process(place), damage(scene)
    assert expected.matches(way.refusal("recall", "zebra"))
    code, out, error = way.run(["verify"])
    named = [
        f"position {expected.position}",
        f"{expected.position} entries",
        *["no first entry"] * (expected.position == 0),
    ]
    assert expected.position is None or any(words in error for words in named)


def forge_stamp(place: Place) -> None:
    """Make the changed log.db pass for the one that was closed, as who controls the operating system can."""
    mark = Mark(place.keys)
    closed = dict(mark.read().closed)
    closed["log"] = stamp(place.store / "log.db")
    views, *_ = closed["views"]
    closed["views"] = [views, stamp(place.store / str(views)), stamp(place.store / "vectors.db")]
    mark.close(closed)
    mark.release()


@pytest.mark.parametrize("name", [name for name in TAMPERINGS if name not in {"an older copy of the whole store"}])
def test_files_that_pass_for_untouched_are_named_by_verify(scene: Scene, tmp_path: Path, name: str) -> None:
    """Even where nothing shows that the file was changed, `verify` names the first bad position."""
    act, damage = TAMPERINGS[name]
    place = scene.place.copy_to(tmp_path / "copy")
    act(scene, place)
    forge_stamp(place)
    expected, way = damage(scene), CommandLine(place)
    refusal = way.refusal("verify")
    assert refusal.kind in expected.kinds, refusal
    assert expected.position in (None, refusal.position), (refusal, refusal.position)


# ---- the keys


KEYS: dict[str, tuple[Callable[[Place], object], str]] = {
    "the signing key is deleted": (lambda place: os.remove(place.keys / "writer.key"), "writer.key"),
    "the root key is deleted": (lambda place: os.remove(place.keys / "root.key"), "root.key"),
    "every key is deleted": (lambda place: [*map(os.remove, place.keys.glob("*.key"))], ".key"),
    "the signing key is swapped": (lambda place: (place.keys / "writer.key").write_text(OWN.seed.hex()), "writer.key"),
    "the checkpoint key is swapped": (lambda place: (place.keys / "log.key").write_text(OWN.seed.hex()), "log.key"),
    "the key that opens is swapped": (lambda place: (place.keys / "kek.key").write_text(OWN.seed.hex()), "kek.key"),
    "the index key is swapped": (lambda place: (place.keys / "index.key").write_text(OWN.seed.hex()), "index.key"),
    "a key is cut": (lambda place: (place.keys / "writer.key").write_text("00"), "writer.key"),
    "a key is empty": (lambda place: (place.keys / "kek.key").write_text(""), "kek.key"),
}


@pytest.mark.parametrize("name", KEYS)
def test_no_verb_answers_without_the_right_keys(scene: Scene, tmp_path: Path, name: str) -> None:
    """Each names the key that is missing or is not this store's, and makes no new one."""
    act, key = KEYS[name]
    place = scene.place.copy_to(tmp_path / "copy")
    act(place)
    there = sorted(place.keys.iterdir())
    assert_refused(scene, place, Damage(None, None, key, ("KeysMissing", "LogDamaged")))
    assert sorted(place.keys.iterdir()) == there


def test_a_swapped_key_with_everything_signed_anew_is_refused(scene: Scene, tmp_path: Path) -> None:
    """The key beside the log fits it, and still neither is what the root key has admitted."""
    place = scene.place.copy_to(tmp_path / "copy")
    with on_disk(place) as disk:
        disk.rekey()
    (place.keys / "writer.key").write_text(OWN.seed.hex())
    assert_refused(scene, place, Damage("memory", 0, "root key"))


def test_all_keys_swapped_with_everything_signed_anew_are_refused(scene: Scene, tmp_path: Path) -> None:
    """Who puts a whole consistent store and its keys here is stopped by the mark: it is not the log that was here."""
    place = scene.place.copy_to(tmp_path / "copy")
    root = SeedSigner(bytes(reversed(range(32))))
    with on_disk(place) as disk:
        disk.rekey(root)
    (place.keys / "writer.key").write_text(OWN.seed.hex())
    (place.keys / "root.key").write_text(root.seed.hex())
    assert_refused(scene, place, Damage("memory", None, "", ("LogBehindMark", "LogDamaged")))


# ---- a data key: what it opened can't be read, and says so


def test_a_data_key_that_is_gone_hides_nothing_in_silence(scene: Scene, tmp_path: Path) -> None:
    """Whatever would hand the memory out is refused, naming it; it can't be changed, and `verify` names it."""
    place = scene.place.copy_to(tmp_path / "copy")
    zebra = scene.ids["zebra"]
    with on_disk(place) as disk:
        disk.do(f"DELETE FROM data_key WHERE place = {scene.positions['zebra']}")
    for way in (Python(place), CommandLine(place)):
        with way:
            for verb, words in (
                ("recall", ["zebra"]),
                ("get", [zebra]),
                ("search", []),
                ("verify", []),
                ("forget", [zebra]),
            ):
                assert way.refusal(verb, *words).kind in {"LogDamaged", "StreamErased"}, verb
                way.close()


@pytest.mark.parametrize("name", [name for name in TAMPERINGS if "claim" in name and "seal" not in name])
def test_claims_that_were_changed_are_made_anew_by_salvage(scene: Scene, tmp_path: Path, name: str) -> None:
    """No event is lost, so no memory is held back: each holds what its events say, and what is protected stays."""
    place = scene.place.copy_to(tmp_path / "copy")
    TAMPERINGS[name][0](scene, place)
    done = Memory.salvage(place.store, tmp_path / "saved", keys=place.keys)
    assert (done.withheld, [log.lost for log in done.logs]) == ((), [(), ()])
    with Python(Place(tmp_path / "saved", place.keys)) as way:
        way.ask("verify", views=True)
        assert "protected" in way.refusal("store", "The keeper is Eve", key="keeper").message
        assert way.ask("store", "The zebra sleeps in the stable")["outcome"] == "reinforced"
        assert way.ask("store", "The gnu sleeps in the stable")["outcome"] == "stored"  # it was forgotten


# ---- the views and the vectors: refused by name, or without any effect


def views(place: Place) -> Path:
    """The views in force."""
    (file,) = place.store.glob("views-*.db")
    return file


def of_pages(change: Callable[[list[bytes]], Sequence[bytes]]) -> Callable[[Scene, Path], None]:
    """An act on the pages of a file of views."""

    def act(_scene: Scene, file: Path) -> None:
        whole = file.read_bytes()
        file.write_bytes(b"".join(change([whole[at : at + 4096] for at in range(0, len(whole), 4096)])))

    return act


def noise(pages: list[bytes]) -> list[bytes]:
    """The pages with one in the middle overwritten."""
    return [*pages[:5], Random(3).randbytes(4096), *pages[6:]]


VIEWS: dict[str, Callable[[Scene, Path], object]] = {
    "edited": of_pages(noise),
    "its end cut": of_pages(lambda pages: pages[:-2]),
    "a page in the middle gone": of_pages(lambda pages: pages[:4] + pages[5:]),
    "two pages exchanged": of_pages(lambda pages: [*pages[:3], pages[4], pages[3], *pages[5:]]),
    "a page appended": of_pages(lambda pages: [*pages, pages[3]]),
    "of another store": lambda scene, file: shutil.copyfile(views(scene.other), file),
    "a page of an older copy": lambda scene, file: file.write_bytes(
        file.read_bytes()[:8192] + views(scene.older).read_bytes()[8192:12288] + file.read_bytes()[12288:]
    ),
    "its header edited": of_pages(lambda pages: [pages[0][:100] + bytes(50) + pages[0][150:], *pages[1:]]),
    "an older copy": lambda scene, file: shutil.copyfile(views(scene.older), file),
    "gone": lambda _scene, file: file.unlink(),
    "empty": lambda _scene, file: file.write_bytes(b""),
}
WITHOUT_EFFECT = {"an older copy"}
"""It is brought up to date by the log, and compared with a rebuild."""


def told(way: Way, scene: Scene) -> list[Any]:
    """What a store says of everything that the scene has."""
    found = way.ask("search", status=["current", "forgotten", "superseded"])["memories"]
    recalled = [hit["memory"]["id"] for hit in way.ask("recall", "zebra okapi stable said", limit=99)["hits"]]
    return [sorted(found, key=lambda memory: str(memory["id"])), recalled, way.get(scene.ids["value"])]


@pytest.mark.parametrize("name", VIEWS)
def test_views_that_were_tampered_with_are_refused_or_have_no_effect(scene: Scene, tmp_path: Path, name: str) -> None:
    """By every verb, and nothing heals before `replay` is asked for; then all is as it was."""
    place = scene.place.copy_to(tmp_path / "copy")
    with Python(scene.place.copy_to(tmp_path / "whole")) as sound:
        whole = told(sound, scene)
    VIEWS[name](scene, views(place))
    if name in WITHOUT_EFFECT:
        with CommandLine(place) as command:
            assert told(command, scene) == whole
            command.ask("verify", views=True)
        return
    log, mark = place.store / "log.db", place.keys / "mark"
    before = log.read_bytes(), mark.read_bytes()
    ways: tuple[Way, ...] = (Python(place), CommandLine(place))
    for way in ways:
        for verb, arguments, options in questions(scene, place.store.parent)[:-2]:
            if isinstance(way, Python) or verb in BY_COMMAND:
                refusal = way.refusal(verb, *arguments, **options)
                assert refusal.kind == "ViewsDamaged", (verb, refusal)
                assert "tallystick replay" in refusal.message, verb
                way.close()
    assert (log.read_bytes(), mark.read_bytes()) == before
    assert way.refusal("verify", views=True).kind == "ViewsDamaged"
    way.ask("replay")
    assert told(way, scene) == whole
    way.ask("verify", views=True)


def test_a_setting_that_names_other_views_is_refused(scene: Scene, tmp_path: Path) -> None:
    """Which file is in force can be changed by who has the disk; what is in it still has to be what the log says."""
    for name in ("views-5f8dcdbf-00000000.db", "../keys/writer.key", "log.db", "vectors.db", "/etc/passwd"):
        place = scene.place.copy_to(tmp_path / hashlib.sha256(name.encode()).hexdigest()[:8])
        with on_disk(place) as disk:
            (setting_name,) = disk.cursor.execute("SELECT name FROM setting WHERE name LIKE 'views%'").fetchone()
            write_setting(disk.cursor, setting_name, name.encode())
        with Python(place) as way:
            assert way.refusal("recall", "zebra").kind in {"ViewsDamaged", "LogDamaged"}, name
        assert os.path.exists(place.keys / "writer.key")
