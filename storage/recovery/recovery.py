"""Makes a store sound before it serves (Apache: CommitLog.recoverNormally, recoverAbnormally, ConsumeQueue.recover).

The log is authoritative. Recovery walks it from a safe place to its last intact record, cuts it there, and brings the
queues into line: entries that point past the end are dropped, missing entries are written again. If intact records lie in
the bytes that are cut off, the bytes are kept in the directory `damaged`: they may be the only copy of a message.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping

from twisted_mq.protocol.layouts.record_codec import DispatchFields
from twisted_mq.protocol.messages.delay_levels import parse_delay_levels
from twisted_mq.storage.config import StoreConfig
from twisted_mq.storage.files.checkpoint import Checkpoint
from twisted_mq.storage.files.salvage import set_aside
from twisted_mq.storage.files.system_calls import Sync, SyncFileSystems, fdatasync, sync_file_systems
from twisted_mq.storage.log.commit_log import CommitLog
from twisted_mq.storage.log.log_scan import LogScan, StopReason, intact_behind, record_matches
from twisted_mq.storage.queues.consume_queue import ConsumeQueue, Entry, is_at_or_behind
from twisted_mq.storage.queues.queue_table import QueueTable
from twisted_mq.storage.recovery.interruption_mark import Unfinished
from twisted_mq.storage.recovery.recovered_entries import RecoveredEntries
from twisted_mq.storage.recovery.recovery_report import RecoveryReport
from twisted_mq.storage.recovery.start_offset import clean_start, reached_by, unclean_start

SYNCED_ONE_BY_ONE = 64
"""The most queues whose files are put on disk one by one; for more, whole file systems are."""


class Recovery:
    """A recovery of a locked store; call `run` once."""

    def __init__(
        self,
        config: StoreConfig,
        log: CommitLog,
        queues: QueueTable,
        checkpoint: Checkpoint,
        *,
        clean: bool,
        sync: Sync = fdatasync,
        sync_file_systems: SyncFileSystems = sync_file_systems,
    ) -> None:
        self.report = RecoveryReport(clean)
        self._config = config
        self._log = log
        self._queues = queues
        self._checkpoint = checkpoint
        self._sync = sync
        self._sync_file_systems = sync_file_systems
        self._delay_table = parse_delay_levels(config.message_delay_level)
        self._unfinished = Unfinished(config.paths, sync)
        self._rescan_from: int | None = None
        self._rewound: set[ConsumeQueue] = set()
        self._seen: dict[ConsumeQueue, tuple[int, Entry]] = {}
        """The end and last entry of queues as they were loaded, whose first entry leads into the log."""
        self._entries = RecoveredEntries(log, queues, checkpoint, self._delay_table, self._unfinished, self.report)

    def run(self) -> None:
        """Bring log and queues to the last intact record. Raises StoreError if a person has to act.

        It may be interrupted anywhere: nothing that the checkpoint vouches for is removed before a mark on disk says so.
        """
        self._log.load()
        if self._log.lengthened is not None:
            cut = self._log.lengthened
            self.report.add(cut.path, cut.actual_bytes, "the file ended here; it was filled with zeros")
        self._load_queues()
        if not self._log.files.files:
            self._drop_queues_without_log()
            return
        start = self._scan_start()
        found = {queue: queue.max_offset for queue in self._queues}
        if not self.report.clean:
            self._rewound = {queue for queue in self._queues if queue.rewind_to_physical(start)}
        scan = self._scan(start, None)
        self._cut_log(scan)
        self._cut_queues(scan.end_offset, found)
        self._rebuild_strangers()
        for queue in self._queues:
            if self._seen_last(queue) is None:
                queue.correct_min_offset(self._log.min_offset)
        self._put_on_disk(start)

    # Existing files

    def _load_queues(self) -> None:
        for queue in self._queues.on_disk():
            if self._queues.is_batch_topic(queue.topic) is (not queue.batched):
                self._change_kind(queue)
                continue
            queue.files.before_loss = self._unfinished.begin
            load = queue.load()
            queue.files.before_loss = lambda: None
            if is_at_or_behind(load.first, self._log.min_offset) and load.last is not None:
                self._seen[queue] = queue.max_offset, load.last
            directory = queue.files.directory
            for odd in load.odd_files:
                self.report.add(odd.path, 0, f"has {odd.actual_bytes} bytes; the queue is rebuilt from the log")
            if load.missing_file is not None:
                self.report.add(load.missing_file, 0, "is missing; the queue is rebuilt from the log")
            if load.damaged:
                self._unfinished.begin()
                queue.destroy_directory()
                self._rescan(queue, 0)
            elif load.truncation:
                self.report.add(directory, queue.max_offset, "entries after a hole are rewritten from the log")
                self._rescan(queue, queue.max_physical_offset)
            elif self.report.clean and queue.files.dropped_empty is not None:
                self.report.add(queue.files.dropped_empty, 0, "was empty; its entries are rewritten from the log")
                self._rescan(queue, queue.max_physical_offset)

    def _change_kind(self, queue: ConsumeQueue) -> None:
        """Have a queue of the wrong kind built again from the log: a slave may learn late which kind a topic has."""
        what = f"{queue.topic} has queues of another kind; the queue is rebuilt from the log"
        self.report.add(queue.files.directory, 0, what)
        self._unfinished.begin()
        queue.destroy_directory()
        self._queues.remove_queues([(queue.topic, queue.queue_id)])
        self._rescan(self._queues.make(queue.topic, queue.queue_id), 0)

    def _rescan(self, queue: ConsumeQueue, offset: int) -> None:
        self._entries.incomplete.add((queue.topic, queue.queue_id))
        self._rescan_from = offset if self._rescan_from is None else min(offset, self._rescan_from)

    def _drop_queues_without_log(self) -> None:
        """Drop all queues if there is no log, because their entries lead nowhere (Apache deletes them too)."""
        for queue in self._queues:
            if queue.max_offset:
                self.report.add(queue.files.directory, 0, "deleted, because the commit log has no files")
        self._queues.remove(self._queues.topics())
        self._queues.delete_rest()

    # The start of the walk

    def _scan_start(self) -> int:
        """Return the offset of a record before which everything is sound."""
        if self.report.clean:
            start = clean_start(self._config, self._log, self._queues)
            self._entries.reached = reached_by(self._queues)
        else:
            start = unclean_start(self._config, self._log, self._queues, self._checkpoint.min_timestamp)
        if self._rescan_from is not None:
            start = min(start, self._rescan_from - self._rescan_from % self._log.file_size)
        self.report.scan_start = max(start, self._log.min_offset)
        return self.report.scan_start

    # Walking and cutting

    def _scan(self, start: int, only: Collection[tuple[str, int]] | None) -> LogScan:
        """Walk the log from `start` and write the entries that the queues (of `only`) lack. Raises StoreFull.

        On a clean start a record before the end of the queues has its entry, unless its queue is damaged or its topic was
        deleted: then it gets none (Apache: recoverNormally). Only if there are no queues, all records get entries.
        """
        scan = LogScan(self._log.files.files, start, self._delay_table, self._config.check_crc_on_recover)
        entries = self._entries
        for part in scan if only is not None or entries.incomplete else scan.parts():
            if isinstance(part, DispatchFields):
                entries.take(part, only)
            else:
                entries.take_rows(part.first_offset, part.rows)
        self.report.end_offset = scan.end_offset
        return scan

    def _cut_log(self, scan: LogScan) -> None:
        end = scan.end_offset
        problem = scan.problem if scan.stop_reason is StopReason.DAMAGED else "nothing was written here"
        kept = ""
        if intact_behind(self._log.files.files, end) is not None:
            saved = set_aside(self._config.paths.damaged, self._log.files.files, end)
            kept = f"; the removed part is kept in {saved}"
        truncation = self._log.truncate(end)
        if truncation or scan.stop_reason is StopReason.DAMAGED:
            names = ", ".join(os.path.basename(path) for path in truncation.deleted_files)
            deleted = f", files deleted: {names}" if names else ""
            self.report.add(self._log.files.directory, end, f"the log was cut here ({problem}){deleted}{kept}")

    def _cut_queues(self, end: int, found: Mapping[ConsumeQueue, int]) -> None:
        """Drop entries that point past the log's end; `found` has the earlier ends of the queues."""
        for queue in self._queues:
            keep = queue.first_at_or_behind(end)
            if keep < queue.max_offset or queue in self._rewound:
                queue.truncate(keep)
            dropped = found.get(queue, 0) - queue.max_offset
            if dropped > 0:
                what = f"{dropped} entries dropped that point past the end of the log at {end}"
                self.report.add(queue.files.directory, queue.max_offset, what)

    def _rebuild_strangers(self) -> None:
        """Rebuild the queues whose last entry leads to a record of another queue or offset."""
        strangers: set[tuple[str, int]] = set()
        for queue in self._queues:
            if not self._last_entry_is_right(queue):
                self.report.add(queue.files.directory, queue.max_offset - 1, "points to a wrong record; rebuilt")
                self._unfinished.begin()
                queue.destroy_directory()
                self._seen.pop(queue, None)
                strangers.add((queue.topic, queue.queue_id))
        if strangers:
            end = self.report.end_offset
            self._scan(self._log.min_offset, strangers)
            self.report.end_offset = end

    def _seen_last(self, queue: ConsumeQueue) -> Entry | None:
        """Return the last entry of a queue that is as it was loaded; None for the others."""
        end, last = self._seen.get(queue, (-1, None))
        changed = end != queue.max_offset or queue in self._rewound or queue in self._entries.corrected
        return None if changed else last

    def _last_entry_is_right(self, queue: ConsumeQueue) -> bool:
        entry = self._seen_last(queue) or queue.peek(queue.max_offset - 1)
        if entry is None or queue.max_physical_offset <= self._log.min_offset:
            return True
        record = self._log.record_at(entry[0])
        return record is not None and record_matches(
            record, queue.topic, queue.queue_id, queue.last_record_offset, entry[1]
        )

    def _put_on_disk(self, start: int) -> None:
        """Put on disk all that readers will see: otherwise a power cut and a later recovery could take it away again."""
        if not self.report.clean or self.report.actions or self._unfinished.begun:
            for file in self._log.files.from_offset(start):
                file.sync(self._sync)
            self._put_queues_on_disk()
        for queue in self._queues:
            queue.is_on_disk()
        if self._unfinished.begun:
            timestamp = self._log.last_store_timestamp
            self._checkpoint.physic_msg_timestamp = self._checkpoint.logics_msg_timestamp = timestamp
            self._unfinished.end(self._checkpoint)

    def _put_queues_on_disk(self) -> None:
        """Put all queues on disk. Many take one call: each file alone would cost four, with the names that lead to it."""
        queues = tuple(self._queues)
        if len(queues) > SYNCED_ONE_BY_ONE and self._sync_file_systems(self._config.paths.queue_roots()):
            return
        for queue in queues:
            queue.flush(0, self._sync)
