"""The body of REGISTER_BROKER in its JSON and its deflated form."""

from __future__ import annotations

import contextlib
import tracemalloc
import zlib

import attrs
import construct
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.protocol.bodies import (
    DataVersion,
    RegisterBrokerBody,
    TopicConfig,
    TopicConfigAndMappingSerializeWrapper,
    TopicQueueMappingInfo,
    decode_register_broker,
    encode_register_broker,
    register_broker,
    register_broker_reader,
)
from twisted_mq.protocol.bodies.register_broker import (
    MAX_INFLATED_BYTES,
    REGISTRATION,
    V5_0_0,
    named_topic_config,
    topic_config_text,
)
from twisted_mq.protocol.errors import BodyError

PLAIN = TopicConfig(topic_name="T", read_queue_nums=4, write_queue_nums=8, perm=6)
NAMELESS = attrs.evolve(PLAIN, topic_name="")
ATTRIBUTES = TopicConfig(topic_name="%RETRY%g", topic_filter_type="MULTI_TAG", attributes={"+message.type": "a b"})
BODY = RegisterBrokerBody(
    TopicConfigAndMappingSerializeWrapper(
        topic_config_table={"T": PLAIN, "%RETRY%g": ATTRIBUTES},
        data_version=DataVersion(1, 1795218378802, 3),
        topic_queue_mapping_info_map={"S": TopicQueueMappingInfo(topic="S", bname="b", curr_id_map={0: 1})},
    ),
    ["1.2.3.4:5"],
)

INFLATED = (
    b'\0\0\0\x38{"counter":3,"stateVersion":1,"timestamp":1795218378802}'
    b"\0\0\0\x02"
    b"\0\0\0\x15T 4 8 6 SINGLE_TAG {}"
    b'\0\0\0\x32%RETRY%g 16 16 6 MULTI_TAG {"+message.type":"a b"}'
    b'\0\0\0\x0d["1.2.3.4:5"]'
)
MAPPING = b'{"bname":"b","currIdMap":{0:1},"dirty":false,"epoch":0,"scope":"__global__","topic":"S","totalQueues":0}'
STATIC_TOPICS = b"\0\0\0\x01" + len(MAPPING).to_bytes(4, "big") + MAPPING


def test_deflated_form_is_laid_out_as_apache_reads_it() -> None:
    assert zlib.decompress(encode_register_broker(BODY, compressed=True)) == INFLATED + STATIC_TOPICS


def test_the_declaration_reads_and_builds_the_deflated_form() -> None:
    parsed = REGISTRATION.parse(INFLATED + STATIC_TOPICS)
    assert [bytes(topic)[:1] for topic in parsed.topics] == [b"T", b"%"]
    assert [bytes(mapping) for mapping in parsed.static_topics] == [MAPPING]
    assert REGISTRATION.build(parsed) == INFLATED + STATIC_TOPICS
    assert REGISTRATION.parse(INFLATED).static_topics is None


