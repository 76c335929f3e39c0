"""Keeps a consumer's assigned queues up to date (Apache: RebalancePushImpl).

A run drops queues that went to other members, and begins to pull new ones. rebalance_timer.py decides when to run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import Protocol

import attrs
from twisted.internet import defer
from twisted.python import failure

from twisted_mq.client.consuming.assignment import Assignment, BrokerAssignment
from twisted_mq.client.consuming.consumer_options import ConsumerOptions, MessageModel
from twisted_mq.client.consuming.offset_store import OffsetStore, start_offset
from twisted_mq.client.consuming.process_queue import ProcessQueue
from twisted_mq.client.consuming.queue_locks import QueueLocks
from twisted_mq.client.core.errors import EXPECTED_ERRORS, NoRoute, TopicNotFound, level_of
from twisted_mq.client.core.mq_client import MQClient
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import MessageQueue, SubscriptionData
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.messages.subscription import SUB_ALL, build_subscription
from twisted_mq.protocol.names.pop_topics import pop_retry_topic
from twisted_mq.protocol.names.system_topics import RETRY_PREFIX
from twisted_mq.protocol.names.topic_route import subscribe_queues

FIRST_PULL_SECONDS = 0.5
"""The delay of a new queue's first pull, so that its previous owner can commit."""

FINISH_CALL_SECONDS = 1.0
"""Seconds for which a queue consumed in order waits for its open listener call when it goes to another member."""

QueuesChanged = Callable[[str, Sequence[MessageQueue], Sequence[MessageQueue]], None]
"""(topic, all its queues, the assigned ones) (Apache: MessageQueueListener)."""


class Pull(Protocol):
    """The interface of a queue's pull that rebalancing uses."""

    process_queue: ProcessQueue
    pops: bool

    def start(self, delay_seconds: float) -> None: ...
    def stop(self) -> None: ...
    def drop(self) -> None: ...
    def expired(self, now_seconds: float) -> bool: ...

    @property
    def lag(self) -> int | None: ...


@attrs.frozen
class Popping:
    """Popping, for groups whose queues the broker divides."""

    assignment: BrokerAssignment
    make_pop: Callable[[MessageQueue], Pull]


