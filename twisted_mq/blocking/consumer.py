"""The base classes of all consumers in plain calls."""

from __future__ import annotations

import abc
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Generic, TypeVar

from twisted.internet import defer

from twisted_mq.blocking.mq_client import ClientMember
from twisted_mq.client.consuming import consumer
from twisted_mq.client.consuming.rebalance import QueuesChanged
from twisted_mq.client.core.client_metrics import ConsumerMetrics
from twisted_mq.client.core.errors import ClientStateError
from twisted_mq.client.core.requirements import Require
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.messages.subscription import SUB_ALL, TAG

MessageT = TypeVar("MessageT", bound=MessageExt)


class Iterates(ClientMember, Generic[MessageT]):
    """A consumer whose messages are iterated by `for`. The iteration ends when the consumer stops."""

    _finish_seconds = 5.0
    _failed = False
    _stopper = threading.main_thread()

    @abc.abstractmethod
    def messages(self, timeout: float | None = None) -> Iterator[MessageT]:
        """Iterate over messages as they arrive. Ends if none arrives for `timeout` seconds, or at `stop`."""

    def __iter__(self) -> Iterator[MessageT]:
        return self.messages()

    def stop(self, finish_seconds: float | None = None) -> None:
        self._stopper = threading.current_thread()
        super().stop(finish_seconds)

    stop.__doc__ = ClientMember.stop.__doc__

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._failed = kind is not None and issubclass(kind, Exception)
        self.stop()

    def _check_begun(self) -> None:
        if self._thread is None:
            raise ClientStateError("this consumer is not running; use `with` or start() first")

    def _check_iterated(self) -> None:
        self._check_begun()
        if self.listens:
            raise ClientStateError(
                "this consumer has a listener, which gets its messages; iterate over a consumer without a listener"
            )


class Consumer(Iterates[MessageT]):
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

        It is called in the background thread and must not block. Its errors are logged.
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

    def _start(self, require: Require | None) -> defer.Deferred[None]:
        return self._core.start(require=require)

    def _stop(self, finish_seconds: float) -> defer.Deferred[None]:
        return self._core.stop(finish_seconds)
