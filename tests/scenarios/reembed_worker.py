"""Puts the slow model `new` in force in a store whose model is `old`. Arguments: store, keys, the models' folder."""

from __future__ import annotations

import sys
from pathlib import Path

from tallystick import Memory

sys.path.insert(0, str(Path(__file__).parents[1] / "projections"))
from stub_embedders import Stubs  # type: ignore[import-not-found]  # noqa: E402  a file of the tests, beside no package


def main(store: str, keys: str, folder: str) -> None:
    """Begin, and go on until it is done or killed."""
    stubs = Stubs(Path(folder), seconds=0.02)
    stubs.install()
    with Memory.open(store, keys=keys, model="auto") as memory:
        print("begun", flush=True)
        memory.use_model(str(stubs.new))


if __name__ == "__main__":
    main(*sys.argv[1:])
