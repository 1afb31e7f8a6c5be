"""The lease: which host has a store open, written in the store itself; a second host is refused."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Self

from ..errors import Busy, Refused, Unavailable
from .key_places import file_system

FILE = "lease"
LEASE_BYTES = 4096
PATIENCE_SECONDS = 5.0
_MACHINE, _BOOT = Path("/etc/machine-id"), Path("/proc/sys/kernel/random/boot_id")

# SQLite's locks do not reach from one host to another there. What a virtual machine is given by its own host is not
# among them: one kernel hands out the locks.
_NETWORK = {
    "afs", "beegfs", "ceph", "cifs", "coda", "fuse.ceph-fuse", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs",
    "fuse.sshfs", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "smb2", "smb3", "smbfs",
}  # fmt: skip


class Host(NamedTuple):
    """A host, and since which start of it: processes of one boot share the locks of one kernel."""

    name: str
    machine: str
    boot: str

    @classmethod
    def this(cls) -> Self:
        """The host that this process runs on. Containers of one host are one host."""
        return cls(platform.node(), _told_by(_MACHINE), _told_by(_BOOT))

    def shares_locks_with(self, other: Host) -> bool:
        """Whether it is one kernel, since one start of it."""
        return self.boot == other.boot if self.boot and other.boot else self.name == other.name

    def has_ended(self, other: Host) -> bool:
        """Whether the other is this machine before it was started again: nothing of it runs any more."""
        return (
            bool(self.machine) and (self.machine, self.name) == (other.machine, other.name) and self.boot != other.boot
        )


class Lease:
    """This process's share in the lease of a store. The last process of a host that lets go leaves it free."""

    def __init__(self, descriptor: int, store: Path) -> None:
        self._descriptor = descriptor
        self._store = store

    @classmethod
    def take(cls, store: Path, *, over: bool = False) -> Self:
        """Take part in the lease of this host. Raises Busy where another host holds it, unless it is taken `over`."""
        refuse_network(store)
        descriptor = _opened(store)
        try:
            _share(descriptor, store, over=over)
        except BaseException:
            os.close(descriptor)
            raise
        return cls(descriptor, store)

    def exclude(self, store: Path) -> None:
        """Let no other process take part until this one lets go. Raises Busy where another one does already."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Busy(f"{store} is open in another process or Memory. Close it there, then try again.") from error

    @contextmanager
    def excluding(self) -> Iterator[bool]:
        """Whether no other process takes part; if so, none begins to until the block ends."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            alone = True
        except BlockingIOError:
            alone = False
        try:
            yield alone
        finally:
            _share(self._descriptor, self._store, over=False)

    def release(self) -> None:
        """Let go, in a forked child as well; free for any host where no other process of this one has the store."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._descriptor, 0)
        except BlockingIOError:
            pass
        finally:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            os.close(self._descriptor)


def holder(store: Path) -> Host | None:
    """The host that holds the lease of a store; None where it is free."""
    try:
        descriptor = os.open(store / FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        return _written(descriptor)
    finally:
        os.close(descriptor)


def refuse_network(store: Path) -> None:
    """Refuse a store on a file system that several hosts reach over a network."""
    kind = file_system(store)
    if kind in _NETWORK:
        raise Refused(
            f"{store} lies on a network file system ({kind}), where the locks that keep writers apart do not hold. "
            f"Name a directory on a disk of this machine."
        )


def _share(descriptor: int, store: Path, *, over: bool) -> None:
    """Take part in a lease that names this host, as soon as it does."""
    host, began = Host.this(), time.monotonic()
    while not _joined(descriptor, store, host, over=over):
        if time.monotonic() - began > PATIENCE_SECONDS:
            raise Busy(f"Processes of this host are opening {store} and none gets through. Try again.")


def _joined(descriptor: int, store: Path, host: Host, *, over: bool) -> bool:
    """Try once to share a lease that names this host. False where it has to be tried again."""
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    held = _written(descriptor)
    if held is not None and host.shares_locks_with(held):
        return True
    if held is not None and not over and not host.has_ended(held):
        raise Busy(
            f"{store} is open on the host {held.name!r}, or was when that host went down, and this is {host.name!r}: "
            f"two hosts would overwrite each other. Close it there and try again; or, if nothing there uses it any "
            f"more, run `tallystick take-over` here."
        )
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:  # another process of this host is at the same point
        return False
    if _written(descriptor) == held:  # nobody came in between while the lock was being raised
        _write(descriptor, host)
    return False


def _opened(store: Path) -> int:
    try:
        return os.open(store / FILE, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Unavailable(
            f"{store} can't be written to ({error.strerror}), so nothing was opened for writing. Free it and try "
            f"again, or open it to be read: Memory.open(path, read_only=True), or `--read-only`."
        ) from error


def _written(descriptor: int) -> Host | None:
    content = os.pread(descriptor, LEASE_BYTES, 0)
    try:
        return Host(**json.loads(content)) if content else None
    except (ValueError, TypeError):
        return Host("a host that can't be read", "", "unknown")


def _write(descriptor: int, host: Host) -> None:
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(host._asdict()).encode(), 0)
        os.fsync(descriptor)
    except OSError as error:
        raise Unavailable(
            f"The lease can't be written ({error.strerror}), so nothing was opened. Free some room, or open the store "
            f"to be read."
        ) from error


def _told_by(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
