"""A verifier written from docs/log-format.md alone: it imports nothing of ours, and reads the bodies' fields there."""

from __future__ import annotations

import math
import operator
import re
import struct
import unicodedata
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any, NamedTuple

import msgpack  # type: ignore[import-untyped]
from nacl.bindings import crypto_aead_xchacha20poly1305_ietf_decrypt as open_aead
from nacl.exceptions import BadSignatureError, CryptoError
from nacl.signing import VerifyKey

PAGE = (Path(__file__).parents[2] / "docs" / "log-format.md").read_text(encoding="utf-8")

LOGS = ("memory", "access")
KEYS_OF_SMALL_ORDER = [bytes.fromhex(line) for line in re.findall(r"^[0-9a-f]{64}$", PAGE, re.MULTILINE)]
WHITE_SPACE = "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B)))
WHITE_SPACE += "\u2028\u2029\u202f\u205f\u3000"
HEADER = (int, 16, 32, int, 32, 8, int, str, int, 16, int, int, None, 32, int)
SLOT = 8192

Row = tuple[Any, ...]


class Refused(Exception):
    """A step of the page's verification does not hold; its first argument is the name of the step."""


class Secrets(NamedTuple):
    """The two secrets a verifier may have."""

    kek: bytes
    index_key: bytes


class Store(NamedTuple):
    """What a verifier is given. `tables` are the rows by table, `mark` the bytes of the file, if it has them."""

    root: bytes
    tables: dict[str, list[Row]]
    mark: bytes | None = None
    secrets: Secrets | None = None


class Header(NamedTuple):
    """The fields of a header."""

    v: int
    id: bytes
    origin: bytes
    position: int
    root: bytes
    key: bytes
    time: int
    kind: str
    schema: int
    stream: bytes
    revision: int
    cipher: int
    commitment: bytes
    payload_hash: bytes
    payload_length: int


class Log(NamedTuple):
    """A log whose first entry is proven."""

    number: int
    name: str
    origin: bytes
    writer: bytes
    checkpoint: bytes


def require(holds: bool, step: str) -> None:
    """Refuse where a step does not hold."""
    if not holds:
        raise Refused(step)


def verify(store: Store, depth: str) -> dict[str, tuple[int, bytes]]:
    """Go through the steps of the page. Returns the size and the root of each log."""
    settings: dict[str, bytes] = dict(store.tables["setting"])
    require(struct.unpack(">I", setting(settings, "format"))[0] <= 1, "setting")
    require(len(setting(settings, "store")) == 16, "setting")
    logs = [genesis(store, number, name) for number, name in enumerate(LOGS)]
    require({row[0] for row in store.tables["checkpoint"]} <= {log.number for log in logs}, "checkpoint")
    return {log.name: verify_log(store, log, depth) for log in logs}


# ---- canonical MessagePack


def canonical(data: bytes, plain: Callable[[Any], bool], step: str) -> Any:
    """What the bytes decode to, where they are its one encoding."""
    try:
        value = msgpack.unpackb(data, strict_map_key=False)
        require(plain(value) and msgpack.packb(value, use_bin_type=True) == data, step)
    except (ValueError, TypeError, OverflowError) as error:
        raise Refused(step) from error
    return value


def is_header(value: Any) -> bool:
    """Whether a value is one that a header may be."""
    return type(value) is list and all(type(f) in (str, bytes) or (type(f) is int and f >= 0) for f in value)


def is_body(value: Any) -> bool:
    """Whether a value is one that a body may be."""
    return type(value) is dict and is_plain({**value, "text": ""} if type(value.get("text")) is str else value, 1)


def is_plain(value: Any, depth: int) -> bool:
    """Whether a value may stand in a body, in a container at this depth or as one."""
    if type(value) is list:
        return depth <= 32 and all(is_plain(each, depth + 1) for each in value)
    if type(value) is dict:
        keys = list(value)
        ordered = all(type(key) is str for key in keys) and keys == sorted(keys, key=str.encode)
        return depth <= 32 and ordered and all(is_plain(k, 0) and is_plain(v, depth + 1) for k, v in value.items())
    if type(value) is float:
        return math.isfinite(value) and math.copysign(1.0, value) == (1.0 if value >= 0 else -1.0)
    return "\0" not in value if type(value) is str else value is None or type(value) in (bool, int, bytes)


# ---- hashes, signatures, ids


def sha(*parts: bytes) -> bytes:
    """SHA-256 of the parts, one after the other."""
    return sha256(b"".join(parts)).digest()


def context(name: str) -> bytes:
    """What a hashed or signed value begins with."""
    return f"tallystick/{name}/v1".encode() + b"\0"


