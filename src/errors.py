"""Every error Tallystick raises on purpose.

TallystickError
├── Refused              a rule said no; nothing was written
│   ├── StreamErased         the memory was erased, for ever
│   ├── RevisionConflict     somebody else changed the memory first
│   ├── Claimed              another memory holds what the command claims
│   └── StoreExists          there is a store already
├── NotFound             no such memory, receipt, store or position
├── LogDamaged           the log does not verify: stop and investigate
│   └── LogBehindMark        the log is shorter than, or not, what was verified before
├── ViewsDamaged         a read model does not match the log: rebuild, loudly
├── KeysMissing          a key is absent or is not this store's
└── Unavailable          try again, or carry on with less
    ├── Busy                 another writer holds the store
    ├── StoreIsNewer         the store was written by a newer release
    ├── ModelMissing         the embedding model is absent or is not the pinned one
    └── Forked               this Memory was carried through a fork
"""

from __future__ import annotations

import inspect


class TallystickError(Exception):
    """Something went wrong in Tallystick."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or inspect.cleandoc(type(self).__doc__ or ""))


class Refused(TallystickError):
    """A rule said no and nothing was written: read the message, then ask for something else."""


class StreamErased(Refused):
    """This memory was erased. It can't come back; store a new one."""


class RevisionConflict(Refused):
    """The memory has changed since you read it. Read it again, then repeat the command."""


class Claimed(Refused):
    """Another memory holds this text, key or command id. Read it, then decide again."""

    def __init__(self, tag: bytes, holder: bytes | None, position: int | None) -> None:
        super().__init__()
        self.tag = tag
        self.holder = holder
        self.position = position


class StoreExists(Refused):
    """There is a store already. Open it."""


class NotFound(TallystickError):
    """There is no such memory, receipt, store or position. Check what was named."""


class LogDamaged(TallystickError):
    """The log does not verify. Stop writing, keep the files, and run `tallystick verify` to see how much does."""

    remedy = "Stop writing, keep the files, and run `tallystick verify`; `tallystick salvage` saves what verifies."

    def __init__(self, message: str | None = None, *, log: str | None = None, position: int | None = None) -> None:
        super().__init__(message)
        self.log = log
        self.position = position


class LogBehindMark(LogDamaged):
    """The log is not what was verified before: it was cut, replaced or rolled back. Stop, and keep the files."""


class ViewsDamaged(TallystickError):
    """A read model does not match the log. Run `tallystick replay` to rebuild it."""

    remedy = "The log is untouched: run `tallystick replay` to rebuild the views."


class KeysMissing(TallystickError):
    """A key of this store is absent, unreadable or belongs to another store. Supply the right one."""

    remedy = (
        "Supply this store's keys: Memory.open(path, keys=DIRECTORY), or the environment variable "
        "TALLYSTICK_KEYS=DIRECTORY; `env` and `keyring` in place of a directory name other places, and "
        "`tallystick keys restore FILE` brings a backup back. No new keys were made."
    )


class Unavailable(TallystickError):
    """This can't be done right now. Nothing was lost; try again."""


class Busy(Unavailable):
    """Another writer holds the store. Try again."""


class StoreIsNewer(Unavailable):
    """This store was written by a newer release of Tallystick. Upgrade, then open it again."""


class ModelMissing(Unavailable):
    """The embedding model is absent or is not the pinned one. Recall goes on by words alone."""


class Forked(Unavailable):
    """This Memory was opened before a fork. Open the store after the fork, or start the child by `spawn`."""
