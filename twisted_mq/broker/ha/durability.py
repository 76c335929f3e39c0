"""Waits until appended messages are as durable as configured: on disk, on enough slaves (Apache:
CommitLog.handleDiskFlushAndHA).
"""

from __future__ import annotations

from typing import Protocol

from twisted.internet import defer

from twisted_mq.broker.ha.service import HAService
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.storage.interfaces import IMessageStore

WAIT_FOR_ALL = {True: ResponseCode.SUCCESS, False: ResponseCode.FLUSH_DISK_TIMEOUT}
REPLICATED = {True: ResponseCode.SUCCESS, False: ResponseCode.FLUSH_SLAVE_TIMEOUT}


class DurableParts(Protocol):
    """The parts of the broker that durability uses."""

    options: BrokerOptions
    store: IMessageStore
    ha: HAService

    def flushed(self, offset: int) -> defer.Deferred[bool]: ...


class Durability:
    """Waits for durability. `waits` is True if answers about appended messages have to wait at all."""

    def __init__(self, broker: DurableParts) -> None:
        self._broker = broker
        self._flushes = broker.options.is_sync_flush
        self._replicates = broker.ha.waits_for_slaves
        self.waits = self._flushes or self._replicates

    def reached(self, offset: int) -> defer.Deferred[int]:
        """Fire with SUCCESS, or with the code of what was not reached in time; a slave's failure outweighs the disk's."""
        broker = self._broker
        if not self._replicates:
            return broker.flushed(offset).addCallback(WAIT_FOR_ALL.__getitem__)
        return self._both(offset, broker.ha.replicated(offset))

    def code_of(self, offset: int) -> int:
        """Return SUCCESS, or what was not reached yet, for an offset below one that `reached` was asked for."""
        broker = self._broker
        flushed = not self._flushes or broker.store.flushed_offset() >= offset
        return _code(flushed, not self._replicates or broker.ha.was_replicated(offset))

    def reached_on_both(self, offset: int) -> defer.Deferred[int]:
        """Like `reached`, for messages that count only once a slave that confirms this master's session holds them too."""
        return self._both(offset, self._broker.ha.replicated_in_session(offset))

    def _both(self, offset: int, replicated: defer.Deferred[bool]) -> defer.Deferred[int]:
        if not self._flushes:
            return replicated.addCallback(REPLICATED.__getitem__)
        both = defer.gatherResults([self._broker.flushed(offset), replicated], consumeErrors=True)
        return both.addCallback(lambda results: _code(*results))

    def acknowledged(self, answer: RemotingCommand) -> RemotingCommand | defer.Deferred[RemotingCommand]:
        """Return the answer once all that was appended so far is durable. If that is not in time, SUCCESS is replaced by
        its code.

        Apache's broker answers at once here: it stores messages given back and ends of transactions with WAIT=false.
        """
        if not self.waits:
            return answer
        reached = self.reached(self._broker.store.max_physical_offset())
        return reached.addCallback(_with_code, answer)


def _code(flushed: bool, replicated: bool) -> int:
    return WAIT_FOR_ALL[flushed] if replicated else REPLICATED[replicated]


def _with_code(code: int, answer: RemotingCommand) -> RemotingCommand:
    if code != ResponseCode.SUCCESS and answer.code == ResponseCode.SUCCESS:
        answer.code, answer.remark = code, ResponseCode(code).name
    return answer
