"""Promises of every message store for topics whose queues count the messages inside records (queue.type=BatchCQ)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.storage.conftest import START_MS, OpenFileStore, SettableClock, message, put, tagged
from tests.support.batches import batched
from twisted_mq.protocol.boundary_type import BoundaryType
from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.protocol.layouts.batch_entry import encode_batch, unwrapped
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.protocol.messages.message import Message
from twisted_mq.storage.interfaces import GetResult, GetStatus, InnerMessage, PutStatus

TOPIC = "Batches"
FLAGS = MessageSysFlag.INNER_BATCH_FLAG | MessageSysFlag.NEED_UNWRAP_FLAG


def inner_batch(*bodies: bytes, tags: str = "", **fields: Any) -> InnerMessage:
    """Messages in one record, as a broker puts them."""
    properties = {"UNIQ_KEY": "KEY", **({"TAGS": tags} if tags else {}), "INNER_NUM": str(len(bodies))}
    text = "".join(f"{name}\x01{value}\x02" for name, value in properties.items()).encode()
    body = encode_batch([Message(TOPIC, one, properties={"own": one.hex() or "empty"}) for one in bodies])
    values = {"topic": TOPIC, "sys_flag": FLAGS, "properties": text, "property_map": properties} | fields
    return message(body=body, **values)


@pytest.fixture
def batches(any_store: Any, known_topics: dict[str, bool]) -> Any:
    """Each of the two stores, with topics of both kinds."""
    known_topics.update({TOPIC: True, "TopicA": False})
    return any_store


def read(store: Any, offset: int, count: int = 32, tags: set[int] | None = None, size: int = 1 << 20) -> GetResult:
    found: GetResult = store.get_message(TOPIC, 0, offset, count, size, tags)
    return found


def brief(result: GetResult) -> tuple[GetStatus, int, int, int, int, int]:
    bounds = result.next_begin_offset, result.min_offset, result.max_offset
    return result.status, *bounds, len(result.records), result.message_count


def consumed(result: GetResult) -> list[tuple[int, bytes]]:
    """(queue offset, body) of all messages, as a reader takes records apart."""
    messages = [one for record in result.records for one in unwrapped(decode_message(record))]
    return [(one.queue_offset, one.body) for one in messages]


def test_a_batch_takes_one_record_and_as_many_offsets_as_messages(batches: Any) -> None:
    first, second, third = put(
        batches, inner_batch(b"a", b"b", b"c"), message(TOPIC, body=b"d"), inner_batch(b"e", b"f")
    )
    assert [one.queue_offset for one in (first, second, third)] == [0, 3, 4]
    assert [one.message_count for one in (first, second, third)] == [3, 1, 2]
    assert (batches.min_offset_in_queue(TOPIC, 0), batches.max_offset_in_queue(TOPIC, 0)) == (0, 6)
    found = read(batches, 0)
    assert brief(found) == (GetStatus.FOUND, 6, 0, 6, 3, 6)
    assert consumed(found) == list(enumerate([b"a", b"b", b"c", b"d", b"e", b"f"]))
    properties = decode_message(found.records[2]).properties
    assert (properties["INNER_BASE"], properties["INNER_NUM"]) == ("4", "2")
    assert "INNER_BASE" not in decode_message(found.records[1]).properties


def test_nothing_is_visible_before_dispatch(batches: Any) -> None:
    batches.put_message(inner_batch(b"a", b"b"))
    assert batches.max_offset_in_queue(TOPIC, 0) == 0
    assert brief(read(batches, 0)) == (GetStatus.NO_MESSAGE_IN_QUEUE, 0, 0, 0, 0, 0)
    assert batches.put_message(inner_batch(b"c")).queue_offset == 2
    batches.dispatch()
    assert batches.max_offset_in_queue(TOPIC, 0) == 3


def test_the_listener_hears_of_each_record_once(batches: Any) -> None:
    heard: list[Any] = []
    batches.put_message(inner_batch(b"a", b"b", tags="A", tags_code=65))
    batches.put_message(message(TOPIC))
    batches.dispatch(lambda *event: heard.append(event))
    assert heard == [(TOPIC, 0, 0, 65, START_MS), (TOPIC, 0, 2, 0, START_MS)]


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        pytest.param(-1, (GetStatus.OFFSET_TOO_SMALL, 0, 0, 5, 0, 0), id="below"),
        pytest.param(1, (GetStatus.FOUND, 5, 0, 5, 2, 5), id="inside the first"),
        pytest.param(2, (GetStatus.FOUND, 5, 0, 5, 2, 5), id="last of the first"),
        pytest.param(3, (GetStatus.FOUND, 5, 0, 5, 1, 2), id="second"),
        pytest.param(5, (GetStatus.OFFSET_OVERFLOW_ONE, 5, 0, 5, 0, 0), id="end"),
        pytest.param(6, (GetStatus.OFFSET_OVERFLOW_BADLY, 5, 0, 5, 0, 0), id="past the end"),
    ],
)
def test_an_offset_inside_a_batch_gives_the_whole_batch(batches: Any, offset: int, expected: tuple[Any, ...]) -> None:
    put(batches, inner_batch(b"a", b"b", b"c"), inner_batch(b"d", b"e"))
    assert brief(read(batches, offset)) == expected


def test_reader_of_a_batch_that_is_not_shown_yet_waits(batches: Any) -> None:
    put(batches, inner_batch(b"a", b"b"))
    batches.put_message(inner_batch(b"c", b"d"))
    assert brief(read(batches, 3)) == (GetStatus.OFFSET_OVERFLOW_ONE, 3, 0, 2, 0, 0)


@pytest.mark.parametrize(("count", "messages"), [(1, 3), (3, 3), (4, 3), (5, 5), (6, 5), (7, 7)])
def test_a_pull_counts_messages_and_gives_one_record_at_least(batches: Any, count: int, messages: int) -> None:
    put(batches, inner_batch(b"a", b"b", b"c"), inner_batch(b"d", b"e"), inner_batch(b"f", b"g"))
    found = read(batches, 0, count)
    assert (found.message_count, found.next_begin_offset) == (messages, messages)


def test_a_pull_stops_at_the_bytes(batches: Any) -> None:
    put(batches, *[inner_batch(bytes([65]) * 300, b"b") for _ in range(3)])
    size = len(read(batches, 0).records[0])
    assert [read(batches, 0, size=limit).message_count for limit in (1, 2 * size - 1, 2 * size)] == [2, 2, 4]


def test_tags_choose_whole_records(batches: Any) -> None:
    put(batches, inner_batch(b"a", b"b"), inner_batch(b"c", b"d", tags="A", tags_code=65), tagged("A", 65, topic=TOPIC))
    found = read(batches, 0, tags={65})
    assert brief(found) == (GetStatus.FOUND, 5, 0, 5, 2, 3)
    assert brief(read(batches, 0, tags={66})) == (GetStatus.NO_MATCHED_MESSAGE, 5, 0, 5, 0, 0)
    assert batches.get_message(TOPIC, 0, 0, 32, 1 << 20, None, lambda record: False).status is not GetStatus.FOUND


def test_a_pull_reads_one_queue_file_at_a_time(batches: Any) -> None:
    """A file of the test's configuration holds four entries."""
    put(batches, *[inner_batch(b"a", b"b") for _ in range(6)])
    assert [read(batches, start).next_begin_offset for start in (0, 7, 8)] == [8, 8, 12]


