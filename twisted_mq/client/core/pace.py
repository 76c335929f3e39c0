"""A limit of sends or messages a second. Pure: `now` is given."""

from __future__ import annotations

import attrs

BURST_SECONDS = 0.1
"""So much of a second's messages may go at once."""
LONGEST_SECONDS = 1.0
"""A queue that waits for its turn looks at least so often whether it is paused or given up."""


@attrs.define
class Pace:
    """At most `per_second` in the long run, and a tenth of that at once; what is larger goes, and the next waits longer."""

    per_second: float
    _free_at: float = float("-inf")

    def wait(self, now: float) -> float:
        """Return the seconds until the next may go; 0 for now."""
        return max(0.0, self._free_at - BURST_SECONDS - now)

    def spend(self, count: int, now: float) -> None:
        """So many go now."""
        self._free_at = max(self._free_at, now) + count / self.per_second


def held_back_seconds(pace: Pace | None, now: float) -> float:
    """Return how long nothing is asked for, to keep the pace; asked again at least each second, as without messages."""
    return 0.0 if pace is None else min(pace.wait(now), LONGEST_SECONDS)


def at_once(pace: Pace | None, most: int) -> int:
    """Return how many messages are asked for: with a pace not more than come in half a second."""
    return most if pace is None else max(1, min(most, int(pace.per_second / 2)))
