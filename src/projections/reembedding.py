"""Another model for the memories of a store: its vectors are made beside those in force, which go on answering."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ..events.log import Log
from .embedding import Embedder
from .models.choice import Tell
from .record import fold
from .token_codes import coded
from .vector import document_of, input_hash, wanted
from .vector_cache import Key, Made, VectorCache
from .views import Views

CurrentViews = Callable[[], Views]
"""Gives the views as of now."""


class Source(NamedTuple):
    """Where vectors are made from, and kept."""

    cache: VectorCache
    log: Log
    views: CurrentViews


def reembed(source: Source, embedder: Embedder, tell: Tell, seconds: float | None) -> tuple[int, int]:
    """Make the vectors that a model has not made yet, for so long at most. Returns how many, and how many are missing.

    One by one, each kept when it is made: broken off, it goes on where it was when it is called again.
    """
    ends, made = None if seconds is None else time.monotonic() + seconds, 0
    for made, of in _making(source, embedder):
        tell(made, of)
        if made < of and ends is not None and time.monotonic() >= ends:
            return made, of - made
    return made, 0


def _making(source: Source, embedder: Embedder) -> Iterator[tuple[int, int]]:
    """Before each vector that is made: how many were, and of how many. Memories that change or come in are added."""
    space, made, tried = embedder.space.id, 0, set[Key]()
    while missing := sorted(_wanted(source.views()) - source.cache.keys(space) - tried):
        tried |= {*missing}
        for n, key in enumerate(missing):
            yield made, made + len(missing) - n
            document = _document(source.log, key)
            if document is not None:
                source.cache.put(space, key, made_of(embedder, document))
                made += 1
    yield made, made


def made_of(embedder: Embedder, document: str) -> Made:
    """What a model makes of a document: the same bytes whenever, and beside whatever else, it is made."""
    made = embedder.document(document)
    tokens = b"" if made.tokens is None else coded(made.tokens)
    return Made(made.vector.astype("<f2").tobytes(), tokens, embedder.runtime)


def _wanted(views: Views) -> set[Key]:
    with views.reading() as cursor:
        return wanted(cursor)


def _document(log: Log, key: Key) -> str | None:
    """The text that a vector is to be made of; None where the memory has meanwhile another, or none."""
    record = fold(log.events_of(key[0]))
    if record is None or record.status != "current":
        return None
    document = document_of(record)
    return document if input_hash(document) == key[1] else None