def test_offsets_by_time_are_those_of_records(batches: Any, clock: SettableClock) -> None:
    """Like Apache's: where no record has the time the next younger one counts, and the last one for all later times."""
    for delta in (10, 10, 20, 20, 40):
        clock.now = START_MS + delta
        put(batches, inner_batch(b"a", b"b"))
    found = [
        tuple(
            batches.offset_by_time(TOPIC, 0, START_MS + delta, which)
            for which in (BoundaryType.LOWER, BoundaryType.UPPER)
        )
        for delta in (0, 10, 15, 20, 30, 40, 50)
    ]
    assert found == [(0, 0), (0, 2), (4, 4), (4, 6), (8, 8), (8, 8), (8, 8)]
    times = [batches.store_timestamp(TOPIC, 0, offset) for offset in (-1, 0, 3, 4, 9, 10)]
    assert times == [-1, START_MS + 10, START_MS + 10, START_MS + 20, START_MS + 40, -1]
    assert batches.earliest_message_time(TOPIC, 0) == START_MS + 10
    assert batches.offset_by_time(TOPIC, 1, START_MS, BoundaryType.LOWER) == 0


def test_entries_are_records(batches: Any) -> None:
    results = put(batches, inner_batch(b"a", b"b"), message(TOPIC), inner_batch(b"c", b"d"))
    starts = [result.physical_offset for result in results]
    assert [entry[0] for entry in batches.queue_entries(TOPIC, 0, 1, 9)] == starts
    assert [entry[0] for entry in batches.queue_entries(TOPIC, 0, 2, 1)] == starts[1:2]
    assert batches.queue_entries(TOPIC, 0, 5, 1) == []
    assert [batches.is_in_memory(TOPIC, 0, offset) for offset in (0, 4, 5)] == [True, True, False]


def test_messages_put_as_separate_records_count_one_each(batches: Any) -> None:
    put(batches, inner_batch(b"a", b"b"))
    result = batches.put_messages(batched([message(TOPIC, body=bytes([number])) for number in range(3)]))
    batches.dispatch()
    assert (result.queue_offset, result.message_count) == (2, 3)
    assert consumed(read(batches, 2)) == [(2, b"\0"), (3, b"\1"), (4, b"\2")]
    assert put(batches, inner_batch(b"z"))[0].queue_offset == 5