def has_small_order(public: bytes) -> bool:
    """Whether anybody can sign for this key."""
    return public[:31] + bytes([public[31] & 0x7F]) in KEYS_OF_SMALL_ORDER


def signed(public: bytes, message: bytes, signature: bytes) -> bool:
    """Whether a signature holds."""
    if len(public) != 32 or len(signature) != 64 or has_small_order(public):
        return False
    try:
        VerifyKey(public).verify(message, signature)
    except BadSignatureError:
        return False
    return True


def tree(leaves: list[bytes]) -> bytes:
    """The root of RFC 6962 section 2.1, as it is defined there."""
    if len(leaves) < 2:
        return leaves[0] if leaves else sha()
    split = 1 << (len(leaves) - 1).bit_length() - 1
    return sha(b"\1", tree(leaves[:split]), tree(leaves[split:]))


def stream_of(origin: bytes, nonce: bytes) -> bytes:
    """The id of a stream."""
    return sha(context("stream"), origin, nonce)[:16]


# ---- opening


def setting(settings: dict[str, bytes], name: str) -> bytes:
    """The value of a setting."""
    require(name in settings, "setting")
    value, checksum = settings[name][:-16], settings[name][-16:]
    require(blake2b(name.encode() + b"\0" + value, digest_size=16).digest() == checksum, "setting")
    return value


def genesis(store: Store, number: int, name: str) -> Log:
    """A log, proven by the root key."""
    place = number << 48
    entries = {row[0]: row[5] for row in store.tables["entry"]}
    payloads: dict[int, bytes] = dict(store.tables["payload"])
    require(place in entries and place in payloads, "genesis")
    entry, payload = entries[place], payloads[place]
    require(header_of(entry, "genesis").payload_hash == sha(payload), "genesis")
    body = canonical(payload, is_body, "genesis")
    require(fits("log.created", 1, body) and type(body.get("nonce")) is bytes, "genesis")
    root, writer, checkpoint = keys = body["root"], body["writer"], body["checkpoint"]
    origin = sha(context("origin"), store.root, name.encode(), b"\0", body["nonce"])
    require(root == store.root and not any(map(has_small_order, keys)), "genesis")
    require(signed(root, context("root-key") + origin + writer + checkpoint, body["root_signature"]), "genesis")
    require(signed(writer, context("possession") + origin, body["writer_signature"]), "genesis")
    require(signed(checkpoint, context("possession") + origin, body["checkpoint_signature"]), "genesis")
    require(signed(writer, context("event") + entry[:-64], entry[-64:]), "genesis")
    return Log(number, name, origin, writer, checkpoint)


def header_of(entry: bytes, step: str) -> Header:
    """The header of an entry."""
    require(len(entry) - 64 <= 1024, step)
    fields = canonical(entry[:-64], is_header, step)
    require(len(fields) == 15, step)
    for field, kind in zip(fields, HEADER, strict=True):
        require(type(field) is (kind if kind in (int, str) else bytes), step)
        require(type(kind) is not int or len(field) == kind, step)
    header = Header(*fields)
    require(header.v == 1 and header.cipher in (0, 1) and len(header.commitment) == 32 * header.cipher, step)
    return header


# ---- one log


def verify_log(store: Store, log: Log, depth: str) -> tuple[int, bytes]:
    """Check a log, entry by entry. Returns its size and root."""
    base = log.number << 48
    entries = {row[0] - base: row for row in store.tables["entry"] if base <= row[0] < base + (1 << 48)}
    payloads: dict[int, bytes] = dict(store.tables["payload"])
    size = max(entries, default=-1) + 1
    leaves: list[bytes] = []
    last = 0
    opened = []
    for position in range(size):
        require(position in entries and base + position in payloads, "missing")
        payload = payloads[base + position]
        header = verify_entry(log, position, entries[position], payload, depth)
        require(header.root == tree(leaves), "root")
        require(header.time > last, "clock")
        last = header.time
        leaves.append(sha(b"\0", entries[position][5]))
        if depth == "full" and store.secrets is not None:
            opened.append((header, open_body(store, log, header, payload)))
    require(len({row[2] for row in entries.values()}) == size, "columns")
    require(len({row[3:5] for row in entries.values()}) == size, "columns")
    verify_checkpoints(store, log, leaves)
    if store.mark is not None:
        verify_mark(store.mark, log, leaves)
    if opened and store.secrets is not None:
        verify_data_keys(store, log, opened)
        if log.name == "memory":
            verify_claims(store, opened)
    return size, tree(leaves)


