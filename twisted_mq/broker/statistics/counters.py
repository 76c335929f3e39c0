"""Counts messages by topic, by topic and group, and of the whole broker, over the last minute, hour and day.

Apache: StatsItem, StatsItemSet. A counter only counts up; the windows compare samples of it: one each 10 s, 10 min and
1 h. All counters of a broker are sampled at the same moments, so a window stores the moments once, and a counter stores
only its counts. A counter that does not change keeps pointing at the same sample.

Messages are counted only by queue: a topic, or what a group reads of it, is the sum of its queues, and is computed when
it is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Protocol, Self, TypeVar

import attrs

from twisted_mq.broker.statistics.distributions import SIZE_LIMITS, Distribution
from twisted_mq.turns import Work

MINUTE, HOUR, DAY = range(3)
WINDOWS = ((10_000, 7), (600_000, 7), (3_600_000, 25))
"""The interval between a window's samples (ms), and how many it keeps: 7 samples span six intervals."""

Key = TypeVar("Key")
Sample = tuple[int, int, int, int]
GONE = ""
"""The key for the counts of deleted topics and groups: sums never go back."""

MOST_NAMES = 50_000
MOST_NAME = 1000
"""The limits of names that are counted separately, and of a name's characters: peers choose names. Others count as GONE."""
COUNTERS_OF_SLICE = 5000
"""The limit of counters that are sampled in one turn, about 10 ms."""

_NOTHING: Sample = (0, 0, 0, 0)


@attrs.define(eq=False)
class Counter:
    """The work of one queue or group since the broker's start: `times` counts the requests, which took `elapsed_ms`, and
    `more` the messages beyond one per request.
    """

    times: int = 0
    bytes: int = 0
    more: int = 0
    elapsed_ms: int = 0
    samples: tuple[list[Sample], ...] = attrs.field(factory=lambda: ([], [], []), repr=False)

    @property
    def messages(self) -> int:
        return self.times + self.more

    @property
    def parts(self) -> Sequence[Counter]:
        """Return the counters that it is the sum of: itself."""
        return (self,)

    def add(self, messages: int, size_bytes: int, elapsed_ms: int = 0) -> None:
        """Count one request."""
        self.times += 1
        self.more += messages - 1
        self.bytes += size_bytes
        self.elapsed_ms += elapsed_ms

    def take(self, gone: Counter) -> None:
        """Add the counts of a deleted counter."""
        self.times += gone.times
        self.more += gone.more
        self.bytes += gone.bytes
        self.elapsed_ms += gone.elapsed_ms

    def sample(self, window: int, keep: int) -> None:
        """Store the counts for a window; the first sample follows an empty one, as if counting had begun then."""
        samples = self.samples[window]
        now = (self.messages, self.bytes, self.elapsed_ms, self.times)
        if not samples:
            samples.append(_NOTHING)
        samples.append(samples[-1] if samples[-1] == now else now)
        if len(samples) > keep:
            del samples[0]


class CountersBy(dict[Key, Counter]):
    """Counters by key, created at their first use."""

    def __missing__(self, key: Key) -> Counter:
        counter = self[key] = Counter()
        return counter


class ByQueue(CountersBy[int]):
    """The queues of a topic, by their ids; the whole is their sum."""

    __slots__ = ()

    @property
    def messages(self) -> int:
        return sum([counter.messages for counter in self.values()])

    @property
    def bytes(self) -> int:
        return sum([counter.bytes for counter in self.values()])

    @property
    def times(self) -> int:
        return sum([counter.times for counter in self.values()])

    @property
    def parts(self) -> Sequence[Counter]:
        """Return the counters that it is the sum of."""
        return (*self.values(),)

    def take(self, gone: ByQueue) -> None:
        """Add the counts of a deleted counter; their queues are not known any more."""
        for counter in gone.values():
            self[0].take(counter)


