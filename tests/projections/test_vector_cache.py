"""vectors.db: every vector once, by space, memory and document."""

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from tallystick import Memory
from tallystick.errors import KeysMissing, ViewsDamaged
from tallystick.events.installation import Installation
from tallystick.projections import vector_cache
from tallystick.projections.vector_cache import FILE, SCAN_FROM, Key, Made, VectorCache

STREAM, DOCUMENT = bytes(16), bytes(range(16))


def made(vector: bytes) -> Made:
    """A vector of a model that has no token vectors."""
    return Made(vector, b"", "runtime")


def vectors(cache: VectorCache, space: str, asked: set[Key]) -> dict[Key, bytes]:
    """The vectors of what is found."""
    found = cache.find(space, asked)
    kept = cache.vectors(list(found.values()))
    assert kept.keys() == {*found.values()}
    return {key: kept[number] for key, number in found.items()}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store that is closed; its keys lie beside it."""
    Memory.open(tmp_path / "store", keys=tmp_path / "keys", model="none").close()
    return tmp_path / "store"


@pytest.fixture
def installation(store: Path) -> Iterator[Installation]:
    """The installation of that store."""
    opened = Installation.open(store, store.parent / "keys")
    yield opened
    opened.abandon()


def test_a_vector_is_kept_under_space_memory_and_document(installation: Installation) -> None:
    """A vector is found under exactly what it was put under."""
    cache = VectorCache(installation)
    cache.put("space", (STREAM, DOCUMENT), made(b"vector"))
    assert vectors(cache, "space", {(STREAM, DOCUMENT)}) == {(STREAM, DOCUMENT): b"vector"}
    assert vectors(cache, "other", {(STREAM, DOCUMENT)}) == {}
    assert vectors(cache, "space", {(DOCUMENT, DOCUMENT), (STREAM, STREAM)}) == {}
    assert vectors(cache, "space", set()) == {}
    cache.close()


def test_many_are_found_as_few_are(installation: Installation) -> None:
    """However many vectors are asked for, those that are there come back, and no others."""
    cache, keys = VectorCache(installation), [(STREAM, number.to_bytes(16, "big")) for number in range(2 * SCAN_FROM)]
    numbers = cache.put_many("space", [(key, made(key[1])) for key in keys[::2]])
    cache.put("other", keys[1], made(b"other"))
    for asked in (1, SCAN_FROM - 1, SCAN_FROM, SCAN_FROM + 1, 2 * SCAN_FROM):
        found = vectors(cache, "space", set(keys[:asked]))
        assert found == {key: key[1] for key in keys[:asked:2]}
    assert cache.find("space", set(keys)) == dict(zip(keys[::2], numbers, strict=True))
    cache.close()


def test_many_are_put_as_one_by_one(installation: Installation) -> None:
    """Each has its number, in order; what was there keeps its own, and the newest of one document counts."""
    cache = VectorCache(installation)
    keys = [(STREAM, number.to_bytes(16, "big")) for number in range(5)]
    before = cache.put("space", keys[2], Made(b"before", b"codes before", "runtime"))
    other = cache.put("other", keys[0], made(b"other"))
    rows = [(key, Made(key[1], b"codes" + key[1], "another runtime")) for key in keys]
    numbers = cache.put_many("space", [*rows, (keys[1], made(b"newest"))])
    assert numbers[2] == before
    assert numbers[5] == numbers[1]
    assert len({*numbers, other, 0}) == 7
    assert cache.vectors(numbers) == {
        number: b"newest" if key == keys[1] else key[1] for number, key in zip(numbers, keys, strict=False)
    }
    assert cache.tokens([before]) == {before: b"codes" + keys[2][1]}
    assert cache.vectors([other]) == {other: b"other"}
    assert cache.put_many("space", []) == []
    cache.close()


def test_none_of_many_is_kept_where_putting_breaks_off(installation: Installation) -> None:
    """They are put in one transaction."""
    cache = VectorCache(installation)

    def rows() -> Iterator[tuple[Key, Made]]:
        yield (STREAM, DOCUMENT), made(b"vector")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        cache.put_many("space", rows())
    assert cache.find("space", {(STREAM, DOCUMENT)}) == {}
    assert cache.keys() == set()
    cache.close()


def test_vectors_are_read_by_number(installation: Installation) -> None:
    """However many are asked for, in any order; a number that is none is left out."""
    cache = VectorCache(installation)
    keys = [(STREAM, number.to_bytes(16, "big")) for number in range(3000)]
    numbers = cache.put_many("space", [(key, made(key[1])) for key in keys])
    assert cache.vectors([*reversed(numbers), 0, 99_999, numbers[0]]) == {
        number: key[1] for number, key in zip(numbers, keys, strict=True)
    }
    assert cache.vectors([]) == {}
    cache.close()


def test_the_newest_vector_of_a_document_counts(installation: Installation) -> None:
    """Putting a vector again takes the place of the older one."""
    cache = VectorCache(installation)
    for vector in (b"first", b"second"):
        cache.put("space", (STREAM, DOCUMENT), made(vector))
    assert vectors(cache, "space", {(STREAM, DOCUMENT)}) == {(STREAM, DOCUMENT): b"second"}
    cache.close()


def test_vectors_are_there_when_the_store_is_opened_again(installation: Installation) -> None:
    """What took a model to make is made once."""
    first = VectorCache(installation)
    first.put("space", (STREAM, DOCUMENT), made(b"vector"))
    first.close()
    second = VectorCache(installation)
    assert vectors(second, "space", {(STREAM, DOCUMENT)}) == {(STREAM, DOCUMENT): b"vector"}
    second.check_pages()
    second.close()


def test_the_file_is_encrypted(installation: Installation) -> None:
    """Whoever copies the file without the keys learns no vector, space or memory from it."""
    cache = VectorCache(installation)
    cache.put("the-space", (STREAM, DOCUMENT), Made(b"the-vector" * 10, b"the-tokens" * 10, "the-runtime"))
    cache.close()
    content = (installation.path / FILE).read_bytes()
    assert len(content) > 4096
    for clear in (b"SQLite format 3", b"the-space", b"the-vector", b"the-runtime", DOCUMENT):
        assert clear not in content


def test_a_changed_byte_is_found(installation: Installation) -> None:
    """Every page has an authentication code."""
    cache = VectorCache(installation)
    for number in range(50):
        cache.put("space", (STREAM, number.to_bytes(16, "big")), made(secrets.token_bytes(700)))
    cache.close()
    file = installation.path / FILE
    content = bytearray(file.read_bytes())
    content[-1000] ^= 1
    file.write_bytes(content)
    cache = VectorCache(installation)
    with pytest.raises(ViewsDamaged, match=r"vectors\.db.*tallystick replay"):
        cache.check_pages()
    cache.close()


def test_another_key_does_not_open_it(store: Path) -> None:
    """Vectors sealed under another key are damage, and are named."""
    installation = Installation.open(store, store.parent / "keys")
    VectorCache(installation).close()
    installation.abandon()
    (store.parent / "keys" / "views.key").write_text(secrets.token_hex(32) + "\n", encoding="ascii")
    installation = Installation.open(store, store.parent / "keys")
    with pytest.raises(ViewsDamaged, match=r"vectors\.db"):
        VectorCache(installation)
    installation.abandon()


def test_without_keys_there_is_no_cache(store: Path) -> None:
    """Who audits a log with the public key alone reads no vectors, and makes no file."""
    with_keys = Installation.open(store, store.parent / "keys")
    assert with_keys.keys is not None
    root = with_keys.keys.root.public
    with_keys.abandon()
    auditor = Installation.audit(store, root, None)
    with pytest.raises(KeysMissing):
        VectorCache(auditor)
    auditor.abandon()
    assert not (store / FILE).exists()


def test_a_store_that_is_only_read_has_its_vectors(store: Path) -> None:
    """Opened to be read, a store finds the vectors that were made, and what is put is not written to it."""
    written = Installation.open(store, store.parent / "keys")
    cache = VectorCache(written)
    cache.put("s", (STREAM, DOCUMENT), made(b"vector"))
    cache.close()
    written.abandon()
    before = (store / FILE).read_bytes()
    installation = Installation.read(store, store.parent / "keys", None)
    installation.derived = store.parent / "derived"
    installation.derived.mkdir()
    cache = VectorCache(installation)
    cache.put("s", (STREAM, b"other"), made(b"more"))
    assert vectors(cache, "s", {(STREAM, DOCUMENT), (STREAM, b"other")}) == {
        (STREAM, DOCUMENT): b"vector", (STREAM, b"other"): b"more"
    }  # fmt: skip
    cache.close()
    installation.abandon()
    assert (store / FILE).read_bytes() == before


def test_what_is_taken_over_is_of_one_moment(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that comes into use while a store is opened to be read does not lend its vectors to another one."""
    written = Installation.open(store, store.parent / "keys")
    writer = VectorCache(written)
    writer.put("space", (STREAM, DOCUMENT), made(b"vector"))

    first, *others = vector_cache._TABLES

    def tables() -> Iterator[str]:
        yield first
        writer.put("their model", (STREAM, DOCUMENT), made(b"theirs"))
        yield from others

    installation = Installation.read(store, store.parent / "keys", None)
    installation.derived = store.parent / "derived"
    installation.derived.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(vector_cache, "_TABLES", tables())
        cache = VectorCache(installation)
    cache.put("my model", (STREAM, b"other"), made(b"mine"))
    assert vectors(cache, "space", {(STREAM, DOCUMENT)}) == {(STREAM, DOCUMENT): b"vector"}
    assert vectors(cache, "my model", {(STREAM, DOCUMENT), (STREAM, b"other")}) == {(STREAM, b"other"): b"mine"}
    for each in (cache, writer):
        each.close()
    for each_installation in (installation, written):
        each_installation.abandon()


