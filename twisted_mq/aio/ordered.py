"""Strictly ordered queues, for asyncio: messages stay in order, whichever broker fails.

async with OrderedProducer("127.0.0.1:9876", group="billing") as producer:
    await producer.lead("Orders")                       # waits while another producer of the group leads
    await producer.send(Message("Orders", b"paid"), key="order-1")

async with OrderedConsumer("127.0.0.1:9876", group="audit", topics={"Orders": "*"}) as consumer:
    async for message in consumer:
        await message.ack()
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Callable, Sequence

from twisted.internet import defer

from twisted_mq.aio.awaiting import result_of
from twisted_mq.aio.consumer import Iterates
from twisted_mq.aio.mq_client import ClientMember, MQClient
from twisted_mq.aio.push_consumer import in_loop
from twisted_mq.aio.received import AnyDeliveries, Received, ReceivedMessage
from twisted_mq.client.consuming.consumer_options import OrderlyListener
from twisted_mq.client.consuming.deliveries import ORDERED, Deliveries, one_by_one
from twisted_mq.client.core.argument_checks import Topics, expressions
from twisted_mq.client.core.client_options import ClientOptions
from twisted_mq.client.core.requirements import Require
from twisted_mq.client.ordered import ordered_consumer, ordered_producer
from twisted_mq.client.ordered.consumer_options import OrderedConsumerOptions
from twisted_mq.client.ordered.coordinator_source import Given
from twisted_mq.client.ordered.messages_deleted import MessagesDeleted
from twisted_mq.client.ordered.ordered_options import OrderedOptions
from twisted_mq.client.producing.send_result import SendResult
from twisted_mq.protocol.messages.message import Message
from twisted_mq.protocol.messages.subscription import SUB_ALL

Told = Callable[[str, str, bool], object]
"""A listener: (topic, unit, whether this client leads it)."""


class OrderedProducer(ClientMember):
    """A producer of one group. It joins the election for an ordered queue at its first `send` or `lead` to the queue.

    Several producers of one group are standbys of each other: only the leader of a queue sends to it.
    """

    def __init__(
        self,
        namesrv: str | Sequence[str] | None = None,
        *,
        group: str,
        coordinator: Given | None = None,
        options: OrderedOptions | None = None,
        client: MQClient | None = None,
        client_options: ClientOptions | None = None,
        instance_name: str | None = None,
        ip: str | None = None,
    ) -> None:
        """Take the arguments of Producer. Without `coordinator`, the topic's brokers are asked for its address."""
        super().__init__(client)
        self._core = ordered_producer.OrderedProducer(
            self._reactor, group, namesrv, coordinator=coordinator, client=self._shared, options=options,
            client_options=client_options, instance_name=instance_name, ip=ip,
        )  # fmt: skip

    def _start(self, require: Require | None) -> defer.Deferred[None]:
        return self._core.start(require=require)

    def _stop(self, finish_seconds: float) -> defer.Deferred[None]:
        return self._core.stop(finish_seconds)

    async def send(
        self, message: Message, queue: int | None = None, *, key: object = None, timeout: float | None = None
    ) -> SendResult:
        """Send one message after all that were sent to its queue before; return when master and slave have it.

        The message goes to `queue`, or to the queue of `key`; a topic with one queue needs neither. Messages are sent in
        the order in which the calls begin; tasks begin in the order in which they are created. If a send fails, the later
        ones of its queue fail, too. Raises MessageIllegal, OrderedError (NotLeader, NoHead, SendTimedOut, SendGivenUp,
        TooMuchWaits, ...), NoRoute, BrokerError (refused for good) or ClientStateError. The message of a cancelled send
        may still be stored.
        """
        loop = self._reactor.check_loop()
        return await result_of(self._core.send(message, queue, key=key, timeout_seconds=timeout), loop)

    async def lead(self, topic: str, queue: int | None = None) -> None:
        """Join the election; return when this producer leads the queue, or all queues of the topic. Raises as `send` does."""
        loop = self._reactor.check_loop()
        await result_of(self._core.lead(topic, queue), loop)

    def leads(self, topic: str, queue: int = 0) -> bool:
        """Return whether this producer is certain to be the leader of the queue now."""
        return self._core.leads(topic, queue)

    def on_lead(self, listener: Told) -> None:
        """Call `listener(topic, unit, leads)` when this producer becomes, or ceases to be, the leader of a unit."""
        self._core.on_lead(listener)


