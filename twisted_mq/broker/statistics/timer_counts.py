"""Counts what the timer did since it started, by the topics that its messages are for (Apache: DefaultStoreMetricsManager)."""

from __future__ import annotations

import collections

import attrs

from twisted_mq.broker.statistics.distributions import DELAY_LIMITS_SECONDS, Distributions


@attrs.frozen(eq=False)
class TimerCounts:
    """Counts of the timer. `noted` are messages that were put on the wheel or were due at once; `taken` those that left
    it, to their real queue or to the timer's topic again; `delays` the whole seconds from their birth to their time.
    """

    noted: collections.Counter[str] = attrs.field(factory=collections.Counter)
    taken: collections.Counter[str] = attrs.field(factory=collections.Counter)
    delays: Distributions[str] = attrs.field(factory=lambda: Distributions(DELAY_LIMITS_SECONDS))

    def note(self, topic: str, delay_ms: int) -> None:
        """Count a new message that asked for this delay."""
        self.noted[topic] += 1
        self.delays[topic].record(max(0, delay_ms) // 1000)

    def take(self, topic: str) -> None:
        """Count a message that left."""
        self.taken[topic] += 1
