"""Whatever is appended, by whomever: the log is one gapless signed tree, and nothing else is ever served."""

from __future__ import annotations

import hashlib
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgpack  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nacl.signing import VerifyKey

from tallystick import Memory
from tallystick.errors import Claimed, LogDamaged, RevisionConflict
from tallystick.events.claims import PLACES, Claim, Release
from tallystick.events.commit import GroupCommit
from tallystick.events.driver import Datastore, File
from tallystick.events.entries import Tip
from tallystick.events.envelope import SIGNATURE_BYTES
from tallystick.events.installation import Installation
from tallystick.events.kinds import Event, Forgotten, Read, Reinforced, Stored, Superseded
from tallystick.events.log import Append, Log
from tallystick.events.mapper import NEXT, Draft
from tallystick.events.merkle import Frontier
from tallystick.events.signing import SeedSigner
from tallystick.projections.views import RECALL

SIGNED_OVER = b"tallystick/event/v1\0"
WRITERS = st.integers(0, 1)
STREAMS = st.integers(0, 5)

# ---- one gapless signed tree


class Store:
    """A store that two installations have open, as two processes would, and what they have appended."""

    def __init__(self, folder: Path) -> None:
        self.path, self.keys = folder / "store", folder / "keys"
        Installation.create(self.path, self.keys).close({})
        self.installations = [self.open() for _ in range(2)]
        self.streams: list[list[str]] = []
        self.ids: list[bytes] = []
        self.texts: list[str] = []

    def open(self) -> Installation:
        """Open the store, and let others open it too."""
        installation = Installation.open(self.path, self.keys)
        installation.share()
        return installation

    def log(self, writer: int) -> Log:
        """The memory log, as one of the two has it."""
        return self.installations[writer].memory

    def append(self, writer: int, picks: Sequence[int]) -> None:
        """Append one event for each pick, all in one command: to a stream there is, or to a new one."""
        log, first = self.log(writer), len(self.texts) + 1
        texts = [f"event {first + n}" for n in range(len(picks))]
        drafts = tuple(self.draft(log, pick, text) for pick, text in zip(picks, texts, strict=True))
        done = log.append(Append(drafts))
        assert [event.position for event in done] == list(range(first, first + len(picks)))
        self.texts += texts
        for draft, text in zip(drafts, texts, strict=True):
            if draft.stream not in self.ids:
                self.ids.append(draft.stream)
                self.streams.append([])
            self.streams[self.ids.index(draft.stream)].append(text)

    def draft(self, log: Log, pick: int, text: str, revision: int = NEXT) -> Draft:
        """The draft of an event that tells its text in `actor`, for a stream there is or a new one."""
        if pick < len(self.ids):
            return log.following(self.ids[pick], Reinforced(recorded_at=0, actor=text), revision)
        stream, nonce = log.new_stream()
        return log.opening(stream, Stored(recorded_at=0, actor=text, text=text, namespace="n", nonce=nonce))

    def conflict(self, writer: int, pick: int) -> None:
        """A command whose second draft expects another revision is refused, and its first is not written either."""
        log = self.log(writer)
        taken = len(self.streams[pick]) - 1
        drafts = (self.draft(log, len(self.ids), "never"), self.draft(log, pick, "never", taken or 2))
        with pytest.raises(RevisionConflict):
            log.append(Append(drafts))

    def reopen(self, writer: int, *, cleanly: bool) -> None:
        """One of the two ends, with or without a stamp, and comes back."""
        if cleanly:
            self.installations[writer].close({})
        else:
            self.installations[writer].abandon()
        self.installations[writer] = self.open()

    def check(self) -> None:
        """Both, and one that comes anew, read what was appended; the bytes are a signed tree without a gap."""
        self.reopen(0, cleanly=True)
        for log in (self.log(0), self.log(1)):
            events = [event for page in log.pages(0, log.follow().size - 1) for event in page]
            assert [logged.event.actor for logged in events] == self.texts
            for stream, texts in zip(self.ids, self.streams, strict=True):
                assert [logged.event.actor for logged in log.events_of(stream)] == texts
        keys = self.installations[0].keys
        assert keys is not None
        check_entries(self.path, VerifyKey(keys.writer.public))

    def close(self) -> None:
        """Close both."""
        for installation in self.installations:
            installation.close({})


