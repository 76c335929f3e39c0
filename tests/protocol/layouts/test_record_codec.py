"""Stored messages: as Apache reads them, written again byte for byte, and refused with a reason when damaged."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import mmap
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.captures import STORES, commit_log_files, expected, frame_index, frames, stored_records
from twisted_mq.protocol.errors import RecordError
from twisted_mq.protocol.layouts.host import pack_host, parse_host_text
from twisted_mq.protocol.layouts.record import MAGIC_BLANK, MESSAGE, V6_FLAGS, read_head, read_mark, read_spans
from twisted_mq.protocol.layouts.record_codec import (
    DispatchFields,
    decode_message,
    dispatch_fields,
    encode_record,
    iterate_messages,
)
from twisted_mq.protocol.messages.compression import CompressionType, compress
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.wire.framing import FrameDecoder

V4 = pack_host("127.0.0.1", 10911)
RECORD: dict[str, Any] = {
    "queue_id": 3,
    "queue_offset": 17,
    "physical_offset": 4096,
    "born_timestamp": 1795216734968,
    "born_host": V4,
    "store_timestamp": 1795216734992,
    "store_host": V4,
}


def as_expected(message: MessageExt, stored: MessageExt, tags_code: int, magic: int) -> dict[str, Any]:
    """A message as a line of expected/*.jsonl."""
    line = {
        "kind": "message",
        "topic": message.topic,
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "commitLogOffset": message.physical_offset,
        "msgId": message.msg_id,
        "storeSize": message.store_size,
        "bodyCRC": message.body_crc,
        "sysFlag": message.sys_flag,
        "flag": message.flag,
        "bornTimestamp": message.born_timestamp,
        "storeTimestamp": message.store_timestamp,
        "bornHost": message.born_host,
        "storeHost": message.store_host,
        "reconsumeTimes": message.reconsume_times,
        "preparedTransactionOffset": message.prepared_transaction_offset,
        "properties": message.properties,
        "storedBodyLength": len(stored.body),
        "storedBodySha256": hashlib.sha256(stored.body).hexdigest(),
        "bodyLength": len(message.body),
        "bodySha256": hashlib.sha256(message.body).hexdigest(),
        "magic": magic,
        "tagsCode": tags_code,
    }
    if len(message.body) <= 64:
        line["bodyBase64"] = base64.b64encode(message.body).decode()
    return line


@pytest.mark.parametrize("store", STORES)
def test_every_stored_message_reads_as_apache_read_it(store: str) -> None:
    seen = 0
    for line, raw in stored_records(store):
        found = as_expected(
            decode_message(raw),
            decode_message(raw, decompress=False),
            dispatch_fields(raw, check_crc=True).tags_code,
            read_mark(raw)[1],
        )
        assert found == {
            key: value for key, value in line.items() if key not in ("inConsumeQueue", "storeLookupAgrees")
        }
        seen += 1
    assert seen > 20


def encode_again(raw: bytes) -> bytes:
    """The record built from what was read of it."""
    head = read_head(raw)
    spans = read_spans(raw, 0, head)
    values = head._asdict()
    for derived in ("size", "magic", "body_length", "sys_flag"):
        del values[derived]
    return encode_record(
        raw[spans.topic : spans.topic_end],
        raw[spans.body : spans.body_end],
        raw[spans.properties : spans.end],
        sys_flag=head.sys_flag & ~V6_FLAGS,
        **values,
    )


@pytest.mark.parametrize("store", STORES)
def test_every_stored_message_encodes_to_the_same_bytes(store: str) -> None:
    for line, raw in stored_records(store):
        assert encode_again(raw) == raw, line["commitLogOffset"]
        assert MESSAGE.build(MESSAGE.parse(raw)) == raw, line["commitLogOffset"]


@pytest.mark.parametrize("store", STORES)
def test_records_and_blanks_fill_the_log_without_a_gap(store: str) -> None:
    lines = [line for line in expected(store) if line["kind"] in ("message", "blank")]
    starts = {line["commitLogOffset"]: line["kind"] for line in lines}
    for base, content in commit_log_files(store).items():
        position = 0
        while base + position in starts:
            size, magic = read_mark(content, position)
            assert (magic == MAGIC_BLANK) == (starts.pop(base + position) == "blank")
            position += size
            if position == len(content):
                break
    assert starts == {}


def test_the_recordings_hold_both_versions_and_all_compressions() -> None:
    flags, magics = set(), set()
    for line, _ in stored_records("st"):
        flags.add(line["sysFlag"] & 0x701)
        magics.add(line["magic"])
    assert {0x101, 0x201, 0x301} <= flags
    assert len(magics) == 2


BYTES_4 = st.integers(-(2**31), 2**31 - 1)
BYTES_8 = st.integers(-(2**63), 2**63 - 1)
HOSTS = st.one_of(st.binary(min_size=8, max_size=8), st.binary(min_size=20, max_size=20))


@given(
    topic=st.binary(max_size=300),
    body=st.binary(max_size=300),
    properties=st.binary(max_size=300),
    values=st.fixed_dictionaries(
        {
            "queue_id": BYTES_4,
            "queue_offset": BYTES_8,
            "physical_offset": BYTES_8,
            "born_timestamp": BYTES_8,
            "born_host": HOSTS,
            "store_timestamp": BYTES_8,
            "store_host": HOSTS,
            "flag": BYTES_4,
            "reconsume_times": BYTES_4,
            "prepared_transaction_offset": BYTES_8,
        }
    ),
)
def test_any_record_encodes_as_construct_builds_it(
    topic: bytes, body: bytes, properties: bytes, values: dict[str, Any]
) -> None:
    raw = encode_record(topic, body, properties, **values)
    parsed = MESSAGE.parse(raw)
    assert MESSAGE.build(parsed) == raw
    assert (parsed.topic, parsed.body, parsed.properties) == (topic, body, properties)
    assert {name: parsed[name] for name in values} == values
    assert parsed.size == len(raw)
    assert encode_again(raw) == raw


def test_a_message_is_found_inside_any_kind_of_buffer() -> None:
    raw = encode_record(b"Orders", b"x" * 1000, b"", **RECORD)
    with mmap.mmap(-1, 8192) as mapped:
        mapped[77 : 77 + len(raw)] = raw
        expected_message = decode_message(raw)
        assert decode_message(mapped, 77) == expected_message
        assert decode_message(memoryview(b"-" * 5 + raw), 5) == expected_message
        assert decode_message(bytearray(raw)) == expected_message
        assert dispatch_fields(mapped, 77) == dispatch_fields(raw)


def test_reading_one_message_does_not_copy_the_file() -> None:
    raw = encode_record(b"Orders", b"x" * 100, b"", **RECORD)
    with mmap.mmap(-1, 64 * 1024 * 1024) as mapped:
        mapped[1000 : 1000 + len(raw)] = raw
        tracemalloc.start()
        decode_message(mapped, 1000)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 100_000


def test_a_record_of_ipv6_hosts_shows_them_in_brackets() -> None:
    hosts = {"born_host": pack_host("2001:db8::1", 5), "store_host": pack_host("2001:db8::2", 10911)}
    message = decode_message(encode_record(b"T", b"", b"", **(RECORD | hosts)))
    assert (message.born_host, message.store_host, message.sys_flag) == ("[2001:db8::1]:5", "[2001:db8::2]:10911", 0x30)
    assert parse_host_text(message.store_host) == ("2001:db8::2", 10911)
    assert message.msg_id == "20010DB8000000000000000000000002" + "00002A9F" + "0000000000001000"


@pytest.mark.parametrize("kind", list(CompressionType), ids=lambda kind: kind.name)
def test_a_compressed_body_is_given_plain_or_as_stored(kind: CompressionType) -> None:
    body = b"0123456789" * 100
    packed = compress(body, kind)
    raw = encode_record(b"T", packed, b"", sys_flag=1 | kind.sys_flag, **RECORD)
    assert decode_message(raw).body == body
    assert decode_message(raw, decompress=False).body == packed
    assert decode_message(raw).sys_flag == 1 | kind.sys_flag
    with pytest.raises(RecordError, match="limit of 999 bytes"):
        decode_message(raw, max_body_bytes=999)


def test_a_wrong_crc_is_refused_unless_not_asked_for() -> None:
    raw = encode_record(b"T", b"body", b"", body_crc=1, **RECORD)
    with pytest.raises(RecordError, match=r"the record says 1 \(at offset 3\)"):
        decode_message(b"---" + raw, 3)
    with pytest.raises(RecordError, match="CRC"):
        dispatch_fields(raw, check_crc=True)
    assert decode_message(raw, check_crc=False).body == b"body"
    assert dispatch_fields(raw).topic == "T"


def test_the_crc_loses_its_highest_bit() -> None:
    raw = encode_record(b"T", b"123456789", b"", **RECORD)
    assert decode_message(raw).body_crc == 0x4BF43926  # of 0xCBF43926


def test_an_empty_body_is_not_checked() -> None:
    assert decode_message(encode_record(b"T", b"", b"", body_crc=5, **RECORD)).body == b""


def test_a_blank_record_is_no_message() -> None:
    with pytest.raises(RecordError, match="magic 0xCBD43194"):
        decode_message((200).to_bytes(4, "big") + bytes.fromhex("cbd43194") + bytes(192))


@pytest.mark.parametrize("size", [7, 9, 16, 21])
def test_a_host_of_another_length_cannot_be_stored(size: int) -> None:
    with pytest.raises(RecordError, match="8 or 20 are needed"):
        encode_record(b"T", b"", b"", **(RECORD | {"born_host": bytes(size)}))


def test_hosts_whose_lengths_only_add_up_to_16_cannot_be_stored() -> None:
    with pytest.raises(RecordError, match="8 or 20 are needed"):
        encode_record(b"T", b"", b"", **(RECORD | {"born_host": bytes(4), "store_host": bytes(12)}))


@pytest.mark.parametrize(("topic", "properties"), [(32768, 0), (1, 32768)])
def test_topics_and_properties_past_their_field_cannot_be_stored(topic: int, properties: int) -> None:
    with pytest.raises(RecordError, match="32768 bytes"):
        encode_record(b"t" * topic, b"", b"p" * properties, **RECORD)


def test_stale_ipv6_bits_follow_the_hosts() -> None:
    assert read_head(encode_record(b"T", b"", b"", sys_flag=0x34, **RECORD)).sys_flag == 4


def test_every_recorded_pull_answer_is_read_to_its_end() -> None:
    seen = 0
    for scenario in ("push_consumer_concurrent", "consumer_tag_filter", "pull_consumer", "read_from_slave_enabled"):
        index = frame_index(scenario)
        commands = FrameDecoder().receive_data(frames(scenario))
        for line, command in zip(index, commands, strict=True):
            if line["answers"] is None or index[line["answers"]]["code_name"] != "PULL_MESSAGE" or not command.body:
                continue
            messages = list(iterate_messages(command.body))
            assert sum(message.store_size for message in messages) == len(command.body)
            next_offset = int(command.ext_fields["nextBeginOffset"])
            assert messages[-1].queue_offset < next_offset
            assert all(message.unique_key for message in messages)
            seen += len(messages)
    assert seen > 20


def test_a_pull_answer_is_read_message_by_message() -> None:
    records = [encode_record(b"T", bytes([n]), b"", **(RECORD | {"queue_offset": n})) for n in range(3)]
    assert [m.queue_offset for m in iterate_messages(b"".join(records))] == [0, 1, 2]
    assert list(iterate_messages(b"")) == []


def test_a_damaged_pull_answer_names_the_offset_after_the_sound_messages() -> None:
    record = encode_record(b"T", b"x", b"", **RECORD)
    messages = iterate_messages(record + record[:-1])
    assert next(messages).body == b"x"
    with pytest.raises(RecordError) as caught:
        next(messages)
    assert caught.value.offset == len(record)


def test_dispatch_takes_what_queues_and_index_need() -> None:
    raw = encode_record(
        b"Orders", b"x", b"TAGS\x01TagA\x02KEYS\x01a b\x02", sys_flag=4, prepared_transaction_offset=9, **RECORD
    )
    assert dispatch_fields(raw) == DispatchFields(
        "Orders", 3, 17, 4096, len(raw), 2598919, 1795216734992, 4, 9, {"TAGS": "TagA", "KEYS": "a b"}
    )


@pytest.mark.parametrize(
    ("topic", "properties", "tags_code"),
    [
        (b"T", b"", 0),
        (b"T", b"TAGS\x01TagA\x02DELAY\x013\x02", 2598919),
        (b"SCHEDULE_TOPIC_XXXX", b"TAGS\x01TagA\x02", 2598919),
        (b"SCHEDULE_TOPIC_XXXX", b"TAGS\x01TagA\x02DELAY\x013\x02", 1795216734992 + 10_000),
        (b"SCHEDULE_TOPIC_XXXX", b"DELAY\x0199\x02", 1795216734992 + 7_200_000),
        (b"SCHEDULE_TOPIC_XXXX", b"TAGS\x01TagA\x02DELAY\x010\x02", 2598919),
        (b"SCHEDULE_TOPIC_XXXX", b"TAGS\x01TagA\x02DELAY\x01soon\x02", 2598919),
    ],
)
def test_tags_code_is_the_hash_or_the_delivery_time(topic: bytes, properties: bytes, tags_code: int) -> None:
    assert dispatch_fields(encode_record(topic, b"x", properties, **RECORD)).tags_code == tags_code


def test_delivery_times_follow_the_given_delay_table() -> None:
    raw = encode_record(b"SCHEDULE_TOPIC_XXXX", b"x", b"DELAY\x015\x02", **RECORD)
    assert dispatch_fields(raw, delay_table={1: 7}).tags_code == 1795216734992 + 7


def test_the_crc_that_apache_may_append_to_the_properties_is_readable() -> None:
    raw = encode_record(b"T", b"x", b"KEYS\x01a\x02__CRC32#\x010123456789\x02", **RECORD)
    assert decode_message(raw).properties == {"KEYS": "a", "__CRC32#": "0123456789"}


def read_all(raw: bytes) -> None:
    """Every reader on the bytes; only RecordError may come out."""
    for read in (read_head, decode_message, lambda data: dispatch_fields(data, check_crc=True)):
        with contextlib.suppress(RecordError):
            read(raw)
    with contextlib.suppress(RecordError):
        list(iterate_messages(raw, check_crc=False, max_body_bytes=10_000))


@given(st.binary(max_size=400))
def test_no_bytes_raise_anything_else(raw: bytes) -> None:
    read_all(raw)


@given(st.data(), st.sampled_from([0, 0x101, 0x201, 0x301, 1]))
def test_no_damaged_record_raises_anything_else(data: st.DataObject, sys_flag: int) -> None:
    body = b"0123456789" * 20
    if sys_flag:
        body = compress(body, CompressionType(sys_flag >> 8 or 3))
    raw = bytearray(encode_record(b"Orders", body, b"TAGS\x01TagA\x02", sys_flag=sys_flag, **RECORD))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    read_all(bytes(raw[: data.draw(st.integers(0, len(raw)))]))
    read_all(bytes(raw))


def test_a_wrong_crc_of_all_ones_is_refused() -> None:
    """The body's CRC has no bit above these, so that it is not changed to the one in the record by setting them all."""
    with pytest.raises(RecordError, match="the record says 2147483647"):
        decode_message(encode_record(b"T", b"yes", b"", **RECORD, body_crc=0x7FFF_FFFF))
