"""Reads consume queues and batch queues from disk, without the store's lock and without changes.

Entries are counted in `places`: an entry's position in the queue's bytes, in entries. Single ones are read as tuples,
many as numpy rows. Queues may be missing, damaged or behind the log, so code that follows an entry checks that a record
is there.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from twisted_mq.protocol.columns import Entries, Numbers, Positions
from twisted_mq.protocol.layouts.derive import derive_dtype
from twisted_mq.protocol.layouts.queue_entry import (
    BATCH_ENTRY,
    BATCH_QUEUE_ENTRY,
    ENTRY,
    QUEUE_ENTRY,
)
from twisted_mq.storage.files.files_at_rest import files_in
from twisted_mq.storage.interfaces import Inconsistency
from twisted_mq.storage.queues.batch_consume_queue import BatchEntry

Entry = tuple[int, int, int]


class EntryFiles:
    """The files of one queue: entries of one size up to the first unwritten one, counted in `places`."""

    layout = ENTRY
    dtype = derive_dtype(QUEUE_ENTRY)

    def __init__(self, topic: str, queue_id: int, directory: str) -> None:
        self.topic = topic
        self.queue_id = queue_id
        self.directory = directory
        self.entry_bytes = self.layout.size
        self._files = [file for file in files_in(directory) if file.size >= self.entry_bytes]
        self.file_size = self._files[0].size if self._files else 0
        self._first = self._files[0].first_offset if self._files else 0
        self._by_number = {(file.first_offset - self._first) // self.file_size: file for file in self._files}
        self.begin_place = self._first // self.entry_bytes
        self.end_place = self._find_end()

    @property
    def size_bytes(self) -> int:
        """The total length of the files in bytes."""
        return sum(file.size for file in self._files)

    def problems(self) -> Iterator[Inconsistency]:
        """Yield files of another size than the first, and files that are missing between others."""
        expected = self._files[0].first_offset if self._files else 0
        for file in self._files:
            if file.size != self.file_size or file.size % self.entry_bytes:
                yield Inconsistency(file.path, file.first_offset, f"is {file.size} bytes long, not {self.file_size}")
            if file.first_offset != expected:
                yield Inconsistency(file.path, file.first_offset, f"the file before it is missing, at {expected}")
            expected = file.first_offset + self.file_size

    def _find_end(self) -> int:
        """Return the place after the last entry: entries are written in order and have a size, the rest of a file is zeros."""
        for file in reversed(self._files):
            low = file.first_offset // self.entry_bytes
            high = low + file.size // self.entry_bytes
            if not self._is_written(low):
                continue
            while low < high:
                middle = (low + high) // 2
                if self._is_written(middle):
                    low = middle + 1
                else:
                    high = middle
            return low
        return self.begin_place

    def _is_written(self, place: int) -> bool:
        entry = self._read(place)
        return entry is not None and entry[1] > 0

    def _read(self, place: int) -> tuple[int, ...] | None:
        number, inside = divmod(place * self.entry_bytes - self._first, self.file_size)
        file = self._by_number.get(number)
        if file is None or inside + self.entry_bytes > file.size:
            return None
        return self.layout.unpack_from(file.readable, inside)

    @property
    def first_physical_offset(self) -> int | None:
        """Return the physical offset in the first entry; None without one."""
        entry = self._read(self.begin_place) if self.begin_place < self.end_place else None
        return None if entry is None else entry[0]

    def rows(self, places: Numbers) -> Entries:
        """Return the entries at these places; zeros (size 0: no entry) outside the written ones."""
        found = np.zeros(len(places), self.dtype)
        inside = (places >= self.begin_place) & (places < self.end_place)
        numbers = (places - self.begin_place) // max(1, self.file_size // self.entry_bytes)
        for number in np.unique(numbers[inside]).tolist():
            here = np.flatnonzero(inside & (numbers == number))
            self._fill(found, here, places[here], number)
        return found

    def _fill(self, found: Entries, rows: Positions, places: Numbers, number: int) -> None:
        """Put the entries at `places`, all of one file, into these rows."""
        file = self._by_number.get(number)
        if file is None:
            return
        part = np.frombuffer(file.readable, self.dtype, file.size // self.entry_bytes)
        inside = places - file.first_offset // self.entry_bytes
        kept = inside < len(part)
        found[rows[kept]] = part[inside[kept]]


class QueueFiles(EntryFiles):
    """A consume queue on disk; its places are queue offsets."""

    @property
    def min_offset(self) -> int:
        """The queue offset of the first entry."""
        return self.begin_place

    @property
    def max_offset(self) -> int:
        """The queue offset after the last entry."""
        return self.end_place

    def entry(self, offset: int) -> Entry | None:
        """Return (physical offset, size, tags code) at a queue offset; None outside the written ones."""
        entry = self._read(offset) if self.begin_place <= offset < self.end_place else None
        return None if entry is None else (entry[0], entry[1], entry[2])

    def entries(self) -> Iterator[tuple[int, Entry]]:
        """Yield (queue offset, entry) from the first to the last."""
        for offset in range(self.begin_place, self.end_place):
            entry = self.entry(offset)
            if entry is not None:
                yield offset, entry


class BatchQueueFiles(EntryFiles):
    """A batch queue on disk."""

    layout = BATCH_ENTRY
    dtype = derive_dtype(BATCH_QUEUE_ENTRY)

    def batch_entries(self) -> Iterator[BatchEntry]:
        """Yield all entries, see twisted_mq.storage.queues.batch_consume_queue."""
        for place in range(self.begin_place, self.end_place):
            entry = self._read(place)
            if entry is not None:
                yield entry[0], entry[1], entry[2], entry[3], entry[4], entry[5]

    @property
    def max_offset(self) -> int:
        """The queue offset after the last message; 0 without one."""
        last = self._read(self.end_place - 1) if self.end_place > self.begin_place else None
        return 0 if last is None else last[4] + last[5]
