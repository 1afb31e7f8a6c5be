"""vectors.db: every vector once, by space, memory and document."""

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from tallystick import Memory
from tallystick.errors import KeysMissing, ViewsDamaged
from tallystick.events.installation import Installation
from tallystick.projections.vector_cache import FILE, SCAN_FROM, VectorCache

STREAM, DOCUMENT = bytes(16), bytes(range(16))


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
    cache.put("space", STREAM, DOCUMENT, b"vector", "runtime")
    assert cache.find("space", {(STREAM, DOCUMENT)}) == {(STREAM, DOCUMENT): b"vector"}
    assert cache.find("other", {(STREAM, DOCUMENT)}) == {}
    assert cache.find("space", {(DOCUMENT, DOCUMENT), (STREAM, STREAM)}) == {}
    assert cache.find("space", set()) == {}
    cache.close()


def test_many_are_found_as_few_are(installation: Installation) -> None:
    """However many vectors are asked for, those that are there come back, and no others."""
    cache, keys = VectorCache(installation), [(STREAM, number.to_bytes(16, "big")) for number in range(2 * SCAN_FROM)]
    for key in keys[::2]:
        cache.put("space", *key, key[1], "runtime")
    cache.put("other", *keys[1], b"other", "runtime")
    for asked in (1, SCAN_FROM - 1, SCAN_FROM, SCAN_FROM + 1, 2 * SCAN_FROM):
        found = cache.find("space", set(keys[:asked]))
        assert found == {key: key[1] for key in keys[:asked:2]}
    cache.close()


def test_the_newest_vector_of_a_document_counts(installation: Installation) -> None:
    """Putting a vector again takes the place of the older one."""
    cache = VectorCache(installation)
    for vector in (b"first", b"second"):
        cache.put("space", STREAM, DOCUMENT, vector, "runtime")
    assert cache.find("space", {(STREAM, DOCUMENT)}) == {(STREAM, DOCUMENT): b"second"}
    cache.close()


def test_vectors_are_there_when_the_store_is_opened_again(installation: Installation) -> None:
    """What took a model to make is made once."""
    first = VectorCache(installation)
    first.put("space", STREAM, DOCUMENT, b"vector", "runtime")
    first.close()
    second = VectorCache(installation)
    assert second.find("space", {(STREAM, DOCUMENT)}) == {(STREAM, DOCUMENT): b"vector"}
    second.check_pages()
    second.close()


def test_the_file_is_encrypted(installation: Installation) -> None:
    """Whoever copies the file without the keys learns no vector, space or memory from it."""
    cache = VectorCache(installation)
    cache.put("the-space", STREAM, DOCUMENT, b"the-vector" * 10, "the-runtime")
    cache.close()
    content = (installation.path / FILE).read_bytes()
    assert len(content) > 4096
    for clear in (b"SQLite format 3", b"the-space", b"the-vector", b"the-runtime", DOCUMENT):
        assert clear not in content


def test_a_changed_byte_is_found(installation: Installation) -> None:
    """Every page has an authentication code."""
    cache = VectorCache(installation)
    for number in range(50):
        cache.put("space", STREAM, number.to_bytes(16, "big"), secrets.token_bytes(700), "runtime")
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
    cache.put("s", STREAM, DOCUMENT, b"vector", "runtime")
    cache.close()
    written.abandon()
    before = (store / FILE).read_bytes()
    installation = Installation.read(store, store.parent / "keys", None)
    installation.derived = store.parent / "derived"
    installation.derived.mkdir()
    cache = VectorCache(installation)
    cache.put("s", STREAM, b"other", b"more", "runtime")
    assert cache.find("s", {(STREAM, DOCUMENT), (STREAM, b"other")}) == {
        (STREAM, DOCUMENT): b"vector", (STREAM, b"other"): b"more"
    }  # fmt: skip
    cache.close()
    installation.abandon()
    assert (store / FILE).read_bytes() == before
