"""One flipped byte in files that pass for untouched: the read path notices, and `verify` finds it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tallystick import Memory
from tallystick.errors import LogDamaged, ViewsDamaged

from .damage import QUESTIONS, SECONDS, Flip, Original, answer_to, at_most, some_flips, working_folder

CHUNKS = 3


@pytest.fixture(scope="module")
def original() -> Iterator[Original]:
    """The untouched store."""
    with working_folder() as folder:
        yield Original(folder)


def test_a_forged_stamp_is_trusted(original: Original) -> None:
    """What these tests stand on: with the stamp forged, the files are not checked when they are opened."""
    with original.copy(None) as copy, original.open(copy) as memory:
        assert memory.status().checked == "structure"
    with original.copy(None, forged=True) as copy, original.open(copy) as memory:
        assert memory.status().checked == "new"


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_damage_behind_a_forged_stamp_is_never_served_and_is_found_by_verify(original: Original, chunk: int) -> None:
    """300 flips: each recall and get gives what is true or an error; `verify` finds each that hits what it guards.

    That is every entry, payload and data key, and all of the views and the vectors.
    """
    counts = {"entry": 20, "payload": 20, "data key": 15, "row": 10, "log.db": 10, original.views: 20, "vectors.db": 5}
    for flip in some_flips(original, f"trusted {chunk}", counts):
        with noting(original.describe(flip)):
            found = use_and_verify(original, flip)
            assert found or (flip.file == "log.db" and original.structure_at(flip) is None), "verify found nothing"


def test_a_memory_that_an_index_has_lost_is_not_taken_for_absent(original: Original) -> None:
    """Flips in each memory's id wherever log.db finds its events and its data key by it: the truth, or a refusal."""
    ids = b"|".join(re.escape(bytes.fromhex(name)) for name in original.records)
    flips = [Flip("log.db", found.start() + 8, 1) for found in re.finditer(ids, original.files["log.db"], re.DOTALL)]
    beside = [flip for flip in flips if original.structure_at(flip) is None]
    assert len(beside) >= 3 * len(original.records)
    for flip in beside:
        with noting(original.describe(flip)):
            use_and_verify(original, flip)


def use_and_verify(original: Original, flip: Flip) -> bool:
    """Ask and get everything of a damaged copy, then verify it. Returns whether open or verify refused it."""
    sound = False
    with original.copy(flip, forged=True) as copy, at_most(SECONDS), refusals(), original.open(copy) as memory:
        assert memory._opened.installation.checked == "new"
        use(original, memory)
        memory.verify(views=True)
        sound = True
    return not sound


def use(original: Original, memory: Memory) -> None:
    """Every question and every memory: the true answer, or a refusal."""
    for question, answer in zip(QUESTIONS, original.seen.answers, strict=True):
        with refusals():
            assert answer_to(memory, *question) == answer
    for name, record in original.records.items():
        with refusals():
            assert memory.get(name) == record


@contextmanager
def refusals() -> Iterator[None]:
    """Let pass what says that the store is damaged, and nothing else."""
    try:
        yield
    except (LogDamaged, ViewsDamaged):
        pass


@contextmanager
def noting(note: str) -> Iterator[None]:
    """Add a note to whatever goes wrong inside."""
    try:
        yield
    except BaseException as error:
        error.add_note(note)
        raise
