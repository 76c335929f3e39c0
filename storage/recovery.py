"""Making a store sound before it serves (Apache: CommitLog.recoverNormally, recoverAbnormally, ConsumeQueue.recover).

The log is the truth. It is walked from a safe place to its last intact record, cut there, and the queues are brought
to it: entries that point behind the end go, entries that are missing are written anew. Bytes that are cut off although
intact records lie in them are kept in the directory `damaged`, because they may be all there is of a message.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Mapping

import attrs

from protocol.delay_levels import parse_delay_levels
from protocol.flags import MessageSysFlag, transaction_value
from protocol.java import from_utf8
from protocol.message_record import DispatchFields, dispatch_fields
from protocol.queue_layout import FILLER_SIZE
from storage.checkpoint import Checkpoint
from storage.commit_log import CommitLog
from storage.config import StoreConfig
from storage.consume_queue import ConsumeQueue
from storage.entry_runs import EntryRun, Key, gather
from storage.log_scan import LogScan, StopReason, intact_behind, record_matches
from storage.mapped_file import Sync
from storage.paths import is_topic_name
from storage.queue_table import QueueTable
from storage.record_rows import POSITION, QUEUE_ID, QUEUE_OFFSET, SIZE, TIMESTAMP, Row
from storage.salvage import set_aside
from storage.scan_start import clean_start, reached_by, unclean_start
from storage.unfinished import Unfinished

logger = logging.getLogger(__name__)

_IN_QUEUES = frozenset({MessageSysFlag.TRANSACTION_NOT_TYPE, MessageSysFlag.TRANSACTION_COMMIT_TYPE})
"""Half and rolled back messages never enter a queue."""


@attrs.frozen
class RecoveryAction:
    """One thing that was wrong and what was done: the file or directory, the offset in it, and a sentence."""

    path: str
    offset: int
    done: str

    def __str__(self) -> str:
        return f"{self.path} at {self.offset}: {self.done}"


@attrs.define
class RecoveryReport:
    """What a start found. `clean` is False where the last broker did not close the store."""

    clean: bool
    scan_start: int = 0
    end_offset: int = 0
    records_checked: int = 0
    entries_written: int = 0
    actions: list[RecoveryAction] = attrs.field(factory=list)

    def add(self, path: str, offset: int, done: str) -> None:
        """Record and log one action."""
        action = RecoveryAction(path, offset, done)
        self.actions.append(action)
        logger.warning("recovery: %s", action)


class Recovery:
    """One recovery of a locked store; `run` once."""

    def __init__(
        self,
        config: StoreConfig,
        log: CommitLog,
        queues: QueueTable,
        checkpoint: Checkpoint,
        *,
        clean: bool,
        sync: Sync = os.fdatasync,
    ) -> None:
        self.report = RecoveryReport(clean)
        self._config = config
        self._log = log
        self._queues = queues
        self._checkpoint = checkpoint
        self._sync = sync
        self._delay_table = parse_delay_levels(config.message_delay_level)
        self._unfinished = Unfinished(config.paths, sync)
        self._rescan_from: int | None = None
        self._incomplete: set[tuple[str, int]] = set()
        self._reached = 0

    def run(self) -> RecoveryReport:
        """Bring log and queues to the last intact record. Raises StoreError where a person has to act.

        It may be interrupted anywhere: what the checkpoint vouches for is not taken away before a mark says so on disk.
        """
        self._log.load()
        if self._log.lengthened is not None:
            cut = self._log.lengthened
            self.report.add(cut.path, cut.actual_bytes, "the file ended here; it was made whole with zeros")
        self._load_queues()
        if not self._log.files.files:
            self._drop_queues_without_log()
            return self.report
        start = self._scan_start()
        found = {queue: queue.max_offset for queue in self._queues}
        if not self.report.clean:
            for queue in self._queues:
                queue.rewind_to_physical(start)
        scan = self._scan(start, None)
        self._cut_log(scan)
        self._cut_queues(scan.end_offset, found)
        self._rebuild_strangers()
        for queue in self._queues:
            queue.correct_min_offset(self._log.min_offset)
        self._put_on_disk(start)
        return self.report

    # What is there

    def _load_queues(self) -> None:
        for queue in self._queues.on_disk():
            if self._queues.is_batch_topic(queue.topic) is (not queue.batched):
                self._change_kind(queue)
                continue
            queue.files.before_loss = self._unfinished.begin
            load = queue.load()
            queue.files.before_loss = lambda: None
            directory = queue.files.directory
            for odd in load.odd_files:
                self.report.add(odd.path, 0, f"has {odd.actual_bytes} bytes; the queue is built anew from the log")
            if load.missing_file is not None:
                self.report.add(load.missing_file, 0, "is missing; the queue is built anew from the log")
            if load.damaged:
                self._unfinished.begin()
                queue.destroy_directory()
                self._rescan(queue, 0)
            elif load.truncation:
                self.report.add(directory, queue.max_offset, "entries behind a hole are written anew from the log")
                self._rescan(queue, queue.max_physical_offset)
            elif self.report.clean and queue.files.dropped_empty is not None:
                self.report.add(queue.files.dropped_empty, 0, "was empty; its entries are written anew from the log")
                self._rescan(queue, queue.max_physical_offset)

    def _change_kind(self, queue: ConsumeQueue) -> None:
        """Have a queue of the wrong kind built anew from the log: a slave may learn late which kind a topic has."""
        what = f"{queue.topic} has queues of another kind; the queue is built anew from the log"
        self.report.add(queue.files.directory, 0, what)
        self._unfinished.begin()
        queue.destroy_directory()
        self._queues.remove_queues([(queue.topic, queue.queue_id)])
        self._rescan(self._queues.make(queue.topic, queue.queue_id), 0)

    def _rescan(self, queue: ConsumeQueue, offset: int) -> None:
        self._incomplete.add((queue.topic, queue.queue_id))
        self._rescan_from = offset if self._rescan_from is None else min(offset, self._rescan_from)

    def _drop_queues_without_log(self) -> None:
        """Without a log the queues point nowhere (Apache deletes them as well)."""
        for queue in self._queues:
            if queue.max_offset:
                self.report.add(queue.files.directory, 0, "deleted, because the commit log has no files")
        self._queues.remove(self._queues.topics())

    # Where to begin

    def _scan_start(self) -> int:
        """A record's first byte, before which nothing can be wrong."""
        if self.report.clean:
            start = clean_start(self._config, self._log, self._queues)
            self._reached = reached_by(self._queues)
        else:
            start = unclean_start(self._config, self._log, self._queues, self._checkpoint.min_timestamp)
        if self._rescan_from is not None:
            start = min(start, self._rescan_from - self._rescan_from % self._log.file_size)
        self.report.scan_start = max(start, self._log.min_offset)
        return self.report.scan_start

    # Walking and cutting

    def _scan(self, start: int, only: Collection[tuple[str, int]] | None) -> LogScan:
        """Walk the log from `start` and write the entries that the queues (of `only`) miss. Raises StoreFull.

        On a clean start a record before the place that the queues reach has its entry, unless its queue is damaged or
        its topic was deleted: then it gets none (Apache: recoverNormally). Only where there is no queue all get one.
        """
        scan = LogScan(self._log.files.files, start, self._delay_table, self._config.check_crc_on_recover)
        for part in scan if only is not None or self._incomplete else scan.parts():
            if isinstance(part, DispatchFields):
                self._take(part, only)
            else:
                self._take_rows(part.first_offset, part.rows)
        self.report.end_offset = scan.end_offset
        return scan

    def _take(self, record: DispatchFields, only: Collection[tuple[str, int]] | None) -> None:
        self.report.records_checked += 1
        self._log.last_store_timestamp = record.store_timestamp
        self._checkpoint.confirm_physical_offset = record.physical_offset
        if transaction_value(record.sys_flag) not in _IN_QUEUES:
            return
        if self._is_due(record, only):
            self._dispatch(record)
        elif only is None:
            self._put_right(record)

    def _take_rows(self, base: int, rows: list[Row]) -> None:
        """Those that follow in their queues, or are there already, at once; from the first other one on one by one."""
        taken = self._take_at_once(base, rows)
        self.report.records_checked += taken
        if taken:
            self._log.last_store_timestamp = rows[taken - 1][TIMESTAMP]
            self._checkpoint.confirm_physical_offset = base + rows[taken - 1][POSITION]
        for row in rows[taken:]:
            record = self._log.read(base + row[POSITION], row[SIZE])
            assert record is not None
            self._take(dispatch_fields(record, delay_table=self._delay_table), None)

    def _take_at_once(self, base: int, rows: list[Row]) -> int:
        runs: dict[Key, EntryRun] = {}
        if base + rows[0][POSITION] < self._reached:
            taken = gather(base, rows, lambda row: self._begin_known(base, row), runs)
            return taken if all(run.is_there() for run in runs.values()) else 0
        taken = gather(base, rows, lambda row: self._begin_due(base, row), runs)
        if runs and self.report.clean:
            self._unfinished.begin()
        for run in runs.values():
            run.reserve()
            run.write()
            self.report.entries_written += run.next_offset - run.first
        return taken

    def _begin_known(self, base: int, row: Row) -> EntryRun | None:
        queue = self._simple_queue(row)
        if queue is None or base + row[POSITION] >= self._reached:
            return None
        return EntryRun(queue, row[QUEUE_OFFSET], row[QUEUE_OFFSET])

    def _begin_due(self, base: int, row: Row) -> EntryRun | None:
        queue = self._simple_queue(row)
        if queue is None or row[QUEUE_OFFSET] != queue.max_offset or base + row[POSITION] < queue.max_physical_offset:
            return None
        return EntryRun(queue, queue.max_offset, queue.max_offset)

    def _simple_queue(self, row: Row) -> ConsumeQueue | None:
        """The queue of a record, where a row tells all that its entry has."""
        queue = self._queues.get(from_utf8(row[0]), row[QUEUE_ID])
        return None if queue is None or queue.batched or queue.is_schedule else queue

    def _is_due(self, record: DispatchFields, only: Collection[tuple[str, int]] | None) -> bool:
        key = record.topic, record.queue_id
        if only is not None:
            return key in only
        return record.physical_offset >= self._reached or key in self._incomplete

    def _dispatch(self, record: DispatchFields) -> None:
        queue = self._queue_for(record)
        if queue is None or record.physical_offset + record.size <= queue.max_physical_offset:
            return
        missing = record.queue_offset - queue.max_offset
        if queue.is_far(record.queue_offset):
            self.report.add(
                queue.files.directory, record.queue_offset, f"no entry for the record at {record.physical_offset}"
            )
            return
        if missing < 0 < record.queue_offset:  # a topic that was made anew begins at 0
            if not self._put_right(record):
                what = f"no entry for the record at {record.physical_offset}, another record is there"
                self.report.add(queue.files.directory, record.queue_offset, what)
            return
        if queue.max_offset and missing:
            what = (
                f"{missing} entries missing before"
                if missing > 0
                else "entries from here on are replaced, beginning with"
            )
            self.report.add(
                queue.files.directory, record.queue_offset, f"{what} the record at {record.physical_offset}"
            )
        if self.report.clean:
            self._unfinished.begin()
        queue.append_at(record.queue_offset, *queue.wanted(record))
        self.report.entries_written += 1

    def _put_right(self, record: DispatchFields) -> bool:
        """Write a record's entry anew where it leads elsewhere; False where that is a record of this queue offset too.

        A record of this offset that left a gap before it is not believed: a damaged queue offset does that, no sum covers
        it. The gap leads there then.
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
        self.report.add(queue.files.directory, record.queue_offset, f"was {entry}, the record says {right}; put right")
        queue.rewrite(record.queue_offset, *right)
        return True

    def _queue_for(self, record: DispatchFields) -> ConsumeQueue | None:
        queue = self._queues.get(record.topic, record.queue_id)
        if queue is not None:
            return queue
        if not is_topic_name(record.topic):
            what = f"the record is in no queue: {record.topic!r} is no topic name"
            self.report.add(self._log.files.directory, record.physical_offset, what)
            return None
        inner_batch = bool(record.sys_flag & MessageSysFlag.INNER_BATCH_FLAG)
        return self._queues.make(record.topic, record.queue_id, batched=inner_batch)

    def _cut_log(self, scan: LogScan) -> None:
        end = scan.end_offset
        problem = scan.problem if scan.stop_reason is StopReason.DAMAGED else "nothing was written here"
        kept = ""
        if intact_behind(self._log.files.files, end) is not None:
            saved = set_aside(self._config.paths.damaged, self._log.files.files, end)
            kept = f"; what followed is kept in {saved}"
        truncation = self._log.truncate(end)
        if truncation or scan.stop_reason is StopReason.DAMAGED:
            names = ", ".join(os.path.basename(path) for path in truncation.deleted_files)
            deleted = f", files deleted: {names}" if names else ""
            self.report.add(self._log.files.directory, end, f"the log was cut here ({problem}){deleted}{kept}")

    def _cut_queues(self, end: int, found: Mapping[ConsumeQueue, int]) -> None:
        """Drop entries that point behind the log's end; `found` has the ends of the queues as they were."""
        for queue in self._queues:
            keep = queue.first_at_or_behind(end)
            if keep < queue.max_offset or not self.report.clean:
                queue.truncate(keep)
            dropped = found.get(queue, 0) - queue.max_offset
            if dropped > 0:
                what = f"{dropped} entries dropped that point behind the end of the log at {end}"
                self.report.add(queue.files.directory, queue.max_offset, what)

    def _rebuild_strangers(self) -> None:
        """Build queues anew whose last entry leads to a record that is not its own."""
        strangers: set[tuple[str, int]] = set()
        for queue in self._queues:
            if not self._last_entry_is_right(queue):
                self.report.add(queue.files.directory, queue.max_offset - 1, "leads to a wrong record; built anew")
                self._unfinished.begin()
                queue.destroy_directory()
                strangers.add((queue.topic, queue.queue_id))
        if strangers:
            end = self.report.end_offset
            self._scan(self._log.min_offset, strangers)
            self.report.end_offset = end

    def _last_entry_is_right(self, queue: ConsumeQueue) -> bool:
        entry = queue.entry(queue.max_offset - 1)
        if entry is None or queue.max_physical_offset <= self._log.min_offset:
            return True
        record = self._log.record_at(entry[0])
        return record is not None and record_matches(
            record, queue.topic, queue.queue_id, queue.last_record_offset, entry[1]
        )

    def _put_on_disk(self, start: int) -> None:
        """What readers see from now on must survive a power cut, or a later recovery would take it away again."""
        if not self.report.clean or self.report.actions or self._unfinished.begun:
            for file in self._log.files.from_offset(start):
                file.sync(self._sync)
            for queue in self._queues:
                queue.flush(0, self._sync)
        self._log.flushed_offset = self._log.max_offset
        if self._unfinished.begun:
            timestamp = self._log.last_store_timestamp
            self._checkpoint.physic_msg_timestamp = self._checkpoint.logics_msg_timestamp = timestamp
            self._unfinished.end(self._checkpoint)
