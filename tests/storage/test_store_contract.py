"""Promises of every message store, for the file store and its twin in memory."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from zope.interface.verify import verifyObject

from tests.storage.conftest import START_MS, SettableClock, message, put, tagged
from tests.support.batches import batched
from twisted_mq.protocol.boundary_type import BoundaryType
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.storage.errors import StoreClosed
from twisted_mq.storage.interfaces import (
    GetResult,
    GetStatus,
    IMessageStore,
    Places,
    PlainMessages,
    PutResult,
    PutStatus,
)

RECORD_BYTES = 91 + len("TopicA") + len("hello")


def brief(result: GetResult) -> tuple[GetStatus, int, int, int, int]:
    return result.status, result.next_begin_offset, result.min_offset, result.max_offset, len(result.records)


def bodies(result: GetResult) -> list[bytes]:
    return [decode_message(record).body for record in result.records]


def fields(result: PutResult) -> tuple[Any, ...]:
    return (
        result.status,
        result.queue_offset,
        result.physical_offset,
        result.end_offset,
        result.store_timestamp,
        result.message_count,
        list(result.physical_offsets),
    )


def test_store_provides_the_interface(any_store: Any) -> None:
    assert verifyObject(IMessageStore, any_store)


def test_put_answers_where_the_message_went(any_store: Any) -> None:
    first, second = put(any_store, message(), message(queue_id=3))
    assert fields(first) == (PutStatus.PUT_OK, 0, 0, RECORD_BYTES, START_MS, 1, [])
    assert fields(second) == (PutStatus.PUT_OK, 0, RECORD_BYTES, 2 * RECORD_BYTES, START_MS, 1, [])
    assert (any_store.min_physical_offset(), any_store.max_physical_offset()) == (0, 2 * RECORD_BYTES)


def test_record_holds_all_that_was_put(any_store: Any) -> None:
    sent = message(
        body=b"payload",
        properties=b"TAGS\x01TagA\x02KEYS\x01k1 k2\x02",
        property_map={"TAGS": "TagA", "KEYS": "k1 k2"},
        tags_code=2598919,
        flag=7,
        sys_flag=0,
        reconsume_times=2,
        prepared_transaction_offset=99,
    )
    put(any_store, message())
    (result,) = put(any_store, sent)
    stored = decode_message(any_store.look_message(result.physical_offset))
    assert (stored.topic, stored.queue_id, stored.queue_offset, stored.physical_offset) == ("TopicA", 0, 1, 102)
    assert (stored.body, stored.flag, stored.reconsume_times) == (b"payload", 7, 2)
    assert stored.prepared_transaction_offset == 99
    assert stored.properties == {"TAGS": "TagA", "KEYS": "k1 k2"}
    assert (stored.born_timestamp, stored.store_timestamp) == (START_MS - 5, START_MS)
    assert (stored.born_host, stored.store_host) == ("10.0.0.1:10911", "10.0.0.1:10911")


def test_message_is_visible_only_after_dispatch(any_store: Any) -> None:
    any_store.put_message(message())
    assert any_store.max_offset_in_queue("TopicA", 0) == 0
    assert brief(any_store.get_message("TopicA", 0, 0, 32, 1 << 20, None)) == (
        GetStatus.NO_MESSAGE_IN_QUEUE,
        0,
        0,
        0,
        0,
    )
    any_store.dispatch()
    assert any_store.max_offset_in_queue("TopicA", 0) == 1
    assert bodies(any_store.get_message("TopicA", 0, 0, 32, 1 << 20, None)) == [b"hello"]


def test_listener_hears_of_every_message_in_order(any_store: Any, clock: SettableClock) -> None:
    heard: list[tuple[Any, ...]] = []
    any_store.put_message(tagged("A", 65))
    clock.now += 10
    any_store.put_message(tagged("B", 66, queue_id=1))
    assert heard == []
    any_store.dispatch(lambda *event: heard.append(event))
    assert heard == [("TopicA", 0, 0, 65, START_MS), ("TopicA", 1, 0, 66, START_MS + 10)]


def test_listener_may_put_and_read(any_store: Any) -> None:
    seen: list[int] = []

    def listener(topic: str, queue_id: int, offset: int, tags_code: int, stored: int) -> None:
        seen.append(any_store.max_offset_in_queue(topic, queue_id))
        if len(seen) == 1:
            any_store.put_message(message(body=b"from the listener"))

    any_store.put_message(message())
    any_store.put_message(message())
    any_store.dispatch(listener)
    assert (seen, any_store.max_offset_in_queue("TopicA", 0)) == ([1, 2], 2)
    any_store.dispatch(listener)
    assert (seen, any_store.max_offset_in_queue("TopicA", 0)) == ([1, 2, 3], 3)


def test_listener_that_raises_loses_and_repeats_nothing(any_store: Any) -> None:
    heard: list[int] = []

    def listener(topic: str, queue_id: int, offset: int, tags_code: int, stored: int) -> None:
        heard.append(offset)
        if offset == 1:
            raise LookupError("listener")

    for _ in range(4):
        any_store.put_message(message())
    with pytest.raises(LookupError):
        any_store.dispatch(listener)
    any_store.dispatch(listener)
    assert heard == [0, 1, 2, 3]
    assert any_store.max_offset_in_queue("TopicA", 0) == 4


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        pytest.param(-1, (GetStatus.OFFSET_TOO_SMALL, 0, 0, 3, 0), id="below"),
        pytest.param(0, (GetStatus.FOUND, 3, 0, 3, 3), id="first"),
        pytest.param(2, (GetStatus.FOUND, 3, 0, 3, 1), id="last"),
        pytest.param(3, (GetStatus.OFFSET_OVERFLOW_ONE, 3, 0, 3, 0), id="end"),
        pytest.param(4, (GetStatus.OFFSET_OVERFLOW_BADLY, 3, 0, 3, 0), id="past the end"),
    ],
)
def test_next_offset_for_each_place_in_a_queue(any_store: Any, offset: int, expected: tuple[Any, ...]) -> None:
    put(any_store, *[message() for _ in range(3)])
    assert brief(any_store.get_message("TopicA", 0, offset, 32, 1 << 20, None)) == expected


@pytest.mark.parametrize(
    ("shown", "offset", "expected"),
    [
        pytest.param(0, 1, (GetStatus.OFFSET_OVERFLOW_ONE, 1, 0, 0, 0), id="nothing is shown yet"),
        pytest.param(1, 3, (GetStatus.OFFSET_OVERFLOW_ONE, 3, 0, 1, 0), id="behind what waits"),
        pytest.param(1, 4, (GetStatus.OFFSET_OVERFLOW_BADLY, 1, 0, 1, 0), id="behind all"),
    ],
)
def test_reader_of_what_is_not_shown_yet_waits(
    any_store: Any, shown: int, offset: int, expected: tuple[Any, ...]
) -> None:
    """A slave can show a message before its master does, which waits for its own disk."""
    put(any_store, *[message() for _ in range(shown)])
    for _ in range(3 - shown):
        any_store.put_message(message())
    assert brief(any_store.get_message("TopicA", 0, offset, 32, 1 << 20, None)) == expected


def test_unknown_queue_is_an_empty_one(any_store: Any) -> None:
    assert brief(any_store.get_message("Nobody", 0, 7, 32, 1 << 20, None)) == (
        GetStatus.NO_MESSAGE_IN_QUEUE,
        0,
        0,
        0,
        0,
    )
    assert (any_store.min_offset_in_queue("Nobody", 0), any_store.max_offset_in_queue("Nobody", 0)) == (0, 0)
    assert any_store.offset_by_time("Nobody", 0, START_MS, BoundaryType.LOWER) == 0
    assert (any_store.store_timestamp("Nobody", 0, 0), any_store.earliest_message_time("Nobody", 0)) == (-1, -1)
    assert not any_store.is_in_memory("Nobody", 0, 0)
    assert any_store.topics() == []


def test_tags_pass_over_other_entries(any_store: Any) -> None:
    put(any_store, tagged("A", 65), tagged("B", 66), tagged("A", 65), tagged("B", 66))
    found = any_store.get_message("TopicA", 0, 0, 32, 1 << 20, {65})
    assert brief(found) == (GetStatus.FOUND, 4, 0, 4, 2)
    assert [decode_message(record).queue_offset for record in found.records] == [0, 2]
    assert brief(any_store.get_message("TopicA", 0, 1, 32, 1 << 20, {67})) == (
        GetStatus.NO_MATCHED_MESSAGE,
        4,
        0,
        4,
        0,
    )


def test_records_that_do_not_match_are_passed_over_like_other_tags(any_store: Any) -> None:
    """The test sees the records whose tags code is wanted, and only those."""
    put(any_store, tagged("A", 65), tagged("B", 66), tagged("A", 65), tagged("A", 65))
    seen: list[int] = []

    def test(record: memoryview | bytes) -> bool:
        seen.append(decode_message(record).queue_offset)
        return seen[-1] in (2, 3)

    found = any_store.get_message("TopicA", 0, 0, 32, 1 << 20, {65}, test)
    assert brief(found) == (GetStatus.FOUND, 4, 0, 4, 2)
    assert ([decode_message(record).queue_offset for record in found.records], seen) == ([2, 3], [0, 2, 3])
    assert found.size_bytes == sum(map(len, found.records))
    none = any_store.get_message("TopicA", 0, 0, 32, 1 << 20, None, lambda _: False)
    assert brief(none) == (GetStatus.NO_MATCHED_MESSAGE, 4, 0, 4, 0)


def test_pull_stops_at_the_count(any_store: Any) -> None:
    put(any_store, *[message() for _ in range(5)])
    assert brief(any_store.get_message("TopicA", 0, 0, 2, 1 << 20, None)) == (GetStatus.FOUND, 2, 0, 5, 2)


def test_pull_stops_at_the_bytes_but_gives_one_message(any_store: Any) -> None:
    put(any_store, *[message(body=bytes(150)) for _ in range(3)])
    record = 91 + 6 + 150
    assert brief(any_store.get_message("TopicA", 0, 0, 32, 1, None)) == (GetStatus.FOUND, 1, 0, 3, 1)
    assert brief(any_store.get_message("TopicA", 0, 0, 32, 2 * record - 1, None)) == (GetStatus.FOUND, 1, 0, 3, 1)
    result = any_store.get_message("TopicA", 0, 0, 32, 2 * record, None)
    assert (brief(result), result.size_bytes) == ((GetStatus.FOUND, 2, 0, 3, 2), 2 * record)


def test_pull_reads_one_queue_file_at_a_time(any_store: Any) -> None:
    put(any_store, *[message() for _ in range(25)])
    assert [
        any_store.get_message("TopicA", 0, start, 32, 1 << 20, None).next_begin_offset for start in (0, 10, 20)
    ] == [
        10,
        20,
        25,
    ]


def test_offsets_by_time(any_store: Any, clock: SettableClock) -> None:
    for delta in (10, 10, 10, 30, 30):
        clock.now = START_MS + delta
        put(any_store, message())
    found = [
        (
            any_store.offset_by_time("TopicA", 0, START_MS + delta, BoundaryType.LOWER),
            any_store.offset_by_time("TopicA", 0, START_MS + delta, BoundaryType.UPPER),
        )
        for delta in (0, 10, 20, 30, 40)
    ]
    assert found == [(0, 0), (0, 2), (3, 2), (3, 4), (5, 4)]
    assert [any_store.store_timestamp("TopicA", 0, offset) for offset in (-1, 0, 4, 5)] == [
        -1,
        START_MS + 10,
        START_MS + 30,
        -1,
    ]
    assert any_store.earliest_message_time("TopicA", 0) == START_MS + 10


def test_batch_is_stored_back_to_back(any_store: Any) -> None:
    put(any_store, message())
    result = any_store.put_messages(batched([message(body=bytes([number])) for number in range(3)]))
    any_store.dispatch()
    size = 91 + 6 + 1
    starts = [RECORD_BYTES, RECORD_BYTES + size, RECORD_BYTES + 2 * size]
    assert fields(result) == (PutStatus.PUT_OK, 1, RECORD_BYTES, RECORD_BYTES + 3 * size, START_MS, 3, starts)
    assert bodies(any_store.get_message("TopicA", 0, 1, 32, 1 << 20, None)) == [b"\0", b"\1", b"\2"]


@pytest.mark.parametrize(
    "batch",
    [
        pytest.param([], id="empty"),
        pytest.param([message(sys_flag=4), message()], id="transaction"),
        pytest.param([message(property_map={"DELAY": "1"}), message()], id="delay"),
        pytest.param([message(topic="a/b")], id="name"),
        pytest.param([message(body=bytes(2000)) for _ in range(3)], id="longer than a file"),
    ],
)
def test_batch_that_is_illegal_stores_nothing(any_store: Any, batch: list[Any]) -> None:
    assert any_store.put_messages(batched(batch)).status is PutStatus.MESSAGE_ILLEGAL
    any_store.dispatch()
    assert (any_store.max_physical_offset(), any_store.max_offset_in_queue("TopicA", 0)) == (0, 0)


@pytest.mark.parametrize(
    ("wrong", "status"),
    [
        pytest.param(message(body=bytes((4 << 20) + 1)), PutStatus.MESSAGE_ILLEGAL, id="body"),
        pytest.param(message(body=bytes(4000)), PutStatus.MESSAGE_ILLEGAL, id="longer than a file"),
        pytest.param(message(properties=bytes(32768)), PutStatus.PROPERTIES_SIZE_EXCEEDED, id="properties"),
        pytest.param(message(topic="../x"), PutStatus.MESSAGE_ILLEGAL, id="path"),
        pytest.param(message(topic=".."), PutStatus.MESSAGE_ILLEGAL, id="dots"),
        pytest.param(message(topic=""), PutStatus.MESSAGE_ILLEGAL, id="empty"),
        pytest.param(message(topic="a b"), PutStatus.MESSAGE_ILLEGAL, id="space"),
        pytest.param(message(topic="a\0"), PutStatus.MESSAGE_ILLEGAL, id="null"),
        pytest.param(message(topic="T" * 128), PutStatus.MESSAGE_ILLEGAL, id="long"),
        pytest.param(message(topic="%RETRY%" + "T" * 249), PutStatus.MESSAGE_ILLEGAL, id="long retry"),
        pytest.param(message(queue_id=-1), PutStatus.MESSAGE_ILLEGAL, id="queue"),
    ],
)
def test_illegal_message_is_refused(any_store: Any, wrong: Any, status: PutStatus) -> None:
    assert any_store.put_message(wrong).status is status
    assert any_store.max_physical_offset() == 0


def test_longest_topic_is_stored(any_store: Any) -> None:
    (result,) = put(any_store, message(topic="T" * 127))
    assert result.status is PutStatus.PUT_OK


def test_long_retry_topic_is_stored_in_version_two(any_store: Any) -> None:
    topic = "%RETRY%" + "G" * 200
    (result,) = put(any_store, message(topic=topic))
    assert decode_message(any_store.look_message(result.physical_offset)).topic == topic
    assert any_store.topics() == [topic]


@pytest.mark.parametrize(("sys_flag", "visible"), [(0x4, 0), (0x8, 1), (0xC, 0)], ids=["half", "commit", "rollback"])
def test_half_and_rolled_back_messages_enter_no_queue(any_store: Any, sys_flag: int, visible: int) -> None:
    (result,) = put(any_store, message(sys_flag=sys_flag))
    assert result.queue_offset == 0
    assert any_store.max_offset_in_queue("TopicA", 0) == visible
    assert put(any_store, message())[0].queue_offset == visible


def test_delayed_message_carries_its_due_time(any_store: Any) -> None:
    heard: list[int] = []
    delayed = message(topic="SCHEDULE_TOPIC_XXXX", queue_id=2, properties=b"DELAY\x013", property_map={"DELAY": "3"})
    any_store.put_message(delayed)
    any_store.dispatch(lambda *event: heard.append(event[3]))
    assert heard == [START_MS + 10_000]


def test_look_message_finds_only_beginnings(any_store: Any) -> None:
    put(any_store, message(), message())
    found = [
        any_store.look_message(offset) is not None for offset in (-1, 0, 1, RECORD_BYTES, 2 * RECORD_BYTES, 1 << 40)
    ]
    assert found == [False, True, False, True, False, False]


def test_topics_and_queues_are_listed_and_deleted(any_store: Any) -> None:
    put(any_store, message(queue_id=2), message(), message(topic="TopicB"))
    assert (any_store.topics(), any_store.queue_ids("TopicA")) == (["TopicA", "TopicB"], [0, 2])
    any_store.put_message(message())
    any_store.delete_topics({"TopicA", "Unknown"})
    any_store.dispatch()
    assert (any_store.topics(), any_store.queue_ids("TopicA")) == (["TopicB"], [])
    assert any_store.max_offset_in_queue("TopicA", 0) == 0
    assert put(any_store, message())[0].queue_offset == 0


def test_recent_message_is_in_memory(any_store: Any) -> None:
    put(any_store, message())
    assert [any_store.is_in_memory("TopicA", 0, offset) for offset in (-1, 0, 1)] == [False, True, False]


def test_closed_store_takes_no_messages_and_closes_twice(any_store: Any) -> None:
    put(any_store, message())
    any_store.close()
    any_store.close()
    assert any_store.put_message(message()).status is PutStatus.SERVICE_NOT_AVAILABLE
    assert any_store.put_message(message(topic="TopicB")).status is PutStatus.SERVICE_NOT_AVAILABLE
    assert any_store.put_messages(batched([message()])).status is PutStatus.SERVICE_NOT_AVAILABLE
    with pytest.raises(StoreClosed):
        any_store.when_flushed(0, lambda done: None)


def test_records_stay_readable_while_the_store_is_open(any_store: Any) -> None:
    put(any_store, message(body=b"kept"))
    result = any_store.get_message("TopicA", 0, 0, 32, 1 << 20, None)
    put(any_store, *[message(body=bytes(500)) for _ in range(20)])
    assert bodies(result) == [b"kept"]
    assert all(memoryview(record).readonly for record in result.records)


def test_ipv6_born_host_keeps_the_store_time_readable(any_store: Any) -> None:
    host = bytes(15) + b"\x01" + (1234).to_bytes(4, "big")
    put(any_store, message(born_host=host, sys_flag=0x10))
    assert any_store.store_timestamp("TopicA", 0, 0) == START_MS


def test_queue_entries_say_where_records_lie(any_store: Any) -> None:
    put(any_store, message(), tagged("A", 65), message(queue_id=1))
    size = RECORD_BYTES + len("TAGS\x01A")
    entries = any_store.queue_entries("TopicA", 0, 0, 5)
    assert entries == [(0, RECORD_BYTES, 0), (RECORD_BYTES, size, 65)]
    assert any_store.queue_entries("TopicA", 0, 1, 1) == entries[1:]
    assert any_store.queue_entries("TopicA", 0, 2, 5) == []
    assert any_store.queue_entries("TopicA", 9, 0, 5) == []


def test_limits_can_be_changed_while_the_store_is_open(any_store: Any) -> None:
    config = attrs.evolve(any_store.config, max_message_size=4, max_transfer_count_on_message_in_memory=1)
    put(any_store, message(), message())
    any_store.configure(config)
    assert any_store.put_message(message(body=b"hello")).status is PutStatus.MESSAGE_ILLEGAL
    assert put(any_store, message(body=b"hell"))[0].status is PutStatus.PUT_OK
    assert len(any_store.get_message("TopicA", 0, 0, 32, 1 << 20, None).records) == 1


def plain(topic: str | list[str] = "TopicA", queue_ids: tuple[int, ...] = (0, 1, 0), **more: Any) -> PlainMessages:
    count = len(queue_ids)
    tags = "ABC"[:count]
    columns = {
        "bodies": [b"body%d" % index for index in range(count)],
        "properties": [[f"TAGS\x01{tag}\x02".encode() for tag in tags]],
        "tags_codes": [ord(tag) for tag in tags],
        "born_timestamps": [START_MS - index for index in range(count)],
        "born_host": b"\x0a\x00\x00\x01\x00\x00\x12\x34",
        "flag": 7,
        "sys_flag": 2,
        "reconsume_times": 2,
    }
    return PlainMessages(topic, queue_ids, **{**columns, **more})


def whole(store: Any, queues: int = 2) -> list[tuple[Any, list[bytes]]]:
    """The records of some queues as they lie in the log, and how the reads ended."""
    results = [store.get_message("TopicA", queue, 0, 32, 1 << 20, None) for queue in range(queues)]
    return [(brief(result), [bytes(record) for record in result.records]) for result in results]


@pytest.mark.parametrize("together", [True, False])
def test_plain_messages_are_stored_as_each_would_be(any_store: Any, together: bool) -> None:
    put(any_store, message(), message(queue_id=1))
    messages = plain()
    if together:
        places = any_store.put_plain(messages)
    else:
        results = put(any_store, *messages.each())
        places = Places(
            [one.queue_offset for one in results],
            [one.physical_offset for one in results],
            [one.end_offset - one.physical_offset for one in results],
            results[-1].end_offset,
        )
    size = 91 + len("TopicA") + len("body0") + len(b"TAGS\x01A\x02")
    begin = 2 * RECORD_BYTES
    assert (len(places), places.end_offset) == (3, begin + 3 * size)
    assert list(places.queue_offsets) == [1, 1, 2]
    assert list(places.physical_offsets[:3]) == [begin, begin + size, begin + 2 * size]
    assert list(places.sizes) == [size] * 3
    any_store.dispatch()
    first, second = whole(any_store)
    assert [decode_message(record).body for record in (*first[1], *second[1])] == [
        b"hello", b"body0", b"body2", b"hello", b"body1",
    ]  # fmt: skip
    stored = decode_message(first[1][1])
    assert (stored.flag, stored.sys_flag, stored.reconsume_times, stored.born_host) == (7, 2, 2, "10.0.0.1:4660")
    assert (stored.properties, stored.born_timestamp) == ({"TAGS": "A"}, START_MS)


def test_plain_messages_of_several_topics_are_stored_as_each_would_be(any_store: Any) -> None:
    put(any_store, message(), message(topic="Longer"), message(queue_id=1))
    before = any_store.max_physical_offset()
    places = any_store.put_plain(plain(["TopicA", "Longer", "Longer"], queue_ids=(1, 0, 0)))
    sizes = [91 + len(topic) + len("body0") + len(b"TAGS\x01A\x02") for topic in ("TopicA", "Longer", "Longer")]
    assert (list(places.queue_offsets), list(places.sizes)) == ([1, 1, 2], sizes)
    assert list(places.physical_offsets[:3]) == [before, before + sizes[0], before + sizes[0] + sizes[1]]
    assert places.end_offset == before + sum(sizes)
    assert places.by_queue == {("TopicA", 1): (1, sizes[0]), ("Longer", 0): (2, sizes[1] + sizes[2])}
    any_store.dispatch()
    for topic, queue_id, bodies in (("TopicA", 1, [b"body0"]), ("Longer", 0, [b"body1", b"body2"])):
        records = any_store.get_message(topic, queue_id, 1, 32, 1 << 20, None).records
        found = [decode_message(bytes(record)) for record in records]
        assert [(one.topic, one.queue_id, one.body) for one in found] == [(topic, queue_id, body) for body in bodies]


def test_plain_messages_are_taken_up_to_a_topic_that_is_not_there(any_store: Any) -> None:
    put(any_store, message())
    places = any_store.put_plain(plain(["TopicA", "Longer", "TopicA"], queue_ids=(0, 0, 0)))
    assert (len(places), list(places.queue_offsets)) == (1, [1])


def test_plain_messages_are_taken_up_to_a_queue_that_is_not_there(any_store: Any) -> None:
    put(any_store, message())
    places = any_store.put_plain(plain(queue_ids=(0, 5, 0)))
    assert (len(places), list(places.queue_offsets)) == (1, [1])
    assert len(any_store.put_plain(plain(queue_ids=(5,)))) == 0
    assert [result.queue_offset for result in put(any_store, message(), message(queue_id=5))] == [2, 0]


def test_plain_messages_are_taken_up_to_one_that_is_too_long(any_store: Any) -> None:
    put(any_store, message())
    any_store.configure(attrs.evolve(any_store.config, max_message_size=5))
    places = any_store.put_plain(plain(queue_ids=(0, 0, 0), bodies=[b"12345", b"123456", b"1"]))
    assert (len(places), list(places.queue_offsets)) == (1, [1])


def test_a_store_that_is_closed_takes_no_plain_messages(any_store: Any) -> None:
    put(any_store, message())
    any_store.close()
    assert len(any_store.put_plain(plain())) == 0


def test_listeners_hear_of_plain_messages_of_each_queue(any_store: Any) -> None:
    put(any_store, message(), message(queue_id=1))
    any_store.dispatch()
    heard: list[tuple[str, int, int, int, int]] = []
    any_store.put_plain(plain())
    any_store.dispatch(lambda *arrived: heard.append(arrived))
    assert {(queue_id, offset, code) for _, queue_id, offset, code, _ in heard} >= {
        (0, 1, ord("A")),
        (0, 2, ord("C")),
        (1, 1, ord("B")),
    }
