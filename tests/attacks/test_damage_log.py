"""One flipped byte of log.db: refused by name, or nothing that anybody sees has changed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from .damage import Flip, Original, count_harmless, every_flip, judge, some_flips, working_folder

CHUNKS = 7
COUNTS = {"entry": 75, "payload": 75, "data key": 50, "row": 50, "log.db": 50}
FILE_HEADER, HEAD = 100, 6
PARTS = 64


@pytest.fixture(scope="module")
def original() -> Iterator[Original]:
    """The untouched store."""
    with working_folder() as folder:
        yield Original(folder)


def test_the_store_has_about_fifty_events_of_every_sort(original: Original) -> None:
    """The damaged store is no toy: fifty events, many different answers, every structure found in its file."""
    memory_log, access_log = original.seen.report.logs
    assert 45 <= memory_log.size <= 60
    assert access_log.size >= 15
    assert len({hit[0] for answer in original.seen.answers for hit in answer}) >= 15
    assert sum(s.sort == "entry" for s in original.structures) == memory_log.size + access_log.size
    assert {record.status for record in original.records.values()} == {"current", "forgotten", "superseded"}


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_flipped_byte_of_the_log_is_named_or_changes_nothing(original: Original, chunk: int) -> None:
    """2,100 flips in log.db: LogDamaged or ViewsDamaged saying what, where and what to do, or nothing is different."""
    harmless = count_harmless(original, some_flips(original, f"log {chunk}", COUNTS))
    assert 0 < harmless < COUNTS["log.db"] + COUNTS["row"]


def test_every_byte_of_the_file_header_is_named_or_changes_nothing(original: Original) -> None:
    """The 100 bytes that tell SQLite how to read the file."""
    count_harmless(original, every_flip("log.db", range(FILE_HEADER)))


def test_no_value_of_another_type_gets_past(original: Original) -> None:
    """The head of each claim, setting and checkpoint: a value of another type is refused by name, or means nothing."""
    count_harmless(original, every_flip("log.db", heads(original)))


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(0, PARTS, 2))
def test_every_byte_of_the_log_is_named_or_changes_nothing(original: Original, part: int) -> None:
    """Half of the bytes of log.db; test_damage_views.py has the other half, so that two processes share the work."""
    count_harmless(original, every_flip("log.db", range(part, len(original.files["log.db"]), PARTS)))


def test_a_refused_store_leaves_no_file_open(original: Original) -> None:
    """A store that is refused over and over, at opening, in use or at closing, uses up no file descriptors."""
    descriptors = Path("/proc/self/fd")
    if not descriptors.is_dir():
        pytest.skip("this system does not tell which files a process has open")
    first = [s.start + 40 for s in original.structures if s.name.endswith("position 0")]
    judge(original, Flip("log.db", first[0], 1))
    before = len(os.listdir(descriptors))
    for flip in every_flip("log.db", first + heads(original)):
        judge(original, flip)
    assert len(os.listdir(descriptors)) <= before


def heads(original: Original) -> list[int]:
    """The first bytes of each claim, setting and checkpoint, where the types of its values stand."""
    return [offset for start, _ in original.small_rows for offset in range(start, start + HEAD)]
