"""The recalls on record, asked again as the store stood at each, under another model or without some stages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from .errors import Refused
from .events.kinds import Recalled
from .events.log import Log
from .opened import OpenStore, Scope
from .projections.shelves import superseded_in
from .projections.views import TRAIL
from .queries.answer import Question, require_stages
from .queries.evaluate import Asked, Compared, Evaluation, compared, filters_of, recorded, told, when, without_of
from .queries.verify import Progress

if TYPE_CHECKING:
    from .projections.vector_search import VectorSearch

WAIT_SECONDS = 0.2
_ANOTHER_LOG = "it was answered from a log that this store no longer has, or does not show as it was opened"

GoOnTo = Callable[[int], OpenStore]
"""Lets a past go on to a position, which is never before the last one, and returns it."""


class Setting(NamedTuple):
    """Under what recalls are asked again: another model, where one is asked for, and stages to leave out as well."""

    model: str | None
    without: frozenset[str]


def evaluate(present: OpenStore, setting: Setting, limit: int, progress: Progress) -> Evaluation:
    """Ask the newest recalls again, in the order of the log, each as the store stood then.

    One past grows from position to position; vectors that are missing are made and waited for. On record as reads of
    the recalls. Raises Refused for a stage that is none.
    """
    from .projections.models.choice import as_written  # noqa: PLC0415  what knows models

    require_stages(setting.without)
    if setting.model is not None:
        as_written(setting.model)
    with present.views.current(TRAIL).reading() as cursor:
        asked = recorded(present.installation.access, cursor, limit)
    for stream in dict.fromkeys(each.stream for each in asked):
        present.access.read(stream, "eval")
    found: dict[bytes, Compared] = {}
    with _growing(present, setting.model) as go_on_to:
        for each in sorted(asked, key=lambda each: each.position):
            progress("asking again", len(found), len(asked))
            known = _is_of(present.log, each.event)
            found[each.receipt] = _again(go_on_to, each, setting, progress) if known else told(each, _ANOTHER_LOG)
    recalls = tuple(found[each.receipt] for each in asked)
    return Evaluation(setting.model or present.model(), tuple(sorted(setting.without)), recalls)


@contextmanager
def _growing(present: OpenStore, model: str | None) -> Iterator[GoOnTo]:
    pasts: list[OpenStore] = []

    def go_on_to(position: int) -> OpenStore:
        if pasts:
            pasts[0].go_on_to(position)
        else:
            pasts.append(present.at(position, model))
        return pasts[0]

    try:
        yield go_on_to
    finally:
        for past in pasts:
            past.close()


def _is_of(log: Log, event: Recalled) -> bool:
    """Whether a recall was answered from this log: one that was recovered has positions of its own."""
    tip = log.follow()
    if event.log_size >= tip.size:
        return event.log_size == tip.size and event.log_root == tip.frontier.root()
    return event.log_root == log.event_at(event.log_size).header.root


def _again(go_on_to: GoOnTo, asked: Asked, setting: Setting, progress: Progress) -> Compared:
    from .queries.recall import recall  # noqa: PLC0415  numpy

    event, past = asked.event, go_on_to(asked.position)
    try:
        scope = past.scope_of(event.namespaces, None, "") if event.namespaces else Scope((), {})
        question = Question(
            event.query, scope.stored, event.limit, when(event, past.now()), filters_of(event), scope.aliases,
            without_of(event, setting.without), "rerank" in event.filters and "rerank" not in setting.without,
        )  # fmt: skip
        search = past.searching()
        if search is not None:
            _make_vectors(past, search, question, progress)
        judge = past.judge() if question.rerank else None
        return compared(asked, recall(past.log, past.views.opened(), search, question, judge))
    except Refused as error:
        return told(asked, str(error))


def _make_vectors(past: OpenStore, search: VectorSearch, question: Question, progress: Progress) -> None:
    names = list(question.namespaces)
    if question.filters.of_superseded() is not None:
        names += map(superseded_in, question.namespaces)
    first = search.follow(past.recalling(), names)
    while missing := search.wait(WAIT_SECONDS, names):
        progress("making vectors", first - missing, first)
