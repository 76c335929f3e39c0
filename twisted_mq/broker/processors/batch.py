"""The messages of a batch send as the store takes them. Pure: no topic is looked up here.

Each message keeps its own properties and gets the batch's where it has none of that name. Apache's broker appends the
batch's unique key to every message, where readers then take it for the message's own; ours leaves each message the key
that its producer reports for it.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from protocol.codes import ResponseCode
from protocol.errors import BrokerError
from protocol.flags import MessageSysFlag
from protocol.java import from_utf8, tags_code, utf8
from protocol.message_batch import read_batch
from protocol.message_properties import PROPERTY_INNER_NUM, PROPERTY_TAGS, encode_properties
from protocol.queue_layout import MAX_BATCH_NUM
from storage.interfaces import InnerBatch, InnerMessage

_SEPARATOR = 2
INNER_BATCH = MessageSysFlag.INNER_BATCH_FLAG
_INNER_FLAGS = INNER_BATCH | MessageSysFlag.NEED_UNWRAP_FLAG


def property_of(properties: bytes, name: bytes) -> bytes:
    """The value of a property in the text form; empty where it is missing."""
    mark = b"\x02" + name + b"\x01"
    start = 0 if properties.startswith(mark[1:]) else properties.find(mark) + 1
    if not start and not properties.startswith(mark[1:]):
        return b""
    return properties[start + len(mark) - 1 :].partition(b"\x02")[0]


def batch_messages(
    body: bytes, shared: Mapping[str, str], always: Mapping[str, str], message: InnerMessage
) -> InnerBatch:
    """The messages of an encoded batch, that share what `message` says (topic, queue, flags, hosts).

    `shared` are the batch's own properties, `always` those that the broker gives every message. Raises RecordError.
    """
    added = [
        (utf8(f"{name}\x01"), utf8(f"\x02{name}\x01"), utf8(f"{name}\x01{value}\x02")) for name, value in shared.items()
    ]
    suffix = utf8("".join(f"{name}\x01{value}\x02" for name, value in always.items()))
    entries, tags_codes = [], []
    for flag, content, properties in read_batch(body):
        if properties and properties[-1] != _SEPARATOR:
            properties += b"\x02"
        for first, later, entry in added:
            if not properties.startswith(first) and properties.find(later) < 0:  # twice as fast as `in` is for bytes
                properties += entry
        tags = property_of(properties, b"TAGS") if properties.find(b"TAGS\x01") >= 0 else b""
        entries.append((flag, content, properties + suffix))
        tags_codes.append(tags_code(from_utf8(tags)) if tags else 0)
    return InnerBatch(message, entries, tags_codes)


def inner_batch(body: bytes, properties: Mapping[str, str], flag: int, message: InnerMessage) -> InnerMessage:
    """The one record of a batch for a topic with batch queues, made after `message` (topic, queue, flags, hosts).

    Raises RecordError, BrokerError for more messages than a queue's entry can count.
    """
    count = len(read_batch(body))
    if not 1 <= count <= MAX_BATCH_NUM:
        remark = f"body: a batch of {count} messages, a batch queue takes 1 to {MAX_BATCH_NUM}"
        raise BrokerError(ResponseCode.MESSAGE_ILLEGAL, remark)
    counted = {**properties, PROPERTY_INNER_NUM: str(count)}
    tags = counted.get(PROPERTY_TAGS)
    return attrs.evolve(
        message,
        body=body,
        properties=utf8(encode_properties(counted)),
        property_map=counted,
        tags_code=tags_code(tags) if tags else 0,
        flag=flag,
        sys_flag=message.sys_flag | _INNER_FLAGS,
    )


def check_inner_number(properties: Mapping[str, str], sys_flag: int, body: bytes) -> None:
    """Whether a message that says how many it holds is such a batch. Raises BrokerError, RecordError.

    Apache's broker refuses one without the flag (HookUtils.checkInnerBatch), and believes the number otherwise.
    """
    number = properties.get(PROPERTY_INNER_NUM)
    if number is None:
        return
    if not sys_flag & INNER_BATCH:
        remark = f"properties: {PROPERTY_INNER_NUM} is {number}, but sysFlag {sys_flag} says that it is no inner batch"
        raise BrokerError(ResponseCode.MESSAGE_ILLEGAL, remark)
    count = len(read_batch(body))
    if number != str(count):
        remark = f"properties: {PROPERTY_INNER_NUM} is {number}, the body holds {count} messages"
        raise BrokerError(ResponseCode.MESSAGE_ILLEGAL, remark)
