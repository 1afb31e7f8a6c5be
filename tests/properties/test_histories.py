"""Whatever happens to a store, in whatever order: views equal a rebuild, and recall gives what is current, no more."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from unicodedata import normalize

import pytest
from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from tallystick import Memory, Outcome
from tallystick.errors import Refused
from tallystick.events import entries, log, recorder
from tallystick.projections.models import places
from tallystick.projections.record import fold
from tallystick.projections.tokens import query_tokens

NAMESPACES = ("project:app", "project:app/docs", "org/größe/user:ana")
KEYS = (None, None, "employer", "schlüssel 鍵")
THREADS = (None, None, None, "s1")
IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
LONG_AGO = "2020-01-01T00:00:00Z"
QUESTIONS = ("which reader prefers tea", "größe café 漢字")

WORDS = (
    "reader",
    "readers",
    "tea",
    "coffee",
    "prefers",
    "the",
    "Größe",
    "GRÖSSE",
    "café",
    "漢字",
    "loadConfig",
    "ไทย",
    "🏡",
    "e\u0301",
)
SENTENCES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
ODD = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
TAGS = st.lists(st.sampled_from(("sqlite", "größe", "read/write", "ไทย", "🏡")), max_size=2)

Answers = dict[tuple[str, str], list[tuple[str, float]]]


@dataclass
class Expected:
    """What a memory must be, as this test works it out on its own."""

    id: str
    namespace: str
    text: str
    key: str | None
    thread: str | None
    expired: bool
    status: str = "current"
    reinforced: int = 0
    superseded_by: str | None = None
    protected: bool = False

    @property
    def said(self) -> str:
        """The text as it is compared with others."""
        return normalize("NFC", self.text).strip()

    @property
    def content(self) -> object:
        """What makes two texts the same memory: None for a turn of a thread, which is never the same."""
        return None if self.thread else (self.namespace, self.key, self.said)

    @property
    def slot(self) -> object:
        """What only one current memory can hold: None without a key."""
        return self.key and (self.namespace, self.key)

    @property
    def is_recallable(self) -> bool:
        """Whether a recall in its namespace may give it."""
        return self.status == "current" and not self.expired


class Histories(RuleBasedStateMachine):
    """One store, its expected memories by id, and everything that can be done to it."""

    model = "none"

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="tallystick-histories-", dir=IN_MEMORY))
        self.expected: dict[str, Expected] = {}
        self.memory = self.open()

    def open(self) -> Memory:
        """Open the store as a process of its own would."""
        return Memory.open(self.folder / "store", namespace=NAMESPACES[0], keys=self.folder / "keys", model=self.model)

    # ---- what can happen

    @rule(
        text=SENTENCES | ODD,
        namespace=st.sampled_from(NAMESPACES),
        key=st.sampled_from(KEYS),
        thread=st.sampled_from(THREADS),
        tags=TAGS,
        expired=st.integers(0, 7).map(lambda n: n == 0),
    )
    def store(
        self, text: str, namespace: str, key: str | None, thread: str | None, tags: list[str], *, expired: bool
    ) -> None:
        """Store a text."""
        assume(text.strip())
        wish = Expected("", namespace, text, key, thread, expired)
        assume(not self.may_be_an_echo(wish))
        same = self.current("content", wish)
        older = same or self.current("slot", wish)

        def store() -> Outcome:
            return self.memory.store(
                text, namespace=namespace, key=key, thread=thread, tags=tags, expires_at=LONG_AGO if expired else None
            )

        if older is not None and older.protected and (same is None or same.expired):
            with pytest.raises(Refused, match="is protected"):
                store()
            return
        outcome = store()
        if same is not None and not same.expired:
            assert (outcome.status, outcome.id) == ("reinforced", same.id)
            same.reinforced += 1
            return
        assert outcome.id not in self.expected
        wish.id = outcome.id
        self.expected[wish.id] = wish
        assert (outcome.status, outcome.superseded_id) == (("superseded", older.id) if older else ("stored", None))
        if older is not None:
            older.status, older.superseded_by = "superseded", wish.id

    @precondition(lambda self: self.expected)
    @rule(n=st.integers(0, 99), space=st.sampled_from(("", " ", "\n")))
    def store_again(self, n: int, space: str) -> None:
        """Store a text that was stored before, with other space around it, in another Unicode form."""
        before = self.nth(n)
        self.store(
            space + normalize("NFD", before.text), before.namespace, before.key, before.thread, [], expired=False
        )

    @precondition(lambda self: self.expected)
    @rule(n=st.integers(0, 99))
    def forget(self, n: int) -> None:
        """Forget a memory; one that is forgotten is refused."""
        memory = self.nth(n)
        if memory.status == "forgotten":
            with pytest.raises(Refused, match="forgotten already"):
                self.memory.forget(memory.id)
        elif memory.protected:
            with pytest.raises(Refused, match="is protected"):
                self.memory.forget(memory.id)
        else:
            self.memory.forget(memory.id, reason="überholt")
            memory.status = "forgotten"

    @precondition(lambda self: self.expected)
    @rule(n=st.integers(0, 99))
    def restore(self, n: int) -> None:
        """Restore a memory; one that is not forgotten, or whose text or key is taken, is refused."""
        memory = self.nth(n)
        if memory.status != "forgotten":
            with pytest.raises(Refused, match="not forgotten"):
                self.memory.restore(memory.id)
        elif memory.superseded_by is not None:
            with pytest.raises(Refused, match="was superseded by"):
                self.memory.restore(memory.id)
        elif self.current("content", memory) or self.current("slot", memory):
            with pytest.raises(Refused, match="holds it now"):
                self.memory.restore(memory.id)
        else:
            self.memory.restore(memory.id)
            memory.status = "current"

    @precondition(lambda self: self.expected)
    @rule(n=st.integers(0, 99), text=SENTENCES | ODD)
    def revise(self, n: int, text: str) -> None:
        """Give a memory another text; what is not current, is protected, or would be another's text is refused."""
        assume(text.strip())
        memory = self.nth(n)
        holder = self.current("content", replace(memory, text=text))
        if memory.status != "current":
            refusal = "not current"
        elif memory.protected:
            refusal = "is protected"
        elif text == memory.text:
            refusal = "says that already"
        elif holder is not None and holder is not memory:
            refusal = "holds it now"
        else:
            assert self.memory.revise(memory.id, text=text).status == "revised"
            memory.text = text
            return
        with pytest.raises(Refused, match=refusal):
            self.memory.revise(memory.id, text=text)

    @precondition(lambda self: self.expected)
    @rule(n=st.integers(0, 99))
    def protect_or_not(self, n: int) -> None:
        """Protect a memory, or lift its protection."""
        memory = self.nth(n)
        memory.protected = not memory.protected
        self.memory.protect(memory.id, on=memory.protected)

    @rule(texts=st.lists(SENTENCES, min_size=1, max_size=4), namespace=st.sampled_from(NAMESPACES))
    def converse(self, texts: list[str], namespace: str) -> None:
        """Store a conversation, and store it again: every turn is there once."""
        thread = f"conversation {len(self.expected)}"
        for repeated in (False, True):
            turns = self.memory.store_conversation(texts, thread=thread, namespace=namespace)
            assert [(turn.status, turn.repeated) for turn in turns] == [("stored", repeated)] * len(texts)
        for turn, text in zip(turns, texts, strict=True):
            self.expected[turn.id] = Expected(turn.id, namespace, text, None, thread, expired=False)

    @rule(question=SENTENCES | ODD.filter(lambda text: "\0" not in text), namespace=st.sampled_from(NAMESPACES))
    def recall(self, question: str, namespace: str) -> None:
        """Recall anything: the hits are current, of the namespace, and as they were stored."""
        for hit in self.memory.recall(question, namespaces=[namespace]):
            expected = self.expected[hit.id]
            assert expected.is_recallable
            assert (hit.record.namespace, hit.text) == (namespace, expected.text)

    @rule()
    def reopen(self) -> None:
        """Close the store and open it again: every answer is as before."""
        before = self.answers(self.memory)
        self.memory.close()
        self.memory = self.open()
        assert self.answers(self.memory) == before

    @rule()
    def abandon(self) -> None:
        """Stop as a killed process does: nothing flushed, no stamp left. Every answer is as before."""
        before = self.answers(self.memory)
        abandon(self.memory)
        self.memory = self.open()
        assert self.answers(self.memory) == before

    @rule()
    def rebuild(self) -> None:
        """Rebuild every view: the digests and every answer are as before."""
        before = self.answers(self.memory)
        live, rebuilt = self.memory.rebuild()
        assert live == rebuilt
        assert self.answers(self.memory) == before

    @rule()
    def ask_another(self) -> None:
        """A second Memory on the same store, open at the same time, gives the same answers."""
        with self.open() as other:
            assert self.answers(other) == self.answers(self.memory)

    @rule(text=SENTENCES)
    def store_by_another(self, text: str) -> None:
        """What a second Memory stores, this one sees."""
        mine = self.memory
        try:
            with self.open() as self.memory:
                self.store(text, NAMESPACES[1], None, None, [], expired=False)
        finally:
            self.memory = mine

    # ---- what must always hold

    @invariant()
    def every_memory_is_what_was_done_to_it(self) -> None:
        """Status, counts and text are as worked out here, and are the fold of the memory's history."""
        for memory in self.expected.values():
            record = self.memory.get(memory.id)
            assert (record.namespace, record.text, record.status, record.reinforced) == (
                memory.namespace, memory.text, memory.status, memory.reinforced,
            )  # fmt: skip
            by = record.superseded_by and record.superseded_by.hex()
            assert by == memory.superseded_by

    def teardown(self) -> None:
        """At the end of every history: the whole of it is checked, and the store removed."""
        try:
            self.check_histories()
            self.check_recall()
            self.check_positions()
            assert self.memory.verify(views=True).views
        finally:
            try:
                self.memory.close()
            finally:
                shutil.rmtree(self.folder)

    def check_histories(self) -> None:
        """A memory is the fold of its events, whose revisions have no gap."""
        for name in self.expected:
            history = self.memory.history(name)
            assert [logged.header.revision for logged in history] == list(range(len(history)))
            assert fold(history) == self.memory.get(name)

    def check_recall(self) -> None:
        """Asked for its own words, a namespace gives every memory of these words that is current, and no other."""
        for memory in self.expected.values():
            found = self.memory.recall(memory.text.replace("\0", " "), namespaces=[memory.namespace], limit=1000)
            ids = {hit.id for hit in found}
            allowed = {m.id for m in self.expected.values() if m.is_recallable and m.namespace == memory.namespace}
            assert ids <= allowed
            assert memory.id in ids or not memory.is_recallable or not query_tokens(memory.text)

    def check_positions(self) -> None:
        """Both logs number their events without a gap."""
        positions = [logged.header.position for logged in self.memory.events()]
        assert positions == list(range(1, len(positions) + 1))
        rows = self.memory.log(limit=100_000)
        access = sorted(row.position for row in rows if row.log == "access")
        assert access == list(range(1, len(access) + 1))

    # ---- helpers

    def nth(self, n: int) -> Expected:
        """One of the memories."""
        return list(self.expected.values())[n % len(self.expected)]

    def current(self, what: str, like: Expected) -> Expected | None:
        """The current memory that holds the same `content` or `slot`, if there is one."""
        value = getattr(like, what)
        held = [m for m in self.expected.values() if m.status == "current" and value and getattr(m, what) == value]
        assert len(held) <= 1
        return held[0] if held else None

    def may_be_an_echo(self, wish: Expected) -> bool:
        """Whether a text is said again that was handed out with a thread or a key: tests/commands/test_echo.py."""
        alike = [m for m in self.expected.values() if m.namespace == wish.namespace and m.said == wish.said]
        return not (wish.key or wish.thread) and any(memory.key or memory.thread for memory in alike)

    def answers(self, memory: Memory) -> Answers:
        """The order and scores of the answers to some questions, and to each text stored so far."""
        texts = [expected.text.replace("\0", " ") for expected in self.expected.values()]
        return {
            (namespace, question): [
                (hit.id, hit.score) for hit in memory.recall(question, namespaces=[namespace], limit=1000)
            ]
            for question in (*QUESTIONS, *texts[-1:])
            for namespace in NAMESPACES
        }


