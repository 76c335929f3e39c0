"""Ordered producers and consumers with real brokers, which fail and come back under load."""

from __future__ import annotations

import os
from typing import Any

from twisted.internet import defer, reactor
from twisted.internet.error import ConnectionRefusedError

from tests.support.ordered_cluster import TOPIC, OrderedClusterCase
from twisted_mq.client import Message, NotLeader, OrderedOptions, Producer
from twisted_mq.client.core.errors import BrokerError, SendFailed
from twisted_mq.remoting.client import tcp_endpoint
from twisted_mq.storage.tools.order_audit import audit_order
from twisted_mq.storage.tools.order_marks import read_marks


class CutLink:
    """Connections of clients over TCP; those to the addresses that are cut break, and new ones are refused."""

    def __init__(self) -> None:
        self._tcp = tcp_endpoint(reactor, 3.0)
        self._made: list[tuple[str, Any]] = []
        self._cut: set[str] = set()

    def cut(self, address: str) -> None:
        self._cut.add(address)
        for other, made in self._made:
            if other == address:
                made.transport.abortConnection()

    def connect(self, host: str, port: int) -> Any:
        address, endpoint = f"{host}:{port}", self._tcp(host, port)

        class Endpoint:
            def connect(_, factory: Any) -> Any:
                if address in self._cut:
                    return defer.fail(ConnectionRefusedError())
                return endpoint.connect(factory).addCallback(lambda made: self._made.append((address, made)) or made)

        return Endpoint()


class WithBrokers(OrderedClusterCase):
    async def test_order_goes_on_through_the_loss_and_return_of_a_master(self) -> None:
        await self.started()
        await self.declared(2)
        producer, _ = await self.producer(), await self.consumer()
        await defer.gatherResults(self.send(producer, 0, 300))
        sends = self.send(producer, 300, 900)
        await self.cluster.stop_broker("broker-a", 0)
        sends += self.send(producer, 900, 1000)
        results = await defer.gatherResults(sends)
        self.assertEqual(results[-1].queue.broker_name, "broker-b")
        await self.consumed(1000)
        state = await self.state_with(lambda state: all(len(unit.lists.consume) == 1 for unit in state.units))
        self.assertEqual({unit.lists.consume[0].group for unit in state.units}, {"broker-b"})
        await self.cluster.start_broker("broker-a", 0)
        await self.state_with(lambda state: all(unit.lists.send == ("broker-b", "broker-a") for unit in state.units))
        await self.cluster.stop_broker("broker-b", 1)
        results = await defer.gatherResults(self.send(producer, 1000, 1100))
        self.assertEqual(results[-1].queue.broker_name, "broker-a")
        await self.consumed(1100)
        stores = [os.path.join(self.cluster.store_path, name) for name in os.listdir(self.cluster.store_path)]
        marks = read_marks([path for path in stores if "broker" in path], lambda amount: None)
        self.assertEqual((audit_order(marks).faults, marks.problems), ((), []))

    async def test_queue_moves_and_its_slave_is_consumed_while_clients_cannot_reach_the_master(self) -> None:
        """The brokers of both groups are well, and reach each other and the coordinator."""
        await self.started()
        await self.declared()
        link, consumers_link = CutLink(), CutLink()
        producer = await self.producer(connect=link.connect)
        await self.consumer(connect=consumers_link.connect)
        await defer.gatherResults(self.send(producer, 0, 50))
        await self.consumed(50)
        state = await self.state_with(lambda state: True)
        master = state.groups["broker-a"].members[0].address
        consumers_link.cut(master)
        await defer.gatherResults(self.send(producer, 50, 70))
        await self.consumed(70)
        link.cut(master)
        results = await defer.gatherResults(self.send(producer, 70, 100))
        self.assertEqual(results[-1].queue.broker_name, "broker-b")
        await self.consumed(100)
        state = await self.state_with(
            lambda state: [term.group for term in state.units[0].lists.consume] == ["broker-b"]
        )
        self.assertEqual(state.units[0].lists.send, ("broker-b", "broker-a"))

    async def test_standbys_take_over(self) -> None:
        await self.started()
        await self.declared()
        first, second = await self.producer(), await self.producer(options=OrderedOptions(stand_by=True))
        active, _ = await self.consumer(), await self.consumer()
        await defer.gatherResults(self.send(first, 0, 50))
        waiting = defer.gatherResults(self.send(second, 50, 100))
        await self.consumed(50)
        self.assertFalse(waiting.called)
        await first.stop()
        await active.stop()
        await waiting
        await self.consumed(100)

    async def test_other_producers_are_refused(self) -> None:
        await self.started()
        await self.declared()
        producer = await self.producer()
        await defer.gatherResults(self.send(producer, 0, 1))
        other = await self.producer()
        await self.assertFailure(other.lead(TOPIC).addTimeout(0.2, reactor), defer.TimeoutError)
        await self.assertFailure(other.send(Message(TOPIC, b"x")), NotLeader)
        plain = Producer(reactor, "plain", self.cluster.name_server)
        await plain.start()
        self.addCleanup(plain.stop)
        error = await self.assertFailure(plain.send(Message(TOPIC, b"x")), SendFailed)
        self.assertIsInstance(error.__cause__, BrokerError)
        self.assertIn("OrderedProducer", str(error))
