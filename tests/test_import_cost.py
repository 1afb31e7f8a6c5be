"""Importing the package is cheap: what is heavy is loaded when it is first used."""

from __future__ import annotations

import subprocess
import sys

HEAVY = {"numpy", "onnxruntime", "rich", "snowballstemmer", "sqlite_vec", "tokenizers", "typer"}


def test_importing_tallystick_loads_nothing_heavy() -> None:
    """`import tallystick` loads no numeric, model, vector, stemming or terminal library."""
    loaded = subprocess.run(
        [sys.executable, "-c", "import sys, tallystick; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert "tallystick" in loaded
    assert HEAVY.intersection(loaded) == set()
