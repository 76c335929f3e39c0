"""A slave's commit log: receives the master's bytes and passes whole records to the queues.

Bytes arrive cut anywhere. They are written at the log's end unchanged. Then the whole records among them are counted: each
begins where the one before it ends, and contains that offset. Other bytes are removed again before a reader can see them.
The queues get their entries later, many records at a time, from the log (Apache: DefaultMessageStore.appendToCommitLog,
which checks nothing, and ReputMessageService). As in Apache, readers check the CRC of the bodies.
"""

from __future__ import annotations

import logging
from mmap import mmap

from twisted_mq.protocol.errors import RecordError
from twisted_mq.protocol.layouts.ordinary_records import POSITION, TIMESTAMP, Row, pass_records, read_rows
from twisted_mq.protocol.layouts.record import (
    BLANK_BYTES,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    SMALLEST_RECORD,
    read_head,
    read_mark,
)
from twisted_mq.protocol.layouts.record_codec import DispatchFields, dispatch_fields
from twisted_mq.protocol.messages.delay_levels import parse_delay_levels
from twisted_mq.storage.appending.dispatch import Dispatcher
from twisted_mq.storage.config import StoreConfig
from twisted_mq.storage.errors import LogMismatch, ReplicaDamaged, StoreFull
from twisted_mq.storage.files.mapped_file import MappedFile
from twisted_mq.storage.interfaces import ArrivalListener
from twisted_mq.storage.log.commit_log import CommitLog
from twisted_mq.storage.log.log_scan import LogScan
from twisted_mq.storage.queues.consume_queue import ConsumeQueue
from twisted_mq.storage.queues.queue_table import QueueTable
from twisted_mq.storage.replica.replica_queues import ReplicaQueues

_STEP_BYTES = 128 << 10
"""The bytes of the log passed to the queues at once, and those that are redone after a queue's disk was full."""

logger = logging.getLogger(__name__)


