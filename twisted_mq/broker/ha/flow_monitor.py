"""Measures how much one link carries in a second, and limits it (Apache: FlowMonitor)."""

from __future__ import annotations

import math

from twisted.internet import interfaces

UNLIMITED = 1 << 62


class FlowMonitor:
    """Counts bytes in seconds of the clock. `limit` is bytes a second; Apache counts only the headers against it.

    The seconds begin `phase` (0 to 1) after those of the clock: limited links with different phases do not all go on at once.

    `shared_limit` is this link's part of a limit of several links, None without one.
    """

    def __init__(self, clock: interfaces.IReactorTime, limit: int = UNLIMITED, phase: float = 0.0) -> None:
        self.shared_limit: int | None = None
        self._clock = clock
        self._phase = phase
        self._limit = limit
        self._second = self._this_second()
        self._counted = 0
        self._before = 0

    def add(self, byte_count: int) -> None:
        """Count bytes that were sent or received now."""
        self._roll()
        self._counted += byte_count

    def allowance(self) -> int:
        """Return how many more bytes this second may have."""
        self._roll()
        limit = self._limit if self.shared_limit is None else min(self._limit, self.shared_limit)
        return max(0, limit - self._counted)

    def next_second(self) -> float:
        """Return the seconds until there is a new allowance; 0 if a second began since the last one was asked for."""
        return max(0.0, self._second + 1 + self._phase - self._clock.seconds())

    @property
    def transferred_byte_in_second(self) -> int:
        """Return the bytes of the last full second."""
        self._roll()
        return self._before

    def _roll(self) -> None:
        now = self._this_second()
        if now != self._second:
            self._before = self._counted if now == self._second + 1 else 0
            self._second, self._counted = now, 0

    def _this_second(self) -> int:
        return math.floor(self._clock.seconds() - self._phase)
