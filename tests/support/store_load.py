"""Random load on a store with sync flush, a note of all that was acknowledged, and what a later start owes for it."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs

from tests.support.batches import batched
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.protocol.text.properties import encode_properties
from twisted_mq.storage.config import FlushDiskType, StoreConfig
from twisted_mq.storage.interfaces import InnerMessage, PutResult, PutStatus
from twisted_mq.storage.message_store import FileMessageStore

START_MS = 1_700_000_000_000
MS_A_MESSAGE = 700
"""Store time goes on with the messages, so that the three seconds of the checkpoint are a few of them."""
HOST = bytes([10, 0, 0, 1]) + (10911).to_bytes(4, "big")
QUEUES = (("TopicA", 0), ("TopicA", 1), ("TopicB", 0), ("TopicB", 3), ("TopicC", 0))
LONGEST_BODY = 900
_LONGEST_BATCH = 6
_SERIAL_BYTES = 8
_WAIT_SECONDS = 60


@attrs.frozen
class Acknowledged:
    """An acknowledged message or batch: its place in a queue and the serials of its messages, in order."""

    topic: str
    queue_id: int
    queue_offset: int
    first_serial: int
    count: int


def body_of(serial: int) -> bytes:
    """The serial and up to 900 bytes that follow from it."""
    source = random.Random(serial)
    return serial.to_bytes(_SERIAL_BYTES, "big") + source.randbytes(source.randrange(LONGEST_BODY))


def serial_of(body: bytes) -> int:
    return int.from_bytes(body[:_SERIAL_BYTES], "big")


def small_config(root: Path | str, **fields: Any) -> StoreConfig:
    """Sync flush, log files of 16 KiB, queue files of 20 entries; queues and checkpoint are flushed all the time."""
    values: dict[str, Any] = {
        "store_path_root_dir": str(root),
        "mapped_file_size_commit_log": 16 << 10,
        "mapped_file_size_consume_queue": 400,
        "commit_log_allocation_step": 4096,
        "consume_queue_allocation_step": 200,
        "flush_disk_type": FlushDiskType.SYNC_FLUSH,
        "flush_interval_consume_queue_ms": 3,
        "flush_consume_queue_thorough_interval_ms": 6,
        "flush_checkpoint_interval_ms": 4,
        "sync_flush_timeout_ms": 60_000,
        "max_hash_slot_num": 20,
        "max_index_num": 50,
        "store_host": HOST,
        "physical_memory": 1 << 30,
    }
    return StoreConfig(**(values | fields))


class StoreLoad:
    """Puts messages and batches into several queues; `acknowledged` is called in the flush thread.

    `serial` is the next message's; the store's clock is `now_ms`.
    """

    def __init__(self, source: random.Random, serial: int, acknowledged: Callable[[Acknowledged], None]) -> None:
        self.serial = serial
        self._random = source
        self._acknowledged = acknowledged

    def now_ms(self) -> int:
        return START_MS + self.serial * MS_A_MESSAGE

    def step(self, store: FileMessageStore) -> PutResult:
        """Put one message or a batch, and dispatch at times."""
        topic, queue_id = self._random.choice(QUEUES)
        count = self._random.choice((1, 1, 1, self._random.randint(2, _LONGEST_BATCH)))
        first = self.serial
        self.serial += count
        messages = [self._message(topic, queue_id, serial) for serial in range(first, first + count)]
        result = store.put_message(messages[0]) if count == 1 else store.put_messages(batched(messages))
        assert result.status is PutStatus.PUT_OK, result
        told = Acknowledged(topic, queue_id, result.queue_offset, first, count)
        store.when_flushed(result.end_offset, lambda done: self._acknowledged(told) if done else None)
        if self._random.random() < 0.7:
            store.dispatch()
        return result

    def _message(self, topic: str, queue_id: int, serial: int) -> InnerMessage:
        keys = {"UNIQ_KEY": f"{serial:032X}", "KEYS": f"serial{serial} tens{serial // 10}"}
        return InnerMessage(
            topic,
            queue_id,
            body_of(serial),
            encode_properties(keys).encode(),
            keys,
            0,
            born_timestamp=self.now_ms() - 5,
            born_host=HOST,
        )


def wait_until_flushed(store: FileMessageStore, end_offset: int) -> bool:
    """Wait for the disk up to an offset; whether it got there."""
    answered = threading.Event()
    outcome: list[bool] = []

    def answer(done: bool) -> None:
        outcome.append(done)
        answered.set()

    store.when_flushed(end_offset, answer)
    assert answered.wait(_WAIT_SECONDS)
    return outcome[0]


def queue_serials(store: FileMessageStore, topic: str, queue_id: int, begin: int = 0) -> dict[int, int]:
    """Queue offset to serial of all that a reader of the queue gets from an offset on."""
    found: dict[int, int] = {}
    offset = max(begin, store.min_offset_in_queue(topic, queue_id))
    while offset < store.max_offset_in_queue(topic, queue_id):
        result = store.get_message(topic, queue_id, offset, 32, 1 << 20, None)
        for record in result.records:
            message = decode_message(record)
            assert message.body == body_of(serial_of(message.body)), f"another body in {topic} {queue_id} {offset}"
            found[message.queue_offset] = serial_of(message.body)
        offset = max(offset + 1, result.next_begin_offset)
    return found


def all_serials(store: FileMessageStore) -> dict[tuple[str, int], dict[int, int]]:
    """`queue_serials` of every queue of the load."""
    return {place: queue_serials(store, *place) for place in QUEUES}


def broken_promises(store: FileMessageStore, acknowledged: list[Acknowledged]) -> list[str]:
    """Return violated promises of an open store: all acknowledged messages at their places, no repeats, no gaps, `check` clean.

    The index is completed first, so that `check` reads all of it.
    """
    store.build_index(1 << 40)
    found = all_serials(store)
    problems = [f"check: {problem}" for problem in store.check()]
    for told in acknowledged:
        queue = found[told.topic, told.queue_id]
        for index in range(told.count):
            if queue.get(told.queue_offset + index) != told.first_serial + index:
                here = queue.get(told.queue_offset + index)
                problems.append(f"missing: {told} has {here} at {told.queue_offset + index}")
    serials = [serial for queue in found.values() for serial in queue.values()]
    if len(set(serials)) != len(serials):
        problems.append("a message is twice in the queues")
    for place, queue in found.items():
        if sorted(queue) != list(range(len(queue))):
            problems.append(f"{place} has the offsets {sorted(queue)}")
    return problems
