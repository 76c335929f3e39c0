"""Consumes by polling: messages are pulled ahead and handed out by `poll` (Apache: DefaultLitePullConsumer).

    consumer = LitePullConsumer(reactor, group="g", namesrv="127.0.0.1:9876")
    consumer.subscribe("T", "A || B")
    await consumer.start()
    for message in await consumer.poll():
        ...
    await consumer.stop()

Queues are shared in the group as a push consumer's are; `assign` takes given queues instead, whatever other members have.
Polled messages count as consumed when the next poll begins, or at `stop`; with `auto_commit=False` only at `commit`.
The broker retries nothing: to get a message again, `seek` its offset.
"""

from __future__ import annotations

import os
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence

import attrs
from twisted.internet import defer, interfaces

from twisted_mq.client.consuming.consumer import Consumer
from twisted_mq.client.consuming.consumer_options import ConsumerOptions
from twisted_mq.client.consuming.process_queue import ProcessQueue
from twisted_mq.client.consuming.pulled_messages import Pulled, PulledMessages
from twisted_mq.client.consuming.rebalance import Rebalance
from twisted_mq.client.core.argument_checks import Topics, check_most
from twisted_mq.client.core.client_options import ClientOptions
from twisted_mq.client.core.errors import ClientStateError
from twisted_mq.client.core.mq_client import MQClient
from twisted_mq.client.core.times import Moment, moment_ms
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.messages.subscription import SUB_ALL, TAG, build_subscription
from twisted_mq.protocol.names.namespaces import with_namespace, without_namespace
from twisted_mq.protocol.names.topic_route import subscribe_queues
from twisted_mq.remoting.client import Connect


