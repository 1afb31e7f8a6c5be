"""The hybrid logical clock moves forward only, and with the wall clock where it can."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.events.clock import milliseconds, tick

LARGEST = 2**64 - 1
YEAR_3000_MS = 32_503_680_000_000


@given(st.integers(0, LARGEST - 1), st.integers(0, 2**48 - 1))
def test_time_moves_forward_and_is_not_behind_the_wall_clock(last: int, now_ms: int) -> None:
    """Each event is later than the one before it, and by no more than needed."""
    time = tick(last, now_ms)
    assert time > last
    assert milliseconds(time) >= now_ms
    assert time in (last + 1, now_ms * 65536)


@given(st.lists(st.integers(0, YEAR_3000_MS), min_size=1))
def test_times_are_unique_when_the_wall_clock_jumps(readings: list[int]) -> None:
    """A wall clock that goes back and forth gives strictly rising times."""
    time, times = 0, [0]
    for now_ms in readings:
        time = tick(time, now_ms)
        times.append(time)
    assert times == sorted(set(times))


def test_two_events_in_one_millisecond_are_counted() -> None:
    """The low 16 bits count within a millisecond, and run over into the next."""
    first = tick(0, 1_000)
    assert (first, tick(first, 1_000)) == (1_000 << 16, (1_000 << 16) + 1)
    assert milliseconds(tick((1_000 << 16) + 65_535, 1_000)) == 1_001


@pytest.mark.parametrize(("last", "now_ms"), [(LARGEST, 0), (0, 2**48), (-1, 0), (0, -1)])
def test_a_time_that_does_not_fit_is_refused(last: int, now_ms: int) -> None:
    """A clock outside 64 bits is an error, never a wrapped-around time."""
    with pytest.raises(ValueError, match="set the system clock"):
        tick(last, now_ms)


def test_the_last_time_can_be_reached() -> None:
    """The limits themselves are valid."""
    assert tick(LARGEST - 1, 0) == LARGEST
    assert milliseconds(LARGEST) == 2**48 - 1


@pytest.mark.parametrize("time", [-1, 2**64])
def test_a_value_that_is_no_time_is_refused(time: int) -> None:
    """Only a uint64 is a clock value."""
    with pytest.raises(ValueError, match="not a clock value"):
        milliseconds(time)
