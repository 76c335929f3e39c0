"""Strictly ordered queues, in plain calls: messages stay in order, whichever broker fails.

with OrderedProducer("127.0.0.1:9876", group="billing") as producer:
    producer.lead("Orders")                       # waits while another producer of the group leads
    producer.send(Message("Orders", b"paid"), key="order-1")

with OrderedConsumer("127.0.0.1:9876", group="audit", topics={"Orders": "*"}) as consumer:
    for message in consumer:
        message.ack()
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from twisted.internet import defer

from twisted_mq.aio.loop_reactor import LoopReactor
from twisted_mq.blocking.consumer import Iterates
from twisted_mq.blocking.mq_client import ClientMember, MQClient
from twisted_mq.blocking.push_consumer import OrderlyListener
from twisted_mq.blocking.received import Received, ReceivedMessage
from twisted_mq.client.consuming.listener_threads import ListenerThreads
from twisted_mq.client.faces import ordered
from twisted_mq.client.faces.ordered import Told
from twisted_mq.client.ordered.messages_deleted import MessagesDeleted
from twisted_mq.client.producing.send_result import SendResult
from twisted_mq.logs import Logger
from twisted_mq.protocol.messages.message import Message
from twisted_mq.reactor_threads import threads_of

log = Logger()

Result = TypeVar("Result")

LISTENER_THREADS = 20
"""The limit of listener calls at the same time."""


class OrderedProducer(ordered.OrderedProducer[MQClient], ClientMember):
    """A producer of one group. It joins the election for an ordered queue at its first `send` or `lead` to the queue.

    Several producers of one group are standbys of each other: only the leader of a queue sends to it.
    """

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

    def on_lead(self, listener: Told) -> None:
        """Call `listener(topic, unit, leads)` when this producer becomes, or ceases to be, the leader of a unit.

        It is called in a thread of a pool. Its errors are logged.
        """
        self._do(lambda: self._core.on_lead(in_pool(listener, self._reactor)))


class OrderedConsumer(ordered.OrderedConsumer[MQClient, OrderlyListener], Iterates[ReceivedMessage]):
    """A member of a consumer group. It joins the election for each ordered queue of its topics.

    An iteration returns a queue's next message when the previous one is acknowledged. A message that is sent back
    (`message.retry()`) is delivered again after a pause; its queue waits meanwhile. `auto_ack` is as in PushConsumer.
    """

    def _receive(self, auto_ack: bool) -> None:
        self._received = Received(self._reactor, self._deliveries, self, auto_ack=auto_ack)
        self._threads = ListenerThreads(self._reactor, LISTENER_THREADS, f"listener of {self._core.group}")

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
