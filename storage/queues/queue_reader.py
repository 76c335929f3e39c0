"""Reads a queue: selects the records for a pull and the reader's next offset (Apache: DefaultMessageStore.getMessage)."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from twisted_mq.protocol.boundary_type import BoundaryType
from twisted_mq.protocol.layouts.queue_entry import (
    ENTRY_BYTES,
    FILLER_SIZE,
    iterate_entries,
)
from twisted_mq.protocol.layouts.record import read_store_timestamp
from twisted_mq.protocol.text.java import to_int
from twisted_mq.storage.config import StoreConfig
from twisted_mq.storage.interfaces import GetResult, GetStatus, RecordTest
from twisted_mq.storage.log.commit_log import CommitLog
from twisted_mq.storage.queues.batch_consume_queue import BatchConsumeQueue
from twisted_mq.storage.queues.consume_queue import ConsumeQueue
from twisted_mq.storage.queues.entry_columns import first_entries, first_tagged, is_columnar
from twisted_mq.storage.queues.queue_extension import ExtendedConsumeQueue

LEAST_PULL_BYTES = 100
MOST_PULL_BYTES = 128 << 20
"""Apache: DefaultMessageStore.MAX_PULL_MSG_SIZE."""
MOST_SCANNED = 4096
"""The most entries that one read looks at, whatever is asked for: without a match they take about a millisecond."""
TESTING_SECONDS = 0.02
"""The time for which one read tests records; after that its reader continues after the last tested record."""
_LOW, _HIGH = -0x80000000, 0x7FFFFFFF
_NO_MATCH, _FOUND = GetStatus.NO_MATCHED_MESSAGE, GetStatus.FOUND
"""The members that each read uses, as constants: looking up an enum's member is slow."""


def out_of_range(queue: ConsumeQueue | BatchConsumeQueue, offset: int) -> GetResult | None:
    """Return the result if nothing can be read at `offset`; None if something can.

    Under synchronous flush a slave can show a message before its master does. Readers of such a message wait at the master:
    they are not sent back.
    """
    queue_min, queue_max = queue.min_offset, queue.max_offset
    if queue_max < offset <= queue.next_offset:
        return GetResult(GetStatus.OFFSET_OVERFLOW_ONE, offset, queue_min, queue_max)
    if queue_max == 0:
        return GetResult(GetStatus.NO_MESSAGE_IN_QUEUE, 0, queue_min, queue_max)
    if offset < queue_min:
        return GetResult(GetStatus.OFFSET_TOO_SMALL, queue_min, queue_min, queue_max)
    if offset == queue_max:
        return GetResult(GetStatus.OFFSET_OVERFLOW_ONE, offset, queue_min, queue_max)
    if offset > queue_max:
        return GetResult(GetStatus.OFFSET_OVERFLOW_BADLY, queue_max, queue_min, queue_max)
    return None


def matches(tags_code: int, wanted: Collection[int] | None) -> bool:
    """Return whether an entry is wanted; only the low 32 bits of the tags code count (Apache: DefaultMessageFilter)."""
    return wanted is None or tags_code in wanted or (not _LOW <= tags_code <= _HIGH and to_int(tags_code) in wanted)


