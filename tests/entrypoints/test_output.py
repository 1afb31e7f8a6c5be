"""How an answer looks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.entrypoints.output import Column, Screen, cell_len, instant, laid_out, minute, short
from tallystick.visible import one_line, visible


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


HITS = (
    Column("#", right=True),
    Column("id"),
    Column("when", spare=1),
    Column("by", spare=2),
    Column("text", wide=True),
)
ROW = ("1", "0123456789ab", "2026-01-01 00:00", "user:ana", "What it is about " * 9)


@pytest.mark.parametrize("width", [200, 80, 40, 20])
def test_what_matters_is_shown_at_every_width(width: int) -> None:
    """However narrow the terminal is, no line is wider, the id is whole, and there is something to read of the text."""
    lines = laid_out(HITS, [ROW], width)
    assert max(map(len, lines)) <= width
    assert "0123456789ab" in lines[1]
    assert any("What it is about"[: width - 4] in line for line in lines[1:])


def test_columns_go_in_order_where_there_is_no_room() -> None:
    """What is spared goes first; below that the text gets a line of its own, and then the others have room again."""
    assert laid_out(HITS, [ROW], 200)[0].split() == ["#", "id", "when", "by", "text"]
    assert laid_out(HITS, [ROW], 60)[0].split() == ["#", "id", "when", "text"]
    assert laid_out(HITS, [ROW], 45)[0].split() == ["#", "id", "text"]
    narrow = laid_out(HITS, [ROW], 36)
    assert narrow[0].split() == ["#", "id", "when"]
    assert narrow[2].startswith("  What it is about")


def test_wide_characters_are_counted_as_they_are_shown() -> None:
    """A character that takes two columns is counted as two, in the alignment and in the cut."""
    lines = laid_out((Column("name"), Column("text", wide=True)), [("世界", "世" * 40), ("ab", "x" * 80)], 40)
    assert [cell_len(line) for line in lines[1:]] in ([39, 40], [40, 40])
    assert lines[1].index("世" * 3) + 2 == lines[2].index("x")
