"""The parts of consumers that are the same in each face: arguments, subscriptions, queues and counts."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar

from twisted.internet import defer

from twisted_mq.client.consuming import consumer, lite_pull_consumer, push_consumer
from twisted_mq.client.consuming.consumer_options import ConsumerOptions
from twisted_mq.client.consuming.deliveries import CONCURRENTLY, ORDERLY, Deliveries
from twisted_mq.client.consuming.rebalance import QueuesChanged
from twisted_mq.client.core.argument_checks import Topics
from twisted_mq.client.core.client_metrics import ConsumerMetrics
from twisted_mq.client.core.client_options import ClientOptions
from twisted_mq.client.core.errors import ClientStateError
from twisted_mq.client.faces.member import ClientMember, MQClientT
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.messages.subscription import SUB_ALL, TAG

ListenerT = TypeVar("ListenerT")
AnyDeliveries = Deliveries[Any, Any]
"""Deliveries with either kind of status."""


class Iterates(ClientMember[MQClientT]):
    """A consumer whose messages are iterated. The iteration ends when the consumer stops."""

    _finish_seconds = 5.0
    _failed = False
    """True if an exception left the consumer's block."""

    @abc.abstractmethod
    def _check_begun(self) -> None:
        """Raise ClientStateError before the start and after the stop."""

    def _check_iterated(self) -> None:
        self._check_begun()
        if self.listens:
            raise ClientStateError(
                "this consumer has a listener, which gets its messages; iterate over a consumer without a listener"
            )


class Consumer(Iterates[MQClientT]):
    """A member of a consumer group."""

    _core: consumer.Consumer

    def subscribe(self, topic: str, expression: str = SUB_ALL, expression_type: str = TAG) -> None:
        """Consume a topic: all of it, or tags as "A || B", or by another expression type that the brokers support.

        All members of a group must have the same subscriptions. Raises ClientOptionIllegal or SubscriptionError.
        """
        self._do(lambda: self._core.subscribe(topic, expression, expression_type))

    def unsubscribe(self, topic: str) -> None:
        """Stop consuming a topic; other members of the group soon get its queues."""
        self._do(lambda: self._core.unsubscribe(topic))

    def listen_to_queues(self, listener: QueuesChanged | None) -> None:
        """Call a listener with (topic, all its queues, the assigned ones) whenever the assignment changes; None removes it.

        It is called in the event loop, which plain calls have in a thread, and must not block. Its errors are logged.
        """
        self._do(lambda: self._core.listen_to_queues(listener))

    def pause(self, *queues: MessageQueue) -> None:
        """Stop pulling these queues, or all if none are given, until `resume`. Pulled messages are still consumed."""
        self._do(lambda: self._core.pause(*queues))

    def resume(self, *queues: MessageQueue) -> None:
        """Resume pulling these queues, or all if none are given."""
        self._do(lambda: self._core.resume(*queues))

    def is_paused(self, queue: MessageQueue) -> bool:
        """Return whether pulling the queue is paused."""
        return self._do(lambda: self._core.is_paused(queue))

    @property
    def queues(self) -> list[MessageQueue]:
        """The queues that are assigned to this consumer now."""
        return self._do(lambda: self._core.queues)

    @property
    def group(self) -> str:
        """The group's name at the brokers, with its namespace."""
        return self._core.group

    @property
    def metrics(self) -> ConsumerMetrics:
        """Counts of messages consumed, failed and in flight."""
        return self._core.metrics

    def lag(self) -> dict[MessageQueue, int]:
        """Return how many messages wait in each assigned queue, as of its last pull; leave out queues without a pull."""
        return self._do(self._core.lag)


class PushConsumer(Consumer[MQClientT], Generic[MQClientT, ListenerT]):
    """A consumer that is iterated, or that calls a listener."""

    _core: push_consumer.PushConsumer

    def __init__(
        self,
        namesrv: str | Sequence[str] | None = None,
        *,
        group: str,
        topics: Topics | None = None,
        listener: ListenerT | None = None,
        orderly: bool = False,
        auto_ack: bool = False,
        options: ConsumerOptions | None = None,
        client: MQClientT | None = None,
        client_options: ClientOptions | None = None,
        namespace: str = "",
        instance_name: str | None = None,
        ip: str | None = None,
    ) -> None:
        """Subscribe to `topics`: {"Orders": "paid || sent"} as in `subscribe`, or ["Orders"] for all messages.

        Takes the name servers' addresses (`namesrv`) or an MQClient to share; without both, reads NAMESRV_ADDR.
        Nothing is connected before `start`. Raises ClientOptionIllegal for an invalid argument.
        """
        super().__init__(client)
        self._core = core = push_consumer.PushConsumer(
            self._reactor, group, namesrv, topics=topics, client=self._shared, options=options,
            client_options=client_options, namespace=namespace, instance_name=instance_name, ip=ip,
        )  # fmt: skip
        self._orderly = orderly
        self._deliveries: AnyDeliveries = Deliveries(
            self._reactor, core.group, ORDERLY if orderly else CONCURRENTLY, limit=core.options.concurrency,
            timeout_seconds=core.options.consume_timeout_seconds, is_ours=core.consumes,
        )  # fmt: skip
        self._receive(auto_ack)
        if listener is not None:
            self.listen(listener)

    @abc.abstractmethod
    def _receive(self, auto_ack: bool) -> None:
        """Make what passes the deliveries on to iterations."""

    @abc.abstractmethod
    def listen(self, listener: ListenerT) -> None:
        """Set the listener: (list of messages, context) -> ConsumeStatus. A consumer with a listener is not iterated."""


class LitePullConsumer(Consumer[MQClientT]):
    """A consumer that returns messages when it is polled."""

    _core: lite_pull_consumer.LitePullConsumer

    def __init__(
        self,
        namesrv: str | Sequence[str] | None = None,
        *,
        group: str,
        topics: Topics | None = None,
        auto_commit: bool = True,
        options: ConsumerOptions | None = None,
        client: MQClientT | None = None,
        client_options: ClientOptions | None = None,
        namespace: str = "",
        instance_name: str | None = None,
        ip: str | None = None,
    ) -> None:
        """Take the arguments of PushConsumer. Without `auto_commit`, only `commit` makes messages count as consumed."""
        super().__init__(client)
        self._core = lite_pull_consumer.LitePullConsumer(
            self._reactor, group, namesrv, topics=topics, auto_commit=auto_commit, client=self._shared, options=options,
            client_options=client_options, namespace=namespace, instance_name=instance_name, ip=ip,
        )  # fmt: skip

    def assign(self, queues: Iterable[MessageQueue]) -> None:
        """Consume these queues, all of their messages, instead of earlier subscriptions or assignments.

        Takes effect at once. A consumer either subscribes or assigns. Raises ClientStateError.
        """
        chosen = list(queues)
        self._do(lambda: self._core.assign(chosen))

    def seek(self, queue: MessageQueue, offset: int) -> None:
        """Continue from this offset of an assigned queue. Raises ClientStateError."""
        self._do(lambda: self._core.seek(queue, offset))

    def _stop(self, finish_seconds: float) -> defer.Deferred[None]:
        if self._failed:
            self._core.forget_polled()
        return super()._stop(finish_seconds)