def test_writer_and_reader_follow_the_declaration_s_order(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = construct.Struct(*reversed(REGISTRATION.subcons))
    for module in (register_broker, register_broker_reader):
        monkeypatch.setattr(module, "SECTIONS", tuple(subcon.name for subcon in changed.subcons))
    data = encode_register_broker(BODY, compressed=True)
    assert zlib.decompress(data) == changed.build(REGISTRATION.parse(INFLATED + STATIC_TOPICS))
    assert decode_register_broker(data, True, V5_0_0) == BODY


@pytest.mark.parametrize("compressed", [False, True])
def test_both_forms_read_back(compressed: bool) -> None:
    data = encode_register_broker(BODY, compressed)
    assert decode_register_broker(data, compressed, broker_version=479) == BODY


def test_brokers_before_5_end_without_static_topics() -> None:
    body = decode_register_broker(zlib.compress(INFLATED), True, V5_0_0 - 1)
    assert body.topic_config_serialize_wrapper.topic_queue_mapping_info_map == {}
    assert body.topic_config_serialize_wrapper.topic_config_table == {"T": PLAIN, "%RETRY%g": ATTRIBUTES}


def test_brokers_from_5_on_must_have_them() -> None:
    with pytest.raises(BodyError, match="the inflated body ends at"):
        decode_register_broker(zlib.compress(INFLATED), True, V5_0_0)


def test_topic_text() -> None:
    assert topic_config_text(PLAIN) == "T 4 8 6 SINGLE_TAG {}"
    assert named_topic_config("T 4 8 6 SINGLE_TAG {}") == ("T", NAMELESS)
    assert named_topic_config("T 4 8 6 SINGLE_TAG") == ("T", NAMELESS)


def test_topic_text_with_attributes_that_cannot_be_read_keeps_the_rest() -> None:
    assert named_topic_config("T 4 8 6 SINGLE_TAG {broken") == ("T", NAMELESS)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("T 4 8 6", "a topic's text has 4 parts of at least 5"),
        ("T four 8 6 SINGLE_TAG", "TopicConfig.readQueueNums: expected an integer, got 'four'"),
        ("T 4 8 6 NO_TAG", "TopicConfig.topicFilterType: expected one of SINGLE_TAG, MULTI_TAG, got 'NO_TAG'"),
        ("T 4 9999999999 6 SINGLE_TAG", "TopicConfig.writeQueueNums: expected an integer of 32 bits, got 9999999999"),
    ],
)
def test_damaged_topic_text_is_refused(text: str, reason: str) -> None:
    with pytest.raises(BodyError) as caught:
        named_topic_config(text)
    assert reason in str(caught.value)


VERSION = INFLATED[:60]


@pytest.mark.parametrize(
    ("inflated", "reason"),
    [
        (b"", "the inflated body ends at 0, inside of a number"),
        (b"\0\0\0\x09{}", "a piece of 9 bytes at 4, the inflated body has 6"),
        (b"\xff\xff\xff\xff", "a piece of -1 bytes at 4"),
        (VERSION + b"\x7f\xff\xff\xff", "2147483647 entries announced, 0 bytes are left"),
        (VERSION + b"\xff\xff\xff\xff", "-1 entries announced"),
        (VERSION + b"\0\0\0\x01\0\0\0\x01\xff", "a topic's text: 'utf-8' codec can't decode"),
    ],
)
def test_damaged_lengths_are_refused(inflated: bytes, reason: str) -> None:
    with pytest.raises(BodyError) as caught:
        decode_register_broker(zlib.compress(inflated), True, 479)
    assert reason in str(caught.value)


def test_what_is_not_deflated_is_refused() -> None:
    with pytest.raises(BodyError, match="not deflated"):
        decode_register_broker(b'{"filterServerList":[]}', True, 479)


def test_a_bomb_is_refused_within_the_memory_limit() -> None:
    """Five times the limit in zeros deflates to less than a megabyte."""
    deflater = zlib.compressobj(1)
    bomb = b"".join(deflater.compress(bytes(MAX_INFLATED_BYTES)) for _ in range(5)) + deflater.flush()
    tracemalloc.start()
    try:
        with pytest.raises(BodyError, match=f"more than {MAX_INFLATED_BYTES} bytes when inflated"):
            decode_register_broker(bomb, True, 479)
        assert tracemalloc.get_traced_memory()[1] < 3 * MAX_INFLATED_BYTES
    finally:
        tracemalloc.stop()


@given(st.binary(max_size=200), st.booleans())
def test_no_input_raises_anything_but_body_error(data: bytes, deflated: bool) -> None:
    with contextlib.suppress(BodyError):
        decode_register_broker(zlib.compress(data) if deflated else data, True, 479)


@given(st.integers(0, len(INFLATED) - 1), st.integers(0, 255))
def test_no_changed_byte_raises_anything_but_body_error(position: int, byte: int) -> None:
    changed = INFLATED[:position] + bytes([byte]) + INFLATED[position + 1 :] + STATIC_TOPICS
    with contextlib.suppress(BodyError):
        decode_register_broker(zlib.compress(changed), True, 479)