def check_entries(path: Path, writer: VerifyKey) -> None:
    """Read the bytes of every entry without any code of ours: positions, roots, clocks, revisions, signatures."""
    for log in (0, 1):
        leaves: list[bytes] = []
        revisions: dict[bytes, int] = {}
        time = 0
        for place, entry, body in rows(path, log):
            header = msgpack.unpackb(entry[:-SIGNATURE_BYTES])
            _, _, _, position, root, _, clock, _, _, stream, revision, _, _, hashed, length = header
            assert position == place - log * PLACES == len(leaves)
            assert root == tree_root(leaves)
            assert clock > time
            assert revision == revisions.get(stream, -1) + 1
            assert (hashed, length) == (hashlib.sha256(body).digest(), len(body))
            writer.verify(SIGNED_OVER + entry[:-SIGNATURE_BYTES], entry[-SIGNATURE_BYTES:])
            leaves.append(hashlib.sha256(b"\0" + entry).digest())
            revisions[stream], time = revision, clock


def rows(path: Path, log: int) -> list[tuple[int, bytes, bytes]]:
    """Place, entry and payload of every event of a log."""
    with opened(path) as cursor:
        return list(
            cursor.execute(
                "SELECT place, entry, body FROM entry JOIN payload USING (place) WHERE log = ? ORDER BY place", (log,)
            ).fetchall()
        )


