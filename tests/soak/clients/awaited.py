"""The load through the two faces whose calls are awaited: Deferreds on Twisted's own reactor, and asyncio."""

from __future__ import annotations

import abc
import asyncio
import random
import time
from collections.abc import Coroutine, Iterable
from typing import Any

from twisted.internet import defer, reactor, task

from tests.soak.clients.ledger import KEYS, POLLING, STEADY, VISITOR, Ledger
from tests.soak.clients.work import (
    CONSUMER_OPTIONS,
    DRAIN_SECONDS,
    PAUSE_SECONDS,
    PRODUCER_OPTIONS,
    SLOW_SECONDS,
    Work,
)
from twisted_mq import aio, client
from twisted_mq.client import ConsumeContext, ConsumeStatus, RocketMQError
from twisted_mq.client.consuming.deliveries import DeliveryEnded
from twisted_mq.protocol.messages.message import MessageExt

Steps = Coroutine[Any, Any, None]


class AwaitedLoad(abc.ABC):
    """A load until `run` ends: steady members, and visitors that come and go beside them."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._ledger: Ledger = work.ledger
        self._ended = False

    # what differs

    @abc.abstractmethod
    def _producer(self, group: str) -> Any: ...

    @abc.abstractmethod
    def _listening(self) -> Any:
        """A consumer whose listener takes messages."""

    @abc.abstractmethod
    def _poller(self) -> Any: ...

    @abc.abstractmethod
    async def _sleep(self, seconds: float) -> None: ...

    @abc.abstractmethod
    async def _together(self, steps: Iterable[Steps]) -> None: ...

    def _steady(self) -> tuple[Any, list[Steps]]:
        """The consumer that stays, and what takes its messages beside its listener."""
        return self._listening(), []

    # what does not

    async def run(self, seconds: float) -> None:
        """For so long, and until all is consumed."""
        producer, poller = self._producer(STEADY), self._poller()
        consumer, taking = self._steady()
        members = (producer, consumer, poller)
        for member in members:
            await member.start()
        await self._together([self._load(producer, members, seconds), self._poll(poller), *taking])

    async def _load(self, producer: Any, members: Iterable[Any], seconds: float) -> None:
        until = time.monotonic() + seconds
        await self._together([self._visits(until), *(self._send(producer, key, until) for key in range(KEYS))])
        drained = time.monotonic() + DRAIN_SECONDS
        while self._ledger.missing and time.monotonic() < drained:
            await self._sleep(PAUSE_SECONDS)
        self._ended = True
        for member in members:
            await member.stop()

    async def _send(self, producer: Any, key: int, until: float) -> None:
        while time.monotonic() < until:
            await self._send_one(producer, key)
            await self._sleep(PAUSE_SECONDS)

    async def _send_one(self, producer: Any, key: int) -> None:
        sending = self._ledger.begin(key)
        try:
            self._ledger.end(sending, await producer.send_by_key(sending.message, key))
        except RocketMQError as error:
            self._ledger.end(sending, error)

    async def _visits(self, until: float) -> None:
        chance = random.Random(1)
        while time.monotonic() < until:
            await self._visit(chance.uniform(0.2, 4))

    async def _visit(self, seconds: float) -> None:
        """A member of each kind, for a while."""
        producer, poller = self._producer("visitors"), self._poller()
        members = (producer, self._listening(), poller)
        for member in members:
            await member.start()
        await self._send_one(producer, VISITOR)
        leaves = time.monotonic() + seconds
        while time.monotonic() < leaves:
            await self._poll_once(poller)
        for member in members:
            await member.stop()

    async def _poll(self, poller: Any) -> None:
        while not self._ended:
            await self._poll_once(poller)

    async def _poll_once(self, poller: Any) -> None:
        for message in await poller.poll(0.2):
            self._ledger.took(POLLING, message.body)

    async def _on_messages(self, messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        for message in messages:
            if self._ledger.took(STEADY, message.body):
                await self._sleep(SLOW_SECONDS)
        return ConsumeStatus.CONSUME_SUCCESS


class DeferredLoad(AwaitedLoad):
    """With Deferreds."""

    def _producer(self, group: str) -> client.Producer:
        return client.Producer(reactor, group, self._work.namesrv, options=PRODUCER_OPTIONS)

    def _listening(self) -> client.PushConsumer:
        consumer = client.PushConsumer(
            reactor, self._work.group(STEADY), self._work.namesrv, listener=self._on_messages, options=CONSUMER_OPTIONS
        )
        consumer.subscribe(self._work.topic)
        return consumer

    def _poller(self) -> client.LitePullConsumer:
        poller = client.LitePullConsumer(
            reactor, self._work.group(POLLING), self._work.namesrv, options=CONSUMER_OPTIONS
        )
        poller.subscribe(self._work.topic)
        return poller

    async def _sleep(self, seconds: float) -> None:
        await task.deferLater(reactor, seconds)

    async def _together(self, steps: Iterable[Steps]) -> None:
        running = [defer.Deferred.fromCoroutine(one) for one in steps]
        await defer.gatherResults(running, consumeErrors=True)


class AsyncioLoad(AwaitedLoad):
    """With asyncio; what stays iterates, what comes and goes has listeners."""

    def _producer(self, group: str) -> aio.Producer:
        return aio.Producer(self._work.namesrv, group=group, options=PRODUCER_OPTIONS)

    def _listening(self) -> aio.PushConsumer:
        topics = {self._work.topic: "*"}
        return aio.PushConsumer(
            self._work.namesrv,
            group=self._work.group(STEADY),
            topics=topics,
            listener=self._on_messages,
            options=CONSUMER_OPTIONS,
        )

    def _steady(self) -> tuple[aio.PushConsumer, list[Steps]]:
        topics = {self._work.topic: "*"}
        consumer = aio.PushConsumer(
            self._work.namesrv, group=self._work.group(STEADY), topics=topics, options=CONSUMER_OPTIONS
        )
        return consumer, [self._take(consumer) for _ in range(2)]

    async def _take(self, consumer: aio.PushConsumer) -> None:
        async for message in consumer:
            try:
                await message.ack()
            except DeliveryEnded:
                continue
            if self._ledger.took(STEADY, message.body):
                await self._sleep(SLOW_SECONDS)

    def _poller(self) -> aio.LitePullConsumer:
        topics = {self._work.topic: "*"}
        return aio.LitePullConsumer(
            self._work.namesrv, group=self._work.group(POLLING), topics=topics, options=CONSUMER_OPTIONS
        )

    async def _sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _together(self, steps: Iterable[Steps]) -> None:
        async with asyncio.TaskGroup() as group:
            for one in steps:
                group.create_task(one)