class ReplicaLog:
    """Appends to a log whose master is another broker.

    `end_offset` is the end of the last whole record, `visible_end` the end of the last one that the queues have.
    """

    def __init__(self, config: StoreConfig, log: CommitLog, queues: QueueTable, dispatcher: Dispatcher) -> None:
        self.end_offset = self.visible_end = log.max_offset
        self._log = log
        self._queues = ReplicaQueues(queues, dispatcher, self._stored_at)
        self._delay_table = parse_delay_levels(config.message_delay_level)

    def append(self, offset: int, data: bytes | memoryview) -> None:
        """Write `data`, which begins at the log's end; an empty log begins where a file may begin.

        Raises LogMismatch, ReplicaDamaged, StoreFull; then the log ends after its last whole record.
        """
        log = self._log
        if not log.files.files and offset % log.file_size == 0:
            log.max_offset = log.flushed_offset = self.end_offset = self.visible_end = offset
        if offset != log.max_offset:
            raise LogMismatch(log.files.directory, log.max_offset, offset)
        try:
            log.append_bytes(data)
            self._pass_whole_records()
        except (RecordError, StoreFull) as error:
            log.truncate(self.end_offset)
            if isinstance(error, StoreFull):
                raise
            raise ReplicaDamaged(log.files.directory, self.end_offset, error.reason) from error

    def _pass_whole_records(self) -> None:
        """Move `end_offset` past the records that are whole now, and past blank ends of files. Raises RecordError."""
        log = self._log
        while (file := log.files.find(self.end_offset)) is not None:
            end = min(log.max_offset - file.first_offset, file.size - BLANK_BYTES)
            position = pass_records(_mapping(file), file.first_offset, self.end_offset - file.first_offset, end)
            self.end_offset = file.first_offset + position
            if not self._pass_odd(self.end_offset):
                return

    def _pass_odd(self, offset: int) -> bool:
        """Move `end_offset` past the record or blank there; return False if it is not whole yet. Raises RecordError."""
        log = self._log
        head = log.read(offset, BLANK_BYTES)
        if head is None:
            return False
        size, magic = read_mark(head)
        left = log.next_file_offset(offset) - offset
        if magic == MAGIC_BLANK:
            if size != left:
                raise RecordError(f"a file end of {size} bytes where {left} are left: {_OTHER_SIZE}", 0)
        elif magic not in (MAGIC_V1, MAGIC_V2):
            raise RecordError(f"no record begins here (magic {magic})", 0)
        elif not 0 < size <= left - BLANK_BYTES:
            raise RecordError(f"a record of {size} bytes where {left} are left: {_OTHER_SIZE}", 0)
        if log.max_offset < offset + size:
            return False
        if magic != MAGIC_BLANK:
            self._fields(offset, size)
        self.end_offset = offset + size
        return True

    def _fields(self, offset: int, size: int) -> DispatchFields:
        """Return the fields of a whole record, read one by one. Raises RecordError."""
        record = self._log.read(offset, size)
        assert record is not None
        fields = dispatch_fields(record, delay_table=self._delay_table)
        if fields.physical_offset != offset:
            raise RecordError(f"the record says it is at {fields.physical_offset}", 0)
        if fields.queue_id < 0 or fields.queue_offset < 0:
            raise RecordError(f"the record says queue {fields.queue_id}, offset {fields.queue_offset}", 0)
        return fields

    def dispatch(self, end_offset: int, max_bytes: int = _STEP_BYTES, arrived: ArrivalListener | None = None) -> bool:
        """Make visible, in order, about `max_bytes` of the records that end by `end_offset`; return whether more are left.

        Raises StoreFull; then nothing is lost, and the next call continues.
        """
        end = min(end_offset, self.end_offset)
        stop = min(end, self.visible_end + max_bytes)
        while self.visible_end < stop:
            if not self._dispatch_rows(stop, end, arrived) and not self._dispatch_odd(end, arrived):
                return False
        return self.visible_end < end

    def _dispatch_rows(self, stop: int, end: int, arrived: ArrivalListener | None) -> bool:
        """Make visible the ordinary records of one file that begin before `stop`; return whether there were any."""
        file = self._log.files.find(self.visible_end)
        if file is None:
            return False
        base, rows, done = file.first_offset, list[Row](), 0
        last = min(stop - base, file.size - SMALLEST_RECORD)
        behind = read_rows(_mapping(file), self.visible_end - base, last, end - base, rows)
        while done < len(rows):
            taken = self._queues.put(base, rows[done:], arrived)
            done += taken
            self.visible_end = base + (rows[done][POSITION] if done < len(rows) else behind)
            if taken:
                self._log.last_store_timestamp = rows[done - 1][TIMESTAMP]
                self._log.last_record_offset = base + rows[done - 1][POSITION]
            else:
                self._dispatch_odd(end, arrived)
                done += 1
        return bool(rows)

    def _dispatch_odd(self, end: int, arrived: ArrivalListener | None) -> bool:
        """Make the next record visible, or skip a file's blank end; return False if it ends after `end`."""
        log, offset = self._log, max(self.visible_end, self._log.min_offset)
        head = log.read(offset, BLANK_BYTES)
        if head is None:
            return False
        size, magic = read_mark(head)
        if offset + size > end:
            return False
        if magic != MAGIC_BLANK:
            self._put_odd(offset, size, arrived)
        self.visible_end = offset + size
        return True

    def _put_odd(self, offset: int, size: int, arrived: ArrivalListener | None) -> None:
        """Make one record visible. A damaged one enters no queue but stays in the log, because the master's log has it too."""
        try:
            fields = self._fields(offset, size)
        except RecordError as error:
            logger.error("a replicated record is damaged, it enters no queue: offset=%d %s", offset, error.reason)
            return
        self._queues.put_odd(fields, arrived)
        self._log.last_store_timestamp = fields.store_timestamp
        self._log.last_record_offset = offset

    def _stored_at(self, physical_offset: int, size: int) -> int:
        record = self._log.read(physical_offset, size)
        return 0 if record is None else read_head(record).store_timestamp

    def drop(self, queue: ConsumeQueue) -> None:
        """Forget a deleted queue."""
        self._queues.forget()

    def hidden(self) -> set[int]:
        """Return the offsets of whole records that are not visible yet."""
        scan = LogScan(self._log.files.files, self.visible_end, check_crc=False)
        return {record.physical_offset for record in scan}

    def cut(self) -> None:
        """Drop the bytes of the record that is not whole yet: after the next start the master sends it again."""
        if self.end_offset < self._log.max_offset:
            self._log.truncate(self.end_offset)


def _mapping(file: MappedFile) -> mmap:
    data = file.readable.obj
    assert isinstance(data, mmap)
    return data


_OTHER_SIZE = "mappedFileSizeCommitLog must be the master's"
