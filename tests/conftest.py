"""What every test stands on: an empty home of its own, and the shared data where it is to be had."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# Read once, since the isolation below takes every TALLYSTICK_* name out of the environment.
SHARED = Path(os.environ.get("TALLYSTICK_SHARED") or Path(__file__).parents[2] / "shared")

settings.register_profile("tallystick", deadline=None)
settings.register_profile("tallystick-ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("tallystick-ci" if "CI" in os.environ else "tallystick")


def isolate(patch: pytest.MonkeyPatch, home: Path) -> None:
    """Make `home` the user's home, the place of all user directories, and drop every TALLYSTICK_* setting.

    Without XDG_* names the user directories follow HOME. Child processes inherit all of it.
    """
    for name in os.environ:
        if name.startswith(("TALLYSTICK_", "XDG_")):
            patch.delenv(name)
    for name in ("HOME", "USERPROFILE", "WIN_PD_OVERRIDE_LOCAL_APPDATA"):
        patch.setenv(name, str(home))


@pytest.fixture(scope="session", autouse=True)
def _session_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep fixtures that outlive one test away from the user's key directory."""
    with pytest.MonkeyPatch.context() as patch:
        isolate(patch, tmp_path_factory.mktemp("session-home"))
        yield


@pytest.fixture(autouse=True)
def home(_session_home: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The test's own empty home directory, which is not inside its `tmp_path`."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("home")
        isolate(patch, folder)
        yield folder


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of test data: TALLYSTICK_SHARED, else `shared` beside the checkout. Skips if absent."""
    if not SHARED.is_dir():
        pytest.skip(f"no test data at {SHARED}: set TALLYSTICK_SHARED to the folder with vectors/ and data/")
    return SHARED
