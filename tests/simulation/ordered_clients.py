"""Ordered producers and consumers, active and standing by, and the operator who declares and moves: each a process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet import defer, task
from twisted.python import failure

from tests.simulation.clients import ClientNode
from tests.simulation.coordinator import CoordinatorNode
from tests.simulation.nodes import Node
from tests.simulation.ordered_observer import LATE_GROUP, OrderedObserver
from tests.simulation.world import World
from twisted_mq.client import ConsumeOrderlyContext, ConsumeOrderlyStatus, Message, SendResult
from twisted_mq.client.core.errors import EXPECTED_ERRORS
from twisted_mq.client.ordered.group_states import read_groups
from twisted_mq.client.ordered.ordered_consumer import OrderedConsumer
from twisted_mq.client.ordered.ordered_options import OrderedConsumerOptions, OrderedOptions
from twisted_mq.client.ordered.ordered_producer import OrderedProducer
from twisted_mq.client.ordered.pipeline import Window
from twisted_mq.coordination.interfaces import CoordinationError, Create, ICoordinator, Put
from twisted_mq.ordering.changes import change
from twisted_mq.ordering.declaring import declare
from twisted_mq.ordering.documents import GroupWish, encode_group
from twisted_mq.ordering.lists import OrderedTopic
from twisted_mq.ordering.paths import group_path
from twisted_mq.ordering.rules import Moved, Refused
from twisted_mq.protocol.messages.message import MessageExt

MOST_OPEN = 30
"""Sends of one producer that are not answered yet."""


class OrderedClientNode(ClientNode):
    """A client of ordered topics."""

    observer: OrderedObserver
    coordinator: CoordinatorNode
    topics: list[OrderedTopic]

    @property
    def settings(self) -> dict[str, Any]:
        return {
            **super().settings,
            "coordinator": f"{self.coordinator.name}:2181",
            "connect_coordinator": lambda _: self.coordinator.client(self.host),
        }


class LineNode(ClientNode):
    """A producer of numbered messages: each of its lines is consumed in its order."""

    observer: OrderedObserver
    is_quiet = False

    def _told(self, sent: str, result: SendResult, number: int = 0) -> None:
        """Note that a message was acknowledged. In a batch it is the message of that number."""
        queue, message_id = result.queue, result.offset_msg_id.split(",")[number]
        self.observer.was_acknowledged(
            sent, queue.broker_name, queue.topic, queue.queue_id, result.queue_offset + number, message_id
        )

    def _gone(self) -> None:
        super()._gone()
        self.observer.producer_is_gone(f"{self.name}.")


class OrderedProducingNode(OrderedClientNode, LineNode):
    """Sends several at a time, to all queues, and never the same twice; another one stands by, of its group or of another."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._options = OrderedOptions(
            stand_by=self._source.random() < 0.7,
            send_timeout_seconds=self._source.choice((8.0, 30.0, 90.0)),
            window=Window(messages=self._source.choice((1, 4, 256))),
        )

    async def _work(self) -> None:
        self._made = dict.fromkeys(((one.topic, queue) for one in self.topics for queue in range(one.queues)), 0)
        self._open = 0
        group = "producers" if self.world.seed % 2 else f"producers-of-{self.name}"
        self._producer = OrderedProducer(self.host, group, options=self._options, **self.settings)
        await self._producer.start()
        while not self.is_quiet:
            await self._rest(0.5, 5.0)
            for _ in range(self._source.choice((1, 1, 3, 8))):
                if self._open < MOST_OPEN:
                    self._run(self._send(*self._source.choice(sorted(self._made))))

    def probe(self) -> None:
        """Check that a standby producer is notified that it is one."""
        for topic, queue in sorted(self._made):
            self._run(self._send(topic, queue))

    async def _send(self, topic: str, queue: int) -> None:
        self._open += 1
        self._made[topic, queue] += 1
        line, number = f"{self.name}.{self._lives}/{topic}/{queue}", self._made[topic, queue]
        sent = self.observer.sends_in_order(line, topic, number)
        message = Message(topic, f"{sent} ".encode().ljust(self._source.randrange(30, 400), b"."))
        self.world.told("send", message=sent)
        try:
            self._told(sent, await self._producer.send(message, queue))
        except EXPECTED_ERRORS as error:
            self.world.told("not-sent", message=sent, error=type(error).__name__)
            self.observer.was_not_sent(sent)
        self._open -= 1


