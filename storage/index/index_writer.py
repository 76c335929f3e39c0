"""Writes an index file (Apache: IndexFile.putKey). A new entry becomes its slot's newest and points to the one before it.

Many entries are written at once, as numpy columns: the slots of an index lie far apart, and the processor fetches
them in parallel. Only programs that write a store import numpy here; programs that only read one do not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from twisted_mq.protocol.layouts.index import HEADER, INVALID_INDEX, IndexSizes, entry_position
from twisted_mq.protocol.layouts.index_columns import KEY, Keys, entries_in, slots_in, times_diff_seconds
from twisted_mq.storage.files.mapped_file import MappedFile
from twisted_mq.storage.files.system_calls import Allocate, fdatasync
from twisted_mq.storage.index.index_file import IndexView, KeyEntry

ALLOCATION_STEP = 1 << 20
"""The bytes after the last entry for which disk space is taken; the slots get theirs at once."""


class IndexFile(IndexView):
    """An index file that is being written. It contains only the keys given to `put`; each put ends with writing the header."""

    def __init__(self, file: MappedFile, sizes: IndexSizes) -> None:
        super().__init__(file.path, file.view, sizes)
        self._file = file

    @classmethod
    def create(cls, path: str, sizes: IndexSizes, before: IndexView | None, allocate: Allocate) -> IndexFile:
        """Create a file after `before` and return it; its header keeps the end of `before` until its first entry.

        Raises StoreFull, OSError.
        """
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
        """Open and return an existing file of the right size."""
        return cls(MappedFile(path, 0, sizes.file_bytes, allocate), sizes)

    def _reserve(self, count: int) -> None:
        self._file.reserve(entry_position(self.index_count + count, self.sizes.slots), ALLOCATION_STEP)

    def put(self, keys: Keys | Sequence[KeyEntry]) -> int:
        """Write the first of `keys`, as many as fit; return how many. Raises StoreFull; then none was written."""
        count = min(len(keys), self.sizes.entries - self.index_count)
        if count <= 0:
            return 0
        keys = np.asarray(keys, KEY)[:count]
        self._reserve(count)
        if self.index_count == 1:
            self._put(keys[:1])
            _, self.begin_physical_offset, self.begin_timestamp = keys[0].tolist()
            self.write_header()
            keys = keys[1:]
        if len(keys):
            self._put(keys)
        self.write_header()
        return count

    def _put(self, keys: Keys) -> None:
        """Write keys that fit. If keys share a slot, each follows the one before it."""
        first, count = self.index_count, len(keys)
        numbers = np.arange(first, first + count)
        slots = keys["key_hash"] % self.sizes.slots
        table = slots_in(self.view, self.sizes)
        newest = table[slots].astype(np.int64)
        previous = np.where((newest > INVALID_INDEX) & (newest < first), newest, INVALID_INDEX)
        order = np.argsort(slots, kind="stable")
        follows = np.flatnonzero(slots[order[1:]] == slots[order[:-1]])
        previous[order[follows + 1]] = numbers[order[follows]]
        entries = entries_in(self.view, self.sizes, first, count)
        entries["key_hash"] = keys["key_hash"]
        entries["physical_offset"] = keys["physical_offset"]
        entries["time_diff_seconds"] = times_diff_seconds(self.begin_timestamp, keys["store_timestamp"])
        entries["previous_index"] = previous
        table[slots] = numbers
        self.index_count = first + count
        self.hash_slot_count += count - int(np.count_nonzero(previous))
        _, self.end_physical_offset, self.end_timestamp = keys[-1].tolist()

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

    def sync(self, sync: Callable[[int], None] = fdatasync) -> None:
        """Put the file on disk; safe in any thread. Raises OSError."""
        self._file.sync(sync)

    def release(self) -> None:
        """Release the mapping."""
        self.view = memoryview(b"")
        self._file.release()

    def delete(self) -> None:
        """Remove the file."""
        self.view = memoryview(b"")
        self._file.delete()