def verify_entry(log: Log, position: int, row: Row, payload: bytes, depth: str) -> Header:
    """Check an entry on its own."""
    entry = row[5]
    header = header_of(entry, "entry")
    require((header.position, header.origin) == (position, log.origin), "place")
    require(row[1:5] == (log.number, header.id, header.stream, header.revision), "columns")
    require((header.payload_hash, header.payload_length) == (sha(payload), len(payload)), "payload")
    if depth == "full":
        require(header.key == sha(context("key"), log.writer)[:8], "signature")
        require(signed(log.writer, context("event") + entry[:-64], entry[-64:]), "signature")
    return header


def verify_checkpoints(store: Store, log: Log, leaves: list[bytes]) -> None:
    """Check the checkpoints of a log."""
    for number, size, note in store.tables["checkpoint"]:
        if number == log.number:
            text, _, signatures = note.decode().rpartition("\n\n")
            expected = f"{log.origin.hex()}\n{size}\n{b64encode(tree(leaves[:size])).decode()}"
            require(holds(log, text + "\n", signatures), "checkpoint")
            require(text == expected and size <= len(leaves), "checkpoint")


def holds(log: Log, text: str, signatures: str) -> bool:
    """Whether the checkpoint key has signed a note."""
    name = log.origin.hex()
    key_hash = sha(name.encode(), b"\n\1", log.checkpoint)[:4]
    lines = [line.split(" ") for line in signatures.removesuffix("\n").split("\n")]
    require(all(len(line) == 3 and b64encode(b64decode(line[2])).decode() == line[2] for line in lines), "checkpoint")
    ours = [b64decode(line[2]) for line in lines if line[:2] == ["—", name]]
    found = [each[4:] for each in ours if each[:4] == key_hash]
    return bool(found) and all(signed(log.checkpoint, text.encode(), signature) for signature in found)


def verify_mark(mark: bytes, log: Log, leaves: list[bytes]) -> None:
    """Check a log against the newest slot of the mark that holds."""
    slots = [slot for slot in (read_slot(mark[:SLOT]), read_slot(mark[SLOT:])) if slot]
    require(bool(slots) or not mark, "mark")
    for origin, size, edge in max(slots)[1]["logs"] if slots else []:
        if origin == log.origin:
            require(len(edge) == size.bit_count() and size <= len(leaves), "mark")
            root = edge[-1] if edge else sha()
            for left in reversed(edge[:-1]):
                root = sha(b"\1", left, root)
            require(root == tree(leaves[:size]), "mark")


def read_slot(data: bytes) -> tuple[int, Any] | None:
    """The number and the body of a slot, where its checksum holds."""
    if len(data) < 44:
        return None
    number, length = struct.unpack(">QI", data[:12])
    framed, checksum = data[: 12 + length], data[12 + length : 44 + length]
    return (number, canonical(framed[12:], is_body, "mark")) if sha(context("mark"), framed) == checksum else None


# ---- with the secrets


def data_key(store: Store, log: Log, stream: bytes, step: str) -> bytes:
    """The data key of a stream, unwrapped."""
    begun = {row[0] for row in store.tables["entry"] if row[1] == log.number and row[3:5] == (stream, 0)}
    rows = [row for row in store.tables["data_key"] if row[0] in begun]
    require(bool(rows) and store.secrets is not None, step)
    generation, wrapped = rows[0][1:]
    kek = store.secrets.kek if store.secrets else b""
    where = context("data-key") + log.origin + stream + struct.pack(">I", generation)
    try:
        return open_aead(wrapped[24:], where, wrapped[:24], kek)
    except CryptoError as error:
        raise Refused(step) from error


def open_body(store: Store, log: Log, header: Header, payload: bytes) -> Any:
    """The body in a payload."""
    plaintext = payload
    if header.cipher == 1:
        key = data_key(store, log, header.stream, "seal")
        secrets = blake2b(header.id, key=key, person=b"tally.event.v1").digest()
        where = context("payload") + header.id + log.origin + header.stream + payload[:4]
        try:
            plaintext = open_aead(payload[28:], where, payload[4:28], secrets[:32])
        except CryptoError as error:
            raise Refused("seal") from error
        require(header.commitment == sha(context("commitment"), secrets[32:], plaintext), "commitment")
    body = canonical(plaintext, is_body, "body")
    require(fits(header.kind, header.schema, body), "body")
    if header.revision == 0:
        require(type(body.get("nonce")) is bytes and stream_of(log.origin, body["nonce"]) == header.stream, "stream")
    return body


