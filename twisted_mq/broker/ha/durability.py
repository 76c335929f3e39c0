"""When what was appended is as durable as configured: on disk, on enough slaves (Apache: CommitLog.handleDiskFlushAndHA)."""

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
    """The broker whose sends these are."""

    options: BrokerOptions
    store: IMessageStore
    ha: HAService

    def flushed(self, offset: int) -> defer.Deferred[bool]: ...


class Durability:
    """`waits` says whether answers to what was appended have to wait at all."""

    def __init__(self, broker: DurableParts) -> None:
        self._broker = broker
        self._flushes = broker.options.is_sync_flush
        self._replicates = broker.ha.waits_for_slaves
        self.waits = self._flushes or self._replicates

    def reached(self, offset: int) -> defer.Deferred[int]:
        """Fires with SUCCESS, or with what was not reached in time; a slave's failure outweighs the disk's."""
        broker = self._broker
        if not self._replicates:
            return broker.flushed(offset).addCallback(WAIT_FOR_ALL.__getitem__)
        return self._both(offset, broker.ha.replicated(offset))

    def reached_on_both(self, offset: int) -> defer.Deferred[int]:
        """As `reached`, for what counts only once a slave that confirms this master's session holds it too."""
        return self._both(offset, self._broker.ha.replicated_in_session(offset))

    def _both(self, offset: int, replicated: defer.Deferred[bool]) -> defer.Deferred[int]:
        if not self._flushes:
            return replicated.addCallback(REPLICATED.__getitem__)
        both = defer.gatherResults([self._broker.flushed(offset), replicated], consumeErrors=True)
        return both.addCallback(lambda results: _code(*results))

    def acknowledged(self, answer: RemotingCommand) -> RemotingCommand | defer.Deferred[RemotingCommand]:
        """The answer once all that was appended so far is durable; a success that is not in time has the code of that.

        Apache's broker answers these at once: what is given back and what ends transactions has WAIT=false there.
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
