"""The message store over files (Apache: DefaultMessageStore). All calls come from one thread, see `interfaces`."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping

from zope.interface import implementer

from twisted_mq.protocol.boundary_type import BoundaryType
from twisted_mq.storage.appending.appender import Appender
from twisted_mq.storage.appending.dispatch import EVERYTHING, Dispatcher
from twisted_mq.storage.appending.gate import Gate
from twisted_mq.storage.check import check_parts
from twisted_mq.storage.config import FlushDiskType, StoreConfig
from twisted_mq.storage.errors import DiskFailed, StoreClosed, StoreFull
from twisted_mq.storage.files.checkpoint import Checkpoint
from twisted_mq.storage.files.descriptors import is_shortage
from twisted_mq.storage.files.directory import StoreDirectory
from twisted_mq.storage.files.system_calls import (
    Allocate,
    Sync,
    SyncFileSystems,
    fdatasync,
    posix_fallocate,
    sync_file_systems,
)
from twisted_mq.storage.flushing.commit_service import CommitService
from twisted_mq.storage.flushing.flush import FlushCallback, FlushService
from twisted_mq.storage.flushing.index_flush import IndexFlush
from twisted_mq.storage.flushing.threads import SYSTEM_THREADS, Threads
from twisted_mq.storage.index.index_builder import CATCH_UP_BYTES, IndexBuilder
from twisted_mq.storage.index.index_check import check_index
from twisted_mq.storage.index.index_service import IndexService
from twisted_mq.storage.interfaces import (
    ArrivalListener,
    GetResult,
    GetStatus,
    IMessageStore,
    Inconsistency,
    InnerBatch,
    InnerMessage,
    IsBatchTopic,
    Places,
    PlainMessages,
    PutResult,
    QueryResult,
    RecordTest,
    Shut,
)
from twisted_mq.storage.log.log_scan import LogScan
from twisted_mq.storage.log.transient_pool import BufferedCommitLog, make_commit_log
from twisted_mq.storage.proved_records import ProvedRecords
from twisted_mq.storage.queues.batch_queue_reader import BatchQueueReader
from twisted_mq.storage.queues.queue_extension import BitMapOf, describe
from twisted_mq.storage.queues.queue_table import QueueTable
from twisted_mq.storage.recovery.recovery import Recovery
from twisted_mq.storage.recovery.recovery_report import RecoveryReport
from twisted_mq.storage.replica.replica import ReplicaLog
from twisted_mq.storage.retention import Retention

logger = logging.getLogger(__name__)


_TAIL_BYTES = 64 * 1024
"""The distance from the log's end at which the last record is assumed to begin after the log was cut before it."""


