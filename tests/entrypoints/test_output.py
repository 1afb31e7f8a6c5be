"""How an answer looks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.entrypoints.output import Column, Screen, instant, minute, one_line, short, visible


@given(st.text())
def test_nothing_that_a_terminal_obeys_gets_through(text: str) -> None:
    """Whatever a text holds, only line feeds and tabs are left of its control characters, and one line stays one."""
    assert not any(ord(c) < 32 and c not in "\n\t" or 127 <= ord(c) < 160 for c in visible(text))
    assert len(one_line(text).splitlines()) <= 1


def test_ordinary_text_is_shown_as_it_is() -> None:
    """Letters of any script, and joined emoji, are not touched."""
    text = "Grüße, 世界, שלום, \N{MAN}\N{ZERO WIDTH JOINER}\N{PERSONAL COMPUTER}\ttab\nline"
    assert visible(text) == text


def test_a_table_in_a_pipe_is_aligned_and_whole(capsys: pytest.CaptureFixture[str]) -> None:
    """In a pipe the columns are aligned, nothing is cut, and no line ends with spaces."""
    columns = (Column("#", right=True), Column("name"), Column("text", wide=True))
    Screen().table(columns, [("1", "a", "x" * 500), ("10", "longer", "two\nlines")])
    assert capsys.readouterr().out.splitlines() == [
        " #  name    text",
        f" 1  a       {'x' * 500}",
        "10  longer  two lines",
    ]


def test_times_are_utc() -> None:
    """A time is shown in UTC, whole for programs and to the minute for people."""
    assert instant(1_767_225_600_000_001) == "2026-01-01T00:00:00.000001Z"
    assert instant(None) is None
    assert minute(1_767_225_600_000_000) == "2026-01-01 00:00"


def test_an_id_is_shortened_to_twelve_digits() -> None:
    """Twelve digits name a memory in a table, whether it comes as bytes or as text."""
    assert short(bytes(range(16))) == short(bytes(range(16)).hex()) == "000102030405"
