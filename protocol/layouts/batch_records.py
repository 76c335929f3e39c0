"""The records of a batch, written in one piece: equal to `encode_record` of each, with what they share worked out once.

Messages that are all of one length become rows of numpy columns, others are packed one by one.
"""

from __future__ import annotations

import functools
import itertools
import struct
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from twisted_mq.protocol.layouts.derive import derive_dtype
from twisted_mq.protocol.layouts.record import CRC_MASK, HEADS, MESSAGE, SYS_FLAG_POSITION, V6_FLAGS
from twisted_mq.protocol.layouts.record_codec import encode_record

Dtype = np.dtype[Any]

_MAGIC = slice(4, 8)
_FLAGS_BYTE = SYS_FLAG_POSITION + 3
_BODY_LENGTH_BYTES, _LENGTH_BYTES = 4, 2
_FEWEST = 12
"""Columns cost more than they save where fewer messages are alike."""


def encode_records(
    topic: bytes,
    flags: Sequence[int],
    bodies: Sequence[bytes],
    properties: Sequence[bytes],
    suffix: bytes,
    alike: bool,
    *,
    queue_id: int,
    queue_offset: int,
    physical_offset: int,
    born_timestamp: int,
    born_host: bytes,
    store_timestamp: int,
    store_host: bytes,
    sys_flag: int = 0,
    reconsume_times: int = 0,
) -> tuple[bytes | bytearray, list[int]]:
    """The records one behind the other, and the size of each. All messages' properties end with `suffix`.

    `alike` says that all bodies have one length, and all properties. The caller has checked the lengths, as for
    `encode_record`.
    """
    alike = alike and len(bodies) >= _FEWEST and bodies[0] != b"" != properties[0]
    pattern = encode_record(
        topic,
        bodies[0] if alike else b"",
        properties[0] + suffix if alike else suffix,
        queue_id=queue_id,
        queue_offset=queue_offset,
        physical_offset=physical_offset,
        born_timestamp=born_timestamp,
        born_host=born_host,
        store_timestamp=store_timestamp,
        store_host=store_host,
        flag=flags[0],
        sys_flag=sys_flag,
        reconsume_times=reconsume_times,
    )
    encode = _encode_alike if alike else _encode_each
    return encode(pattern, flags, bodies, properties, suffix, queue_id, queue_offset, physical_offset)


def _encode_alike(
    pattern: bytes,
    flags: Sequence[int],
    bodies: Sequence[bytes],
    properties: Sequence[bytes],
    suffix: bytes,
    queue_id: int,
    queue_offset: int,
    physical_offset: int,
) -> tuple[bytearray, list[int]]:
    """The records of messages of one length; `pattern` is the first one's."""
    count, size = len(bodies), len(pattern)
    records = bytearray(pattern * count)
    v6_flags = pattern[_FLAGS_BYTE] & V6_FLAGS
    row, body, text = _row(v6_flags, size, len(bodies[0]), len(properties[0]), len(suffix))
    rows = np.frombuffer(records, row)
    rows["body_crc"] = np.fromiter(map(zlib.crc32, bodies), np.uint32, count) & CRC_MASK
    if flags.count(flags[0]) < count:
        rows["flag"] = flags
    rows["queue_offset"] = np.arange(queue_offset, queue_offset + count)
    rows["physical_offset"] = np.arange(physical_offset, physical_offset + count * size, size)
    rows["body"] = np.frombuffer(b"".join(bodies), body)
    rows["properties"] = np.frombuffer(b"".join(properties), text)
    return records, [size] * count


@functools.lru_cache(maxsize=256)
def _row(v6_flags: int, size: int, body_bytes: int, text_bytes: int, suffix_bytes: int) -> tuple[Dtype, Dtype, Dtype]:
    """The fields in which records of one length differ, and those of them that hold body and properties."""
    head = derive_dtype(MESSAGE, sys_flag=v6_flags)
    names = ["body_crc", "flag", "queue_offset", "physical_offset"]
    fields = {name: head.fields[name][:2] for name in names} if head.fields else {}
    body, text = np.dtype(f"V{body_bytes}"), np.dtype(f"V{text_bytes}")
    fields["body"], fields["properties"] = (body, head.itemsize), (text, size - suffix_bytes - text_bytes)
    formats, offsets = zip(*fields.values(), strict=True)
    row = np.dtype({"names": list(fields), "formats": list(formats), "offsets": list(offsets), "itemsize": size})
    return row, body, text


def _encode_each(
    pattern: bytes,
    flags: Sequence[int],
    bodies: Sequence[bytes],
    properties: Sequence[bytes],
    suffix: bytes,
    queue_id: int,
    queue_offset: int,
    physical_offset: int,
) -> tuple[bytes, list[int]]:
    """The records of any messages; `pattern` is that of an empty one."""
    head_bytes = HEADS[pattern[_FLAGS_BYTE] & V6_FLAGS].size
    magic, common = pattern[_MAGIC], pattern[SYS_FLAG_POSITION : head_bytes - _BODY_LENGTH_BYTES]
    topic = pattern[head_bytes : len(pattern) - len(suffix) - _LENGTH_BYTES]
    pack_head, pack_tail = _packers(len(common), len(topic))
    pattern_bytes, suffix_bytes, checksum = len(pattern), len(suffix), zlib.crc32
    sizes: list[int] = []
    pieces: list[bytes] = []
    columns = zip(flags, bodies, properties, itertools.count(queue_offset), strict=False)
    for flag, body, text, offset in columns:
        body_bytes, text_bytes = len(body), len(text)
        size = pattern_bytes + body_bytes + text_bytes
        crc = checksum(body) & CRC_MASK
        pieces += (
            pack_head(size, magic, crc, queue_id, flag, offset, physical_offset, common, body_bytes),
            body,
            pack_tail(topic, text_bytes + suffix_bytes),
            text,
            suffix,
        )
        sizes.append(size)
        physical_offset += size
    return b"".join(pieces), sizes


@functools.lru_cache(maxsize=256)
def _packers(common_bytes: int, topic_bytes: int) -> tuple[Callable[..., bytes], Callable[..., bytes]]:
    """Of a record's head, `common_bytes` of which are the same in all of a batch, and of what is between body and properties."""
    return struct.Struct(f">i4siiiqq{common_bytes}si").pack, struct.Struct(f">{topic_bytes}sh").pack
