"""Appending over file ends, and what a batch does there."""

from __future__ import annotations

import errno

import pytest

from tests.storage.conftest import START_MS, OpenFileStore, message, put
from tests.support.batches import batched
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.storage.interfaces import PutStatus

RECORD = 91 + 6 + 500


def test_record_that_does_not_fit_begins_the_next_file(open_store: OpenFileStore) -> None:
    store = open_store()
    results = put(store, *[message(body=bytes(500)) for _ in range(8)])
    assert [result.physical_offset for result in results] == [
        *(number * RECORD for number in range(6)),
        4096,
        4096 + RECORD,
    ]
    stored = decode_message(store.look_message(4096) or b"")
    assert (stored.physical_offset, stored.queue_offset, stored.store_timestamp) == (4096, 6, START_MS)


def test_batch_is_never_split_over_files(open_store: OpenFileStore) -> None:
    store = open_store()
    put(store, *[message(body=bytes(500)) for _ in range(5)])
    result = store.put_messages(batched([message(body=bytes(500)) for _ in range(3)]))
    assert (result.queue_offset, result.physical_offset) == (5, 4096)
    assert list(result.physical_offsets) == [4096, 4096 + RECORD, 4096 + 2 * RECORD]
    store.dispatch()
    stored = [decode_message(store.look_message(offset) or b"") for offset in result.physical_offsets]
    assert [(one.physical_offset, one.queue_offset) for one in stored] == [(4096, 5), (4096 + RECORD, 6), (5290, 7)]


def test_batch_larger_than_a_queue_file(open_store: OpenFileStore) -> None:
    store = open_store()
    result = store.put_messages(batched([message(body=b"") for _ in range(35)]))
    store.dispatch()
    assert (result.status, store.max_offset_in_queue("TopicA", 0)) == (PutStatus.PUT_OK, 35)


def test_largest_record_of_a_file(open_store: OpenFileStore) -> None:
    store = open_store()
    body = 4096 - 8 - 97
    put(store, message(body=bytes(body)), message(body=bytes(body)))
    assert store.max_physical_offset() == 4096 + 4088
    assert store.put_message(message(body=bytes(body + 1))).status is PutStatus.MESSAGE_ILLEGAL


def test_delayed_message_made_anew_by_recovery_has_the_same_due_time(open_store: OpenFileStore) -> None:
    store = open_store()
    delayed = message("SCHEDULE_TOPIC_XXXX", 2, properties=b"DELAY\x013", property_map={"DELAY": "3"})
    put(store, delayed)
    (queue,) = store._queues
    assert queue.entry(0) == (0, 91 + 19 + 5 + 7, START_MS + 10_000)
    assert store.check() == []


def test_first_message_that_finds_no_space_is_said_and_the_next_ones_are_not(
    open_store: OpenFileStore, caplog: pytest.LogCaptureFixture
) -> None:
    """Once more after one that was taken."""
    is_full = True

    def allocate(descriptor: int, offset: int, length: int) -> None:
        if is_full:
            raise OSError(errno.ENOSPC, "No space left on device")

    def said() -> int:
        return sum(record.getMessage().startswith("store accepts no messages: ") for record in caplog.records)

    store = open_store(keywords={"allocate": allocate})
    assert [store.put_message(message()).status for _ in range(3)] == [PutStatus.SERVICE_NOT_AVAILABLE] * 3
    assert said() == 1
    is_full = False
    put(store, message())
    is_full = True
    assert [store.put_message(message("Other")).status for _ in range(2)] == [PutStatus.SERVICE_NOT_AVAILABLE] * 2
    assert said() == 2
