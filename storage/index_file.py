"""One index file: a hash table from keys to physical offsets, written in the log's order (Apache: IndexFile).

`protocol.index_layout` declares the bytes. A new entry becomes its slot's newest and points to the one before it, so a
search walks from new to old. Keys themselves are not stored: two keys with one hash are found together, and who asks
must look into the records.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from protocol.index_layout import (
    ENTRY,
    ENTRY_BYTES,
    HEADER,
    HEADER_BYTES,
    INVALID_INDEX,
    SLOT,
    SLOT_BYTES,
    entry_position,
    file_bytes,
    slot_position,
    time_diff_seconds,
)
from storage.mapped_file import Allocate, MappedFile

ALLOCATION_STEP = 1 << 20
"""How far ahead of the last entry disk space is taken, in bytes; the slots get theirs at once."""

_MOST_SECONDS = 0x7FFFFFFF


class IndexSizes(NamedTuple):
    """Slots and entries of a file (maxHashSlotNum, maxIndexNum); entry 0 is never used."""

    slots: int
    entries: int

    @property
    def file_bytes(self) -> int:
        """The size of a file."""
        return file_bytes(self.slots, self.entries)


KeyEntry = tuple[int, int, int]
"""A key of one record: hash of `topic#key` without sign, physical offset, store time in ms."""


class StoredEntry(NamedTuple):
    """An entry as the file holds it."""

    key_hash: int
    physical_offset: int
    time_diff_seconds: int
    previous_index: int


class IndexView:
    """An index file to read, mapped as `view`: open for writing, or of another process."""

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
        """Take the header's values from the file. An empty file's next entry is 1."""
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
        """Whether no entry fits any more."""
        return self.index_count >= self.sizes.entries

    def entry(self, index: int) -> StoredEntry:
        """The entry of that number; they begin with 1."""
        return StoredEntry._make(ENTRY.unpack_from(self.view, entry_position(index, self.sizes.slots)))

    def newest_of(self, key_hash: int) -> int:
        """The number of the newest entry in the hash's slot; 0 for none."""
        newest: int = SLOT.unpack_from(self.view, slot_position(key_hash, self.sizes.slots))[0]
        return newest if INVALID_INDEX < newest < self.index_count else INVALID_INDEX

    def chain(self, key_hash: int) -> Iterator[StoredEntry]:
        """The entries of the hash's slot, from new to old; those of other hashes are among them."""
        index = self.newest_of(key_hash)
        while index > INVALID_INDEX:
            entry = self.entry(index)
            yield entry
            index = entry.previous_index if entry.previous_index < index else INVALID_INDEX

    def is_time_matched(self, begin: int, end: int) -> bool:
        """Whether records stored from `begin` to `end` may be in the file (Apache: isTimeMatched)."""
        first, last = self.begin_timestamp, self.end_timestamp
        return (begin < first and end > last) or first <= begin <= last or first <= end <= last

    def select(self, found: list[int], key_hash: int, max_count: int, begin: int, end: int) -> None:
        """Add the physical offsets of a hash, newest first, until `found` has `max_count` (Apache: selectPhyOffset).

        Times are in ms, both ends belong to the range; the file knows whole seconds since its first record.
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
        """What is wrong with the header or with the first or last entry; empty for a file that looks sound."""
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


class IndexFile(IndexView):
    """An index file that is written. Only what `put` was given is in it; the header follows at the end of each put."""

    def __init__(self, file: MappedFile, sizes: IndexSizes) -> None:
        super().__init__(file.path, file.view, sizes)
        self._file = file

    @classmethod
    def create(cls, path: str, sizes: IndexSizes, before: IndexView | None, allocate: Allocate) -> IndexFile:
        """A new file behind `before`, whose end it remembers until its first entry. Raises StoreFull, OSError."""
        file = MappedFile.create(path, 0, sizes.file_bytes, allocate)
        created = cls(file, sizes)
        try:
            created._reserve(1)
        except BaseException:
            file.delete()
            raise
        if before is not None:
            created.begin_timestamp = created.end_timestamp = before.end_timestamp
            created.begin_physical_offset = created.end_physical_offset = before.end_physical_offset
        created.write_header()
        return created

    @classmethod
    def open(cls, path: str, sizes: IndexSizes, allocate: Allocate) -> IndexFile:
        """A file that is there and has the right size."""
        return cls(MappedFile(path, 0, sizes.file_bytes, allocate), sizes)

    def _reserve(self, count: int) -> None:
        self._file.reserve(entry_position(self.index_count + count, self.sizes.slots), ALLOCATION_STEP)

    def put(self, keys: Sequence[KeyEntry]) -> int:
        """Write the first of `keys`, as many as fit; returns how many. Raises StoreFull; then none was written."""
        count = min(len(keys), self.sizes.entries - self.index_count)
        if count <= 0:
            return 0
        self._reserve(count)
        if self.index_count == 1:
            self._put([keys[0]])
            _, self.begin_physical_offset, self.begin_timestamp = keys[0]
            self.write_header()
            self._put(keys[1:count])
        else:
            self._put(keys[:count])
        self.write_header()
        return count

    def _put(self, keys: Sequence[KeyEntry]) -> None:
        """Write keys that fit. Written out in one loop: it runs once a message."""
        view, slots, index = self.view, self.sizes.slots, self.index_count
        begin, new_slots = self.begin_timestamp, 0
        position = entry_position(index, slots)
        read_slot, write_slot, write_entry = SLOT.unpack_from, SLOT.pack_into, ENTRY.pack_into
        offset, timestamp = self.end_physical_offset, self.end_timestamp
        for key_hash, offset, timestamp in keys:
            slot = HEADER_BYTES + key_hash % slots * SLOT_BYTES
            (previous,) = read_slot(view, slot)
            if not 0 < previous < index:
                previous = INVALID_INDEX
                new_slots += 1
            seconds = (timestamp - begin) // 1000
            if begin <= 0 or not 0 <= seconds <= _MOST_SECONDS:
                seconds = time_diff_seconds(begin, timestamp)
            write_entry(view, position, key_hash, offset, seconds, previous)
            write_slot(view, slot, index)
            index += 1
            position += ENTRY_BYTES
        self.index_count = index
        self.hash_slot_count += new_slots
        self.end_physical_offset, self.end_timestamp = offset, timestamp

    def write_header(self) -> None:
        """Bring the file's header up to date."""
        HEADER.pack_into(
            self.view,
            0,
            self.begin_timestamp,
            self.end_timestamp,
            self.begin_physical_offset,
            self.end_physical_offset,
            self.hash_slot_count,
            self.index_count,
        )

    def sync(self, sync: Callable[[int], None] = os.fdatasync) -> None:
        """Put the file on disk; safe in any thread. Raises OSError."""
        self._file.sync(sync)

    def release(self) -> None:
        """Give back the mapping."""
        self.view = memoryview(b"")
        self._file.release()

    def delete(self) -> None:
        """Remove the file."""
        self.view = memoryview(b"")
        self._file.delete()
