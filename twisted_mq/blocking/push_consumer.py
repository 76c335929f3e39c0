"""Consumes in a group, in plain calls: message by message, or by a listener in a pool of threads.

with PushConsumer("127.0.0.1:9876", group="audit", topics={"Orders": "*"}) as consumer:
    for message in consumer.messages(timeout=10):
        message.ack()  # or message.retry(delay_level=3)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import attrs
from twisted.internet import defer

from twisted_mq.blocking.consumer import Consumer
from twisted_mq.blocking.mq_client import MQClient
from twisted_mq.blocking.received import AnyDeliveries, Received, ReceivedMessage
from twisted_mq.client.consuming import push_consumer
from twisted_mq.client.consuming.consumer_options import (
    ConsumeContext,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    ConsumerOptions,
    ConsumeStatus,
)
from twisted_mq.client.consuming.deliveries import CONCURRENTLY, ORDERLY, Deliveries, one_by_one
from twisted_mq.client.core.argument_checks import Topics
from twisted_mq.client.core.client_options import ClientOptions
from twisted_mq.client.core.requirements import Require
from twisted_mq.protocol.messages.message import MessageExt

Context = TypeVar("Context", ConsumeContext, ConsumeOrderlyContext)

Listener = Callable[[list[MessageExt], ConsumeContext], ConsumeStatus]
OrderlyListener = Callable[[list[MessageExt], ConsumeOrderlyContext], ConsumeOrderlyStatus]
"""Plain functions: they may block."""


class PushConsumer(Consumer[ReceivedMessage]):
    """A consumer that is iterated, by one thread or several; or whose listener is called in threads of its own.

    Up to `concurrency` messages are open at a time, that is neither acknowledged nor sent back; `consume_timeout_seconds`
    runs from the moment a message is handed out. `orderly` hands out a queue's next message when the one before it is
    settled, and a queue to one member of the group.

    With `auto_ack` a message is acknowledged when its loop asks for the next one, and sent back when the loop is left
    before, by `break` or by an exception, unless it was settled by then.
    """

    _core: push_consumer.PushConsumer

    def __init__(
        self,
        namesrv: str | Sequence[str] | None = None,
        *,
        group: str,
        topics: Topics | None = None,
        listener: Listener | None = None,
        orderly: bool = False,
        auto_ack: bool = False,
        options: ConsumerOptions | None = None,
        client: MQClient | None = None,
        client_options: ClientOptions | None = None,
        namespace: str = "",
        instance_name: str | None = None,
        ip: str | None = None,
    ) -> None:
        """`topics` has an expression for each topic, as `subscribe`: {"Orders": "paid || sent"}; ["Orders"] for all messages.

        Give it the name servers' addresses or an MQClient to share; without both, NAMESRV_ADDR says where they are.
        Raises ClientOptionIllegal for an argument that cannot work; nothing is connected before `start`.
        """
        super().__init__(client)
        self._core = core = push_consumer.PushConsumer(
            self._reactor, group, namesrv, topics=topics, client=self._shared, options=options,
            client_options=client_options, namespace=namespace, instance_name=instance_name, ip=ip,
        )  # fmt: skip
        self.listens = False
        self._orderly = orderly
        self._deliveries: AnyDeliveries = Deliveries(
            self._reactor, core.group, ORDERLY if orderly else CONCURRENTLY, limit=core.options.concurrency,
            timeout_seconds=core.options.consume_timeout_seconds, is_ours=core.consumes,
        )  # fmt: skip
        self._received = Received(self._reactor, self._deliveries, self, auto_ack=auto_ack)
        if listener is not None:
            self.listen(listener)

    def listen(self, listener: Listener) -> None:
        """Who gets the messages: (list of messages, context) -> ConsumeStatus, in one of `concurrency` threads.

        A call that takes longer than the consume timeout goes on, and its messages come again. Nothing is iterated then.
        """
        self._core.listen(listener)
        self.listens = True

    def listen_orderly(self, listener: OrderlyListener) -> None:
        """As `listen`, with each queue's messages one call after the other, and by one member of the group only.

        The listener answers ConsumeOrderlyStatus. What it refuses is repeated, and holds its queue back meanwhile.
        """
        self._core.listen_orderly(listener)
        self.listens = True

    def messages(self, timeout: float | None = None) -> Iterator[ReceivedMessage]:
        """The messages as they come; the end when none came for `timeout` seconds, or at `stop`.

        Several threads may iterate at a time: each message goes to one of them.
        """
        self._check_iterated()
        return self._received.messages(timeout)

    def getmany(self, timeout: float = 5.0, max_messages: int = 500) -> list[ReceivedMessage]:
        """The messages that are there, at most so many; waits for the first one. Empty where none came in time.

        Each is settled by itself: `message.ack()`. `concurrency` limits how many are open.
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
        stopping = super()._stop(finish_seconds)  # no refusal from now on: what is given up is not sent back
        self._received.close(self._stopper)
        return stopping
