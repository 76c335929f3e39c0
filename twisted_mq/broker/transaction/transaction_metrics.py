"""How many half messages of each topic are undecided (Apache: TransactionMetrics)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import attrs

from twisted_mq.protocol.bodies import DataVersion
from twisted_mq.protocol.bodies.metrics import TransactionMetric


class MetricsTable(Protocol):
    """What keeps the counts: TransactionMetricsTable, or anything like it in memory."""

    counts: dict[str, TransactionMetric]
    data_version: DataVersion

    def save(self) -> bool: ...


@attrs.define(eq=False)
class UnsavedMetrics:
    """Counts that end with the process."""

    counts: dict[str, TransactionMetric] = attrs.field(factory=dict)
    data_version: DataVersion = attrs.field(factory=DataVersion)

    def save(self) -> bool:
        return False


class TransactionMetrics:
    """Counts up with each half message and down when it is committed, rolled back or given up."""

    def __init__(self, now_ms: Callable[[], int], table: MetricsTable | None = None) -> None:
        self._now_ms = now_ms
        self.table = table if table is not None else UnsavedMetrics()

    def add(self, topic: str, change: int) -> None:
        """Change the count of a real topic."""
        now = self._now_ms()
        self.table.counts[topic] = TransactionMetric(count=self.count(topic) + change, time_stamp=now)
        self.table.data_version = self.table.data_version.next_version(now, self.table.data_version.state_version)

    def count(self, topic: str) -> int:
        """0 for a topic without transactions."""
        metric = self.table.counts.get(topic)
        return metric.count if metric is not None else 0

    def save(self) -> bool:
        """Write what changed. Raises OSError."""
        return self.table.save()
