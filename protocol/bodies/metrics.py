"""Counters by topic that brokers keep in files."""

from __future__ import annotations

import attrs
from attrs import field

from twisted_mq.protocol.bodies.types import Int64
from twisted_mq.protocol.bodies.versions import DataVersion


@attrs.frozen
class TransactionMetric:
    """The number of open half messages of a topic (Apache: TransactionMetrics.Metric)."""

    count: Int64 = 0
    time_stamp: Int64 = 0


@attrs.frozen
class TransactionMetricsSerializeWrapper:
    """The broker's file transactionMetrics."""

    transaction_count: dict[str, TransactionMetric] = field(factory=dict)
    data_version: DataVersion = field(factory=DataVersion)


@attrs.frozen
class TimerMetric:
    """The number of waiting timer messages of a topic (Apache: TimerMetrics.Metric)."""

    count: Int64 = 0
    time_stamp: Int64 = 0


@attrs.frozen
class TimerMetricsSerializeWrapper:
    """Answer to GET_TIMER_METRICS."""

    timing_count: dict[str, TimerMetric] = field(factory=dict)
    data_version: DataVersion = field(factory=DataVersion)
