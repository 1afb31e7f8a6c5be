"""The kinds of events: facts that happened, and the closed registry of them."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints, model_validator

from ..errors import LogDamaged

MAX_TEXT_BYTES = 1 << 20

Name = Annotated[str, StringConstraints(min_length=1, max_length=512)]
Word = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Instant = Annotated[int, Field(ge=-(2**62), le=2**62)]  # microseconds since 1970-01-01T00:00:00Z
Hash = Annotated[bytes, Field(min_length=32, max_length=32)]
KeyId = Annotated[bytes, Field(min_length=8, max_length=8)]
StreamId = Annotated[bytes, Field(min_length=16, max_length=16)]
Source = Literal["human", "agent", "tool", "consolidated", "imported"]


class Event(BaseModel):
    """A fact that happened. Frozen; unknown fields are an error.

    `nonce` stands in the first event of a stream and fixes the stream's id. `parents` are the leaf
    hashes of the stream's events that the writer had seen. `recorded_at` is wall-clock time.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    KIND: ClassVar[str]
    SCHEMA: ClassVar[int] = 1
    CLEAR: ClassVar[bool] = False

    recorded_at: Instant
    actor: Name
    via: dict[str, str] = Field(default_factory=dict)
    nonce: Annotated[bytes, Field(min_length=16, max_length=16)] | None = None
    parents: tuple[Hash, ...] = ()
    command_id: Name | None = None


class LogCreated(Event):
    """A log began: who may sign it. Position 0 of every log, in clear.

    `root_signature` is the root key's over (origin, writer key, checkpoint key); the two
    possession signatures are the new keys' own over the origin. `kek` and `index` are the ids of the keys
    that wrap the data keys and tag the claims, `store` is the id of the store.
    """

    KIND: ClassVar[str] = "log.created"
    CLEAR: ClassVar[bool] = True

    log: Literal["memory", "access"]
    store: bytes
    root: Hash
    writer: Hash
    checkpoint: Hash
    kek: bytes
    index: bytes
    root_signature: bytes
    writer_signature: bytes
    checkpoint_signature: bytes


class Stored(Event):
    """A memory was stored. Every field a memory can begin with."""

    KIND: ClassVar[str] = "memory.stored"

    text: str = Field(min_length=1)
    namespace: Name
    kind: Word = "note"
    source: Source = "agent"
    subject: Name | None = None
    key: Name | None = None
    tags: tuple[Name, ...] = ()
    importance: Share = 0.5
    confidence: Share | None = None
    author: Name | None = None
    thread: Name | None = None
    place: Annotated[int, Field(ge=0, lt=2**53)] | None = None
    occurred_at: Instant | None = None
    valid_from: Instant | None = None
    expires_at: Instant | None = None
    evidence: tuple[Name, ...] = ()
    label: Word | None = None
    trust: Word | None = None
    screening: tuple[dict[str, JsonValue], ...] = ()
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    derived_from: tuple[Hash, ...] = ()


class Revised(Event):
    """A memory was revised: the fields that change, and no other.

    Tags come and go one by one; `cleared` names fields that have no value any more; `derived_from` is what the
    new text was made from. What a memory is the value of, and where it stands in a thread, is never revised.
    """

    KIND: ClassVar[str] = "memory.revised"

    text: Annotated[str, Field(min_length=1)] | None = None
    kind: Word | None = None
    source: Source | None = None
    subject: Name | None = None
    tags_added: tuple[Name, ...] = ()
    tags_removed: tuple[Name, ...] = ()
    importance: Share | None = None
    confidence: Share | None = None
    author: Name | None = None
    occurred_at: Instant | None = None
    valid_from: Instant | None = None
    expires_at: Instant | None = None
    evidence: tuple[Name, ...] | None = None
    label: Word | None = None
    trust: Word | None = None
    screening: tuple[dict[str, JsonValue], ...] = ()
    metadata: dict[str, JsonValue] | None = None
    derived_from: tuple[Hash, ...] = ()
    cleared: tuple[Word, ...] = ()
    reason: Name | None = None


class Reinforced(Event):
    """The same text was stored again: the memory stands, and counts once more."""

    KIND: ClassVar[str] = "memory.reinforced"


class Superseded(Event):
    """A newer memory took this one's place: by its key, or by naming it. `by` is the stream of the newer one."""

    KIND: ClassVar[str] = "memory.superseded"

    by: StreamId


