"""Reads one index file: a hash table from keys to physical offsets, in the log's order (Apache: IndexFile).

`protocol.layouts.index` declares the bytes. A new entry becomes its slot's newest and points to the one before it, so a
search walks from new to old. Keys are not stored: two keys with the same hash are found together, so the caller must
check the records.
"""

from __future__ import annotations

from collections.abc import Iterator

from twisted_mq.protocol.layouts.index import (
    ENTRY,
    HEADER,
    INVALID_INDEX,
    SLOT,
    IndexEntry,
    IndexSizes,
    entry_position,
    slot_position,
)

KeyEntry = tuple[int, int, int]
"""A key of one record: unsigned hash of `topic#key`, physical offset, store time in ms."""


class IndexView:
    """An index file mapped for reading as `view`. It may be open for writing, here or in another process."""

    begin_timestamp: int
    end_timestamp: int
    begin_physical_offset: int
    end_physical_offset: int
    hash_slot_count: int
    index_count: int

    def __init__(self, path: str, view: memoryview, sizes: IndexSizes) -> None:
        self.path = path
        self.sizes = sizes
        self.view = view
        self.read_header()

    def read_header(self) -> None:
        """Read the header's values from the file. An empty file's next entry is 1."""
        (
            self.begin_timestamp,
            self.end_timestamp,
            self.begin_physical_offset,
            self.end_physical_offset,
            self.hash_slot_count,
            index_count,
        ) = HEADER.unpack_from(self.view, 0)
        self.index_count = index_count if index_count > 0 else 1

    @property
    def is_full(self) -> bool:
        """Return whether the file has no room for another entry."""
        return self.index_count >= self.sizes.entries

    def entry(self, index: int) -> IndexEntry:
        """Return the entry of that number; numbers begin with 1."""
        return IndexEntry._make(ENTRY.unpack_from(self.view, entry_position(index, self.sizes.slots)))

    def newest_of(self, key_hash: int) -> int:
        """Return the number of the newest entry in the hash's slot; 0 for an empty slot."""
        newest: int = SLOT.unpack_from(self.view, slot_position(key_hash, self.sizes.slots))[0]
        return newest if INVALID_INDEX < newest < self.index_count else INVALID_INDEX

    def chain(self, key_hash: int) -> Iterator[IndexEntry]:
        """Yield the entries of the hash's slot, from new to old, including those of other hashes."""
        index = self.newest_of(key_hash)
        while index > INVALID_INDEX:
            entry = self.entry(index)
            yield entry
            index = entry.previous_index if entry.previous_index < index else INVALID_INDEX

    def is_time_matched(self, begin: int, end: int) -> bool:
        """Return whether records stored from `begin` to `end` may be in the file (Apache: isTimeMatched)."""
        first, last = self.begin_timestamp, self.end_timestamp
        return (begin < first and end > last) or first <= begin <= last or first <= end <= last

    def select(self, found: list[int], key_hash: int, max_count: int, begin: int, end: int) -> None:
        """Add the physical offsets of a hash, newest first, until `found` has `max_count` (Apache: selectPhyOffset).

        Times are in ms, and both ends are included. The file stores whole seconds after its first record.
        """
        for entry in self.chain(key_hash):
            if len(found) >= max_count or entry.time_diff_seconds < 0:
                return
            stored = self.begin_timestamp + entry.time_diff_seconds * 1000
            if entry.key_hash == key_hash and begin <= stored <= end:
                found.append(entry.physical_offset)
            if stored < begin:
                return

    def fault(self) -> str:
        """Return the fault of the header or of the first or last entry; empty for a file that looks sound."""
        count, sizes = self.index_count, self.sizes
        if count > sizes.entries or not 0 <= self.hash_slot_count < count + 1:
            return f"the header says {count - 1} entries in {self.hash_slot_count} slots"
        if count == 1:
            return ""
        if self.begin_physical_offset > self.end_physical_offset or self.begin_physical_offset < 0:
            return f"the header says records from {self.begin_physical_offset} to {self.end_physical_offset}"
        first, last = self.entry(1).physical_offset, self.entry(count - 1).physical_offset
        if (first, last) != (self.begin_physical_offset, self.end_physical_offset):
            return f"the entries begin with {first} and end with {last}, the header says otherwise"
        return ""