def verify_data_keys(store: Store, log: Log, opened: list[tuple[Header, Any]]) -> None:
    """Check that there is a data key where a stream with something sealed begins, and nowhere else."""
    begun = {header.position: header.stream for header, _ in opened if header.revision == 0 and header.cipher == 1}
    places = {row[0] for row in store.tables["data_key"] if row[0] >> 48 == log.number}
    require(places == {(log.number << 48) + position for position in begun}, "data_key")
    for stream in begun.values():
        data_key(store, log, stream, "data_key")


def verify_claims(store: Store, opened: list[tuple[Header, Any]]) -> None:
    """Check that what the events claim is what the table has."""
    index = store.secrets.index_key if store.secrets else b""
    memories: dict[bytes, dict[str, Any]] = {}
    current: set[bytes] = set()
    expected: dict[bytes, bytes] = {}
    names = Names()
    for header, body in opened:
        names.take(header, body)
        for kind, fields in happened(header.kind, body):
            follow(header.stream, kind, fields, memories, current)
            if header.stream in memories and "command_id" in fields:
                namespace = memories[header.stream]["namespace"]
                namespace = names.now(namespace) if header.kind == "memory.reinforced" else namespace
                expected.setdefault(tag(index, namespace, "command", fields["command_id"]), header.stream)
    for stream in current & set(memories):
        named = {**memories[stream], "namespace": names.now(memories[stream]["namespace"])}
        expected |= dict.fromkeys(claims_of(index, named), stream)
    expected |= {tag(index, name, "renamed"): stream for name, stream in names.renames.items()}
    streams = {row[0]: row[3] for row in store.tables["entry"]}
    require({row[0]: streams.get(row[1]) for row in store.tables["claim"]} == expected, "claim")
    verify_claim_seal(store, index, opened[-1][0])


def verify_claim_seal(store: Store, index: bytes, last: Header) -> None:
    """Check the seal of the claims at the end of the log."""
    end = struct.pack(">Q", last.position) + last.id
    weights = [weight(index, b"tally.claimend.1", end)]
    weights += [weight(index, b"tally.claimrow.1", struct.pack(">Q", row[1]) + row[0]) for row in store.tables["claim"]]
    seal = (sum(weights) % (1 << 128)).to_bytes(16, "big")
    settings: dict[str, bytes] = dict(store.tables["setting"])
    require("claims" in settings and settings["claims"][:-16] == end + seal, "claim_seal")


def weight(index: bytes, what: bytes, message: bytes) -> int:
    """What a row, or the end of the log, adds to the seal."""
    return int.from_bytes(blake2b(message, digest_size=16, key=index, person=what).digest(), "big")


