"""Strictly ordered queues, in plain calls: messages stay in order, whichever broker fails.

with OrderedProducer("127.0.0.1:9876", group="billing") as producer:
    producer.lead("Orders")                       # waits while another producer of the group leads
    producer.send(Message("Orders", b"paid"), key="order-1")

with OrderedConsumer("127.0.0.1:9876", group="audit", topics={"Orders": "*"}) as consumer:
    for message in consumer:
        message.ack()
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from twisted.internet import defer

from twisted_mq.aio.loop_reactor import LoopReactor
from twisted_mq.blocking.consumer import Iterates
from twisted_mq.blocking.mq_client import ClientMember, MQClient
from twisted_mq.blocking.push_consumer import OrderlyListener
from twisted_mq.blocking.received import AnyDeliveries, Received, ReceivedMessage
from twisted_mq.client.consuming.deliveries import ORDERED, Deliveries, one_by_one
from twisted_mq.client.consuming.listener_threads import ListenerThreads
from twisted_mq.client.core.argument_checks import Topics, expressions
from twisted_mq.client.core.client_options import ClientOptions
from twisted_mq.client.core.requirements import Require
from twisted_mq.client.ordered import ordered_consumer, ordered_producer
from twisted_mq.client.ordered.consumer_options import OrderedConsumerOptions
from twisted_mq.client.ordered.coordinator_source import Given
from twisted_mq.client.ordered.messages_deleted import MessagesDeleted
from twisted_mq.client.ordered.ordered_options import OrderedOptions
from twisted_mq.client.producing.send_result import SendResult
from twisted_mq.logs import Logger
from twisted_mq.protocol.messages.message import Message
from twisted_mq.protocol.messages.subscription import SUB_ALL
from twisted_mq.reactor_threads import threads_of

log = Logger()

Result = TypeVar("Result")

Told = Callable[[str, str, bool], object]
"""A listener: (topic, unit, whether this client leads it)."""

LISTENER_THREADS = 20
"""The limit of listener calls at the same time."""


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

    def send(
        self, message: Message, queue: int | None = None, *, key: object = None, timeout: float | None = None
    ) -> SendResult:
        """Send one message after all that were sent to its queue before; return when master and slave have it.

        The message goes to `queue`, or to the queue of `key`; a topic with one queue needs neither. If a send fails, the
        later ones of its queue, from other threads, fail, too. Raises MessageIllegal, OrderedError (NotLeader, NoHead,
        SendTimedOut, SendGivenUp, TooMuchWaits, ...), NoRoute, BrokerError (refused for good), CallTimedOut or
        ClientStateError.
        """
        return self._ask(lambda: self._core.send(message, queue, key=key, timeout_seconds=timeout), timeout)

    def lead(self, topic: str, queue: int | None = None, *, timeout: float | None = None) -> None:
        """Join the election; return when this producer leads the queue, or all queues of the topic. Raises as `send` does."""
        self._call(lambda: self._core.lead(topic, queue), timeout)

    def leads(self, topic: str, queue: int = 0) -> bool:
        """Return whether this producer is certain to be the leader of the queue now."""
        return self._do(lambda: self._core.leads(topic, queue))

    def on_lead(self, listener: Told) -> None:
        """Call `listener(topic, unit, leads)` when this producer becomes, or ceases to be, the leader of a unit.

        It is called in a thread of a pool. Its errors are logged.
        """
        self._do(lambda: self._core.on_lead(in_pool(listener, self._reactor)))


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
        self.listens = False
        self._deliveries: AnyDeliveries = Deliveries(
            self._reactor, group, ORDERED, limit=math.inf, timeout_seconds=core.options.consume_timeout_seconds
        )
        self._received = Received(self._reactor, self._deliveries, self, auto_ack=auto_ack)
        self._threads = ListenerThreads(self._reactor, LISTENER_THREADS, f"listener of {group}")
        for topic, expression in expressions(topics).items():
            self.subscribe(topic, expression)
        if listener is not None:
            self.listen(listener)

    def subscribe(self, topic: str, expression: str = SUB_ALL) -> None:
        """Consume a topic: all of it, or tags as "A || B".

        Raises ClientOptionIllegal, SubscriptionError or ClientStateError.
        """
        self._do(lambda: self._core.subscribe(topic, expression))

    def listen(self, listener: OrderlyListener) -> None:
        """Set the listener: (list of messages, context) -> ConsumeOrderlyStatus, called in a thread of a pool.

        It is called for one batch of a queue at a time. If it refuses the messages or raises, they are delivered again
        after a pause; their queue waits meanwhile, so that no message is skipped.
        """
        threads = self._threads
        self._core.listen(lambda messages, context: threads.call(listener, messages, context))
        self.listens = True

    def on_lead(self, listener: Told) -> None:
        """Call `listener(topic, unit, leads)` when this consumer becomes, or ceases to be, the active one of a unit.

        It is called in a thread of a pool. Its errors are logged.
        """
        self._do(lambda: self._core.on_lead(in_pool(listener, self._reactor)))

    def on_deleted(self, listener: Callable[[MessagesDeleted], object]) -> None:
        """Call `listener(event)` when a broker with a full disk deleted messages before they were consumed.

        It is called in a thread of a pool. Its errors are logged.
        """

        def tell(event: MessagesDeleted) -> None:
            told = threads_of(self._reactor)(listener, event)
            told.addErrback(lambda reason: log.failure("listener of on_deleted failed: {event}", reason, event=event))

        self._do(lambda: self._core.on_deleted(tell))

    def messages(self, timeout: float | None = None) -> Iterator[ReceivedMessage]:
        """Iterate over messages as they arrive. Ends if none arrives for `timeout` seconds, or at `stop`."""
        self._check_iterated()
        return self._received.messages(timeout)

    def _start(self, require: Require | None) -> defer.Deferred[None]:
        if not self.listens:
            core = self._core
            core.options = one_by_one(core.options)
            core.listen(self._deliveries.listener)
        return self._core.start(require=require)

    def _stop(self, finish_seconds: float) -> defer.Deferred[None]:
        stopping = self._core.stop(finish_seconds)
        self._received.close(self._stopper)
        return stopping.addBoth(self._threads_ended)

    def _threads_ended(self, result: Result) -> Result:
        self._threads.stop()
        return result


def in_pool(listener: Told, reactor: LoopReactor) -> Told:
    """Wrap a listener so that it runs in a thread. Its errors are logged."""

    def tell(topic: str, unit: str, leads: bool) -> None:
        told = threads_of(reactor)(listener, topic, unit, leads)
        told.addErrback(lambda reason: log.failure("listener of on_lead failed: topic={topic}", reason, topic=topic))

    return tell
