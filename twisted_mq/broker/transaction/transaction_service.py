"""Runs a broker's transactions: takes half messages, ends them, and checks those without a decision.

Apache: TransactionalMessageServiceImpl, TransactionalMessageCheckService. A rollback that came just before the broker
died, within transactionOpBatchInterval, is asked for again; a commit is not, see `committed_copies`.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

from twisted.internet import defer, task
from twisted.python import failure

from twisted_mq.broker.schedule.postpone import Postponement
from twisted_mq.broker.statistics.broker_statistics import BrokerStatistics
from twisted_mq.broker.stored_message import StoredMessage
from twisted_mq.broker.tables import BrokerTables
from twisted_mq.broker.transaction.committed_copies import CommittedCopies
from twisted_mq.broker.transaction.half_messages import committed, prepare
from twisted_mq.broker.transaction.operations import OperationParts, OperationWriter
from twisted_mq.broker.transaction.transaction_check import CheckParts, TransactionCheck
from twisted_mq.broker.transaction.transaction_metrics import TransactionMetrics
from twisted_mq.logs import Logger
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError, RecordError
from twisted_mq.protocol.names.system_topics import CHECK_MAX_TIME_TOPIC, HALF_TOPIC
from twisted_mq.protocol.text.properties import (
    PROPERTY_REAL_TOPIC,
    PROPERTY_TRANSACTION_CHECK_TIMES,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
)
from twisted_mq.storage.interfaces import InnerMessage, PutStatus

STEPS_A_TURN = 32
"""Messages that a check handles before the clients get their turn."""

NOT_FOUND = "Find prepared transaction message failed"


class TransactionParts(OperationParts, CheckParts, Protocol):
    """The parts of the broker whose transactions these are."""

    advertised_ip: str
    postponement: Postponement
    statistics: BrokerStatistics
    tables: BrokerTables

    def dispatch(self) -> bool: ...


class TransactionService:
    """The transactions of one broker; `check` is called each transactionCheckInterval."""

    log = Logger()

    def __init__(self, broker: TransactionParts) -> None:
        self._broker = broker
        self.metrics = TransactionMetrics(broker.wall_ms, broker.tables.transaction_metrics)
        self._check = TransactionCheck(broker, self.metrics, self._ended_before)
        self._copies = CommittedCopies(broker.store)
        self._began_at = broker.store.max_physical_offset()
        self._first_of_key: dict[str, int] = {}
        self._operations = OperationWriter(broker, broker.dispatch)
        self._cooperator = task.Cooperator(
            terminationPredicateFactory=steps_a_turn, scheduler=lambda turn: broker.clock.callLater(0, turn)
        )

    # producers

    @property
    def may_prepare(self) -> bool:
        """Return False if transactions are refused."""
        return not self._broker.options.reject_transaction_message

    def prepare(self, message: InnerMessage) -> InnerMessage:
        """Return the half message of a send. Raises BrokerError if transactions are refused."""
        if not self.may_prepare:
            remark = f"the broker[{self._broker.advertised_ip}] sending transaction message is forbidden"
            raise BrokerError(ResponseCode.NO_PERMISSION, remark)
        return prepare(message)

    def prepared(self, message: InnerMessage) -> None:
        """Count a stored half message."""
        self.metrics.add(message.property_map[PROPERTY_REAL_TOPIC], 1)

    def find(self, physical_offset: int) -> StoredMessage:
        """Return the half message at a place in the log. Raises BrokerError if there is no such message, or it was ended
        already.
        """
        half = self._look(physical_offset)
        if half is None or half.topic != HALF_TOPIC:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, NOT_FOUND)
        if self.is_over(half):
            raise BrokerError(ResponseCode.ILLEGAL_OPERATION, "the transaction was committed or rolled back before")
        return half

    def is_over(self, half: StoredMessage) -> bool:
        """Return True if a half message is over. A decision may have been forgotten after the check passed it, or after a
        restart.
        """
        queue, offset = self._check.queue(half.head.queue_id), half.head.queue_offset
        if queue.is_over(offset):
            return True
        is_old = half.head.physical_offset < self._began_at or queue.was_passed(offset)
        return is_old and self._copies.has(half)

    def _ended_before(self, half: StoredMessage) -> bool:
        """Return True if an earlier run committed a half message, or put it again; record it as over then."""
        if half.head.physical_offset >= self._began_at or not (self._copies.has(half) or self._is_repeated(half)):
            return False
        self.log.info("half message ended before the restart: offset={o}", o=half.head.physical_offset)
        self.roll_back(half)
        return True

    def _is_repeated(self, half: StoredMessage) -> bool:
        """Return True if the check met its message before: a power cut takes back the check's position, but not what it
        put again.
        """
        key, offset = half.properties.get(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX), half.head.queue_offset
        return key is not None and self._first_of_key.setdefault(key, offset) != offset

    def _look(self, physical_offset: int) -> StoredMessage | None:
        record = self._broker.store.look_message(physical_offset) if physical_offset >= 0 else None
        try:
            return None if record is None else StoredMessage.read(record)
        except RecordError as error:
            self.log.error("half message cannot be read: offset={o} error={e}", o=physical_offset, e=error)
            return None

    def commit(self, half: StoredMessage) -> None:
        """Put the message into its real queue. Raises BrokerError; then the transaction is still open."""
        place = half.real_place
        if place is None:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, f"{NOT_FOUND}: it does not have its topic and queue")
        message = self._broker.postponement.apply(committed(half, *place))
        result = self._broker.store.put_message(message)
        if result.status is not PutStatus.PUT_OK:
            raise BrokerError(_REFUSALS.get(result.status, ResponseCode.SYSTEM_ERROR), result.status.name)
        size = result.end_offset - result.physical_offset
        self._broker.statistics.count_put(message.topic, 1, size, queue_id=message.queue_id)
        self.roll_back(half)

    def roll_back(self, half: StoredMessage) -> None:
        """Record that the half message will not be delivered."""
        self.ended((half,))

    def ended(self, halves: Sequence[StoredMessage]) -> None:
        """Record that half messages are over."""
        for queue_id, some in itertools.groupby(halves, lambda half: half.head.queue_id):
            queue = self._check.queue(queue_id)
            self._operations.add(queue_id, [queue.end(half.head.queue_offset) for half in some])
        for topic, count in Counter(half.properties.get(PROPERTY_REAL_TOPIC, "") for half in halves).items():
            self.metrics.add(topic, -count)

    def given_up(self, physical_offset: int) -> StoredMessage:
        """Return the message at a place in the log that was given up. Raises BrokerError if there is no such message."""
        half = self._look(physical_offset)
        if half is None or half.topic != CHECK_MAX_TIME_TOPIC:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, f"no message of {CHECK_MAX_TIME_TOPIC} has this id")
        return half

    def resume(self, half: StoredMessage) -> None:
        """Check a message that was given up from the beginning. Raises BrokerError."""
        half.properties[PROPERTY_TRANSACTION_CHECK_TIMES] = "0"
        message = half.copy_to(HALF_TOPIC, 0)
        if self._broker.store.put_message(message).status is not PutStatus.PUT_OK:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, f"Put message back to {HALF_TOPIC} failed.")
        self.metrics.add(half.properties.get(PROPERTY_REAL_TOPIC, ""), 1)

    # the broker's own time

    def check(self) -> defer.Deferred[None]:
        """Run one round. Fires when it is over, whatever happened."""
        done = self._cooperator.coiterate(self._check.round())
        return done.addErrback(self._check_failed).addCallback(self._show_changes)

    def _show_changes(self, _: object) -> None:
        self._broker.dispatch()

    def _check_failed(self, reason: failure.Failure) -> None:
        if not reason.check(task.SchedulerStopped):
            self.log.failure("check of transactions failed, retrying in the next round", reason)

    def stop(self) -> None:
        """Stop checking, and write the decisions. The store is still open."""
        self._cooperator.stop()
        self._operations.flush()


_REFUSALS = {
    PutStatus.MESSAGE_ILLEGAL: ResponseCode.MESSAGE_ILLEGAL,
    PutStatus.PROPERTIES_SIZE_EXCEEDED: ResponseCode.MESSAGE_ILLEGAL,
    PutStatus.SERVICE_NOT_AVAILABLE: ResponseCode.SERVICE_NOT_AVAILABLE,
}
"""Apache: EndTransactionProcessor.sendFinalMessage."""


def steps_a_turn() -> Callable[[], bool]:
    """Return what ends a turn of a walk through half messages."""
    steps = itertools.count(1)
    return lambda: next(steps) >= STEPS_A_TURN