class Forgotten(Event):
    """The memory was retracted: kept sealed, recalled by nobody, can be restored."""

    KIND: ClassVar[str] = "memory.forgotten"

    reason: Name | None = None


class Restored(Event):
    """A forgotten memory is recalled again."""

    KIND: ClassVar[str] = "memory.restored"

    reason: Name | None = None


class Linked(Event):
    """This memory points to another one: `kind` says how, `to` is the other's stream."""

    KIND: ClassVar[str] = "memory.linked"

    to: StreamId
    kind: Word


class Unlinked(Event):
    """This memory no longer points to another one in this way."""

    KIND: ClassVar[str] = "memory.unlinked"

    to: StreamId
    kind: Word


class Protected(Event):
    """Nothing changes this memory from here on, until its protection is lifted (`on` false)."""

    KIND: ClassVar[str] = "memory.protected"

    on: bool
    reason: Name | None = None


class Pinned(Event):
    """This memory is part of every context of its namespace from here on, until it is taken out (`on` false)."""

    KIND: ClassVar[str] = "memory.pinned"

    on: bool


class Told(BaseModel):
    """One event of an imported history as its file tells it: its id, kind, schema and canonical body."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    id: StreamId
    kind: str
    version: Annotated[int, Field(ge=1)]
    body: bytes


class Named(BaseModel):
    """A memory that an imported history points to: what it is called here, and where and as what it began."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    here: StreamId
    origin: Hash
    memory: StreamId


class Imported(Event):
    """A memory came in from an export, or more of it: what the file tells happened, vouched for by nobody here.

    `origin` and `memory` say in which log it began, and as which stream; `through` is the log that was exported.
    `yields_to` is the memory that held its text or key here already.
    """

    KIND: ClassVar[str] = "memory.imported"

    namespace: Name
    origin: Hash
    memory: StreamId
    through: Hash
    events: Annotated[tuple[Told, ...], Field(min_length=1)]
    others: tuple[Named, ...] = ()
    yields_to: StreamId | None = None


class NamespaceRenamed(Event):
    """What was and will be stored under `old` belongs to the namespace `new`, which may have memories of its own."""

    KIND: ClassVar[str] = "namespace.renamed"

    old: Name
    new: Name


class ViewsRebuilt(Event):
    """The read models were rebuilt from the log: digests before and after, by view."""

    KIND: ClassVar[str] = "views.rebuilt"

    reason: Name
    before: dict[str, str]
    after: dict[str, str]


class KeysBackedUp(Event):
    """The keys that may leave the installation were sealed into a file.

    `backup` and `digest` identify the file: the id in its head, and the SHA-256 of the whole. `root` and `kek` are the
    ids of the keys in it. Where the file went is not on record.
    """

    KIND: ClassVar[str] = "keys.backed_up"

    backup: Annotated[bytes, Field(min_length=16, max_length=16)]
    digest: Hash
    root: KeyId
    kek: KeyId


class KeyBackupDeclined(Event):
    """Somebody decided that the keys with these ids need no backup."""

    KIND: ClassVar[str] = "keys.backup_declined"

    root: KeyId
    kek: KeyId
    reason: Name | None = None


class SnapshotTaken(Event):
    """A verified copy of log.db was taken: its name, the file's SHA-256, and how both logs stood in it."""

    KIND: ClassVar[str] = "snapshot.taken"

    name: Name
    sha256: Hash
    memory_size: Annotated[int, Field(ge=1)]
    memory_root: Hash
    access_size: Annotated[int, Field(ge=1)]
    access_root: Hash


