"""Memory for AI agents that can be held to account."""

from .commands.store import Outcome
from .memory import Memory, Recall
from .projections.record import Record
from .queries.recall import Hit
from .queries.status import Status
from .queries.verify import Report
from .queries.why import Why

__all__ = ["Hit", "Memory", "Outcome", "Recall", "Record", "Report", "Status", "Why"]
