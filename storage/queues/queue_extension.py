"""The store time and filter bit map of messages, which queue entries have no room for (Apache: ConsumeQueueExt).

With enableConsumeQueueExt an entry's tags code is the address of a unit in <root>/consumequeue_ext/<topic>/<queue>:
the unit's byte offset with the highest bit set, so -9223372036854775808 for the first one. The tags code itself is in
the unit. Units never cross the end of a file: if a unit and 4 more bytes do not fit, a size of -1 ends the file.

The entries tell how far the units go: a unit after that of the last entry is ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, runtime_checkable

import attrs

from twisted_mq.protocol.layouts.queue_entry import (
    ENTRY_BYTES,
    EXTENSION_END,
    EXTENSION_HEAD,
    FILLER_SIZE,
    LEAST_EXTENSION_END_BYTES,
    LONGEST_EXTENSION_UNIT,
    encode_extension_unit,
    extension_address,
    extension_offset,
    is_extension_address,
    iterate_entries,
    pack_entry,
    read_extension_unit,
)
from twisted_mq.protocol.layouts.record import read_head, read_spans
from twisted_mq.protocol.text.properties import decode_property_bytes
from twisted_mq.storage.errors import StoreFull
from twisted_mq.storage.files.descriptors import MappedFiles
from twisted_mq.storage.files.mapped_file_queue import MappedFileQueue, Truncation
from twisted_mq.storage.files.system_calls import Allocate, Sync, fdatasync, posix_fallocate
from twisted_mq.storage.interfaces import RecordTest
from twisted_mq.storage.queues.consume_queue import ConsumeQueue, Entry, QueueLoad


@attrs.frozen
class ExtensionUnit:
    """The extension of one entry; `bit_map` is None if no group filters the topic."""

    tags_code: int
    store_timestamp: int
    bit_map: bytes | None = None


Describe = Callable[[str, int, int], tuple[int, bytes | None]]
"""Returns the store time and filter bit map of a record, from topic, physical offset and size."""


BitMapOf = Callable[[str, Mapping[str, str]], bytes | None]
"""Returns the filter bit map of a message, from topic and properties; None if no group filters the topic."""


def describe(topic: str, record: memoryview, bit_map_of: BitMapOf | None) -> tuple[int, bytes | None]:
    """Return the store time and bit map of a whole record."""
    head = read_head(record, 0)
    if bit_map_of is None:
        return head.store_timestamp, None
    spans = read_spans(record, 0, head)
    return head.store_timestamp, bit_map_of(topic, decode_property_bytes(record[spans.properties : spans.end]))


@runtime_checkable
class BitMapTest(Protocol):
    """A test of records that can tell from a bit map that a record will fail it."""

    def __call__(self, record: memoryview | bytes) -> bool:
        """Return whether the record is wanted."""

    def may_match(self, store_timestamp: int, bit_map: bytes) -> bool:
        """Return False only if the bit map shows that the record is not wanted."""


class QueueExtension:
    """The extension units of one queue."""

    def __init__(
        self,
        directory: str,
        file_size: int,
        step: int,
        allocate: Allocate = posix_fallocate,
        mappings: MappedFiles | None = None,
    ) -> None:
        self.files = MappedFileQueue(directory, file_size, allocate, mappings=mappings)
        self.end = 0
        self._flushed = 0
        self._step = step

    def append(self, unit: ExtensionUnit) -> int | None:
        """Write a unit; return its address, or None if it is too long or the disk is full."""
        bit_map = unit.bit_map or b""
        size = EXTENSION_HEAD.size + len(bit_map)
        if size > min(LONGEST_EXTENSION_UNIT, self.files.file_size - LEAST_EXTENSION_END_BYTES):
            return None
        try:
            offset = self._room_for(size)
        except StoreFull:
            return None
        file = self.files.files[-1]
        position = offset - file.first_offset
        file.view[position : position + size] = encode_extension_unit(unit.tags_code, unit.store_timestamp, bit_map)
        self.end = offset + size
        return extension_address(offset)

    def _room_for(self, size: int) -> int:
        """Return the position for a unit of `size` bytes in the last file. Raises StoreFull."""
        file_size, files = self.files.file_size, self.files.files
        offset, position = self.end, self.end % file_size
        in_last_file = files and offset < files[-1].first_offset + file_size
        if in_last_file and position + size + LEAST_EXTENSION_END_BYTES > file_size:
            files[-1].reserve(position + len(EXTENSION_END), self._step)
            files[-1].view[position : position + len(EXTENSION_END)] = EXTENSION_END
            offset += file_size - position
        if not files or offset >= files[-1].first_offset + file_size:
            self.files.append_file(offset)
        files[-1].reserve(offset - files[-1].first_offset + size, self._step)
        return offset

    def get(self, address: int) -> ExtensionUnit | None:
        """Return the unit at an address; None without one."""
        offset = extension_offset(address)
        file = self.files.find(offset)
        if not is_extension_address(address) or file is None or offset + EXTENSION_HEAD.size > self.end:
            return None
        found = read_extension_unit(file.readable, offset - file.first_offset)
        if found is None:
            return None
        tags_code, store_timestamp, bit_map = found
        return ExtensionUnit(tags_code, store_timestamp, bit_map or None)

    def load(self) -> None:
        """Find the files; everything in them may be units until `cut` is called."""
        odd = self.files.load()
        if odd or self.files.missing() is not None:
            self.files.destroy_all()
        self.end = self._flushed = self.files.max_offset

    def cut(self, address: int | None) -> None:
        """Drop everything after the unit at `address`; everything at all for None."""
        unit = self.get(address) if address is not None else None
        end = 0
        if unit is not None and address is not None:
            end = extension_offset(address) + EXTENSION_HEAD.size + len(unit.bit_map or b"")
        self.files.truncate(end)
        if unit is None:
            self.files.destroy()
        self.end = end
        self._flushed = min(self._flushed, end)

    def trim(self, address: int) -> list[str]:
        """Forget the files that end before a unit; return their paths."""
        offset = extension_offset(address)
        count = sum(file.first_offset + file.size <= offset for file in self.files.files[:-1])
        return self.files.drop_first(count)

    def flush(self, sync: Sync) -> None:
        """Put all units on disk. Raises OSError."""
        start, end = self._flushed, self.end
        for file in tuple(self.files.files):
            if file.first_offset < end and file.first_offset + file.size > start:
                file.sync(sync)
        self._flushed = end

    def is_on_disk(self) -> None:
        """Note that all units are on disk."""
        self._flushed = self.end


class ExtendedConsumeQueue(ConsumeQueue):
    """A queue whose entries lead to units; readers of entries get the tags codes from the units.

    An entry that is written while `writes` is off, or whose unit finds no room, has its plain tags code.
    """

    __slots__ = ("_describe", "_writes", "extension")

    def __init__(
        self,
        topic: str,
        queue_id: int,
        directory: str,
        file_size: int,
        allocation_step: int,
        allocate: Allocate,
        mappings: MappedFiles | None,
        *,
        extension: QueueExtension,
        describe: Describe,
        writes: bool,
    ) -> None:
        self.extension = extension
        self._describe = describe
        self._writes = writes
        super().__init__(topic, queue_id, directory, file_size, allocation_step, allocate, mappings)

    def append(self, physical_offset: int, size: int, tags_code: int) -> None:
        """Write the next entry and its unit."""
        if self._writes:
            unit = ExtensionUnit(tags_code, *self._describe(self.topic, physical_offset, size))
            address = self.extension.append(unit)
            tags_code = tags_code if address is None else address
        super().append(physical_offset, size, tags_code)

    append_many = ConsumeQueue._append_each

    def entry(self, offset: int) -> Entry | None:
        """Return the entry at an offset, with the tags code from its unit."""
        return self._resolved(super().entry(offset))

    def _resolved(self, entry: Entry | None) -> Entry | None:
        if entry is None or not is_extension_address(entry[2]):
            return entry
        unit = self.extension.get(entry[2])
        return entry if unit is None else (entry[0], entry[1], unit.tags_code)

    def entries_in_file(self, offset: int, count: int) -> memoryview:
        """Return at most `count` entries from `offset` on, with the tags codes from their units."""
        made = bytearray()
        for entry in iterate_entries(super().entries_in_file(offset, count)):
            made += pack_entry(*(self._resolved(entry) or entry))
        return memoryview(bytes(made))

    def units(self, offset: int, count: int) -> list[tuple[int, ExtensionUnit]]:
        """Return (physical offset, unit) of at most `count` entries from `offset` on, out of one file, if they have units."""
        entries = iterate_entries(super().entries_in_file(offset, count))
        found = ((physical_offset, self.extension.get(tags_code)) for physical_offset, _, tags_code in entries)
        return [(physical_offset, unit) for physical_offset, unit in found if unit is not None]

    def narrowed(self, test: RecordTest, offset: int, count: int) -> RecordTest:
        """Return a test for records from `offset` on that rejects without reading them those that the bit map rules out."""
        if not isinstance(test, BitMapTest):
            return test
        refused = {
            physical_offset
            for physical_offset, unit in self.units(offset, count)
            if unit.bit_map is not None and not test.may_match(unit.store_timestamp, unit.bit_map)
        }
        return lambda record: read_head(record, 0).physical_offset not in refused and test(record)

    def flush(self, least_bytes: int, sync: Sync = fdatasync) -> None:
        """Put the visible entries on disk, the units before them. Raises OSError."""
        unflushed = (self.max_offset - self.flushed_offset) * ENTRY_BYTES
        if unflushed and unflushed >= least_bytes:
            self.extension.flush(sync)
        super().flush(least_bytes, sync)

    def is_on_disk(self) -> None:
        """Note that all visible entries and their units are on disk."""
        super().is_on_disk()
        self.extension.is_on_disk()

    def load(self) -> QueueLoad:
        """Find entries and units; from the first entry whose unit is lost, drop the entries, to be written again."""
        load = super().load()
        self.extension.load()
        if load.damaged:
            return load
        keep = self.max_offset
        while keep > self.min_offset and self._lacks_unit(keep - 1):
            keep -= 1
        dropped = self.max_offset - keep
        self.truncate(keep)
        if not dropped:
            return load
        return QueueLoad(truncation=load.truncation or Truncation(cleared_bytes=dropped * ENTRY_BYTES))

    def _lacks_unit(self, offset: int) -> bool:
        entry = super().entry(offset)
        return entry is not None and is_extension_address(entry[2]) and self.extension.get(entry[2]) is None

    def truncate(self, offset: int) -> int:
        """Drop the entries from `offset` on; return how many. Their units go too while units are written."""
        dropped = super().truncate(offset)
        if self._writes and self.extension.files.files:
            self.extension.cut(self._last_address())
        return dropped

    def _last_address(self) -> int | None:
        """Return the address in the last entry that has one; None without one."""
        for offset in range(self.max_offset - 1, self.min_offset - 1, -1):
            entry = super().entry(offset)
            if entry is not None and entry[1] != FILLER_SIZE and is_extension_address(entry[2]):
                return entry[2]
        return None

    def trim(self, min_physical_offset: int) -> list[str]:
        """Forget the files of entries and units whose records are no longer in the log; return their paths."""
        paths = super().trim(min_physical_offset)
        entry = super().entry(self.min_offset)
        if entry is not None and is_extension_address(entry[2]):
            paths += self.extension.trim(entry[2])
        return paths

    def release(self) -> None:
        """Release all files."""
        super().release()
        self.extension.files.release()

    def destroy(self) -> None:
        """Delete the files of the queue and of its units."""
        super().destroy()
        self.extension.files.destroy()
        self.extension.end = 0

    def destroy_directory(self) -> None:
        """Delete the files of a damaged queue."""
        super().destroy_directory()
        self.extension.files.destroy_all()
        self.extension.end = 0
