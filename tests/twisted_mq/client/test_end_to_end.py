"""The client against this project's name server and broker over loopback sockets."""

from __future__ import annotations

from typing import Any

from twisted.internet import defer, reactor, task
from twisted.trial.unittest import TestCase

from twisted_mq.client import (
    ConsumeContext,
    ConsumeFromWhere,
    ConsumerOptions,
    ConsumeStatus,
    Message,
    Producer,
    PushConsumer,
    SendStatus,
)
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.testing.cluster import EmbeddedCluster


class EndToEnd(TestCase):
    timeout = 60

    def setUp(self) -> defer.Deferred[None]:
        return defer.Deferred.fromCoroutine(self._set_up())

    async def _set_up(self) -> None:
        self.cluster = EmbeddedCluster(reactor)
        await self.cluster.start()
        self.addCleanup(self._end, self.cluster)
        self.received: dict[str, list[MessageExt]] = {}

    def _end(self, part: Any) -> defer.Deferred[None]:
        return defer.maybeDeferred(defer.ensureDeferred, part.stop())

    async def producer(self, group: str = "producers") -> Producer:
        producer = Producer(reactor, group, self.cluster.name_server, ip="127.0.0.1")
        await producer.start()
        self.addCleanup(self._end, producer)
        return producer

    async def consumer(self, topic: str, name: str = "one", group: str = "g", **rest: Any) -> PushConsumer:
        options = ConsumerOptions(consume_from_where=ConsumeFromWhere.FIRST_OFFSET)

        def listen(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
            self.received.setdefault(name, []).extend(messages)
            return ConsumeStatus.CONSUME_SUCCESS

        listener = rest.pop("listener", listen)
        consumer = PushConsumer(
            reactor, group, self.cluster.name_server, listener=listener, options=options, ip="127.0.0.1"
        )
        consumer.subscribe(topic, **rest)
        await consumer.start()
        self.addCleanup(self._end, consumer)
        return consumer

    async def until(self, reached: Any) -> None:
        """Let the reactor run until `reached()`; the test's own timeout ends a vain wait."""
        while not reached():
            await task.deferLater(reactor, 0.02)

    def bodies(self, *names: str) -> list[bytes]:
        return sorted(message.body for name in names for message in self.received.get(name, []))

    def test_all_forms_of_sending_are_consumed(self) -> defer.Deferred[None]:
        async def run() -> None:
            producer = await self.producer()
            await self.consumer("Forms")
            result = await producer.send(Message("Forms", b"sync", tags="A", keys="k1"))
            self.assertIs(result.status, SendStatus.SEND_OK)
            together = await defer.gatherResults([producer.send(Message("Forms", b"async %d" % n)) for n in range(20)])
            self.assertEqual(len({one.msg_id for one in together}), 20)
            await producer.send_batch([Message("Forms", b"batch %d" % n) for n in range(5)])
            await producer.send_by_key(Message("Forms", b"keyed"), "order-1")
            await producer.send_one_way(Message("Forms", b"one-way"))
            await producer.send(Message("Forms", b"large" * 2000))
            expected = [b"sync", b"keyed", b"one-way", b"large" * 2000]
            expected += [b"async %d" % n for n in range(20)] + [b"batch %d" % n for n in range(5)]
            await self.until(lambda: len(self.bodies("one")) >= len(expected))
            self.assertEqual(self.bodies("one"), sorted(expected))
            sync = next(one for one in self.received["one"] if one.body == b"sync")
            self.assertEqual((sync.tags, sync.keys, sync.unique_key), ("A", ["k1"], result.msg_id))
            self.assertEqual((sync.msg_id, sync.queue_offset), (result.offset_msg_id, result.queue_offset))

        return defer.Deferred.fromCoroutine(run())

    def test_tags_select(self) -> defer.Deferred[None]:
        async def run() -> None:
            producer = await self.producer()
            await self.consumer("Tags", expression="A || C")
            for tag in "ABCD":
                await producer.send(Message("Tags", tag.encode(), tags=tag))
            await self.until(lambda: len(self.bodies("one")) >= 2)
            self.assertEqual(self.bodies("one"), [b"A", b"C"])

        return defer.Deferred.fromCoroutine(run())

    def test_members_share_the_queues_when_one_joins_and_when_one_leaves(self) -> defer.Deferred[None]:
        async def run() -> None:
            producer = await self.producer()
            await producer.send(Message("Shared", b"first"))
            one = await self.consumer("Shared", "one")
            await self.until(lambda: self.owned(one) == 4)
            two = await self.consumer("Shared", "two")
            await self.until(lambda: (self.owned(one), self.owned(two)) == (2, 2))
            for number in range(20):
                await producer.send(Message("Shared", b"%02d" % number))
            await self.until(lambda: len(set(self.bodies("one", "two"))) == 21)
            self.assertGreaterEqual(len(self.bodies("two")), 10)
            await one.stop()
            await self.until(lambda: self.owned(two) == 4)

        return defer.Deferred.fromCoroutine(run())

    def owned(self, consumer: PushConsumer) -> int:
        return len([queue for queue in consumer.queues if not queue.topic.startswith("%RETRY%")])

    def test_message_to_consume_later_comes_again_with_its_tries_counted(self) -> defer.Deferred[None]:
        tries: list[tuple[str, int]] = []

        def listen(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
            tries.extend((one.topic, one.reconsume_times) for one in messages)
            context.delay_level_when_next_consume = 1
            return ConsumeStatus.RECONSUME_LATER if len(tries) < 2 else ConsumeStatus.CONSUME_SUCCESS

        async def run() -> None:
            producer = await self.producer()
            await self.consumer("Again", listener=listen)
            await producer.send(Message("Again", b"x"))
            await self.until(lambda: len(tries) == 2)
            self.assertEqual(tries, [("Again", 0), ("Again", 1)])

        return defer.Deferred.fromCoroutine(run())

    def test_offsets_survive_a_restart_of_the_consumer_and_of_the_broker(self) -> defer.Deferred[None]:
        async def run() -> None:
            producer = await self.producer()
            await producer.send(Message("Kept", b"before"))
            consumer = await self.consumer("Kept", "one")
            await self.until(lambda: self.bodies("one") == [b"before"])
            await consumer.stop()
            await self.cluster.restart_broker()
            again = await self.producer("others")
            await again.send(Message("Kept", b"after"))
            await self.consumer("Kept", "two")
            await self.until(lambda: self.bodies("two"))
            self.assertEqual(self.bodies("two"), [b"after"])

        return defer.Deferred.fromCoroutine(run())
