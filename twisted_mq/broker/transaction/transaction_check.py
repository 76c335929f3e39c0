"""Walks through the undecided half messages and asks their producers (Apache: TransactionalMessageServiceImpl.check).

A message is asked about once it is older than transactionTimeOut, or than its own immunity, and then again in each round;
after transactionCheckMax times, or fileReservedTime hours, it goes to TRANS_CHECK_MAX_TIME_TOPIC. A message that is asked
about, or must not be asked about yet, is put again at the queue's end, so that the walk never comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from twisted.internet import defer

from twisted_mq.broker.clients.consumer_offset_manager import ConsumerOffsetManager
from twisted_mq.broker.stored_message import StoredMessage
from twisted_mq.broker.topics.topic_config_manager import TopicConfigManager
from twisted_mq.broker.transaction.check_back import check_back
from twisted_mq.broker.transaction.half_messages import (
    check_times,
    checked_again,
    discarded,
    first_offset,
    has_immunity,
    immunity_ms,
    left_in_peace,
)
from twisted_mq.broker.transaction.half_queue import HalfQueue
from twisted_mq.broker.transaction.members import MemberParts, TransactionMembers
from twisted_mq.broker.transaction.operations import OperationError, listed_halves
from twisted_mq.broker.transaction.transaction_metrics import TransactionMetrics
from twisted_mq.logs import Logger
from twisted_mq.protocol.errors import RecordError
from twisted_mq.protocol.names.system_topics import CHECK_MAX_TIME_TOPIC, HALF_TOPIC, OP_TOPIC, TRANSACTION_GROUP
from twisted_mq.protocol.text.properties import PROPERTY_REAL_TOPIC, PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX
from twisted_mq.storage.interfaces import GetResult, GetStatus, IMessageStore, InnerMessage, PutResult, PutStatus

OPERATIONS_A_READ = 32
_READ_BYTES = 1 << 20
_END = (GetStatus.NO_MESSAGE_IN_QUEUE, GetStatus.OFFSET_OVERFLOW_ONE)
_HOUR_MS = 3_600_000


class CheckParts(MemberParts, Protocol):
    """The parts of the broker whose half messages are checked."""

    wall_ms: Callable[[], int]
    store: IMessageStore
    topics: TopicConfigManager
    offsets: ConsumerOffsetManager

    def flushed(self, offset: int) -> defer.Deferred[bool]: ...


class TransactionCheck:
    """The walk of one broker; `queues` holds the state of each half queue, and grows with the store's queues.

    `ended` returns True if a half message without a known decision is over all the same.
    """

    log = Logger()

    def __init__(self, broker: CheckParts, metrics: TransactionMetrics, ended: Callable[[StoredMessage], bool]) -> None:
        self._broker = broker
        self._metrics = metrics
        self.ended = ended
        self._members = TransactionMembers(broker)
        self.queues: dict[int, HalfQueue] = {}

    def queue(self, queue_id: int) -> HalfQueue:
        """Return the state of a queue, starting where the last run of the broker stopped."""
        queue = self.queues.get(queue_id)
        if queue is None:
            half, op = self._position(HALF_TOPIC, queue_id), self._position(OP_TOPIC, queue_id)
            queue = self.queues[queue_id] = HalfQueue(queue_id, half, op)
        return queue

    def _position(self, topic: str, queue_id: int) -> int:
        """Return the saved offset, limited to the queue's range: a log that lost its end is shorter."""
        store = self._broker.store
        saved = self._broker.offsets.query(TRANSACTION_GROUP, topic, queue_id)
        first, end = store.min_offset_in_queue(topic, queue_id), store.max_offset_in_queue(topic, queue_id)
        return first if saved is None else max(first, min(saved, end))

    def round(self) -> Iterator[None]:
        """Check everything once, in steps: each `next` handles one message, or some operations."""
        end = self._broker.store.max_physical_offset()
        for queue_id in sorted({*self._broker.store.queue_ids(HALF_TOPIC), *self.queues}):
            queue = self.queue(queue_id)
            yield from self._read_operations(queue)
            yield from self._walk(queue, end)

    # operations

    def _read_operations(self, queue: HalfQueue) -> Iterator[None]:
        store, queue_id = self._broker.store, queue.queue_id
        while True:
            offset = queue.op_offset
            result = store.get_message(OP_TOPIC, queue_id, offset, OPERATIONS_A_READ, _READ_BYTES, None)
            half_end = store.max_offset_in_queue(HALF_TOPIC, queue_id)
            for record in result.records:
                self._read_operation(queue, record, half_end)
            queue.op_offset = max(offset, result.next_begin_offset)
            if queue.op_offset == offset:
                return
            yield

    def _read_operation(self, queue: HalfQueue, record: memoryview | bytes, half_end: int) -> None:
        try:
            operation = StoredMessage.read(record)
            queue.read_operation(operation.head.queue_offset, listed_halves(operation), half_end)
        except (RecordError, OperationError) as error:
            self.log.error(
                "transaction operation skipped: queue={q} offset={o} error={e}",
                q=queue.queue_id, o=queue.op_offset, e=error,
            )  # fmt: skip

    # half messages

    def _walk(self, queue: HalfQueue, end: int) -> Iterator[None]:
        offset: int | None = queue.half_offset
        while offset is not None:
            queue.half_offset = offset
            yield
            offset = offset + 1 if queue.pass_over(offset) else self._look_at(queue, offset, end)
        queue.forget_passed()
        self._save_positions(queue)

    def _look_at(self, queue: HalfQueue, offset: int, end: int) -> int | None:
        """Return the offset to go on with; None if the round ends."""
        result = self._broker.store.get_message(HALF_TOPIC, queue.queue_id, offset, 1, _READ_BYTES, None)
        if not result.records:
            return self._gap(offset, result)
        try:
            half = StoredMessage.read(result.records[0])
        except RecordError as error:
            self.log.error("half message skipped: queue={q} offset={o} error={e}", q=queue.queue_id, o=offset, e=error)
            return offset + 1
        if queue.pass_over(offset, first_offset(half)):
            return offset + 1
        return offset + 1 if self.decide(queue, half, end) else None

    def _gap(self, offset: int, result: GetResult) -> int | None:
        if result.status in _END or result.next_begin_offset <= offset:
            return None
        self.log.info("half messages are no longer in the log: from={a} to={b}", a=offset, b=result.next_begin_offset)
        return result.next_begin_offset

    def decide(self, queue: HalfQueue, half: StoredMessage, end: int) -> bool:
        """Decide an undecided message; False if the round ends with it, because the round itself put it after `end`."""
        if self.ended(half):
            return True
        options, head, now = self._broker.options, half.head, self._broker.wall_ms()
        age = now - head.born_timestamp
        if check_times(half) >= options.transaction_check_max or age > options.file_reserved_time * _HOUR_MS:
            return self._discard(queue, half)
        if head.physical_offset >= end:
            return False
        if has_immunity(half):
            if age < immunity_ms(half, options.transaction_time_out):
                return self._renew(queue, head.queue_offset, left_in_peace(half)) is not None
        elif 0 <= age < options.transaction_time_out:
            return False
        renewed = self._renew(queue, head.queue_offset, checked_again(half))
        if renewed is not None:
            check_back(self._members, options.broker_name, half, renewed)
        return renewed is not None

    def _renew(self, queue: HalfQueue, offset: int, message: InnerMessage) -> PutResult | None:
        result = self._broker.store.put_message(message)
        if not self._is_stored(message, result):
            return None
        queue.renew(offset, result.queue_offset)
        return result

    def _discard(self, queue: HalfQueue, half: StoredMessage) -> bool:
        self._broker.topics.create_for_group(CHECK_MAX_TIME_TOPIC, 1)
        message = discarded(half)
        if not self._is_stored(message, self._broker.store.put_message(message)):
            return False
        real_topic = half.properties.get(PROPERTY_REAL_TOPIC, "")
        self._metrics.add(real_topic, -1)
        queue.resolve(half.head.queue_offset)
        self.log.error(
            "transaction given up, its message is in {to}: topic={topic} key={key} checks={n}",
            to=CHECK_MAX_TIME_TOPIC, topic=real_topic, n=check_times(half),
            key=half.properties.get(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX),
        )  # fmt: skip
        return True

    def _is_stored(self, message: InnerMessage, result: PutResult) -> bool:
        if result.status is PutStatus.PUT_OK:
            return True
        self.log.error(
            "half message not accepted by the store, retrying: topic={topic} status={s}",
            topic=message.topic, s=result.status.name,
        )  # fmt: skip
        return False

    def _save_positions(self, queue: HalfQueue) -> None:
        """Save the walk's position once the messages that it put again are on disk: a power cut must not lose the only copy."""
        broker, half, op = self._broker, queue.half_offset, queue.done_op_offset

        def note(flushed: bool) -> None:
            if flushed:
                broker.offsets.commit(TRANSACTION_GROUP, HALF_TOPIC, queue.queue_id, half)
                broker.offsets.commit(TRANSACTION_GROUP, OP_TOPIC, queue.queue_id, op)

        broker.flushed(broker.store.max_physical_offset()).addCallback(note)
