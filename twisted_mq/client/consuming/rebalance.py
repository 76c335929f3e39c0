"""Which queues of the group are ours, and keeping it so (Apache: RebalancePushImpl, RebalanceService).

`RebalanceTimer` decides when: every 20 s, at once on notice, sooner while something is missing. `Rebalance` decides
what: it drops queues that went to others, and begins to pull those that came.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Set
from typing import Any, Protocol

import attrs
from twisted.internet import defer, interfaces
from twisted.python import failure

from twisted_mq.client.consuming.consumer_options import ConsumeFromWhere, ConsumerOptions, MessageModel
from twisted_mq.client.consuming.offset_store import OffsetStore
from twisted_mq.client.consuming.process_queue import ProcessQueue
from twisted_mq.client.consuming.queue_locks import QueueLocks
from twisted_mq.client.core.errors import ClientError, NoRoute, TopicNotFound
from twisted_mq.client.core.mq_client import MQClient
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import MessageQueue, SubscriptionData
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError, ProtocolError
from twisted_mq.protocol.names.system_topics import RETRY_PREFIX
from twisted_mq.remoting.errors import RemotingError
from twisted_mq.routing.topic_route import subscribe_queues

NOT_BALANCED_SECONDS = 1.0
"""When to try again after a topic, the group's members or a queue's offset were not known (minInterval). Each further
try in vain doubles it, up to the usual time."""

FIRST_PULL_SECONDS = 0.5
"""How long a newly taken queue waits for its first pull, so that its last owner can commit."""


class RebalanceTimer:
    """Runs `work` every `seconds`, and on request; never twice at the same time."""

    log = Logger()

    def __init__(
        self, clock: interfaces.IReactorTime, seconds: float, work: Callable[[], Coroutine[Any, Any, bool]]
    ) -> None:
        """`work` returns whether all is well; if not, it runs again soon."""
        self._clock = clock
        self._seconds = seconds
        self._work = work
        self._timer: interfaces.IDelayedCall | None = None
        self._running: defer.Deferred[None] | None = None
        self._active = False
        self._again = False
        self._stopped = False
        self._in_vain = 0

    def now(self) -> None:
        """Run at once; while it runs already, once more after that."""
        if self._stopped:
            return
        if self._active:
            self._again = True
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._active = True
        self._running = defer.Deferred.fromCoroutine(self._run())
        self._running.addErrback(self._report)

    def stop(self) -> None:
        """No further run; the one under way is cancelled."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._active and self._running is not None:
            self._running.cancel()

    async def _run(self) -> None:
        balanced = False
        try:
            balanced = await self._work()
        finally:
            self._active = False
            if not self._stopped:
                self._timer = self._clock.callLater(self._delay(balanced), self._due)
                self._again = False

    def _delay(self, balanced: bool) -> float:
        if self._again:
            return 0.0
        if balanced:
            self._in_vain = 0
            return self._seconds
        self._in_vain += 1
        return min(self._seconds, NOT_BALANCED_SECONDS * 2 ** (self._in_vain - 1))

    def _due(self) -> None:
        self._timer = None
        self.now()

    def _report(self, reason: failure.Failure) -> None:
        if not reason.check(defer.CancelledError):
            self.log.failure("rebalance failed", reason)


FINISH_CALL_SECONDS = 1.0
"""How long a queue that is consumed in order and goes to another member waits for its open listener call."""


class Pull(Protocol):
    """What rebalancing needs of a queue that is pulled."""

    process_queue: ProcessQueue

    def start(self, delay_seconds: float) -> None: ...
    def stop(self) -> None: ...
    def drop(self) -> None: ...
    def expired(self, now_seconds: float) -> bool: ...