class OrderedConsumer(Iterates[ReceivedMessage]):
    """A member of a consumer group. It joins the election for each ordered queue of its topics.

    An iteration returns a queue's next message when the previous one is acknowledged. A message that is sent back
    (`message.retry()`) is delivered again after a pause; its queue waits meanwhile. `auto_ack` is as in PushConsumer.
    """

    def __init__(
        self,
        namesrv: str | Sequence[str] | None = None,
        *,
        group: str,
        topics: Topics | None = None,
        listener: OrderlyListener | None = None,
        auto_ack: bool = False,
        coordinator: Given | None = None,
        options: OrderedConsumerOptions | None = None,
        client: MQClient | None = None,
        client_options: ClientOptions | None = None,
        instance_name: str | None = None,
        ip: str | None = None,
    ) -> None:
        """Take the arguments of PushConsumer. Without `coordinator`, the topic's brokers are asked for its address."""
        super().__init__(client)
        self._core = core = ordered_consumer.OrderedConsumer(
            self._reactor, group, namesrv, coordinator=coordinator, client=self._shared, options=options,
            client_options=client_options, instance_name=instance_name, ip=ip,
        )  # fmt: skip
        self._listens = False
        self._deliveries: AnyDeliveries = Deliveries(
            self._reactor, group, ORDERED, limit=math.inf, timeout_seconds=core.options.consume_timeout_seconds
        )
        self._received = Received(self._reactor, self._deliveries, auto_ack=auto_ack)
        for topic, expression in expressions(topics).items():
            self.subscribe(topic, expression)
        if listener is not None:
            self.listen(listener)

    def subscribe(self, topic: str, expression: str = SUB_ALL) -> None:
        """Consume a topic: all of it, or tags as "A || B".

        Raises ClientOptionIllegal, SubscriptionError or ClientStateError.
        """
        self._core.subscribe(topic, expression)

    def listen(self, listener: OrderlyListener) -> None:
        """Set the listener: (list of messages, context) -> ConsumeOrderlyStatus, a function or an `async def`.

        It is called for one batch of a queue at a time. If it refuses the messages or raises, they are delivered again
        after a pause; their queue waits meanwhile, so that no message is skipped.
        """
        self._core.listen(in_loop(listener))
        self._listens = True

    def on_lead(self, listener: Told) -> None:
        """Call `listener(topic, unit, leads)` when this consumer becomes, or ceases to be, the active one of a unit."""
        self._core.on_lead(listener)

    def on_deleted(self, listener: Callable[[MessagesDeleted], object]) -> None:
        """Call `listener(event)` when a broker with a full disk deleted messages before they were consumed."""
        self._core.on_deleted(listener)

    def messages(self, timeout: float | None = None) -> AsyncGenerator[ReceivedMessage, None]:
        """Iterate over messages as they arrive. Ends if none arrives for `timeout` seconds, or at `stop`."""
        self._check_iterated()
        return self._received.messages(timeout)

    def _start(self, require: Require | None) -> defer.Deferred[None]:
        if not self._listens:
            core = self._core
            core.options = one_by_one(core.options)
            core.listen(self._deliveries.listener)
        return self._core.start(require=require)

    def _stop(self, finish_seconds: float) -> defer.Deferred[None]:
        stopping = self._core.stop(finish_seconds)
        self._received.close()
        return stopping
