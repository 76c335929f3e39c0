"""Real brokers with ordered topics, in one process on the real reactor, and what tests ask of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from twisted.internet import defer, reactor
from twisted.internet.task import deferLater
from twisted.trial.unittest import TestCase

from twisted_mq.admin.ordered_states import TopicState
from twisted_mq.admin.ordered_topics import read_state
from twisted_mq.cli.admin.calls import AdminContext
from twisted_mq.cli.ordered import declare, groups
from twisted_mq.cli.ordered.session import OrderCommandSession
from twisted_mq.client import ConsumeOrderlyStatus, Message, OrderedConsumer, OrderedProducer, SendResult
from twisted_mq.coordination.interfaces import ICoordinator
from twisted_mq.remoting.client import RemotingClient
from twisted_mq.testing import OrderedCluster

TOPIC = "Orders"


class OrderedClusterCase(TestCase):
    """`cluster` has two groups; `session` is what `mq order` works with. `seen` are the bodies that consumers got."""

    timeout = 120

    async def started(self, **settings: Any) -> None:
        self.cluster = OrderedCluster(reactor, **settings)
        self.addCleanup(lambda: defer.Deferred.fromCoroutine(self.cluster.stop()))
        await self.cluster.start()
        client = RemotingClient(reactor)
        self.addCleanup(client.close)
        self.said: list[str] = []
        admin = AdminContext(
            client=client,
            name_servers=[self.cluster.name_server],
            echo=self.said.append,
            warn=self.said.append,
            now_ms=lambda: int(time.time() * 1000),
            sleep=self.sleep,
        )
        self.session = OrderCommandSession(admin, await self.coordinator())
        self.seen: list[str] = []

    def sleep(self, seconds: float) -> defer.Deferred[None]:
        return deferLater(reactor, seconds)

    async def coordinator(self) -> ICoordinator:
        """Open another session."""
        coordinator = self.cluster.coordinator()
        await coordinator.start()
        self.addCleanup(coordinator.stop)
        return coordinator

    async def until(self, done: Callable[[], bool]) -> None:
        """Wait for something; the test's time limit ends it."""
        while not done():
            await self.sleep(0.05)

    async def declared(self, queues: int = 1, *, together: bool = False) -> None:
        """The topic, once broker-a is the head of each queue, and broker-b waits."""
        declared = declare.declaration(TOPIC, queues, "broker-a,broker-b", together=together)
        await declare.create(self.session, declared)
        await self.state_with(lambda state: all(len(unit.lists.send) == 2 for unit in state.units))
        for unit in declared.units:
            await groups.move(self.session, TOPIC, unit, "broker-a")
        await self.state_with(
            lambda state: all(
                unit.lists.send == ("broker-a", "broker-b") and len(unit.lists.consume) == 1 for unit in state.units
            )
        )

    async def state_with(self, wanted: Callable[[TopicState], bool]) -> TopicState:
        """The topic's state when it is as wanted."""
        while not wanted(state := await read_state(self.session, TOPIC)):
            await self.sleep(0.1)
        return state

    async def producer(self, **arguments: Any) -> OrderedProducer:
        coordinator = await self.coordinator()
        producer = OrderedProducer(reactor, "billing", self.cluster.name_server, coordinator=coordinator, **arguments)
        await producer.start()
        self.addCleanup(lambda: producer.stop(0))
        return producer

    async def consumer(self, **arguments: Any) -> OrderedConsumer:
        coordinator = await self.coordinator()
        consumer = OrderedConsumer(reactor, "audit", self.cluster.name_server, coordinator=coordinator, **arguments)
        consumer.subscribe(TOPIC)
        consumer.listen(self.listener)
        await consumer.start()
        self.addCleanup(lambda: consumer.stop(0))
        return consumer

    def listener(self, messages: list[Any], context: Any) -> ConsumeOrderlyStatus:
        self.seen += [message.body.decode() for message in messages]
        return ConsumeOrderlyStatus.SUCCESS

    def send(self, producer: OrderedProducer, begin: int, end: int) -> list[defer.Deferred[SendResult]]:
        """The numbers as messages of queue 0."""
        return [producer.send(Message(TOPIC, str(number).encode()), queue=0) for number in range(begin, end)]

    async def consumed(self, count: int) -> None:
        """Wait until all numbers below `count` came, in order except repeats."""
        expected = [str(number) for number in range(count)]
        await self.until(lambda: len(set(self.seen)) >= count)
        self.assertEqual(list(dict.fromkeys(self.seen)), expected)
