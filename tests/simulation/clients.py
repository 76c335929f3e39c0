"""The workload: producers and consumers of the client library, each a process of its own, that tell the observer."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Coroutine
from typing import Any

from twisted.internet import defer, task

from tests.simulation.nodes import Node
from tests.simulation.observer import ORDERED, PLAIN, Observer
from tests.simulation.world import World
from twisted_mq.client import (
    ConsumeContext,
    ConsumeFromWhere,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    ConsumerOptions,
    ConsumeStatus,
    LitePullConsumer,
    Message,
    ProducerOptions,
    PushConsumer,
    SendResult,
    SendStatus,
    TransactionProducer,
    TransactionState,
)
from twisted_mq.client.core.errors import EXPECTED_ERRORS
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.messages.message import MessageExt

OPTIONS = ConsumerOptions(consume_from_where=ConsumeFromWhere.FIRST_OFFSET)
PROCESS_ID = 4711


class ClientNode(Node):
    """A client process; `start` after `kill` is a new process of the same program."""

    group = ""
    """Its consumer group; empty for producers."""

    def __init__(self, world: World, name: str, observer: Observer, name_servers: list[str]) -> None:
        super().__init__(world, name)
        self.observer = observer
        self.brokers: dict[str, str] = {}
        """Broker names by address."""
        self.timed = False
        """True if the brokers deliver messages at any time."""
        self._name_servers = name_servers
        self._source = random.Random(world.random.getrandbits(32))
        self._lives = 0
        self._stopping = False

    @property
    def has_begun(self) -> bool:
        """Return True if it was ever started."""
        return self._lives > 0

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments of producers and consumers."""
        return {
            "namesrv": self._name_servers,
            "instance_name": f"{PROCESS_ID}#{self._lives}",
            "ip": self.name,
            "rng": random.Random(self._source.getrandbits(32)),
            "get_pid": lambda: PROCESS_ID,
        }

    def _begin(self) -> None:
        self._lives += 1
        self._stopping = False
        self._run(self._work())

    def _run(self, work: Coroutine[defer.Deferred[Any], Any, None]) -> None:
        defer.ensureDeferred(work).addErrback(self._failed)

    def _failed(self, reason: Any) -> None:
        if self.is_running:
            reason.raiseException()

    async def _work(self) -> None:
        raise NotImplementedError

    def probe(self) -> None:
        """Send something, if this is what does that."""

    async def _rest(self, low: float, high: float) -> None:
        await task.deferLater(self.host, self._source.uniform(low, high))


