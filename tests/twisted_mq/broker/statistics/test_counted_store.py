"""What delayed delivery puts is counted."""

from __future__ import annotations

from twisted_mq.broker.statistics.broker_statistics import BrokerStatistics
from twisted_mq.broker.statistics.counted_store import CountedStore
from twisted_mq.protocol.layouts.host import pack_host
from twisted_mq.storage.config import StoreConfig
from twisted_mq.storage.interfaces import InnerMessage, PutStatus
from twisted_mq.storage.memory.memory_store import MemoryMessageStore


def test_only_what_was_stored_counts_as_put_and_as_taken() -> None:
    config = StoreConfig(store_path_root_dir="/nowhere", store_host=pack_host("127.0.0.2", 1), max_message_size=10)
    store = MemoryMessageStore(config, lambda: 1000)
    store.start()
    statistics = BrokerStatistics(0.0)
    counted = CountedStore(store, statistics, "SCHEDULE_TOPIC_XXXX")
    assert counted.put_message(InnerMessage("T", 0, b"x", b"", {}, 0)).status is PutStatus.PUT_OK
    assert counted.put_message(InnerMessage("T", 0, b"x" * 11, b"", {}, 0)).status is PutStatus.MESSAGE_ILLEGAL
    size = store.max_physical_offset()
    taken = statistics.gets["SCHEDULE_TOPIC_XXXX@SCHEDULE_CONSUMER"]
    assert (statistics.put_messages, statistics.put_bytes, statistics.puts["T"].messages) == (1, size, 1)
    assert (taken.messages, taken.bytes) == (1, size)
    assert counted.max_physical_offset() == size
