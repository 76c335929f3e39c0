"""A master that returns, its slave, and a name server that names both."""

from __future__ import annotations

from typing import Any

import attrs
from twisted.internet import defer
from twisted.trial.unittest import SynchronousTestCase

from tests.support.broker import BrokerInMemory
from twisted_mq.broker.acting.pre_online import PreOnline
from twisted_mq.broker.ha.member_group import MemberGroup
from twisted_mq.protocol.bodies import (
    BrokerMemberGroup,
    ConsumerOffsetSerializeWrapper,
    DelayOffsetSerializeWrapper,
    GetBrokerMemberGroupResponseBody,
    KVTable,
    encode_body,
)
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.errors import RemotingConnectError
from twisted_mq.storage.interfaces import InnerMessage
from twisted_mq.storage.tables.escaped_table import DelayOffsetsOfSlave
from twisted_mq.storage.timer.timer_checkpoint import TimerCheckpoint

SELF = "127.0.0.2:20911"
SLAVE_AT = "10.0.0.3:20911"
TOPIC = "BenchmarkTest"


@attrs.define(eq=False)
class Group:
    """A name server and slaves that a master asks. All slaves answer alike; those in `away` do not answer."""

    members: dict[int, str] | None = None
    offsets: dict[str, dict[int, int]] = attrs.field(factory=dict)
    delays: DelayOffsetSerializeWrapper = attrs.field(factory=DelayOffsetsOfSlave)
    active: str = "false"
    checkpoint: TimerCheckpoint = attrs.field(factory=TimerCheckpoint)
    away: set[str] = attrs.field(factory=set)
    store: Any = None
    """The slave's log."""
    asked: list[tuple[str, RemotingCommand]] = attrs.field(factory=list)

    def invoke(self, address: str, command: RemotingCommand, seconds: float) -> defer.Deferred[RemotingCommand]:
        self.asked.append((address, command))
        if command.code == RequestCode.GET_BROKER_MEMBER_GROUP and self.members is not None:
            group = BrokerMemberGroup("CapCluster", "broker-cap", self.members)
            return defer.succeed(command.answer(body=encode_body(GetBrokerMemberGroupResponseBody(group))))
        if command.code in (RequestCode.BROKER_HEARTBEAT, RequestCode.QUERY_DATA_VERSION) and "dead" not in address:
            return defer.succeed(command.answer())
        if self.members is None or address in self.away:
            return defer.fail(RemotingConnectError(address))
        if command.code == RequestCode.VIEW_MESSAGE_BY_ID:
            record = self.store.look_message(int(command.ext_fields["offset"]))
            return defer.succeed(command.answer(0 if record else 1, body=record or b""))
        bodies = {
            RequestCode.GET_ALL_CONSUMER_OFFSET: encode_body(ConsumerOffsetSerializeWrapper(offset_table=self.offsets)),
            RequestCode.GET_ALL_DELAY_OFFSET: encode_body(self.delays),
            RequestCode.GET_BROKER_RUNTIME_INFO: encode_body(KVTable(table=self._figures())),
            RequestCode.GET_TIMER_CHECK_POINT: self.checkpoint.encode(),
            RequestCode.EXCHANGE_BROKER_HA_INFO: b"",
        }
        return defer.succeed(command.answer(body=bodies[RequestCode(command.code)]))

    def _figures(self) -> dict[str, str]:
        end = self.store.max_physical_offset() if self.store is not None else 0
        return {"brokerActive": self.active, "commitLogMaxOffset": str(end)}

    def asked_of(self, address: str) -> list[int]:
        """Return the codes of the requests to an address."""
        return [command.code for to, command in self.asked if to == address]


def append(broker: BrokerInMemory, name: str, count: int = 1, topic: str = TOPIC) -> None:
    """Put messages into a broker's log, the same bytes for the same arguments."""
    for number in range(count):
        broker.store.put_message(InnerMessage(topic, 0, f"{name} {number}".encode(), b"", {}, 0))
    broker.controller.dispatch()


class OnlineCase(SynchronousTestCase):
    """A master and its slave, whose logs have the same ten messages."""

    def prepare(self, **options: Any) -> None:
        self.broker = BrokerInMemory(enable_slave_acting_master=True, namesrv_addr="one:9876", **options)
        self.slave = BrokerInMemory(broker_role="SLAVE", broker_id=1)
        for broker in (self.broker, self.slave):
            append(broker, "common", 10)
        self.group = Group(store=self.slave.store)
        self.start()

    def start(self) -> None:
        """Begin the questions of a start at this moment."""
        members = MemberGroup(self.broker.options, ["one:9876"], self.group.invoke)
        self.asks = PreOnline(self.broker.controller, members, self.group.invoke)

    def ask(self) -> defer.Deferred[None]:
        """Ask until the master may register."""
        return defer.ensureDeferred(self.asks.ask())

    def offset(self, group: str) -> int | None:
        return self.broker.controller.offsets.query(group, TOPIC, 0)
