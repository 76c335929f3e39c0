"""The base of all consumers: membership of a group, subscriptions, assigned queues and their offsets.

Subclasses deliver the messages: push_consumer.py calls a listener, lite_pull_consumer.py is polled.
"""

from __future__ import annotations

import abc
import os
import random
from collections.abc import Callable, Iterable, Mapping, Sequence

from twisted.internet import defer, interfaces
from twisted.python import failure

from twisted_mq.client.consuming.consumer_options import ConsumerOptions, MessageModel
from twisted_mq.client.consuming.offset_store import LocalOffsetStore, OffsetStore, RemoteOffsetStore
from twisted_mq.client.consuming.process_queue import FlowLimits, ProcessQueue
from twisted_mq.client.consuming.queue_pull import Consumes, QueuePull
from twisted_mq.client.consuming.rebalance import QueuesChanged, Rebalance
from twisted_mq.client.consuming.rebalance_timer import RebalanceTimer
from twisted_mq.client.consuming.running_info import running_info
from twisted_mq.client.core.argument_checks import (
    Topics,
    check_class,
    check_client_arguments,
    check_reactor_argument,
    expressions,
)
from twisted_mq.client.core.client_metrics import ConsumerMetrics
from twisted_mq.client.core.client_options import ClientOptions
from twisted_mq.client.core.consume_rates import ConsumeRates
from twisted_mq.client.core.errors import ClientStateError
from twisted_mq.client.core.mq_client import MQClient
from twisted_mq.client.core.name_checks import check_group, check_topic
from twisted_mq.client.core.pace import Pace
from twisted_mq.client.core.requirements import Require
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import (
    ConsumeMessageDirectlyResult,
    ConsumerData,
    ConsumerRunningInfo,
    MessageQueue,
    SubscriptionData,
    TopicRouteData,
)
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.messages.subscription import SUB_ALL, TAG, build_subscription
from twisted_mq.protocol.names.namespaces import with_namespace, without_namespace
from twisted_mq.reactor_threads import threads_of
from twisted_mq.remoting.client import Connect

BROADCAST_INSTANCE = "DEFAULT"
"""Instance name of a broadcasting client: its offset file must be found again by the next process."""


