"""The quick reading of a record against the plain one: equal wherever it gives an answer at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import RecordError
from protocol.message_record import dispatch_fields, encode_record
from storage.quick_fields import Quick, quick_fields
from tests.support.captures import STORES, stored_records

HOST = b"\x7f\x00\x00\x01\x00\x00\x2a\x9f"


def record(topic: bytes = b"TopicA", body: bytes = b"hello", properties: bytes = b"", **fields: int) -> bytes:
    values = {"queue_id": 3, "queue_offset": 7, "physical_offset": 1000, "born_timestamp": 1, "store_timestamp": 2}
    return encode_record(topic, body, properties, born_host=HOST, store_host=HOST, **(values | fields))


def plain(data: bytes) -> Quick:
    one = dispatch_fields(data, check_crc=True)
    return (
        one.topic.encode(),
        one.queue_id,
        one.queue_offset,
        one.physical_offset,
        one.sys_flag,
        one.tags_code,
        one.store_timestamp,
    )


@pytest.mark.parametrize("store", STORES)
def test_records_of_apaches_broker(store: str) -> None:
    answers = 0
    for _, data in stored_records(store):
        try:
            expected = plain(data)
        except RecordError:
            assert quick_fields(memoryview(data)) is None
            continue
        found = quick_fields(memoryview(data))
        assert found in (None, expected)
        answers += found is not None
    assert answers


TEXT = st.sampled_from(["TAGS", "KEYS", "TagA", "XTAGS", "", "WAIT", "grün", "DELAY", "3", "TAGS\x01x"])
PROPERTIES = st.lists(st.tuples(TEXT, TEXT), max_size=4).map(
    lambda pairs: "".join(f"{name}\x01{value}\x02" for name, value in pairs).encode()
)


@given(
    topic=st.sampled_from([b"TopicA", b"SCHEDULE_TOPIC_XXXX", b"%RETRY%G", b"x" * 127]),
    body=st.binary(min_size=1, max_size=50),
    properties=PROPERTIES,
    sys_flag=st.sampled_from([0, 1, 2, 4, 8, 12]),
    cut=st.booleans(),
)
def test_made_up_records(topic: bytes, body: bytes, properties: bytes, sys_flag: int, cut: bool) -> None:
    """With and without the last separator, which old clients leave out."""
    data = record(topic, body, properties[:-1] if cut else properties, sys_flag=sys_flag)
    assert quick_fields(memoryview(data)) in (None, plain(data))


def test_ordinary_record_has_an_answer() -> None:
    data = record(properties=b"KEYS\x01k\x02TAGS\x01TagA\x02WAIT\x01true\x02")
    assert quick_fields(memoryview(data)) == (b"TopicA", 3, 7, 1000, 0, 2598919, 2)


@given(position=st.integers(0, 200), value=st.integers(1, 255))
def test_damage_never_raises_and_never_passes_the_body(position: int, value: int) -> None:
    data = bytearray(record(properties=b"TAGS\x01TagA\x02"))
    data[position % len(data)] ^= value
    try:
        expected = plain(bytes(data))
    except (RecordError, UnicodeError):
        expected = None
    found = quick_fields(memoryview(bytes(data)))
    assert found is None or found == expected
