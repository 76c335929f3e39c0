"""Consumes by asking: messages are pulled ahead and handed out by `poll` (Apache: DefaultLitePullConsumer).

    consumer = LitePullConsumer(reactor, group="g", namesrv="127.0.0.1:9876")
    consumer.subscribe("T", "A || B")
    await consumer.start()
    for message in await consumer.poll():
        ...
    await consumer.stop()

Queues are shared in the group as a push consumer's are; `assign` takes given queues instead, whoever else has them. What
a poll returned counts as consumed when the next one begins, or at `stop`; with `auto_commit=False` only at `commit`.
Nothing is retried by the broker: a message that must come again is found by `seek`.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Sequence
from typing import Any

import attrs
from twisted.internet import defer

from twisted_mq.client.consuming.consumer import Consumer
from twisted_mq.client.consuming.process_queue import ProcessQueue
from twisted_mq.client.core.errors import ClientStateError
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.messages.subscription import SUB_ALL, build_subscription
from twisted_mq.protocol.names.namespaces import with_namespace, without_namespace
from twisted_mq.routing.topic_route import subscribe_queues


class PulledMessages:
    """What was pulled and not yet polled, in the order it came. One poll waits at a time."""

    def __init__(self) -> None:
        self._pulled: collections.deque[tuple[Sequence[MessageExt], ProcessQueue, MessageQueue]] = collections.deque()
        self._waiting: defer.Deferred[None] | None = None

    def submit(self, messages: Sequence[MessageExt], process_queue: ProcessQueue, queue: MessageQueue) -> None:
        self._pulled.append((messages, process_queue, queue))
        self._wake()

    def take(self) -> tuple[Sequence[MessageExt], ProcessQueue, MessageQueue] | None:
        """The messages of the pull that came first, of a queue that is still ours; None where there are none."""
        while self._pulled:
            pulled = self._pulled.popleft()
            if not pulled[1].dropped:
                return pulled
        return None

    def wait(self) -> defer.Deferred[None]:
        """Fires when there may be something to take. Raises ClientStateError while another poll waits."""
        if self._waiting is not None:
            raise ClientStateError("another poll of this consumer waits; one at a time")
        self._waiting = defer.Deferred()
        return self._waiting.addBoth(self._waited)

    def _waited(self, result: Any) -> Any:
        self._waiting = None
        return result

    async def stop(self, finish_seconds: float) -> None:
        """A poll that waits ends without messages."""
        self._pulled.clear()
        self._wake()

    def _wake(self) -> None:
        if self._waiting is not None:
            self._waiting.callback(None)


class LitePullConsumer(Consumer):
    """A consumer that is asked for messages."""

    consume_type = "CONSUME_ACTIVELY"
    lite = True

    def __init__(
        self,
        reactor: Any,
        group: str,
        namesrv: str | Sequence[str] | None = None,
        *,
        auto_commit: bool = True,
        **more: Any,
    ) -> None:
        """Further arguments are those of Consumer."""
        super().__init__(reactor, group, namesrv, **more)
        self.auto_commit = auto_commit
        self._assigned: set[MessageQueue] | None = None
        self._polled: dict[MessageQueue, tuple[ProcessQueue, int]] = {}  # offsets of queues as they were taken then

    # queues

    def assign(self, queues: Iterable[MessageQueue]) -> None:
        """Consume these queues, all of their messages; what else was subscribed or assigned is given up.

        It takes effect at once; a consumer either subscribes or assigns. Raises ClientStateError.
        """
        if self.subscriptions and self._assigned is None:
            raise ClientStateError(f"consumer {self.group} subscribes to topics; it cannot assign queues as well")
        self._assigned = set(queues)
        topics = {queue.topic for queue in self._assigned}
        for topic in self.subscriptions.keys() - topics:
            del self.subscriptions[topic]
        for topic in sorted(topics - self.subscriptions.keys()):
            self.subscriptions[topic] = build_subscription(topic, SUB_ALL, sub_version=self.client.now_ms())
        if self._state != "CREATED":
            self._rebalance.assigned = self._assigned
            self._rebalance_now()

    def subscribe(self, topic: str, *expression: str) -> None:
        if self._assigned is not None:
            raise ClientStateError(f"consumer {self.group} has assigned queues; it cannot subscribe as well")
        super().subscribe(topic, *expression)

    def fetch_queues(self, topic: str) -> defer.Deferred[list[MessageQueue]]:
        """All readable queues of a topic, to assign some of them. Fails with NoRoute."""
        return defer.Deferred.fromCoroutine(self._fetch_queues(topic))

    async def _fetch_queues(self, topic: str) -> list[MessageQueue]:
        topic = with_namespace(self.namespace, topic)
        return subscribe_queues(topic, await self.client.routes.find(topic))

    def _assemble(self) -> None:
        super()._assemble()
        self.consume_service: PulledMessages = PulledMessages()
        self._rebalance.assigned = self._assigned

    # messages

    def poll(self, timeout_seconds: float = 5.0) -> defer.Deferred[list[MessageExt]]:
        """The next messages of one queue, at most pull_batch_size; none where none came in time, or after `stop`."""
        return defer.Deferred.fromCoroutine(self._poll(timeout_seconds))

    async def _poll(self, timeout_seconds: float) -> list[MessageExt]:
        if self._state not in ("STARTING", "RUNNING"):
            raise ClientStateError(f"consumer {self.group} is not running; start() comes first")
        if self.auto_commit:
            self._note_polled()
        pulled, deadline = self.consume_service.take(), self._clock.seconds() + timeout_seconds
        while pulled is None and self._clock.seconds() < deadline and self._state != "STOPPED":
            waiting = self.consume_service.wait()
            waiting.addTimeout(deadline - self._clock.seconds(), self._clock, onTimeoutCancel=lambda *_: None)
            await waiting
            pulled = self.consume_service.take()
        if pulled is None:
            return []
        messages, process_queue, queue = pulled
        self._polled[queue] = process_queue, process_queue.remove(messages)
        if not self.namespace:
            return list(messages)
        return [attrs.evolve(one, topic=without_namespace(self.namespace, one.topic)) for one in messages]

    # offsets

    def commit(self) -> defer.Deferred[None]:
        """Bring the offsets behind all polled messages to the broker."""
        self._note_polled()
        return defer.Deferred.fromCoroutine(self.persist_offsets())

    def _note_polled(self) -> None:
        polled, self._polled = self._polled, {}
        for queue, (process_queue, offset) in polled.items():
            if not process_queue.dropped:
                self.offsets.update(queue, offset)

    def skipped(self, queue: MessageQueue, next_offset: int) -> None:
        self._polled[queue] = self._rebalance.pulls[queue].process_queue, next_offset

    def seek(self, queue: MessageQueue, offset: int) -> None:
        """Go on from this offset of a queue that is ours. Raises ClientStateError."""
        if queue not in self.queues:
            raise ClientStateError(f"queue {queue} is not consumed by {self.group} here (now): nothing to seek")
        self._rebalance.pulls[queue].drop()
        self.offsets.remove(queue)
        pull = self._rebalance.pulls[queue] = self._rebalance.make_pull(queue, offset)
        self._polled[queue] = pull.process_queue, offset
        pull.start(0.0)

    async def _seek_to(self, queue: MessageQueue, ask: Any) -> None:
        self.seek(queue, await ask(await self._address(queue), queue))

    def seek_to_begin(self, queue: MessageQueue) -> defer.Deferred[None]:
        """Go on from the queue's first message that is still kept."""
        return defer.Deferred.fromCoroutine(self._seek_to(queue, self.client.calls.min_offset))

    def seek_to_end(self, queue: MessageQueue) -> defer.Deferred[None]:
        """Go on behind the queue's last message."""
        return defer.Deferred.fromCoroutine(self._seek_to(queue, self.client.calls.max_offset))

    def offset_for_time(self, queue: MessageQueue, timestamp_ms: int) -> defer.Deferred[int]:
        """The offset of the first message stored at that time or later."""
        return defer.Deferred.fromCoroutine(self._offset_for_time(queue, timestamp_ms))

    async def _offset_for_time(self, queue: MessageQueue, timestamp_ms: int) -> int:
        return await self.client.calls.search_offset(await self._address(queue), queue, timestamp_ms)

    def committed(self, queue: MessageQueue) -> defer.Deferred[int | None]:
        """The group's offset at the broker; None without one."""
        return defer.Deferred.fromCoroutine(self._committed(queue))

    async def _committed(self, queue: MessageQueue) -> int | None:
        return await self.client.calls.consumer_offset(await self._address(queue), self.group, queue)

    async def _address(self, queue: MessageQueue) -> str:
        return await self.client.routes.master(queue.broker_name, queue.topic)

    async def _stop(self, finish_seconds: float) -> None:
        if self.auto_commit and self._state in ("STARTING", "RUNNING"):
            self._note_polled()
        await super()._stop(finish_seconds)
