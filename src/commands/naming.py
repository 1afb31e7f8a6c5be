"""Under which name a namespace goes now, as the claims say in the moment of a command."""

from __future__ import annotations

from ..errors import LogDamaged
from ..events.claims import renamed_tag
from ..events.kinds import NamespaceRenamed
from .session import Session


def canonical(session: Session, namespace: str) -> str:
    """The name that a namespace has now, by the name it has or had. An append must then require that it stays free."""
    log, passed = session.installation.memory, {namespace}
    while held := log.holders([tag := renamed_tag(session.index_key, namespace)]).get(tag):
        event = log.event_at(held[1]).event
        if not isinstance(event, NamespaceRenamed) or event.new in passed:
            raise LogDamaged(f"The name of the namespace {namespace!r} is not held by a rename. {LogDamaged.remedy}")
        namespace = event.new
        passed.add(namespace)
    return namespace
