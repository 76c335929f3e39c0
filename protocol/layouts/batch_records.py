"""The records of a batch, written in one piece: equal to `encode_record` of each, with what they share worked out once.

Messages that are all of one length become rows of numpy columns, others are packed one by one. The compiled form packs both.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import count

import numpy as np

from twisted_mq.protocol.layouts import compiled
from twisted_mq.protocol.layouts.checksum import crc32
from twisted_mq.protocol.layouts.derive import derive_dtype, derive_runs
from twisted_mq.protocol.layouts.record import CRC_MASK, MESSAGE, SYS_FLAG_POSITION, V6_FLAGS, magic_for
from twisted_mq.protocol.layouts.record_codec import encode_record
from twisted_mq.protocol.layouts.value_order import Packer

_LOW_FLAGS = SYS_FLAG_POSITION + 3
"""The byte of sys_flag that has the IPv6 bits."""
_DIFFERING = ("size", "body_crc", "flag", "queue_offset", "physical_offset", "body_length")
"""The fields in which the heads of a batch differ."""
_PARTS = (
    "size", "magic", "body_crc", "queue_id", "flag", "queue_offset", "physical_offset", "sys_flag", "body_length",
)  # fmt: skip
"""The parts of a head: these fields, and each stretch of others by the name of its first one."""
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
    """Return the records one after the other, and the size of each. All messages' properties end with `suffix`.

    `alike` says that all bodies have one length, and all properties. The caller has checked the lengths, as for
    `encode_record`.
    """
    write = compiled.forms.encode_records
    alike = write is None and alike and len(bodies) >= _FEWEST and bodies[0] != b"" != properties[0]
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
    if write is not None:
        columns = tuple(flags), tuple(map(crc32, bodies)), tuple(bodies), tuple(properties)
        found = write(
            pattern, *columns, queue_offset, physical_offset, _places(pattern[_LOW_FLAGS] & V6_FLAGS, len(topic))
        )
        if found is not None:
            return found
    encode = _encode_alike if alike else _encode_each
    return encode(pattern, flags, bodies, properties, suffix, topic, queue_offset, physical_offset)


def _encode_alike(
    pattern: bytes,
    flags: Sequence[int],
    bodies: Sequence[bytes],
    properties: Sequence[bytes],
    suffix: bytes,
    topic: bytes,
    queue_offset: int,
    physical_offset: int,
) -> tuple[bytearray, list[int]]:
    """Return the records of messages of one length; `pattern` is the first one's."""
    number, size = len(bodies), len(pattern)
    records = bytearray(pattern * number)
    row = _row(pattern[_LOW_FLAGS] & V6_FLAGS, len(bodies[0]), len(topic), len(properties[0]) + len(suffix))
    rows = np.frombuffer(records, row)
    rows["body_crc"] = np.fromiter(map(crc32, bodies), np.uint32, number) & CRC_MASK
    if flags.count(flags[0]) < number:
        rows["flag"] = flags
    rows["queue_offset"] = np.arange(queue_offset, queue_offset + number)
    rows["physical_offset"] = np.arange(physical_offset, physical_offset + number * size, size)
    rows["body"] = np.frombuffer(b"".join(bodies), row["body"])
    rows["properties"] = np.frombuffer(suffix.join(properties) + suffix, row["properties"])
    return records, [size] * number


@functools.lru_cache(maxsize=256)
def _row(v6_flags: int, body_bytes: int, topic_bytes: int, properties_bytes: int) -> np.dtype[np.void]:
    """Return the dtype of a whole record with variable fields of these lengths."""
    return derive_dtype(
        MESSAGE,
        sys_flag=v6_flags,
        magic=magic_for(topic_bytes),
        body_length=body_bytes,
        topic_length=topic_bytes,
        properties_length=properties_bytes,
    )


def _encode_each(
    pattern: bytes,
    flags: Sequence[int],
    bodies: Sequence[bytes],
    properties: Sequence[bytes],
    suffix: bytes,
    topic: bytes,
    queue_offset: int,
    physical_offset: int,
) -> tuple[bytes, list[int]]:
    """Return the records of any messages; `pattern` is the one of an empty message."""
    head, between = _packers(pattern[_LOW_FLAGS] & V6_FLAGS, len(topic))
    _, magic, _, queue_id, _, _, _, common, _ = head.unpack_from(pattern)
    topic_field, suffix_bytes = between.unpack_from(pattern, head.size)
    pack_head, pack_between, pattern_bytes, checksum = head.pack, between.pack, len(pattern), crc32
    sizes: list[int] = []
    pieces: list[bytes] = []
    columns = zip(flags, bodies, properties, count(queue_offset), strict=False)
    for flag, body, text, offset in columns:
        body_bytes, text_bytes = len(body), len(text)
        size = pattern_bytes + body_bytes + text_bytes
        crc = checksum(body) & CRC_MASK
        pieces += (
            pack_head(size, magic, crc, queue_id, flag, offset, physical_offset, common, body_bytes),
            body,
            pack_between(topic_field, text_bytes + suffix_bytes),
            text,
            suffix,
        )
        sizes.append(size)
        physical_offset += size
    return b"".join(pieces), sizes


@functools.lru_cache(maxsize=256)
def _packers(v6_flags: int, topic_bytes: int) -> tuple[Packer, Packer]:
    """Return packers of what differs in a record's head, with the rest as bytes, and of what is between body and properties."""
    head, between, *_ = derive_runs(MESSAGE, sys_flag=v6_flags, magic=magic_for(topic_bytes), topic_length=topic_bytes)
    return head.around(_DIFFERING, _PARTS), between.around(
        ("properties_length",), ("topic_length", "properties_length")
    )


@functools.lru_cache(maxsize=256)
def _places(v6_flags: int, topic_bytes: int) -> tuple[int, ...]:
    """Return the places that compiled code writes: in the head, and between body and properties."""
    head, between, *_ = derive_runs(MESSAGE, sys_flag=v6_flags, magic=magic_for(topic_bytes), topic_length=topic_bytes)
    numbers = compiled.places(
        head, size="l", body_crc="l", flag="l", body_length="l", queue_offset="q", physical_offset="q"
    )
    return numbers + compiled.places(between, properties_length="h")


_packers(0, 0)
