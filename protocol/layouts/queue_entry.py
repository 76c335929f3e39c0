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

from twisted_mq.protocol.layouts.derive import derive_struct

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
    "size" / construct.Rebuild(construct.Int16sb, lambda this: 20 + len(this.filter_bit_map)),
    "tags_code" / construct.Int64sb,
    "msg_store_time" / construct.Int64sb,
    "bit_map_size" / construct.Rebuild(construct.Int16sb, lambda this: len(this.filter_bit_map)),
    "filter_bit_map" / construct.Bytes(construct.this.bit_map_size),
)

ENTRY = derive_struct(QUEUE_ENTRY)
ENTRY_BYTES = ENTRY.size
ENTRY_FIELDS = len(QUEUE_ENTRY.subcons)
pack_entry = ENTRY.pack
"""physical_offset, size, tags_code to 20 bytes."""
unpack_entry = ENTRY.unpack_from
"""(physical_offset, size, tags_code) from a buffer and an offset."""
iterate_entries = ENTRY.iter_unpack
"""All entries of a buffer whose length is a multiple of 20."""


@functools.lru_cache(maxsize=1024)
def entries_struct(count: int) -> struct.Struct:
    """So many entries back to back."""
    return struct.Struct(ENTRY.format[:1] + ENTRY.format[1:] * count)


BATCH_ENTRY = derive_struct(BATCH_QUEUE_ENTRY)
BATCH_ENTRY_BYTES = BATCH_ENTRY.size
iterate_batch_entries = BATCH_ENTRY.iter_unpack
"""All entries of a buffer whose length is a multiple of 46, each a tuple in the layout's order."""
NO_COMPACT_OFFSET = -1
"""The compact_offset of every entry outside compacted topics (Apache: BatchConsumeQueue.INVALID_POS)."""
MAX_BATCH_NUM = 32767
"""batch_num is a signed short."""

EXTENSION_HEAD = derive_struct(QUEUE_EXTENSION_UNIT)

FILLER_SIZE = 0x7FFFFFFF
"""The size in entries that stand for offsets before a queue's first message (Apache: ConsumeQueue.fillPreBlank)."""
FILLER_ENTRY = pack_entry(0, FILLER_SIZE, 0)

MAX_EXTENSION_ADDRESS = -0x80000000 - 1
"""A tags code up to this is the address of an extension unit (Apache: ConsumeQueueExt.MAX_ADDR)."""


def is_extension_address(tags_code: int) -> bool:
    """Whether a tags code leads into the extension file (Apache: ConsumeQueueExt.isExtAddr)."""
    return tags_code <= MAX_EXTENSION_ADDRESS


def extension_offset(tags_code: int) -> int:
    """The position in the extension file that an extension address means (Apache: ConsumeQueueExt.unDecorate)."""
    return tags_code + (1 << 63) if is_extension_address(tags_code) else tags_code


def extension_address(offset: int) -> int:
    """The tags code for a position in the extension file (Apache: ConsumeQueueExt.decorate)."""
    return offset if is_extension_address(offset) else offset - (1 << 63)