class TopicPuts(ByQueue):
    """The messages put into a topic, and the sizes of sends, without a second count for small ones.

    `apart` are requests, and their bytes, other than sends of one message of up to SIZE_LIMITS[0] bytes.
    """

    __slots__ = ("_apart_bytes", "_apart_times", "_others")

    def __init__(self) -> None:
        super().__init__()
        self._apart_times = self._apart_bytes = 0
        self._others: Distribution | None = None

    def set_apart(self, size_bytes: int, times: int = 1) -> None:
        """Note that counted requests are no sends, or that one is a send whose size is recorded by itself."""
        self._apart_times += times
        self._apart_bytes += size_bytes

    def record(self, size_bytes: int, messages: int) -> None:
        """Record the size of one counted send that is large or of many messages."""
        self.set_apart(size_bytes)
        if self._others is None:
            self._others = Distribution(SIZE_LIMITS)
        self._others.record(size_bytes // messages)

    def sizes(self) -> Distribution:
        """Return the sizes of the records of sends; a batch's average counts once."""
        spread = Distribution(SIZE_LIMITS)
        if self._others is not None:
            spread.counts, spread.total = [*self._others.counts], self._others.total
        spread.counts[0] += self.times - self._apart_times
        spread.total += self.bytes - self._apart_bytes
        return spread


class Named(Protocol):
    """A named counter: one counter, or those of several queues."""

    @property
    def messages(self) -> int: ...

    @property
    def bytes(self) -> int: ...

    @property
    def times(self) -> int: ...

    @property
    def parts(self) -> Sequence[Counter]: ...

    def take(self, gone: Self) -> None: ...


One = TypeVar("One", bound=Named)


class CountersOf(dict[str, One], Generic[One]):
    """Counters by names, created at their first use, which can be forgotten."""

    made: type[One]

    def __missing__(self, name: str) -> One:
        if len(self) >= MOST_NAMES or len(name) > MOST_NAME:
            name = GONE
        counter = self.get(name)
        if counter is None:
            counter = self[name] = self.made()
        return counter

    def forget_prefix(self, prefix: str) -> None:
        """Drop the counters whose keys have this prefix."""
        self._forget([key for key in self if key.startswith(prefix)])

    def forget_suffix(self, suffix: str) -> None:
        """Drop the counters whose keys have this suffix."""
        self._forget([key for key in self if key.endswith(suffix)])

    def forget(self, key: str) -> None:
        """Drop one counter; its counts stay in the sum of all."""
        if key in self:
            self._forget([key])

    def _forget(self, keys: list[str]) -> None:
        for key in keys:
            gone = self.pop(key)
            self[GONE].take(gone)


class Counters(CountersOf[Counter]):
    """Counters by name, a single one for each."""

    made = Counter


class Gets(CountersOf[ByQueue]):
    """Counters by "topic@group", and in that by queue."""

    made = ByQueue


class Puts(CountersOf[TopicPuts]):
    """Counters by topic, and in that by queue."""

    made = TopicPuts


@attrs.frozen
class Rate:
    """The count within a window: the sum, the sum per second, and the sum per request."""

    sum: int = 0
    tps: float = 0.0
    average: float = 0.0


class Sampler:
    """Takes the samples of all counters when they are due."""

    def __init__(self, now_ms: int) -> None:
        self._moments: list[list[int]] = [[now_ms] for _ in WINDOWS]

    def sample(self, now_ms: int, counters: Sequence[Counter]) -> Work[None]:
        """Sample those windows whose interval is over, some counters at each step; started at least each 10 s."""
        due = [window for window, (interval_ms, _) in enumerate(WINDOWS)
               if now_ms - self._moments[window][-1] >= interval_ms]  # fmt: skip
        for window in due:
            moments, keep = self._moments[window], WINDOWS[window][1]
            moments.append(now_ms)
            del moments[:-keep]
        for number, counter in enumerate(counters if due else (), 1):
            for window in due:
                counter.sample(window, WINDOWS[window][1])
            if not number % COUNTERS_OF_SLICE:
                yield None

    def rate(self, counter: Named, window: int, field: int) -> Rate:
        """Return a window of one field (0 messages, 1 bytes, 2 ms, 3 requests); empty before the window's first sample.

        A sum goes as far back as the part of it that was sampled for the longest time.
        """
        parts = [samples for part in counter.parts if (samples := part.samples[window])]
        if not parts:
            return Rate()
        moments = self._moments[window]
        elapsed_ms = moments[-1] - moments[-max(map(len, parts))]
        counted = sum(samples[-1][field] - samples[0][field] for samples in parts)
        times = sum(samples[-1][3] - samples[0][3] for samples in parts)
        return Rate(counted, counted * 1000 / elapsed_ms if elapsed_ms else 0.0, counted / times if times else 0.0)
