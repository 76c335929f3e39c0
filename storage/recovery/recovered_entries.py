"""Writes the queue entries that are missing for the records that a start walks over, and corrects wrong ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from twisted_mq.protocol.flags import MessageSysFlag, transaction_value
from twisted_mq.protocol.layouts.ordinary_records import POSITION, QUEUE_ID, QUEUE_OFFSET, SIZE, TIMESTAMP, Row
from twisted_mq.protocol.layouts.queue_entry import FILLER_SIZE
from twisted_mq.protocol.layouts.record_codec import DispatchFields, dispatch_fields
from twisted_mq.protocol.text.java import from_utf8
from twisted_mq.storage.files.checkpoint import Checkpoint
from twisted_mq.storage.files.paths import is_topic_name
from twisted_mq.storage.log.commit_log import CommitLog
from twisted_mq.storage.log.log_scan import record_matches
from twisted_mq.storage.queues.consume_queue import ConsumeQueue
from twisted_mq.storage.queues.entry_runs import EntryRun, Key, gather
from twisted_mq.storage.queues.queue_table import QueueTable
from twisted_mq.storage.recovery.interruption_mark import Unfinished
from twisted_mq.storage.recovery.recovery_report import RecoveryReport

_IN_QUEUES = frozenset({MessageSysFlag.TRANSACTION_NOT_TYPE, MessageSysFlag.TRANSACTION_COMMIT_TYPE})
"""Half and rolled back messages never enter a queue."""


class RecoveredEntries:
    """Takes the log's records in their order.

    `incomplete` are queues that may lack entries anywhere. In the others, records before `reached` have their entries.
    `corrected` are those of which an entry was rewritten.
    """

    def __init__(
        self,
        log: CommitLog,
        queues: QueueTable,
        checkpoint: Checkpoint,
        delay_table: Mapping[int, int],
        unfinished: Unfinished,
        report: RecoveryReport,
    ) -> None:
        self._log = log
        self._queues = queues
        self._checkpoint = checkpoint
        self._delay_table = delay_table
        self._unfinished = unfinished
        self._report = report
        self.incomplete: set[tuple[str, int]] = set()
        self.corrected: set[ConsumeQueue] = set()
        self.reached = 0

    def take(self, record: DispatchFields, only: Collection[tuple[str, int]] | None) -> None:
        """Take one record; with `only`, just for these queues. Raises StoreFull."""
        self._report.records_checked += 1
        self._log.last_store_timestamp = record.store_timestamp
        self._log.last_record_offset = record.physical_offset
        self._checkpoint.confirm_physical_offset = record.physical_offset
        if transaction_value(record.sys_flag) not in _IN_QUEUES:
            return
        if self._is_due(record, only):
            self._dispatch(record)
        elif only is None:
            self._put_right(record)

    def take_rows(self, base: int, rows: list[Row]) -> None:
        """Take many records: those that follow in their queues, or have entries already, at once, the rest one by one."""
        taken = self._take_at_once(base, rows)
        self._report.records_checked += taken
        if taken:
            self._log.last_store_timestamp = rows[taken - 1][TIMESTAMP]
            self._checkpoint.confirm_physical_offset = base + rows[taken - 1][POSITION]
            self._log.last_record_offset = base + rows[taken - 1][POSITION]
        for row in rows[taken:]:
            record = self._log.read(base + row[POSITION], row[SIZE])
            assert record is not None
            self.take(dispatch_fields(record, delay_table=self._delay_table), None)

    def _take_at_once(self, base: int, rows: list[Row]) -> int:
        runs: dict[Key, EntryRun] = {}
        if base + rows[0][POSITION] < self.reached:
            taken = gather(base, rows, lambda row: self._begin_known(base, row), runs)
            return taken if all(run.is_there() for run in runs.values()) else 0
        taken = gather(base, rows, lambda row: self._begin_due(base, row), runs)
        if runs and self._report.clean:
            self._unfinished.begin()
        for run in runs.values():
            run.reserve()
            run.write()
            self._report.entries_written += run.next_offset - run.first
        return taken

    def _begin_known(self, base: int, row: Row) -> EntryRun | None:
        queue = self._simple_queue(row)
        if queue is None or base + row[POSITION] >= self.reached:
            return None
        return EntryRun(queue, row[QUEUE_OFFSET], row[QUEUE_OFFSET])

    def _begin_due(self, base: int, row: Row) -> EntryRun | None:
        queue = self._simple_queue(row)
        if queue is None or row[QUEUE_OFFSET] != queue.max_offset or base + row[POSITION] < queue.max_physical_offset:
            return None
        return EntryRun(queue, queue.max_offset, queue.max_offset)

    def _simple_queue(self, row: Row) -> ConsumeQueue | None:
        """Return the queue of a record; None if it does not exist or its entries need more than a row contains."""
        queue = self._queues.get(from_utf8(row[0]), row[QUEUE_ID])
        return None if queue is None or queue.batched or queue.is_schedule else queue

    def _is_due(self, record: DispatchFields, only: Collection[tuple[str, int]] | None) -> bool:
        key = record.topic, record.queue_id
        if only is not None:
            return key in only
        return record.physical_offset >= self.reached or key in self.incomplete

    def _dispatch(self, record: DispatchFields) -> None:
        queue = self._queue_for(record)
        if queue is None:
            return
        if record.physical_offset + record.size <= queue.max_physical_offset:
            self._put_right(record)
            return
        missing = record.queue_offset - queue.max_offset
        if queue.is_far(record.queue_offset):
            self._report.add(
                queue.files.directory, record.queue_offset, f"no entry for the record at {record.physical_offset}"
            )
            return
        if missing < 0 < record.queue_offset:  # a topic that was created again begins at 0
            if not self._put_right(record):
                what = f"no entry for the record at {record.physical_offset}, another record is there"
                self._report.add(queue.files.directory, record.queue_offset, what)
            return
        if queue.max_offset and missing:
            what = (
                f"{missing} entries missing before"
                if missing > 0
                else "entries from here on are replaced, beginning with"
            )
            self._report.add(
                queue.files.directory, record.queue_offset, f"{what} the record at {record.physical_offset}"
            )
        if self._report.clean:
            self._unfinished.begin()
        queue.append_at(record.queue_offset, *queue.wanted(record))
        self._report.entries_written += 1

    def _put_right(self, record: DispatchFields) -> bool:
        """Rewrite a record's entry if it leads elsewhere; return False if that is another record of this queue offset.

        A record that left a gap before its offset is not trusted: a damaged queue offset causes this, because no checksum covers
        it. The entries of the gap then lead to it.
        """
        queue = self._queues.get(record.topic, record.queue_id)
        entry = queue.stored(record.queue_offset) if queue is not None else None
        if queue is None or entry is None or entry[1] == FILLER_SIZE:
            return True
        right = queue.wanted(record)
        if entry == right:
            return True
        if entry[:2] != right[:2]:
            other = self._log.record_at(entry[0])
            said = other is not None and record_matches(
                other, queue.topic, queue.queue_id, record.queue_offset, entry[1]
            )
            bridges = queue.stored(record.queue_offset - 1) == entry
            if said and not bridges:
                return False
        self._report.add(queue.files.directory, record.queue_offset, f"was {entry}, the record says {right}; put right")
        queue.rewrite(record.queue_offset, *right)
        self.corrected.add(queue)
        return True

    def _queue_for(self, record: DispatchFields) -> ConsumeQueue | None:
        queue = self._queues.get(record.topic, record.queue_id)
        if queue is not None:
            return queue
        if not is_topic_name(record.topic):
            what = f"the record is not in a queue: {record.topic!r} is not a topic name"
            self._report.add(self._log.files.directory, record.physical_offset, what)
            return None
        inner_batch = bool(record.sys_flag & MessageSysFlag.INNER_BATCH_FLAG)
        return self._queues.make(record.topic, record.queue_id, batched=inner_batch)