class QueueReader:
    """Reads messages, times and single records from one log and its queues."""

    def __init__(self, config: StoreConfig, log: CommitLog, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._monotonic = monotonic
        self.configure(config)

    def configure(self, config: StoreConfig) -> None:
        """Take over the limits of reads."""
        self._hot_bytes = config.hot_bytes
        self._least_scanned = config.max_filter_message_size
        self._entries_scanned = self._scanned(0, ENTRY_BYTES)
        self._memory_limits = (
            config.max_transfer_bytes_on_message_in_memory,
            config.max_transfer_count_on_message_in_memory,
        )
        self._disk_limits = (
            config.max_transfer_bytes_on_message_in_disk,
            config.max_transfer_count_on_message_in_disk,
        )

    def get(
        self,
        queue: ConsumeQueue,
        offset: int,
        max_count: int,
        max_bytes: int,
        wanted: Collection[int] | None,
        test: RecordTest | None = None,
        joined: bool = False,
    ) -> GetResult:
        """Return records from `offset` on, out of one queue file. The first match is returned whatever its size.

        A pull ends at `max_count`, at `max_bytes` (100 bytes to 128 MiB), at the transfer limits for memory or disk,
        after 800 entries or `max_count` if that is more, after MOST_SCANNED entries, and after TESTING_SECONDS of `test`.
        """
        refused = out_of_range(queue, offset)
        if refused is not None:
            return refused
        scanned = self._entries_scanned
        if max_count > scanned:
            scanned = min(max_count, MOST_SCANNED)
        entries = queue.entries_in_file(offset, scanned)
        if test is not None and isinstance(queue, ExtendedConsumeQueue):
            test = queue.narrowed(test, offset, scanned)
        result = GetResult(_NO_MATCH, offset, queue.min_offset, queue.max_offset)
        last_physical = 0
        if entries:
            last = self._fill_columns(result, entries, max_count, max_bytes, wanted, joined) if test is None else None
            last_physical = self._fill(result, entries, max_count, max_bytes, wanted, test) if last is None else last
        else:
            result.status = GetStatus.OFFSET_FOUND_NULL
            result.next_begin_offset = queue.next_file_offset(offset)
        result.suggest_pulling_from_slave = self._log.max_offset - last_physical > self._hot_bytes
        return result

    def _scanned(self, max_count: int, entry_bytes: int) -> int:
        """Return how many entries of a size a read looks at."""
        return min(-(-max(self._least_scanned, max_count * entry_bytes) // entry_bytes), MOST_SCANNED)

    def _fill_columns(
        self,
        result: GetResult,
        entries: memoryview,
        max_count: int,
        max_bytes: int,
        wanted: Collection[int] | None,
        joined: bool,
    ) -> int | None:
        """Put the first records into `result`, as `_fill` does, if all are hot, in the newest file and within the limits.

        Returns the physical offset of the last entry looked at; None, with nothing changed, if `_fill` has to look at them
        one by one.
        """
        most_bytes, most_count = self._memory_limits
        most = max_count if max_count < most_count else most_count
        if most < 1 or (wanted is not None and not is_columnar(entries, wanted)):
            return None
        largest = 0
        if wanted is None:
            places, sizes, looked, last = first_entries(entries, most)
        else:
            places, sizes, looked, last, largest = first_tagged(entries, most, wanted)
        if places:
            total, log = sum(sizes), self._log
            if total + largest > min(max(max_bytes, LEAST_PULL_BYTES), MOST_PULL_BYTES, most_bytes):
                return None
            records = log.read_many(places, sizes, log.max_offset - self._hot_bytes, joined)
            if records is None:
                return None
            result.records += records
            result.status, result.size_bytes = _FOUND, total
            if joined:
                result.message_count = len(places)
        result.next_begin_offset += looked
        return last

    def _fill(
        self,
        result: GetResult,
        entries: memoryview,
        max_count: int,
        max_bytes: int,
        wanted: Collection[int] | None,
        test: RecordTest | None,
    ) -> int:
        """Put records into `result`; returns the physical offset of the last entry looked at."""
        log = self._log
        read = log.read
        records = result.records
        pull_bytes = min(max(max_bytes, LEAST_PULL_BYTES), MOST_PULL_BYTES)
        hot_from = log.max_offset - self._hot_bytes
        next_offset = result.next_begin_offset
        total = count = last_physical = removed_before = 0
        tests_end = self._monotonic() + TESTING_SECONDS if test is not None else 0.0
        for physical_offset, size, tags_code in iterate_entries(entries):
            if count:
                most_bytes, most_count = self._memory_limits if physical_offset >= hot_from else self._disk_limits
                if count >= max_count or count >= most_count or total + size > pull_bytes or total + size > most_bytes:
                    break
            last_physical = physical_offset
            next_offset += 1
            if physical_offset < removed_before:
                continue
            if wanted is not None and tags_code not in wanted and not matches(tags_code, wanted):
                if not count:
                    result.status = GetStatus.NO_MATCHED_MESSAGE
                continue
            record = read(physical_offset, size)
            if record is None:
                if not count:
                    result.status = GetStatus.MESSAGE_WAS_REMOVING
                removed_before = 0 if size == FILLER_SIZE else log.next_file_offset(physical_offset)
                continue
            if test is not None and not test(record):
                if not count:
                    result.status = GetStatus.NO_MATCHED_MESSAGE
                removed_before = 0
                if self._monotonic() > tests_end:
                    break
                continue
            records.append(record)
            total += size
            count += 1
            removed_before = 0
        if count:
            result.status = _FOUND
        result.size_bytes = total
        result.next_begin_offset = next_offset
        return last_physical

    def store_timestamp(self, queue: ConsumeQueue, offset: int) -> int:
        """Return the store time of the message at a queue offset in ms; -1 if the log does not have it."""
        entry = queue.entry(offset)
        return -1 if entry is None else self._stored_at(entry[0], entry[1])

    def _stored_at(self, physical_offset: int, size: int) -> int:
        """Return the store time in a record; -1 without a record there."""
        record = self._log.read(physical_offset, size)
        return -1 if record is None else read_store_timestamp(record)

    def offset_by_time(self, queue: ConsumeQueue, timestamp_ms: int, boundary: BoundaryType) -> int:
        """Return the offset where reading from a time begins (Apache: ConsumeQueue.getOffsetInQueueByTime).

        LOWER: the first message stored then or later, the queue's end if all are older. UPPER: the last one stored
        then or earlier, the queue's beginning if all are younger. For times t1 t1 t3 and a search for t2 that is
        2 and 1. Always within the queue's minimum and maximum.
        """
        if boundary is BoundaryType.LOWER:
            return self._first_not_before(queue, timestamp_ms)
        return max(queue.min_offset, self._first_not_before(queue, timestamp_ms + 1) - 1)

    def _first_not_before(self, queue: ConsumeQueue, timestamp_ms: int) -> int:
        low, high = queue.min_offset, queue.max_offset
        while low < high:
            middle = (low + high) // 2
            if self.store_timestamp(queue, middle) < timestamp_ms:
                low = middle + 1
            else:
                high = middle
        return low

    def is_in_memory(self, queue: ConsumeQueue, offset: int) -> bool:
        """Return whether the message at a queue offset is near enough to the log's end; False without a message."""
        entry = queue.entry(offset)
        return entry is not None and self._log.max_offset - entry[0] <= self._hot_bytes
