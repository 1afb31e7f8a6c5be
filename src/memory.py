"""Memory: store, recall, forget, and prove; the one class most people need."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from . import mending
from .answers import Context, Listing, Recall, called, recalled, searched, selected
from .border import guarded
from .commands.arrive import Arrivals, arrive
from .commands.back_up_keys import KeyBackup, RestoredKeys, back_up_keys, decline_key_backup, restore_keys
from .commands.change import Wish
from .commands.conversation import chunks, rows_of
from .commands.echo import Echoes
from .commands.fields import check_namespace
from .commands.forget import forget, restore
from .commands.link import link, unlink
from .commands.outcome import Outcome
from .commands.protect import pin, protect
from .commands.rebuild import Rebuilt, rebuild
from .commands.recover import Recovery
from .commands.rename import Renamed, rename
from .commands.revise import revise
from .commands.session import Session
from .commands.snapshot import take
from .commands.store import Known, store, store_rows
from .config import Settings, load_settings, user
from .errors import LogDamaged, NotFound, Refused, StoreExists
from .evaluation import Setting, evaluate
from .events.claims import PLACES, composed
from .events.installation import FILE, Installation
from .events.key_places import KeySource
from .events.mapper import LoggedEvent
from .events.replacing import remains
from .events.snapshot import Snapshot, rotate, snapshots_in
from .opened import OpenStore, to_read
from .past import Pasts, Then
from .projections.audit import AuditRow, after, ends, newest
from .projections.condition import Condition
from .projections.models.choice import Switch
from .projections.models.manifest import Checked
from .projections.models.packs import Packed, install, pack
from .projections.record import Link, Record
from .projections.vector_cache import discard_damaged
from .projections.views import TRAIL
from .queries import lookup
from .queries.answer import Question
from .queries.blame import Blame, blame
from .queries.context import LEAST_TOKENS, fresh_mark, render, tokens_of
from .queries.doctor import Diagnosis
from .queries.evaluate import Evaluation
from .queries.export import export, lives, write
from .queries.filters import Filters
from .queries.key_list import KeyList, list_keys
from .queries.markdown import write_markdown
from .queries.models import Model, models, verify_models
from .queries.namespaces import Namespace, namespaces
from .queries.search import Sought, search
from .queries.sql import Rows, select
from .queries.status import Status, status
from .queries.trail import Receipt, TrailFilters, receipts
from .queries.verify import Depth, Progress, Report, quiet, verify
from .queries.why import Why, why

MOST = 2**31
"""No answer has more rows."""

FOLLOW_SECONDS = 0.2

Result = TypeVar("Result")


@guarded
class Memory:
    """Long-term memory in one directory. Use it as a context manager, from as many threads as you like.

    Not across a fork: start a child process with the `spawn` method, or open the store only after the fork.
    """

    def __init__(self, opened: OpenStore, namespace: str) -> None:
        self.namespace = namespace
        self._opened = opened
        self._echoes = Echoes()
        self._known = Known(self._echoes, opened.pinned, opened.resolve)
        self._pasts = Pasts(opened)

    # ---- opening and closing

    @classmethod
    def open(  # noqa: PLR0913  how a store is opened is said in one place
        cls,
        path: str | Path,
        *,
        namespace: str | None = None,
        actor: str | None = None,
        keys: KeySource = None,
        model: str | None = None,
        audit: Literal["grouped", "strict"] | None = None,
        create: bool = True,
        read_only: bool = False,
        until: int | None = None,
    ) -> Self:
        """Open the store in a directory, or make one there.

        `keys` is the directory of its keys, `env` (the environment), `keyring` (the keyring of the system) or a
        `KeyHolder`; without it, TALLYSTICK_KEYS, then your own key directory. `model` is `auto`, `none`, or a model by
        its name or its folder. `audit="strict"` hands out nothing before the disk has that it was; `grouped` has it
        there within 100 ms. `create=False` never makes a store. What others have appended is verified first, and
        everything where the files have changed while nobody had the store open. `read_only` writes nothing to the
        store, which may lie on a medium that can't be written to: its views are made in a temporary folder, and no
        recall is on record. With it, `until` is a position of the memory log: what is before it is verified and
        served, however damaged the rest is.

        Raises Refused, NotFound, KeysMissing, StoreIsNewer, LogDamaged or ViewsDamaged; each says what to do.
        """
        settings = load_settings()
        directory, source = Path(path), settings.keys if keys is None else keys
        name, record = settings.namespace if namespace is None else namespace, audit or settings.audit
        check_namespace(name)
        if read_only or until is not None:
            installation = Installation.read(directory, source, until)
            return cls(to_read(installation, _actor(actor, settings), model or settings.model), name)
        installation = _open_or_create(directory, source) if create else Installation.open(directory, source)
        opened = OpenStore(installation, actor=_actor(actor, settings), model=model or settings.model, audit=record)
        opened.trust_or_compare_views()
        if installation.unmarked:
            _say("mark.missing", mark=str(installation.mark.path) if installation.mark else "")
        return cls(opened, name)

    @classmethod
    def replay(
        cls, path: str | Path, *, keys: KeySource = None, actor: str | None = None, reason: str = "replay"
    ) -> Rebuilt:
        """Rebuild the views of the store in a directory, damaged or gone as they may be, from the verified log.

        Vectors that can't be read are thrown away, and made again when they are wanted. The way back from ViewsDamaged.
        It is put on record as an event, with the digests before and after.
        """
        settings = load_settings()
        installation = Installation.open(Path(path), settings.keys if keys is None else keys)
        opened = OpenStore(installation, actor=_actor(actor, settings), model="none")
        installation.share()
        try:
            discard_damaged(installation)
            rebuilt = rebuild(opened.session, opened.views, reason)
        except BaseException:
            opened.abandon()
            raise
        opened.close()
        return rebuilt

    @classmethod
    def temporary(cls, *, namespace: str = "default", actor: str = "user:test", model: str = "none") -> Self:
        """A memory whose store and keys lie in one folder that is removed when it is closed. For tests."""
        folder = Path(tempfile.mkdtemp(prefix="tallystick-"))
        try:
            memory = cls.open(folder / "store", namespace=namespace, actor=actor, keys=folder / "keys", model=model)
        except BaseException:
            shutil.rmtree(folder)
            raise
        memory._opened.temporary = folder
        return memory

    def at(self, position: int) -> Self:
        """This memory as it was when the memory log ended with a position: every question is answered as of then.

        What is read there is on record here, as answered from the log of then; every command is Refused. The log is
        verified from its beginning and views are folded up to there, once, in a folder that is removed when what is
        returned is closed, which is with this memory at the latest. Raises NotFound for a position that the log has
        not.
        """
        with self._opened.in_use():
            return type(self)(self._opened.at(position), self.namespace)

    def close(self) -> None:
        """Wait for the disk, sign a checkpoint of what was added, and close the files. Closing twice is no error."""
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- keeping a store, and mending one

    def snapshot(self, directory: str | Path) -> Snapshot:
        """Copy the log into a folder of its own in a directory, while others go on writing.

        The copy is verified in full before it counts. It holds no views, no vectors and no keys. On record as an event.
        Where log.db was deleted or replaced while it was open here, this saves what it held; then nothing is recorded.
        """
        with self._opened.to_change(replaced=True):
            assert self._opened.installation.keys is not None
            check = mending.verified(self._opened.installation.keys)
            return take(self._opened.session, Path(directory), check)

    def doctor(self) -> Diagnosis:
        """Look at this store, its keys and what is around it for all that can be wrong. Nothing is changed.

        What the opening of the store looks at is looked at again, and more that no opening minds. Logs of up to 5,000
        entries are read whole, of longer ones what is new and a sample: `verify` proves every entry.
        """
        with self._opened.in_use():
            opened, installation = self._opened, self._opened.installation
            kept = opened.temporary is None
            return mending.examine(installation.path, None, keys=installation.keys, model=opened.chosen.name, kept=kept)

    @staticmethod
    def diagnose(path: str | Path, *, keys: KeySource = None, model: str | None = None) -> Diagnosis:
        """As `doctor`, of the store in a directory, whether it opens or not: what is wrong is told, and not raised."""
        return mending.examine(Path(path), None, keys=keys, model=model)

    @staticmethod
    def snapshots(directory: str | Path) -> list[Snapshot]:
        """The snapshots in a directory, newest first."""
        return snapshots_in(Path(directory))

    @staticmethod
    def rotate_snapshots(directory: str | Path, *, daily: int = 7, weekly: int = 4) -> list[Snapshot]:
        """Delete all snapshots but the newest of each of the last days and weeks that have one. Returns the deleted."""
        return rotate(Path(directory), daily=daily, weekly=weekly)

    @staticmethod
    def restore_snapshot(
        snapshot: str | Path, path: str | Path, *, over: bool = False, keys: KeySource = None
    ) -> Path | None:
        """Put a snapshot's log into an empty directory, or `over` the store that is there, verified before it is.

        Returns the folder where the log that was there is kept. A snapshot that is older than what was verified last
        opens only once it was recovered.
        """
        return mending.restore_snapshot(Path(snapshot), Path(path), over=over, keys=keys)

    @staticmethod
    def recover(path: str | Path, *, reason: str, keys: KeySource = None, actor: str | None = None) -> Recovery:
        """Go on from an older copy of a store, as the start of a new origin. The log that was there is kept.

        Every memory keeps what it says and everything that happened to it, and gets a new id; the old one, given
        whole, still leads to it. Raises Refused where there is nothing to recover, LogDamaged where the copy is not
        whole: salvage it.
        """
        return mending.recover_store(Path(path), reason=reason, keys=keys, actor=actor)

    @staticmethod
    def salvage(
        path: str | Path,
        out: str | Path,
        *,
        reason: str = "salvaged",
        keys: KeySource = None,
        actor: str | None = None,
    ) -> Recovery:
        """Make a store, in an empty directory, of every event of a damaged one that verifies, as a new origin.

        As with recover. A memory that may have been forgotten in an event that is lost comes over forgotten.
        """
        return mending.salvage_store(Path(path), Path(out), reason=reason, keys=keys, actor=actor)

    @staticmethod
    def take_over(path: str | Path) -> None:
        """Let this host open a store that another host had open, when nothing there uses it any more."""
        mending.take_over(Path(path))

    # ---- what may be asked to happen

    def store(self, text: str, *, namespace: str | None = None, **fields: Any) -> Outcome:
        """Store a text; when this returns it is signed and on the disk.

        Fields are those of `Store`: kind, source, subject, key, tags, importance, confidence, author, thread,
        place, occurred_at, valid_from, expires_at, evidence, label, trust, metadata, derived_from, supersedes,
        command_id. With `key=` it takes the place of the older value of that key, with `supersedes=` that of the
        memory with that id. A text that is there already is reinforced. A command id makes a repetition harmless.
        Raises Refused where a rule says no.
        """
        return self._write(lambda session: store(session, {"text": text, **self._row(namespace, fields)}, self._known))

    def store_many(
        self, rows: Iterable[str | Mapping[str, Any]], *, namespace: str | None = None, **fields: Any
    ) -> list[Outcome]:
        """Store many texts in one transaction: all are durable when this returns, or none is there.

        A row is a text, or a mapping of `text` and the fields of `store`; `fields` are those of every row that says
        nothing else. Returns what each row came to, in order: one that a rule says no to is `refused`, with the
        reason, and keeps no other from being stored.
        """
        shared = self._row(namespace, fields)
        asked = [
            shared | dict(row) if isinstance(row, Mapping) else {**shared, "text": row} if isinstance(row, str) else row
            for row in rows
        ]
        return self._write(lambda session: store_rows(session, asked, self._known))

    def store_conversation(
        self,
        turns: Sequence[str | Mapping[str, Any]],
        *,
        thread: str,
        preceding: int = 0,
        namespace: str | None = None,
        **fields: Any,
    ) -> list[Outcome]:
        """Store the turns of a conversation in order: each is found by its own words and by those around it.

        A turn is a text, or a mapping of the fields of `store`; `content`, `role` and `speaker` are understood too.
        `fields` (occurred_at, tags, ...) are those of every turn that says nothing else. `preceding` is how many
        turns of the thread came before these. Storing a conversation again changes nothing, so one that broke off
        goes on; a place that holds another text is `refused`. 500 turns are one transaction.
        """
        rows = rows_of(turns, thread, preceding, self._row(namespace, fields))
        outcomes: list[Outcome] = []
        for chunk in chunks(rows):
            outcomes += self._write(partial(store_rows, rows=chunk, known=self._known))
        return outcomes

    def revise(
        self,
        memory: str,
        *,
        if_revision: int | None = None,
        command_id: str | None = None,
        **fields: Any,
    ) -> Outcome:
        """Give some fields of a memory other values: `text`, `importance`, `occurred_at`, `metadata` and others.

        `tags_added` and `tags_removed` change its tags, `cleared` names fields to be left without a value, `reason`
        says why. Every version is kept: see `history`. Raises RevisionConflict where the memory is not at
        `if_revision` any more, Refused for a protected memory and for what it says already.
        """
        wish = Wish(self._opened.resolve(memory), if_revision, command_id)
        return self._write(lambda session: revise(session, wish, fields, self._opened.pinned))

    def forget(self, memory: str, *, reason: str | None = None, command_id: str | None = None) -> Outcome:
        """Retract a memory, by its id or the beginning of it: nobody recalls it any more, and it is kept."""
        return self._change(memory, command_id, lambda session, wish: forget(session, wish, reason))

    def restore(self, memory: str, *, reason: str | None = None, command_id: str | None = None) -> Outcome:
        """Bring a forgotten memory back. Raises Refused where another has taken its text or key since."""
        pinned = self._opened.pinned
        return self._change(memory, command_id, lambda session, wish: restore(session, wish, pinned, reason))

    def link(self, memory: str, to: str, *, kind: str = "related", command_id: str | None = None) -> Outcome:
        """Say that a memory points to another one, and how: `causes`, `contradicts`, or a word of your own."""
        link_ = Link(kind, self._opened.resolve(to))
        return self._change(memory, command_id, lambda session, wish: link(session, wish, link_))

    def unlink(self, memory: str, to: str, *, kind: str = "related", command_id: str | None = None) -> Outcome:
        """Take a link away."""
        link_ = Link(kind, self._opened.resolve(to))
        return self._change(memory, command_id, lambda session, wish: unlink(session, wish, link_))

    def protect(
        self, memory: str, *, on: bool = True, reason: str | None = None, command_id: str | None = None
    ) -> Outcome:
        """Let nothing change a memory: not forget, not revise, not a newer value of its key. `on=False` lifts it."""
        return self._change(memory, command_id, lambda session, wish: protect(session, wish, on=on, reason=reason))

    def pin(self, memory: str, *, on: bool = True, command_id: str | None = None) -> Outcome:
        """Make a memory part of every `context` of its namespace, 8 KiB of text at most. `on=False` takes it out."""
        pinned = self._opened.pinned
        return self._change(memory, command_id, lambda session, wish: pin(session, wish, pinned, on=on))

    def rename(self, old: str, new: str) -> Renamed:
        """Give a namespace another name. Its memories are found under the new one, and under the old one too.

        What is stored under the old name from now on goes to the new one. Namespaces below it keep their names. A
        name that it had can be given back. Raises NotFound where there is none, Refused where the new name has
        memories: `merge` into it.
        """
        return self._rename(old, new, merge=False)

    def merge(self, old: str, into: str) -> Renamed:
        """Make the memories of a namespace those of another one. They can't be told apart any more; nothing undoes it.

        Where both hold a value of one key, or one text, the newer supersedes the older. Raises NotFound and Refused.
        """
        return self._rename(old, into, merge=True)

    def used(self, receipt: str | None, memories: Sequence[str]) -> str:
        """Put on record which hits of a recall were relied on. Returns the receipt of that."""
        with self._opened.to_change():
            streams = [self._opened.resolve(memory) for memory in memories]
            return _id(self._opened.access.used(_receipt(receipt), streams)) or ""

    def rebuild(self, *, reason: str = "asked for") -> Rebuilt:
        """Build every view anew from the log beside the old ones, and put them in force. On record as an event.

        Returns the digests before and after, by view: equal unless the old views were damaged.
        """
        with self._opened.to_change():
            return rebuild(self._opened.session, self._opened.views, reason)

    # ---- what can be asked

    def recall(  # noqa: PLR0913  what is asked, where and when, and how it is ranked
        self,
        question: str,
        *,
        limit: int = 10,
        namespaces: Sequence[str] | None = None,
        under: str | None = None,
        without: Collection[str] = (),
        rerank: bool = False,
        at_position: int | None = None,
        known_at: datetime | str | None = None,
        **filters: Any,
    ) -> Recall:
        """The memories that answer a question best, at most `limit`, and a receipt for what was answered.

        Looks in this memory's namespace unless others are named, or all there are `under` one. `without` names stages
        of the ranking to leave out: `dates`, `author` and others, as in a hit's `scores`. With `rerank` a model reads
        the first 20 together with the question, which adds to their scores and takes about a fifth of a second.

        Filters are `where`, `tags`, `kinds`, `actors`, `sources`, `subject`, `since`, `until`, `as_of` (it was valid
        then), `min_importance` and `status` (`current`, `expired`): what they leave out is left out before the best
        are picked. Each text is read from the signed log and verified.

        `at_position` answers as the store stood when the memory log ended with that position, `known_at` as it stood
        at that time: see `at`, which this folds and keeps for the next questions of the same position.

        Raises Refused for filters that can't be asked, ModelMissing where `rerank` is asked for and its model is not
        here, Unavailable where the recall can't be put on record.
        """
        with self._standing(at_position, known_at) as (opened, then):
            scope, taken = opened.scope_of(namespaces, under, self.namespace), Filters.of(filters)
            asked = Question(
                _question(question), scope.stored, _limit(limit), then.now if then else opened.now(), taken,
                scope.aliases, frozenset(map(str, without)), rerank,
            )  # fmt: skip
            from .queries.recall import recall  # noqa: PLC0415  numpy

            judge = opened.judge() if rerank else None
            answer = recall(opened.log, opened.views.opened(), opened.searching(), asked, judge)
            if then is None:
                self._echoes.remember(hit.record for hit in answer.hits)
            event = recalled(self._opened.session, asked, answer, then.said if then else opened.said)
            receipt = _id(opened.access.recalled(event))
            degraded = answer.degraded + (self._opened.degraded() if receipt is None else ())
            return Recall(answer.hits, receipt, degraded, partial(self._context, called(asked), then))

    def search(  # noqa: PLR0913  as above
        self,
        *,
        sort: str = "-recorded_at",
        limit: int = 50,
        after: str | None = None,
        namespaces: Sequence[str] | None = None,
        under: str | None = None,
        at_position: int | None = None,
        known_at: datetime | str | None = None,
        **filters: Any,
    ) -> Listing:
        """The memories that fulfil filters, those of `recall` and any `status`, at most `limit` on a page.

        `sort` is one of recorded_at, occurred_at, revised_at, expires_at, importance, confidence, reinforced and
        place, with a - before it to begin at the greatest; what has no value comes last. `after` is the cursor of
        the page before. However many others write in between, all pages together list each memory once that was
        there when the first was read, and still is as it was. `at_position` and `known_at` as in `recall`. Raises
        Refused for what can't be asked.
        """
        with self._standing(at_position, known_at) as (opened, then):
            scope, taken = opened.scope_of(namespaces, under, self.namespace), Filters.of(filters)
            now, said = (then.now, then.said) if then else (opened.now(), opened.said)
            asked = [namespaces and list(namespaces), under, dict(said)]
            sought = Sought(scope.stored, asked, taken, sort, _limit(limit), after, now, scope.aliases)
            found = search(opened.log, opened.recalling(), sought)
            if then is None:
                self._echoes.remember(found.records)
            receipt = _id(opened.access.recalled(searched(self._opened.session, sought, found, said)))
            return Listing(found.records, found.total, found.cursor, receipt)

    def get(self, memory: str) -> Record:
        """One memory by its id or the beginning of it, whatever its status. On record as a read."""
        with self._opened.in_use():
            stream = self._opened.resolve(memory)
            record = self._opened.named(lookup.get(self._opened.log, self._opened.recalling(), stream))
            self._opened.access.read(stream, "get")
            self._echoes.remember([record])
            return record

    def history(self, memory: str) -> list[LoggedEvent]:
        """Every event of a memory, oldest first, each verified. On record as a read."""
        with self._opened.in_use():
            stream = self._opened.resolve(memory)
            events = lookup.history(self._opened.log, self._opened.recalling(), stream)
            self._opened.access.read(stream, "history")
            return events

    def blame(self, memory: str) -> list[Blame]:
        """For each field of a memory: its value, the event that gave it that, who acted, and which key signed it.

        On record as a read.
        """
        with self._opened.in_use():
            stream = self._opened.resolve(memory)
            found = blame(lookup.history(self._opened.log, self._opened.recalling(), stream))
            self._opened.access.read(stream, "blame")
            return found

    def why(self, receipt: str | None, memory: str | None = None) -> Why:
        """Why a recall answered as it did, for all its hits or one: event, signer, scores of every stage."""
        with self._opened.in_use():
            stream = None if memory is None else self._opened.resolve(memory)
            opened = self._opened
            explained = why(opened.log, opened.installation.access, opened.named, (_receipt(receipt), stream))
            self._opened.access.read(explained.logged.header.stream, "why")
            return explained

    def events(self, after: int = 0) -> Iterator[LoggedEvent]:
        """The events of the memory log after a position, verified, oldest first, to its present end. On record."""
        if not 0 <= after < PLACES:
            raise Refused(f"after is {after!r}. Give a position of the memory log, from 0.")
        with self._opened.in_use():
            last = self._opened.log.follow().size - 1
            self._opened.access.exported(after, max(after, last))
        return self._events(after, last)

    def export(
        self,
        path: str | Path,
        *,
        markdown: bool = False,
        progress: Callable[[int, int], None] = lambda _done, _of: None,
    ) -> int:
        """Write every memory, whole, to a file of JSON lines that `import_` reads. Returns how many there are.

        Versions, links, and what was forgotten or superseded included; it is in clear. An older file of that name is
        replaced once the new one is on the disk. With `markdown` a new folder, for people: a file for each namespace,
        with what is current. `progress` is told events gone through, and of how many. On record.
        """
        with self._opened.in_use():
            log, session = self._opened.log, self._opened.session
            last = (tip := log.follow()).size - 1

            def recorded(told: Iterator[Result]) -> Iterator[Result]:
                """What is told, on record once there is a place for it and before any of it is handed out."""
                self._opened.access.exported(0, last)
                yield from told

            def tell(position: int) -> None:
                progress(position, last)

            if markdown:
                return write_markdown(Path(path), recorded(lives(log, last)), self._opened.named, tell)
            return write(Path(path), recorded(export(log, tip, session.now(), session.actor)), tell)

    def import_(self, path: str | Path, *, progress: Callable[[int, int], None] = lambda _done, _of: None) -> Arrivals:
        """Bring in the memories of a file that `export` has written, 500 in a transaction, each with its whole life.

        What the file tells is kept as its claim: here the importer acted. Imported again it changes nothing; what is
        known here stands, and what was forgotten stays so. A row that a rule says no to goes to a file beside it, with
        the reason, and keeps no other from coming in. `progress` is told bytes read, and of how many.
        """

        def done(read: int, of: int) -> None:
            self._opened.follow()
            progress(read, of)

        with self._opened.in_use():
            return arrive(self._opened.session, Path(path), self._opened.pinned, done)

    def log(self, *, limit: int = 20, **filters: Any) -> list[AuditRow]:
        """The newest events of both logs, newest first: who did what when, without any text.

        Filters are `kind`, `actor`, `memory` (its own events, and those that handed it out), `since`, `until` and
        `log` (`memory` or `access`).
        """
        with self._opened.in_use():
            condition = self._trail(filters).condition()
            with self._opened.views.current(TRAIL).reading() as cursor:
                return list(islice(newest(cursor, condition), _limit(limit)))

    def follow(self, *, limit: int = 0, **filters: Any) -> Iterator[AuditRow]:
        """The newest events as of `log`, oldest first, and then each event as it happens, whoever appends it.

        Never ends while the store is open.
        """
        if limit < 0:
            raise Refused(f"limit is {limit!r}. Give how many events to begin with, 0 or more.")
        with self._opened.in_use():
            condition = self._trail(filters).condition()
            with self._opened.views.current(TRAIL).reading() as cursor:
                reached, rows = ends(cursor), list(islice(newest(cursor, condition), min(limit, MOST)))[::-1]
        return self._follow(condition, rows, reached)

    def receipts(self, *, verb: str | None = None, limit: int = 20, **filters: Any) -> list[Receipt]:
        """What was read, newest first: question or verb, who asked when, which memories were handed out.

        Filters are `verb` (`recall`, `search`, `get` ...), `actor`, `memory`, `since` and `until`; `why` tells the
        rest of one. On record as a read, since it hands out questions.
        """
        with self._opened.in_use():
            asked, log = self._trail(filters), self._opened.installation.access
            with self._opened.views.current(TRAIL).reading() as cursor:
                found = list(receipts(log, cursor, asked, verb, _limit(limit)))
            for stream in dict.fromkeys(stream for stream, _ in found):
                self._opened.access.read(stream, "receipts")
            return [receipt for _, receipt in found]

    def sql(self, statement: str, parameters: Sequence[Any] = ()) -> Rows:
        """The rows of one `select`, over the tables `memories`, `alias`, `access` and `audit`, which hold no text.

        They are copied into memory each time, where the statement can read and nothing else, for at most ten seconds
        and 100,000 rows. On record as a read. Raises Refused for what can't be answered.
        """
        with self._opened.in_use():
            views = self._opened.recalling()
            found, tip = select(views, _question(statement), parameters), self._opened.log.tip
            self._opened.access.recalled(selected(self._opened.session, _question(statement), tip))
            return found

    def evaluate(
        self, *, model: str | None = None, without: Collection[str] = (), limit: int = 100, progress: Progress = quiet
    ) -> Evaluation:
        """Ask the newest recalls that are on record again, under another model or without some stages.

        Each is asked as the store stood then, by its question and filters; with neither `model` nor `without` it is
        replayed as it was. Tells for each what changed, and how well memories are found that `used` named. Vectors
        that are missing are made and kept. Nothing is changed; it is on record as reads of those recalls. `progress`
        is told what is being done, how much of it, and of how much. Raises Refused for a stage that is none and a
        model that makes no vectors, ModelMissing for one that is not here.
        """
        with self._opened.in_use():
            setting = Setting(model, frozenset(map(str, without)))
            return evaluate(self._opened, setting, _limit(limit), progress)

    def verify(self, *, depth: Depth = "full", views: bool = False, progress: Progress = quiet) -> Report:
        """Check every entry, root, hash, signature, commitment, data key and claim; with `views` a rebuild too.

        `depth="structure"` leaves signatures and payloads closed. Raises LogDamaged or ViewsDamaged.
        """
        with self._opened.in_use():
            return verify(
                self._opened.installation, depth=depth, views=self._opened.views if views else None, progress=progress
            )

    def namespaces(self) -> list[Namespace]:
        """Every namespace that has memories: how many, what it was called before, and when it was last used."""
        with self._opened.in_use():
            names = self._opened.aliases()
            with self._opened.views.current(TRAIL).reading() as cursor:
                return namespaces(cursor, names)

    def status(self) -> Status:
        """What is there, where it lies, and whether it is clean."""
        with self._opened.in_use():
            views = self._opened.recalling()
            model, missing = self._opened.model(), self._opened.missing_vectors(views)
            kept = self._opened.temporary is None
            return status(self._opened.installation, views, model, missing, kept=kept)

    def embed(self, progress: Callable[[int], None] = lambda _missing: None, *, seconds: float | None = None) -> int:
        """Make the vectors that are missing now, instead of in the background; for at most so many seconds.

        Without a limit a change of the model that was broken off is brought to its end, too.
        Returns how many were made. `progress` is told how many are still missing.
        """
        with self._opened.in_use():
            following = self._opened.chosen.choice.next_model
            if seconds is None and following and not self._opened.installation.read_only:
                made = self._opened.use_model(following, lambda done, of: progress(of - done), None).vectors
                return made + self.embed(progress)
            search = self._opened.searching()
            if search is None:
                return 0
            first = missing = search.follow(self._opened.recalling())
            ends = None if seconds is None else monotonic() + seconds
            while missing and (ends is None or monotonic() < ends):
                progress(missing)
                missing = search.wait(0.2)
            return first - missing

    # ---- the models

    def models(self) -> list[Model]:
        """Every model that is known, in the cache or in use here: where it is, and what this store has of it."""
        with self._opened.in_use():
            return models(self._opened.held())

    def use_model(
        self,
        model: str,
        *,
        progress: Callable[[int, int], None] = lambda _done, _of: None,
        seconds: float | None = None,
    ) -> Switch:
        """Choose the model of this store: a name of `models()`, the folder of one, `auto` or `none`.

        Makes its vectors, for at most so many seconds; recall answers from those of the model before until none is
        missing, then from the new ones, in every process that has the store open. Broken off, it goes on when it is
        called again, or by `embed`. The old vectors are kept: `drop_model` throws them away. A model that `open` was
        given, or TALLYSTICK_MODEL, goes before this choice. `progress` is told how many are made, and of how many.

        Raises ModelMissing where the model is not here or can't be loaded; then nothing is chosen.
        """
        with self._opened.to_change():
            return self._opened.use_model(model, progress, seconds)

    def drop_model(self, model: str) -> int:
        """Throw away this store's vectors of a model that is not in force, by its name, folder or space.

        Returns how many there were. A change to that model which has begun is given up. Raises Refused for the model
        in force, NotFound where there are none.
        """
        with self._opened.to_change():
            return self._opened.drop_model(model)

    @staticmethod
    def fetch_model(model: str, *, progress: Callable[[int, int], None] = lambda _done, _of: None) -> Packed:
        """Bring a model into the cache of this user: the one verb that uses the network.

        From the hub: one that is known, or OWNER/NAME@COMMIT, with the 40 digits of the commit. Without the network:
        the folder or the file that `pack_model` wrote. Each file is verified before the model is put in place; of one
        that is wrong nothing is left. Raises ModelMissing, Refused, or Unavailable where the hub can't be reached.
        """
        from .projections.models.fetch import fetch  # noqa: PLC0415  what speaks to a network, and is seldom needed

        return install(Path(model)) if Path(model).exists() else fetch(model, progress)

    @staticmethod
    def pack_model(model: str, out: str | Path) -> Packed:
        """Write a model that is here, with a manifest of hashes, to a new folder, or a file where it ends in `.zip`."""
        return pack(model, Path(out))

    @staticmethod
    def verify_models(model: str | None = None) -> list[Checked]:
        """Hash every file of a model, or of all that are here, and compare it with its pin or with its manifest."""
        return verify_models(model)

    # ---- the keys

    def back_up_keys(self, file: str | Path, passphrase: str) -> KeyBackup:
        """Seal the keys under a passphrase into a file that is not there yet. On record as an event, both or neither.

        In it is what reads and verifies the store anywhere, and the root key; the keys that sign events are not.
        """
        with self._opened.in_use():
            return back_up_keys(self._opened.session, Path(file), passphrase)

    def decline_key_backup(self, *, reason: str | None = None) -> int:
        """Put on record that these keys need no backup. Returns the position of the event that says so."""
        with self._opened.in_use():
            return decline_key_backup(self._opened.session, reason)

    @classmethod
    def restore_keys(
        cls, path: str | Path, file: str | Path, passphrase: str, *, keys: KeySource = None
    ) -> RestoredKeys:
        """Bring the keys of the store in a directory back from a backup, to where `keys` says or they would be.

        Only keys that are missing are written, never over another. The store then opens to be read and verified, and
        to be written if the keys that sign are there too. Raises Refused for a wrong passphrase, a file that was cut
        or altered, and the backup of another store.
        """
        return restore_keys(Path(path), Path(file), passphrase, load_settings().keys if keys is None else keys)

    @classmethod
    def list_keys(cls, path: str | Path, *, keys: KeySource = None) -> KeyList:
        """The keys of the store in a directory: what each is for, its public id and where it is, and no secret."""
        return list_keys(Path(path), load_settings().keys if keys is None else keys)

    # ---- inside

    def _write(self, command: Callable[[Session], Result]) -> Result:
        with self._opened.to_change():
            result = command(self._opened.session)
            self._opened.follow()
            return result

    def _change(self, memory: str, command_id: str | None, command: Callable[[Session, Wish], Outcome]) -> Outcome:
        with self._opened.to_change():
            wish = Wish(self._opened.resolve(memory), None, command_id)
        return self._write(lambda session: command(session, wish))

    def _rename(self, old: str, new: str, *, merge: bool) -> Renamed:
        check_namespace(old)
        check_namespace(new)
        return self._write(lambda session: rename(session, old, new, self._opened.members, merge=merge))

    @contextmanager
    def _standing(
        self, at_position: int | None, known_at: datetime | str | None
    ) -> Iterator[tuple[OpenStore, Then | None]]:
        """The store that a question is asked of, in use, and which past that is; None for the present."""
        with self._opened.in_use():
            then = self._pasts.then(at_position, known_at)
            with self._pasts.at(then) as opened:
                yield opened, then

    def _context(self, namespaces: Sequence[str], then: Then | None, recall: Recall, max_tokens: int) -> Context:
        if type(max_tokens) is not int or max_tokens < LEAST_TOKENS:
            raise Refused(f"max_tokens is {max_tokens!r}. Give at least {LEAST_TOKENS}.")
        with self._opened.in_use(), self._pasts.at(then) as opened:
            pinned = [record for name in namespaces for record in opened.pinned(name)]
            found = [hit.record for hit in recall.hits]
            rendering = render(pinned, found, fresh_mark([*pinned, *found]), max_tokens)
            receipt = None
            if recall.receipt is not None:
                streams = [record.stream for record in rendering.memories]
                receipt = opened.access.rendered(_receipt(recall.receipt), streams, max_tokens, rendering.text)
            if then is None:
                self._echoes.remember(rendering.memories)
            return Context(rendering.text, tokens_of(rendering.text), rendering.left_out, _id(receipt))

    def _events(self, after: int, last: int) -> Iterator[LoggedEvent]:
        for page in self._opened.log.pages(after, last):
            for logged in page:
                with self._opened.in_use():
                    pass
                yield logged

    def _follow(self, condition: Condition, rows: list[AuditRow], reached: dict[str, int]) -> Iterator[AuditRow]:
        while True:
            yield from rows
            time.sleep(FOLLOW_SECONDS)
            with self._opened.in_use(), self._opened.views.current(TRAIL).reading() as cursor:
                rows, reached = after(cursor, condition, {"memory": 0, "access": 0} | reached), ends(cursor)

    def _trail(self, filters: Mapping[str, Any]) -> TrailFilters:
        memory = filters.get("memory")
        return TrailFilters.of(filters if memory is None else {**filters, "memory": self._opened.resolve(memory)})

    def _row(self, namespace: str | None, fields: Mapping[str, Any]) -> dict[str, Any]:
        return {"namespace": self.namespace if namespace is None else namespace, **fields}


def _open_or_create(directory: Path, keys: KeySource) -> Installation:
    try:
        return Installation.open(directory, keys)
    except NotFound:
        _refuse_remains(directory)
    try:
        installation = Installation.create(directory, keys)
    except StoreExists:  # another process was faster
        return Installation.open(directory, keys)
    if keys is None and installation.keys is not None:
        _say("keys.created", directory=str(installation.keys.place))
    return installation


def _refuse_remains(directory: Path) -> None:
    """Refuse a new store beside what is left of another one."""
    left = remains(directory)
    if left:
        raise LogDamaged(
            f"{directory} holds {left[0].name} and no {FILE}: the log is gone. Put it back, or a snapshot in its place "
            f"with `tallystick snapshot restore SNAPSHOT --over`."
        )


def _id(event_id: bytes | None) -> str | None:
    return None if event_id is None else event_id.hex()


def _question(text: str) -> str:
    """The question as it is asked and recorded: what no record may hold, NUL and half a character, becomes U+FFFD."""
    if not isinstance(text, str):
        raise Refused(f"The question is a {type(text).__name__}. Give a str.")
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").replace("\0", "\ufffd")


def _limit(limit: int) -> int:
    if type(limit) is not int or limit < 1:
        raise Refused(f"limit is {limit!r}: ask for at least one memory.")
    return min(limit, MOST)


def _receipt(receipt: str | None) -> bytes:
    if receipt is None:
        raise Refused("There is no receipt, since that recall is not on record. Give one of a recall that is.")
    try:
        event_id = bytes.fromhex(receipt)
    except (ValueError, TypeError):
        event_id = b""
    if len(event_id) != 16:
        raise Refused(f"{receipt!r} is not a receipt. Give its 32 hexadecimal digits.")
    return event_id


def _actor(actor: str | None, settings: Settings) -> str:
    return composed(actor or settings.actor or f"user:{user()}")


def _say(event: str, **fields: Any) -> None:
    """One structured line on standard error: ids, counts and places, never a text, a query or a key."""
    import structlog  # noqa: PLC0415  it loads rich, which most runs never need

    structlog.wrap_logger(structlog.PrintLogger(sys.stderr)).info(event, **fields)