def test_the_codes_of_tokens_are_found_by_number(installation: Installation) -> None:
    """Each vector has a number in the file, by which its tokens' codes are read; one without tokens has none."""
    cache = VectorCache(installation)
    with_tokens = cache.put("space", (STREAM, DOCUMENT), Made(b"vector", b"codes", "runtime"))
    without = cache.put("space", (STREAM, b"other"), made(b"vector"))
    assert cache.find("space", {(STREAM, DOCUMENT)}) == {(STREAM, DOCUMENT): with_tokens}
    assert with_tokens != without
    assert cache.tokens([with_tokens, without, 99]) == {with_tokens: b"codes"}
    assert cache.put("space", (STREAM, DOCUMENT), Made(b"again", b"other codes", "runtime")) == with_tokens
    assert cache.tokens([with_tokens]) == {with_tokens: b"other codes"}
    assert cache.tokens([]) == {}
    cache.close()


def test_what_is_dropped_is_gone_and_its_numbers_with_it(installation: Installation) -> None:
    """A space is thrown away whole, and nothing else; whoever still has its numbers finds no other vector by them."""
    cache = VectorCache(installation)
    kept = cache.put("kept", (STREAM, DOCUMENT), made(b"vector"))
    dropped = {cache.put("old", (STREAM, n.to_bytes(16, "big")), Made(b"v", b"t", "runtime")) for n in range(5)}
    assert cache.spaces() == {"kept": 1, "old": 5}
    assert (cache.drop("old"), cache.drop("old"), cache.drop("none")) == (5, 0, 0)
    assert (cache.spaces(), cache.keys("old"), cache.tokens([*dropped])) == ({"kept": 1}, set(), {})
    assert cache.put("new", (STREAM, DOCUMENT), made(b"another")) not in dropped | {kept}
    assert cache.vectors([kept, *dropped]) == {kept: b"vector"}
    cache.check_pages()
    cache.close()