def abandon(memory: Memory) -> None:
    """Leave a Memory as the end of its process would, without waiting for the disk."""
    if memory._opened._search is not None and memory._opened._cache is not None:
        memory._opened._search.close()
        memory._opened._cache.close()
    memory._opened.views.close()
    memory._opened.installation.abandon()


class HistoriesByMeaning(Histories):
    """The same, searched by meaning too. Each answer waits until every vector is made."""

    model = "auto"

    def answers(self, memory: Memory) -> Answers:
        """As without a model, and nothing may be missing from them."""
        memory.embed()
        assert memory.recall(QUESTIONS[0]).degraded == ()
        return super().answers(memory)


def run(machine: type[Histories], examples: int, steps: int) -> None:
    """Run so many random histories of at most so many steps."""
    wanted = settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=list(HealthCheck)
    )
    run_state_machine_as_test(machine, settings=wanted)


@pytest.fixture
def one_embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Load the model once for all the times that a store is opened. Skips where it is not installed."""
    embedder = places.resolve_embedder("auto")
    if embedder is None:
        pytest.skip("recall by meaning is not checked: tallystick[offline-models] is not installed")
    monkeypatch.setattr(places, "resolve_embedder", lambda _model: embedder)


@pytest.mark.parametrize("page", [log.PAGE, 3])
def test_any_history_gives_one_set_of_views_and_answers(monkeypatch: pytest.MonkeyPatch, page: int) -> None:
    """Whatever is stored, forgotten, restored, rebuilt, reopened or killed, views and answers follow from the log.

    In pages of three events too, so that a stream's events come to a rebuild in several pages.
    """
    monkeypatch.setattr(log, "PAGE", page)
    monkeypatch.setattr(recorder, "PAGE", page)
    monkeypatch.setattr(entries, "PAGE", page)
    run(Histories, examples=12, steps=20)


@pytest.mark.exhaustive
def test_many_long_histories_give_one_set_of_views_and_answers() -> None:
    """The same, for more and longer histories."""
    run(Histories, examples=100, steps=50)


@pytest.mark.usefixtures("one_embedder")
def test_any_history_gives_one_order_by_meaning() -> None:
    """With a model too, the answers after a rebuild, a reopening or a kill are those from before, in their order."""
    run(HistoriesByMeaning, examples=4, steps=15)


@pytest.mark.exhaustive
@pytest.mark.usefixtures("one_embedder")
def test_many_histories_give_one_order_by_meaning() -> None:
    """The same, for more and longer histories."""
    run(HistoriesByMeaning, examples=30, steps=40)


def test_a_store_whose_memories_are_all_forgotten_equals_a_rebuild() -> None:
    """An index that has become empty is the same as one that never held a word."""
    with Memory.temporary() as memory:
        memory.forget(memory.store("Hello world").id)
        assert memory.verify(views=True).views
        live, rebuilt = memory.rebuild()
        assert live == rebuilt


def test_a_text_stored_again_after_it_expired_is_recalled() -> None:
    """A memory that has expired does not swallow the same text stored anew."""
    with Memory.temporary() as memory:
        memory.store("The key to the office is under the mat", expires_at=LONG_AGO)
        memory.store("The key to the office is under the mat")
        assert [hit.text for hit in memory.recall("office key")] == ["The key to the office is under the mat"]
