"""Strictly ordered queues, for asyncio: messages stay in order, whichever broker fails.

async with OrderedProducer("127.0.0.1:9876", group="billing") as producer:
    await producer.lead("Orders")                       # waits while another producer of the group leads
    await producer.send(Message("Orders", b"paid"), key="order-1")

async with OrderedConsumer("127.0.0.1:9876", group="audit", topics={"Orders": "*"}) as consumer:
    async for message in consumer:
        await message.ack()
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable

from twisted.internet import defer

from twisted_mq.aio.awaiting import result_of
from twisted_mq.aio.consumer import Iterates
from twisted_mq.aio.mq_client import ClientMember, MQClient
from twisted_mq.aio.push_consumer import in_loop
from twisted_mq.aio.received import Received, ReceivedMessage
from twisted_mq.client.consuming.consumer_options import OrderlyListener
from twisted_mq.client.faces import ordered
from twisted_mq.client.faces.ordered import Told
from twisted_mq.client.ordered.messages_deleted import MessagesDeleted
from twisted_mq.client.producing.send_result import SendResult
from twisted_mq.protocol.messages.message import Message


class OrderedProducer(ordered.OrderedProducer[MQClient], ClientMember):
    """A producer of one group. It joins the election for an ordered queue at its first `send` or `lead` to the queue.

    Several producers of one group are standbys of each other: only the leader of a queue sends to it.
    """

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

    def on_lead(self, listener: Told) -> None:
        """Call `listener(topic, unit, leads)` when this producer becomes, or ceases to be, the leader of a unit."""
        self._core.on_lead(listener)


class OrderedConsumer(ordered.OrderedConsumer[MQClient, OrderlyListener], Iterates[ReceivedMessage]):
    """A member of a consumer group. It joins the election for each ordered queue of its topics.

    An iteration returns a queue's next message when the previous one is acknowledged. A message that is sent back
    (`message.retry()`) is delivered again after a pause; its queue waits meanwhile. `auto_ack` is as in PushConsumer.
    """

    def _receive(self, auto_ack: bool) -> None:
        self._received = Received(self._reactor, self._deliveries, auto_ack=auto_ack)

    def listen(self, listener: OrderlyListener) -> None:
        """Set the listener: (list of messages, context) -> ConsumeOrderlyStatus, a function or an `async def`.

        It is called for one batch of a queue at a time. If it refuses the messages or raises, they are delivered again
        after a pause; their queue waits meanwhile, so that no message is skipped.
        """
        self._core.listen(in_loop(listener))
        self.listens = True

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

    def _stop(self, finish_seconds: float) -> defer.Deferred[None]:
        stopping = self._core.stop(finish_seconds)
        self._received.close()
        return stopping
