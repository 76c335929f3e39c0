from __future__ import annotations

import mmap

import pytest

from twisted_mq.protocol.errors import RecordError
from twisted_mq.protocol.layouts import record as layout
from twisted_mq.protocol.layouts.derive import field_table
from twisted_mq.protocol.layouts.record import RecordSpans, encode_blank, read_head, read_mark, read_spans, record_size
from twisted_mq.protocol.layouts.record_codec import encode_record

V4 = bytes.fromhex("7f00000100002a9f")
V6 = bytes.fromhex("20010db8000000000000000000000001" + "00002a9f")


def record(topic: bytes = b"T", born_host: bytes = V4, store_host: bytes = V4) -> bytes:
    return encode_record(
        topic,
        b"body",
        b"TAGS\x01A\x02",
        queue_id=1,
        queue_offset=2,
        physical_offset=3,
        born_timestamp=4,
        born_host=born_host,
        store_timestamp=5,
        store_host=store_host,
    )


def test_the_head_s_names_are_the_layout_s() -> None:
    names = tuple(field.name for field in field_table(layout.MESSAGE, sys_flag=0))
    assert layout.RecordHead._fields == names


def test_magics_and_positions_are_apache_s() -> None:
    assert [magic & 0xFFFFFFFF for magic in (layout.MAGIC_V1, layout.MAGIC_V2, layout.MAGIC_BLANK)] == [
        0xDAA320A7,
        0xDAA320AB,
        0xCBD43194,
    ]
    assert (
        layout.QUEUE_OFFSET_POSITION,
        layout.PHYSICAL_OFFSET_POSITION,
        layout.SYS_FLAG_POSITION,
        layout.STORE_TIMESTAMP_POSITION,
    ) == (20, 28, 36, 56)


def test_a_blank_reads_as_its_size_and_magic() -> None:
    assert encode_blank(358) == layout.BLANK.build({"size": 358}) == bytes.fromhex("00000166cbd43194")
    assert read_mark(b"??" + encode_blank(358), 2) == (358, layout.MAGIC_BLANK)


def test_unwritten_space_reads_as_zeros() -> None:
    assert read_mark(bytes(8)) == (0, 0)


@pytest.mark.parametrize("offset", [-1, 1, 9])
def test_a_mark_outside_of_the_buffer_is_refused(offset: int) -> None:
    with pytest.raises(RecordError, match="need 8"):
        read_mark(bytes(8), offset)


def test_spans_say_where_body_topic_and_properties_lie() -> None:
    data = b"--" + record() + b"--"
    spans = read_spans(data, 2, read_head(data, 2))
    assert spans == RecordSpans(90, 94, 95, 96, 98, 98 + 7)
    assert (data[90:94], data[95:96], data[98:105]) == (b"body", b"T", b"TAGS\x01A\x02")


def test_a_long_topic_has_a_length_of_two_bytes() -> None:
    data = record(topic=b"t" * 128)
    head = read_head(data)
    assert head.magic == layout.MAGIC_V2
    assert read_spans(data, 0, head)[2:4] == (94, 222)


@pytest.mark.parametrize(("born", "store", "flags"), [(V4, V4, 0), (V6, V4, 0x10), (V4, V6, 0x20), (V6, V6, 0x30)])
def test_hosts_of_both_kinds_read_back(born: bytes, store: bytes, flags: int) -> None:
    data = record(born_host=born, store_host=store)
    head = read_head(data)
    assert (head.sys_flag, head.born_host, head.store_host, head.size) == (flags, born, store, len(data))
    assert record_size(flags, 4, 1, 7) == len(data)


@pytest.mark.parametrize("born", [V4, V6])
@pytest.mark.parametrize("store", [V4, V6])
def test_single_fields_read_as_the_whole_head(born: bytes, store: bytes) -> None:
    data = record(born_host=born, store_host=store)
    head = read_head(data)
    assert layout.unpack_size(data) == (head.size,)
    assert layout.unpack_place(b"-" + data, 1) == (head.size, head.magic, head.physical_offset)
    assert layout.unpack_queue_offset(data) == (head.queue_offset,)
    assert layout.read_store_timestamp(memoryview(data)) == head.store_timestamp
    assert layout.read_store_timestamp(data[:75]) == -1
    assert layout.read_store_timestamp(data[:76]) == head.store_timestamp


def test_both_versions_magics_differ_in_the_last_byte_only() -> None:
    assert layout.MAGICS == {layout.MAGIC_V1: b"\xda\xa3\x20\xa7", layout.MAGIC_V2: b"\xda\xa3\x20\xab"}


def test_sizes_count_the_longer_length_of_long_topics() -> None:
    assert [record_size(0, 0, topic, 0) for topic in (0, 127, 128)] == [91, 218, 220]


def test_a_mapped_file_is_read_in_place() -> None:
    data = record()
    with mmap.mmap(-1, 4096) as mapped:
        mapped[100 : 100 + len(data)] = data
        head = read_head(mapped, 100)
        assert head == read_head(memoryview(data)) == read_head(data)
        assert read_spans(mapped, 100, head).end == 100 + len(data)


def damaged(position: int, replacement: bytes) -> bytes:
    data = record()
    return data[:position] + replacement + data[position + len(replacement) :]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "0 bytes left"),
        (record()[:87], "at least 88"),
        (record()[:-1], "a record of 103 bytes, 102 are left"),
        (damaged(4, b"\0\0\0\0"), "magic 0x00000000"),
        (damaged(0, b"\x7f\xff\xff\xff"), "a record of 2147483647 bytes"),
        (damaged(36, b"\0\0\0\x30"), "with IPv6 hosts has at least 112"),
    ],
    ids=["empty", "cut head", "cut tail", "magic", "size", "hosts"],
)
def test_a_damaged_head_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(RecordError, match=reason) as caught:
        read_head(data)
    assert caught.value.offset == 0


@pytest.mark.parametrize(
    ("position", "replacement", "reason"),
    [
        (84, b"\x7f\xff\xff\xff", "a body of 2147483647 bytes"),
        (84, b"\xff\xff\xff\xff", "a body of -1 bytes"),
        (92, b"\xff", "a topic of -1 bytes"),
        (92, b"\x7f", "a topic of 127 bytes"),
        (94, b"\x7f\xff", "properties of 32767 bytes"),
        (94, b"\xff\xff", "properties of -1 bytes"),
        (94, b"\0\x01", "properties of 1 bytes where 7 are left"),
        (0, (102).to_bytes(4, "big"), "properties of 7 bytes where 6 are left"),
        (0, (-5).to_bytes(4, "big", signed=True), "in a record of -5"),
        (0, bytes(4), "in a record of 0"),
    ],
)
def test_lengths_that_do_not_add_up_are_refused(position: int, replacement: bytes, reason: str) -> None:
    data = damaged(position, replacement)
    with pytest.raises(RecordError, match=reason):
        read_spans(data, 0, read_head(data))
