"""Rates of a consumer in each topic over the last minute and hour (Apache: ConsumerStatsManager, StatsItem)."""

from __future__ import annotations

import collections

import attrs

from twisted_mq.protocol.bodies import ConsumeStatus

MINUTE, HOUR = (10.0, 6), (600.0, 6)
"""Seconds between samples, and how many samples are kept."""


@attrs.define
class TopicCounts:
    """Totals, which only grow. A pull counts if it found messages, a listener call when it was answered."""

    pulls: int = 0
    pulled: int = 0
    pull_seconds: float = 0.0
    calls: int = 0
    call_seconds: float = 0.0
    consumed: int = 0
    failed: int = 0


_NONE = TopicCounts()


class Samples:
    """Copies of all counts; a window begins at the oldest one."""

    def __init__(self, seconds: float, count: int) -> None:
        self._seconds = seconds
        self._taken: collections.deque[tuple[float, dict[str, TopicCounts]]] = collections.deque(maxlen=count)

    def take(self, now_seconds: float, counts: dict[str, TopicCounts]) -> None:
        """Take a sample if it is due."""
        if not self._taken or now_seconds - self._taken[-1][0] >= self._seconds:
            self._taken.append((now_seconds, {topic: attrs.evolve(one) for topic, one in counts.items()}))

    def begin(self, topic: str, now_seconds: float) -> tuple[float, TopicCounts]:
        """Return how many seconds ago the window began, and the counts at that time."""
        if not self._taken:
            return 0.0, _NONE
        then, counts = self._taken[0]
        return now_seconds - then, counts.get(topic, _NONE)


class ConsumeRates:
    """Rates of one consumer. `sample` is called every few seconds while it runs."""

    def __init__(self) -> None:
        self.counts: collections.defaultdict[str, TopicCounts] = collections.defaultdict(TopicCounts)
        self._minute, self._hour = Samples(*MINUTE), Samples(*HOUR)

    def found(self, topic: str, count: int, seconds: float) -> None:
        """Count a pull that found messages."""
        counts = self.counts[topic]
        counts.pulls += 1
        counts.pulled += count
        counts.pull_seconds += seconds

    def called(self, topic: str, consumed: int, failed: int, seconds: float) -> None:
        """Count a listener call with this many messages."""
        counts = self.counts[topic]
        counts.calls += 1
        counts.consumed += consumed
        counts.failed += failed
        counts.call_seconds += seconds

    def sample(self, now_seconds: float) -> None:
        """Take the samples that are due."""
        self._minute.take(now_seconds, self.counts)
        self._hour.take(now_seconds, self.counts)

    def status(self, topic: str, now_seconds: float) -> ConsumeStatus:
        """Return rates per second over the last minute, and times in ms.

        The time of a call is over the last hour if the minute had no calls.
        """
        counts = self.counts.get(topic, _NONE)
        seconds, before = self._minute.begin(topic, now_seconds)
        _, hour_before = self._hour.begin(topic, now_seconds)
        since = before if counts.calls > before.calls else hour_before
        return ConsumeStatus(
            pull_rt=_each_ms(counts.pull_seconds - before.pull_seconds, counts.pulls - before.pulls),
            pull_tps=_rate(counts.pulled - before.pulled, seconds),
            consume_rt=_each_ms(counts.call_seconds - since.call_seconds, counts.calls - since.calls),
            consume_ok_tps=_rate(counts.consumed - before.consumed, seconds),
            consume_failed_tps=_rate(counts.failed - before.failed, seconds),
            consume_failed_msgs=counts.failed - hour_before.failed,
        )


def _rate(count: int, seconds: float) -> float:
    return count / seconds if seconds > 0 else 0.0


def _each_ms(seconds: float, count: int) -> float:
    return seconds * 1000 / count if count else 0.0
