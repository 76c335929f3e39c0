"""The embedded cluster on real sockets: what tests of other parts and `mq up` rely on."""

from __future__ import annotations

import os
import tempfile
from typing import Any

from twisted.internet import defer, reactor
from twisted.trial.unittest import TestCase

from twisted_mq.broker.periodic_work import PeriodicWork
from twisted_mq.client.core.message import Message
from twisted_mq.client.producing.producer import Producer
from twisted_mq.protocol.bodies import ClusterInfo, decode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.client import RemotingClient
from twisted_mq.remoting.listen import PortError
from twisted_mq.testing import EmbeddedCluster


async def brokers_of(name_server: str) -> dict[int, str]:
    """Return the name server's entry of broker-a."""
    client = RemotingClient(reactor)
    try:
        answer = await client.invoke(name_server, RemotingCommand.request(RequestCode.GET_BROKER_CLUSTER_INFO))
    finally:
        client.close()
    return decode_body(ClusterInfo, answer.body).broker_addr_table["broker-a"].broker_addrs


class EmbeddedClusterTest(TestCase):
    def setUp(self) -> None:
        self.folder = self.mktemp()
        os.mkdir(self.folder)
        self.patch(tempfile, "tempdir", self.folder)

    def cluster(self, *arguments: Any, **settings: Any) -> EmbeddedCluster:
        cluster = EmbeddedCluster(reactor, *arguments, **settings)
        self.addCleanup(lambda: defer.Deferred.fromCoroutine(cluster.stop()))
        return cluster

    async def test_broker_is_registered_when_start_returns(self) -> None:
        cluster = await self.cluster().start()
        self.assertEqual(await brokers_of(cluster.name_server), {0: cluster.broker_address})

    async def test_temporary_store_is_gone_after_stop(self) -> None:
        cluster = await self.cluster().start()
        path = cluster.store_path
        self.assertTrue(os.path.isdir(os.path.join(path, "commitlog")))
        await cluster.stop()
        self.assertFalse(os.path.exists(path))

    async def test_named_store_stays_and_is_closed(self) -> None:
        path = self.mktemp()
        settings = {"mapped_file_size_commit_log": 1024 * 1024}
        cluster = await self.cluster(path, broker_options=settings).start()
        self.assertTrue(os.path.exists(os.path.join(path, "abort")))
        await cluster.stop()
        await cluster.stop()
        self.assertEqual((os.path.isdir(path), os.path.exists(os.path.join(path, "abort"))), (True, False))

    async def test_messages_outlive_a_restart_of_the_broker(self) -> None:
        cluster = await self.cluster().start()
        await self.send(cluster, b"before")
        await cluster.restart_broker()
        self.assertEqual(await brokers_of(cluster.name_server), {0: cluster.broker_address})
        await self.send(cluster, b"after")
        store = cluster.broker.controller.store
        counts = [store.max_offset_in_queue("T", queue_id) for queue_id in store.queue_ids("T")]
        self.assertEqual(sum(counts), 2)

    async def send(self, cluster: EmbeddedCluster, body: bytes) -> None:
        producer = Producer(reactor, "g", cluster.name_server)
        await producer.start()
        try:
            await producer.send(Message("T", body))
        finally:
            await producer.stop()

    async def test_a_busy_port_takes_everything_down_again(self) -> None:
        first = await self.cluster().start()
        second = self.cluster(broker_port=first.broker.port)
        with self.assertRaises(PortError):
            await second.start()
        self.assertEqual(os.listdir(self.folder), [os.path.basename(first.store_path)])
        self.assertNotIn(str(second.namesrv.port), first.name_server)
        third = await self.cluster(namesrv_port=second.namesrv.port).start()
        self.assertEqual(third.namesrv.port, second.namesrv.port)

    async def test_a_broker_that_fails_late_is_taken_down_with_its_temporary_store(self) -> None:
        def fail(work: PeriodicWork, *_: object, **__: bool) -> None:
            raise ZeroDivisionError

        self.patch(PeriodicWork, "start", fail)
        cluster = self.cluster()
        with self.assertRaises(ZeroDivisionError):
            await cluster.start()
        self.assertEqual(os.listdir(self.folder), [])
        self.flushLoggedErrors(AttributeError)

    async def test_a_server_that_cannot_stop_keeps_nothing_else_up(self) -> None:
        cluster = await self.cluster().start()
        path, stop = cluster.store_path, cluster.broker.stopService

        def fail() -> defer.Deferred[None]:
            def then_fail(_: None) -> None:
                raise OSError("disk gone")

            return stop().addCallback(then_fail)

        self.patch(cluster.broker, "stopService", fail)
        with self.assertRaisesRegex(OSError, "disk gone"):
            await cluster.stop()
        self.assertFalse(os.path.exists(path))
        second = await self.cluster(namesrv_port=cluster.namesrv.port).start()
        self.assertEqual(second.namesrv.port, cluster.namesrv.port)

    async def test_options_win_over_the_defaults(self) -> None:
        cluster = await self.cluster(broker_options={"broker_name": "broker-a", "default_topic_queue_nums": 2}).start()
        self.assertEqual(cluster.broker.options.default_topic_queue_nums, 2)
