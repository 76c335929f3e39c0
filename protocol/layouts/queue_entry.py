"""Entries of consume queue files (Apache: ConsumeQueue), of their extension (ConsumeQueueExt) and batch form.

Consume queue entry, 20 bytes:

    offset size name
    0      8    physical_offset  of the record in the commit log
    8      4    size             of the record
    12     8    tags_code        hash of the tags, delivery time in ms for delayed messages, or an extension address

Batch consume queue entry, 46 bytes:

    0      8    physical_offset
    8      4    size
    12     8    tags_code
    20     8    store_time       ms
    28     8    msg_base_offset  queue offset of the first message
    36     2    batch_num        messages in the record, at least 1
    38     4    compact_offset   -1
    42     4    reserved         0

Extension unit, 20 bytes and the bit map:

    0      2    size             of the whole unit, at most 32767
    2      8    tags_code
    10     8    msg_store_time   ms
    18     2    bit_map_size
    20     ..   filter_bit_map
"""

from __future__ import annotations

import functools
import struct

import construct

from twisted_mq.protocol.layouts.derive import (
    LengthError,
    derive_head,
    derive_spans,
    derive_struct,
    field_offset,
    repeated,
)
from twisted_mq.protocol.layouts.value_order import Packer

QUEUE_ENTRY = construct.Struct(
    "physical_offset" / construct.Int64sb,
    "size" / construct.Int32sb,
    "tags_code" / construct.Int64sb,
)

BATCH_QUEUE_ENTRY = construct.Struct(
    "physical_offset" / construct.Int64sb,
    "size" / construct.Int32sb,
    "tags_code" / construct.Int64sb,
    "store_time" / construct.Int64sb,
    "msg_base_offset" / construct.Int64sb,
    "batch_num" / construct.Int16sb,
    "compact_offset" / construct.Int32sb,
    "reserved" / construct.Int32sb,
)

QUEUE_EXTENSION_UNIT = construct.Struct(
    "size" / construct.Rebuild(construct.Int16sb, lambda this: EXTENSION_HEAD.size + len(this.filter_bit_map)),
    "tags_code" / construct.Int64sb,
    "msg_store_time" / construct.Int64sb,
    "bit_map_size" / construct.Rebuild(construct.Int16sb, lambda this: len(this.filter_bit_map)),
    "filter_bit_map" / construct.Bytes(construct.this.bit_map_size),
)

ENTRY = derive_struct(QUEUE_ENTRY, "physical_offset", "size", "tags_code")
ENTRY_BYTES = ENTRY.size
ENTRY_FIELDS = len(QUEUE_ENTRY.subcons)
_SIZE_WORD, _ENTRY_WORDS = field_offset(QUEUE_ENTRY, "size") // 4, ENTRY_BYTES // 4
"""Entries as numbers of 4 bytes: a size of 0 reads so in any byte order."""
pack_entry = ENTRY.pack
"""physical_offset, size, tags_code to 20 bytes."""
unpack_entry = ENTRY.unpack_from
"""(physical_offset, size, tags_code) from a buffer and an offset."""
iterate_entries = ENTRY.iter_unpack
"""All entries of a buffer whose length is a multiple of 20."""


def written_bytes(entries: memoryview) -> int:
    """Return how many bytes of entries are before the first entry of size 0: the rest was never written."""
    sizes = entries.cast("i")[_SIZE_WORD::_ENTRY_WORDS].tolist()
    return sizes.index(0) * ENTRY_BYTES if 0 in sizes else len(entries)


@functools.lru_cache(maxsize=1024)
def entries_struct(count: int) -> struct.Struct:
    """Return a struct of `count` entries back to back."""
    return repeated(ENTRY, count)


BATCH_ENTRY = derive_struct(
    BATCH_QUEUE_ENTRY,
    "physical_offset",
    "size",
    "tags_code",
    "store_time",
    "msg_base_offset",
    "batch_num",
    "compact_offset",
    "reserved",
)
BATCH_ENTRY_BYTES = BATCH_ENTRY.size
iterate_batch_entries = BATCH_ENTRY.iter_unpack
"""All entries of a buffer whose length is a multiple of 46, each a tuple in the layout's order."""
NO_COMPACT_OFFSET = -1
"""The compact_offset of every entry outside compacted topics (Apache: BatchConsumeQueue.INVALID_POS)."""
MAX_BATCH_NUM = 32767
"""batch_num is a signed short."""

EXTENSION_HEAD: Packer = derive_head(QUEUE_EXTENSION_UNIT, "size", "tags_code", "msg_store_time", "bit_map_size")
_extension_spans = derive_spans(QUEUE_EXTENSION_UNIT)
LONGEST_EXTENSION_UNIT = 32767
"""In bytes: its size is a signed short."""
QUEUE_EXTENSION_END = construct.Struct("size" / construct.Const(-1, construct.Int16sb))
EXTENSION_END = derive_struct(QUEUE_EXTENSION_END).pack(-1)
"""The bytes after the last unit of a full file (Apache: ConsumeQueueExt.fullFillToEnd)."""
LEAST_EXTENSION_END_BYTES = 4
"""A unit leaves at least so many in its file (Apache: ConsumeQueueExt.END_BLANK_DATA_LENGTH)."""


def encode_extension_unit(tags_code: int, store_timestamp: int, bit_map: bytes) -> bytes:
    """Encode a unit of a queue's extension."""
    return EXTENSION_HEAD.pack(EXTENSION_HEAD.size + len(bit_map), tags_code, store_timestamp, len(bit_map)) + bit_map


def read_extension_unit(data: memoryview, position: int) -> tuple[int, int, bytes] | None:
    """Return (tags code, store time, bit map) of the unit there; None if no whole unit is there."""
    if position + EXTENSION_HEAD.size > len(data):
        return None
    size, tags_code, store_timestamp, length = EXTENSION_HEAD.unpack_from(data, position)
    try:
        begin, end = _extension_spans(data, position + EXTENSION_HEAD.size, length, position + size)
    except LengthError:
        return None
    return (tags_code, store_timestamp, bytes(data[begin:end])) if end <= len(data) else None


FILLER_SIZE = 0x7FFFFFFF
"""The size in entries that replace offsets before a queue's first message (Apache: ConsumeQueue.fillPreBlank)."""
FILLER_ENTRY = pack_entry(0, FILLER_SIZE, 0)

MAX_EXTENSION_ADDRESS = -0x80000000 - 1
"""A tags code up to this is the address of an extension unit (Apache: ConsumeQueueExt.MAX_ADDR)."""


def is_extension_address(tags_code: int) -> bool:
    """Return whether a tags code leads into the extension file (Apache: ConsumeQueueExt.isExtAddr)."""
    return tags_code <= MAX_EXTENSION_ADDRESS


def extension_offset(tags_code: int) -> int:
    """Return the position in the extension file that an extension address means (Apache: ConsumeQueueExt.unDecorate)."""
    return tags_code + (1 << 63) if is_extension_address(tags_code) else tags_code


def extension_address(offset: int) -> int:
    """Return the tags code for a position in the extension file (Apache: ConsumeQueueExt.decorate)."""
    return offset if is_extension_address(offset) else offset - (1 << 63)
