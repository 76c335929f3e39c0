"""Records read in blocks against the plain way: equal wherever a row is made, and nothing unsound is passed."""

from __future__ import annotations

from mmap import mmap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.captures import STORES, stored_records
from twisted_mq.protocol.errors import RecordError
from twisted_mq.protocol.layouts.ordinary_records import (
    POSITION,
    QUEUE_ID,
    QUEUE_OFFSET,
    SIZE,
    TIMESTAMP,
    Row,
    pass_records,
    read_rows,
)
from twisted_mq.protocol.layouts.record_codec import dispatch_fields, encode_record
from twisted_mq.protocol.names.system_topics import SCHEDULE_TOPIC

BASE = 1000
HOST = b"\x7f\x00\x00\x01\x00\x00\x2a\x9f"


def record(
    topic: bytes = b"TopicA", body: bytes = b"hello", properties: bytes = b"", position: int = 0, **fields: int
) -> bytes:
    values = {"queue_id": 3, "queue_offset": 7, "born_timestamp": 1, "store_timestamp": 2, **fields}
    offset = BASE + position
    return encode_record(topic, body, properties, physical_offset=offset, born_host=HOST, store_host=HOST, **values)


FIRST = record(body=b"a" * (100 - len(record(body=b""))))
"""100 bytes."""


def mapped(data: bytes) -> mmap:
    mapping = mmap(-1, len(data) + 64)
    mapping[: len(data)] = data
    return mapping


def rows_of(data: bytes) -> tuple[list[Row], int, int]:
    """The rows, how far the records were passed, and how far they were read."""
    mapping, rows = mapped(data), list[Row]()
    passed = pass_records(mapping, BASE, 0, len(data))
    return rows, passed, read_rows(mapping, 0, passed, passed, rows)


def plain(data: bytes, position: int = 0) -> Row:
    one = dispatch_fields(data, position)
    assert one.physical_offset == BASE + position
    return (
        one.topic.encode(), one.queue_id, one.queue_offset, position, one.size, one.tags_code, one.store_timestamp,
        one.sys_flag,
    )  # fmt: skip


@pytest.mark.parametrize("store", STORES)
def test_records_of_apaches_broker(store: str) -> None:
    found = 0
    for _, data in stored_records(store):
        try:
            one = dispatch_fields(data, check_crc=True)
        except RecordError:
            continue
        mapping, rows = mapped(data), list[Row]()
        passed = pass_records(mapping, one.physical_offset, 0, len(data))
        read_rows(mapping, 0, passed, passed, rows)
        for row in rows:
            code = row[5] if one.topic == SCHEDULE_TOPIC else one.tags_code
            expected = one.topic.encode(), one.queue_id, one.queue_offset, 0, one.size, code
            assert row == (*expected, one.store_timestamp, one.sys_flag)
        found += len(rows)
    assert found


TEXT = st.sampled_from(["TAGS", "KEYS", "TagA", "XTAGS", "", "WAIT", "grün", "DELAY", "3", "TAGS\x01x"])
PROPERTIES = st.lists(st.tuples(TEXT, TEXT), max_size=4).map(
    lambda pairs: "".join(f"{name}\x01{value}\x02" for name, value in pairs).encode()
)


@given(
    topic=st.sampled_from([b"TopicA", b"%RETRY%G", b"x" * 127, b"TAGS\x01"]),
    body=st.binary(max_size=50),
    properties=PROPERTIES,
    sys_flag=st.sampled_from([0, 1, 2, 4, 8, 12]),
    cut=st.booleans(),
)
def test_made_up_records(topic: bytes, body: bytes, properties: bytes, sys_flag: int, cut: bool) -> None:
    """With and without the last separator, which old clients leave out."""
    data = record(topic, body, properties[:-1] if cut else properties, sys_flag=sys_flag)
    rows, passed, _ = rows_of(data)
    assert passed == len(data)
    assert rows in ([], [plain(data)])


def test_ordinary_records_are_rows() -> None:
    first = record(properties=b"KEYS\x01k\x02TAGS\x01TagA\x02WAIT\x01true\x02")
    data = first + record(body=b"", position=len(first), queue_offset=8)
    rows, passed, read = rows_of(data)
    assert (passed, read) == (len(data), len(data))
    assert rows == [
        (b"TopicA", 3, 7, 0, len(first), 2598919, 2, 0),
        (b"TopicA", 3, 8, len(first), len(data) - len(first), 0, 2, 0),
    ]


def test_values_of_a_row_have_names() -> None:
    data = record(queue_id=5, queue_offset=9, store_timestamp=77, sys_flag=1)
    ((row, *_), _, _) = rows_of(data)
    assert [row[place] for place in (QUEUE_ID, QUEUE_OFFSET, POSITION, SIZE, TIMESTAMP)] == [5, 9, 0, len(data), 77]


def test_longest_topic_of_version_1_is_ordinary() -> None:
    data = record(b"x" * 127)
    assert rows_of(data) == ([plain(data)], len(data), len(data))


@pytest.mark.parametrize(
    "other",
    [record(b"x" * 128, position=100), record(position=99), bytes(200)],
    ids=["version 2", "elsewhere", "nothing"],
)
def test_passing_stops_before_what_is_no_record_of_version_1(other: bytes) -> None:
    assert pass_records(mapped(FIRST + other), BASE, 0, 100 + len(other)) == 100


@pytest.mark.parametrize(
    "odd",
    [
        encode_record(
            b"TopicA", b"", b"", queue_id=0, queue_offset=0, physical_offset=BASE + 100, born_timestamp=0,
            born_host=bytes(20), store_timestamp=0, store_host=HOST,
        ),
        record(position=100, sys_flag=128),
        record(position=100, queue_id=-1),
        record(position=100, queue_offset=-1),
    ],
    ids=["IPv6", "inner batch", "queue id", "queue offset"],
)  # fmt: skip
def test_reading_stops_before_what_is_odd(odd: bytes) -> None:
    rows, passed, read = rows_of(FIRST + odd)
    assert (len(rows), passed, read) == (1, len(FIRST + odd), 100)


@pytest.mark.parametrize("check_crc", [False, True])
def test_body_that_has_another_checksum_is_odd_where_that_is_asked(check_crc: bool) -> None:
    data = record().replace(b"hello", b"jello")
    rows: list[Row] = []
    asked = {"check_crc": True} if check_crc else {}
    assert read_rows(mapped(data), 0, len(data), len(data), rows, **asked) == (0 if check_crc else len(data))
    assert len(rows) == (not check_crc)


def test_half_a_record_is_not_passed() -> None:
    data = record()
    for end in range(len(data)):
        assert pass_records(mapped(data), BASE, 0, end) == 0


def test_reading_stops_at_a_record_that_ends_behind_the_end() -> None:
    first = record()
    data = first + record(position=len(first))
    rows: list[Row] = []
    assert read_rows(mapped(data), 0, len(first) + 1, len(data) - 1, rows) == len(first)
    assert len(rows) == 1


@given(position=st.integers(0, 200), value=st.integers(1, 255))
def test_damage_never_raises_and_never_makes_a_row_that_the_plain_way_refuses(position: int, value: int) -> None:
    data = bytearray(record(properties=b"TAGS\x01TagA\x02"))
    data[position % len(data)] ^= value
    rows, _, _ = rows_of(bytes(data))
    if rows:
        topic = rows[0][0].decode(errors="replace").encode()
        assert (topic, *rows[0][1:]) == plain(bytes(data))
