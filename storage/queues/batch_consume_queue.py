"""The queue of one topic and queue id whose records may hold several messages each (Apache: BatchConsumeQueue).

Topics with the attribute queue.type=BatchCQ have such queues: 46 bytes a record, however many messages it holds. Entries
lie back to back in the files. Places here are counted in entries, offsets in messages. A record of three messages at
queue offset 7 has one entry, which covers the offsets 7, 8 and 9, and the next record is at 10. So there are no
fillers and no bridges: offsets whose record is lost belong to the next entry.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from twisted_mq.protocol.layouts.batch_entry import inner_count
from twisted_mq.protocol.layouts.queue_entry import (
    BATCH_ENTRY,
    BATCH_ENTRY_BYTES,
    NO_COMPACT_OFFSET,
    iterate_batch_entries,
)
from twisted_mq.protocol.layouts.record_codec import DispatchFields
from twisted_mq.storage.files.mapped_file import MappedFile
from twisted_mq.storage.files.mapped_file_queue import Truncation
from twisted_mq.storage.files.system_calls import Sync, fdatasync
from twisted_mq.storage.queues.consume_queue import FILES_CHECKED, ConsumeQueue, Entry, QueueLoad

BatchEntry = tuple[int, int, int, int, int, int]
"""physical offset, size, tags code, store time, queue offset of the first message, messages."""

_TIME, _BASE, _COUNT = 3, 4, 5
_pack_into = BATCH_ENTRY.pack_into
_unpack_from = BATCH_ENTRY.unpack_from


def entry_of(record: DispatchFields) -> BatchEntry:
    """Return the entry that a batch queue has for a record."""
    count = inner_count(record.properties)
    return record.physical_offset, record.size, record.tags_code, record.store_timestamp, record.queue_offset, count


class BatchConsumeQueue(ConsumeQueue):
    """A batch queue. The writer of a record calls `expect` with its contents; `append` writes the entries in that order."""

    __slots__ = ("_begin", "_end", "_expected", "_flushed", "_reserved")

    entry_bytes = BATCH_ENTRY_BYTES
    batched = True

    def _reset(self, offset: int) -> None:
        super()._reset(offset)
        self._expected: deque[tuple[int, int, int]] = deque()
        self._begin = self._end = self._reserved = self._flushed = 0

    # Writing

    def reserve(self, count: int = 1) -> None:
        """Take disk space for `count` records after the expected ones. Raises StoreFull; then nothing is lost."""
        end = (self._end + len(self._expected) + count) * BATCH_ENTRY_BYTES
        while self._reserved < end:
            file = self.files.find(self._reserved) or self.files.append_file(self._reserved)
            needed = min(self.files.file_size, end - file.first_offset)
            self._reserved = file.first_offset + file.reserve(needed, self._step_for(file))

    def expect(self, queue_offset: int, count: int, store_timestamp: int) -> None:
        """Note a written record whose entry was reserved: its first queue offset, its messages, its store time in ms."""
        self._expected.append((queue_offset, count, store_timestamp))
        self.next_offset = self.reserved_offset = queue_offset + count

    def append(self, physical_offset: int, size: int, tags_code: int) -> None:
        """Write the entry of the record that is expected next."""
        queue_offset, count, store_timestamp = self._expected.popleft()
        if queue_offset < self.max_offset:
            self._drop_from(queue_offset)
        self._write((physical_offset, size, tags_code, store_timestamp, queue_offset, count))

    append_many = ConsumeQueue._append_each

    def append_at(
        self, offset: int, physical_offset: int, size: int, tags_code: int, store_timestamp: int = 0, count: int = 1
    ) -> None:
        """Write an entry on recovery. Raises StoreFull.

        If offsets are taken, the topic was deleted and created again: the older entries are dropped.
        """
        if offset < self.max_offset:
            self.truncate(offset)
        self.reserve()
        self._write((physical_offset, size, tags_code, store_timestamp, offset, count))
        self.next_offset = self.reserved_offset = self.max_offset

    def _write(self, entry: BatchEntry) -> None:
        if self._end == self._begin:
            self.min_offset = entry[_BASE]
        self._end += 1
        self._put(self._end - 1, entry)
        self.max_offset = entry[_BASE] + entry[_COUNT]
        self.max_physical_offset = entry[0] + entry[1]

    def _put(self, place: int, entry: BatchEntry) -> None:
        position = place * BATCH_ENTRY_BYTES
        file = self.files.find(position)
        if file is None:
            raise IndexError(f"{self.files.directory}: entry {place} was not reserved")
        _pack_into(file.view, position - file.first_offset, *entry, NO_COMPACT_OFFSET, 0)

    def rewrite(
        self, offset: int, physical_offset: int, size: int, tags_code: int, store_timestamp: int = 0, count: int = 1
    ) -> None:
        """Correct a visible entry on recovery; `offset` is that of its first message."""
        place = self._place_of(offset)
        if place < self._end and self._at(place)[_BASE] == offset:
            self._put(place, (physical_offset, size, tags_code, store_timestamp, offset, count))
            self._flushed = min(self._flushed, place)
            self._note_end()

    # Reading

    def _at(self, place: int) -> BatchEntry:
        position = place * BATCH_ENTRY_BYTES
        file = self.files.find(position)
        if file is None:
            raise IndexError(f"{self.files.directory}: no file holds entry {place}")
        physical_offset, size, tags_code, time, base, count, _, _ = _unpack_from(
            file.readable, position - file.first_offset
        )
        return physical_offset, size, tags_code, time, base, count

    def _first_place(self, holds: Callable[[BatchEntry], bool]) -> int:
        """Return the lowest place for whose entry `holds` is true; the end without one.

        `holds` must be false for all places before it and true from it on.
        """
        low, high = self._begin, self._end
        while low < high:
            middle = (low + high) // 2
            if holds(self._at(middle)):
                high = middle
            else:
                low = middle + 1
        return low

    def _place_of(self, offset: int) -> int:
        """Return the place of the entry that covers an offset."""
        return self._first_place(lambda entry: entry[_BASE] + entry[_COUNT] > offset)

    def _base(self, place: int) -> int:
        """Return the first offset of the entry at a place; `max_offset` at the end."""
        return self._at(place)[_BASE] if place < self._end else self.max_offset

    def batch_entry(self, offset: int) -> BatchEntry | None:
        """Return the whole entry that covers an offset; None outside the visible entries."""
        if offset < self.min_offset or offset >= self.max_offset:
            return None
        place = self._place_of(offset)
        return self._at(place) if place < self._end else None

    def entry(self, offset: int) -> Entry | None:
        """Return the entry of the record that holds the message at an offset; None outside the visible entries."""
        entry = self.batch_entry(offset)
        return entry[:3] if entry is not None else None

    peek = entry

    def stored(self, offset: int) -> tuple[int, ...] | None:
        """Return the whole entry of the record that begins at an offset, without that offset."""
        entry = self.batch_entry(offset)
        return _without_base(entry) if entry is not None and entry[_BASE] == offset else None

    @staticmethod
    def wanted(record: DispatchFields) -> tuple[int, ...]:
        """Return the value that `stored` should have for a record; `append_at` and `rewrite` take it too."""
        return _without_base(entry_of(record))

    @property
    def last_record_offset(self) -> int:
        """The queue offset of the last record; -1 without one."""
        return self._base(self._end - 1) if self._end > self._begin else -1

    def entries_in_file(self, offset: int, count: int) -> memoryview:
        """Return entries of 46 bytes, at most `count`, from the one that covers `offset` to the end of its file."""
        return self._in_file(self._place_of(offset), count, self._end)

    def batch_entries(self) -> Iterator[BatchEntry]:
        """Yield all entries from the minimum on."""
        for place in range(self._place_of(self.min_offset), self._end):
            yield self._at(place)

    def entries_from(self, offset: int, count: int) -> list[Entry]:
        """Return the entries of at most `count` records, from the record that holds the message at `offset` on."""
        if not self.min_offset <= offset < self.max_offset:
            return []
        place = self._place_of(offset)
        return [self._at(one)[:3] for one in range(place, min(self._end, place + count))]

    def entries(self) -> Iterator[tuple[int, Entry]]:
        """Yield (queue offset of the first message, entry) of all records from the minimum on."""
        for entry in self.batch_entries():
            yield entry[_BASE], entry[:3]

    def offset_by_time(self, timestamp_ms: int, *, upper: bool) -> int:
        """Return the first offset of the record stored at that time (Apache: BatchConsumeQueue.getOffsetInQueueByTime).

        If several records have that time, the first of them, or with `upper` the last. If none has it, the next younger record.
        If all are older, the last record. For times t1 t1 t3 and a search for t2, the third. For an empty queue its end.
        """
        if self._end == self._begin:
            return self.max_offset
        younger = self._first_place(lambda entry: entry[_TIME] > timestamp_ms)
        place = self._first_place(lambda entry: entry[_TIME] >= timestamp_ms)
        if (place < younger and upper) or younger == self._end:
            place = younger - 1
        return max(self.min_offset, self._base(place))

    def flush(self, least_bytes: int, sync: Sync = fdatasync) -> None:
        """Put the visible entries on disk if at least `least_bytes` of them are not; for the flush thread."""
        end = self._end
        if self._sync(self._flushed, end, least_bytes, sync):
            self._flushed = end

    def is_on_disk(self) -> None:
        """Note that all visible entries are on disk."""
        self._flushed = self._end

    # Start

    def load(self) -> QueueLoad:
        """Find the files and the last entry in them; drop what follows it."""
        odd = self.files.load()
        self._reset(0)
        files = self.files.files
        if odd or self.files.missing() is not None or not files:
            return QueueLoad(tuple(odd), self.files.missing())
        end, next_offset = files[-1].first_offset + files[-1].size, 0
        for file in files[-FILES_CHECKED:]:
            written, next_offset = _written_bytes(file, next_offset)
            if written < file.size:
                end = file.first_offset + written
                break
        truncation: Truncation = self.files.truncate(end)
        self._begin = self.files.min_offset // BATCH_ENTRY_BYTES
        self._set_places(end // BATCH_ENTRY_BYTES, 0)
        self.min_offset = self._base(self._begin)
        return QueueLoad(truncation=truncation)

    def _set_places(self, end: int, base: int) -> None:
        """Let the entries end before a place; if none is left, the offsets continue at `base`. No record is expected then."""
        for file in self.files.files:
            file.set_position(max(0, min(file.size, end * BATCH_ENTRY_BYTES - file.first_offset)))
        self._expected.clear()
        self._end = end
        self._reserved = end * BATCH_ENTRY_BYTES
        self._flushed = min(self._flushed, end)
        if end > self._begin:
            self._note_end()
            self.min_offset = min(self.min_offset, self.max_offset)
        else:
            self.min_offset = self.max_offset = base
            self.max_physical_offset = 0
        self.next_offset = self.reserved_offset = self.max_offset

    def _note_end(self) -> None:
        last = self._at(self._end - 1)
        self.max_offset = last[_BASE] + last[_COUNT]
        self.max_physical_offset = last[0] + last[1]

    def truncate(self, offset: int) -> int:
        """Drop the entries that cover `offset` and later ones; return how many messages. Their bytes are zeroed."""
        before, place = self.max_offset, self._place_of(offset)
        base = self._base(place)
        self.files.truncate(place * BATCH_ENTRY_BYTES)
        self._set_places(place, base)
        return before - self.max_offset

    def _drop_from(self, offset: int) -> None:
        """Truncate while records are expected; they stay expected."""
        expected = self._expected.copy()
        next_offset = self.next_offset
        self.truncate(offset)
        self.reserve(1 + len(expected))
        self._expected = expected
        self.next_offset = self.reserved_offset = next_offset

    def rewind_to_physical(self, physical_offset: int) -> bool:
        """Continue writing at the first entry that points to `physical_offset` or a later one; the entries stay on disk.

        Returns False if there is no such entry: then nothing changes.
        """
        place = self._first_place(lambda entry: entry[0] >= physical_offset)
        if place >= self._end:
            return False
        self._set_places(place, self._base(place))
        return True

    def first_at_or_behind(self, physical_offset: int) -> int:
        """Return the first offset of the first record at or after `physical_offset`; `max_offset` without one."""
        return self._base(self._first_place(lambda entry: entry[0] >= physical_offset))

    def correct_min_offset(self, min_physical_offset: int) -> None:
        """Skip entries whose records are no longer in the log (Apache: correctMinOffset)."""
        if self.files.files:
            self.min_offset = self.first_at_or_behind(min_physical_offset)

    def trim(self, min_physical_offset: int) -> list[str]:
        """Forget the files whose records are no longer in the log, but never the last one; return their paths.

        If no record is left, `min_offset` is `max_offset`: offsets are never given twice.
        """
        count = 0
        for file in self.files.files[:-1]:
            behind = (file.first_offset + file.size) // BATCH_ENTRY_BYTES
            if self._end < behind or self._at(behind - 1)[0] >= min_physical_offset:
                break
            count += 1
        paths = self.files.drop_first(count)
        self._begin = max(self._begin, self.files.min_offset // BATCH_ENTRY_BYTES)
        self.correct_min_offset(min_physical_offset)
        return paths


def _without_base(entry: BatchEntry) -> tuple[int, ...]:
    return *entry[:_BASE], entry[_COUNT]


def _written_bytes(file: MappedFile, next_offset: int) -> tuple[int, int]:
    """Return how many bytes of a file are consecutive entries, and the queue offset after the last of them.

    If two entries overlap, either may be the damaged one: neither counts, even if the first is in the file before.
    """
    data, _ = file.first_data()
    data += bytes(-len(data) % BATCH_ENTRY_BYTES)
    written = 0
    for physical_offset, size, _, _, base, count, _, _ in iterate_batch_entries(data):
        if physical_offset < 0 or size <= 0 or count <= 0:
            break
        if base < next_offset:
            written -= BATCH_ENTRY_BYTES
            break
        written += BATCH_ENTRY_BYTES
        next_offset = base + count
    return written, next_offset
