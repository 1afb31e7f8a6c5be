"""Memory for AI agents that can be held to account."""

import importlib
import typing

if typing.TYPE_CHECKING:
    from .commands.outcome import Outcome
    from .commands.rebuild import Rebuilt
    from .events.mapper import LoggedEvent
    from .memory import Memory, Recall
    from .projections.audit import AuditRow
    from .projections.record import Record
    from .queries.recall import Hit
    from .queries.status import Status
    from .queries.verify import Report
    from .queries.why import Because, Why

__all__ = [
    "AuditRow",
    "Because",
    "Hit",
    "LoggedEvent",
    "Memory",
    "Outcome",
    "Rebuilt",
    "Recall",
    "Record",
    "Report",
    "Status",
    "Why",
]

_ROOMS = {
    "AuditRow": "projections.audit",
    "Because": "queries.why",
    "Hit": "queries.recall",
    "LoggedEvent": "events.mapper",
    "Memory": "memory",
    "Outcome": "commands.outcome",
    "Rebuilt": "commands.rebuild",
    "Recall": "memory",
    "Record": "projections.record",
    "Report": "queries.verify",
    "Status": "queries.status",
    "Why": "queries.why",
}


def __getattr__(name: str) -> object:
    """The public name, from the room it lives in, loaded when it is first asked for."""
    if name not in _ROOMS:
        raise AttributeError(f"tallystick has no {name!r}")
    return getattr(importlib.import_module(f".{_ROOMS[name]}", __name__), name)


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return __all__