@attrs.define(eq=False)
class Rebalance:
    """The queues of one consumer. `make_pull` makes the pull of a queue from an offset."""

    log = Logger()

    client: MQClient
    group: str
    options: ConsumerOptions
    offsets: OffsetStore
    subscriptions: dict[str, SubscriptionData]
    make_pull: Callable[[MessageQueue, int], Pull]
    pulls: dict[MessageQueue, Pull] = attrs.Factory(dict)
    locks: QueueLocks | None = None
    """Set if queues are consumed in order: they are pulled only while they are locked."""
    assigned: Callable[[], Set[MessageQueue] | None] = lambda: None
    """Returns the queues that the user chose, which are taken whatever other members have; None without a choice."""
    finished: Callable[[ProcessQueue], defer.Deferred[None]] = lambda held: defer.succeed(None)
    """Fires when no listener call of a queue is open."""
    popping: Popping | None = None
    """Set if the broker divides the queues; None if the group's members do."""
    queues_changed: QueuesChanged = lambda topic, queues, own: None
    _leaving: set[MessageQueue] = attrs.Factory(set)
    """Queues that were given up and still have an open listener call, or a lock."""

    async def run(self) -> bool:
        """Update the queues of every subscribed topic. Return False if something is missing."""
        balanced = True
        for queue in [one for one in self.pulls if one.topic not in self.subscriptions]:
            await self._drop(queue)
        for topic in list(self.subscriptions):
            try:
                balanced &= await self._rebalance(topic)
            except TopicNotFound as error:
                balanced = False
                if not topic.startswith(RETRY_PREFIX):  # created by the first heartbeat of the group
                    self.log.warn("nothing to consume: group={group} {error}", group=self.group, error=error)
            except EXPECTED_ERRORS as error:
                balanced = False
                self.log.emit(
                    level_of(error),
                    "rebalance failed: group={group} topic={topic} {error}",
                    group=self.group, topic=topic, error=error,
                )  # fmt: skip
        return balanced

    async def give_up(self, queue: MessageQueue, next_offset: int) -> None:
        """Drop a queue and commit this offset for it; the next run takes it again from there."""
        self.offsets.freeze(queue, next_offset)
        await self._drop(queue)

    async def drop_all(self) -> None:
        """Commit and drop every queue: the consumer stops."""
        queues = list(self.pulls)
        for queue in queues:
            await self._forget(queue)
        if self.locks is not None:
            await self.locks.unlock(queues)

    async def _rebalance(self, topic: str) -> bool:
        route = await self.client.routes.find(topic)
        queues = subscribe_queues(topic, route)
        assigned = await self._assignment(topic, queues)
        if assigned is None:
            return False
        changed = await self._drop_others(topic, assigned)
        for queue in sorted(assigned.pulled - self.pulls.keys()):
            changed |= await self._take(queue)
        for queue in sorted(assigned.popped - self.pulls.keys()):
            changed |= self._pop(queue)
        own = {queue for queue in self.pulls if queue.topic == topic}
        if changed:
            self.queues_changed(topic, queues, sorted(own))
            await self._tell(topic)
        return own == assigned.pulled | assigned.popped

    async def _assignment(self, topic: str, queues: list[MessageQueue]) -> Assignment | None:
        if self.popping is None:
            return Assignment(frozenset(await self._allocate(topic, queues)))
        assigned = await self.popping.assignment.of(topic)
        if assigned is not None and not topic.startswith(RETRY_PREFIX):
            self._follow_mode(topic, assigned)
        return assigned

    def _follow_mode(self, topic: str, assigned: Assignment) -> None:
        """Subscribe to the retry topic of pops if queues are pulled, and unsubscribe if they are popped.

        Messages that were popped and not answered are in that topic: a consumer that pulls must read it.
        """
        retry = pop_retry_topic(topic, self.group, version_2=False)
        if assigned.popped:
            self.subscriptions.pop(retry, None)
        elif assigned.pulled and retry not in self.subscriptions:
            self.subscriptions[retry] = build_subscription(retry, SUB_ALL, sub_version=self.client.now_ms())

    def _pop(self, queue: MessageQueue) -> bool:
        assert self.popping is not None  # it assigned the queue
        self.log.info("queue is popped: group={group} queue={queue}", group=self.group, queue=queue)
        pop = self.pulls[queue] = self.popping.make_pop(queue)
        pop.start(FIRST_PULL_SECONDS)
        return True

    async def _allocate(self, topic: str, queues: list[MessageQueue]) -> list[MessageQueue]:
        assigned = self.assigned()
        if assigned is not None:
            return [queue for queue in assigned if queue.topic == topic]
        if self.options.message_model is MessageModel.BROADCASTING:
            return queues
        addresses = self.client.routes.addresses_of(topic)
        if not addresses:
            raise NoRoute(f"topic {topic} has a route without a broker's address")
        members = await self._members(self.client.rng.choice(addresses))
        return self.options.allocate(self.client.client_id, queues, sorted(members))

    async def _members(self, address: str) -> list[str]:
        """Return the client ids of the group. A broker that does not know the group gets a heartbeat first."""
        try:
            return await self.client.calls.consumer_ids(address, self.group)
        except BrokerError as error:
            if error.response_code != ResponseCode.SYSTEM_ERROR:
                raise
        await self.client.heartbeat()
        return await self.client.calls.consumer_ids(address, self.group)

    async def _drop_others(self, topic: str, mine: Assignment) -> bool:
        now = self.client.reactor.seconds()
        lost = [
            queue
            for queue, pull in self.pulls.items()
            if queue.topic == topic and (queue not in (mine.popped if pull.pops else mine.pulled) or pull.expired(now))
        ]
        for queue in lost:
            self.log.info("queue released: group={group} queue={queue}", group=self.group, queue=queue)
            await self._drop(queue)
        return bool(lost)

    async def _drop(self, queue: MessageQueue) -> None:
        """Give a queue up. Its next owner begins after the call that is open here, if that ends soon."""
        pull = self.pulls.get(queue)
        if self.locks is None or pull is None:
            await self._forget(queue)
            return
        pull.stop()
        finished = self.finished(pull.process_queue)
        if not finished.called:
            await finished.addTimeout(FINISH_CALL_SECONDS, self.client.reactor, onTimeoutCancel=lambda *_: None)
        await self._forget(queue)
        self._leaving.add(queue)
        released = self.finished(pull.process_queue)
        released.addCallback(lambda _: defer.Deferred.fromCoroutine(self._release(queue)))
        if released.called:
            await released
        else:
            released.addErrback(self._report)

    async def _release(self, queue: MessageQueue) -> None:
        try:
            if self.locks is not None:
                await self.locks.unlock([queue])
        finally:
            self._leaving.discard(queue)

    def _report(self, reason: failure.Failure) -> None:
        self.log.failure("queue not released: group={group}", reason, group=self.group)

    async def _forget(self, queue: MessageQueue) -> None:
        pull = self.pulls.pop(queue, None)
        if pull is not None:
            pull.drop()
        await self.offsets.persist([queue])
        self.offsets.remove(queue)

    async def _take(self, queue: MessageQueue) -> bool:
        """Begin to pull a queue. Return False if its offset is not known now."""
        if queue in self._leaving:
            return False
        if self.locks is not None and not await self.locks.lock(queue):
            self.log.info(
                "queue is locked by another member: group={group} queue={queue}", group=self.group, queue=queue
            )
            return False
        self.offsets.remove(queue)
        try:
            offset = await start_offset(queue, self.client, self.options, self.offsets)
        except EXPECTED_ERRORS as error:
            self.log.emit(
                level_of(error), "queue not taken: group={g} queue={q} {error}", g=self.group, q=queue, error=error
            )
            return False
        self.log.info(
            "queue taken: group={group} queue={queue} offset={offset}", group=self.group, queue=queue, offset=offset
        )
        pull = self.pulls[queue] = self.make_pull(queue, offset)
        pull.process_queue.locked_at = None if self.locks is None else self.client.reactor.seconds()
        pull.start(FIRST_PULL_SECONDS)
        return True

    async def _tell(self, topic: str) -> None:
        """Send the subscription in a new version: brokers answer pulls only for the newest version that they know."""
        self.subscriptions[topic] = attrs.evolve(self.subscriptions[topic], sub_version=self.client.now_ms())
        await self.client.heartbeat(anew=True)
