"""A rate limit for sends or messages. Pure: `now` is given."""

from __future__ import annotations

import attrs

BURST_SECONDS = 0.1
"""Seconds' worth of messages that may go at once."""
LONGEST_SECONDS = 1.0
"""A queue that waits for its turn checks at least this often whether it is paused or given up."""


@attrs.define
class Pace:
    """At most `per_second` on average, and a tenth of that at once. A larger batch goes, and the next one waits longer."""

    per_second: float
    _free_at: float = float("-inf")

    def wait(self, now: float) -> float:
        """Return the seconds until the next may go; 0 for now."""
        return max(0.0, self._free_at - BURST_SECONDS - now)

    def spend(self, count: int, now: float) -> None:
        """Count messages that go now."""
        self._free_at = max(self._free_at, now) + count / self.per_second


def held_back_seconds(pace: Pace | None, now: float) -> float:
    """Return how long to ask for nothing to keep the pace, at most a second: then ask again, as without messages."""
    return 0.0 if pace is None else min(pace.wait(now), LONGEST_SECONDS)


def messages_to_ask(pace: Pace | None, most: int) -> int:
    """Return how many messages to ask for: with a pace, at most half a second's worth."""
    return most if pace is None else max(1, min(most, int(pace.per_second / 2)))
