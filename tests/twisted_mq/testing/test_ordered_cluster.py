"""The embedded broker groups on real sockets."""

from __future__ import annotations

import os
from typing import Any

from twisted.internet import defer, reactor
from twisted.trial.unittest import TestCase

from twisted_mq.client import Message, OrderedProducer
from twisted_mq.coordination.address import parse_address
from twisted_mq.coordination.connect import coordinator_for
from twisted_mq.coordination.settings import CoordinatorSettings
from twisted_mq.testing import OrderedCluster


class OrderedClusterTest(TestCase):
    timeout = 120

    async def started(self, **settings: Any) -> OrderedCluster:
        cluster = OrderedCluster(reactor, **settings)
        self.addCleanup(lambda: defer.Deferred.fromCoroutine(cluster.stop()))
        return await cluster.start()

    async def test_groups_take_ordered_sends_of_clients_that_know_the_name_server_alone(self) -> None:
        cluster = await self.started(groups=("east",))
        await cluster.declare("Orders", queues=2)
        producer = OrderedProducer(reactor, "billing", cluster.name_server)
        await producer.start()
        self.addCleanup(producer.stop)
        result = await producer.send(Message("Orders", b"paid"), key="order-1")
        self.assertEqual((result.queue.broker_name, result.queue_offset), ("east", 0))

    async def test_slaves_are_in_touch_with_the_coordinator_before_any_topic_is_ordered(self) -> None:
        cluster = await self.started(groups=("east",))
        settings = CoordinatorSettings(parse_address(cluster.coordinator_address))
        coordinator = coordinator_for(settings, reactor)
        await coordinator.start()
        self.addCleanup(coordinator.stop)
        seen: defer.Deferred[None] = defer.Deferred()

        async def look() -> None:
            if await coordinator.children("/brokers/east") == ("1",) and not seen.called:
                seen.callback(None)

        self.addCleanup(coordinator.watch("/brokers/east", lambda: defer.Deferred.fromCoroutine(look())))
        await seen

    async def test_slaves_know_an_ordered_topic_before_it_takes_sends(self) -> None:
        cluster = await self.started(groups=("east",))
        await cluster.declare("Orders", queues=3)
        known = [broker.controller.topics.get("Orders") for broker in cluster.brokers.values()]
        self.assertEqual([config and config.order_mode for config in known], ["queues", "queues"])
        self.assertEqual([config and config.read_queue_nums for config in known], [3, 3])

    async def test_stores_go_with_the_cluster(self) -> None:
        cluster = await self.started(groups=("east",))
        path = cluster.store_path
        self.assertEqual(sorted(os.listdir(path)), ["east-0", "east-1"])
        await cluster.stop()
        self.assertFalse(os.path.exists(path))