def test_messages_put_apart_are_no_inner_batches(batches: Any) -> None:
    assert batches.put_messages(batched([message(TOPIC, sys_flag=FLAGS)])).status is PutStatus.MESSAGE_ILLEGAL
    assert batches.max_physical_offset() == 0


@pytest.mark.parametrize("number", ["0", "-1", "32768", "many", ""])
def test_a_batch_with_an_impossible_count_is_refused(batches: Any, number: str) -> None:
    wrong = inner_batch(b"a", property_map={"INNER_NUM": number})
    assert batches.put_message(wrong).status is PutStatus.MESSAGE_ILLEGAL
    assert batches.max_physical_offset() == 0


def test_flag_and_kind_of_queue_must_agree(batches: Any) -> None:
    wrong = [
        inner_batch(b"a", topic="TopicA"),
        message(TOPIC, property_map={"INNER_NUM": "2"}),
        inner_batch(b"a", sys_flag=FLAGS | MessageSysFlag.TRANSACTION_PREPARED_TYPE),
    ]
    assert {batches.put_message(one).status for one in wrong} == {PutStatus.MESSAGE_ILLEGAL}
    assert batches.max_physical_offset() == 0


def test_properties_that_the_offset_makes_too_long_are_refused(batches: Any) -> None:
    """With room for the base the longest possible ones are refused only because a log file is that small here."""
    longest = 32767 - len("INNER_BASE\x010\x02")
    statuses = [
        batches.put_message(inner_batch(b"a", properties=b"x\x01" + bytes([65]) * (size - 3) + b"\x02")).status
        for size in (longest, longest + 1)
    ]
    assert statuses == [PutStatus.MESSAGE_ILLEGAL, PutStatus.PROPERTIES_SIZE_EXCEEDED]


def test_a_client_cannot_choose_the_base(batches: Any) -> None:
    forged = {"INNER_NUM": "2", "INNER_BASE": "77"}
    text = "".join(f"{name}\x01{value}\x02" for name, value in forged.items()).encode()
    put(batches, message(TOPIC), inner_batch(b"a", b"b", properties=text, property_map=forged))
    (record,) = read(batches, 1).records
    assert decode_message(record).properties == {"INNER_NUM": "2", "INNER_BASE": "1"}


def test_half_messages_enter_no_batch_queue(batches: Any) -> None:
    put(batches, message(TOPIC, sys_flag=MessageSysFlag.TRANSACTION_PREPARED_TYPE), message(TOPIC, sys_flag=8))
    assert batches.max_offset_in_queue(TOPIC, 0) == 1


def test_a_deleted_topic_may_come_back_as_the_other_kind(batches: Any, known_topics: dict[str, bool]) -> None:
    put(batches, inner_batch(b"a", b"b"), message("TopicA"))
    batches.put_message(inner_batch(b"pending", b"too"))
    batches.delete_topics({TOPIC})
    batches.dispatch()
    assert (batches.topics(), batches.queue_ids(TOPIC)) == (["TopicA"], [])
    known_topics.update({TOPIC: False, "TopicA": True})
    assert put(batches, message(TOPIC), message(TOPIC))[1].queue_offset == 1
    assert batches.put_message(inner_batch(b"a")).status is PutStatus.MESSAGE_ILLEGAL
    assert batches.topics() == [TOPIC, "TopicA"]


def test_a_slave_serves_a_masters_batches(
    batches: Any, open_store: OpenFileStore, tmp_path: Any, known_topics: dict[str, bool]
) -> None:
    """Also where the topic's type reaches it later than the first messages."""
    master = open_store(tmp_path / "master")
    put(
        master, message(TOPIC, body=b"a"), message(TOPIC, body=b"b"), inner_batch(b"c", b"d"), message(TOPIC, body=b"e")
    )
    known_topics.clear()
    log = bytes(master.read_log(0, 1 << 20))
    first = len(master.look_message(0))
    for start, end in ((0, first), (first, first + 50), (first + 50, len(log))):
        batches.append_log(start, log[start:end])
        batches.dispatch()
    assert consumed(read(batches, 0)) == list(enumerate([b"a", b"b", b"c", b"d", b"e"]))
    assert batches.max_offset_in_queue(TOPIC, 0) == 5
    assert [batches.store_timestamp(TOPIC, 0, offset) for offset in (0, 4)] == [START_MS, START_MS]


def test_a_scan_through_records_ends_when_its_time_is_up(
    open_store: OpenFileStore, known_topics: dict[str, bool]
) -> None:
    known_topics[TOPIC] = True
    clock = [0.0]
    store = open_store(mapper_file_size_batch_consume_queue=4600, keywords={"monotonic": lambda: clock[0]})
    put(store, *[inner_batch(b"a", b"b") for _ in range(20)])

    def refused(record: memoryview | bytes) -> bool:
        clock[0] += 0.0051
        return False

    result = store.get_message(TOPIC, 0, 0, 32, 1 << 20, None, refused)
    assert brief(result) == (GetStatus.NO_MATCHED_MESSAGE, 8, 0, 40, 0, 0)
