"""Measures how long calls of a hot path take, at no cost to most of them: a few calls after each `arm` are timed.

Apache times each put and get (StoreStatsService); here `SAMPLE_CALLS` calls a second are timed.
"""

from __future__ import annotations

import bisect
from collections import deque
from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

SAMPLE_CALLS = 100
_KEPT_TIMES = 1000
_LIMITS_MS = (0, 10, 50, 100, 200, 500, 1000, 2000, 3000, 4000, 5000, 10000)
_RANGES = (
    "[<=0ms]", "[0~10ms]", "[10~50ms]", "[50~100ms]", "[100~200ms]", "[200~500ms]", "[500ms~1s]", "[1~2s]", "[2~3s]",
    "[3~4s]", "[4~5s]", "[5~10s]", "[10s~]",
)  # fmt: skip
"""The texts that Apache prints for the ranges that end at these limits."""

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class CallTimes:
    """Times of calls; `longest_ms` is the longest since the start. All are whole ms."""

    def __init__(self) -> None:
        self.longest_ms = 0
        self._counts = [0] * len(_RANGES)
        self._times: deque[int] = deque(maxlen=_KEPT_TIMES)

    def record(self, elapsed_ms: int) -> None:
        """Record one call."""
        self.longest_ms = max(self.longest_ms, elapsed_ms)
        self._counts[bisect.bisect_left(_LIMITS_MS, elapsed_ms)] += 1
        self._times.append(elapsed_ms)

    def within(self, share: float) -> int:
        """Return the time that this share of the latest timed calls did not exceed; 0 without calls."""
        times = sorted(self._times)
        return times[min(len(times) - 1, int(len(times) * share))] if times else 0

    def ranges(self) -> str:
        """Return the number of timed calls in each range, as Apache prints it."""
        return "".join(f"{text}:{count} " for text, count in zip(_RANGES, self._counts, strict=True))


class TimedCall(Generic[Parameters, Result]):
    """A callable, and the times of some calls. Read `call` again for each call: it is the callable itself except for the
    timed calls.
    """

    def __init__(
        self, call: Callable[Parameters, Result], seconds: Callable[[], float], times: CallTimes | None = None
    ) -> None:
        self.call = call
        self.times = CallTimes() if times is None else times
        self._untimed = call
        self._seconds = seconds
        self._left = 0

    def arm(self) -> None:
        """Time the next calls."""
        self._left = SAMPLE_CALLS
        self.call = self._timed

    def _timed(self, *arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
        self._left -= 1
        if self._left <= 0:
            self.call = self._untimed
        began = self._seconds()
        try:
            return self._untimed(*arguments, **named)
        finally:
            self.times.record(int((self._seconds() - began) * 1000))
