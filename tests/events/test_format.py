"""The format of a store: a process never writes to one that it does not know, not even when it has it open."""

from __future__ import annotations

import pytest

from tallystick.errors import Refused, StoreIsNewer
from tallystick.events.installation import FORMAT, Installation
from tallystick.events.settings import write_setting

from .conftest import Place, read, store


def write_format(installation: Installation, number: int) -> None:
    """Give the store another format, as a release would that knows it."""
    with installation.datastore.transaction(commit=True) as cursor:
        write_setting(cursor, "format", number.to_bytes(4, "big"))


@pytest.fixture
def size_and_place(place: Place) -> tuple[int, Place]:
    """A closed store with one memory, and the size of its memory log."""
    installation = place.create()
    store(installation.memory, "a text")
    size = installation.memory.tip.size
    installation.close({})
    return size, place


def test_a_store_whose_format_was_raised_meanwhile_is_newer(size_and_place: tuple[int, Place]) -> None:
    """The next append of a process that is too old says so, and appends nothing, durable or not."""
    size, place = size_and_place
    old, new = place.open(), place.open()
    store(old.memory, "still the old format")
    write_format(new, FORMAT + 1)
    with pytest.raises(StoreIsNewer, match=rf"store format {FORMAT + 1} and this release knows {FORMAT}.*upgrade"):
        store(old.memory, "too old")
    with pytest.raises(StoreIsNewer):
        read(old.access)
    assert old.memory.follow().size == size + 1
    old.abandon()
    new.abandon()


@pytest.mark.parametrize("number", [FORMAT + 1, 2**31])
def test_a_newer_store_is_not_opened(size_and_place: tuple[int, Place], number: int) -> None:
    """Neither to be written nor to be read: what it means is not known."""
    place = size_and_place[1]
    installation = place.open()
    write_format(installation, number)
    installation.abandon()
    for opening in (place.open, lambda: Installation.read(place.store, place.keys)):
        with pytest.raises(StoreIsNewer, match="upgrade"):
            opening()


def test_an_older_store_is_refused_with_a_clear_word(size_and_place: tuple[int, Place]) -> None:
    """There is no way from a format below ours to ours: it says which format it is and what reads it; unchanged."""
    place = size_and_place[1]
    installation = place.open()
    write_format(installation, FORMAT - 1)
    installation.abandon()
    before = (place.store / "log.db").read_bytes()
    for opening in (place.open, lambda: Installation.read(place.store, place.keys)):
        with pytest.raises(Refused, match=rf"store format {FORMAT - 1}.*Use a release that reads format {FORMAT - 1}"):
            opening()
    assert (place.store / "log.db").read_bytes() == before
