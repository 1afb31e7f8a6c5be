"""What questions are answered with, and the events that put the answers on record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .commands.session import Session
from .events.entries import Tip
from .events.kinds import Recalled
from .projections.record import Record
from .queries.answer import RELEVANT, STAGES, Answer, Hit, Question
from .queries.search import Found, Sought
from .queries.sql import MOST_ROWS
from .queries.why import packed


@dataclass(frozen=True, slots=True)
class Recall:
    """The answer to a question: iterate over it for the hits, best first. True when one of them is relevant.

    `receipt` is the id of the event by which this recall is on record, None where the keys only read or the store was
    opened to be read; `degraded` says what was missing.
    """

    hits: tuple[Hit, ...]
    receipt: str | None
    degraded: tuple[str, ...]
    _render: Callable[[Recall, int], Context] = field(repr=False, compare=False)

    def context(self, max_tokens: int = 1000) -> Context:
        """The hits, and what is pinned in the namespaces asked, for a prompt: numbered, dated and attributed.

        They stand as data between two marks with a random word that is in no memory, so that no text can end them.
        Pinned ones come first, then the hits in their order, as many as fit; a token is taken to be three bytes of
        UTF-8. On record with the hash of what it returns. Raises Refused for less than 100 tokens.
        """
        return self._render(self, max_tokens)

    @property
    def nothing_relevant(self) -> bool:
        """Whether none of the hits seems to be about what was asked. They can be read all the same."""
        return not any(hit.relevance is None or hit.relevance >= RELEVANT for hit in self.hits)

    def __bool__(self) -> bool:
        return not self.nothing_relevant

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)


@dataclass(frozen=True, slots=True)
class Context:
    """Memories rendered for a prompt: `text`, which is also what `str` gives.

    `tokens` is the estimate of its size, `left_out` counts the memories that did not fit or were cut. `receipt` is
    the id of the event that holds the SHA-256 of the text, None where the keys only read.
    """

    text: str
    tokens: int
    left_out: int
    receipt: str | None

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of memories: iterate over it. `total` counts those of all pages.

    `cursor` is what `after=` takes to go on, None on the last page; `receipt` is the id of the event by which this
    page is on record, None where the keys only read.
    """

    records: tuple[Record, ...]
    total: int
    cursor: str | None
    receipt: str | None

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def __len__(self) -> int:
        return len(self.records)


def recalled(session: Session, asked: Question, answer: Answer, said: Mapping[str, int]) -> Recalled:
    """The event of a recall: what was asked, and each hit with the scores of the stages that said something.

    `said` is how a past was asked for, by name.
    """
    stages = [stage for stage in STAGES if any(hit.scores[stage] for hit in answer.hits)]
    scores = [packed([*(hit.scores[stage] for stage in stages), hit.relevance]) for hit in answer.hits]
    ranking: dict[str, Any] = {"without": sorted(asked.without)} if asked.without else {}
    if asked.rerank:
        ranking["rerank"] = True
    return session.event(
        Recalled,
        query=asked.text,
        namespaces=called(asked),
        filters=asked.filters.recorded() | ranking | {**said},
        limit=asked.limit,
        memories=tuple(hit.record.stream for hit in answer.hits),
        heads=tuple(hit.record.revision for hit in answer.hits),
        scores=b"".join(scores),
        stages=(*stages, "relevance"),
        pipeline=answer.pipeline,
        degraded=answer.degraded,
        log_size=answer.log_size,
        log_root=answer.log_root,
    )


def searched(session: Session, sought: Sought, found: Found, said: Mapping[str, int]) -> Recalled:
    """The event of a page of a search: its filters and order, and each memory on it. `said` as of a recall."""
    return session.event(
        Recalled,
        verb="search",
        query="",
        namespaces=called(sought),
        filters=sought.filters.recorded() | {"sort": sought.sort, **said},
        limit=sought.limit,
        memories=tuple(record.stream for record in found.records),
        heads=tuple(record.revision for record in found.records),
        stages=(),
        pipeline="",
        log_size=found.log_size,
        log_root=found.log_root,
    )


def selected(session: Session, statement: str, tip: Tip) -> Recalled:
    """The event of a statement in SQL, which hands out rows and no memory."""
    return session.event(
        Recalled,
        verb="sql",
        query=statement,
        namespaces=(),
        limit=MOST_ROWS,
        stages=(),
        pipeline="",
        log_size=tip.size,
        log_root=tip.frontier.root(),
    )


def called(asked: Question | Sought) -> tuple[str, ...]:
    """The namespaces that were looked in, by the names they have now."""
    return tuple(dict.fromkeys(asked.aliases.get(name, name) for name in asked.namespaces))