class Positions(BaseModel):
    """A run of positions of a log, both ends included."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    first: Annotated[int, Field(ge=0)]
    last: Annotated[int, Field(ge=0)]


class Recovered(Event):
    """A log goes on from another one: what could be read of that one follows, signed anew, in its order.

    `origin` is the old log's. `size` and `root` are the newest state of it that is known, `lost` the positions that
    did not come over, `events` how many did. The nonce of a stream that came over is the id it had; that of the stream
    about the keys stays as it is.
    """

    KIND: ClassVar[str] = "log.recovered"

    origin: Hash
    size: Annotated[int, Field(ge=0)]
    root: Hash
    lost: tuple[Positions, ...]
    events: Annotated[int, Field(ge=0)]
    reason: Name


class Hit(NamedTuple):
    """One hit of a recall on record: which memory, up to which event, and its scores in the order of the stages."""

    memory: bytes
    head: int
    scores: bytes


class Recalled(Event):
    """A question was answered, or memories were listed by filters (`verb` says which), in the access log.

    `log_size` and `log_root` name the state of the memory log it was answered from, `pipeline` the
    fingerprint of the ranking, `degraded` what was missing. `filters` are those that were given, by name.
    `memories` are the hits, best first, and `heads` the revision that each had. `scores` holds those of the first hit,
    one for each of `stages`, then those of the next: float16, little-endian, NaN where a stage had none.
    """

    KIND: ClassVar[str] = "memory.recalled"

    verb: Word = "recall"
    query: str
    namespaces: tuple[Name, ...]
    filters: dict[str, JsonValue] = {}
    limit: Annotated[int, Field(ge=1)]
    memories: tuple[StreamId, ...] = ()
    heads: tuple[Annotated[int, Field(ge=0)], ...] = ()
    scores: bytes = b""
    stages: tuple[Word, ...]
    pipeline: str
    degraded: tuple[str, ...] = ()
    log_size: Annotated[int, Field(ge=0)]
    log_root: Hash

    @model_validator(mode="after")
    def _in_step(self) -> Self:
        if len(self.heads) != len(self.memories) or len(self.scores) != self._width * len(self.memories):
            raise ValueError("memories, heads and scores are not of the same hits")
        return self

    @property
    def _width(self) -> int:
        return 2 * len(self.stages)

    @property
    def hits(self) -> tuple[Hit, ...]:
        """The hits, best first."""
        width = self._width
        return tuple(
            Hit(memory, head, self.scores[width * n : width * (n + 1)])
            for n, (memory, head) in enumerate(zip(self.memories, self.heads, strict=True))
        )


class Read(Event):
    """The text of one memory, or its history, was read by name. In the access log."""

    KIND: ClassVar[str] = "memory.read"

    memory: StreamId
    verb: Word
    log_size: Annotated[int, Field(ge=0)]
    log_root: Hash


class Used(Event):
    """The agent says which hits of a recall it relied on, in the access log."""

    KIND: ClassVar[str] = "memory.used"

    receipt: StreamId
    memories: Annotated[tuple[StreamId, ...], Field(min_length=1)]


class Rendered(Event):
    """The hits of a recall were rendered for a prompt, in the access log: `receipt` is the recall's.

    `memories` are those that stand in it, pinned ones first; `sha256` is the hash of what was handed out, as UTF-8.
    """

    KIND: ClassVar[str] = "memory.rendered"

    receipt: StreamId
    memories: tuple[StreamId, ...]
    max_tokens: Annotated[int, Field(ge=1)]
    sha256: Hash
    log_size: Annotated[int, Field(ge=0)]
    log_root: Hash


class Exported(Event):
    """Events of the memory log were handed out, `after` one position up to another. In the access log."""

    KIND: ClassVar[str] = "memory.exported"

    after: Annotated[int, Field(ge=0)]
    upto: Annotated[int, Field(ge=0)]
    log_size: Annotated[int, Field(ge=0)]
    log_root: Hash


REGISTRY: dict[tuple[str, int], type[Event]] = {
    (kind.KIND, kind.SCHEMA): kind
    for kind in (
        LogCreated,
        Stored,
        Revised,
        Reinforced,
        Superseded,
        Forgotten,
        Restored,
        Linked,
        Unlinked,
        Protected,
        Pinned,
        Imported,
        NamespaceRenamed,
        ViewsRebuilt,
        KeysBackedUp,
        KeyBackupDeclined,
        SnapshotTaken,
        Recovered,
        Recalled,
        Rendered,
        Used,
        Read,
        Exported,
    )
}


def body_of(event: Event) -> dict[str, Any]:
    """The fields of an event as they are written: those that differ from their defaults."""
    body: dict[str, Any] = event.__pydantic_serializer__.to_python(event, exclude_defaults=True)
    return body


def event_from(kind: str, schema: int, body: dict[str, Any]) -> Event:
    """The event of a registered kind and schema. Raises LogDamaged for a body that is not one."""
    known = REGISTRY.get((kind, schema))
    if known is None:
        raise LogDamaged(f"{kind!r} schema {schema} is not a kind of event this release writes")
    try:
        return known.model_validate(_with_tuples(body))
    except ValueError as error:
        raise LogDamaged(f"the body of a {kind} event is not one: {error}") from error


def _with_tuples(body: dict[str, Any]) -> dict[str, Any]:
    for name, value in body.items():
        if type(value) is list:
            body[name] = tuple(value)
    return body
