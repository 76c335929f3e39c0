"""Appends messages: the store's hot path (Apache: CommitLog.asyncPutMessage, DefaultAppendMessageCallback).

A message costs one record, one copy into the mapped log, and one tuple for the dispatcher. Disk space for the record
and its queue entry is taken before either is written, so a full disk leaves nothing half-written.
"""

from __future__ import annotations

import bisect
import itertools
import logging
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import cast

from twisted_mq.protocol.flags import INNER_BATCH, OUT_OF_QUEUES
from twisted_mq.protocol.layouts.batch_records import encode_records
from twisted_mq.protocol.layouts.joined_records import Lengths, encode_joined, measure
from twisted_mq.protocol.layouts.queue_entry import ENTRY_FIELDS
from twisted_mq.protocol.layouts.record_codec import encode_record, moved_record
from twisted_mq.protocol.text.properties import MAX_PROPERTIES_BYTES
from twisted_mq.storage.appending.admission import Admission, based, inner_number
from twisted_mq.storage.appending.dispatch import Dispatcher, Pending
from twisted_mq.storage.appending.gate import Gate, refused
from twisted_mq.storage.config import StoreConfig
from twisted_mq.storage.errors import PoolExhausted, StoreFull
from twisted_mq.storage.files.descriptors import is_shortage
from twisted_mq.storage.interfaces import (
    InnerBatch,
    InnerMessage,
    Places,
    PlainMessages,
    PutResult,
    PutStatus,
    QueueKey,
    Shut,
)
from twisted_mq.storage.log.commit_log import CommitLog
from twisted_mq.storage.queues.batch_consume_queue import BatchConsumeQueue
from twisted_mq.storage.queues.consume_queue import ConsumeQueue
from twisted_mq.storage.queues.queue_table import QueueTable

logger = logging.getLogger(__name__)

_UNUSUAL = OUT_OF_QUEUES | INNER_BATCH
_PUT_OK = PutStatus.PUT_OK
"""The member as a constant of this module: up to Python 3.11 an enum lookup takes as long as ten other lookups."""


def _end(item: Pending) -> int:
    return item[1] + item[2]


