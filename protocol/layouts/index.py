"""Index files: which messages have a key (Apache: IndexFile, IndexHeader).

A file is the header, `slots` slots of 4 bytes, and room for `entries` entries; entry 0 is never used.

Header, 40 bytes:

    offset size name
    0      8    begin_timestamp        store time of the first message, ms
    8      8    end_timestamp          of the last
    16     8    begin_physical_offset
    24     8    end_physical_offset
    32     4    hash_slot_count        slots in use
    36     4    index_count            number of the next entry: 1 in an empty file

Slot: 4 bytes, the number of the newest entry whose key falls there, 0 for none.

Entry, 20 bytes:

    0      4    key_hash               of `topic#key`, without sign
    4      8    physical_offset
    12     4    time_diff_seconds      since begin_timestamp
    16     4    previous_index         the next older entry of the slot, 0 for none
"""

from __future__ import annotations

from typing import NamedTuple

import construct

from twisted_mq.protocol.layouts.derive import derive_fields, derive_struct
from twisted_mq.protocol.text.java import java_hash

INDEX_HEADER = construct.Struct(
    "begin_timestamp" / construct.Int64sb,
    "end_timestamp" / construct.Int64sb,
    "begin_physical_offset" / construct.Int64sb,
    "end_physical_offset" / construct.Int64sb,
    "hash_slot_count" / construct.Int32sb,
    "index_count" / construct.Int32sb,
)

INDEX_SLOT = construct.Struct("newest_index" / construct.Int32sb)

INDEX_ENTRY = construct.Struct(
    "key_hash" / construct.Int32sb,
    "physical_offset" / construct.Int64sb,
    "time_diff_seconds" / construct.Int32sb,
    "previous_index" / construct.Int32sb,
)

HEADER = derive_struct(
    INDEX_HEADER,
    "begin_timestamp",
    "end_timestamp",
    "begin_physical_offset",
    "end_physical_offset",
    "hash_slot_count",
    "index_count",
)
SLOT = derive_struct(INDEX_SLOT)
unpack_begin_offset = derive_fields(INDEX_HEADER, "begin_physical_offset").unpack_from
HEADER_BYTES = HEADER.size
SLOT_BYTES = SLOT.size

INVALID_INDEX = 0
"""In a slot: empty; in an entry: the last of its slot."""

DEFAULT_SLOTS = 5_000_000
DEFAULT_ENTRIES = 20_000_000
MAX_TIME_DIFF_SECONDS = 0x7FFFFFFF


def index_key(topic: str, key: str) -> str:
    """Return the text that is hashed for a message's key or unique key."""
    return f"{topic}#{key}"


def key_hash(text: str) -> int:
    """Return the hash without sign; 0 for the one hash whose positive form Java cannot hold."""
    return positive_hash(java_hash(text) & 0xFFFFFFFF)


def positive_hash(bits: int) -> int:
    """Return the same from a hash's 32 bits without sign: 0xFFFFFFFF is -1 and becomes 1."""
    if bits <= 0x7FFFFFFF:
        return bits
    return 0x100000000 - bits if bits != 0x80000000 else 0


def slot_position(hash_value: int, slots: int) -> int:
    """Return where the slot of a key's hash is in the file."""
    return HEADER_BYTES + (hash_value % slots) * SLOT_BYTES


def entry_position(index: int, slots: int) -> int:
    """Return where an entry is in the file; `index` counts from 1."""
    return HEADER_BYTES + slots * SLOT_BYTES + index * ENTRY_BYTES


def file_bytes(slots: int, entries: int) -> int:
    """Return the size of an index file."""
    return entry_position(entries, slots)


def time_diff_seconds(begin_timestamp: int, store_timestamp: int) -> int:
    """Return the entry's time field: whole seconds, never negative; 0 in a file without a first message."""
    if begin_timestamp <= 0:
        return 0
    return min(max((store_timestamp - begin_timestamp) // 1000, 0), MAX_TIME_DIFF_SECONDS)


class IndexEntry(NamedTuple):
    """An entry as the file holds it, as INDEX_ENTRY declares it."""

    key_hash: int
    physical_offset: int
    time_diff_seconds: int
    previous_index: int


ENTRY = derive_struct(INDEX_ENTRY, *IndexEntry._fields)
ENTRY_BYTES = ENTRY.size


class IndexSizes(NamedTuple):
    """Slots and entries of a file (maxHashSlotNum, maxIndexNum); entry 0 is never used."""

    slots: int
    entries: int

    @property
    def file_bytes(self) -> int:
        """The size of a file."""
        return file_bytes(self.slots, self.entries)
