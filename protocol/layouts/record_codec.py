"""Stored messages written and read: the fast codec over twisted_mq.protocol.layouts.record, which declares their bytes.

Nothing here copies more than one record: a buffer may be a mapped file, a memoryview of one, or bytes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from twisted_mq.protocol.errors import RecordError
from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.protocol.layouts.checksum import crc32
from twisted_mq.protocol.layouts.derive import Buffer
from twisted_mq.protocol.layouts.host import IPV4_HOST_BYTES, IPV6_HOST_BYTES, host_text
from twisted_mq.protocol.layouts.message_id import offset_message_id_pattern
from twisted_mq.protocol.layouts.record import (
    CRC_MASK,
    HEADS,
    MAGIC_V1,
    MAGIC_V2,
    PHYSICAL_OFFSET,
    PHYSICAL_OFFSET_POSITION,
    V1_TOPIC_BYTES,
    V6_FLAGS,
    HeadFields,
    RecordHead,
    RecordSpans,
    head_values,
    middle,
    read_head,
    read_spans,
    span_values,
)
from twisted_mq.protocol.messages.compression import MAX_BODY_BYTES, CompressionError, plain_body
from twisted_mq.protocol.messages.delay_levels import DEFAULT_DELAY_TABLE, delivery_time
from twisted_mq.protocol.messages.message import LATE, NOTED, MessageExt, make_late
from twisted_mq.protocol.names.system_topics import SCHEDULE_TOPIC
from twisted_mq.protocol.text.java import from_utf8, parse_int, tags_code
from twisted_mq.protocol.text.properties import (
    MAX_PROPERTIES_BYTES,
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_TAGS,
    decode_property_bytes,
)

_HEAD_V4 = HEADS[0]
_host_text = functools.lru_cache(maxsize=1024)(host_text)
"""Few hosts are in use; a key is at most 20 bytes."""
_topic_text = functools.lru_cache(maxsize=64)(from_utf8)
_id_pattern = functools.lru_cache(maxsize=1024)(offset_message_id_pattern)
_64_BITS = 0xFFFFFFFFFFFFFFFF
_COMPRESSED = int(MessageSysFlag.COMPRESSED_FLAG)


class DispatchFields(NamedTuple):
    """The facts about a record that queues and index need (Apache: DispatchRequest)."""

    topic: str
    queue_id: int
    queue_offset: int
    physical_offset: int
    size: int
    tags_code: int
    store_timestamp: int
    sys_flag: int
    prepared_transaction_offset: int
    properties: dict[str, str]


def encode_record(
    topic: bytes,
    body: bytes,
    properties: bytes,
    queue_id: int,
    queue_offset: int,
    physical_offset: int,
    born_timestamp: int,
    born_host: bytes,
    store_timestamp: int,
    store_host: bytes,
    flag: int = 0,
    sys_flag: int = 0,
    reconsume_times: int = 0,
    prepared_transaction_offset: int = 0,
    body_crc: int | None = None,
) -> bytes:
    """Encode one record. Its version follows the topic's length; the IPv6 bits of `sys_flag` follow the hosts' lengths.

    Raises RecordError where topic, properties or hosts have lengths that no record has.
    """
    topic_length, body_length, properties_length = len(topic), len(body), len(properties)
    if topic_length > MAX_PROPERTIES_BYTES or properties_length > MAX_PROPERTIES_BYTES:
        raise RecordError(f"a topic of {topic_length} bytes, properties of {properties_length} bytes: 32767 fit", 0)
    magic, head, between = MAGIC_V1, _HEAD_V4, middle(topic_length)
    if topic_length > V1_TOPIC_BYTES:
        magic = MAGIC_V2
    if body_crc is None:
        body_crc = crc32(body) & CRC_MASK
    if len(born_host) != IPV4_HOST_BYTES or len(store_host) != IPV4_HOST_BYTES or sys_flag & V6_FLAGS:
        sys_flag = sys_flag & ~V6_FLAGS | host_flags(born_host, store_host)
        head = HEADS[sys_flag & V6_FLAGS]
    size = head.size + body_length + between.size + properties_length
    return b"".join(
        (
            head.pack(
                size,
                magic,
                body_crc,
                queue_id,
                flag,
                queue_offset,
                physical_offset,
                sys_flag,
                born_timestamp,
                born_host,
                store_timestamp,
                store_host,
                reconsume_times,
                prepared_transaction_offset,
                body_length,
            ),
            body,
            between.pack(topic_length, topic, properties_length),
            properties,
        )
    )


def moved_record(record: bytes, physical_offset: int) -> bytes:
    """Return the same record for another place in the log."""
    moved = bytearray(record)
    PHYSICAL_OFFSET.pack_into(moved, PHYSICAL_OFFSET_POSITION, physical_offset)
    return bytes(moved)


def host_flags(born_host: bytes, store_host: bytes) -> int:
    """Return the IPv6 bits for hosts of these lengths."""
    flags = 0
    for host, flag in (
        (born_host, MessageSysFlag.BORNHOST_V6_FLAG),
        (store_host, MessageSysFlag.STOREHOSTADDRESS_V6_FLAG),
    ):
        if len(host) == IPV6_HOST_BYTES:
            flags |= flag
        elif len(host) != IPV4_HOST_BYTES:
            raise RecordError(f"a host of {len(host)} bytes, 8 or 20 are needed", 0)
    return flags


def _check_crc(body: Buffer, offset: int, said: int) -> None:
    found = crc32(body) & CRC_MASK
    if found != said:
        raise RecordError(f"the body's CRC is {found}, the record says {said}", offset)


def check_body(buffer: Buffer, offset: int, head: RecordHead, spans: RecordSpans) -> None:
    """Raise RecordError unless the stored body has its head's CRC; an empty body is not checked, as in Apache."""
    if head.body_length:
        with memoryview(buffer) as view, view[spans.body : spans.body_end] as body:
            _check_crc(body, offset, head.body_crc)


