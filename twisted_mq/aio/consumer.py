"""What all consumers for asyncio share."""

from __future__ import annotations

import abc
from collections.abc import AsyncGenerator
from types import TracebackType
from typing import Generic, TypeVar

from twisted.internet import defer

from twisted_mq.aio.mq_client import Member
from twisted_mq.client.consuming import consumer
from twisted_mq.client.consuming.rebalance import QueuesChanged
from twisted_mq.client.core.client_metrics import ConsumerMetrics
from twisted_mq.client.core.errors import ClientStateError
from twisted_mq.client.core.requirements import Require
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.messages.subscription import SUB_ALL, TAG

MessageT = TypeVar("MessageT", bound=MessageExt)


class Iterates(Member, Generic[MessageT]):
    """A member whose messages come by `async for`. It ends when the consumer stops."""

    _finish_seconds = 5.0
    _failed = False
    _listens = False

    @abc.abstractmethod
    def messages(self, timeout: float | None = None) -> AsyncGenerator[MessageT, None]:
        """The messages as they come; the end when none came for `timeout` seconds, or at `stop`."""

    def __aiter__(self) -> AsyncGenerator[MessageT, None]:
        return self.messages()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._failed = kind is not None and issubclass(kind, Exception)
        await self.stop()

    def _check_begun(self) -> None:
        if not self._begun:
            raise ClientStateError("this consumer is not running: `async with` or `await start()` comes first")

    def _check_iterated(self) -> None:
        self._check_begun()
        if self._listens:
            raise ClientStateError("this consumer has a listener: its messages go there, there is nothing to iterate")


class Consumer(Iterates[MessageT]):
    """One member of a consumer group."""

    _core: consumer.Consumer

    def subscribe(self, topic: str, expression: str = SUB_ALL, expression_type: str = TAG) -> None:
        """Consume a topic: all of it, or tags as "A || B", or by another expression type the brokers know.

        All members of a group must subscribe to the same. Raises ClientOptionIllegal or SubscriptionError.
        """
        self._core.subscribe(topic, expression, expression_type)

    def unsubscribe(self, topic: str) -> None:
        """Consume a topic no longer; its queues go to others of the group soon."""
        self._core.unsubscribe(topic)

    def listen_to_queues(self, listener: QueuesChanged | None) -> None:
        """Have (topic, all its queues, those that are ours now) told whenever ours change.

        It is called in the loop and must not block; what it raises is logged.
        """
        self._core.listen_to_queues(listener)

    def pause(self, *queues: MessageQueue) -> None:
        """Pull no more of these queues, without any of all, until `resume`; what was pulled is consumed."""
        self._core.pause(*queues)

    def resume(self, *queues: MessageQueue) -> None:
        """Pull again, without any queue from all."""
        self._core.resume(*queues)

    def is_paused(self, queue: MessageQueue) -> bool:
        """Whether nothing is pulled of it for now."""
        return self._core.is_paused(queue)

    @property
    def queues(self) -> list[MessageQueue]:
        """The queues that are ours now."""
        return self._core.queues

    @property
    def group(self) -> str:
        """As the brokers know it."""
        return self._core.group

    @property
    def metrics(self) -> ConsumerMetrics:
        """What was consumed, failed, and is in flight."""
        return self._core.metrics

    def lag(self) -> dict[MessageQueue, int]:
        """Messages that wait to be consumed, by queue of ours, as its last pull had it; without one it is left out."""
        return self._core.lag()

    def _start(self, require: Require | None) -> defer.Deferred[None]:
        return self._core.start(require=require)

    def _stop(self, finish_seconds: float) -> defer.Deferred[None]:
        return self._core.stop(finish_seconds)
