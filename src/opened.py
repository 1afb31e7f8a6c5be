"""A store that is open: its installation, its views, its vectors, and who acts on it."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Condition, RLock, get_ident
from typing import TYPE_CHECKING, Any, NamedTuple

from .commands.fields import check_namespace
from .commands.record_recall import AccessRecord
from .commands.rename import Members
from .commands.session import Session
from .config import user
from .errors import Forked, NotFound, Refused, Unavailable, ViewsDamaged
from .events.driver import BUSY_SECONDS
from .events.installation import Installation, stamp
from .events.log import Log
from .projections import memories
from .projections.aliases import aliases, stored_names
from .projections.condition import ALWAYS
from .projections.models.choice import Chosen, Switch, Tell, as_written, begin, finish, space_named, write_choice
from .projections.record import Record, fold
from .projections.vector import wanted
from .projections.vector_cache import VectorCache
from .projections.views import RECALL, ScratchViews, Views, ViewsInForce
from .queries import lookup
from .queries.models import Held
from .queries.verify import compare_views

if TYPE_CHECKING:
    from .projections.embedding import Embedder
    from .projections.reranking import Reranker
    from .projections.vector_search import VectorSearch


class Scope(NamedTuple):
    """Where a question looks: the names memories were stored under, and what those are called now that have changed."""

    stored: tuple[str, ...]
    aliases: Mapping[str, str]


class OpenStore:
    """What every verb works with. Closed once; of no use in a forked child."""

    def __init__(self, installation: Installation, *, actor: str, model: str, audit: str = "grouped") -> None:
        self.installation = installation
        self.session = Session(installation, actor, {"process": str(os.getpid()), "user": user()}, now)
        self.access = AccessRecord(self.session, strict=audit == "strict")
        self.views = ScratchViews(installation) if installation.read_only else ViewsInForce(installation)
        self.temporary: Path | None = None
        self.present: OpenStore | None = None
        self._then: int | None = None
        self.said: Mapping[str, int] = {}
        self._pasts: list[OpenStore] = []
        self.chosen = Chosen(installation.path, model)
        self._loaded = ""
        self._embedder: tuple[str, Embedder | None] = ("", None)
        self._search: VectorSearch | None = None
        self._cache: VectorCache | None = None
        self._judge: Reranker | None = None
        self._model_missing = False
        self._loading = RLock()
        self._process = os.getpid()
        self._closed = False
        self._using = Condition()
        self._users: Counter[int] = Counter()

    @property
    def log(self) -> Log:
        """The memory log."""
        return self.installation.memory

    @contextmanager
    def in_use(self, *, replaced: bool = False) -> Iterator[None]:
        """While a verb runs. Raises Forked in a forked child, Unavailable once the store is closed.

        And LogDamaged where log.db was deleted or replaced meanwhile, unless the verb saves what it held.
        """
        if os.getpid() != self._process:
            raise Forked
        me = get_ident()
        with self._using:
            if self._closed and me not in self._users:
                raise Unavailable("This Memory is closed. Open the store again.")
            if not replaced:
                self.installation.require_in_place()
            self._users[me] += 1
        try:
            yield
        finally:
            with self._using:
                self._users -= Counter([me])  # drops what has come to nothing
                self._using.notify_all()

    @contextmanager
    def to_change(self, *, replaced: bool = False) -> Iterator[None]:
        """While a verb runs that writes. Raises as in_use, and Refused where the store was opened to be read."""
        with self.in_use(replaced=replaced):
            self.installation.require_writable()
            yield

    def degraded(self) -> tuple[str, ...]:
        """What is missing from the answers of a store that is not written to."""
        if not self.installation.read_only:
            return ("not on record: the keys of this store read and don't sign",)
        until = self.installation.until
        said = ("opened to be read: this recall is not on record",)
        return said if until is None else (*said, f"answers as of position {until - 1}: what came after is not known")

    def at(self, position: int, model: str | None = None) -> OpenStore:
        """The store as it was at a position of the memory log, to be read; what is read there is on record here.

        Its views are folded up to there, in a folder of their own. Closed with this store at the latest.
        """
        past = to_read(self.installation.at(position), self.session.actor, model or self.chosen.given)
        past.present, past.access = self, self.access.of(past.log)
        past._is_at(position)
        self._pasts = [*(each for each in self._pasts if not each._closed), past]
        return past

    def go_on_to(self, position: int) -> None:
        """Let this past end with a later position: what lies between is verified, and folded when it is asked."""
        self.installation.go_on_to(position)
        self._is_at(position)

    def _is_at(self, position: int) -> None:
        self._then, self.said = self.log.event_at(position).event.recorded_at, {"at_position": position}

    def now(self) -> int:
        """The wall clock (microseconds), or what it showed when the last event of a past was appended."""
        return now() if self._then is None else self._then

    # ---- what the views say

    def recalling(self) -> Views:
        """The views that recall reads, caught up with the log."""
        return self.views.current(RECALL)

    def resolve(self, memory: str) -> bytes:
        """The stream of a memory by its id or the beginning of it."""
        with self.in_use():
            return lookup.resolve(self.log, self.views.opened(), memory)

    def aliases(self) -> dict[str, str]:
        """Each name that a namespace had, and the one it has now."""
        with self.recalling().reading() as cursor:
            return aliases(cursor)

    def scope_of(self, namespaces: Sequence[str] | None, under: str | None, own: str) -> Scope:
        """Where a question looks: in these namespaces, by the names they have or had, under one, or in its own.

        Raises Refused for what names none.
        """
        names = self.aliases()
        if under is not None:
            if namespaces is not None:
                raise Refused("namespaces and under are both given. Give one of them.")
            check_namespace(under)
            return Scope(stored_names(names, self._under(under)), names)
        if namespaces is not None and (not isinstance(namespaces, list | tuple) or not namespaces):
            raise Refused(f"namespaces is {namespaces!r}: give a list of at least one name.")
        for name in namespaces or ():
            check_namespace(name)
        return Scope(stored_names(names, namespaces or [own]), names)

    def named(self, record: Record) -> Record:
        """A memory with the name that its namespace has now."""
        return record.renamed(self.aliases().get(record.namespace, record.namespace))

    def pinned(self, namespace: str) -> list[Record]:
        """The current memories of a namespace that are pinned, oldest first, read and verified from the log."""
        with self.recalling().reading() as cursor:
            streams = memories.pinned(cursor, stored_names(aliases(cursor), [namespace]))
        records = [fold(self.log.events_of(stream)) for stream in streams]
        return [record for record in records if record is not None and record.pinned and record.status == "current"]

    def members(self, namespace: str) -> Members:
        """What the views know of a namespace, and at which size of the log."""
        views = self.recalling()
        with views.reading() as cursor:
            names = stored_names(aliases(cursor), [namespace])
            size = views.position(RECALL, self.log.name, cursor) + 1
            count, current = memories.count(cursor, names, ALWAYS), memories.current_in(cursor, names)
        return Members(size, count, current, sum(len(record.text.encode()) for record in self.pinned(namespace)))

    def _under(self, top: str) -> tuple[str, ...]:
        """The namespaces there are in a subtree: the one that is named, and those below it."""
        with self.recalling().reading() as cursor:
            names = aliases(cursor)
            there = sorted({names.get(name, name) for name, *_ in memories.by_namespace(cursor)})
        top = names.get(top, top)
        return tuple(name for name in there if name == top or name.startswith(f"{top}/"))

    def follow(self) -> None:
        """After a change: the views catch up, and what is new is embedded if the model is loaded.

        What was asked has happened by then, whatever becomes of the views: what reads them says what is wrong.
        """
        with suppress(ViewsDamaged, Unavailable):
            views = self.recalling()
            if self._search is not None:
                self._search.follow(views, ())

    def searching(self) -> VectorSearch | None:
        """Search by meaning, with the model loaded when it is first needed; None where there is no model."""
        with self._loading:
            self._forget_other_model()
            if self._search is None and not self._model_missing:
                from .projections.vector_search import VectorSearch  # noqa: PLC0415  numpy

                embedder = self.embedder(self._loaded)
                if embedder is None:
                    self._model_missing = True
                    return None
                self._search = VectorSearch(self.vectors(), embedder, self.log)
            return self._search

    def embedder(self, name: str) -> Embedder | None:
        """A model, loaded when it is first asked for, once for this store and its pasts. None where that is none."""
        if self.present is not None and self.present.chosen.name == name:
            return self.present.embedder(name)
        with self._loading:
            if self._embedder[0] != name:
                from .projections.models.places import resolve_embedder  # noqa: PLC0415  numpy and the model

                self._embedder = name, resolve_embedder(name)
            return self._embedder[1]

    def judge(self) -> Reranker:
        """The reranker, loaded when it is first asked for, by the present for its pasts. Raises ModelMissing."""
        if self.present is not None:
            return self.present.judge()
        with self._loading:
            if self._judge is None:
                from .projections.models.places import resolve_reranker  # noqa: PLC0415  the model

                self._judge = resolve_reranker()
            return self._judge

    def _forget_other_model(self) -> None:
        """Where another model was put in force since the last question: that one is loaded anew."""
        name = self.chosen.name
        if name != self._loaded:
            search, self._search, self._model_missing, self._loaded = self._search, None, False, name
            if search is not None:
                search.close()

    def vectors(self) -> VectorCache:
        """The vectors of every model."""
        with self._loading:
            if self._cache is None:
                self._cache = VectorCache(self.installation if self.present is None else self.present.installation)
            return self._cache

    def use_model(self, model: str, tell: Tell, seconds: float | None) -> Switch:
        """Make the vectors of another model, and put it in force when none is missing: see Memory.use_model."""
        from .projections.models.places import resolve_embedder  # noqa: PLC0415  as above
        from .projections.reembedding import Source, reembed  # noqa: PLC0415  numpy

        model, store, made, missing = as_written(model), self.installation.path, 0, 0
        embedder = resolve_embedder(model)
        begin(store, model)
        if embedder is not None:
            source = Source(self.vectors(), self.log, self.recalling)
            made, missing = reembed(source, embedder, self._until_closed(tell), seconds)
        space = None if embedder is None else embedder.space.id
        if not missing:
            finish(store, model, space)
        return Switch(model, space, made, missing)

    def _until_closed(self, tell: Tell) -> Tell:
        """As `tell`, but what takes long ends with the store. Raises Unavailable."""

        def going_on(done: int, of: int) -> None:
            if self._closed:
                raise Unavailable("This Memory is closed. Open the store again.")
            tell(done, of)

        return going_on

    def drop_model(self, model: str) -> int:
        """Throw the vectors of a model away: see Memory.drop_model."""
        kept, asked = self.vectors().spaces(), model
        if model not in kept:
            model = self._space_named(model) or model
        search = self.searching()
        if model in self.chosen.spaces or (search is not None and search.space == model):
            raise Refused("That model is in force. Put another one in force first: `tallystick models use`.")
        chosen = self.chosen.choice
        if chosen.next_model in (asked, model):
            write_choice(self.installation.path, chosen._replace(next_model=""))
        elif model not in kept:
            raise NotFound("There are no vectors of that model here. Name one for which `models list` shows some.")
        return self.vectors().drop(model)

    def model(self) -> str:
        """The name of the embedding model, without loading it; `none` where there is none."""
        from .projections.models.places import name_of  # noqa: PLC0415  as above

        return name_of(self.chosen.name)

    def _space_named(self, model: str) -> str | None:
        """The space of a model by its name or folder; loaded where only its files say."""
        from .projections.models.places import resolve_embedder  # noqa: PLC0415  as above

        space = space_named(model)
        embedder = None if space else resolve_embedder(model)
        return space or (embedder.space.id if embedder else None)

    def held(self) -> Held:
        """The model in force, what was chosen, and which vectors there are."""
        return Held(self.chosen.name, self.chosen.space, self.chosen.choice, self.vectors().spaces())

    def missing_vectors(self, views: Views) -> int:
        """How many memories have no vector yet, without loading the model; 0 where there is none to make them."""
        if self.model() == "none":
            return 0
        cache = self._cache or VectorCache(self.installation)
        try:
            with views.reading() as cursor:
                return len(wanted(cursor) - cache.keys(self._search.space if self._search else self.chosen.space))
        finally:
            if cache is not self._cache:
                cache.close()

    # ---- opening and closing

    def trust_or_compare_views(self) -> None:
        """Before anything is served: views that somebody else can have changed are compared with a rebuild."""
        installation = self.installation
        try:
            file = self.views.name()
            trusted = installation.closed_with.get("views") == _views_stamp(installation.path, file)
            with installation.excluding() as nobody_else:
                if nobody_else:
                    self.views.remove_strays()
            if installation.alone and file is not None and not trusted:
                compare_views(installation, self.views)
            installation.share()
        except BaseException:
            self.abandon()
            raise

    def abandon(self) -> None:
        """Close the files and vouch for nothing."""
        self._closed = True
        self.views.close()
        self.installation.abandon()

    def close(self) -> None:
        """Wait for the disk, sign a checkpoint of what was added, and close the files. Closing twice is no error.

        Verbs that other threads are at are waited for; new ones are told that it is closed.
        """
        if os.getpid() != self._process:
            return
        with self._using:
            if self._closed:
                return
            self._closed = True
            self._using.wait_for(lambda: not set(self._users) - {get_ident()}, BUSY_SECONDS)
        for past in self._pasts:
            past.close()
        if self._search is not None:
            self._search.close()
        if self._cache is not None:
            self._cache.close()
        try:
            self._close_files()
        finally:
            if self.temporary is not None:
                shutil.rmtree(self.temporary)

    def _close_files(self) -> None:
        if self.installation.read_only:
            self.views.close()
            self.installation.abandon()
            return
        try:
            file = self.views.name()
        except BaseException:
            self.installation.abandon()
            raise
        finally:
            self.views.close()
        self.installation.close({"views": _views_stamp(self.installation.path, file)})


def to_read(installation: Installation, actor: str, model: str) -> OpenStore:
    """A store that is only read: what is derived from its log goes into a folder that is removed at the end."""
    installation.derived = Path(tempfile.mkdtemp(prefix="tallystick-"))
    opened = OpenStore(installation, actor=actor, model=model)
    opened.temporary = installation.derived
    return opened


def now() -> int:
    """The wall clock: microseconds since 1970, UTC."""
    return time.time_ns() // 1000


def _views_stamp(store: Path, file: str | None) -> list[Any]:
    vectors = stamp(store / "vectors.db")
    return [file, stamp(store / file) if file else None, vectors]
