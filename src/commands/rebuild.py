"""Rebuild the views: fold them anew from the log, put them in force, and put that on record."""

from __future__ import annotations

from typing import NamedTuple

from ..errors import ViewsDamaged
from ..events.kinds import ViewsRebuilt
from ..events.log import Append
from ..projections.views import Views, ViewsInForce, building
from .session import Session


class Rebuilt(NamedTuple):
    """The digest of each view before and after, at one position. Before is empty where the views could not be read."""

    before: dict[str, str]
    after: dict[str, str]


def rebuild(session: Session, views: ViewsInForce, reason: str) -> Rebuilt:
    """Build every view beside the ones in force, append that this was done, and switch to the new ones.

    Where the keys only read, the views are built all the same: what was restored from a backup has none yet.
    """
    with building(session.installation) as fresh:
        rebuilt = _digests(views, fresh)
        if session.installation.signs:
            _put_on_record(session, rebuilt, reason)
        views.put_in_force(fresh)
    return rebuilt


def _put_on_record(session: Session, rebuilt: Rebuilt, reason: str) -> None:
    log = session.installation.memory
    stream, nonce = log.new_stream()
    event = session.event(ViewsRebuilt, reason=reason, before=rebuilt.before, after=rebuilt.after, nonce=nonce)
    log.append(Append((log.opening(stream, event),)))


def _digests(views: ViewsInForce, fresh: Views) -> Rebuilt:
    try:
        return Rebuilt(*views.compared_with(fresh))
    except ViewsDamaged:
        return Rebuilt({}, fresh.digests())
