"""Ordered queues for tests of the client: a coordinator in memory, and fake brokers that take and hand out as told.

A broker is the head of a unit where `heads` has its epoch, and hands out where `served` has the unit; what the lists say
is put into the coordinator by the test.
"""

from __future__ import annotations

from typing import Any

import attrs
from twisted.internet import defer
from twisted.internet.task import Clock

from tests.support.client_case import ClientCase
from tests.support.fake_broker import FakeBroker
from tests.support.remoting import MemoryNetwork
from twisted_mq.coordination.interfaces import Create, Put
from twisted_mq.coordination.memory import MemoryCoordinator, MemoryEnsemble
from twisted_mq.coordination.nodes import make_paths
from twisted_mq.ordering.documents import BrokerMember, encode_lists, encode_member, encode_topic
from twisted_mq.ordering.lists import Lists, OrderedTopic, Term
from twisted_mq.ordering.paths import BROKERS, LEADERS, TOPICS, member_path, topic_path, unit_path
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import SendMessageRequestHeaderV2, SendMessageResponseHeader
from twisted_mq.protocol.messages.order_mark import ORDER_EPOCH, ORDER_EXPECTED, ORDER_LEADER, OrderMark
from twisted_mq.protocol.text.properties import PROPERTY_ORDERED, decode_properties
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import encode_header
from twisted_mq.remoting.channel import Channel


class OrderedFakeBroker(FakeBroker):
    """Keeps the rules of ordered sends, for topics whose queues move each by itself."""

    def __init__(self, network: MemoryNetwork, name: str, address: str) -> None:
        self.heads: dict[int, int] = {}
        """Queue id -> the epoch in which this broker is its head."""
        self.leaders: dict[tuple[int, int], int] = {}
        self.stored: dict[tuple[int, int, int], dict[int, int]] = {}
        """(queue, epoch, leader) -> queue offset by sequence."""
        self.marks: list[OrderMark] = []
        """Marks of all received ordered sends, in their order."""
        self.fail_next: list[Any] = []
        """Answers, errors or Deferreds for the next sends instead of what follows from the rules; None for that."""
        super().__init__(network, name, address)

    def _send(self, channel: Channel, request: RemotingCommand) -> Any:
        header = self.note(request, SendMessageRequestHeaderV2)
        mark = OrderMark.decode(decode_properties(header.properties or "")[PROPERTY_ORDERED])
        self.marks.append(mark)
        if self.fail_next:
            outcome = self.fail_next.pop(0)
            if isinstance(outcome, Exception):
                raise outcome
            if isinstance(outcome, defer.Deferred):
                return outcome
            if outcome is not None:
                answer = SendMessageResponseHeader(msg_id="x", queue_id=mark.queue, queue_offset=0)
                return request.answer(outcome, None, encode_header(answer))
        offset = self._place(mark)
        if offset is None:
            _, offset = self._store(header.topic, header.queue_id, request.body, header.properties, header.sys_flag)
            self.stored[mark.queue, mark.epoch, mark.leader][mark.sequence] = offset
            self._wake()
        answer = SendMessageResponseHeader(msg_id=f"{self.name}-{offset}", queue_id=mark.queue, queue_offset=offset)
        return request.answer(ext_fields=encode_header(answer))

    def _place(self, mark: OrderMark) -> int | None:
        """The queue offset of a repeat; None for the next message."""
        epoch = self.heads.get(mark.queue)
        if epoch != mark.epoch:
            fields = {} if epoch is None else {ORDER_EPOCH: str(epoch)}
            raise BrokerError(ResponseCode.NO_PERMISSION, f"{self.name} is not the head in epoch {mark.epoch}", fields)
        leader = self.leaders.setdefault((mark.queue, epoch), mark.leader)
        if mark.leader < leader:
            raise BrokerError(ResponseCode.NO_PERMISSION, "another producer leads", {ORDER_LEADER: str(leader)})
        self.leaders[mark.queue, epoch] = mark.leader
        stored = self.stored.setdefault((mark.queue, epoch, mark.leader), {})
        expected = max(mark.base, max(stored, default=0) + 1)
        if mark.sequence == expected:
            return None
        if mark.sequence not in stored:
            raise BrokerError(ResponseCode.SYSTEM_BUSY, "messages are missing", {ORDER_EXPECTED: str(expected)})
        return stored[mark.sequence]

    def take(self, epoch: int, *bodies: str, queue: int = 0, properties: str = "") -> None:
        """Store messages that were taken in an epoch."""
        mark = OrderMark(epoch, queue).encode()
        self.put("T", queue, *(body.encode() for body in bodies), properties=f"{properties}ORDERED\x01{mark}\x02")

    def bodies(self, topic: str, queue_id: int) -> list[str]:
        """Return the stored bodies, in order."""
        return [one.body.decode() for one in self.queues.get((topic, queue_id), [])]


