"""The store in memory: for tests that need no disk, and as the plain model that the file store is compared with.

It follows the same rules with lists and loops. It shares with the file store only the record's encoding, the admission
rules and the dispatcher. Log files have no size here: nothing rolls, nothing expires, nothing is recovered.
Everything appended counts as flushed at once, or when `flush` is called if `hold_flushes` is set.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence

import attrs
from zope.interface import implementer

from twisted_mq.protocol.boundary_type import BoundaryType
from twisted_mq.protocol.errors import RecordError
from twisted_mq.protocol.flags import INNER_BATCH, OUT_OF_QUEUES
from twisted_mq.protocol.layouts.batch_entry import inner_count
from twisted_mq.protocol.layouts.index import index_key, key_hash
from twisted_mq.protocol.layouts.record import MAGIC_BLANK, read_mark
from twisted_mq.protocol.layouts.record_codec import DispatchFields, dispatch_fields, encode_record
from twisted_mq.protocol.names.system_topics import SCHEDULE_TOPIC, is_lmq, is_system_topic
from twisted_mq.protocol.text.java import to_int
from twisted_mq.protocol.text.properties import MAX_PROPERTIES_BYTES
from twisted_mq.storage.appending.admission import Admission, based, inner_number
from twisted_mq.storage.appending.dispatch import EVERYTHING, Dispatcher
from twisted_mq.storage.appending.gate import Gate, refused
from twisted_mq.storage.config import FlushDiskType, StoreConfig
from twisted_mq.storage.errors import LogMismatch, ReplicaDamaged, StoreClosed
from twisted_mq.storage.index.index_keys import record_keys
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
    PutStatus,
    QueryResult,
    QueueKey,
    RecordTest,
    Shut,
)
from twisted_mq.storage.memory.memory_queue import MemoryQueue, place_by_time
from twisted_mq.storage.memory.memory_replica import MemoryReplica
from twisted_mq.storage.queues.queue_reader import MOST_SCANNED
from twisted_mq.storage.recovery.recovery_report import RecoveryReport

_PLACE = "memory"


@attrs.frozen
class ReadFilter:
    """A reader's filter: by tags code, and by record."""

    tags_codes: Collection[int] | None
    matches: RecordTest | None

    def has(self, tags_code: int, record: memoryview) -> bool:
        """Return whether both tests accept a record; a missing test accepts everything."""
        codes = self.tags_codes
        if codes is not None and tags_code not in codes and to_int(tags_code) not in codes:
            return False
        return self.matches is None or self.matches(record)


