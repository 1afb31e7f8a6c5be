"""Points in time, as people write them and as events hold them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NoReturn

from ..errors import Refused

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instant(value: datetime | str | None, field: str) -> int | None:
    """A point in time as microseconds since 1970 (UTC). Raises Refused for one without a time zone."""
    if value is None:
        return None
    try:
        written = datetime.fromisoformat(value) if isinstance(value, str) else value
        if written.utcoffset() is None:
            _refuse_naive(written, field)
        return (written.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, AttributeError, TypeError, OverflowError) as error:
        raise Refused(f"{field}: {value!r} is not a time. Write it as 2026-05-08T13:56:00Z.") from error


def moment(microseconds: int) -> datetime:
    """The instant of an event's time, in UTC."""
    return _EPOCH + timedelta(microseconds=microseconds)


def _refuse_naive(written: datetime, field: str) -> NoReturn:
    raise Refused(f"{field}: {written} has no time zone. Add one: {written.isoformat()}Z, or +02:00 in place of the Z.")