class OrderedConsumingNode(OrderedClientNode):
    """Consumes all ordered topics; now and then a message is refused, or its listener takes long."""

    group = "audit"

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._options = OrderedConsumerOptions(
            consume_message_batch_max_size=self._source.choice((1, 1, 4)), pull_batch_size=self._source.choice((2, 32))
        )

    async def _work(self) -> None:
        consumer = OrderedConsumer(self.host, self.group, options=self._options, **self.settings)
        for one in self.topics:
            consumer.subscribe(one.topic)
        consumer.listen(self._consume)
        while True:
            try:
                await consumer.start()
                return
            except EXPECTED_ERRORS as error:
                self.world.told("not-started", host=self.name, error=type(error).__name__)
                await self._rest(1.0, 3.0)

    async def _consume(self, messages: list[MessageExt], context: ConsumeOrderlyContext) -> ConsumeOrderlyStatus:
        with self.observer.call_of_listener(f"{self.name}.{self._lives}", context.queue.topic, messages):
            return await self._listen(messages, context)

    async def _listen(self, messages: list[MessageExt], context: ConsumeOrderlyContext) -> ConsumeOrderlyStatus:
        for message in messages:
            self.observer.was_consumed_in_order(self.group, context.queue, message, self.name)
        chance = 0.5 if self.observer.is_probed else self._source.random()
        if chance < 0.15:
            await self._rest(0.1, 8.0)
        if chance > 0.97:
            return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
        self.observer.was_done(self.group, messages)
        return ConsumeOrderlyStatus.SUCCESS


class OtherConsumingNode(OrderedConsumingNode):
    group = "billing"


class LateConsumingNode(OrderedConsumingNode):
    """A consumer of a new group. It gets the messages that are sent from the time when all brokers count the group."""

    group = LATE_GROUP


class OperatorNode(Node):
    """Operator with `mq order`; it does not fail."""

    def __init__(self, world: World, name: str, coordinator: CoordinatorNode) -> None:
        super().__init__(world, name)
        self._coordinator_node = coordinator
        self._wishes: dict[str, bool] = {}

    def _begin(self) -> None:
        self._coordinator: ICoordinator = self._coordinator_node.client(self.host)
        self._coordinator.start().addErrback(lambda reason: reason.trap(CoordinationError))

    def _ask(self, text: str, work: Callable[[], Any]) -> None:
        self.world.told("operator", wants=text)
        asked = defer.ensureDeferred(work())
        asked.addErrback(self._not_done, text)

    def _not_done(self, reason: failure.Failure, text: str) -> None:
        reason.trap(CoordinationError, Refused)
        self.world.told("not-done", operator=text, error=reason.type.__name__)

    def declare(self, topic: OrderedTopic) -> None:
        self._ask(f"create/{topic.topic}", lambda: declare(self._coordinator, topic))

    def wish(self, group: str, *, retired: bool) -> None:
        """Retire a group, or restore it."""
        self._wishes[group] = retired
        self._ask(f"{'retire' if retired else 'restore'}/{group}", lambda: self._wish(group, retired))

    async def _wish(self, group: str, retired: bool) -> None:
        """Until it is noted, or something else is wanted."""
        data = encode_group(GroupWish(retired))
        while self._wishes[group] is retired:
            try:
                node = await self._coordinator.read(group_path(group))
                change = Create(group_path(group), data) if node is None else Put(group_path(group), data, None)
                await self._coordinator.commit([change])
                return
            except CoordinationError:
                await task.deferLater(self.host, 1.0)

    def move(self, topic: OrderedTopic, unit: str, group: str) -> None:
        self._ask(f"move/{topic.topic}/{unit}/{group}", lambda: self._move(topic, unit, group))

    async def _move(self, topic: OrderedTopic, unit: str, group: str) -> None:
        states = await read_groups(self._coordinator, topic.groups)
        await change(self._coordinator, topic.topic, unit, Moved(group), lambda one: states[one].obstacle())