def tree_root(leaves: Sequence[bytes]) -> bytes:
    """The Merkle tree hash of RFC 6962, section 2.1, word for word."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    split = 1 << (len(leaves) - 1).bit_length() - 1
    return hashlib.sha256(b"\1" + tree_root(leaves[:split]) + tree_root(leaves[split:])).digest()


STEPS = st.lists(
    st.tuples(st.just("append"), WRITERS, st.lists(STREAMS, min_size=1, max_size=4))
    | st.tuples(st.just("conflict"), WRITERS, STREAMS)
    | st.tuples(st.sampled_from(("close", "abandon")), WRITERS, st.none()),
    max_size=20,
)


@given(STEPS)
@settings(max_examples=60)
def test_two_writers_make_one_gapless_signed_tree(steps: list[tuple[str, int, Any]]) -> None:
    """What two processes append, in any order, with conflicts, ends and kills, is one log that both read alike."""
    run_steps(steps)


@pytest.mark.exhaustive
@given(STEPS)
@settings(max_examples=1000)
def test_two_writers_make_one_gapless_signed_tree_of_any_shape(steps: list[tuple[str, int, Any]]) -> None:
    """The same, for many more histories."""
    run_steps(steps)


def run_steps(steps: list[tuple[str, int, Any]]) -> None:
    """Carry out the steps on a new store, then check it."""
    with folder() as place:
        store = Store(place)
        try:
            for step, writer, what in steps:
                if step == "append":
                    store.append(writer, what)
                elif step in ("close", "abandon"):
                    store.reopen(writer, cleanly=step == "close")
                elif what < len(store.ids):
                    store.conflict(writer, what)
            store.check()
        finally:
            store.close()


# ---- what only one may hold


@given(st.lists(st.tuples(WRITERS, st.booleans(), st.integers(0, 2), STREAMS), max_size=25))
@settings(max_examples=60)
def test_a_claim_has_one_holder(steps: list[tuple[int, bool, int, int]]) -> None:
    """Two processes that claim and release the same tags agree on the holder of each after every step."""
    with folder() as place:
        store = Store(place)
        try:
            store.append(0, [6] * 6)
            held: dict[bytes, bytes] = {}
            for writer, claims, tag, stream in steps:
                claim(store, held, writer, (claims, bytes([tag]) * 16, store.ids[stream]))
        finally:
            store.close()


def claim(store: Store, held: dict[bytes, bytes], writer: int, wish: tuple[bool, bytes, bytes]) -> None:
    """Claim a free tag or release it, with an event of a stream; a tag that is taken is refused, naming its holder."""
    claims, tag, stream = wish
    log = store.log(writer)
    draft = log.following(stream, Reinforced(recorded_at=0, actor="a"))
    if claims and tag in held:
        with pytest.raises(Claimed) as refused:
            log.append(Append((draft,), (Claim(tag, 0),)))
        assert refused.value.holder == held[tag]
    elif claims:
        log.append(Append((draft,), (Claim(tag, 0),)))
        held[tag] = stream
    else:
        log.append(Append((draft,), releases=(Release(tag, stream),)))
        if held.get(tag) == stream:
            del held[tag]


# ---- a right root and a junk signature

OTHER = SeedSigner(b"\7" * 32)
FORGERIES: dict[str, Event] = {
    "memory.stored": Stored(recorded_at=0, actor="mallory", text="The vault opens at ten", namespace="default"),
    "memory.forgotten": Forgotten(recorded_at=0, actor="mallory"),
    "memory.superseded": Superseded(recorded_at=0, actor="mallory", by=bytes(16)),
    "memory.reinforced": Reinforced(recorded_at=0, actor="mallory"),
    "memory.read": Read(recorded_at=0, actor="mallory", memory=bytes(16), verb="get", log_size=1, log_root=bytes(32)),
}
SIGNATURES: dict[str, Callable[[bytes, bytes], bytes]] = {
    "random": lambda _message, _before: secrets.token_bytes(64),
    "zeros": lambda _message, _before: bytes(64),
    "of the entry before": lambda _message, before: before,
    "by another key": lambda message, _before: OTHER.sign(message),
}


@pytest.mark.parametrize("names_its_key", [False, True])
@pytest.mark.parametrize("signature", SIGNATURES)
@pytest.mark.parametrize("kind", FORGERIES)
def test_an_event_with_a_right_root_and_a_junk_signature_is_never_served(
    kind: str, signature: str, *, names_its_key: bool
) -> None:
    """It fits the tree and its payload opens, but its writer did not sign it: nobody folds it, serves it or goes on."""
    with attacked() as (place, memory, kept):
        rogue = Rogue(memory._opened.installation, SIGNATURES[signature])
        if names_its_key:
            rogue.writer = OTHER.public
        why = rogue.append(FORGERIES[kind], bytes.fromhex(kept)), "it is not signed by the key in force"
        live_memory_refuses(memory, kind, kept, why)
        fresh_memory_refuses(place, why)
        memory.close()
        fresh_memory_refuses(place, why)


@pytest.mark.parametrize("kind", FORGERIES)
def test_an_event_with_a_right_signature_over_another_history_is_never_served(kind: str) -> None:
    """Its writer signed it, but over the root of entries that are not those before it."""
    with attacked() as (place, memory, kept):
        keys = memory._opened.installation.keys
        assert keys is not None
        rogue = Rogue(memory._opened.installation, lambda message, _before: keys.writer.sign(message))
        rogue.history = [b"another entry"]
        why = (
            rogue.append(FORGERIES[kind], bytes.fromhex(kept)) - 1,
            "it is not the entry that later ones were signed over",
        )
        live_memory_refuses(memory, kind, kept, why)
        fresh_memory_refuses(place, why)
        memory.close()
        fresh_memory_refuses(place, why)


@contextmanager
def attacked() -> Iterator[tuple[Path, Memory, str]]:
    """An open store with one memory, that recall finds: its folder, the Memory, and the memory's id."""
    with folder() as place:
        memory = Memory.open(place / "store", keys=place / "keys", model="none")
        try:
            kept = memory.store("The vault opens at nine").id
            assert [hit.id for hit in memory.recall("vault")] == [kept]
            yield place, memory, kept
        finally:
            memory.close()


