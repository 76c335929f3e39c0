"""Counts the undecided half messages of each topic (Apache: TransactionMetrics)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from twisted_mq.protocol.bodies import DataVersion
from twisted_mq.protocol.bodies.metrics import TransactionMetric


class MetricsTable(Protocol):
    """A table of counts: TransactionMetricsTable, or one in memory."""

    counts: dict[str, TransactionMetric]
    data_version: DataVersion

    def save(self) -> bool: ...


class TransactionMetrics:
    """Counts up with each half message and down when it is committed, rolled back or given up."""

    def __init__(self, now_ms: Callable[[], int], table: MetricsTable) -> None:
        self._now_ms = now_ms
        self._table = table

    def add(self, topic: str, change: int) -> None:
        """Change the count of a real topic."""
        now = self._now_ms()
        self._table.counts[topic] = TransactionMetric(count=self.count(topic) + change, time_stamp=now)
        self._table.data_version = self._table.data_version.next_version(now, self._table.data_version.state_version)

    def count(self, topic: str) -> int:
        """Return the count of a topic; 0 for a topic without transactions."""
        metric = self._table.counts.get(topic)
        return metric.count if metric is not None else 0

    def save(self) -> bool:
        """Write the changes. Raises OSError."""
        return self._table.save()