class Consumer(abc.ABC):
    """A member of a consumer group. Give it the name servers' addresses, or an MQClient to share."""

    log = Logger()

    consume_type = "CONSUME_PASSIVELY"
    """The consume type in heartbeats."""
    lite = False
    """Pulls carry their subscription (361) instead of naming the one of the heartbeats (11)."""
    orderly = False

    consume_service: Consumes

    def __init__(
        self,
        reactor: interfaces.IReactorTime,
        group: str,
        namesrv: str | Sequence[str] | None = None,
        *,
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
        """Raises ClientOptionIllegal for an invalid argument; nothing is connected before `start`.

        `topics` are subscribed to: {"Orders": "paid || sent"}, or ["Orders"] for all messages. With a `namespace`, the brokers'
        names of the group and of all topics begin with it; queues have these names, messages have the topics without it.
        The arguments from `instance_name` on are those of an MQClient of its own.
        """
        check_reactor_argument(reactor)
        check_class(options, ConsumerOptions, "options")
        check_client_arguments(client, client_options, MQClient, ClientOptions)
        check_group(group)
        self.group = with_namespace(namespace, group)
        check_group(self.group)
        self.namespace = namespace
        self.options = options or ConsumerOptions()
        if self._broadcasting:
            instance_name = instance_name or BROADCAST_INSTANCE
        self.client = client or MQClient(
            reactor, namesrv, options=client_options, instance_name=instance_name, ip=ip, connect=connect, rng=rng,
            get_pid=get_pid,
        )  # fmt: skip
        self.subscriptions: dict[str, SubscriptionData] = {}
        self.metrics = ConsumerMetrics()
        self.rates = ConsumeRates()
        rate = self.options.max_messages_per_second
        self.pace = None if rate is None else Pace(rate)
        self._queues_listener: QueuesChanged | None = None
        self._all_paused = False
        self._paused: set[MessageQueue] = set()
        self._clock = reactor
        self._state = "CREATED"
        for topic, expression in expressions(topics).items():
            self.subscribe(topic, expression)

    @property
    def _broadcasting(self) -> bool:
        return self.options.message_model is MessageModel.BROADCASTING

    # public calls

    def subscribe(self, topic: str, expression: str = SUB_ALL, expression_type: str = TAG) -> None:
        """Consume a topic: all of it, or tags as "A || B", or by another expression type that the brokers support.

        All members of a group must have the same subscriptions. Raises ClientOptionIllegal or SubscriptionError.
        """
        topic = with_namespace(self.namespace, topic)
        check_topic(topic)
        self.subscriptions[topic] = build_subscription(
            topic, expression, expression_type, sub_version=self.client.now_ms()
        )
        self._rebalance_now()

    def unsubscribe(self, topic: str) -> None:
        """Stop consuming a topic; other members of the group soon get its queues."""
        self.subscriptions.pop(with_namespace(self.namespace, topic), None)
        self._rebalance_now()

    def start(self, *, require: Require | None = None) -> defer.Deferred[None]:
        """Join the group. Fires when the known brokers have had a heartbeat; pulling begins a moment later.

        With `require` of "cluster" it fails with NameServerUnreachable or BrokersUnreachable if no server answers, and with
        SubscriptionConflict if running members of the group have other subscriptions. With "topics" it also fails with
        TopicNotFound if a topic subscribed to does not exist.
        """
        return defer.Deferred.fromCoroutine(self._start(require))

    def stop(self, finish_seconds: float = 5.0) -> defer.Deferred[None]:
        """Let open listener calls finish for that long, commit, and leave the group. Stopping twice is harmless."""
        return defer.Deferred.fromCoroutine(self._stop(finish_seconds))

    def pause(self, *queues: MessageQueue) -> None:
        """Stop pulling these queues, or all if none are given, until `resume`. Pulled messages are still consumed."""
        self._all_paused |= not queues
        self._paused.update(queues)

    def resume(self, *queues: MessageQueue) -> None:
        """Resume pulling these queues, or all if none are given."""
        self._all_paused &= bool(queues)
        self._paused = self._paused - set(queues) if queues else set()

    def is_paused(self, queue: MessageQueue) -> bool:
        """Return whether pulling the queue is paused."""
        return self._all_paused or queue in self._paused

    def listen_to_queues(self, listener: QueuesChanged | None) -> None:
        """Call a listener with (topic, all its queues, the assigned ones) whenever the assignment changes.

        Apache: MessageQueueListener. It is called on the reactor's thread and must not block; its errors are logged.
        """
        self._queues_listener = listener

    def _queues_changed(self, topic: str, queues: Sequence[MessageQueue], own: Sequence[MessageQueue]) -> None:
        if self._queues_listener is not None:
            try:
                self._queues_listener(without_namespace(self.namespace, topic), queues, own)
            except Exception:
                self.log.failure("queues' listener failed: group={group} topic={t}", group=self.group, t=topic)

    @property
    def queues(self) -> list[MessageQueue]:
        """The queues that are assigned to this consumer now."""
        return sorted(self._rebalance.pulls) if self._state != "CREATED" else []

    def lag(self) -> dict[MessageQueue, int]:
        """Return how many messages wait in each assigned queue, as of its last pull; leave out queues without a pull."""
        pulls = self._rebalance.pulls if self._state != "CREATED" else {}
        return {queue: pull.lag for queue, pull in pulls.items() if pull.lag is not None}

    def consumes(self, queue: MessageQueue) -> bool:
        """Return whether a queue is assigned to this consumer now."""
        return self._state != "CREATED" and queue in self._rebalance.pulls

    # life cycle

    def _check_ready(self) -> None:
        """Raise ClientStateError if something is missing for a start."""
        if not self.subscriptions:
            raise ClientStateError(f"consumer {self.group} has no subscription; call subscribe() before start()")

    def _running(self) -> None:
        """Run after the group is joined; queues come a moment later."""
        self._timer.now()

    async def _start(self, require: Require | None) -> None:
        self.client.check_process()
        if self._state != "CREATED":
            raise ClientStateError(f"consumer {self.group} is {self._state.lower()}; create a new one to start again")
        self._check_ready()
        self._assemble()
        self._state = "STARTING"
        try:
            await self.client.join_consumer(self, require)
        except Exception:
            self._state = "CREATED"
            await self.client.leave_consumer(self)
            raise
        if self._state != "STARTING":  # stopped meanwhile
            await self.client.leave_consumer(self)
            return
        self._state = "RUNNING"
        self._running()

    def _assemble(self) -> None:
        """Make the parts that depend on the subscriptions."""
        self._started_ms = self.client.now_ms()
        self.offsets = self._offset_store()
        self._rebalance = self._assemble_rebalance()
        self._timer = RebalanceTimer(self._clock, self.options.rebalance_seconds, self._rebalance.run)

    @abc.abstractmethod
    def _assemble_rebalance(self) -> Rebalance:
        """Make `consume_service` and the rebalancing; the offset store exists by then."""

    def _make_pull(self, queue: MessageQueue, next_offset: int) -> QueuePull:
        return QueuePull(self, queue, next_offset)

    def _held(self) -> dict[MessageQueue, ProcessQueue]:
        return {queue: pull.process_queue for queue, pull in self._rebalance.pulls.items()}

    def _rebalance_now(self) -> None:
        if self._state == "RUNNING":
            self._timer.now()

    def _offset_store(self) -> OffsetStore:
        if not self._broadcasting:
            return RemoteOffsetStore(self.group, self.client)
        path = self.options.offset_directory / self.client.client_id / self.group / "offsets.json"
        return LocalOffsetStore(path, threads_of(self._clock))

    async def _stop(self, finish_seconds: float) -> None:
        if self._state not in ("STARTING", "RUNNING"):
            return
        self._state = "STOPPED"
        self._timer.stop()
        for pull in self._rebalance.pulls.values():
            pull.stop()
        await self._stop_consuming(finish_seconds)
        await self._rebalance.drop_all()
        await self.client.leave_consumer(self)

    async def _stop_consuming(self, finish_seconds: float) -> None:
        """Let open calls of the listener finish."""
        await self.consume_service.stop(finish_seconds)

    # interface for pulls

    def flow_limits(self, topic: str) -> FlowLimits:
        """Return how far pulling a queue of the topic may run ahead."""
        limits = self.options.flow_limits
        if limits.max_count_of_topic is None and limits.max_size_bytes_of_topic is None:
            return limits
        return limits.share(sum(queue.topic == topic for queue in self._rebalance.pulls))

    def skipped(self, queue: MessageQueue, next_offset: int) -> None:
        """Handle a pull's notice: the queue holds no message, and none before that offset was selected."""
        self.offsets.update(queue, next_offset, increase_only=True)

    def offset_illegal(self, queue: MessageQueue, next_offset: int) -> None:
        """Handle a pull's notice: continue from the offset that the broker named."""
        corrected = defer.Deferred.fromCoroutine(self._rebalance.give_up(queue, next_offset))
        corrected.addCallbacks(lambda _: self._timer.now(), self._report)

    def _report(self, reason: failure.Failure) -> None:
        self.log.failure("offset not corrected: group={group}", reason, group=self.group)

    # interface for the client

    def topics(self) -> Iterable[str]:
        return list(self.subscriptions)

    def route_changed(self, topic: str, route: TopicRouteData) -> None:
        if topic in self.subscriptions:
            self._rebalance_now()

    def members_changed(self) -> None:
        self._rebalance_now()

    def consumer_data(self) -> ConsumerData:
        return ConsumerData(
            group_name=self.group,
            consume_type=self.consume_type,
            message_model=self.options.message_model.value,
            consume_from_where=self.options.consume_from_where.value,
            subscription_data_set=[self.subscriptions[topic] for topic in sorted(self.subscriptions)],
        )

    async def persist_offsets(self) -> None:
        self.rates.sample(self._clock.seconds())
        await self.offsets.persist(list(self._rebalance.pulls))

    async def reset_offsets(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:
        for queue, offset in offsets.items():
            if queue.topic == topic and queue in self._rebalance.pulls:
                await self._rebalance.give_up(queue, offset)
        self._timer.now()

    def consumed_offsets(self, topic: str) -> dict[MessageQueue, int]:
        return {queue: offset for queue, offset in self.offsets.all().items() if queue.topic == topic}

    def running_info(self) -> ConsumerRunningInfo:
        properties = {
            "PROP_CONSUMEORDERLY": str(self.orderly).lower(),
            "PROP_CONSUME_TYPE": self.consume_type,
            "PROP_THREADPOOL_CORE_SIZE": str(self.options.concurrency),
            "PROP_CONSUMER_START_TIMESTAMP": str(self._started_ms),
            "PROP_NAMESERVER_ADDR": ";".join(self.client.name_servers.addresses),
            "consumerGroup": self.group,
        }
        return running_info(
            properties, self.subscriptions, self._held(), self.offsets.all(), self.rates, self._clock.seconds()
        )

    async def consume_directly(self, message: MessageExt, broker_name: str | None) -> ConsumeMessageDirectlyResult:
        raise BrokerError(ResponseCode.SYSTEM_ERROR, f"consumer {self.group} has no listener")
