"""A push consumer in plain calls: messages are iterated, or passed to a listener in a pool of threads.

with PushConsumer("127.0.0.1:9876", group="audit", topics={"Orders": "*"}) as consumer:
    for message in consumer.messages(timeout=10):
        message.ack()  # or message.retry(delay_level=3)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import attrs
from twisted.internet import defer

from twisted_mq.blocking.consumer import Consumer
from twisted_mq.blocking.mq_client import MQClient
from twisted_mq.blocking.received import Received, ReceivedMessage
from twisted_mq.client.consuming.consumer_options import (
    ConsumeContext,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    ConsumeStatus,
)
from twisted_mq.client.consuming.deliveries import one_by_one
from twisted_mq.client.core.requirements import Require
from twisted_mq.client.faces import consumers
from twisted_mq.protocol.messages.message import MessageExt

Context = TypeVar("Context", ConsumeContext, ConsumeOrderlyContext)

Listener = Callable[[list[MessageExt], ConsumeContext], ConsumeStatus]
OrderlyListener = Callable[[list[MessageExt], ConsumeOrderlyContext], ConsumeOrderlyStatus]
"""Plain functions, which may block."""


class PushConsumer(consumers.PushConsumer[MQClient, Listener], Consumer[ReceivedMessage]):
    """A consumer that one or more threads iterate, or that calls a listener, in its own threads, as messages arrive.

    At most `concurrency` messages are open at a time, that is, neither acknowledged nor sent back; `consume_timeout_seconds`
    runs from the moment the iteration returns a message. With `orderly`, only one member of the group consumes a queue, and
    the queue's next message is returned when the previous one is settled.

    With `auto_ack`, a message is acknowledged when its loop asks for the next one. If `break` or an exception leaves the
    loop before, the message is sent back. Messages that are already settled stay so.
    """

    def _receive(self, auto_ack: bool) -> None:
        self._received = Received(self._reactor, self._deliveries, self, auto_ack=auto_ack)

    def listen(self, listener: Listener) -> None:
        """Set the listener: (list of messages, context) -> ConsumeStatus, called in one of `concurrency` threads.

        A call that exceeds the consume timeout continues, and its messages are delivered again. A consumer with a listener
        is not iterated.
        """
        self._core.listen(listener)
        self.listens = True

    def listen_orderly(self, listener: OrderlyListener) -> None:
        """Set the listener as `listen` does, for one batch of a queue at a time, in one member of the group only.

        The listener returns ConsumeOrderlyStatus. Messages that it refuses are delivered again; their queue waits meanwhile.
        """
        self._core.listen_orderly(listener)
        self.listens = True

    def messages(self, timeout: float | None = None) -> Iterator[ReceivedMessage]:
        """Iterate over messages as they arrive. Ends if none arrives for `timeout` seconds, or at `stop`.

        Several threads may iterate at the same time: each message goes to one of them.
        """
        self._check_iterated()
        return self._received.messages(timeout)

    def getmany(self, timeout: float = 5.0, max_messages: int = 500) -> list[ReceivedMessage]:
        """Return available messages, at most `max_messages`; wait for the first one.

        Empty if none arrives within `timeout` seconds. Settle each message: `message.ack()`. At most `concurrency`
        messages are open.
        """
        self._check_iterated()
        return self._received.getmany(timeout, max_messages)

    def _start(self, require: Require | None) -> defer.Deferred[None]:
        core = self._core
        core.options = attrs.evolve(core.options, blocking_listener=self.listens)
        if not self.listens:
            core.options = one_by_one(core.options)
            listen = core.listen_orderly if self._orderly else core.listen
            listen(self._deliveries.listener)
        return super()._start(require)

    def _stop(self, finish_seconds: float) -> defer.Deferred[None]:
        if self._failed:
            self._received.refuse_own(self._stopper)
        stopping = super()._stop(finish_seconds)  # before `close`: messages that are given up must not be sent back
        self._received.close(self._stopper)
        return stopping
