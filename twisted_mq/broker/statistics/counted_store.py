"""A store for parts of the broker that deliver what waited: what they put is counted like what clients send."""

from __future__ import annotations

from typing import Any

from twisted_mq.broker.statistics.broker_statistics import BrokerStatistics
from twisted_mq.protocol.names.system_topics import SCHEDULE_TOPIC
from twisted_mq.protocol.text.properties import PROPERTY_DELAY_TIME_LEVEL
from twisted_mq.storage.interfaces import IMessageStore, InnerMessage, PutResult, PutStatus

SCHEDULE_CONSUMER = "SCHEDULE_CONSUMER"
"""The group that deliveries are counted for (Apache: MixAll.SCHEDULE_CONSUMER_GROUP)."""


class CountedStore:
    """Everything of `store`; a put also counts as taken out of the topic `source`."""

    def __init__(self, store: IMessageStore, statistics: BrokerStatistics, source: str) -> None:
        self._store = store
        self._statistics = statistics
        self._source = source
        self._taken = statistics.gets[f"{source}@{SCHEDULE_CONSUMER}"]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def put_message(self, message: InnerMessage) -> PutResult:
        """Put one message and count it."""
        result: PutResult = self._store.put_message(message)
        if result.status is PutStatus.PUT_OK:
            size = result.end_offset - result.physical_offset
            self._statistics.count_put(message.topic, 1, size, queue_id=message.queue_id)
            self._taken.add(1, size)
            level = message.property_map.get(PROPERTY_DELAY_TIME_LEVEL, "1") if self._source == SCHEDULE_TOPIC else "1"
            key = f"{self._source}@{int(level) - 1}@{SCHEDULE_CONSUMER}"
            self._statistics.queue_gets[key].add(1, size)
        return result
