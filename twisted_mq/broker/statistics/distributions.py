"""Counts values by range, for metrics that need it (Prometheus: histograms), with Apache's limits."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from typing import Generic, TypeVar

SIZE_LIMITS = (1024, 4096, 524288, 1048576, 2097152, 4194304)
"""Bytes of one message's record (Apache: BrokerMetricsManager.getMetricsView)."""
LATENCY_LIMITS_MS = (1, 3, 5, 7, 10, 100, 1000, 2000, 3000)
"""The limits of one request's time (Apache: RemotingMetricsManager.getMetricsView)."""
TRANSACTION_LIMITS_SECONDS = (5, 60, 600, 3600, 43_200, 86_400)
"""The limits of the time from the birth of a half message to its commit (Apache: BrokerMetricsManager.getMetricsView)."""
CREATION_LIMITS_MS = (10, 100, 1000, 3000, 5000)
"""The limits of the time to create a topic or a group (Apache: BrokerMetricsManager.registerMetricsView)."""
DELAY_LIMITS_SECONDS = (60, 600, 3600, 43_200, 86_400, 259_200)
"""The limits of the time from the birth of a timed message to its delivery time (Apache:
DefaultStoreMetricsManager.getMetricsView).
"""

Key = TypeVar("Key")


class Distribution:
    """Counts by range; a value that equals a limit belongs to the range below it."""

    __slots__ = ("counts", "limits", "total")

    def __init__(self, limits: tuple[int, ...]) -> None:
        self.limits = limits
        self.counts = [0] * (len(limits) + 1)
        self.total = 0.0

    def record(self, value: float, weight: int = 1) -> None:
        """Record a value, which counts as many times as its weight."""
        self.counts[bisect_left(self.limits, value)] += weight
        self.total += value * weight

    def buckets(self) -> Iterator[tuple[str, int]]:
        """Yield each limit with the number of values up to it, as Prometheus has them."""
        names = (*(str(float(limit)) for limit in self.limits), "+Inf")
        return zip(names, itertools.accumulate(self.counts), strict=True)


class Distributions(defaultdict[Key, Distribution], Generic[Key]):
    """Distributions by key, created at their first use."""

    def __init__(self, limits: tuple[int, ...]) -> None:
        super().__init__(lambda: Distribution(limits))