class Rogue:
    """A writer that has the secrets of a store, and signs as it likes over what history it likes."""

    def __init__(self, installation: Installation, sign: Callable[[bytes, bytes], bytes]) -> None:
        self.installation = installation
        self.writer = installation.memory.recorder.identity.writer
        self.history: list[bytes] = []
        self._sign = sign
        self._before = b""

    @property
    def public(self) -> bytes:
        """The key that an entry names as its signer's."""
        return self.writer

    def sign(self, message: bytes) -> bytes:
        """What is put in the place of a signature."""
        return self._sign(message, self._before)

    def append(self, event: Event, stream: bytes) -> int:
        """Write an event into log.db: to a stream, or where it opens one, to a new one. Returns its position."""
        keys = self.installation.keys
        assert keys is not None
        true = self.installation.logs[event.KIND == Read.KIND]
        self._before = rows(self.installation.path, true.recorder.identity.number)[-1][1][-SIGNATURE_BYTES:]
        datastore = Datastore(File(self.installation.path / "log.db", LogDamaged))
        identity = true.recorder.identity._replace(writer=self.writer)
        log = Log(datastore, identity, GroupCommit(datastore, lambda _reached: None), self, keys)
        log.recorder.tip = self._tip(true.tip)
        draft = log.following(stream, event)
        if isinstance(event, Stored | Read):
            stream, nonce = log.new_stream()
            draft = log.opening(stream, event.model_copy(update={"nonce": nonce}))
        position = log.append(Append((draft,)))[0].position
        datastore.close()
        return position

    def _tip(self, true: Tip) -> Tip:
        """The true tip, or one of the same size over another history."""
        frontier = Frontier()
        for leaf in self.history * true.size:
            frontier = frontier.append(hashlib.sha256(leaf).digest())
        return true._replace(frontier=frontier) if self.history else true


def live_memory_refuses(memory: Memory, kind: str, kept: str, why: tuple[int, str]) -> None:
    """A Memory that was open when it happened neither answers from it nor appends after it."""
    store = memory._opened.installation.path
    sizes = [len(rows(store, log)) for log in (0, 1)]
    verbs: list[Callable[[], object]] = [memory.verify, memory.rebuild, memory.log]
    verbs += [lambda: memory.recall("vault"), lambda: memory.get(kept)]
    if kind != Read.KIND:
        verbs += [lambda: memory.store("The vault opens at noon"), lambda: list(memory.events())]
    for verb in verbs:
        with refused(why):
            verb()
    assert [len(rows(store, log)) for log in (0, 1)] == sizes
    assert len(list(store.glob("views-*.db"))) == 1
    with memory._opened.views.opened().reading() as cursor:
        assert cursor.execute("SELECT count(*), min(status) FROM memories").fetchall() == [(1, "current")]
    assert memory._opened.views.opened().position(RECALL, "memory") == 1


def fresh_memory_refuses(place: Path, why: tuple[int, str]) -> None:
    """A Memory that is opened afterwards is refused at the same position."""
    with refused(why):
        Memory.open(place / "store", keys=place / "keys", model="none")


@contextmanager
def refused(why: tuple[int, str]) -> Iterator[None]:
    """What is inside raises LogDamaged, naming this position and this reason."""
    position, reason = why
    with pytest.raises(LogDamaged, match=f"position {position}: {reason}") as caught:
        yield
    assert caught.value.position == position


# ---- helpers


@contextmanager
def folder() -> Iterator[Path]:
    """A folder that is removed afterwards."""
    place = Path(tempfile.mkdtemp(prefix="tallystick-log-"))
    try:
        yield place
    finally:
        shutil.rmtree(place)


@contextmanager
def opened(store: Path) -> Iterator[Any]:
    """A cursor on log.db, over a connection of its own."""
    datastore = Datastore(File(store / "log.db", LogDamaged))
    try:
        with datastore.transaction(commit=False) as cursor:
            yield cursor
    finally:
        datastore.close()
