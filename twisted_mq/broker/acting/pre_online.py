"""Asks the slaves of a master before it registers again (Apache: BrokerPreOnlineService).

While a master is away, consumers commit at the slave that acts for it. A master that registered at once would hand out
again what was consumed there. So it asks each slave that the name servers know, and takes offsets that are ahead of its own,
never behind the end that its log had when it started: what was appended since is new to every group.

Waiting messages that other masters have taken meanwhile are not delivered here again. This project's slaves name them,
each run of them with its last message, which this log must have. Apache's slaves tell only how far they came: that is
believed where this master was stopped properly, else a copy that this log lost could be taken for one that another master
has. Then those messages are delivered once more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

import attrs
from twisted.internet import interfaces, task

from twisted_mq.broker.clients.consumer_offset_manager import ConsumerOffsetManager
from twisted_mq.broker.ha.member_group import MemberGroup
from twisted_mq.broker.ha.replication import read_checkpoint
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.places_in_log import first_behind
from twisted_mq.broker.schedule.waiting_messages import WaitingMessages
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import ConsumerOffsetSerializeWrapper, KVTable, decode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.errors import BrokerError, ProtocolError
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.reactor_threads import InThread
from twisted_mq.remoting.channel import Invoke
from twisted_mq.remoting.errors import RemotingError
from twisted_mq.storage.interfaces import IMessageStore
from twisted_mq.storage.tables.config_tables import TOPIC_GROUP_SEPARATOR
from twisted_mq.storage.tables.escaped_table import DelayOffsetsOfSlave

AGAIN_SECONDS = 1.0
"""The pause before the slaves, or the name servers, are asked again (Apache: 1 s)."""
ASK_SECONDS = 3.0

Value = TypeVar("Value")


class OnlineParts(Protocol):
    """The master that goes online."""

    options: BrokerOptions
    clock: interfaces.IReactorTime
    store: IMessageStore
    offsets: ConsumerOffsetManager
    waiting: WaitingMessages
    clean: bool
    in_thread: InThread


@attrs.define(eq=False)
class PreOnline:
    """The questions of one master. Made when its store is open and before it listens."""

    broker: OnlineParts
    group: MemberGroup
    invoke: Invoke
    _began_at: int = attrs.field(init=False)
    _told: str | None = None
    log = Logger()

    def __attrs_post_init__(self) -> None:
        self._began_at = self.broker.store.max_physical_offset()

    async def ask(self) -> None:
        """Return once every slave that a name server knows has answered. A name server has to answer first."""
        while not await self._asked_all():
            await task.deferLater(self.broker.clock, AGAIN_SECONDS, lambda: None)

    async def _asked_all(self) -> bool:
        members = await self.group.all_addresses()
        if members is None:
            return self._not_yet("no name server answers")
        for number, address in sorted(members.items()):
            if number == self.broker.options.broker_id:
                continue
            try:
                await self._take_over(address)
            except (RemotingError, ProtocolError, BrokerError) as error:
                return self._not_yet(f"slave {number} at {address}: {error}")
        return True

    def _not_yet(self, why: str) -> bool:
        if why != self._told:
            self._told = why
            self.log.warn("master registers later, its slaves have to be asked first: {w}", w=why)
        return False

    async def _take_over(self, address: str) -> None:
        theirs = await self._table(address, RequestCode.GET_ALL_CONSUMER_OFFSET, ConsumerOffsetSerializeWrapper)
        taken = sum(self._take_offsets(key, queues) for key, queues in theirs.offset_table.items())
        delays = await self._table(address, RequestCode.GET_ALL_DELAY_OFFSET, DelayOffsetsOfSlave)
        waiting = self.broker.waiting
        if delays.escaped is not None:
            waiting.take_escaped(delays.escaped)
        elif self.broker.clean and await self._delivers_now(address):
            waiting.take_delay_offsets(delays.offset_table)
            if self.broker.options.timer_wheel_enable:
                answer = await self._answer(address, RequestCode.GET_TIMER_CHECK_POINT)
                waiting.take_checkpoint(read_checkpoint(answer))
        self.log.info("taken over from a slave: slave={a} offsets={n}", a=address, n=taken)

    async def _delivers_now(self, address: str) -> bool:
        """Return whether a slave that does not name what it sent away delivers in this master's place."""
        table = decode_body(KVTable, await self._answer(address, RequestCode.GET_BROKER_RUNTIME_INFO)).table or {}
        return table.get("brokerActive") == "true"

    def _take_offsets(self, key: str, queues: Mapping[int, int]) -> int:
        """Take a group's offsets that are ahead. Return how many."""
        offsets, store = self.broker.offsets, self.broker.store
        topic, _, group = key.partition(TOPIC_GROUP_SEPARATOR)
        taken = 0
        for queue_id, theirs in queues.items():
            mine = offsets.query(group, topic, queue_id)
            if mine is not None and theirs <= mine:
                continue
            theirs = min(theirs, first_behind(store, topic, queue_id, self._began_at))
            if mine is None or theirs > mine:
                offsets.commit(group, topic, queue_id, theirs)
                taken += 1
        return taken

    async def _table(self, address: str, code: int, kind: type[Value]) -> Value:
        """Ask a slave for a table. Raises RemotingError, ProtocolError, BrokerError."""
        return await self.broker.in_thread(decode_body, kind, await self._answer(address, code))

    async def _answer(self, address: str, code: int) -> bytes:
        """Return the body of a slave's answer. Raises RemotingError, BrokerError."""
        answer = await self.invoke(address, RemotingCommand.request(code), ASK_SECONDS)
        if answer.code != 0:
            raise BrokerError(answer.code, answer.remark or "")
        return answer.body
