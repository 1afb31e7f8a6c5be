"""The reference page of the command line is what the commands say."""

from __future__ import annotations

import runpy
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools" / "command_line_reference.py"


def test_the_reference_page_is_fresh() -> None:
    """docs/command-line-reference.md is what the tool writes now: run `python tools/command_line_reference.py`."""
    tool = runpy.run_path(str(TOOL))
    assert tool["PAGE"].read_text(encoding="utf-8") == tool["page"]()
