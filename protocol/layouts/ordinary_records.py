"""Ordinary records of a mapped log, many at a time: what the queues take of them, without a look at the rest.

Ordinary is a record of version 1 with IPv4 hosts that is no inner batch. The others are odd: both functions stop
before one, and record_codec.dispatch_fields reads it, which is the readable twin of all here; a test holds
both against each other. Positions count from the file's start.
"""

from __future__ import annotations

import functools
from mmap import mmap
from typing import Final

from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.protocol.layouts.checksum import crc32
from twisted_mq.protocol.layouts.derive import derive_runs
from twisted_mq.protocol.layouts.record import (
    CRC_MASK,
    MAGIC_V1,
    MESSAGE,
    SMALLEST_RECORD,
    V1_TOPIC_BYTES,
    V6_FLAGS,
    unpack_place,
)
from twisted_mq.protocol.text.java import from_utf8, tags_code
from twisted_mq.protocol.text.properties import PROPERTY_TAGS

Row = tuple[bytes, int, int, int, int, int, int, int]
"""Topic, queue id, queue offset, position, size, tags code, store timestamp, sys flag."""
QUEUE_ID: Final = 1
QUEUE_OFFSET: Final = 2
POSITION: Final = 3
SIZE: Final = 4
TIMESTAMP: Final = 6

_ODD_FLAGS = V6_FLAGS | MessageSysFlag.INNER_BATCH_FLAG
_HEAD, _BEFORE_TOPIC, _BEFORE_PROPERTIES = derive_runs(MESSAGE, sys_flag=0, magic=MAGIC_V1)
_HEAD_BYTES = _HEAD.size
_TOPIC = _BEFORE_TOPIC.size
_LENGTH_BYTES = _BEFORE_PROPERTIES.size
_LONGEST_TOPIC_END = _TOPIC + V1_TOPIC_BYTES
_TAGS = PROPERTY_TAGS.encode() + b"\x01"
_BEHIND_OTHERS = b"\x02" + _TAGS
_LONGEST_CACHED = 64

_read = _HEAD.of(
    "size",
    "magic",
    "body_crc",
    "queue_id",
    "queue_offset",
    "sys_flag",
    "store_timestamp",
    "body_length",
).unpack_from
_properties_length = _BEFORE_PROPERTIES.of_all("properties_length").unpack_from


def pass_records(data: mmap, base: int, position: int, end: int) -> int:
    """Return the end of the last record of version 1, from `position` on, that is whole before `end`.

    Each record begins where the one before it ends, and names that place; `base` is the physical offset of the file.
    """
    last = end - SMALLEST_RECORD
    while position <= last:
        size, magic, physical_offset = unpack_place(data, position)
        behind = position + size
        if magic != MAGIC_V1 or physical_offset != base + position or size < SMALLEST_RECORD or behind > end:
            break
        position = behind
    return position


def read_rows(data: mmap, position: int, stop: int, end: int, rows: list[Row], *, check_crc: bool = False) -> int:
    """Add what the queues take of records that were passed before: that begin before `stop` and end before `end`.

    Returns where it stopped, perhaps at an odd record. Odd here is also one whose lengths do not add up, that names no
    queue, whose tags are not plain to see, or, where asked, whose body has another CRC. In the schedule topic a queue wants
    the delivery time, which a row does not tell.
    """
    while position < stop:
        size, magic, crc, queue_id, queue_offset, sys_flag, timestamp, length = _read(data, position)
        behind = position + size
        if magic != MAGIC_V1 or sys_flag & _ODD_FLAGS or behind > end or not 0 <= length <= size - SMALLEST_RECORD:
            break
        body = position + _HEAD_BYTES
        text = data[body + length : behind]
        topic_end = _TOPIC + text[0]
        properties = topic_end + _LENGTH_BYTES
        left = len(text) - properties
        if (
            queue_id < 0
            or queue_offset < 0
            or topic_end > _LONGEST_TOPIC_END
            or left < 0
            or _properties_length(text, topic_end)[0] != left
        ):
            break
        if check_crc and length and crc32(data[body : body + length]) & CRC_MASK != crc:
            break
        code = _plain_code(text[properties:])
        if code is None:
            break
        rows.append((text[_TOPIC:topic_end], queue_id, queue_offset, position, size, code, timestamp, sys_flag))
        position = behind
    return position


def _plain_code(properties: bytes) -> int | None:
    """Return the code of the tags among stored properties: 0 without tags, None if they are not plain to see."""
    _, found, behind = properties.rpartition(_BEHIND_OTHERS)
    if not found:
        if not properties.startswith(_TAGS):
            return 0
        behind = properties[len(_TAGS) :]
    tags, end, _ = behind.partition(b"\x02")
    if not end or not tags:
        return None
    return _cached_code(tags) if len(tags) <= _LONGEST_CACHED else tags_code(from_utf8(tags))


@functools.lru_cache(maxsize=4096)
def _cached_code(tags: bytes) -> int:
    return tags_code(from_utf8(tags))