def _decompressed(stored: bytes, offset: int, sys_flag: int, limit: int) -> bytes:
    try:
        return plain_body(stored, sys_flag, limit)
    except CompressionError as error:
        raise RecordError(str(error), offset) from error


def decode_message(
    buffer: Buffer,
    offset: int = 0,
    *,
    check_crc: bool = True,
    decompress: bool = True,
    max_body_bytes: int = MAX_BODY_BYTES,
) -> MessageExt:
    """Return the message stored there; only its own bytes are copied. Raises RecordError for any damage.

    With `decompress` False the body is as stored. A body that would grow past `max_body_bytes` is refused.
    """
    head = head_values(buffer, offset)
    size, magic, body_crc, _, _, queue_offset, _, sys_flag, _, _, _, _, reconsume_times, _, body_length = head
    body_at, body_end, topic_at, topic_end, properties_at, end = span_values(
        buffer, offset, size, magic=magic, sys_flag=sys_flag, body_length=body_length
    )
    body = bytes(buffer[body_at:body_end])
    if check_crc and body and crc32(body) & CRC_MASK != body_crc:
        _check_crc(body, offset, body_crc)
    if decompress and sys_flag & _COMPRESSED:
        body = _decompressed(body, offset, sys_flag, max_body_bytes)
    topic = _topic_text(bytes(buffer[topic_at:topic_end]))
    return stored_message(
        topic, queue_offset, sys_flag, reconsume_times, body, (head, bytes(buffer[properties_at:end]))
    )


def stored_message(
    topic: str, queue_offset: int, sys_flag: int, reconsume_times: int, body: bytes, late: tuple[HeadFields, bytes]
) -> MessageExt:
    """Return a message whose other fields are made of its head and the bytes of its properties when they are asked for."""
    message: MessageExt = new_message(MessageExt)
    set_value(
        message,
        "__dict__",
        {
            "topic": topic,
            "queue_offset": queue_offset,
            "sys_flag": sys_flag,
            "reconsume_times": reconsume_times,
            "body": body,
            LATE: late,
            NOTED: (),
        },
    )
    return message


new_message, set_value = object.__new__, object.__setattr__
"""MessageExt is frozen."""


def _of_head(place: int) -> Callable[[tuple[HeadFields, bytes]], object]:
    return lambda late: late[0][place]


_PLACES = {name: place for place, name in enumerate(RecordHead._fields)}
_BORN_HOST, _STORE_HOST, _PHYSICAL_OFFSET = (_PLACES[name] for name in ("born_host", "store_host", "physical_offset"))
_NUMBERS = {
    name: "size" if name == "store_size" else name
    for name in (
        "queue_id", "physical_offset", "store_size", "body_crc", "flag", "born_timestamp", "store_timestamp",
        "prepared_transaction_offset",
    )
}  # fmt: skip
"""Fields of a message that are numbers of the head, and their names there."""
make_late(
    **{name: _of_head(_PLACES[field]) for name, field in _NUMBERS.items()},
    born_host=lambda late: _host_text(late[0][_BORN_HOST]),
    store_host=lambda late: _host_text(late[0][_STORE_HOST]),
    msg_id=lambda late: _id_pattern(late[0][_STORE_HOST]) % (late[0][_PHYSICAL_OFFSET] & _64_BITS),
    properties=lambda late: decode_property_bytes(late[1]),
)


def iterate_messages(
    buffer: Buffer, *, check_crc: bool = True, decompress: bool = True, max_body_bytes: int = MAX_BODY_BYTES
) -> Iterator[MessageExt]:
    """Yield the messages of a pull answer's body, back to back. Raises RecordError at the first damaged one."""
    offset, end = 0, len(buffer)
    while offset < end:
        message = decode_message(
            buffer, offset, check_crc=check_crc, decompress=decompress, max_body_bytes=max_body_bytes
        )
        yield message
        offset += message.store_size


def _queue_tags_code(
    topic: str, properties: dict[str, str], store_timestamp: int, delay_table: Mapping[int, int]
) -> int:
    """Return the tags' hash; in the schedule topic the delivery time (Apache: CommitLog.checkMessageAndReturnSize)."""
    if topic == SCHEDULE_TOPIC:
        level = parse_int(properties.get(PROPERTY_DELAY_TIME_LEVEL))
        if level is not None and level > 0:
            return delivery_time(level, store_timestamp, delay_table)
    return tags_code(properties.get(PROPERTY_TAGS))


def dispatch_fields(
    buffer: Buffer,
    offset: int = 0,
    *,
    check_crc: bool = False,
    delay_table: Mapping[int, int] = DEFAULT_DELAY_TABLE,
) -> DispatchFields:
    """Return what queues and index take from the record there. Raises RecordError for anything damaged.

    `delay_table` maps the broker's delay levels to ms, see twisted_mq.protocol.messages.delay_levels.
    """
    head = read_head(buffer, offset)
    spans = read_spans(buffer, offset, head)
    if check_crc:
        check_body(buffer, offset, head, spans)
    topic = from_utf8(buffer[spans.topic : spans.topic_end])
    properties = decode_property_bytes(buffer[spans.properties : spans.end])
    return DispatchFields(
        topic,
        head.queue_id,
        head.queue_offset,
        head.physical_offset,
        head.size,
        _queue_tags_code(topic, properties, head.store_timestamp, delay_table),
        head.store_timestamp,
        head.sys_flag,
        head.prepared_transaction_offset,
        properties,
    )
