"""One flipped byte of the views or the vectors: refused by name, since every page is authenticated."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .damage import Original, count_harmless, every_flip, some_flips, working_folder

CHUNKS = 3
PARTS = 64


@pytest.fixture(scope="module")
def original() -> Iterator[Original]:
    """The untouched store."""
    with working_folder() as folder:
        yield Original(folder)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_flipped_byte_of_a_view_is_named(original: Original, chunk: int) -> None:
    """900 flips in the views file and vectors.db: each is ViewsDamaged saying what, where and what to do."""
    flips = some_flips(original, f"views {chunk}", {original.views: 250, "vectors.db": 50})
    assert count_harmless(original, flips) == 0


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(PARTS))
def test_every_byte_of_a_view_is_named(original: Original, part: int) -> None:
    """All bytes of the views file and of vectors.db."""
    for file in (original.views, "vectors.db"):
        flips = every_flip(file, range(part, len(original.files[file]), PARTS))
        assert count_harmless(original, flips) == 0


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(1, PARTS, 2))
def test_every_byte_of_the_log_is_named_or_changes_nothing(original: Original, part: int) -> None:
    """Half of the bytes of log.db; test_damage_log.py has the other half, so that two processes share the work."""
    count_harmless(original, every_flip("log.db", range(part, len(original.files["log.db"]), PARTS)))
