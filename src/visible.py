"""Text made safe to show: what a terminal or a viewer would obey is written out."""

from __future__ import annotations

import re

# What could move a terminal's cursor, colour it, or turn text around: C0 and C1 controls but tab and line feed,
# lone surrogates, and the marks of bidirectional text.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """The text with whatever a terminal would obey instead of show written out, such as \\x1b."""
    return _UNSAFE.sub(lambda found: found.group().encode("unicode_escape").decode(), text)


def one_line(text: str) -> str:
    """The text on one line, safe to show."""
    return visible(" ".join(text.split()))