def happened(kind: str, body: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """What an event says happened to a memory: of an import, all that it tells."""
    if kind != "memory.imported":
        yield kind, body
        return
    for told in body["events"]:
        yield told["kind"], msgpack.unpackb(told["body"])
    if body.get("yields_to") is not None:
        yield "memory.superseded", {}


def follow(
    stream: bytes, kind: str, body: dict[str, Any], memories: dict[bytes, dict[str, Any]], current: set[bytes]
) -> None:
    """What becomes of a memory's fields, and of whether it is current."""
    if kind == "memory.stored":
        memories[stream] = body
    if kind == "memory.revised":
        memories[stream] = revised(memories[stream], body)
    if kind in ("memory.stored", "memory.restored"):
        current.add(stream)
    if kind in ("memory.forgotten", "memory.superseded"):
        current.discard(stream)


class Names:
    """Where each old name of a namespace leads, and the stream of the rename that made it one."""

    def __init__(self) -> None:
        self.leads: dict[str, str] = {}
        self.renames: dict[str, bytes] = {}

    def now(self, name: str) -> str:
        """The name that is in use."""
        return self.leads.get(name, name)

    def take(self, header: Header, body: dict[str, Any]) -> None:
        """Follow one event, if it is a rename."""
        if header.kind != "namespace.renamed":
            return
        source, target = self.now(body["old"]), self.now(body["new"])
        target = body["new"] if source == target else target
        moved = {name: target for name in (*self.leads, source) if self.now(name) == source}
        self.leads = {name: goal for name, goal in {**self.leads, **moved}.items() if name != goal}
        renames = {**self.renames, body["old"]: header.stream}
        self.renames = {name: stream for name, stream in renames.items() if name in self.leads}


def revised(body: dict[str, Any], revision: dict[str, Any]) -> dict[str, Any]:
    """What a revision leaves of what claims are made of."""
    given = {name: revision[name] for name in ("text", "subject") if revision.get(name) is not None}
    cleared = {name: None for name in revision.get("cleared", []) if name == "subject"}
    return {**body, **given, **cleared}


def claims_of(index: bytes, body: dict[str, Any]) -> Iterator[bytes]:
    """The tags that a memory holds while it is current."""
    key = body.get("key")
    if body.get("thread") is None:
        text = unicodedata.normalize("NFC", body["text"]).strip(WHITE_SPACE)
        yield tag(index, body["namespace"], "content", key, body.get("subject"), text)
    if key is not None:
        yield tag(index, body["namespace"], "key", key)


def tag(index: bytes, *parts: str | None) -> bytes:
    """The tag of a claim."""
    message = b""
    for part in parts:
        encoded = b"" if part is None else part.encode()
        message += struct.pack(">Q", 0 if part is None else len(encoded) + 1) + encoded
    return blake2b(message, digest_size=16, key=index, person=b"tally.claim.v1").digest()


# ---- bodies, by the tables of the page

Fields = dict[str, tuple[str, str]]


def fields_of(title: str) -> Fields | None:
    """The type and the default of each field in the table under a heading; None where there is no such heading."""
    part = re.search(rf"^### {re.escape(title)}(?:, in clear)?\n(.*?)^(?:#|<!--)", PAGE, re.MULTILINE | re.DOTALL)
    if part is None:
        return None
    return {
        name: (kind, default) for name, kind, default in re.findall(r"^\| `(\w+)` \| (.*) \| (.*) \|$", part[1], re.M)
    }


def fits(kind: str, schema: int, body: dict[str, Any]) -> bool:
    """Whether a body is one of this kind and schema."""
    own, common = fields_of(f"`{kind}`, schema {schema}"), fields_of("Every body")
    return own is not None and common is not None and matches({**common, **own}, body)


def matches(fields: Fields, body: Any) -> bool:
    """Whether a map has the fields it must have, none that it may not, each of its type."""
    return (
        type(body) is dict
        and set(body) <= set(fields)
        and all(name in body for name, (_, default) in fields.items() if default == "never")
        and all(is_a(value, fields[name][0]) for name, value in body.items())
    )


def is_a(value: Any, words: str) -> bool:
    """Whether a value is of the type that these words mean."""
    if " or " in words:
        return any(is_a(value, each) for each in words.split(" or "))
    if found := re.fullmatch(r"list(?: \((.*?)\))? of (.*)", words):
        return type(value) is list and keeps(value, found[1] or "") and all(is_a(each, found[2]) for each in value)
    if words.startswith("map `"):
        return matches(fields_of(f"The {words}") or {}, value)
    if words.startswith("map of text to "):
        return type(value) is dict and all(is_a(each, words[15:]) for each in value.values())
    if words.startswith("`"):
        return value in re.findall(r"`([^`]+)`", words)
    name, _, limits = words.partition(" (")
    return NAMED[name](value) and keeps(value, limits.removesuffix(")"))


def keeps(value: Any, limits: str) -> bool:
    """Whether a value keeps its limits."""
    return all(within(value, limit) for limit in limits.split(", ") if limit)


def within(value: Any, limit: str) -> bool:
    """Whether a value keeps a limit."""
    if found := re.fullmatch(r"&(ge|gt|le|lt); (-?[\d.]+)", limit):
        return COMPARED[found[1]](value, float(found[2]))
    found = re.fullmatch(r"(at least |at most |)(\d+) long", limit)
    assert found is not None, limit
    return COMPARED[found[1]](len(value), int(found[2]))


def is_value(value: Any) -> bool:
    """Whether a value is what the page calls a value."""
    if type(value) is list:
        return all(map(is_value, value))
    return all(map(is_value, value.values())) if type(value) is dict else type(value) is not bytes


COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "ge": operator.ge,
    "gt": operator.gt,
    "le": operator.le,
    "lt": operator.lt,
    "at least ": operator.ge,
    "at most ": operator.le,
    "": operator.eq,
}
NAMED: dict[str, Callable[[Any], bool]] = {
    "name": lambda value: type(value) is str and 1 <= len(value) <= 512,
    "word": lambda value: type(value) is str and re.fullmatch(r"[a-z][a-z0-9_-]{0,31}", value) is not None,
    "share": lambda value: type(value) is float and 0.0 <= value <= 1.0,
    "instant": lambda value: type(value) is int and -(2**62) <= value <= 2**62,
    "32 bytes": lambda value: type(value) is bytes and len(value) == 32,
    "16 bytes": lambda value: type(value) is bytes and len(value) == 16,
    "value": is_value,
    "text": lambda value: type(value) is str,
    "bytes": lambda value: type(value) is bytes,
    "integer": lambda value: type(value) is int,
    "float": lambda value: type(value) is float,
    "bool": lambda value: type(value) is bool,
    "null": lambda value: value is None,
}
