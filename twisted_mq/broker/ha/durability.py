"""When a send is as durable as configured: on disk, and on enough slaves (Apache: CommitLog.handleDiskFlushAndHA)."""

from __future__ import annotations

from typing import Protocol

from twisted.internet import defer

from twisted_mq.broker.ha.service import HAService
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.protocol.codes import ResponseCode

WAIT_FOR_ALL = {True: ResponseCode.SUCCESS, False: ResponseCode.FLUSH_DISK_TIMEOUT}


class DurableParts(Protocol):
    """The broker whose sends these are."""

    options: BrokerOptions
    ha: HAService

    def flushed(self, offset: int) -> defer.Deferred[bool]: ...


class Durability:
    """`waits` says whether sends have to wait at all."""

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
        replicated = broker.ha.replicated(offset)
        if not self._flushes:
            return replicated.addCallback(lambda done: _code(True, done))
        both = defer.gatherResults([broker.flushed(offset), replicated])
        return both.addCallback(lambda results: _code(*results))


def _code(flushed: bool, replicated: bool) -> int:
    return WAIT_FOR_ALL[flushed] if replicated else ResponseCode.FLUSH_SLAVE_TIMEOUT
