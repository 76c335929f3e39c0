"""A slave's side of the commit log: the master's bytes come in, whole records go out to the queues.

Bytes arrive cut anywhere. They are written at the log's end as they are; whatever record is complete with them is
checked, and waits in order until it may become visible. Bytes that are no records are taken out again before anybody
saw them. Apache: DefaultMessageStore.appendToCommitLog and ReputMessageService on a slave.
"""

from __future__ import annotations

import logging
from collections import deque

from protocol.delay_levels import parse_delay_levels
from protocol.errors import RecordError
from protocol.message_record import DispatchFields, dispatch_fields
from protocol.record_layout import BLANK_BYTES, MAGIC_BLANK, MAGIC_V1, MAGIC_V2, read_head, read_mark
from storage.admission import INNER_BATCH, OUT_OF_QUEUES
from storage.batch_consume_queue import BatchConsumeQueue, entry_of
from storage.commit_log import CommitLog
from storage.config import StoreConfig
from storage.consume_queue import ConsumeQueue
from storage.dispatch import Dispatcher, Pending
from storage.errors import LogMismatch, ReplicaDamaged, StoreFull
from storage.paths import is_topic_name
from storage.queue_table import QueueTable
from storage.quick_fields import quick_fields

logger = logging.getLogger(__name__)

Waiting = tuple[ConsumeQueue | None, int, int, int, int, int]
"""Queue (None where the record enters none), queue offset, physical offset, size, tags code, store timestamp."""