class ProducingNode(ClientNode):
    """A producer that sends one message after the other, each in a random way, until it is stopped."""

    def __init__(self, *arguments: Any, pause: tuple[float, float] = (1.0, 6.0)) -> None:
        super().__init__(*arguments)
        self._pause = pause
        self._made = 0
        self._size = self._source.choice((0, 0, 100))
        """Size of all bodies, so that one record fits into the place of another; 0 for random sizes."""
        self.is_quiet = False
        self.is_sending = False
        self._checks: Counter[str] = Counter()

    async def _work(self) -> None:
        options = ProducerOptions(retry_times=2 if self.observer.sends_are_repeated else 0)
        self._producer = TransactionProducer(
            self.host, "producers", check=self._checked, options=options, **self.settings
        )
        await self._producer.start()
        ways = [
            self._plain, self._several, self._ordered, self._ordered, self._delayed, self._batch, self._transaction
        ]  # fmt: skip
        if self.timed:
            ways += [self._timed, self._timed]
        while not self.is_quiet:
            await self._rest(*self._pause)
            self.is_sending = True
            try:
                await self._source.choice(ways)()
            except EXPECTED_ERRORS as error:
                self.world.told("not-sent", by=self.name, error=type(error).__name__)
            self.is_sending = False

    def _message(self, topic: str, delay_level: int = 0, transaction: str = "") -> Message:
        self._made += 1
        name = f"{self.name}-{self._made}"
        message = Message(topic, f"{name} ".encode().ljust(self._size or self._source.randrange(30, 600), b"."))
        if delay_level > 0:
            message.delay_time_level = delay_level
        if transaction:
            message.properties["DECISION"] = transaction
        self.observer.sends(name, topic, delay_level, transaction)
        self.world.told("send", message=name, topic=topic, level=delay_level, transaction=transaction)
        return message

    def _told(self, message: Message, result: SendResult, number: int = 0) -> None:
        if result.status is SendStatus.SEND_OK:
            name = message.body.split(b" ", 1)[0].decode()
            offset_id = result.offset_msg_id.split(",")[number]
            queue = result.queue
            self.observer.was_acknowledged(
                name, queue.broker_name, queue.topic, queue.queue_id, result.queue_offset + number, offset_id
            )

    async def _plain(self) -> None:
        message = self._message(PLAIN)
        self._told(message, await self._producer.send(message))

    def probe(self) -> None:
        """Consumers find a new topic at their next look, and ask for a queue's lock that they lost each 20 s."""
        if self.observer.is_long_known(PLAIN):
            self._run(self._plain())

    async def _several(self) -> None:
        """Some at nearly the same moment: one is stored while the disk is busy with another."""
        results = await defer.DeferredList(
            [defer.ensureDeferred(self._soon()) for _ in range(self._source.randrange(2, 6))], consumeErrors=True
        )
        for succeeded, reason in results:
            if not succeeded:
                reason.trap(*EXPECTED_ERRORS)

    async def _soon(self) -> None:
        await self._rest(0.0, 0.02)
        await self._plain()

    async def _ordered(self) -> None:
        message = self._message(ORDERED)
        self._told(message, await self._producer.send_by_key(message, self._source.randrange(8)))

    async def _delayed(self) -> None:
        message = self._message(PLAIN, delay_level=self._source.randrange(1, 4))
        self._told(message, await self._producer.send(message))

    async def _timed(self) -> None:
        """Each second is a level of its own, below zero."""
        seconds = self._source.randrange(1, 12)
        message = self._message(PLAIN, delay_level=-seconds)
        timed = Message(PLAIN, message.body, delay_time_seconds=seconds)
        self._told(timed, await self._producer.send(timed))

    async def _batch(self) -> None:
        messages = [self._message(PLAIN) for _ in range(self._source.randrange(2, 5))]
        result = await self._producer.send_batch(messages)
        for number, message in enumerate(messages):
            self._told(message, result, number)

    async def _transaction(self) -> None:
        message = self._message(
            PLAIN, transaction=self._source.choice(("COMMIT", "COMMIT", "ROLLBACK", "LATER", "NEVER"))
        )
        answers = (self._decision(message), self._decision(message), TransactionState.UNKNOWN)
        answer = self._source.choice(answers)
        result = await self._producer.send_in_transaction(message, lambda _: answer)
        if result.sent.status is SendStatus.SEND_OK:
            self._told(message, result.sent)

    def _decision(self, message: Message | MessageExt) -> TransactionState:
        """Return the decision on a transaction. LATER is unknown before the second check. NEVER is always unknown."""
        wanted = message.properties["DECISION"]
        return TransactionState[wanted] if wanted in TransactionState.__members__ else TransactionState.UNKNOWN

    def _checked(self, message: MessageExt) -> TransactionState:
        """Return the answer to a broker's check of a transaction."""
        name = message.body.split(b" ", 1)[0].decode()
        self._checks[name] += 1
        if message.properties["DECISION"] == "LATER" and self._checks[name] > 1:
            return TransactionState.COMMIT
        return self._decision(message)


class PushNode(ClientNode):
    group = "push"
    """Consumes several at a time; now and then a message is refused, or its listener takes long."""

    async def _work(self) -> None:
        consumer = PushConsumer(self.host, "push", options=OPTIONS, **self.settings)
        consumer.subscribe(PLAIN)
        consumer.listen(self._consume)
        await consumer.start()

    async def _consume(self, messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        for message in messages:
            self.observer.was_consumed("push", context.queue, message, self.name)
        chance = 0.5 if self.observer.is_probed else self._source.random()
        if chance < 0.15:
            await self._rest(0.1, 8.0)
        if chance > 0.97:
            return ConsumeStatus.RECONSUME_LATER
        self.observer.was_done("push", messages)
        return ConsumeStatus.CONSUME_SUCCESS


class OrderlyNode(ClientNode):
    group = "orderly"
    """Consumes each queue in order."""

    topic = ORDERED
    options = OPTIONS

    async def _work(self) -> None:
        consumer = PushConsumer(self.host, self.group, options=self.options, **self.settings)
        consumer.subscribe(self.topic)
        consumer.listen_orderly(self._consume)
        await consumer.start()

    async def _consume(self, messages: list[MessageExt], context: ConsumeOrderlyContext) -> ConsumeOrderlyStatus:
        for message in messages:
            self.observer.was_consumed_in_order(self.group, context.queue, message, self.name)
        chance = 0.5 if self.observer.is_probed else self._source.random()
        if chance < 0.15:
            await self._rest(0.1, 8.0)
        if chance > 0.97:
            return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
        self.observer.was_done(self.group, messages)
        return ConsumeOrderlyStatus.SUCCESS


class LiteNode(ClientNode):
    group = "lite"
    """Polls, and commits what it was given."""

    async def _work(self) -> None:
        consumer = LitePullConsumer(self.host, "lite", auto_commit=False, options=OPTIONS, **self.settings)
        consumer.subscribe(PLAIN)
        await consumer.start()
        while True:
            messages = await consumer.poll(20.0)
            for message in messages:
                broker_name = self.brokers[message.store_host.rpartition(":")[0]]
                queue = MessageQueue(message.topic, broker_name, message.queue_id)
                self.observer.was_consumed("lite", queue, message, self.name)
            self.observer.was_done("lite", messages)
            try:
                await consumer.commit()
            except EXPECTED_ERRORS as error:
                self.world.told("not-committed", by=self.name, error=type(error).__name__)
