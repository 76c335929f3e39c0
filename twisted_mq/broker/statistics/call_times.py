"""How long calls of a hot path take, at no cost to most of them: a few calls after each `arm` are timed.

Apache times each put and get (StoreStatsService); here the method is replaced by a timing one for `SAMPLE_CALLS` calls
a second, and put back.
"""

from __future__ import annotations

import bisect
from collections import deque
from collections.abc import Callable
from typing import Any

SAMPLE_CALLS = 100
_KEPT_TIMES = 1000
_LIMITS_MS = (0, 10, 50, 100, 200, 500, 1000, 2000, 3000, 4000, 5000, 10000)
_RANGES = (
    "[<=0ms]", "[0~10ms]", "[10~50ms]", "[50~100ms]", "[100~200ms]", "[200~500ms]", "[500ms~1s]", "[1~2s]", "[2~3s]",
    "[3~4s]", "[4~5s]", "[5~10s]", "[10s~]",
)  # fmt: skip
"""What Apache prints for the ranges that end at these limits."""


class CallTimes:
    """Times of one method; `longest_ms` is since the start, all in whole ms."""

    def __init__(self) -> None:
        self.longest_ms = 0
        self._counts = [0] * len(_RANGES)
        self._times: deque[int] = deque(maxlen=_KEPT_TIMES)
        self._watched: tuple[Any, str, Callable[..., Any], Callable[[], float]] | None = None
        self._left = 0

    def watch(self, owner: Any, name: str, seconds: Callable[[], float]) -> None:
        """Time the callable that `owner` keeps under this name, with this clock."""
        self._watched = (owner, name, getattr(owner, name), seconds)

    def arm(self) -> None:
        """Time the next calls."""
        if self._watched is not None:
            owner, name, _, _ = self._watched
            self._left = SAMPLE_CALLS
            setattr(owner, name, self._timed)

    def _timed(self, *arguments: Any, **named: Any) -> Any:
        assert self._watched is not None
        owner, name, call, seconds = self._watched
        self._left -= 1
        if self._left <= 0:
            setattr(owner, name, call)
        began = seconds()
        try:
            return call(*arguments, **named)
        finally:
            self.record(int((seconds() - began) * 1000))

    def record(self, elapsed_ms: int) -> None:
        """Note one call."""
        self.longest_ms = max(self.longest_ms, elapsed_ms)
        self._counts[bisect.bisect_left(_LIMITS_MS, elapsed_ms)] += 1
        self._times.append(elapsed_ms)

    def within(self, share: float) -> int:
        """The time that this share of the latest timed calls did not exceed; 0 without calls."""
        times = sorted(self._times)
        return times[min(len(times) - 1, int(len(times) * share))] if times else 0

    def ranges(self) -> str:
        """How many timed calls took how long, as Apache prints it."""
        return "".join(f"{text}:{count} " for text, count in zip(_RANGES, self._counts, strict=True))
