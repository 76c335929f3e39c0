"""Asks the slaves of a master before it registers again (Apache: BrokerPreOnlineService).

While a master is away, consumers commit at the slave that acts for it. A master that registered at once would hand out
again what was consumed there. So it asks its slaves (see asked_slaves.py), and takes offsets that are ahead of its own, as
far as both logs are the same (see taken_offsets.py), and never behind the end that its log had when it started.

Waiting messages that other masters have taken meanwhile are not delivered here again. This project's slaves name them,
each run of them with its last message, which this log must have. Apache's slaves tell only how far they came: that is
believed where this master was stopped properly and the slave's log ends where this one does, with the same message. Else
a copy that this log lost could be taken for one that another master has. Then those messages are delivered once more.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

import attrs
from twisted.internet import defer, interfaces, task
from twisted.python import failure

from twisted_mq.broker.acting.asked_slaves import AskedSlaves, Slave
from twisted_mq.broker.acting.taken_offsets import OffsetParts, TakenOffsets
from twisted_mq.broker.ha.common_log import CommonLog
from twisted_mq.broker.ha.host_names import HostNames
from twisted_mq.broker.ha.master_progress import END_OF_LOG
from twisted_mq.broker.ha.member_group import MemberGroup
from twisted_mq.broker.ha.service import HAService
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.schedule.waiting_messages import WaitingMessages
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import ConsumerOffsetSerializeWrapper, KVTable, decode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.errors import BrokerError, ProtocolError
from twisted_mq.protocol.headers import ExchangeHAInfoRequestHeader
from twisted_mq.protocol.text.java import parse_int
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import encode_header
from twisted_mq.reactor_threads import InThread
from twisted_mq.remoting.channel import Invoke
from twisted_mq.remoting.errors import RemotingError
from twisted_mq.storage.tables.escaped_table import DelayOffsetsOfSlave
from twisted_mq.storage.timer.timer_checkpoint import TimerCheckpoint

AGAIN_SECONDS = 1.0
"""The pause before the slaves, or the name servers, are asked again (Apache: 1 s)."""
ASK_SECONDS = 3.0

Value = TypeVar("Value")


class OnlineParts(OffsetParts, Protocol):
    """The master that goes online."""

    options: BrokerOptions
    clock: interfaces.IReactorTime
    waiting: WaitingMessages
    ha: HAService
    advertised_ip: str
    clean: bool
    in_thread: InThread

    @property
    def address(self) -> str: ...


@attrs.frozen
class LogOfSlave:
    """A slave's log beside this one."""

    has_more: bool
    """True if it ends behind the end that this one had at the start, or does not say where."""
    is_same: bool
    """True if it ends there too, with the same message."""
    delivers: bool
    """True if the slave delivers in its master's place (Apache's say so)."""


@attrs.define(eq=False)
class PreOnline:
    """The questions of one master. Made when its store is open and before it listens."""

    broker: OnlineParts
    group: MemberGroup
    invoke: Invoke
    _began_at: int = attrs.field(init=False)
    _last_record: int = attrs.field(init=False)
    _slaves: AskedSlaves = attrs.field(init=False)
    _told: str | None = None
    log = Logger()

    def __attrs_post_init__(self) -> None:
        broker = self.broker
        self._began_at = broker.store.max_physical_offset()
        self._last_record = broker.store.last_record_offset()
        names = HostNames(broker.advertised_ip, broker.in_thread)
        self._slaves = AskedSlaves(broker.options, broker.clock, names, lambda: broker.ha.accept.proven_hosts)

    async def ask(self) -> None:
        """Return once every slave that is waited for has answered. A name server has to answer first."""
        while not await self._asked_all():
            await task.deferLater(self.broker.clock, AGAIN_SECONDS, lambda: None)

    async def _asked_all(self) -> bool:
        members = await self.group.all_addresses()
        if members is None:
            return self._not_yet("no name server answers")
        slaves = await self._slaves.of(members)
        calls = [defer.ensureDeferred(self._asked(slave)) for slave in slaves]
        for _, result in await defer.DeferredList(calls, consumeErrors=True):
            if isinstance(result, failure.Failure):
                result.raiseException()
            if result is not None:
                return self._not_yet(result)
        return True

    async def _asked(self, slave: Slave) -> str | None:
        """Return why a slave has to be asked again; None if it answered."""
        try:
            if not slave.is_ready:
                await self._tell_where(slave.address)
                return f"{slave}: it has not proven haSharedSecret yet"
            await self._take_over(slave.address)
        except (RemotingError, ProtocolError, BrokerError) as error:
            return f"{slave}: {error}"
        return None

    def _not_yet(self, why: str) -> bool:
        if why != self._told:
            self._told = why
            self.log.warn("master registers later, its slaves have to be asked first: {w}", w=why)
        return False

    async def _tell_where(self, address: str) -> None:
        """Tell a slave where this master is (Apache: sendBrokerHaInfo); no name server does before it registers."""
        broker = self.broker
        header = ExchangeHAInfoRequestHeader(
            master_ha_address=broker.ha.address, master_flush_offset=0, master_address=broker.address
        )
        command = RemotingCommand.request(RequestCode.EXCHANGE_BROKER_HA_INFO, encode_header(header))
        await self.invoke(address, command, ASK_SECONDS)

    async def _take_over(self, address: str) -> None:
        common = CommonLog(self.broker.store, self.invoke, address)
        # this question holds back what would leave, so the consumers' offsets come after it
        delays = await self._table(address, RequestCode.GET_ALL_DELAY_OFFSET, DelayOffsetsOfSlave)
        theirs = await self._table(address, RequestCode.GET_ALL_CONSUMER_OFFSET, ConsumerOffsetSerializeWrapper)
        log = await self._log_of(address, common)
        taking = TakenOffsets(self.broker, common, self._began_at, without_halves=log.has_more)
        taken = await taking.take(theirs.offset_table)
        waiting = self.broker.waiting
        if delays.escaped is not None:
            waiting.take_escaped(delays.escaped)
        elif self.broker.clean and log.delivers and log.is_same:
            waiting.take_delay_offsets(delays.offset_table)
            if self.broker.options.timer_wheel_enable:
                answer = await self._answer(address, RequestCode.GET_TIMER_CHECK_POINT)
                waiting.take_checkpoint(TimerCheckpoint.decode(answer))
        if log.has_more:
            self.log.warn(
                "slave's log has more than this one, which may have lost its end; offsets are taken as far as both are the"
                " same: slave={a}", a=address,
            )  # fmt: skip
        self.log.info("taken over from a slave: slave={a} offsets={n}", a=address, n=taken)

    async def _log_of(self, address: str, common: CommonLog) -> LogOfSlave:
        table = decode_body(KVTable, await self._answer(address, RequestCode.GET_BROKER_RUNTIME_INFO)).table or {}
        end = parse_int(table.get(END_OF_LOG), bits=64)
        same = end == self._began_at and (not end or await common.has(self._last_record))
        return LogOfSlave(end is None or end > self._began_at, same, table.get("brokerActive") == "true")

    async def _table(self, address: str, code: int, kind: type[Value]) -> Value:
        """Ask a slave for a table. Raises RemotingError, ProtocolError, BrokerError."""
        return await self.broker.in_thread(decode_body, kind, await self._answer(address, code))

    async def _answer(self, address: str, code: int) -> bytes:
        """Return the body of a slave's answer. Raises RemotingError, BrokerError."""
        answer = await self.invoke(address, RemotingCommand.request(code), ASK_SECONDS)
        if answer.code != 0:
            raise BrokerError(answer.code, answer.remark or "")
        return answer.body