class Appender:
    """Writes into one log and passes the records to one dispatcher, while the gate is open."""

    def __init__(
        self,
        config: StoreConfig,
        now_ms: Callable[[], int],
        log: CommitLog,
        queues: QueueTable,
        dispatcher: Dispatcher,
        gate: Gate,
    ) -> None:
        self._now_ms = now_ms
        self._log = log
        self._queues = queues
        self._dispatcher = dispatcher
        self._gate = gate
        self._admission = Admission(config)
        self._max_body = config.max_message_size
        self._store_host = config.store_host
        self._short = False

    def configure(self, config: StoreConfig) -> None:
        """Take over the limits of messages."""
        self._max_body = config.max_message_size
        self._admission.configure(config)

    def put(self, message: InnerMessage) -> PutResult:
        """Append one message. The record is encoded once; if it begins a new file, only its offset is set again."""
        if self._gate.why is not None:
            return refused(self._gate.why)
        if len(message.body) > self._max_body or len(message.properties) > MAX_PROPERTIES_BYTES:
            return PutResult(self._admission.verdict((message,)) or PutStatus.UNKNOWN_ERROR)
        queue = self._queues.by_key.get((message.topic, message.queue_id))
        if queue is None:
            queue = self._other_queue(message.topic, message.queue_id)
            if queue is None:
                return PutResult(PutStatus.MESSAGE_ILLEGAL)
            if isinstance(queue, BatchConsumeQueue):
                return self._put_in_batch_queue(queue, message)
        log = self._log
        sys_flag = message.sys_flag
        queue_offset = queue.next_offset
        if sys_flag & _UNUSUAL:
            if sys_flag & INNER_BATCH:
                return PutResult(PutStatus.MESSAGE_ILLEGAL)
            queue_offset = 0
        offset = log.max_offset
        timestamp = self._now_ms()
        record = encode_record(  # in the order of its parameters: keywords cost a tenth of the whole
            queue.topic_bytes,
            message.body,
            message.properties,
            message.queue_id,
            queue_offset,
            offset,
            message.born_timestamp,
            message.born_host,
            timestamp,
            self._store_host,
            message.flag,
            sys_flag,
            message.reconsume_times,
            message.prepared_transaction_offset,
        )
        size = len(record)
        end = offset + size
        if end > log.limit or queue_offset >= queue.reserved_offset:
            no_room = self._make_room(queue, size, 1)
            if no_room is not None:
                return no_room
            if log.max_offset != offset:
                offset, end = log.max_offset, log.max_offset + size
                record = moved_record(record, offset)
        log.view[offset - log.base : end - log.base] = record
        log.max_offset = end
        log.last_store_timestamp = timestamp
        if not sys_flag & OUT_OF_QUEUES:
            queue.next_offset = queue_offset + 1
            tags_code = message.tags_code if not queue.is_schedule else self._admission.due_time(message, timestamp)
            self._dispatcher.pending.append((queue, offset, size, tags_code, timestamp))
        return PutResult(_PUT_OK, queue_offset, offset, end, timestamp)

    def put_plain(self, messages: PlainMessages) -> Places:
        """Append plain messages in one piece, see IMessageStore.put_plain."""
        log, topics = self._log, messages.topics
        if self._gate.why is not None:
            return Places()
        topic = topics.encode() if isinstance(topics, str) else [*map(str.encode, topics)]
        lengths = measure(
            topic, messages.bodies, messages.properties, messages.born_host, self._store_host, alike=messages.alike
        )
        offsets = [*itertools.accumulate(lengths.sizes, initial=log.max_offset)]
        timestamp = self._now_ms()
        keys: Sequence[Hashable] = messages.queue_ids if isinstance(topics, str) else [*messages.queues]
        fitting = keys[: self._fitting(lengths, offsets)]
        one_topic = topics if isinstance(topics, str) else None
        queues, queue_offsets = self._take(one_topic, fitting, delayed=messages.delayed)
        count = len(queue_offsets)
        if not count:
            return Places()
        begin, end = offsets[0], offsets[count]
        log.view[begin - log.base : end - log.base] = encode_joined(
            topic,
            messages.bodies,
            messages.properties,
            lengths,
            queue_ids=messages.queue_ids,
            flags=messages.flag,
            queue_offsets=queue_offsets,
            physical_offsets=offsets,
            born_timestamps=messages.born_timestamps,
            born_host=messages.born_host,
            store_timestamp=timestamp,
            store_host=self._store_host,
            sys_flag=messages.sys_flag,
            reconsume_times=messages.reconsume_times,
            prepared_transaction_offsets=messages.prepared_offsets,
        )
        log.max_offset = end
        log.last_store_timestamp = timestamp
        tags_codes = messages.tags_codes
        if messages.delayed:
            times = {one: self._admission.time_of_level(one + 1, timestamp) for one in {*messages.queue_ids}}
            tags_codes = [*map(times.__getitem__, messages.queue_ids)]
        entries = zip(offsets, lengths.sizes, tags_codes)  # noqa: B905
        by_queue = self._enqueue(queues, keys[:count], entries, timestamp)
        return Places(queue_offsets, offsets, lengths.sizes, end, by_queue)

    def _fitting(self, lengths: Lengths, offsets: Sequence[int]) -> int:
        """Return how many messages fit into the log's room, and are not too long."""
        fitting = len(offsets) - 1
        if offsets[-1] > self._log.limit:
            fitting = bisect.bisect_right(offsets, self._log.limit) - 1
        bodies = [lengths.bodies] if isinstance(lengths.bodies, int) else lengths.bodies
        if max(bodies) > self._max_body:
            fitting = min(fitting, next(index for index, length in enumerate(bodies) if length > self._max_body))
        return fitting

    def _take(
        self, topic: str | None, keys: Sequence[Hashable], *, delayed: bool
    ) -> tuple[dict[Hashable, ConsumeQueue], list[int]]:
        """Return the queues and queue offsets of the first messages, up to one that is in no queue with room for it.

        Keys are ids of queues of one topic, or topics and ids.
        """
        queues: dict[Hashable, ConsumeQueue] = {}
        for key in dict.fromkeys(keys):
            queue = self._queues.by_key.get(cast(QueueKey, key if topic is None else (topic, key)))
            if queue is None or queue.is_schedule is not delayed:
                return self._take(topic, keys[: keys.index(key)], delayed=delayed)
            queues[key] = queue
        free = {key: itertools.count(queue.next_offset) for key, queue in queues.items()}
        offsets = [*map(next, map(free.__getitem__, keys))]
        for key, queue in queues.items():
            if next(free[key]) > queue.reserved_offset:
                place = next(i for i, one in enumerate(keys) if offsets[i] >= queues[one].reserved_offset)
                return self._take(topic, keys[:place], delayed=delayed)
        return queues, offsets

    def _enqueue(
        self,
        queues: dict[Hashable, ConsumeQueue],
        keys: Sequence[Hashable],
        entries: Iterable[tuple[int, int, int]],
        timestamp: int,
    ) -> dict[QueueKey, tuple[int, int]]:
        """Hand written messages to the dispatcher. Return how many messages, and bytes, each queue has got."""
        rows: dict[Hashable, list[int]] = {key: [] for key in queues}
        deque(map(list.extend, map(rows.__getitem__, keys), entries), maxlen=0)
        by_queue: dict[QueueKey, tuple[int, int]] = {}
        pending: list[Pending] = []
        for key, numbers in rows.items():
            queue, count = queues[key], len(numbers) // ENTRY_FIELDS
            queue.next_offset += count
            if count == 1:
                begin, size, tags_code = numbers
                by_queue[queue.topic, queue.queue_id] = 1, size
                pending.append((queue, begin, size, tags_code, timestamp))
                continue
            sizes = numbers[1::ENTRY_FIELDS]
            by_queue[queue.topic, queue.queue_id] = count, sum(sizes)
            begin = numbers[0]
            pending.append((queue, begin, numbers[-ENTRY_FIELDS] + sizes[-1] - begin, numbers, timestamp))
        self._dispatcher.pending += sorted(pending, key=_end)
        return by_queue

    def _other_queue(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        """Return a batch queue, or a new queue; None if no queue of this name may exist."""
        batches = self._queues.batches.get((topic, queue_id))
        if batches is not None or not self._admission.may_have_queue(topic, queue_id):
            return batches
        return self._queues.make(topic, queue_id)

    def _put_in_batch_queue(self, queue: BatchConsumeQueue, message: InnerMessage) -> PutResult:
        """Append one record. An inner batch counts for as many messages as it states, and gets the offset of the first one."""
        count = inner_number(message)
        if count is None:
            return PutResult(PutStatus.MESSAGE_ILLEGAL)
        queued = not message.sys_flag & OUT_OF_QUEUES
        queue_offset = queue.next_offset if queued else 0
        properties = based(message, queue_offset)
        if len(properties) > MAX_PROPERTIES_BYTES:
            return PutResult(PutStatus.PROPERTIES_SIZE_EXCEEDED)
        log, timestamp = self._log, self._now_ms()
        offset = log.max_offset
        record = encode_record(
            queue.topic_bytes,
            message.body,
            properties,
            queue_id=message.queue_id,
            queue_offset=queue_offset,
            physical_offset=offset,
            born_timestamp=message.born_timestamp,
            born_host=message.born_host,
            store_timestamp=timestamp,
            store_host=self._store_host,
            flag=message.flag,
            sys_flag=message.sys_flag,
            reconsume_times=message.reconsume_times,
            prepared_transaction_offset=message.prepared_transaction_offset,
        )
        size = len(record)
        no_room = self._make_room(queue, size, 1)
        if no_room is not None:
            return no_room
        if log.max_offset != offset:
            offset = log.max_offset
            record = moved_record(record, offset)
        log.view[offset - log.base : offset + size - log.base] = record
        log.max_offset = offset + size
        log.last_store_timestamp = timestamp
        if queued:
            queue.expect(queue_offset, count, timestamp)
            self._dispatcher.pending.append((queue, offset, size, message.tags_code, timestamp))
        return PutResult(_PUT_OK, queue_offset, offset, offset + size, timestamp, count)

    def _make_room(self, queue: ConsumeQueue, size: int, count: int) -> PutResult | None:
        """Take disk space for records of `size` bytes and `count` queue entries; return the refusal, or None on success."""
        if size > self._log.largest_record:
            return PutResult(PutStatus.MESSAGE_ILLEGAL)
        try:
            queue.reserve(count)
            self._log.make_room(size)
        except StoreFull as error:
            if not self._gate.no_space:
                logger.error("store accepts no messages: %s", error)
            self._gate.no_space = True
            return refused(Shut.DISK_FULL)
        except PoolExhausted:
            return refused(Shut.PAGE_CACHE_BUSY)
        except OSError as error:
            if not is_shortage(error):
                raise
            if not self._short:
                logger.error("store accepts no messages for now: %s", error)
            self._short = True
            return refused(Shut.PAGE_CACHE_BUSY)
        self._gate.no_space = self._short = False
        return None

    def put_batch(self, batch: InnerBatch) -> PutResult:
        """Append messages of one topic and queue in one piece."""
        if self._gate.why is not None:
            return refused(self._gate.why)
        illegal = self._admission.verdict_on_batch(batch)
        if illegal is not None:
            return PutResult(illegal)
        key = batch.shared.topic, batch.shared.queue_id
        queue = self._queues.get(*key) or self._queues.make(*key)
        log, timestamp, count = self._log, self._now_ms(), len(batch)
        records, sizes = self._encode_batch(queue, batch, timestamp)
        size = len(records)
        if log.max_offset + size > log.limit or queue.next_offset + count > queue.reserved_offset:
            no_room = self._make_room(queue, size, count)
            if no_room is not None:
                return no_room
            records, _ = self._encode_batch(queue, batch, timestamp)
        return self._write_batch(queue, batch.tags_codes, records, sizes, timestamp)

    def _encode_batch(
        self, queue: ConsumeQueue, batch: InnerBatch, timestamp: int
    ) -> tuple[bytes | bytearray, list[int]]:
        """Return the records, encoded for the log's current end, and their sizes."""
        shared = batch.shared
        return encode_records(
            queue.topic_bytes,
            batch.flags,
            batch.bodies,
            batch.properties,
            batch.suffix,
            batch.alike,
            queue_id=shared.queue_id,
            queue_offset=queue.next_offset,
            physical_offset=self._log.max_offset,
            born_timestamp=shared.born_timestamp,
            born_host=shared.born_host,
            store_timestamp=timestamp,
            store_host=self._store_host,
            sys_flag=shared.sys_flag,
            reconsume_times=shared.reconsume_times,
        )

    def _write_batch(
        self,
        queue: ConsumeQueue,
        tags_codes: Sequence[int],
        records: bytes | bytearray,
        sizes: list[int],
        timestamp: int,
    ) -> PutResult:
        log, first_queue_offset, count = self._log, queue.next_offset, len(sizes)
        *offsets, end = itertools.accumulate(sizes, initial=log.max_offset)
        begin = offsets[0]
        log.view[begin - log.base : end - log.base] = records
        numbers = [0] * (ENTRY_FIELDS * count)
        numbers[::ENTRY_FIELDS], numbers[1::ENTRY_FIELDS], numbers[2::ENTRY_FIELDS] = offsets, sizes, tags_codes
        self._dispatcher.pending.append((queue, begin, end - begin, numbers, timestamp))
        log.max_offset = end
        log.last_store_timestamp = timestamp
        if isinstance(queue, BatchConsumeQueue):
            for index in range(count):
                queue.expect(first_queue_offset + index, 1, timestamp)
        queue.next_offset = first_queue_offset + count
        return PutResult(_PUT_OK, first_queue_offset, begin, end, timestamp, count, offsets)
