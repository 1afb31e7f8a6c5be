"""A store through each entrypoint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .ways import WAYS, Place, Way


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A place where nothing is yet."""
    return Place(tmp_path / "store", tmp_path / "keys")


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, place: Place) -> Iterator[Way]:
    """A new store, by each entrypoint."""
    with WAYS[request.param](place) as opened:
        yield opened
