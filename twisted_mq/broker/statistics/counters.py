"""Counts of messages by topic, by topic and group, and of the whole broker, over the last minute, hour and day.

Apache: StatsItem, StatsItemSet. A counter only counts up; the windows compare samples of it: one each 10 s, 10 min and
1 h. All counters of a broker are sampled at the same moments, so a window keeps the moments once, and a counter only
what it had counted. A counter that stands still keeps pointing at one and the same sample.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import attrs

MINUTE, HOUR, DAY = range(3)
WINDOWS = ((10_000, 7), (600_000, 7), (3_600_000, 25))
"""How far apart a window's samples are (ms), and how many it keeps: 7 samples span six intervals."""

Key = TypeVar("Key")
Sample = tuple[int, int, int, int]
GONE = ""
"""Key of what the counters of deleted topics and groups had counted: sums never go back."""

_NOTHING: Sample = (0, 0, 0, 0)


@attrs.define(eq=False)
class Counter:
    """What one topic, queue or group did since the broker's start; `times` counts the requests, which took `elapsed_ms`."""

    messages: int = 0
    bytes: int = 0
    elapsed_ms: int = 0
    times: int = 0
    samples: tuple[list[Sample], ...] = attrs.field(factory=lambda: ([], [], []), repr=False)

    def add(self, messages: int, size_bytes: int, elapsed_ms: int = 0) -> None:
        """Count one request."""
        self.messages += messages
        self.bytes += size_bytes
        self.elapsed_ms += elapsed_ms
        self.times += 1

    def sample(self, window: int, keep: int) -> None:
        """Remember the counts for a window; the first sample stands behind an empty one, as when counting began."""
        samples = self.samples[window]
        now = (self.messages, self.bytes, self.elapsed_ms, self.times)
        if not samples:
            samples.append(_NOTHING)
        samples.append(samples[-1] if samples[-1] == now else now)
        if len(samples) > keep:
            del samples[0]


class CountersBy(dict[Key, Counter]):
    """Counters by key, made at their first use."""

    def __missing__(self, key: Key) -> Counter:
        counter = self[key] = Counter()
        return counter


class Counters(CountersBy[str]):
    """Counters by names, which can be forgotten."""

    def forget_prefix(self, prefix: str) -> None:
        """Drop the counters whose keys begin so."""
        self._forget([key for key in self if key.startswith(prefix)])

    def forget_suffix(self, suffix: str) -> None:
        """Drop the counters whose keys end so."""
        self._forget([key for key in self if key.endswith(suffix)])

    def forget(self, key: str) -> None:
        """Drop one counter; what it had counted stays in the sum of all."""
        if key in self:
            self._forget([key])

    def _forget(self, keys: list[str]) -> None:
        for key in keys:
            gone = self.pop(key)
            rest = self[GONE]
            rest.messages += gone.messages
            rest.bytes += gone.bytes
            rest.elapsed_ms += gone.elapsed_ms
            rest.times += gone.times


@attrs.frozen
class Rate:
    """What was counted within a window: the sum, the sum a second, and the sum a request."""

    sum: int = 0
    tps: float = 0.0
    average: float = 0.0


class Sampler:
    """Takes the samples of all counters when they are due."""

    def __init__(self, now_ms: int) -> None:
        self._moments: list[list[int]] = [[now_ms] for _ in WINDOWS]

    def sample(self, now_ms: int, counters: Iterable[Counter]) -> None:
        """Sample those windows whose interval is over; called at least each 10 s."""
        due = [window for window, (interval_ms, _) in enumerate(WINDOWS)
               if now_ms - self._moments[window][-1] >= interval_ms]  # fmt: skip
        for window in due:
            moments, keep = self._moments[window], WINDOWS[window][1]
            moments.append(now_ms)
            del moments[:-keep]
        for counter in counters if due else ():
            for window in due:
                counter.sample(window, WINDOWS[window][1])

    def rate(self, counter: Counter, window: int, field: int) -> Rate:
        """A window of one field (0 messages, 1 bytes, 2 ms, 3 requests); empty before the window's first sample."""
        samples = counter.samples[window]
        if not samples:
            return Rate()
        first, last = samples[0], samples[-1]
        moments = self._moments[window]
        elapsed_ms = moments[-1] - moments[-len(samples)]
        counted, times = last[field] - first[field], last[3] - first[3]
        return Rate(counted, counted * 1000 / elapsed_ms if elapsed_ms else 0.0, counted / times if times else 0.0)
