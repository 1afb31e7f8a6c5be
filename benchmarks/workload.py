"""Stores to measure on: filled through `Log.append`, as large as asked for, with texts that do not repeat."""

from __future__ import annotations

import random
import struct
from itertools import accumulate, product
from typing import Any, TypeVar

from tallystick.events.claims import Claim, Release, content_tag
from tallystick.events.installation import Installation
from tallystick.events.kinds import Event, Forgotten, Recalled, Revised, Stored
from tallystick.events.log import Append, Log
from tallystick.events.mapper import Draft

Kind = TypeVar("Kind", bound=Event)

NOW = 1_767_225_600_000_000
TOKENS = 40
SHORT_TOKENS = 6
HITS = 10
BATCH = 1000
MIX = "SSSSSSSSRSSSSVSSSSRF"
"""Of twenty events sixteen store, two recall, one revises and one forgets."""

_SYLLABLES = ("ba", "ko", "ri", "tu", "men", "sal", "ver", "don", "li", "pra", "gun", "est", "ol", "fi", "har", "qui")
VOCABULARY = ["".join(parts) for parts in product(_SYLLABLES, repeat=3)]
_WEIGHTS = list(accumulate(1 / rank for rank in range(1, len(VOCABULARY) + 1)))


class Writer:
    """Writes made-up events of one actor into an installation, in batches."""

    def __init__(self, installation: Installation, *, tokens: int = TOKENS) -> None:
        self._installation = installation
        self._tokens = tokens
        self._random = random.Random(1)
        self._current: list[tuple[bytes, Stored]] = []
        self._settling: list[tuple[bytes, Stored]] = []
        self._drafts: dict[Log, list[Draft]] = {log: [] for log in installation.logs}
        self._claims: list[Claim] = []
        self._releases: list[Release] = []
        self._session: bytes | None = None
        self._texts: list[str] = []

    def fill(self, events: int, mix: str = MIX, *, batch: int = BATCH) -> None:
        """Append so many events, of the kinds in `mix` in turn; a memory is stored where there is none to change."""
        steps = {"S": self.store, "R": self.recall, "V": self.revise, "F": self.forget}
        for number in range(events):
            kind = mix[number % len(mix)]
            steps[kind if self._current else "S"]()
            if (number + 1) % batch == 0:
                self.flush(durable=False)
                if mix == "S":
                    self._current.clear()  # nothing will change them, and there may be a million
        self.flush()

    def prepare(self, texts: int) -> None:
        """Make so many texts ahead, so that what follows is the log's work alone."""
        self._texts = [self._new_text() for _ in range(texts)]

    def store(self) -> None:
        """A memory with a text of its own."""
        stream, nonce = self._installation.memory.new_stream()
        stored = self._event(Stored, text=self._text(), namespace="bench", nonce=nonce)
        self._claim(stored)
        self._add(self._installation.memory.opening(stream, stored))
        self._settling.append((stream, stored))

    def recall(self) -> None:
        """A question that was answered with ten hits, in the access log."""
        log = self._installation.access
        memories = tuple(stream for stream, _ in self._random.choices(self._current, k=HITS))
        scores = struct.pack(f"<{3 * HITS}e", *(self._random.random() for _ in range(3 * HITS)))
        hits = {"memories": memories, "heads": (0,) * HITS, "scores": scores}
        said = {"query": self._text()[:80], "namespaces": ("bench",), "limit": HITS, **hits}
        state = {"log_size": self._installation.memory.tip.size, "log_root": bytes(32)}
        how = {"stages": ("vector", "keyword", "recency"), "pipeline": "bench"}
        if self._session is None:
            self._session, nonce = log.new_stream()
            self._add(log.opening(self._session, self._event(Recalled, nonce=nonce, **said, **how, **state)), log)
            self.flush()
        else:
            self._add(log.following(self._session, self._event(Recalled, **said, **how, **state)), log)

    def revise(self) -> None:
        """A memory gets another text."""
        stream, stored = self._pick()
        revised = stored.model_copy(update={"text": self._text()})
        self._releases.append(Release(self._tag(stored), stream))
        self._claim(revised)
        self._add(self._installation.memory.following(stream, self._event(Revised, text=revised.text)))
        self._settling.append((stream, revised))

    def forget(self) -> None:
        """A memory is retracted."""
        stream, stored = self._pick()
        self._releases.append(Release(self._tag(stored), stream))
        self._add(self._installation.memory.following(stream, self._event(Forgotten, reason="out of date")))

    def flush(self, *, durable: bool = True) -> None:
        """Append what is waiting."""
        for log, drafts in self._drafts.items():
            if drafts:
                ours = log is self._installation.memory
                claims, releases = (self._claims, self._releases) if ours else ([], [])
                log.append(Append(tuple(drafts), tuple(claims), tuple(releases)), durable=durable)
                drafts.clear()
        self._claims.clear()
        self._releases.clear()
        self._current += self._settling
        self._settling.clear()

    def _event(self, kind: type[Kind], **fields: Any) -> Kind:
        return kind(recorded_at=NOW, actor="agent:bench", via={"process": "1", "user": "bench"}, **fields)

    def _text(self) -> str:
        return self._texts.pop() if self._texts else self._new_text()

    def _new_text(self) -> str:
        """Words as often as in language: the n-th of the vocabulary 1/n times as often as the first; a number first."""
        words = self._random.choices(VOCABULARY, cum_weights=_WEIGHTS, k=self._tokens - 1)
        return f"{self._random.getrandbits(48):x} {' '.join(words)}"

    def _pick(self) -> tuple[bytes, Stored]:
        """A memory that is current and on the disk, taken out of those that are."""
        place = self._random.randrange(len(self._current))
        self._current[place], self._current[-1] = self._current[-1], self._current[place]
        return self._current.pop()

    def _tag(self, stored: Stored) -> bytes:
        keys = self._installation.keys
        assert keys is not None
        tag = content_tag(keys.index, stored)
        assert tag is not None
        return tag

    def _claim(self, stored: Stored) -> None:
        self._claims.append(Claim(self._tag(stored), len(self._drafts[self._installation.memory])))

    def _add(self, draft: Draft, log: Log | None = None) -> None:
        self._drafts[log or self._installation.memory].append(draft)
