"""Reads batch queues too: their records may hold several messages each (Apache: DefaultMessageStore.getMessage)."""

from __future__ import annotations

from collections.abc import Collection

from twisted_mq.protocol.boundary_type import BoundaryType
from twisted_mq.protocol.layouts.queue_entry import BATCH_ENTRY_BYTES, iterate_batch_entries
from twisted_mq.storage.interfaces import GetResult, GetStatus, RecordTest
from twisted_mq.storage.queues.batch_consume_queue import BatchConsumeQueue
from twisted_mq.storage.queues.consume_queue import ConsumeQueue
from twisted_mq.storage.queues.queue_reader import (
    LEAST_PULL_BYTES,
    MOST_PULL_BYTES,
    TESTING_SECONDS,
    QueueReader,
    matches,
    out_of_range,
)


class BatchQueueReader(QueueReader):
    """A reader of both kinds of queues: `get` for simple ones, `get_batched` for batch queues, the rest for both."""

    def get_batched(
        self,
        queue: BatchConsumeQueue,
        offset: int,
        max_count: int,
        max_bytes: int,
        wanted: Collection[int] | None,
        test: RecordTest | None = None,
    ) -> GetResult:
        """Return records from the one that holds the message at `offset` on; the limits count messages, see `get`.

        Records are returned whole: a reader that asks for a message inside a batch gets those before it too.
        """
        refused = out_of_range(queue, offset)
        if refused is not None:
            return refused
        last_offset = offset + self._scanned(max_count, BATCH_ENTRY_BYTES)
        tests_end = self._monotonic() + TESTING_SECONDS if test is not None else 0.0
        result = GetResult(GetStatus.NO_MATCHED_MESSAGE, offset, queue.min_offset, queue.max_offset)
        last_physical = 0
        removed_before = 0
        for physical_offset, size, tags_code, _, base, count, _, _ in iterate_batch_entries(
            queue.entries_in_file(offset, last_offset - offset)
        ):
            if base >= last_offset or self._is_full(result, physical_offset, size, count, max_count, max_bytes):
                break
            last_physical = physical_offset
            result.next_begin_offset = base + count
            if physical_offset < removed_before:
                continue
            if not matches(tags_code, wanted):
                self._missed(result, GetStatus.NO_MATCHED_MESSAGE)
                continue
            record = self._log.read(physical_offset, size)
            if record is None:
                self._missed(result, GetStatus.MESSAGE_WAS_REMOVING)
                removed_before = self._log.next_file_offset(physical_offset)
            elif test is not None and not test(record):
                self._missed(result, GetStatus.NO_MATCHED_MESSAGE)
                if self._monotonic() > tests_end:
                    break
            else:
                result.records.append(record)
                result.size_bytes += size
                result.message_count += count
                result.status = GetStatus.FOUND
        result.suggest_pulling_from_slave = self._log.max_offset - last_physical > self._hot_bytes
        return result

    @staticmethod
    def _missed(result: GetResult, status: GetStatus) -> None:
        if not result.records:
            result.status = status

    def _is_full(
        self, result: GetResult, physical_offset: int, size: int, count: int, max_count: int, max_bytes: int
    ) -> bool:
        if not result.records:
            return False
        hot = self._log.max_offset - physical_offset <= self._hot_bytes
        most_bytes, most_count = self._memory_limits if hot else self._disk_limits
        most_bytes = min(most_bytes, max(max_bytes, LEAST_PULL_BYTES), MOST_PULL_BYTES)
        too_many = result.message_count + count > max_count or result.message_count >= most_count
        return too_many or result.size_bytes + size > most_bytes

    def offset_by_time(self, queue: ConsumeQueue, timestamp_ms: int, boundary: BoundaryType) -> int:
        """Return the offset where reading from a time begins; the two kinds of queues have their own rules."""
        if isinstance(queue, BatchConsumeQueue):
            return queue.offset_by_time(timestamp_ms, upper=boundary is BoundaryType.UPPER)
        return super().offset_by_time(queue, timestamp_ms, boundary)
