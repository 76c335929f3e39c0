"""Messages that the timer puts into the real queues: the rest of its rules is tested with the service."""

from __future__ import annotations

from pathlib import Path

import pytest

from twisted_mq.broker.schedule.timer_delivery import TimerDelivery, next_roll
from twisted_mq.broker.stored_message import StoredMessage
from twisted_mq.protocol.layouts.record_codec import decode_message, encode_record
from twisted_mq.storage.config import StoreConfig
from twisted_mq.storage.interfaces import InnerMessage
from twisted_mq.storage.memory.memory_store import MemoryMessageStore
from twisted_mq.storage.timer.timer_files import TimerFiles

NOW = 1_795_217_217_000
HOST = bytes([10, 0, 0, 1, 0, 0, 1, 2])


def stored(properties: bytes) -> StoredMessage:
    return StoredMessage.read(
        encode_record(
            b"rmq_sys_wheel_timer", b"body", properties, queue_id=0, queue_offset=4, physical_offset=240,
            born_timestamp=5, born_host=HOST, store_timestamp=6, store_host=HOST,
        )
    )  # fmt: skip


@pytest.mark.parametrize(("properties", "roll"), [(b"", "1"), (b"TIMER_ROLL_TIMES\x012\x02", "3")])
def test_rolls_are_counted(properties: bytes, roll: str) -> None:
    assert next_roll(stored(properties)) == roll


def test_tick_without_messages_is_none_and_lost_messages_are_passed_over(tmp_path: Path) -> None:
    store = MemoryMessageStore(StoreConfig(store_path_root_dir="/nowhere"), lambda: NOW)
    store.start()
    files = TimerFiles(str(tmp_path), 1000, 400, 10)
    files.open(clean=True, end_of_commit_log=0, end_of_queue=1 << 62)
    delivery = TimerDelivery(store, files, lambda: NOW)
    assert delivery.tick(NOW) is None
    text = b"REAL_TOPIC\x01T\x02REAL_QID\x011\x02UNIQ_KEY\x01K\x02"
    put = store.put_message(InnerMessage("rmq_sys_wheel_timer", 0, b"body", text, {}, 0))
    foreign = store.put_message(InnerMessage("U", 0, b"body", text, {}, 0))
    for offset in (put.physical_offset, foreign.physical_offset, 999_999):
        files.add(NOW, NOW - 1000, 1, offset, 100, 7)
    tick = delivery.tick(NOW)
    assert tick is not None
    assert (len(tick.positions), delivery.deliver_some(tick, 9), tick.next) == (3, True, 3)
    store.dispatch()
    (record,) = store.get_message("T", 1, 0, 9, 9999, None).records
    assert decode_message(record).properties == {
        "REAL_TOPIC": "T", "REAL_QID": "1", "UNIQ_KEY": "K", "TIMER_ENQUEUE_MS": str(NOW - 1000),
        "TIMER_DEQUEUE_MS": str(NOW),
    }  # fmt: skip
    assert (delivery.last_roll, files.metrics.counts["T"].count) == (-1, -1)
    files.close()
