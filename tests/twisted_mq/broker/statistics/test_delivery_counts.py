"""Counts of delayed deliveries."""

from __future__ import annotations

import pytest

from tests.support.broker import MemoryTable
from twisted_mq.broker.schedule.schedule_service import ScheduleMessageService
from twisted_mq.broker.statistics.broker_statistics import BrokerStatistics
from twisted_mq.broker.statistics.delivery_counts import DeliveryCounts
from twisted_mq.protocol.layouts.host import pack_host
from twisted_mq.storage.config import StoreConfig
from twisted_mq.storage.interfaces import InnerMessage, PutResult, PutStatus
from twisted_mq.storage.memory.memory_store import MemoryMessageStore

SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"


def test_only_what_was_stored_counts_as_put_and_as_taken() -> None:
    config = StoreConfig(store_path_root_dir="/nowhere", store_host=pack_host("127.0.0.2", 1))
    store = MemoryMessageStore(config, lambda: 1000)
    store.start()
    properties = b"REAL_TOPIC\x01T\x02REAL_QID\x010\x02"
    store.put_message(InnerMessage(SCHEDULE_TOPIC, 0, b"x", properties, {}, 1000))
    store.dispatch()
    statistics, waiting = BrokerStatistics(0.0), store.max_physical_offset()
    count = DeliveryCounts(statistics, SCHEDULE_TOPIC).add
    service = ScheduleMessageService(store, MemoryTable(), "1s", lambda: 2000, 200, delivered=count)
    put = store.put_message
    store.put_message = lambda message: PutResult(PutStatus.SERVICE_NOT_AVAILABLE)  # type: ignore[method-assign]
    service.turn()
    assert statistics.put_messages == 0
    store.put_message = put  # type: ignore[method-assign]
    service.turn()
    size = store.max_physical_offset() - waiting
    taken = statistics.gets["SCHEDULE_TOPIC_XXXX@SCHEDULE_CONSUMER"]
    assert (statistics.put_messages, statistics.put_bytes, statistics.puts["T"].messages) == (1, size, 1)
    assert (taken.messages, taken.bytes) == (1, size)


@pytest.mark.parametrize(("level", "counted"), [(None, 0), ("3", 2), ("level", 0), ("9" * 30, 0)])
def test_a_level_that_is_no_number_counts_as_the_first(level: str | None, counted: int) -> None:
    statistics = BrokerStatistics(0.0)
    properties = {} if level is None else {"DELAY": level}
    message = InnerMessage("T", 0, b"x", b"", properties, 0)
    DeliveryCounts(statistics, SCHEDULE_TOPIC).add(message, PutResult(PutStatus.PUT_OK))
    assert list(statistics.gets["SCHEDULE_TOPIC_XXXX@SCHEDULE_CONSUMER"]) == [counted]
