"""Appending over file ends, and what a batch does there."""

from __future__ import annotations

import errno
from collections.abc import Sequence

import pytest

from tests.storage.conftest import HOST, START_MS, OpenFileStore, SettableClock, message, put
from tests.support.batches import batched
from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.storage.errors import PoolExhausted
from twisted_mq.storage.interfaces import PlainMessages, PutStatus

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


def test_first_message_that_lacks_a_descriptor_is_said_and_the_next_ones_are_not(
    open_store: OpenFileStore, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make_room(size: int) -> None:
        raise OSError(errno.EMFILE, "Too many open files", "commitlog/0")

    store = open_store()
    monkeypatch.setattr(store._log, "make_room", make_room)
    assert [store.put_message(message()).status for _ in range(2)] == [PutStatus.OS_PAGE_CACHE_BUSY] * 2
    said = [
        record.getMessage() for record in caplog.records if record.getMessage().startswith("store accepts no messages")
    ]
    assert said == ["store accepts no messages for now: [Errno 24] Too many open files: 'commitlog/0'"]


def test_message_that_finds_no_buffer_is_refused_without_a_line_in_the_log(
    open_store: OpenFileStore, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make_room(size: int) -> None:
        raise PoolExhausted("commitlog")

    store = open_store()
    caplog.clear()
    monkeypatch.setattr(store._log, "make_room", make_room)
    assert store.put_message(message()).status is PutStatus.OS_PAGE_CACHE_BUSY
    assert caplog.records == []


@pytest.mark.parametrize("in_a_batch", [False, True])
def test_message_that_just_fits_does_not_tell_whether_there_is_space_for_a_new_file(
    open_store: OpenFileStore, in_a_batch: bool
) -> None:
    """A larger message has found no space for the next file. The small one ends where the blank record begins."""
    is_full = False

    def allocate(descriptor: int, offset: int, length: int) -> None:
        if is_full:
            raise OSError(errno.ENOSPC, "No space left on device")

    store = open_store(keywords={"allocate": allocate})
    put(store, *[message(body=bytes(500)) for _ in range(6)])
    is_full = True
    assert store.put_message(message(body=bytes(500))).status is PutStatus.SERVICE_NOT_AVAILABLE
    small = message(body=bytes(4096 - 8 - 6 * RECORD - 97))
    result = store.put_messages(batched([small])) if in_a_batch else store.put_message(small)
    assert (result.status, result.end_offset, store.gate.no_space) == (PutStatus.PUT_OK, 4096 - 8, True)


def plain(queue_ids: Sequence[int], *bodies: bytes) -> PlainMessages:
    """Messages for these queues, each with its body; one body is that of all."""
    count = len(queue_ids)
    bodies = bodies * count if len(bodies) == 1 else bodies
    return PlainMessages("TopicA", queue_ids, bodies, [b""], [0] * count, [START_MS] * count, HOST, 0, 0, 0)


@pytest.mark.parametrize(("size", "fitting"), [(570, 7), (571, 6)])
def test_plain_messages_are_taken_up_to_the_one_that_needs_another_file(
    open_store: OpenFileStore, size: int, fitting: int
) -> None:
    """After a record of 98 bytes, seven of 570 fill a file but for its blank record."""
    store = open_store()
    put(store, message(body=b"x"))
    places = store.put_plain(plain([0] * 7, bytes(size - 97)))
    assert (len(places), places.end_offset) == (fitting, 98 + fitting * size)
    store.dispatch()


def test_plain_messages_in_a_later_file(open_store: OpenFileStore, clock: SettableClock) -> None:
    store = open_store()
    put(store, *[message(body=bytes(500)) for _ in range(7)])
    clock.now += 1000
    places = store.put_plain(plain([0, 0], b"hello"))
    assert list(places.physical_offsets[:2]) == [4096 + RECORD, 4096 + RECORD + 102]
    assert places.by_queue == {("TopicA", 0): (2, 204)}
    stored = decode_message(store._log.record_at(places.physical_offsets[1]) or b"")
    assert (stored.body, stored.store_timestamp) == (b"hello", START_MS + 1000)
    assert store._log.last_store_timestamp == START_MS + 1000
    store.dispatch()


def test_plain_messages_are_taken_as_long_as_their_queue_has_room(open_store: OpenFileStore) -> None:
    """A file of the queue has ten entries; space for the first one is taken with the first message."""
    store = open_store()
    put(store, message())
    places = store.put_plain(plain([0] * 12, b""))
    assert list(places.queue_offsets) == list(range(1, 10))
    store.dispatch()


def test_queue_whose_plain_messages_end_first_becomes_visible_first(open_store: OpenFileStore) -> None:
    store = open_store()
    put(store, message(), message(queue_id=1))
    places = store.put_plain(plain([0, 1, 1, 0], b"hello"))
    store.dispatcher.run(places.physical_offsets[3])
    assert [store.max_offset_in_queue("TopicA", queue_id) for queue_id in (0, 1)] == [1, 3]


def test_half_message_of_a_topic_with_batch_queues_has_queue_offset_0(
    open_store: OpenFileStore, known_topics: dict[str, bool]
) -> None:
    known_topics["TopicA"] = True
    store = open_store()
    half = message(sys_flag=int(MessageSysFlag.TRANSACTION_PREPARED_TYPE))
    ordinary, result = put(store, message(), half)
    stored = decode_message(store._log.record_at(result.physical_offset) or b"")
    assert (ordinary.queue_offset, result.queue_offset, stored.queue_offset) == (0, 0, 0)
    assert store.max_offset_in_queue("TopicA", 0) == 1


@pytest.mark.parametrize(
    ("sizes", "status"),
    [((1001, 0), PutStatus.MESSAGE_ILLEGAL), ((1, 32_768), PutStatus.PROPERTIES_SIZE_EXCEEDED)],
    ids=["body", "properties"],
)
def test_too_long_body_and_too_long_properties_are_each_refused(
    open_store: OpenFileStore, sizes: tuple[int, int], status: PutStatus
) -> None:
    store = open_store(max_message_size=1000)
    body, properties = map(bytes, sizes)
    assert store.put_message(message(body=body, properties=properties)).status is status
    assert store.max_physical_offset() == 0


@pytest.mark.parametrize(("longest", "taken"), [(100, 2), (101, 1)])
def test_plain_messages_are_taken_up_to_the_one_whose_body_is_too_long(
    open_store: OpenFileStore, longest: int, taken: int
) -> None:
    store = open_store(max_message_size=100)
    put(store, message())
    places = store.put_plain(plain([0, 0], b"", bytes(longest)))
    assert len(places) == taken
    store.dispatch()


def test_plain_messages_of_a_queue_become_visible_with_the_end_of_the_last(open_store: OpenFileStore) -> None:
    store = open_store()
    put(store, message())
    places = store.put_plain(plain([0, 0, 0], b"", b"", bytes(100)))
    store.dispatcher.run(places.end_offset - 1)
    assert store.max_offset_in_queue("TopicA", 0) == 1
    store.dispatcher.run(places.end_offset)
    assert store.max_offset_in_queue("TopicA", 0) == 4


def test_plain_messages_are_found_before_they_are_visible(open_store: OpenFileStore) -> None:
    """The first message is shorter than they are."""
    store = open_store()
    put(store, message(queue_id=1))
    store.put_message(message())
    places = store.put_plain(plain([0, 0], b"first" * 40, b"second" * 40))
    found = [decode_message(store.look_message(offset) or b"").body for offset in places.physical_offsets[:2]]
    assert found == [b"first" * 40, b"second" * 40]
    store.dispatch()


@pytest.mark.parametrize("has_batch_queues", [False, True])
@pytest.mark.parametrize("in_a_batch", [False, True])
def test_log_knows_when_its_last_message_was_stored(
    open_store: OpenFileStore,
    clock: SettableClock,
    known_topics: dict[str, bool],
    has_batch_queues: bool,
    in_a_batch: bool,
) -> None:
    known_topics["TopicA"] = has_batch_queues
    store = open_store()
    put(store, message())
    clock.now += 1000
    status = store.put_messages(batched([message()])).status if in_a_batch else put(store, message())[0].status
    assert (status, store._log.last_store_timestamp) == (PutStatus.PUT_OK, START_MS + 1000)
    store.dispatch()