class OrderedCase(ClientCase):
    """A coordinator, and two groups a and b."""

    topic = "T"
    queues = 2
    clock: Clock

    def setUp(self) -> None:
        super().setUp()
        self.ensemble = MemoryEnsemble(self.clock)
        self.operator = self.coordinator()
        self.run_to_end(make_paths(self.operator, [TOPICS, BROKERS, LEADERS]))
        self.a = self.broker("a")
        self.b = self.broker("b")
        self.declare()

    def coordinator(self, **settings: Any) -> MemoryCoordinator:
        """Open another session."""
        coordinator = self.ensemble.coordinator(**settings)
        self.run_to_end(coordinator.start())
        self.addCleanup(lambda: self.run_to_end(coordinator.stop()))
        return coordinator

    def broker(self, name: str) -> OrderedFakeBroker:
        """A master that has the topic."""
        broker = self.cluster.add_broker(name, {self.topic: self.queues}, kind=OrderedFakeBroker)
        assert isinstance(broker, OrderedFakeBroker)
        return broker

    def slave(self, name: str) -> OrderedFakeBroker:
        """The slave of a group, which has nothing yet."""
        address = f"10.0.2.{len(self.cluster.brokers)}:10911"
        slave = OrderedFakeBroker(self.cluster.network, name, address)
        for topic, route in self.cluster.routes.items():
            datas = [
                attrs.evolve(one, broker_addrs={**one.broker_addrs, 1: address}) if one.broker_name == name else one
                for one in route.broker_datas
            ]
            self.cluster.routes[topic] = attrs.evolve(route, broker_datas=datas)
        return slave

    def declare(self, groups: tuple[str, ...] = ("a", "b")) -> None:
        """Declare the topic, each queue by itself, without a head."""
        declared = OrderedTopic(self.topic, self.queues, groups)
        units = [Create(unit_path(self.topic, unit), encode_lists(Lists())) for unit in declared.units]
        self.run_to_end(self.operator.commit([Create(topic_path(self.topic), encode_topic(declared)), *units]))

    def put(self, lists: Lists, queue: int = 0) -> None:
        """Write a unit's lists as the agents of brokers would."""
        self.put_raw(encode_lists(lists), queue)

    def put_raw(self, data: bytes, queue: int = 0) -> None:
        self.run_to_end(self.operator.commit([Put(unit_path(self.topic, str(queue)), data, None)]))

    def head(self, broker: OrderedFakeBroker, epoch: int, queue: int = 0, *, before: tuple[Term, ...] = ()) -> None:
        """Make a broker the head: it knows first, then the coordinator tells."""
        for one in (self.a, self.b):
            one.heads.pop(queue, None)
        broker.heads[queue] = epoch
        self.put(Lists(epoch, (broker.name,), (*before, Term(broker.name, epoch))), queue)

    def live(self, group: str, *broker_ids: int) -> None:
        """Members of a group that are in touch with the coordinator, as long as the operator's session."""
        self.run_to_end(make_paths(self.operator, [f"{BROKERS}/{group}"]))
        for broker_id in broker_ids:
            member = encode_member(BrokerMember(f"10.0.2.{broker_id}:1"))
            self.run_to_end(self.operator.commit([Create(member_path(group, broker_id), member, ephemeral=True)]))
