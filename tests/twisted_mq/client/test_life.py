"""Started and stopped many times (MQ_LIFE_ROUNDS) on Twisted's own reactor: no socket, timer, thread or file is left."""

from __future__ import annotations

import os
from typing import Any

from twisted.internet import defer, reactor, threads
from twisted.trial.unittest import TestCase

from tests.support import faces
from twisted_mq.client import ConsumeContext, ConsumeStatus, LitePullConsumer, Message, Producer, PushConsumer
from twisted_mq.protocol.messages.message import MessageExt

ROUNDS = int(os.environ.get("MQ_LIFE_ROUNDS", "100"))


def listen(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
    return ConsumeStatus.CONSUME_SUCCESS


def left_in(reactor: Any) -> dict[str, Any]:
    """Return everything that a program has open, except the threads of the servers' loop, which grow in number with use."""
    return {
        "timers": len(reactor.getDelayedCalls()),
        "sockets": len(reactor.getReaders()) + len(reactor.getWriters()),
        "threads": sorted(name for name in faces.threads() if not name.startswith("asyncio_")),
        "files": faces.open_files(),
    }


class Lives(TestCase):
    timeout = 900
    maxDiff = None

    def setUp(self) -> None:
        self.cluster = faces.ServedCluster()  # on a thread of its own: the reactor has the client's part alone
        self.addCleanup(self.cluster.stop)
        self.topic = self.cluster.topic()

    async def live(self) -> None:
        producer = Producer(reactor, "g", self.cluster.namesrv)
        push = PushConsumer(reactor, "g", self.cluster.namesrv, listener=listen)
        pull = LitePullConsumer(reactor, "g-2", self.cluster.namesrv)
        push.subscribe(self.topic)
        pull.subscribe(self.topic)
        members = (producer, push, pull)
        for member in members:
            await member.start()
        await producer.send(Message(self.topic, b"x"))
        for member in members:
            await member.stop()

    async def run_lives(self) -> None:
        await self.live()
        await threads.deferToThread(self.cluster.settle)
        before = left_in(reactor)
        for _ in range(ROUNDS):
            await self.live()
        await threads.deferToThread(self.cluster.settle)
        self.assertEqual(left_in(reactor), before)

    def test_many_starts_and_stops_leave_nothing_behind(self) -> defer.Deferred[None]:
        return defer.Deferred.fromCoroutine(self.run_lives())
