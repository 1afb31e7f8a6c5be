"""The hybrid logical clock that orders events: never behind the last event, never far from the wall clock."""

from __future__ import annotations

_COUNTER_BITS = 16
_LIMIT = 1 << 64


def tick(last: int, now_ms: int) -> int:
    """Return the time of the event after `last`, when it is `now_ms` milliseconds after the Unix epoch.

    max(last + 1, now_ms << 16): 48 bits of milliseconds and a 16-bit counter in a uint64, after
    Kulkarni et al., "Logical Physical Clocks" (2014). Always more than `last`, even when the wall
    clock goes back. Raises ValueError if an argument is negative or the result does not fit.
    """
    if last < 0 or now_ms < 0:
        raise ValueError(f"a clock is negative (last {last}, now {now_ms} ms): set the system clock")
    time = max(last + 1, now_ms << _COUNTER_BITS)
    if time >= _LIMIT:
        raise ValueError(f"no time follows {last} at {now_ms} ms within 64 bits: set the system clock")
    return time


def milliseconds(time: int) -> int:
    """Return the milliseconds since the Unix epoch in a clock value; ValueError if it is not a uint64."""
    if not 0 <= time < _LIMIT:
        raise ValueError(f"{time} is not a clock value: it must be from 0 to 2**64 - 1")
    return time >> _COUNTER_BITS
