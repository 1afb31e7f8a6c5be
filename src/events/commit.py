"""Group commit: commands that wait at the same time share one transaction and one wait for the disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock, Timer, current_thread
from typing import Any, Protocol, TypeVar, cast

from eventsourcing.persistence import PersistenceError

from ..errors import TallystickError, Unavailable
from .driver import Datastore

GROUPED_SECONDS = 0.1

Result = TypeVar("Result")


class Member(Protocol):
    """A log that takes part in the transactions of its file."""

    def begin(self) -> Any:
        """What to go back to if a part of the transaction fails."""

    def reached(self) -> Any:
        """Up to where the log is on the disk once this transaction is."""

    def latest(self) -> int:
        """The time of the log's last event, of this transaction too."""

    def back_to(self, pending: Any) -> None:
        """A part of the transaction failed."""

    def committed(self) -> None:
        """The transaction committed."""


class _Work:
    """One command's part of a transaction."""

    def __init__(self, part: Callable[[Any], object], durable: bool) -> None:
        self.part = part
        self.durable = durable
        self.done = False
        self.result: object = None
        self.error: BaseException | None = None


class GroupCommit:
    """Runs the parts of concurrent commands in one transaction; a part that fails fails alone, a lone one never waits.

    Parts that need not wait for the disk are durable with the next that do, or within 100 ms.
    `on_durable` is told, after each commit that has waited for the disk, up to where each log then is.
    `admit` is asked first in each transaction, and raises where this process may not write.
    """

    def __init__(
        self,
        datastore: Datastore,
        on_durable: Callable[[Sequence[Any]], None],
        admit: Callable[[Any], None] = lambda _cursor: None,
    ) -> None:
        self._datastore = datastore
        self._on_durable = on_durable
        self._admit = admit
        self._members: list[Member] = []
        self._waiting: list[_Work] = []
        self._queue = Lock()
        self._leader = Lock()
        self._flush: Timer | None = None
        self._flushing = Lock()
        self._flush_failed: Exception | None = None

    def join(self, member: Member) -> None:
        """Let a log take part."""
        self._members.append(member)

    def latest(self) -> int:
        """The time of the last event that this process knows of in any log: what comes next is later in all of them."""
        return max((member.latest() for member in self._members), default=0)

    def run(self, part: Callable[[Any], Result], *, durable: bool = True) -> Result:
        """Run a part of a transaction and return its result once it has committed (and, if durable, is on the disk)."""
        if self._flush_failed is not None:
            failed, self._flush_failed = self._flush_failed, None
            raise failed
        work = _Work(part, durable)
        with self._queue:
            self._waiting.append(work)
        with self._leader:
            if not work.done:
                self._lead(work)
        if work.error is not None:
            raise work.error
        return cast("Result", work.result)

    def _lead(self, work: _Work) -> None:
        """Commit for everybody who waits. What breaks the whole transaction is raised to whom it belongs."""
        with self._queue:
            batch, self._waiting = self._waiting, []
        try:
            self._commit(batch)
        finally:
            if work.error is not None:
                raise work.error

    def flush(self) -> None:
        """Wait until everything committed so far is on the disk."""
        self.run(_touch)

    def close(self) -> None:
        """Stop the timer of grouped commits, and flush what it would have."""
        if self.stop():
            self.flush()

    def stop(self) -> bool:
        """Stop the timer of grouped commits, once it is not flushing. Says whether there was something to flush."""
        with self._queue:
            timer, self._flush = self._flush, None
        if timer is not None:
            timer.cancel()
        with self._flushing:
            return timer is not None

    def _flush_now(self) -> None:
        """Flush, on the timer's thread, unless it was stopped: what goes wrong there is raised by the next command."""
        with self._flushing:
            if self._flush is not current_thread():
                return
            try:
                self.flush()
            except (TallystickError, PersistenceError) as error:
                self._flush_failed = error

    def _commit(self, batch: list[_Work]) -> None:
        durable = any(work.durable for work in batch)
        reached: list[Any] | None = None
        try:
            with self._datastore.transaction(commit=True, durable=durable) as cursor:
                self._admit(cursor)
                for work in batch:
                    self._attempt(cursor, work, alone=len(batch) == 1)
                found = [member.reached() for member in self._members]
            reached = found
        except (TallystickError, PersistenceError) as error:
            for work in batch:
                work.error = work.error or error
        finally:
            self._settle(batch, committed=reached is not None)
        if reached is not None:
            if durable:
                self._acknowledge(batch, reached)
            self._schedule(durable)

    def _acknowledge(self, batch: list[_Work], reached: Sequence[Any]) -> None:
        """Tell up to where each log is on the disk. What goes wrong there is raised to everybody of the batch."""
        try:
            self._on_durable(reached)
        except (TallystickError, OSError) as error:
            for work in batch:
                work.error = work.error or error

    def _attempt(self, cursor: Any, work: _Work, *, alone: bool) -> None:
        try:
            if alone:
                work.result = work.part(cursor)
            else:
                self._attempt_apart(cursor, work)
        except BaseException as error:
            work.error = self._datastore.translate(error)
            raise

    def _attempt_apart(self, cursor: Any, work: _Work) -> None:
        """Run a part so that it can be undone without the others."""
        before = [member.begin() for member in self._members]
        cursor.execute("SAVEPOINT part")
        try:
            work.result = work.part(cursor)
        except (TallystickError, PersistenceError, *self._datastore.driver_errors) as error:
            if not cursor.connection.in_transaction:  # SQLite has rolled everything back, as where the disk is full
                raise
            work.error = self._datastore.translate(error)
            cursor.execute("ROLLBACK TO part")
            for member, pending in zip(self._members, before, strict=True):
                member.back_to(pending)
        cursor.execute("RELEASE part")

    def _settle(self, batch: list[_Work], *, committed: bool) -> None:
        for member in self._members:
            if committed:
                member.committed()
            else:
                member.back_to(None)
        for work in batch:
            work.done = True
            if not committed and work.error is None:
                work.error = Unavailable(
                    "Another command of the same transaction broke it: nothing was written. Try again."
                )

    def _schedule(self, durable: bool) -> None:
        with self._queue:
            if durable and self._flush is not None:
                self._flush.cancel()
                self._flush = None
            elif not durable and self._flush is None:
                self._flush = Timer(GROUPED_SECONDS, self._flush_now)
                self._flush.daemon = True
                self._flush.start()


def _touch(cursor: Any) -> None:
    """A write that changes nothing: committing it waits for the disk, and for all that was committed before."""
    cursor.execute("UPDATE setting SET value = value WHERE name = 'format'")
