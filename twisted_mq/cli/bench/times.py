"""Summarizes measured times."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

import attrs

PERCENTILES = (0.5, 0.9, 0.99, 0.999)
COLUMNS = (
    "what",
    "messages",
    "seconds",
    "perSecond",
    "mbPerSecond",
    "p50Ms",
    "p90Ms",
    "p99Ms",
    "p999Ms",
    "maxMs",
    "errors",
)


@attrs.define
class Times:
    """The times of many requests, in seconds; `messages` and `bytes` are those that succeeded."""

    taken: array[float] = attrs.field(factory=lambda: array("d"))
    messages: int = 0
    bytes: int = 0
    errors: dict[str, int] = attrs.field(factory=dict)

    def note(self, seconds: float, messages: int, size_bytes: int) -> None:
        """Record a request that succeeded."""
        self.taken.append(seconds)
        self.messages += messages
        self.bytes += size_bytes

    def failed(self, error: BaseException) -> None:
        """Record a request that failed."""
        name = type(error).__name__
        self.errors[name] = self.errors.get(name, 0) + 1

    def row(self, what: str, seconds: float) -> list[object]:
        """Return a row under COLUMNS; times in ms, None if nothing was measured."""
        taken = sorted(self.taken)
        length = max(seconds, 0.001)
        times = [*(percentile(taken, part) for part in PERCENTILES), taken[-1] if taken else None]
        return [
            what,
            self.messages,
            round(seconds, 3),
            round(self.messages / length, 1),
            round(self.bytes / length / 1e6, 3),
            *(None if one is None else round(one * 1000, 3) for one in times),
            sum(self.errors.values()),
        ]


def percentile(ordered: Sequence[float], part: float) -> float | None:
    """Return the smallest value that this part of all values does not exceed (nearest rank); None without values."""
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)] if ordered else None
