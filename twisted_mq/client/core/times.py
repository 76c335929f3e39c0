"""Times in the API: a moment is a datetime or float seconds since 1970, a length is a timedelta or float seconds.

Milliseconds are used only on the wire. An implausible number, such as milliseconds in place of seconds, is refused.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from twisted_mq.routing.errors import ClientOptionIllegal

Moment: TypeAlias = datetime | float
"""A datetime without a zone is in this machine's zone, as in Python."""

Length: TypeAlias = timedelta | float

FIRST, LAST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
"""Moments outside are refused as mistakes: an earlier one is likely a length in seconds, a later one milliseconds."""

MOST_DELAY = timedelta(days=366)
"""A longer delay is refused: it is likely a moment. Brokers accept three days by default (timerMaxDelaySec)."""


def moment_ms(moment: Moment, name: str) -> int:
    """Return a moment in ms since 1970. Raises ClientOptionIllegal with the argument's name."""
    if isinstance(moment, datetime):
        seconds = moment.timestamp()
    else:
        seconds = _number(moment, name, "a datetime or seconds since 1970")
    if not FIRST.timestamp() <= seconds < LAST.timestamp():
        raise ClientOptionIllegal(
            f"{name}: {moment!r} is outside of the years {FIRST.year} to {LAST.year}; {_hint(seconds)}"
        )
    return round(seconds * 1000)


def length_ms(length: Length, name: str) -> int:
    """Return a length of time in ms. Raises ClientOptionIllegal with the argument's name."""
    if isinstance(length, timedelta):
        seconds = length.total_seconds()
    else:
        seconds = _number(length, name, "a timedelta or seconds")
    if not 0 <= seconds <= MOST_DELAY.total_seconds():
        raise ClientOptionIllegal(
            f"{name}: {length!r} is not between 0 and {MOST_DELAY.days} days; "
            "use seconds, or give the time as deliver_time"
        )
    return round(seconds * 1000)


def _number(value: object, name: str, wanted: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise ClientOptionIllegal(f"{name}: must be {wanted}, got {value!r}")
    return value


def _hint(seconds: float) -> str:
    if FIRST.timestamp() <= seconds / 1000 < LAST.timestamp():
        return "it looks like milliseconds; use seconds, like time.time()"
    return "use a datetime, or seconds since 1970, like time.time()"
