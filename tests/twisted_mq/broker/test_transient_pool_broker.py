"""A broker whose records go to buffers first: what it acknowledges reaches consumers, and outlives a restart."""

from __future__ import annotations

from typing import Any

from twisted.internet import defer, reactor, task
from twisted.trial.unittest import TestCase

from twisted_mq.client.core.message import Message
from twisted_mq.client.producing.producer import Producer
from twisted_mq.testing import EmbeddedCluster


class TransientPoolBrokerTest(TestCase):
    async def test_messages_become_visible_after_their_commit(self) -> None:
        settings: dict[str, Any] = {
            "transient_store_pool_enable": True,
            "commit_interval_commit_log": 1,
            "commit_commit_log_thorough_interval": 1,
            "mapped_file_size_commit_log": 1 << 20,
        }
        cluster = EmbeddedCluster(reactor, broker_options=settings)
        self.addCleanup(lambda: defer.Deferred.fromCoroutine(cluster.stop()))
        await cluster.start()
        producer = Producer(reactor, "group", cluster.name_server)
        await producer.start()
        sent = await producer.send(Message("TopicTest", b"body"))
        await producer.stop()
        store = cluster.broker.controller.store
        while not store.max_offset_in_queue("TopicTest", sent.queue.queue_id):
            await task.deferLater(reactor, 0.01)
        self.assertEqual((store.max_offset_in_queue("TopicTest", sent.queue.queue_id), sent.queue_offset), (1, 0))
        await cluster.restart_broker()
        store = cluster.broker.controller.store
        self.assertEqual(store.max_offset_in_queue("TopicTest", sent.queue.queue_id), 1)
