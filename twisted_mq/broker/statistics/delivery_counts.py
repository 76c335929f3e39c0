"""Counts what the broker itself delivers after it waited, like the sends and pulls of clients, and what its timer does."""

from __future__ import annotations

import collections

import attrs

from twisted_mq.broker.statistics.broker_statistics import BrokerStatistics
from twisted_mq.broker.statistics.distributions import DELAY_LIMITS_SECONDS, Distributions
from twisted_mq.protocol.names.system_topics import SCHEDULE_TOPIC
from twisted_mq.protocol.text.java import parse_int
from twisted_mq.protocol.text.properties import PROPERTY_DELAY_TIME_LEVEL
from twisted_mq.storage.interfaces import InnerMessage, Places, PutResult

SCHEDULE_CONSUMER = "SCHEDULE_CONSUMER"
"""The group that deliveries are counted for (Apache: MixAll.SCHEDULE_CONSUMER_GROUP)."""


class DeliveryCounts:
    """Counts deliveries: each is a message put, and a message taken out of the topic `source`."""

    def __init__(self, statistics: BrokerStatistics, source: str) -> None:
        self._statistics = statistics
        self._source = source
        self._taken = statistics.gets[f"{source}@{SCHEDULE_CONSUMER}"]

    def add(self, message: InnerMessage, result: PutResult) -> None:
        """Count a stored message."""
        size = result.end_offset - result.physical_offset
        self._statistics.count_put(message.topic, 1, size, queue_id=message.queue_id)
        level = self._source == SCHEDULE_TOPIC and parse_int(message.property_map.get(PROPERTY_DELAY_TIME_LEVEL))
        self._taken[(level or 1) - 1].add(1, size)

    def add_together(self, level: int, places: Places) -> None:
        """Count messages that were stored in one write; `level` is 1 for those of the timer."""
        self._statistics.count_together(places)
        taken = self._taken[level - 1]
        for times, size_bytes in places.by_queue.values():
            taken.times += times
            taken.bytes += size_bytes


@attrs.frozen(eq=False)
class TimerCounts:
    """Counts of the timer since it started, by the topics that its messages are for (Apache: DefaultStoreMetricsManager).

    `noted` are messages that were put on the wheel or were due at once; `taken` those that left
    it, to their real queue or to the timer's topic again; `delays` the whole seconds from their birth to their time.
    """

    noted: collections.Counter[str] = attrs.field(factory=collections.Counter)
    taken: collections.Counter[str] = attrs.field(factory=collections.Counter)
    delays: Distributions[str] = attrs.field(factory=lambda: Distributions(DELAY_LIMITS_SECONDS))

    def note(self, topic: str, delay_ms: int) -> None:
        """Count a new message that asked for this delay."""
        self.noted[topic] += 1
        self.delays[topic].record(max(0, delay_ms) // 1000)

    def take(self, topic: str, count: int) -> None:
        """Count messages that left."""
        self.taken[topic] += count
