"""The queue of one topic and queue id: where its records lie in the log, 20 bytes a message (Apache: ConsumeQueue).

Offsets here are queue offsets (entries) unless a name says bytes. Entries of files that precede the first message
(a queue rebuilt from a log that begins in its middle) are fillers; readers pass them over. An entry that is equal to
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
from twisted_mq.storage.files.descriptors import Mappings
from twisted_mq.storage.files.mapped_file import MappedFile
from twisted_mq.storage.files.mapped_file_queue import MappedFileQueue, OddFile, Truncation
from twisted_mq.storage.files.system_calls import Allocate, Sync, fdatasync, posix_fallocate

_pack_into = ENTRY.pack_into
_unpack_from = ENTRY.unpack_from
FILES_CHECKED = 3
"""How many of the last files are looked through on start, as Apache does."""

_NAME_DEPTH = 3
"""A queue's directory, its topic's, and consumequeue."""

Entry = tuple[int, int, int]
"""physical offset, size, tags code."""


@attrs.frozen
class QueueLoad:
    """What loading a queue found: with odd files or a hole between files nothing was loaded."""

    odd_files: tuple[OddFile, ...] = ()
    missing_file: str | None = None
    truncation: Truncation = attrs.field(factory=Truncation)

    @property
    def damaged(self) -> bool:
        """Whether the queue has to be built anew from the log."""
        return bool(self.odd_files) or self.missing_file is not None


class ConsumeQueue:
    """One queue. `next_offset` is given to the next message put, `max_offset` is behind the last visible one."""

    _written_file: MappedFile
    """Covers the offsets from `_file_start` to `_file_end`, both -1 where none is written to."""

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
    """Whether its offsets count the messages inside records, see batch_consume_queue."""

    def __init__(
        self,
        topic: str,
        queue_id: int,
        directory: str,
        file_size: int,
        allocation_step: int,
        allocate: Allocate = posix_fallocate,
        mappings: Mappings | None = None,
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
        """Where the files are."""
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
        """A small first step, so that a broker with many quiet queues takes little disk."""
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
        """Write visible entries, whose space was reserved: physical offset, size and tags code of each, in one row."""
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
        """The same, entry by entry: for queues whose entries are more than these numbers."""
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

        Offsets that were passed over become fillers before the first record, and behind it the same entry: messages
        that are lost are bridged by their follower, because Apache's searches by physical offset need ascending ones
        and its pulls leave out what follows a filler in the same log file. An offset that is taken means that the
        topic was deleted and made anew: the older entries go.
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
        """Whether an entry there would leave a gap longer than a file: a damaged queue offset does, no sum covers it."""
        return self.max_offset > 0 and offset - self.max_offset > self.files.file_size // self.entry_bytes

    def rewrite(self, offset: int, physical_offset: int, size: int, tags_code: int) -> None:
        """Put a visible entry right, on recovery."""
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
        """The entry at an offset; None outside the visible ones."""
        if offset < self.min_offset or offset >= self.max_offset:
            return None
        position = offset * ENTRY_BYTES
        file = self.files.find(position)
        if file is None:
            return None
        physical_offset, size, tags_code = _unpack_from(file.readable, position - file.first_offset)
        return physical_offset, size, tags_code

    def stored(self, offset: int) -> tuple[int, ...] | None:
        """The whole entry of the record that begins at an offset, for comparing it with `wanted`."""
        return self.entry(offset)

    @staticmethod
    def wanted(record: DispatchFields) -> tuple[int, ...]:
        """What `stored` is to be for a record; `append_at` and `rewrite` take it too."""
        return record.physical_offset, record.size, record.tags_code

    @property
    def last_record_offset(self) -> int:
        """The queue offset of the last record."""
        return self.max_offset - 1

    def entries_in_file(self, offset: int, count: int) -> memoryview:
        """At most `count` entries from `offset` on, as far as the file goes that holds it; empty where none does."""
        return self._in_file(offset, count, self.max_offset)

    def _in_file(self, place: int, count: int, end_place: int) -> memoryview:
        """At most `count` entries from a place on, before another one, as far as the file goes."""
        size = self.entry_bytes
        position = place * size
        file = self.files.find(position)
        if file is None or place >= end_place:
            return memoryview(b"")
        start = position - file.first_offset
        return file.readable[start : min(file.size, start + count * size, end_place * size - file.first_offset)]

    def entries_from(self, offset: int, count: int) -> list[Entry]:
        """At most `count` entries from `offset` on."""
        entries = map(self.entry, range(offset, offset + count))
        return [entry for entry in entries if entry is not None]

    def next_file_offset(self, offset: int) -> int:
        """The first offset of the file behind the one that holds `offset` (Apache: rollNextFile)."""
        entries = self.files.file_size // ENTRY_BYTES
        return offset + entries - offset % entries

    def entries(self) -> Iterator[tuple[int, Entry]]:
        """(queue offset, entry) of all entries from the minimum on, fillers left out."""
        for offset in range(self.min_offset, self.max_offset):
            entry = self.entry(offset)
            if entry is not None and entry[1] != FILLER_SIZE:
                yield offset, entry

    def flush(self, least_bytes: int, sync: Sync = fdatasync) -> None:
        """Put the visible entries on disk if at least `least_bytes` of them are not; for the flush thread."""
        end = self.max_offset
        if self._sync(self.flushed_offset, end, least_bytes, sync):
            self.flushed_offset = end

    def _sync(self, first_place: int, end_place: int, least_bytes: int, sync: Sync) -> bool:
        """Put the files of these places on disk; False where they hold less than `least_bytes`, or nothing."""
        start, end = first_place * self.entry_bytes, end_place * self.entry_bytes
        if end <= start or end - start < least_bytes:
            return False
        for file in tuple(self.files.files):
            if file.first_offset < end and file.first_offset + file.size > start:
                file.sync(sync)
        return True

    # Start

    def load(self) -> QueueLoad:
        """Find the files and the last entry in them; what lies behind it is dropped."""
        odd = self.files.load()
        self._reset(0)
        files = self.files.files
        if odd or self.files.missing() is not None or not files:
            return QueueLoad(tuple(odd), self.files.missing())
        end = files[-1].first_offset + files[-1].size
        for file in files[-FILES_CHECKED:]:
            written = _written_bytes(file)
            if written < file.size:
                end = file.first_offset + written
                break
        truncation = self.files.truncate(end)
        self._set_end(end)
        return QueueLoad(truncation=truncation)

    def _set_end(self, end_bytes: int) -> None:
        offset = end_bytes // ENTRY_BYTES
        for file in self.files.files:
            file.set_position(max(0, min(file.size, end_bytes - file.first_offset)))
        self.max_offset = self.next_offset = self.reserved_offset = offset
        self.flushed_offset = min(self.flushed_offset, offset)
        self.min_offset = min(max(self.min_offset, self.files.min_offset // ENTRY_BYTES), offset)
        self._file_start = self._file_end = -1
        self.max_physical_offset = self._last_physical_offset()

    def _last_physical_offset(self) -> int:
        """The end of the last record that an entry points to; 0 without one."""
        entry = self.entry(self.max_offset - 1)
        if entry is None or entry[1] == FILLER_SIZE:
            return 0
        return entry[0] + entry[1]

    def truncate(self, offset: int) -> int:
        """Drop the entries from `offset` on; returns how many. Their bytes are zeroed or their files deleted."""
        dropped = self.max_offset - offset
        self.files.truncate(offset * ENTRY_BYTES)
        if self.files.files:
            self._set_end(offset * ENTRY_BYTES)
        else:
            self._reset(0)
        return dropped

    def truncate_to_physical(self, physical_offset: int) -> int:
        """Drop the entries that point to `physical_offset` or behind it; returns how many."""
        keep = self.first_at_or_behind(physical_offset)
        return self.truncate(keep) if keep < self.max_offset else 0

    def rewind_to_physical(self, physical_offset: int) -> None:
        """Go on writing where the entries begin that point to `physical_offset` or behind it; they stay on the disk.

        What is written anew is what was there, so that a crash meanwhile takes nothing away. `truncate` ends it.
        """
        if self.files.files:
            self._set_end(self.first_at_or_behind(physical_offset) * ENTRY_BYTES)

    def first_at_or_behind(self, physical_offset: int) -> int:
        """The lowest offset whose record begins at `physical_offset` or behind it; `max_offset` where none does."""
        return self._first(lambda entry: entry[1] != FILLER_SIZE and entry[0] >= physical_offset)

    def _first(self, holds: Callable[[Entry], bool]) -> int:
        """The lowest offset where `holds`; it must not hold before and hold from there on."""
        low, high = self.min_offset, self.max_offset
        while low < high:
            middle = (low + high) // 2
            entry = self.entry(middle)
            if entry is not None and holds(entry):
                high = middle
            else:
                low = middle + 1
        return low

    def correct_min_offset(self, min_physical_offset: int) -> None:
        """Pass over entries whose records the log no longer has (Apache: correctMinOffset)."""
        if self.files.files:
            self.min_offset = min(self.min_offset, self.files.min_offset // ENTRY_BYTES)
            self.min_offset = self.first_at_or_behind(min_physical_offset)

    def trim(self, min_physical_offset: int) -> list[str]:
        """Forget the files whose records the log no longer has, the last one never; returns their paths.

        Where no record is left, `min_offset` is `max_offset`: offsets are never given twice.
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
        first = self.entry(self.min_offset)
        if first is None or first[1] == FILLER_SIZE or first[0] < min_physical_offset:
            self.correct_min_offset(min_physical_offset)
        return paths

    def release(self) -> None:
        """Give back all files; views that others hold stay valid."""
        self._leave_file()
        self.files.release()

    def destroy(self) -> None:
        """Delete the queue's files."""
        self.release()
        self.files.destroy()
        self._reset(0)

    def destroy_directory(self) -> None:
        """Delete the files of a damaged queue, those too that were left out on loading."""
        self.release()
        self.files.destroy_all()
        self._reset(0)


def _written_bytes(file: MappedFile) -> int:
    """How many bytes of a queue file are entries: up to the first one with size 0."""
    end = file.data_end()
    end = min(file.size, end + -end % ENTRY_BYTES)
    return written_bytes(file.readable[:end])