@implementer(IMessageStore)
class FileMessageStore:
    """A store over files: commit log and consume queues in one directory, which Apache's broker can open too.

    `recovery_report` tells what the last start found; `retention` decides what may be deleted. A closed store can start again.

    `is_batch_topic` returns whether a topic has batch queues; if it returns None, the directories found at the start decide.
    `bit_map_of` makes filter bit maps for the queues' extensions, from a topic and a message's properties. `committed` is
    called in a thread of the store when messages that an earlier `dispatch` left out can become visible.
    """

    put_message: Callable[[InnerMessage], PutResult]
    """The `put` method of the current appender, bound at each start. A sender calls it without any layer between."""
    put_messages: Callable[[InnerBatch], PutResult]
    put_plain: Callable[[PlainMessages], Places]

    def __init__(
        self,
        config: StoreConfig,
        now_ms: Callable[[], int],
        *,
        is_batch_topic: IsBatchTopic = lambda topic: None,
        bit_map_of: BitMapOf | None = None,
        committed: Callable[[], None] = lambda: None,
        allocate: Allocate = posix_fallocate,
        sync: Sync = fdatasync,
        sync_file_systems: SyncFileSystems = sync_file_systems,
        monotonic: Callable[[], float] = time.monotonic,
        threads: Threads = SYSTEM_THREADS,
    ) -> None:
        self.config = config
        self.recovery_report = RecoveryReport(clean=True)
        self._now_ms = now_ms
        self._allocate = allocate
        self._sync = sync
        self._sync_file_systems = sync_file_systems
        self._monotonic = monotonic
        self._threads = threads
        self._paths = config.paths
        self._directory = StoreDirectory(self._paths)
        self._sync_flush = config.flush_disk_type is FlushDiskType.SYNC_FLUSH
        self.dispatcher = Dispatcher()
        self._flush: FlushService | None = None
        self._commit: CommitService | None = None
        self._is_batch_topic = is_batch_topic
        self._bit_map_of = bit_map_of
        self._committed = committed
        self._replica: ReplicaLog | None = None
        self._make_parts()

    def _described(self, topic: str, physical_offset: int, size: int) -> tuple[int, bytes | None]:
        """Return the store time and filter bit map that a queue's extension holds for a record."""
        record = self._log.read(physical_offset, size)
        return describe(topic, record, self._bit_map_of) if record is not None else (0, None)

    def _make_parts(self) -> None:
        config = self.config
        self._log = make_commit_log(config, self._allocate, self._sync)
        self._queues = QueueTable(config, self._allocate, self._described, self._is_batch_topic)
        self._checkpoint = Checkpoint(self._paths.checkpoint)
        self._reader = BatchQueueReader(config, self._log, self._monotonic)
        self._records = ProvedRecords(self._log, self._queues, self.dispatcher)
        index = IndexService(self._paths.index, config.index_sizes, self._now_ms, self._allocate)
        self._index = IndexBuilder(self._log, index, enabled=config.message_index_enable)
        self.gate = Gate(Shut.NOT_STARTED)
        self._appender = Appender(config, self._now_ms, self._log, self._queues, self.dispatcher, self.gate)
        self.put_message, self.put_messages = self._appender.put, self._appender.put_batch
        self.put_plain = self._appender.put_plain
        self.retention = Retention(config, self._log, self._queues, self.gate, index.trim)

    # Life

    @property
    def is_open(self) -> bool:
        """Return whether messages can be put and read."""
        return self._flush is not None

    def start(self) -> None:
        """Lock, recover, and begin to flush. Raises StoreError subclasses; then the directory is free again."""
        if self._flush is not None:
            return
        clean = self._directory.open()
        try:
            self._recover(clean)
            self._directory.mark_running()
            self._log.read_at_random(not self.config.data_read_ahead_enable)
        except BaseException as error:
            self._release()
            self._directory.close(clean=False)
            if isinstance(error, OSError):
                raise DiskFailed(self._paths.root, error) from error
            raise
        self._flush = FlushService(
            self.config,
            self._log,
            self._checkpoint,
            self.gate,
            lambda: self._queues,
            lambda: self.dispatcher.last_store_timestamp,
            index=IndexFlush(self._index.index, self._checkpoint, self._sync, self._threads),
            monotonic=self._monotonic,
            sync=self._sync,
            threads=self._threads,
        )
        self._flush.start()
        if isinstance(self._log, BufferedCommitLog):
            fail = self._flush.fail
            self._commit = CommitService(
                self.config, self._log, fail, self._committed, monotonic=self._monotonic, threads=self._threads
            )
            self._commit.start()
        self.gate.open(Shut.NOT_STARTED)

    def _recover(self, clean: bool) -> None:
        self._make_parts()
        self._checkpoint = Checkpoint.load(self._paths.checkpoint)
        recovery = Recovery(
            self.config,
            self._log,
            self._queues,
            self._checkpoint,
            clean=clean,
            sync=self._sync,
            sync_file_systems=self._sync_file_systems,
        )
        self.recovery_report = recovery.report
        recovery.run()
        report = self.recovery_report
        self._index.load(None if clean else self._checkpoint.index_msg_timestamp, report.add)
        self._forget_index_behind(self._index.index.end_timestamp)
        logger.info(
            "store open: root=%s clean=%s minOffset=%d maxOffset=%d recordsChecked=%d entriesWritten=%d actions=%d",
            self._paths.root,
            clean,
            self._log.min_offset,
            self._log.max_offset,
            report.records_checked,
            report.entries_written,
            len(report.actions),
        )

    def _forget_index_behind(self, end_timestamp: int) -> None:
        """Take back the checkpoint's claim for index files that are gone: new, unflushed files will replace them."""
        if end_timestamp < self._checkpoint.index_msg_timestamp:
            self._checkpoint.index_msg_timestamp = end_timestamp
            self._checkpoint.save(self._sync)

    def close(self) -> None:
        """Dispatch and flush everything, write the checkpoint, remove the abort file, free the lock.

        Raises OSError if a flush failed: then nothing more becomes visible, and the next start recovers.
        """
        flush, self._flush = self._flush, None
        if flush is None:
            return
        self.gate.shut(Shut.SHUT_DOWN)
        clean = False
        try:
            if self._commit is not None:
                self._commit.stop()
                self._commit = None
            if flush.error is None:
                self._make_all_visible()
            flush.stop()
            if self._replica is not None:
                self._replica.cut()
            self._queues.delete_rest()
            clean = True
        finally:
            self._replica = None
            self._release()
            self._directory.close(clean=clean)

    def _make_all_visible(self) -> None:
        self._log.commit()
        self.dispatcher.run(EVERYTHING)
        if self._replica is not None:
            self._replica.dispatch(EVERYTHING, EVERYTHING)
        self._index.build(self._log.max_offset, EVERYTHING)

    def _release(self) -> None:
        self.dispatcher.pending.clear()
        self._log.release()
        self._queues.release()
        self._index.index.release()

    def configure(self, config: StoreConfig) -> None:
        """Take over the limits of another configuration."""
        self.config = config
        self._reader.configure(config)
        self._appender.configure(config)
        self.retention.configure(config)
        self._log.read_at_random(not config.data_read_ahead_enable)

    # Writing

    def dispatch(self, arrived: ArrivalListener | None = None) -> bool:
        """Make records visible, and index them if enough are waiting. Under synchronous flush the rest is flushed soon.

        A master's bytes become visible in parts: returns whether more are left.
        """
        more = self._replica is not None and self._show_replica(self._replica, arrived)
        try:
            self._make_visible(arrived)
        except OSError as error:
            self._stay_behind(error)
        if self._index.lags():
            self._index.keep_up(self._visible_end())
        return more

    def _show_replica(self, replica: ReplicaLog, arrived: ArrivalListener | None) -> bool:
        try:
            end = self._log.flushed_offset if self._sync_flush else EVERYTHING
            return replica.dispatch(end, arrived=arrived)
        except StoreFull as error:
            logger.error("the queues stay behind the log: offset=%d %s", replica.visible_end, error)
            return False

    def _stay_behind(self, error: OSError) -> None:
        """Leave records to the next call if descriptors are short. Raises the error if it is not a passing shortage."""
        if not is_shortage(error):
            raise error
        logger.warning("queues stay behind the log, retrying: %s", error)

    def _visible_end(self) -> int:
        """Return the end of the last record that may become visible."""
        end = self._log.max_offset if self._replica is None else self._replica.visible_end
        end = min(end, self._log.committed_offset)
        if self._sync_flush:
            end = min(end, self._log.flushed_offset)
        return min(end, self.dispatcher.pending[0][1]) if self.dispatcher.pending else end

    def _make_visible(self, arrived: ArrivalListener | None) -> None:
        dispatcher = self.dispatcher
        if not dispatcher.pending:
            return
        if not self._sync_flush:
            dispatcher.run(self._log.committed_offset, arrived)
            if self._flush is not None and not self.config.flush_commit_log_timed:
                self._flush.nudge()
            return
        dispatcher.run(self._log.flushed_offset, arrived)
        if dispatcher.pending and self._flush is not None:
            self._flush.wake()

    def delete_topics(self, topics: Collection[str]) -> None:
        """Drop the queues of these topics."""
        for queue in self._queues.remove(topics):
            self.dispatcher.drop(queue)
            if self._replica is not None:
                self._replica.drop(queue)

    def delete_more(self) -> bool:
        """Delete more files of dropped queues; return whether more are left."""
        return self._queues.delete_more()

    # Retention on request; the broker's RetentionService does the periodic part

    def clean_expired_queues(self) -> int:
        """Delete queues whose records have all expired."""
        return len(self._queues.remove_queues(self.retention.expired_queues()))

    def deleted_unconsumed(self) -> Mapping[tuple[str, int], int]:
        """Return, by topic and queue, how many messages a full disk deleted although a consumer still needed them."""
        return self.retention.deleted_unconsumed

    def clean_unused_topics(self, retained: Collection[str]) -> int:
        """Delete the queues of topics that are not retained."""
        unused = self.retention.unused_topics(retained)
        self.delete_topics(unused)
        return len(unused)

    def delete_expired_log(self) -> None:
        """Delete expired log files without waiting for the hour."""
        self.retention.delete_soon()

    # Replicating

    def read_log(self, offset: int, max_bytes: int) -> memoryview | None:
        """Return the log's bytes from an offset on, at most to the end of their file."""
        return self._log.read_bytes(offset, max_bytes)

    def newest_file_offset(self) -> int:
        """Return the first offset of the file in which the log ends."""
        return self._log.max_offset - self._log.max_offset % self._log.file_size

    def last_record_offset(self) -> int:
        """Return the offset of the last record that recovery or replication has read."""
        log = self._log
        known, first = log.last_record_offset, log.min_offset
        return known if first <= known < log.max_offset else max(first, log.max_offset - _TAIL_BYTES)

    def append_log(self, offset: int, data: bytes | memoryview) -> None:
        """Append a master's bytes. Raises LogMismatch, ReplicaDamaged, StoreFull, StoreClosed."""
        if self._flush is None or self._flush.error is not None:
            raise StoreClosed(self._paths.root)
        if self._replica is None:
            self._replica = ReplicaLog(self.config, self._log, self._queues, self.dispatcher)
            self.gate.shut(Shut.SLAVE)
        self._replica.append(offset, data)

    # Reading

    def get_message(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        max_count: int,
        max_bytes: int,
        tags_codes: Collection[int] | None,
        matches: RecordTest | None = None,
        joined: bool = False,
    ) -> GetResult:
        """Read a queue. An unknown queue reads like an empty one, as in Apache, whose reads create the queue."""
        queue = self._queues.by_key.get((topic, queue_id))
        if queue is None:
            batches = self._queues.batches.get((topic, queue_id))
            if batches is None:
                return GetResult(GetStatus.NO_MESSAGE_IN_QUEUE, 0, 0, 0)
            return self._reader.get_batched(batches, offset, max_count, max_bytes, tags_codes, matches)
        return self._reader.get(queue, offset, max_count, max_bytes, tags_codes, matches, joined)

    def min_offset_in_queue(self, topic: str, queue_id: int) -> int:
        """Return the first readable queue offset."""
        queue = self._queues.get(topic, queue_id)
        return queue.min_offset if queue is not None else 0

    def max_offset_in_queue(self, topic: str, queue_id: int) -> int:
        """Return the offset after the last visible message."""
        queue = self._queues.get(topic, queue_id)
        return queue.max_offset if queue is not None else 0

    def offset_by_time(self, topic: str, queue_id: int, timestamp_ms: int, boundary: BoundaryType) -> int:
        """Return the offset where reading from a time begins; 0 for an unknown queue."""
        queue = self._queues.get(topic, queue_id)
        return self._reader.offset_by_time(queue, timestamp_ms, boundary) if queue is not None else 0

    def store_timestamp(self, topic: str, queue_id: int, offset: int) -> int:
        """Return the store time of the message at a queue offset in ms."""
        queue = self._queues.get(topic, queue_id)
        return self._reader.store_timestamp(queue, offset) if queue is not None else -1

    def earliest_message_time(self, topic: str, queue_id: int) -> int:
        """Return the store time of the queue's first readable message in ms."""
        queue = self._queues.get(topic, queue_id)
        return self._reader.store_timestamp(queue, queue.min_offset) if queue is not None else -1

    def look_message(self, physical_offset: int) -> bytes | None:
        """Return a copy of the record that is proved to begin there, else None."""
        record = self._records.at(physical_offset)
        return None if record is None else bytes(record)

    def walk_to_message(self, physical_offset: int) -> Generator[None, None, bytes | None]:
        """Walk over the file's records to the offset; the generator returns a copy of the record there, or None."""
        record = yield from self._records.walk_to(physical_offset)
        return None if record is None else bytes(record)

    def query_message(self, topic: str, key: str, max_count: int, begin: int, end: int) -> QueryResult:
        """Return the newest records with a key, oldest first."""
        self.build_index(CATCH_UP_BYTES)
        most = min(max_count, self.config.max_msgs_num_batch)
        return self._index.query(topic, key, most, begin, end, self._log.record_at)

    def build_index(self, max_bytes: int) -> bool:
        """Index a part of the records that wait for it."""
        return self._flush is not None and self._index.build(self._visible_end(), max_bytes)

    def is_in_memory(self, topic: str, queue_id: int, offset: int) -> bool:
        """Return whether the message can be read without the disk."""
        queue = self._queues.get(topic, queue_id)
        return queue is not None and self._reader.is_in_memory(queue, offset)

    def queue_entries(self, topic: str, queue_id: int, offset: int, count: int) -> list[tuple[int, int, int]]:
        """Return the physical offset, size and tags code of records."""
        queue = self._queues.get(topic, queue_id)
        return queue.entries_from(offset, count) if queue is not None else []

    def queue_ids(self, topic: str) -> list[int]:
        """Return the queues of a topic."""
        return self._queues.queue_ids(topic)

    def topics(self) -> list[str]:
        """Return all topics that have a queue."""
        return self._queues.topics()

    def min_physical_offset(self) -> int:
        """Return the physical offset of the log's first byte."""
        return self._log.min_offset

    def max_physical_offset(self) -> int:
        """Return the physical offset of the first byte after the log's last record."""
        return self._log.max_offset

    def flushed_offset(self) -> int:
        """Return the physical offset up to which the log is on disk."""
        return self._log.flushed_offset

    def take_longest_flush(self) -> float:
        """Return the seconds that the longest flush of the log took since the last call."""
        return 0.0 if self._flush is None else self._flush.take_longest_flush()

    def when_flushed(self, offset: int, callback: FlushCallback) -> None:
        """Call back from the flush thread. Raises StoreClosed."""
        if self._flush is None:
            raise StoreClosed(self._paths.root)
        self._flush.request(offset, callback)

    def check(self) -> list[Inconsistency]:
        """Check the log, the queues and the index."""
        return self._check_parts() + list(self._check_index())

    def _check_index(self) -> Iterator[Inconsistency]:
        scan = LogScan(self._log.files.files, self._log.min_offset)
        return check_index(self._index.index.files, scan, self._log.min_offset, self._index.position)

    def _check_parts(self) -> list[Inconsistency]:
        """Check the log and the queues. The received part of a replica's next record is no damage."""
        if self._flush is not None and self._flush.error is None:
            self._log.commit()
        if self._replica is None:
            return check_parts(self._log, self._queues, self.dispatcher.hidden())
        replica = self._replica
        found = check_parts(self._log, self._queues, replica.hidden())
        return [one for one in found if (one.path, one.offset) != (self._log.files.directory, replica.end_offset)]