class LitePullConsumer(Consumer):
    """A consumer that is polled for messages."""

    consume_type = "CONSUME_ACTIVELY"
    lite = True

    consume_service: PulledMessages

    def __init__(
        self,
        reactor: interfaces.IReactorTime,
        group: str,
        namesrv: str | Sequence[str] | None = None,
        *,
        auto_commit: bool = True,
        topics: Topics | None = None,
        client: MQClient | None = None,
        options: ConsumerOptions | None = None,
        client_options: ClientOptions | None = None,
        namespace: str = "",
        instance_name: str | None = None,
        ip: str | None = None,
        connect: Connect | None = None,
        rng: random.Random | None = None,
        get_pid: Callable[[], int] = os.getpid,
    ) -> None:
        """Create a consumer, as Consumer; without `auto_commit`, only `commit` makes polled messages count as consumed."""
        self._assigned: set[MessageQueue] | None = None
        super().__init__(
            reactor, group, namesrv, topics=topics, client=client, options=options, client_options=client_options,
            namespace=namespace, instance_name=instance_name, ip=ip, connect=connect, rng=rng, get_pid=get_pid,
        )  # fmt: skip
        self.auto_commit = auto_commit
        self._polled: dict[MessageQueue, tuple[ProcessQueue, int]] = {}  # offsets of queues as they were taken then

    # queues

    def assign(self, queues: Iterable[MessageQueue]) -> None:
        """Consume these queues, all of their messages, instead of earlier subscriptions or assignments.

        It takes effect at once. A consumer either subscribes or assigns. Raises ClientStateError.
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
            self._rebalance_now()

    def subscribe(self, topic: str, expression: str = SUB_ALL, expression_type: str = TAG) -> None:
        if self._assigned is not None:
            raise ClientStateError(f"consumer {self.group} has assigned queues; it cannot subscribe as well")
        super().subscribe(topic, expression, expression_type)

    def fetch_queues(self, topic: str) -> defer.Deferred[list[MessageQueue]]:
        """Return all readable queues of a topic, to assign some of them. Fails with NoRoute."""
        return defer.Deferred.fromCoroutine(self._fetch_queues(topic))

    async def _fetch_queues(self, topic: str) -> list[MessageQueue]:
        topic = with_namespace(self.namespace, topic)
        return subscribe_queues(topic, await self.client.routes.find(topic))

    def _assemble_rebalance(self) -> Rebalance:
        self.consume_service = PulledMessages()
        return Rebalance(
            self.client, self.group, self.options, self.offsets, self.subscriptions, self._make_pull,
            assigned=lambda: self._assigned, queues_changed=self._queues_changed,
        )  # fmt: skip

    # messages

    def poll(self, timeout_seconds: float = 5.0, max_messages: int | None = None) -> defer.Deferred[list[MessageExt]]:
        """Return the next messages of one queue, at most `max_messages` or pull_batch_size.

        The list is empty if none came in time, or after `stop`.
        """
        return defer.Deferred.fromCoroutine(self._poll(timeout_seconds, max_messages))

    def getmany(
        self, timeout_seconds: float = 5.0, max_messages: int = 500
    ) -> defer.Deferred[dict[MessageQueue, list[MessageExt]]]:
        """Return the next messages of all queues, by queue; wait for the first one. Empty if none came in time.

        They count as consumed as those of `poll` do.
        """
        return defer.Deferred.fromCoroutine(self._getmany(timeout_seconds, max_messages))

    async def _getmany(self, timeout_seconds: float, most: int) -> dict[MessageQueue, list[MessageExt]]:
        found, deadline = self.take_many(most), self._clock.seconds() + timeout_seconds
        while not found and self._clock.seconds() < deadline and self._state != "STOPPED":
            await self.wait(deadline - self._clock.seconds())
            found = self._take_many(most)
        return found

    def take_many(self, most: int) -> dict[MessageQueue, list[MessageExt]]:
        """Do as `getmany`, without waiting. Raises ClientOptionIllegal, or ClientStateError if the consumer does not run."""
        check_most(most)
        self._check_runs()
        self._note_asked()
        return self._take_many(most)

    def _take_many(self, most: int) -> dict[MessageQueue, list[MessageExt]]:
        found: dict[MessageQueue, list[MessageExt]] = {}
        while most > 0 and (pulled := self.consume_service.take(most)) is not None:
            self._count_polled(*pulled)
            messages = self.named(pulled[0])
            found.setdefault(pulled[2], []).extend(messages)
            most -= len(messages)
        return found

    async def _poll(self, timeout_seconds: float, max_messages: int | None) -> list[MessageExt]:
        messages, deadline = self.take(max_messages), self._clock.seconds() + timeout_seconds
        while not messages and self._clock.seconds() < deadline and self._state != "STOPPED":
            await self.wait(deadline - self._clock.seconds())
            messages = self._take(max_messages)
        return messages

    def wait(self, timeout_seconds: float) -> defer.Deferred[None]:
        """Wait until there may be something to take, until that time is over, or until `stop`."""
        waiting = self.consume_service.wait()
        return waiting.addTimeout(timeout_seconds, self._clock, onTimeoutCancel=lambda *_: None)

    def take(self, max_messages: int | None = None) -> list[MessageExt]:
        """Do as `poll`, without waiting. Raises ClientStateError if the consumer does not run."""
        self._check_runs()
        self._note_asked()
        return self._take(max_messages)

    def _check_runs(self) -> None:
        if self._state not in ("STARTING", "RUNNING"):
            raise ClientStateError(f"consumer {self.group} is not running; call start() first")

    def _note_asked(self) -> None:
        """Count the polled messages as consumed, as more are asked for."""
        if self.auto_commit:
            self._note_polled()

    def _take(self, max_messages: int | None) -> list[MessageExt]:
        pulled = self.consume_service.take(max_messages)
        if pulled is None:
            return []
        self._count_polled(*pulled)
        return self.named(pulled[0])

    def _count_polled(self, messages: Sequence[MessageExt], process_queue: ProcessQueue, queue: MessageQueue) -> None:
        self.metrics.consumed += len(messages)
        self.rates.counts[queue.topic].consumed += len(messages)
        self._polled[queue] = process_queue, process_queue.remove(messages)

    def named(self, messages: Sequence[MessageExt]) -> list[MessageExt]:
        """Return messages with their topics' names without the namespace, as a poll returns them."""
        if not self.namespace:
            return list(messages)
        return [attrs.evolve(one, topic=without_namespace(self.namespace, one.topic)) for one in messages]

    # messages that are handed out one by one

    def poll_ahead(self, timeout_seconds: float) -> defer.Deferred[Pulled | None]:
        """Poll for a caller that hands messages out one by one. Return None if none came in time.

        Each message counts as polled when `handed_out` is called for it. The others come again after `put_back`.
        """
        return defer.Deferred.fromCoroutine(self._poll_ahead(timeout_seconds))

    async def _poll_ahead(self, timeout_seconds: float) -> Pulled | None:
        self._check_runs()
        self._note_asked()
        deadline = self._clock.seconds() + timeout_seconds
        pulled = self.consume_service.take()
        while pulled is None and self._clock.seconds() < deadline and self._state != "STOPPED":
            await self.wait(deadline - self._clock.seconds())
            pulled = self.consume_service.take()
        return pulled

    def handed_out(self, message: MessageExt, process_queue: ProcessQueue, queue: MessageQueue) -> None:
        """Count the message as polled, and the one before it as consumed."""
        self._note_asked()
        self._count_polled((message,), process_queue, queue)

    def put_back(self, pulled: Pulled) -> None:
        """Put back messages that were not handed out; they come next."""
        self.consume_service.put_back(pulled)

    # offsets

    def commit(self) -> defer.Deferred[None]:
        """Commit the offsets after all polled messages to the broker."""
        self._note_polled()
        return defer.Deferred.fromCoroutine(self.persist_offsets())

    def _note_polled(self) -> None:
        polled, self._polled = self._polled, {}
        for queue, (process_queue, offset) in polled.items():
            if not process_queue.dropped:
                self.offsets.update(queue, offset)

    def forget_polled(self) -> None:
        """Do not count the last polled messages as consumed."""
        self._polled.clear()

    def skipped(self, queue: MessageQueue, next_offset: int) -> None:
        self._polled[queue] = self._rebalance.pulls[queue].process_queue, next_offset

    def seek(self, queue: MessageQueue, offset: int) -> None:
        """Continue from this offset of an assigned queue. Raises ClientStateError."""
        if queue not in self.queues:
            raise ClientStateError(
                f"queue {queue} is not assigned to this member of {self.group}; seek only assigned queues"
            )
        self._rebalance.pulls[queue].drop()
        self.offsets.remove(queue)
        pull = self._rebalance.pulls[queue] = self._rebalance.make_pull(queue, offset)
        self._polled[queue] = pull.process_queue, offset
        pull.start(0.0)

    async def _seek_to(self, queue: MessageQueue, ask: Callable[[str, MessageQueue], Awaitable[int]]) -> None:
        self.seek(queue, await ask(await self._address(queue), queue))

    def seek_to_begin(self, queue: MessageQueue) -> defer.Deferred[None]:
        """Continue from the queue's first message that is still kept."""
        return defer.Deferred.fromCoroutine(self._seek_to(queue, self.client.calls.min_offset))

    def seek_to_end(self, queue: MessageQueue) -> defer.Deferred[None]:
        """Continue after the queue's last message."""
        return defer.Deferred.fromCoroutine(self._seek_to(queue, self.client.calls.max_offset))

    def offset_for_time(self, queue: MessageQueue, time: Moment) -> defer.Deferred[int]:
        """Return the offset of the first message stored at that time (a datetime or float seconds since 1970) or later."""
        return defer.Deferred.fromCoroutine(self._offset_for_time(queue, time))

    async def _offset_for_time(self, queue: MessageQueue, time: Moment) -> int:
        ms = moment_ms(time, "time")
        return await self.client.calls.search_offset(await self._address(queue), queue, ms)

    def committed(self, queue: MessageQueue) -> defer.Deferred[int | None]:
        """Return the group's offset at the broker; None if it has none."""
        return defer.Deferred.fromCoroutine(self._committed(queue))

    async def _committed(self, queue: MessageQueue) -> int | None:
        return await self.client.calls.consumer_offset(await self._address(queue), self.group, queue)

    async def _address(self, queue: MessageQueue) -> str:
        return await self.client.routes.master_of(queue)

    async def _stop(self, finish_seconds: float) -> None:
        if self.auto_commit and self._state in ("STARTING", "RUNNING"):
            self._note_polled()
        await super()._stop(finish_seconds)
