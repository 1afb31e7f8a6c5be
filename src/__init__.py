"""Memory for AI agents that can be held to account."""

import importlib
import typing

if typing.TYPE_CHECKING:
    from .answers import Context, Listing, Recall
    from .commands.arrive import Arrivals
    from .commands.back_up_keys import KeyBackup, RestoredKeys
    from .commands.outcome import Outcome
    from .commands.rebuild import Rebuilt
    from .commands.recover import Recovery
    from .commands.rename import Renamed
    from .events.keys import KeyHolder
    from .events.mapper import LoggedEvent
    from .events.signing import Signer
    from .events.snapshot import Snapshot
    from .memory import Memory
    from .projections.audit import AuditRow
    from .projections.models.choice import Switch
    from .projections.models.manifest import Checked
    from .projections.models.packs import Packed
    from .projections.record import Record
    from .queries.answer import Hit
    from .queries.blame import Blame
    from .queries.doctor import Diagnosis, Finding
    from .queries.evaluate import Compared, Evaluation
    from .queries.key_list import KeyList, KeyRow
    from .queries.models import Model
    from .queries.namespaces import Namespace
    from .queries.sql import Rows
    from .queries.status import Status
    from .queries.trail import Receipt
    from .queries.verify import Report
    from .queries.why import Because, Why

__all__ = [
    "Arrivals",
    "AuditRow",
    "Because",
    "Blame",
    "Checked",
    "Compared",
    "Context",
    "Diagnosis",
    "Evaluation",
    "Finding",
    "Hit",
    "KeyBackup",
    "KeyHolder",
    "KeyList",
    "KeyRow",
    "Listing",
    "LoggedEvent",
    "Memory",
    "Model",
    "Namespace",
    "Outcome",
    "Packed",
    "Rebuilt",
    "Recall",
    "Receipt",
    "Record",
    "Recovery",
    "Renamed",
    "Report",
    "RestoredKeys",
    "Rows",
    "Signer",
    "Snapshot",
    "Status",
    "Switch",
    "Why",
]

_ROOMS = {
    "Arrivals": "commands.arrive",
    "AuditRow": "projections.audit",
    "Because": "queries.why",
    "Blame": "queries.blame",
    "Checked": "projections.models.manifest",
    "Compared": "queries.evaluate",
    "Context": "answers",
    "Diagnosis": "queries.doctor",
    "Evaluation": "queries.evaluate",
    "Finding": "queries.doctor",
    "Hit": "queries.answer",
    "KeyBackup": "commands.back_up_keys",
    "KeyHolder": "events.keys",
    "KeyList": "queries.key_list",
    "KeyRow": "queries.key_list",
    "Listing": "answers",
    "LoggedEvent": "events.mapper",
    "Memory": "memory",
    "Model": "queries.models",
    "Namespace": "queries.namespaces",
    "Outcome": "commands.outcome",
    "Packed": "projections.models.packs",
    "Rebuilt": "commands.rebuild",
    "Recall": "answers",
    "Receipt": "queries.trail",
    "Record": "projections.record",
    "Recovery": "commands.recover",
    "Renamed": "commands.rename",
    "Report": "queries.verify",
    "RestoredKeys": "commands.back_up_keys",
    "Rows": "queries.sql",
    "Signer": "events.signing",
    "Snapshot": "events.snapshot",
    "Status": "queries.status",
    "Switch": "projections.models.choice",
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
