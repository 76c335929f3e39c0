"""A push consumer for asyncio: messages are iterated, or passed to a listener.

async with PushConsumer("127.0.0.1:9876", group="audit", topics={"Orders": "*"}) as consumer:
    async for message in consumer:
        await message.ack()  # or message.retry(delay_level=3)
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TypeVar

import attrs
from twisted.internet import defer

from twisted_mq.aio.awaiting import deferred_of
from twisted_mq.aio.consumer import Consumer
from twisted_mq.aio.mq_client import MQClient
from twisted_mq.aio.received import Received, ReceivedMessage
from twisted_mq.client.consuming import push_consumer
from twisted_mq.client.consuming.consumer_options import (
    ConsumeContext,
    ConsumeOrderlyContext,
    Listener,
    OrderlyListener,
)
from twisted_mq.client.consuming.deliveries import one_by_one
from twisted_mq.client.core.argument_checks import check_function
from twisted_mq.client.core.requirements import Require
from twisted_mq.client.faces import consumers
from twisted_mq.protocol.messages.message import MessageExt

Context = TypeVar("Context", ConsumeContext, ConsumeOrderlyContext)
Status = TypeVar("Status")


class PushConsumer(consumers.PushConsumer[MQClient, Listener], Consumer[ReceivedMessage]):
    """A consumer that one or more tasks iterate, or that calls a listener with messages as they arrive.

    At most `concurrency` messages are open at a time, that is, neither acknowledged nor sent back; `consume_timeout_seconds`
    runs from the moment the iteration returns a message. With `orderly`, only one member of the group consumes a queue, and
    the queue's next message is returned when the previous one is settled.

    With `auto_ack`, a message is acknowledged when its loop asks for the next one. If `break` or an exception leaves the
    loop before, the message is sent back. Messages that are already settled stay so.
    """

    def _receive(self, auto_ack: bool) -> None:
        self._received = Received(self._reactor, self._deliveries, auto_ack=auto_ack)

    def listen(self, listener: Listener) -> None:
        """Set the listener: (list of messages, context) -> ConsumeStatus, a function or an `async def`.

        Each call of an `async def` is a task, which is cancelled after the consume timeout. A function must not block,
        unless ConsumerOptions(blocking_listener=True) makes it run in threads. A consumer with a listener is not iterated.
        """
        self._core.listen(in_loop(listener))
        self.listens = True

    def listen_orderly(self, listener: OrderlyListener) -> None:
        """Set the listener as `listen` does, for one batch of a queue at a time, in one member of the group only.

        The listener returns ConsumeOrderlyStatus. Messages that it refuses are delivered again; their queue waits meanwhile.
        """
        self._core.listen_orderly(in_loop(listener))
        self.listens = True

    def messages(self, timeout: float | None = None) -> AsyncGenerator[ReceivedMessage, None]:
        """Iterate over messages as they arrive. Ends if none arrives for `timeout` seconds, or at `stop`.

        Several tasks may iterate at the same time: each message goes to one of them.
        """
        self._check_iterated()
        return self._received.messages(timeout)

    async def getmany(self, timeout: float = 5.0, max_messages: int = 500) -> list[ReceivedMessage]:
        """Return available messages, at most `max_messages`; wait for the first one.

        Empty if none arrives within `timeout` seconds. Settle each message: `await message.ack()`. At most `concurrency`
        messages are open.
        """
        self._check_iterated()
        return await self._received.getmany(timeout, max_messages)

    def _start(self, require: Require | None) -> defer.Deferred[None]:
        if not self.listens:
            core = self._core
            core.options = attrs.evolve(one_by_one(core.options), blocking_listener=False)
            listen = core.listen_orderly if self._orderly else core.listen
            listen(self._deliveries.listener)
        return super()._start(require)

    def _stop(self, finish_seconds: float) -> defer.Deferred[None]:
        if self._failed:
            self._received.refuse_own()
        stopping = super()._stop(finish_seconds)  # before `close`: messages that are given up must not be sent back
        self._received.close()
        return stopping


def in_loop(
    listener: Callable[[list[MessageExt], Context], Status | Awaitable[Status]],
) -> Callable[[list[MessageExt], Context], Status | defer.Deferred[Status]]:
    """Wrap a listener so that its awaitable runs as a task of the loop. Raises ClientOptionIllegal if it is not a function."""
    check_function(listener, "listener", push_consumer.LISTENER_EXAMPLE)

    @functools.wraps(listener)
    def listen(messages: list[MessageExt], context: Context) -> Status | defer.Deferred[Status]:
        answer = listener(messages, context)
        return deferred_of(answer) if inspect.isawaitable(answer) else answer

    return listen
