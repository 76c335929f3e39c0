"""Lag of groups, computed in slices of a number of queues, independent of their groups."""

from __future__ import annotations

from unittest.mock import patch

from tests.support.broker import BrokerInMemory
from twisted_mq.broker.metrics.lag import QUEUES_OF_SLICE, Lag, lags
from twisted_mq.protocol.bodies import TopicConfig
from twisted_mq.storage.memory.memory_store import MemoryMessageStore


def test_no_slice_looks_at_more_queues_than_it_may() -> None:
    broker = BrokerInMemory()
    queues = 3 * QUEUES_OF_SLICE
    broker.controller.topics.update([TopicConfig(name, queues, queues, 6) for name in ("T", "U")])
    offsets = broker.controller.offsets.offsets
    offsets |= {"T@G": dict.fromkeys(range(queues), 7), "U@G": {0: 1}, "U@H": {}, "Gone@G": {0: 5}}
    looks = [0]
    look = MemoryMessageStore.max_offset_in_queue

    def counted(store: MemoryMessageStore, topic: str, queue_id: int) -> int:
        looks[-1] += 1
        return look(store, topic, queue_id)

    work = lags(broker.controller)
    with patch.object(MemoryMessageStore, "max_offset_in_queue", counted):
        try:
            while True:
                next(work)
                looks.append(0)
        except StopIteration as end:
            found = end.value
    assert looks == [QUEUES_OF_SLICE] * 3 + [1]
    assert found == [Lag("G", "T", committed=7 * queues), Lag("G", "U", committed=1), Lag("H", "U")]