class ReplicaLog:
    """Appends to a log that another broker writes. `end_offset` is behind the last whole record."""

    def __init__(self, config: StoreConfig, log: CommitLog, queues: QueueTable, dispatcher: Dispatcher) -> None:
        self.end_offset = log.max_offset
        self._log = log
        self._queues = queues
        self._dispatcher = dispatcher
        self._delay_table = parse_delay_levels(config.message_delay_level)
        self._waiting: deque[Waiting] = deque()
        self._by_key: dict[tuple[bytes | str, int], ConsumeQueue | None] = {}

    def append(self, offset: int, data: bytes | memoryview) -> None:
        """Write `data`, which begins at the log's end; an empty log begins where a file may.

        Raises LogMismatch, ReplicaDamaged, StoreFull; then the log ends behind its last whole record.
        """
        log = self._log
        if not log.files.files and offset % log.file_size == 0:
            log.max_offset = log.flushed_offset = self.end_offset = offset
        if offset != log.max_offset:
            raise LogMismatch(log.files.directory, log.max_offset, offset)
        try:
            log.append_bytes(data)
            self._take_complete()
        except (RecordError, StoreFull) as error:
            log.truncate(self.end_offset)
            log.limit = 0
            if isinstance(error, StoreFull):
                raise
            raise ReplicaDamaged(log.files.directory, self.end_offset, error.reason) from error
        log.limit = 0

    def _take_complete(self) -> None:
        """Have the records wait that are whole now; `end_offset` also passes the blank ends of files. Raises RecordError."""
        log, read = self._log, self._log.read
        while (head := read(self.end_offset, BLANK_BYTES)) is not None:
            offset = self.end_offset
            size, magic = read_mark(head)
            left = log.next_file_offset(offset) - offset
            if magic == MAGIC_BLANK:
                if size != left:
                    raise RecordError(f"a file end of {size} bytes where {left} are left: {_OTHER_SIZE}", 0)
                if log.max_offset < offset + size:
                    return
                self.end_offset = offset + size
                continue
            if magic not in (MAGIC_V1, MAGIC_V2):
                raise RecordError(f"no record begins here (magic {magic})", 0)
            if not 0 < size <= left - BLANK_BYTES:
                raise RecordError(f"a record of {size} bytes where {left} are left: {_OTHER_SIZE}", 0)
            record = read(offset, size)
            if record is None:
                return
            self._take(record, offset, size)

    def _take(self, record: memoryview, offset: int, size: int) -> None:
        quick = quick_fields(record)
        count = 1
        if quick is not None and quick[3] == offset and quick[2] >= 0 <= quick[1]:
            topic, queue_id, queue_offset, _, sys_flag, tags_code, timestamp = quick
            queue = None if sys_flag & OUT_OF_QUEUES else self._queue(topic, queue_id)
        else:
            fields = self._checked(record, offset)
            queue_offset, tags_code, timestamp = fields.queue_offset, fields.tags_code, fields.store_timestamp
            queue = None if fields.sys_flag & OUT_OF_QUEUES else self._queue(fields.topic, fields.queue_id)
            if queue is not None and fields.sys_flag & INNER_BATCH:
                queue, count = self._batched(queue), entry_of(fields)[-1]
        if isinstance(queue, BatchConsumeQueue):
            queue.reserve()
            queue.expect(queue_offset, count, timestamp)
        elif queue is not None and queue_offset == queue.next_offset:
            queue.reserve()
            queue.next_offset += 1
        self._waiting.append((queue, queue_offset, offset, size, tags_code, timestamp))
        self.end_offset = offset + size
        self._log.last_store_timestamp = timestamp

    def _checked(self, record: memoryview, offset: int) -> DispatchFields:
        fields = dispatch_fields(record, check_crc=True, delay_table=self._delay_table)
        if fields.physical_offset != offset:
            raise RecordError(f"the record says it is at {fields.physical_offset}", 0)
        if fields.queue_id < 0 or fields.queue_offset < 0:
            raise RecordError(f"the record says queue {fields.queue_id}, offset {fields.queue_offset}", 0)
        return fields

    def _queue(self, topic: bytes | str, queue_id: int) -> ConsumeQueue | None:
        """The queue that a record enters, made where it is new; None for what is no topic's name, as in recovery."""
        key = topic, queue_id
        if key not in self._by_key:
            name = topic if isinstance(topic, str) else topic.decode(errors="replace")
            queue = self._queues.get(name, queue_id)
            if queue is None and is_topic_name(name):
                queue = self._queues.make(name, queue_id)
            self._by_key[key] = queue
        return self._by_key[key]

    def _batched(self, queue: ConsumeQueue) -> ConsumeQueue:
        """The queue of an inner batch: a simple one, made before the topic's type was known here, becomes one for batches."""
        if isinstance(queue, BatchConsumeQueue):
            return queue
        batch = self._queues.batched_anew(queue, self._stored_at)
        waiting = [entry for entry in self._waiting if entry[0] is queue]
        batch.reserve(len(waiting))
        for _, queue_offset, _, _, _, timestamp in waiting:
            batch.expect(queue_offset, 1, timestamp)
        self._waiting = deque((batch, *entry[1:]) if entry[0] is queue else entry for entry in self._waiting)
        self._by_key.clear()
        return batch

    def _stored_at(self, physical_offset: int, size: int) -> int:
        record = self._log.read(physical_offset, size)
        return 0 if record is None else read_head(record).store_timestamp

    def drop(self, queue: ConsumeQueue) -> None:
        """Forget a queue that is deleted; its waiting records enter none."""
        self._by_key.clear()
        self._waiting = deque((None, *entry[1:]) if entry[0] is queue else entry for entry in self._waiting)

    def dispatch(self, end_offset: int) -> None:
        """Make the records visible that end at `end_offset` or before, in order."""
        waiting, dispatcher = self._waiting, self._dispatcher
        while waiting and waiting[0][2] + waiting[0][3] <= end_offset:
            queue, queue_offset, offset, size, tags_code, timestamp = waiting[0]
            if queue is not None:
                if queue_offset == queue.max_offset < queue.reserved_offset:
                    queue.append(offset, size, tags_code)
                else:
                    self._move(queue, queue_offset, offset, size, tags_code)
            waiting.popleft()
            dispatcher.last_store_timestamp = timestamp
            if queue is not None and dispatcher.listener is not None:
                dispatcher.listener(queue.topic, queue.queue_id, queue_offset, tags_code, timestamp)

    @staticmethod
    def _move(queue: ConsumeQueue, queue_offset: int, offset: int, size: int, tags_code: int) -> None:
        """Write an entry that does not follow: the log began in its middle, or a topic was made anew."""
        logger.info(
            "replica queue moves: topic=%s queue=%d from=%d to=%d",
            queue.topic, queue.queue_id, queue.max_offset, queue_offset,
        )  # fmt: skip
        if queue.batched:
            queue.append(offset, size, tags_code)
        else:
            queue.append_at(queue_offset, offset, size, tags_code)

    def visible_end(self) -> int:
        """Behind the last record that is visible."""
        return self._waiting[0][2] if self._waiting else self.end_offset

    def pending(self) -> list[Pending]:
        """Whole records that are not visible yet."""
        return [
            (queue, offset, size, tags_code, timestamp)
            for queue, _, offset, size, tags_code, timestamp in self._waiting
            if queue is not None
        ]

    def cut(self) -> None:
        """Drop the bytes of the record that is not whole yet: its rest is sent anew to the next start."""
        if self.end_offset < self._log.max_offset:
            self._log.truncate(self.end_offset)


_OTHER_SIZE = "mappedFileSizeCommitLog must be the master's"
