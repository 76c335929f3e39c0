"""Sends the undecided half messages of a lost master to other masters, which ask the producers (Apache:
TransactionalMessageServiceImpl.check on an acting slave).

A half message is passed only when another master has it. (5.3.3 passes it over after ten failures: then it is lost where the
master does not return.) How far the walk came is an offset of the group of transactions, which the master takes over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from twisted.internet import interfaces, task
from twisted.python import failure

from twisted_mq.broker.schedule.delivered_copies import Put
from twisted_mq.broker.stored_message import StoredMessage
from twisted_mq.broker.transaction.committed_copies import CommittedCopies
from twisted_mq.broker.transaction.half_queue import HalfQueue
from twisted_mq.broker.transaction.transaction_check import CheckParts, TransactionCheck
from twisted_mq.broker.transaction.transaction_service import TransactionService, steps_a_turn
from twisted_mq.logs import Logger
from twisted_mq.protocol.names.system_topics import HALF_TOPIC
from twisted_mq.protocol.text.properties import PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX


class HalfParts(CheckParts, Protocol):
    """The slave that acts."""

    clock: interfaces.IReactorTime
    transactions: TransactionService


class EscapingCheck(TransactionCheck):
    """A check that sends a half message away where another one asks its producer."""

    def __init__(self, broker: HalfParts, put: Put, ended: Callable[[StoredMessage], bool]) -> None:
        super().__init__(broker, broker.transactions.metrics, ended)
        self._put_half = put

    def decide(self, queue: HalfQueue, half: StoredMessage, end: int) -> bool:
        """Return whether the half message is over, or another master has it. False ends the round."""
        return self.ended(half) or self._put_half(half.copy_to(HALF_TOPIC, half.head.queue_id)) is not None


class EscapedHalves:
    """The half messages of one acting slave, until `stop`."""

    log = Logger()

    def __init__(self, broker: HalfParts, put: Put) -> None:
        self._copies = CommittedCopies(broker.store)
        self._first_of_key: dict[str, int] = {}
        self._check = EscapingCheck(broker, put, self._is_over)
        self._cooperator = task.Cooperator(
            terminationPredicateFactory=steps_a_turn, scheduler=lambda turn: broker.clock.callLater(0, turn)
        )
        self._walks = False
        self._again = False

    def _is_over(self, half: StoredMessage) -> bool:
        """Return whether the log shows that the message was committed, or put again behind one that was met before."""
        if self._copies.has(half):
            return True
        key, offset = half.properties.get(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX), half.head.queue_offset
        return key is not None and self._first_of_key.setdefault(key, offset) != offset

    def go_on(self) -> None:
        """Walk as far as messages can be sent; a call during a walk has another one follow."""
        if self._walks:
            self._again = True
            return
        self._walks, self._again = True, False
        self._cooperator.coiterate(self._check.round()).addErrback(self._failed).addCallback(self._walked)

    def _failed(self, reason: failure.Failure) -> None:
        if not reason.check(task.SchedulerStopped):
            self.log.failure("half messages not sent to other masters, retrying", reason)

    def _walked(self, _: object) -> None:
        self._walks = False
        if self._again:
            self.go_on()

    def stop(self) -> None:
        """Walk no more."""
        self._again = False
        self._cooperator.stop()
