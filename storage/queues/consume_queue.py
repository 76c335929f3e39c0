"""The queue of one topic and queue id: the places of its records in the log, 20 bytes a message (Apache: ConsumeQueue).

Offsets here are queue offsets (entries) unless a name says bytes. Entries of files that precede the first message
(a queue rebuilt from a log that begins in its middle) are fillers, which readers skip. An entry that is equal to
the next one is a bridge over a lost message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import attrs

from twisted_mq.protocol.layouts.queue_entry import (
    ENTRY,
    ENTRY_BYTES,
    ENTRY_FIELDS,
    FILLER_ENTRY,
    FILLER_SIZE,
    entries_struct,
    written_bytes,
)
from twisted_mq.protocol.layouts.record_codec import DispatchFields
from twisted_mq.protocol.names.system_topics import SCHEDULE_TOPIC
from twisted_mq.storage.files.descriptors import MappedFiles
from twisted_mq.storage.files.mapped_file import MappedFile
from twisted_mq.storage.files.mapped_file_queue import MappedFileQueue, OddFile, Truncation
from twisted_mq.storage.files.system_calls import Allocate, Sync, fdatasync, posix_fallocate

_pack_into = ENTRY.pack_into
_unpack_from = ENTRY.unpack_from
FILES_CHECKED = 3
"""The number of the last files that are checked at a start, as in Apache."""

_NAME_DEPTH = 3
"""The queue's directory, its topic's directory, and consumequeue."""

Entry = tuple[int, int, int]
"""physical offset, size, tags code."""


def is_at_or_behind(entry: Entry | None, physical_offset: int) -> bool:
    """Return whether there is an entry that leads to a record at or after `physical_offset`; a filler leads nowhere."""
    return entry is not None and entry[1] != FILLER_SIZE and entry[0] >= physical_offset


@attrs.frozen
class QueueLoad:
    """The result of loading a queue. If there were odd files or a hole between files, nothing was loaded.

    `first` and `last` are the entries at both ends, as far as the load has seen them.
    """

    odd_files: tuple[OddFile, ...] = ()
    missing_file: str | None = None
    truncation: Truncation = attrs.field(factory=Truncation)
    first: Entry | None = None
    last: Entry | None = None

    @property
    def damaged(self) -> bool:
        """Return whether the queue has to be built again from the log."""
        return bool(self.odd_files) or self.missing_file is not None


class ConsumeQueue:
    """A consume queue. `next_offset` is for the next message put; `max_offset` follows the last visible message."""

    _written_file: MappedFile
    """The file of the offsets from `_file_start` to `_file_end`; both are -1 if no file is being written."""

    __slots__ = (
        "_allocation_step",
        "_file_end",
        "_file_start",
        "_written_file",
        "files",
        "flushed_offset",
        "is_schedule",
        "max_offset",
        "max_physical_offset",
        "min_offset",
        "next_offset",
        "queue_id",
        "reserved_offset",
        "topic",
        "topic_bytes",
    )

    entry_bytes = ENTRY_BYTES
    batched = False
    """True if its offsets count the messages inside records, see batch_consume_queue."""

    def __init__(
        self,
        topic: str,
        queue_id: int,
        directory: str,
        file_size: int,
        allocation_step: int,
        allocate: Allocate = posix_fallocate,
        mappings: MappedFiles | None = None,
    ) -> None:
        self.topic = topic
        self.topic_bytes = topic.encode()
        self.queue_id = queue_id
        self.is_schedule = topic == SCHEDULE_TOPIC
        self.files = MappedFileQueue(directory, file_size, allocate, _NAME_DEPTH, mappings)
        self._allocation_step = allocation_step
        self._reset(0)

    def _reset(self, offset: int) -> None:
        self.min_offset = self.max_offset = self.next_offset = self.reserved_offset = self.flushed_offset = offset
        self.max_physical_offset = 0
        self._leave_file()

    @property
    def directory(self) -> str:
        """Return the directory of the files."""
        return self.files.directory

    # Writing

    def reserve(self, count: int = 1) -> None:
        """Take disk space for `count` entries from `next_offset` on. Raises StoreFull; then nothing is lost."""
        end = (self.next_offset + count) * ENTRY_BYTES
        reserved = self.reserved_offset * ENTRY_BYTES
        while reserved < end:
            file = self.files.find(reserved) or self.files.append_file(reserved)
            needed = min(self.files.file_size, end - file.first_offset)
            reserved = file.first_offset + file.reserve(needed, self._step_for(file))
            self.reserved_offset = reserved // ENTRY_BYTES

    def _step_for(self, file: MappedFile) -> int:
        """Return the step in which disk space is taken; a small first one, so that many quiet queues take little disk."""
        return self._allocation_step if file.allocated else min(self._allocation_step, 4096)

    def append(self, physical_offset: int, size: int, tags_code: int) -> None:
        """Write the next visible entry; its space was reserved before."""
        offset = self.max_offset
        if offset >= self._file_end:
            self._enter_file(offset)
        file = self._written_file
        _pack_into(
            file.open_view or file.view, (offset - self._file_start) * ENTRY_BYTES, physical_offset, size, tags_code
        )
        self.max_offset = offset + 1
        self.max_physical_offset = physical_offset + size

    def append_many(self, numbers: Sequence[int]) -> None:
        """Write visible entries whose space was reserved: physical offset, size and tags code of each, in one flat sequence."""
        done = 0
        while done < len(numbers):
            offset = self.max_offset
            if offset >= self._file_end:
                self._enter_file(offset)
            part = numbers[done : done + ENTRY_FIELDS * (self._file_end - offset)]
            count = len(part) // ENTRY_FIELDS
            entries_struct(count).pack_into(self._written_file.view, (offset - self._file_start) * ENTRY_BYTES, *part)
            self.max_offset = offset + count
            self.max_physical_offset = part[-3] + part[-2]
            done += len(part)

    def _append_each(self, numbers: Sequence[int]) -> None:
        """Write the entries one by one, for queues whose entries hold more than these numbers."""
        for index in range(0, len(numbers), ENTRY_FIELDS):
            self.append(*numbers[index : index + ENTRY_FIELDS])

    def _enter_file(self, offset: int) -> None:
        position = offset * ENTRY_BYTES
        file = self.files.find(position)
        if file is None:
            raise IndexError(f"{self.files.directory}: entry {offset} was not reserved")
        self._written_file = file
        self._file_start = file.first_offset // ENTRY_BYTES
        self._file_end = (file.first_offset + file.size) // ENTRY_BYTES

    def _leave_file(self) -> None:
        self._file_start = self._file_end = -1

    def append_at(self, offset: int, physical_offset: int, size: int, tags_code: int) -> None:
        """Write an entry on recovery. Raises StoreFull.

        Skipped offsets before the first record become fillers. Later ones get the same entry as this record, as a bridge over
        the lost messages: Apache's searches by physical offset need ascending offsets, and its pulls leave out what follows a
        filler in the same log file. If an offset is taken, the topic was deleted and created again: older entries are dropped.
        """
        if offset < self.max_offset:
            self.truncate(offset)
        if not self.files.files:
            self._reset(offset - offset % (self.files.file_size // ENTRY_BYTES))
        self.next_offset = offset
        self.reserve()
        while self.max_offset < offset:
            if self.max_physical_offset:
                self.append(physical_offset, size, tags_code)
            else:
                self._append_filler()
        self.append(physical_offset, size, tags_code)
        self.next_offset = self.max_offset

    def is_far(self, offset: int) -> bool:
        """Return whether an entry there would leave a gap longer than a file.

        A damaged queue offset causes such a gap, because no checksum covers it.
        """
        return self.max_offset > 0 and offset - self.max_offset > self.files.file_size // self.entry_bytes

    def rewrite(self, offset: int, physical_offset: int, size: int, tags_code: int) -> None:
        """Correct a visible entry on recovery."""
        file = self.files.find(offset * ENTRY_BYTES)
        if file is not None:
            _pack_into(file.view, offset * ENTRY_BYTES - file.first_offset, physical_offset, size, tags_code)
            self.flushed_offset = min(self.flushed_offset, offset)
            self.max_physical_offset = self._last_physical_offset()

    def _append_filler(self) -> None:
        if self.max_offset >= self._file_end:
            self._enter_file(self.max_offset)
        position = (self.max_offset - self._file_start) * ENTRY_BYTES
        self._written_file.view[position : position + ENTRY_BYTES] = FILLER_ENTRY
        self.max_offset += 1

    # Reading

    def entry(self, offset: int) -> Entry | None:
        """Return the entry at an offset; None outside the visible entries."""
        place = self._place(offset)
        if place is None:
            return None
        file, position = place
        physical_offset, size, tags_code = _unpack_from(file.readable, position)
        return physical_offset, size, tags_code

    def peek(self, offset: int) -> Entry | None:
        """Return physical offset, size and stored tags code at an offset, without mapping a file for it."""
        place = self._place(offset)
        if place is None:
            return None
        file, position = place
        physical_offset, size, tags_code = _unpack_from(file.peek(position, ENTRY_BYTES))
        return physical_offset, size, tags_code

    def _place(self, offset: int) -> tuple[MappedFile, int] | None:
        """Return the file of an entry, and the entry's position in it; None outside the visible entries."""
        if offset < self.min_offset or offset >= self.max_offset:
            return None
        position = offset * ENTRY_BYTES
        file = self.files.find(position)
        return None if file is None else (file, position - file.first_offset)

    def stored(self, offset: int) -> tuple[int, ...] | None:
        """Return the whole entry of the record that begins at an offset, for comparison with `wanted`."""
        return self.entry(offset)

    @staticmethod
    def wanted(record: DispatchFields) -> tuple[int, ...]:
        """Return the value that `stored` should have for a record; `append_at` and `rewrite` take it too."""
        return record.physical_offset, record.size, record.tags_code

    @property
    def last_record_offset(self) -> int:
        """The queue offset of the last record."""
        return self.max_offset - 1

    def entries_in_file(self, offset: int, count: int) -> memoryview:
        """Return at most `count` entries from `offset` to the end of its file; empty if no file contains it."""
        return self._in_file(offset, count, self.max_offset)

    def _in_file(self, place: int, count: int, end_place: int) -> memoryview:
        """Return at most `count` entries from a place on, before `end_place` and to the end of the file."""
        size = self.entry_bytes
        position = place * size
        file = self.files.find(position)
        if file is None or place >= end_place:
            return memoryview(b"")
        start = position - file.first_offset
        return file.readable[start : min(file.size, start + count * size, end_place * size - file.first_offset)]

    def entries_from(self, offset: int, count: int) -> list[Entry]:
        """Return at most `count` entries from `offset` on."""
        entries = map(self.entry, range(offset, offset + count))
        return [entry for entry in entries if entry is not None]

    def next_file_offset(self, offset: int) -> int:
        """Return the first offset of the file after the one that contains `offset` (Apache: rollNextFile)."""
        entries = self.files.file_size // ENTRY_BYTES
        return offset + entries - offset % entries

    def entries(self) -> Iterator[tuple[int, Entry]]:
        """Yield (queue offset, entry) of all entries from the minimum on, without fillers."""
        for offset in range(self.min_offset, self.max_offset):
            entry = self.entry(offset)
            if entry is not None and entry[1] != FILLER_SIZE:
                yield offset, entry

    def flush(self, least_bytes: int, sync: Sync = fdatasync) -> None:
        """Put the visible entries on disk if at least `least_bytes` of them are not; for the flush thread."""
        end = self.max_offset
        if self._sync(self.flushed_offset, end, least_bytes, sync):
            self.flushed_offset = end

    def is_on_disk(self) -> None:
        """Note that all visible entries are on disk."""
        self.flushed_offset = self.max_offset

    def _sync(self, first_place: int, end_place: int, least_bytes: int, sync: Sync) -> bool:
        """Put the files of these places on disk; return False if they hold less than `least_bytes`, or nothing."""
        start, end = first_place * self.entry_bytes, end_place * self.entry_bytes
        if end <= start or end - start < least_bytes:
            return False
        for file in tuple(self.files.files):
            if file.first_offset < end and file.first_offset + file.size > start:
                file.sync(sync)
        return True

    # Start

    def load(self) -> QueueLoad:
        """Find the files and the last entry in them; drop what follows it."""
        odd = self.files.load()
        self._reset(0)
        files = self.files.files
        if odd or self.files.missing() is not None or not files:
            return QueueLoad(tuple(odd), self.files.missing())
        for file in files[-FILES_CHECKED:]:
            data, is_all = file.first_data()
            data += bytes(-len(data) % ENTRY_BYTES)
            written = written_bytes(memoryview(data))
            if written < file.size:
                break
        end = file.first_offset + written
        ends_there = file is files[-1] and is_all and data.count(0, written) == len(data) - written
        truncation = Truncation() if ends_there else self.files.truncate(end)
        first = _unpack_from(data) if written and file is files[0] else None
        last = _unpack_from(data, written - ENTRY_BYTES) if written else None
        self._set_end(end, last)
        return QueueLoad(truncation=truncation, first=first, last=last)

    def _set_end(self, end_bytes: int, last: Entry | None = None) -> None:
        """Let the entries end there; `last` is the last one, if the caller knows it."""
        offset = end_bytes // ENTRY_BYTES
        for file in self.files.files:
            file.set_position(max(0, min(file.size, end_bytes - file.first_offset)))
        self.max_offset = self.next_offset = self.reserved_offset = offset
        self.flushed_offset = min(self.flushed_offset, offset)
        self.min_offset = min(max(self.min_offset, self.files.min_offset // ENTRY_BYTES), offset)
        self._file_start = self._file_end = -1
        self.max_physical_offset = self._last_physical_offset(last)

    def _last_physical_offset(self, last: Entry | None = None) -> int:
        """Return the end of the last record that an entry points to; 0 without one."""
        entry = last or self.peek(self.max_offset - 1)
        if entry is None or entry[1] == FILLER_SIZE:
            return 0
        return entry[0] + entry[1]

    def truncate(self, offset: int) -> int:
        """Drop the entries from `offset` on; return how many. Their bytes are zeroed or their files deleted."""
        dropped = self.max_offset - offset
        self.files.truncate(offset * ENTRY_BYTES)
        if self.files.files:
            self._set_end(offset * ENTRY_BYTES)
        else:
            self._reset(0)
        return dropped

    def rewind_to_physical(self, physical_offset: int) -> bool:
        """Continue writing at the first entry that points to `physical_offset` or a later one; the entries stay on disk.

        The entries are written again with the same values, so a crash meanwhile loses nothing. `truncate` ends it. Returns
        False if there is no such entry: then nothing changes.
        """
        offset = self.first_at_or_behind(physical_offset)
        if offset >= self.max_offset:
            return False
        self._set_end(offset * ENTRY_BYTES)
        return True

    def first_at_or_behind(self, physical_offset: int) -> int:
        """Return the lowest offset whose record begins at or after `physical_offset`; `max_offset` without one."""
        if self.max_physical_offset <= physical_offset:
            return self.max_offset
        return self._first(lambda entry: is_at_or_behind(entry, physical_offset))

    def _first(self, holds: Callable[[Entry | None], bool]) -> int:
        """Return the lowest offset for which `holds` is true; it must be false before that offset and true from it on."""
        low, high = self.min_offset, self.max_offset
        while low < high:
            middle = (low + high) // 2
            if holds(self.entry(middle)):
                high = middle
            else:
                low = middle + 1
        return low

    def correct_min_offset(self, min_physical_offset: int) -> None:
        """Skip entries whose records are no longer in the log (Apache: correctMinOffset)."""
        if self.files.files:
            self.min_offset = min(self.min_offset, self.files.min_offset // ENTRY_BYTES)
            if not is_at_or_behind(self.peek(self.min_offset), min_physical_offset):
                self.min_offset = self.first_at_or_behind(min_physical_offset)

    def trim(self, min_physical_offset: int) -> list[str]:
        """Forget the files whose records are no longer in the log, but never the last one; return their paths.

        If no record is left, `min_offset` is `max_offset`: offsets are never given twice.
        """
        count = 0
        for file in self.files.files[:-1]:
            if self.max_offset * ENTRY_BYTES < file.first_offset + file.size:
                break
            physical_offset, size, _ = _unpack_from(file.readable, file.size - ENTRY_BYTES)
            if size != FILLER_SIZE and physical_offset >= min_physical_offset:
                break
            count += 1
        paths = self.files.drop_first(count)
        if count:
            self._leave_file()
        if not is_at_or_behind(self.peek(self.min_offset), min_physical_offset):
            self.correct_min_offset(min_physical_offset)
        return paths

    def release(self) -> None:
        """Release all files; views that others hold stay valid."""
        self._leave_file()
        self.files.release()

    def destroy(self) -> None:
        """Delete the queue's files."""
        self.release()
        self.files.destroy()
        self._reset(0)

    def destroy_directory(self) -> None:
        """Delete the files of a damaged queue, including those that were left out on loading."""
        self.release()
        self.files.destroy_all()
        self._reset(0)