@implementer(IMessageStore)
class MemoryMessageStore:
    """A store that keeps all records in a dict by physical offset; they are lost with the object."""

    def __init__(
        self,
        config: StoreConfig,
        now_ms: Callable[[], int],
        *,
        is_batch_topic: IsBatchTopic = lambda topic: None,
        hold_flushes: bool = False,
    ) -> None:
        self.config = config
        self._now_ms = now_ms
        self._hold_flushes = hold_flushes
        self._sync_flush = config.flush_disk_type is FlushDiskType.SYNC_FLUSH
        self._admission = Admission(config)
        self.dispatcher = Dispatcher()
        self._records: dict[int, bytes] = {}
        self._replica: MemoryReplica | None = None
        self._min_offset = 0
        self._queues: dict[tuple[str, int], MemoryQueue] = {}
        self._max_offset = 0
        self._flushed_offset = 0
        self._waiting: list[tuple[int, Callable[[bool], None]]] = []
        self._open = False
        self.recovery_report = RecoveryReport(clean=True)
        self.gate = Gate(Shut.NOT_STARTED)
        self._is_batch_topic = is_batch_topic

    def start(self) -> None:
        """Accept messages from now on."""
        self._open = True
        self.gate.open(Shut.NOT_STARTED)
        self.gate.open(Shut.SHUT_DOWN)

    def close(self) -> None:
        """Make everything visible and refuse later messages."""
        if self._open:
            self.dispatcher.run(EVERYTHING)
            self.flush()
            self._open = False
            self.gate.shut(Shut.SHUT_DOWN)

    def configure(self, config: StoreConfig) -> None:
        """Take over the limits of another configuration."""
        self.config = config
        self._admission.configure(config)

    # Writing

    def put_message(self, message: InnerMessage) -> PutResult:
        """Append one message."""
        if self.gate.why is not None:
            return refused(self.gate.why)
        illegal = self._admission.verdict((message,))
        if illegal is None and not self._admission.may_have_queue(message.topic, message.queue_id):
            illegal = PutStatus.MESSAGE_ILLEGAL
        if illegal is not None:
            return PutResult(illegal)
        queue = self._queue(message.topic, message.queue_id)
        if not queue.batched:
            return PutResult(PutStatus.MESSAGE_ILLEGAL) if message.sys_flag & INNER_BATCH else self._append([message])
        count = inner_number(message)
        if count is None:
            return PutResult(PutStatus.MESSAGE_ILLEGAL)
        properties = based(message, queue.next_offset)
        if len(properties) > MAX_PROPERTIES_BYTES:
            return PutResult(PutStatus.PROPERTIES_SIZE_EXCEEDED)
        result = self._append([attrs.evolve(message, properties=properties)], count)
        result.message_count = count
        return result

    def _queue(self, topic: str, queue_id: int) -> MemoryQueue:
        """Return the queue; a new one is kept only once it has a record."""
        key = topic, queue_id
        return self._queues.get(key) or MemoryQueue(*key, batched=bool(self._is_batch_topic(topic)))

    def put_messages(self, batch: InnerBatch) -> PutResult:
        """Append messages of one topic and queue."""
        if self.gate.why is not None:
            return refused(self.gate.why)
        illegal = self._admission.verdict_on_batch(batch)
        if illegal is not None:
            return PutResult(illegal)
        result = self._append(list(batch.messages()))
        if result.status is PutStatus.PUT_OK:
            result.message_count = len(batch)
            self._put_together(len(batch))
        return result

    def put_plain(self, messages: PlainMessages) -> Places:
        """Append plain messages to existing queues, see IMessageStore.put_plain."""
        results: list[PutResult] = []
        by_queue: dict[QueueKey, tuple[int, int]] = {}
        for message in messages.each():
            key = message.topic, message.queue_id
            queue = self._queues.get(key)
            if queue is None or queue.batched or (message.topic == SCHEDULE_TOPIC) is not messages.delayed:
                break
            result = self.put_message(message)
            if result.status is not PutStatus.PUT_OK:
                break
            results.append(result)
            times, size = by_queue.get(key, (0, 0))
            by_queue[key] = times + 1, size + result.end_offset - result.physical_offset
        offsets = [result.physical_offset for result in results]
        sizes = [result.end_offset - result.physical_offset for result in results]
        return Places([result.queue_offset for result in results], offsets, sizes, self._max_offset, by_queue)

    def _put_together(self, count: int) -> None:
        """Make the last records become visible together."""
        pending = self.dispatcher.pending
        queue, offset, _, _, timestamp = pending[-count]
        numbers = [
            number
            for _, place, size, tags_code, _ in pending[-count:]
            if isinstance(tags_code, int)
            for number in (place, size, tags_code)
        ]
        pending[-count:] = [(queue, offset, self._max_offset - offset, numbers, timestamp)]

    def _append(self, messages: Sequence[InnerMessage], count: int = 1) -> PutResult:
        """Append records that hold `count` messages each."""
        key = messages[0].topic, messages[0].queue_id
        timestamp = self._now_ms()
        in_queue = not messages[0].sys_flag & OUT_OF_QUEUES
        queue = self._queue(*key)
        records = self._encode(queue, messages, timestamp, in_queue)
        if sum(map(len, records)) + 8 > self.config.mapped_file_size_commit_log:
            return PutResult(PutStatus.MESSAGE_ILLEGAL)
        self._queues[key] = queue
        first_queue_offset = queue.next_offset if in_queue else 0
        offsets = []
        for message, record in zip(messages, records, strict=True):
            offsets.append(self._max_offset)
            self._records[self._max_offset] = record
            if in_queue:
                tags_code = message.tags_code
                if message.topic == SCHEDULE_TOPIC:
                    tags_code = self._admission.due_time(message, timestamp)
                self.dispatcher.pending.append((queue, self._max_offset, len(record), tags_code, timestamp))
                queue.expect(count)
            self._max_offset += len(record)
        if not self._hold_flushes:
            self.flush()
        many = offsets if len(offsets) > 1 else ()
        return PutResult(
            PutStatus.PUT_OK, first_queue_offset, offsets[0], self._max_offset, timestamp, physical_offsets=many
        )

    def _encode(
        self, queue: MemoryQueue, messages: Sequence[InnerMessage], timestamp: int, in_queue: bool
    ) -> list[bytes]:
        records: list[bytes] = []
        for index, message in enumerate(messages):
            record = encode_record(
                message.topic.encode(),
                message.body,
                message.properties,
                queue_id=message.queue_id,
                queue_offset=queue.next_offset + index if in_queue else 0,
                physical_offset=self._max_offset + sum(map(len, records)),
                born_timestamp=message.born_timestamp,
                born_host=message.born_host,
                store_timestamp=timestamp,
                store_host=self.config.store_host,
                flag=message.flag,
                sys_flag=message.sys_flag,
                reconsume_times=message.reconsume_times,
                prepared_transaction_offset=message.prepared_transaction_offset,
            )
            records.append(record)
        return records

    def flush(self) -> None:
        """Count everything as flushed and call back those that wait for it."""
        self._flushed_offset = self._max_offset
        waiting, self._waiting = self._waiting, []
        for offset, callback in waiting:
            callback(offset <= self._flushed_offset)

    def dispatch(self, arrived: ArrivalListener | None = None) -> bool:
        """Make visible all records that may be visible."""
        end = self._flushed_offset if self._sync_flush else EVERYTHING
        if self._replica is not None:
            self._dispatch_replica(self._replica, end, arrived)
        self.dispatcher.run(end, arrived)
        return False

    # Replicating

    def read_log(self, offset: int, max_bytes: int) -> memoryview | None:
        """Return the log's bytes from an offset on, at most to the end of a record."""
        if not self._min_offset <= offset <= self._max_offset:
            return None
        for start, record in self._records.items():
            if start <= offset < start + len(record):
                return memoryview(record)[offset - start : offset - start + max_bytes]
        tail = self._replica.tail if self._replica is not None else b""
        return memoryview(tail)[offset - (self._max_offset - len(tail)) :][:max_bytes]

    def newest_file_offset(self) -> int:
        """Return where a file would begin that contains the log's end; never before the first byte."""
        return max(self._min_offset, self._max_offset - self._max_offset % self.config.mapped_file_size_commit_log)

    def last_record_offset(self) -> int:
        """Return the offset of the last whole record."""
        return next(reversed(self._records), self._min_offset)

    def append_log(self, offset: int, data: bytes | memoryview) -> None:
        """Append a master's bytes. Raises LogMismatch, ReplicaDamaged, StoreClosed."""
        if not self._open:
            raise StoreClosed(_PLACE)
        if self._replica is None:
            self._replica = MemoryReplica()
            self.gate.shut(Shut.SLAVE)
        if not self._records and not self._replica.tail and not self._max_offset:
            self._min_offset = self._max_offset = offset
        if offset != self._max_offset:
            raise LogMismatch(_PLACE, self._max_offset, offset)
        replica = self._replica
        end = self._max_offset - len(replica.tail)
        replica.tail += data
        try:
            for record in replica.take(end, self._admission.delay_table):
                self._records[end] = record
                end += len(record)
        except RecordError as error:
            replica.tail = b""
            self._max_offset = end
            raise ReplicaDamaged(_PLACE, end, error.reason) from error
        self._max_offset = end + len(replica.tail)
        if not self._hold_flushes:
            self.flush()

    def _dispatch_replica(self, replica: MemoryReplica, end: int, arrived: ArrivalListener | None) -> None:
        while replica.waiting and replica.waiting[0].physical_offset + replica.waiting[0].size <= end:
            record = replica.waiting.pop(0)
            key = record.topic, record.queue_id
            queue = self._queues.setdefault(key, self._queue(*key))
            queue.batched = queue.batched or bool(record.sys_flag & INNER_BATCH)
            if record.queue_offset != queue.max_offset:
                raise IndexError(f"{key}: entry {record.queue_offset} does not follow {queue.max_offset}")
            queue.expect(inner_count(record.properties) if queue.batched else 1)
            queue.append(record.physical_offset, record.size, record.tags_code)
            if arrived is not None:
                arrived(*key, record.queue_offset, record.tags_code, record.store_timestamp)

    def delete_topics(self, topics: Collection[str]) -> None:
        """Drop the queues of these topics."""
        for key in [key for key in self._queues if key[0] in topics]:
            self.dispatcher.drop(self._queues.pop(key))

    def delete_more(self) -> bool:
        """Return False: no dropped queue waits for its deletion."""
        return False

    def clean_expired_queues(self) -> int:
        """Return 0: nothing expires in memory."""
        return 0

    def deleted_unconsumed(self) -> Mapping[tuple[str, int], int]:
        """Return an empty mapping: nothing is deleted because of a full disk."""
        return {}

    def clean_unused_topics(self, retained: Collection[str]) -> int:
        """Drop the queues of topics that are not retained."""
        unused = {
            topic for topic in self.topics() if not (topic in retained or is_system_topic(topic) or is_lmq(topic))
        }
        self.delete_topics(unused)
        return len(unused)

    def delete_expired_log(self) -> None:
        """Do nothing: nothing expires in memory."""

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
        """Read a queue."""
        queue = self._queues.get((topic, queue_id))
        end = queue.max_offset if queue is not None else 0
        if queue is not None and end < offset <= queue.next_offset:
            return GetResult(GetStatus.OFFSET_OVERFLOW_ONE, offset, 0, end)
        if queue is None or end == 0:
            return GetResult(GetStatus.NO_MESSAGE_IN_QUEUE, 0, 0, 0)
        if offset < 0:
            return GetResult(GetStatus.OFFSET_TOO_SMALL, 0, 0, end)
        if offset >= end:
            status = GetStatus.OFFSET_OVERFLOW_ONE if offset == end else GetStatus.OFFSET_OVERFLOW_BADLY
            return GetResult(status, end, 0, end)
        result = GetResult(GetStatus.NO_MATCHED_MESSAGE, offset, 0, end)
        last = self._collect(result, queue, max_count, max_bytes, ReadFilter(tags_codes, matches))
        result.suggest_pulling_from_slave = self._max_offset - last > self.config.hot_bytes
        return result

    def _collect(
        self, result: GetResult, queue: MemoryQueue, max_count: int, max_bytes: int, wanted: ReadFilter
    ) -> int:
        """Fill `result`; return the physical offset of the last entry looked at."""
        start, last = result.next_begin_offset, 0
        first = queue.place_of(start)
        entry_bytes, file_bytes = 20, self.config.mapped_file_size_consume_queue
        if queue.batched:
            entry_bytes, file_bytes = 46, self.config.mapper_file_size_batch_consume_queue
        file_end = first + file_bytes // entry_bytes - first % (file_bytes // entry_bytes)
        least = self.config.max_filter_message_size
        scanned = min(-(-max(least, max_count * entry_bytes) // entry_bytes), MOST_SCANNED)
        taken = 0
        for place in range(first, min(file_end, len(queue.entries))):
            (physical_offset, size, tags_code), count = queue.entries[place], queue.counts[place]
            base = queue.base(place)
            if base - start >= scanned:
                break
            if taken and (taken + count > max_count or self._is_full(result, physical_offset, size, taken, max_bytes)):
                break
            last = physical_offset
            result.next_begin_offset = base + count
            record = memoryview(self._records[physical_offset])
            if wanted.has(tags_code, record):
                result.records.append(record)
                result.size_bytes += size
                taken += count
                result.status = GetStatus.FOUND
        result.message_count = taken if queue.batched else 0
        return last

    def _is_full(self, result: GetResult, physical_offset: int, size: int, taken: int, max_bytes: int) -> bool:
        config = self.config
        if self._max_offset - physical_offset <= config.hot_bytes:
            bytes_limit = config.max_transfer_bytes_on_message_in_memory
            count_limit = config.max_transfer_count_on_message_in_memory
        else:
            bytes_limit = config.max_transfer_bytes_on_message_in_disk
            count_limit = config.max_transfer_count_on_message_in_disk
        most = min(bytes_limit, max(max_bytes, 100))
        return taken >= count_limit or result.size_bytes + size > most

    def min_offset_in_queue(self, topic: str, queue_id: int) -> int:
        """Return 0: nothing expires."""
        return 0

    def max_offset_in_queue(self, topic: str, queue_id: int) -> int:
        """Return the offset after the last visible message."""
        queue = self._queues.get((topic, queue_id))
        return queue.max_offset if queue is not None else 0

    def _times(self, topic: str, queue_id: int) -> list[int]:
        queue = self._queues.get((topic, queue_id))
        entries = queue.entries if queue is not None else []
        return [dispatch_fields(self._records[entry[0]]).store_timestamp for entry in entries]

    def offset_by_time(self, topic: str, queue_id: int, timestamp_ms: int, boundary: BoundaryType) -> int:
        """Return the offset where reading from a time begins."""
        times = self._times(topic, queue_id)
        queue = self._queues.get((topic, queue_id))
        if queue is not None and queue.batched:
            return queue.base(place_by_time(times, timestamp_ms, boundary))
        if boundary is BoundaryType.LOWER:
            return next((offset for offset, time in enumerate(times) if time >= timestamp_ms), len(times))
        return max((offset for offset, time in enumerate(times) if time <= timestamp_ms), default=0)

    def store_timestamp(self, topic: str, queue_id: int, offset: int) -> int:
        """Return the store time of the message at a queue offset in ms."""
        times = self._times(topic, queue_id)
        if not times or offset < 0:
            return -1
        place = self._queues[topic, queue_id].place_of(offset)
        return times[place] if place < len(times) else -1

    def earliest_message_time(self, topic: str, queue_id: int) -> int:
        """Return the store time of the queue's first message in ms."""
        return self.store_timestamp(topic, queue_id, 0)

    def look_message(self, physical_offset: int) -> bytes | None:
        """Return the record that begins there; only real records have a place here."""
        return self._records.get(physical_offset)

    def walk_to_message(self, physical_offset: int) -> Generator[None, None, bytes | None]:
        """Return the same, without steps."""
        yield from ()
        return self._records.get(physical_offset)

    def query_message(self, topic: str, key: str, max_count: int, begin: int, end: int) -> QueryResult:
        """Return the newest records with a key, by a search through all visible records."""
        entries = list(self._index_entries())
        wanted = key_hash(index_key(topic, key))
        found = [one for one in entries if one[0] == wanted and begin <= one[2] <= end]
        newest = found[-min(max_count, self.config.max_msgs_num_batch) :] if max_count > 0 else []
        if not newest:
            return QueryResult()
        last = entries[-1][1]
        timestamp = dispatch_fields(self._records[last]).store_timestamp
        return QueryResult([memoryview(self._records[one[1]]) for one in newest], timestamp, last)

    def _index_entries(self) -> Iterator[tuple[int, int, int]]:
        """Yield hash, physical offset, and store time in whole seconds after the first one's, of all visible keys."""
        first = -1
        end = self._flushed_offset if self._sync_flush else self._max_offset
        if self.dispatcher.pending:
            end = min(end, self.dispatcher.pending[0][1])
        if self._replica is not None and self._replica.waiting:
            end = min(end, self._replica.waiting[0].physical_offset)
        for offset, data in self._records.items():
            if offset + len(data) > end or read_mark(data)[1] == MAGIC_BLANK:
                continue
            record = dispatch_fields(data)
            for text in record_keys(record.topic, record.properties, record.sys_flag):
                first = record.store_timestamp if first < 0 else first
                yield key_hash(text), offset, first + (record.store_timestamp - first) // 1000 * 1000

    def build_index(self, max_bytes: int) -> bool:
        """Return False: no record waits to be indexed."""
        return False

    def is_in_memory(self, topic: str, queue_id: int, offset: int) -> bool:
        """Return whether the message is recent enough."""
        queue = self._queues.get((topic, queue_id))
        if queue is None or not 0 <= offset < queue.max_offset:
            return False
        return self._max_offset - queue.entries[queue.place_of(offset)][0] <= self.config.hot_bytes

    def queue_entries(self, topic: str, queue_id: int, offset: int, count: int) -> list[tuple[int, int, int]]:
        """Return physical offset, size and tags code of messages."""
        queue = self._queues.get((topic, queue_id))
        if queue is None or offset < 0:
            return []
        place = queue.place_of(offset)
        return queue.entries[place : place + count]

    def queue_ids(self, topic: str) -> list[int]:
        """Return the queues of a topic."""
        return sorted(queue_id for name, queue_id in self._queues if name == topic)

    def topics(self) -> list[str]:
        """Return all topics that have a queue."""
        return sorted({topic for topic, _ in self._queues})

    def min_physical_offset(self) -> int:
        """Return the physical offset of the first byte."""
        return self._min_offset

    def max_physical_offset(self) -> int:
        """Return the physical offset after the last byte."""
        return self._max_offset

    def flushed_offset(self) -> int:
        """Return the physical offset up to which everything counts as flushed."""
        return self._flushed_offset

    def when_flushed(self, offset: int, callback: Callable[[bool], None]) -> None:
        """Call back at once, or on `flush`. Raises StoreClosed."""
        if not self._open:
            raise StoreClosed(_PLACE)
        self._waiting.append((offset, callback))
        if not self._hold_flushes:
            self.flush()

    def check(self) -> list[Inconsistency]:
        """Compare every entry with its record."""
        found = []
        for queue in self._queues.values():
            for place, entry in enumerate(queue.entries):
                problem = self._problem(queue, place, entry)
                if problem:
                    found.append(Inconsistency(_PLACE, entry[0], problem))
        return found

    def _problem(self, queue: MemoryQueue, place: int, entry: tuple[int, int, int]) -> str:
        offset, count = queue.base(place), queue.counts[place]
        try:
            record: DispatchFields = dispatch_fields(self._records[entry[0]], check_crc=True)
        except (KeyError, RecordError) as error:
            return f"no record for {queue.topic}/{queue.queue_id}/{offset}: {error}"
        expected = (queue.topic, queue.queue_id, offset, *entry, count)
        actual = (record.topic, record.queue_id, record.queue_offset)
        messages = inner_count(record.properties) if queue.batched else 1
        whole = (*actual, record.physical_offset, record.size, record.tags_code, messages)
        return "" if whole == expected else f"the record is {whole}, the entry says {expected}"
