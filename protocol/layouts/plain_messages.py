"""Plain records read one after the other: with IPv4 hosts, a topic of at most 127 bytes, and one body, not compressed.

Of each record the head and the bytes between body and properties are compared or read at once. `record_codec.decode_message`
is the readable twin; a test holds both equal.
"""

from __future__ import annotations

from twisted_mq.protocol.errors import RecordError
from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.protocol.layouts.checksum import crc32
from twisted_mq.protocol.layouts.record import CRC_MASK, HEAD_BYTES, HEADS, MAGIC_V1, V6_FLAGS, span_values
from twisted_mq.protocol.layouts.record_codec import new_message, set_value
from twisted_mq.protocol.messages.message import LATE, NOTED, MessageExt
from twisted_mq.protocol.text.java import from_utf8

_unpack_head = HEADS[0].unpack_from
_NOT_PLAIN = V6_FLAGS | MessageSysFlag.COMPRESSED_FLAG | MessageSysFlag.INNER_BATCH_FLAG


def decode_plain_messages(buffer: bytes, offset: int = 0) -> tuple[list[MessageExt], int]:
    """Return the messages from there up to the first that is not plain, or damaged, and where that one begins."""
    messages: list[MessageExt] = []
    topic, between, between_bytes, properties_bytes = "", b"", 0, 0
    whole, add, checksum = len(buffer), messages.append, crc32
    last = whole - HEAD_BYTES
    while offset <= last:
        head = _unpack_head(buffer, offset)
        size, magic, body_crc, _, _, queue_offset, _, sys_flag, _, _, _, _, reconsume_times, _, body_length = head
        end, body_at = offset + size, offset + HEAD_BYTES
        if magic != MAGIC_V1 or sys_flag & _NOT_PLAIN or end > whole or body_length < 0:
            break
        body_end = body_at + body_length
        properties_at = body_end + between_bytes
        if buffer[body_end:properties_at] != between or properties_at + properties_bytes != end or not between:
            try:
                _, _, topic_at, topic_end, properties_at, _ = span_values(
                    buffer, offset, size, magic=magic, sys_flag=sys_flag, body_length=body_length
                )
            except RecordError:
                break
            topic = from_utf8(buffer[topic_at:topic_end])
            between = buffer[body_end:properties_at]
            between_bytes, properties_bytes = len(between), end - properties_at
        body = buffer[body_at:body_end]
        if body and checksum(body) & CRC_MASK != body_crc:
            break
        message: MessageExt = new_message(MessageExt)
        fields = {
            "topic": topic,
            "queue_offset": queue_offset,
            "sys_flag": sys_flag,
            "reconsume_times": reconsume_times,
            "body": body,
            LATE: (head, buffer[properties_at:end]),
            NOTED: (),
        }  # as record_codec.stored_message, without the call
        set_value(message, "__dict__", fields)
        add(message)
        offset = end
    return messages, offset