@attrs.define(eq=False)
class Rebalance:
    """The queues of one consumer. `make_pull` makes the pulling of a queue from an offset on."""

    log = Logger()

    client: MQClient
    group: str
    options: ConsumerOptions
    offsets: OffsetStore
    subscriptions: dict[str, SubscriptionData]
    make_pull: Callable[[MessageQueue, int], Pull]
    pulls: dict[MessageQueue, Any] = attrs.Factory(dict)
    queues_changed: Callable[[str, list[MessageQueue]], None] | None = None
    locks: QueueLocks | None = None
    """Where queues are consumed in order: they are pulled only while they are locked."""
    assigned: Set[MessageQueue] | None = None
    """Where the user chose the queues: these are ours, whoever else has them."""
    finished: Callable[[ProcessQueue], defer.Deferred[None]] = lambda held: defer.succeed(None)
    """Fires when no listener call of a queue is open."""
    _leaving: set[MessageQueue] = attrs.Factory(set)
    """Queues that were given up and still have an open listener call, or a lock."""

    async def run(self) -> bool:
        """Bring the queues of every subscribed topic up to date; False where something is missing."""
        balanced = True
        for queue in [one for one in self.pulls if one.topic not in self.subscriptions]:
            await self._drop(queue)
        for topic in list(self.subscriptions):
            try:
                balanced &= await self._rebalance(topic)
            except TopicNotFound as error:
                balanced = False
                if not topic.startswith(RETRY_PREFIX):  # which comes into being with the group's first heartbeat
                    self.log.warn("nothing to consume: group={group} {error}", group=self.group, error=error)
            except (ClientError, RemotingError, ProtocolError) as error:
                balanced = False
                self.log.warn(
                    "rebalance failed: group={group} topic={topic} {error}",
                    group=self.group, topic=topic, error=error,
                )  # fmt: skip
        return balanced

    async def give_up(self, queue: MessageQueue, next_offset: int) -> None:
        """Drop a queue and commit this offset for it; the next run takes it anew from there."""
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
        mine = set(await self._allocate(topic, queues))
        changed = await self._drop_others(topic, mine)
        for queue in sorted(mine - self.pulls.keys()):
            changed |= await self._take(queue)
        if changed:
            await self._tell(topic)
        return mine == {queue for queue in self.pulls if queue.topic == topic}

    async def _allocate(self, topic: str, queues: list[MessageQueue]) -> list[MessageQueue]:
        if self.assigned is not None:
            return [queue for queue in self.assigned if queue.topic == topic]
        if self.options.message_model is MessageModel.BROADCASTING:
            return queues
        addresses = self.client.routes.addresses_of(topic)
        if not addresses:
            raise NoRoute(f"topic {topic} has a route without a broker's address")
        members = await self._members(self.client.rng.choice(addresses))
        return self.options.allocate(self.client.client_id, queues, sorted(members))

    async def _members(self, address: str) -> list[str]:
        """Client ids of the group; a broker that does not know the group is shown a heartbeat first."""
        try:
            return await self.client.calls.consumer_ids(address, self.group)
        except BrokerError as error:
            if error.response_code != ResponseCode.SYSTEM_ERROR:
                raise
        await self.client.heartbeat()
        return await self.client.calls.consumer_ids(address, self.group)

    async def _drop_others(self, topic: str, mine: set[MessageQueue]) -> bool:
        now = self.client.reactor.seconds()
        lost = [
            queue
            for queue, pull in self.pulls.items()
            if queue.topic == topic and (queue not in mine or pull.expired(now))
        ]
        for queue in lost:
            self.log.info("queue given up: group={group} queue={queue}", group=self.group, queue=queue)
            await self._drop(queue)
        return bool(lost)

    async def _drop(self, queue: MessageQueue) -> None:
        """Give a queue up; its next owner begins behind the call that is open here, if that ends soon."""
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
        """Begin to pull a queue; False where its offset cannot be learnt now."""
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
        except (ClientError, RemotingError, ProtocolError) as error:
            self.log.warn("queue not taken: group={g} queue={q} {error}", g=self.group, q=queue, error=error)
            return False
        self.log.info(
            "queue taken: group={group} queue={queue} offset={offset}", group=self.group, queue=queue, offset=offset
        )
        pull = self.pulls[queue] = self.make_pull(queue, offset)
        pull.process_queue.locked_at = None if self.locks is None else self.client.reactor.seconds()
        pull.start(FIRST_PULL_SECONDS)
        return True

    async def _tell(self, topic: str) -> None:
        """Brokers answer pulls only of the newest version of a subscription they have heard of."""
        self.subscriptions[topic] = attrs.evolve(self.subscriptions[topic], sub_version=self.client.now_ms())
        await self.client.heartbeat()
        if self.queues_changed is not None:
            self.queues_changed(topic, sorted(queue for queue in self.pulls if queue.topic == topic))


async def start_offset(queue: MessageQueue, client: MQClient, options: ConsumerOptions, offsets: OffsetStore) -> int:
    """Where to begin: at the stored offset, else as consume_from_where says (RebalancePushImpl.computePullFromWhere).

    Messages to be retried are never skipped. Raises NoRoute, RemotingError or BrokerError.
    """
    stored = await offsets.read(queue)
    if stored is not None and stored >= 0:
        return stored
    retry = queue.topic.startswith(RETRY_PREFIX)
    policy = options.consume_from_where
    if policy is ConsumeFromWhere.FIRST_OFFSET or (retry and policy is ConsumeFromWhere.LAST_OFFSET):
        return 0
    address = await client.routes.master(queue.broker_name, queue.topic)
    if policy is ConsumeFromWhere.LAST_OFFSET or retry:
        return await client.calls.max_offset(address, queue)
    timestamp = options.consume_timestamp_ms
    if timestamp is None:
        timestamp = client.now_ms() - 30 * 60 * 1000
    return await client.calls.search_offset(address, queue, timestamp)
