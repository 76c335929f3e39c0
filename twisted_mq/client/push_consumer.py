"""Consumes messages in a group: queues are shared among its members, messages come to a listener.

async def on_messages(messages, context):
    ...
    return ConsumeStatus.CONSUME_SUCCESS

consumer = PushConsumer(reactor, group="g", namesrv="127.0.0.1:9876")
consumer.subscribe("T", "A || B")
consumer.listen(on_messages)
await consumer.start()
await consumer.stop()
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from twisted.internet import defer, task, threads
from twisted.logger import Logger
from twisted.python import failure

from protocol.bodies import (
    ConsumeMessageDirectlyResult,
    ConsumerData,
    ConsumerRunningInfo,
    MessageQueue,
    ProcessQueueInfo,
    SubscriptionData,
    TopicRouteData,
)
from protocol.message import MessageExt
from protocol.subscription import SUB_ALL, TAG, build_subscription
from twisted_mq.broker.topic_validator import retry_topic
from twisted_mq.client.consume_service import ConsumeService
from twisted_mq.client.consumer_options import (
    ConsumeContext,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    ConsumerOptions,
    ConsumeStatus,
    Listener,
    MessageModel,
    OrderlyListener,
)
from twisted_mq.client.errors import ClientStateError
from twisted_mq.client.mq_client import MQClient
from twisted_mq.client.offset_store import LocalOffsetStore, OffsetStore, RemoteOffsetStore
from twisted_mq.client.orderly_service import OrderlyConsumeService
from twisted_mq.client.process_queue import ProcessQueue
from twisted_mq.client.pull_service import QueuePull
from twisted_mq.client.queue_locks import RENEW_SECONDS, QueueLocks
from twisted_mq.client.rebalance import Rebalance, RebalanceTimer
from twisted_mq.client.send_back import SendBack
from twisted_mq.client.send_rules import check_group, check_topic

BROADCAST_INSTANCE = "DEFAULT"
"""Instance name of a broadcasting client: its offset file must be found again by the next process."""

_DIRECT_RESULTS: dict[enum.Enum, str] = {
    ConsumeStatus.CONSUME_SUCCESS: "CR_SUCCESS",
    ConsumeStatus.RECONSUME_LATER: "CR_LATER",
    ConsumeOrderlyStatus.SUCCESS: "CR_SUCCESS",
    ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT: "CR_LATER",
}


class PushConsumer:
    """One member of a consumer group. Give it the name servers' addresses, or an MQClient to share."""

    log = Logger()

    def __init__(
        self,
        reactor: Any,
        group: str,
        namesrv: str | Sequence[str] | None = None,
        *,
        listener: Listener | None = None,
        client: MQClient | None = None,
        options: ConsumerOptions | None = None,
        **client_arguments: Any,
    ) -> None:
        """Raises ClientOptionIllegal for a bad group or address; nothing is connected before `start`."""
        check_group(group)
        self.group = group
        self.options = options or ConsumerOptions()
        if self._broadcasting:
            client_arguments.setdefault("instance_name", BROADCAST_INSTANCE)
        self.client = client or MQClient(reactor, namesrv or (), **client_arguments)
        self.subscriptions: dict[str, SubscriptionData] = {}
        self.paused = False
        self._clock = reactor
        self._listener: Any = listener
        self.orderly = False
        self._state = "CREATED"

    @property
    def _broadcasting(self) -> bool:
        return self.options.message_model is MessageModel.BROADCASTING

    # what users call

    def subscribe(self, topic: str, expression: str = SUB_ALL, expression_type: str = TAG) -> None:
        """Consume a topic: all of it, or tags as "A || B", or by another expression type the brokers know.

        All members of a group must subscribe to the same. Raises ClientOptionIllegal or SubscriptionError.
        """
        check_topic(topic)
        self.subscriptions[topic] = build_subscription(
            topic, expression, expression_type, sub_version=self.client.now_ms()
        )
        if self._state == "RUNNING":
            self._timer.now()

    def listen(self, listener: Listener) -> None:
        """Who gets the messages: (list of messages, context) -> ConsumeStatus or a Deferred or coroutine of it."""
        if self._state != "CREATED":
            raise ClientStateError(f"consumer {self.group}: the listener is set before start")
        self._listener, self.orderly = listener, False

    def listen_orderly(self, listener: OrderlyListener) -> None:
        """As `listen`, with each queue's messages one call after the other, and by one member of the group only.

        The listener answers ConsumeOrderlyStatus. What it refuses is repeated, and holds its queue back meanwhile.
        """
        self.listen(listener)  # type: ignore[arg-type]
        self.orderly = True

    def start(self) -> defer.Deferred[None]:
        """Join the group. Fires when the brokers known so far have been told; pulling begins a moment later."""
        return defer.Deferred.fromCoroutine(self._start())

    def stop(self, finish_seconds: float = 5.0) -> defer.Deferred[None]:
        """Let open listener calls finish for that long, commit, and leave the group. Harmless twice."""
        return defer.Deferred.fromCoroutine(self._stop(finish_seconds))

    def pause(self) -> None:
        """Pull no more until `resume`; what was pulled is consumed."""
        self.paused = True

    def resume(self) -> None:
        """Pull again."""
        self.paused = False

    @property
    def queues(self) -> list[MessageQueue]:
        """The queues that are ours now."""
        return sorted(self._rebalance.pulls) if self._state != "CREATED" else []

    # life cycle

    async def _start(self) -> None:
        self.client.check_process()
        if self._state != "CREATED":
            raise ClientStateError(f"consumer {self.group} is {self._state.lower()}; make a new one to start again")
        if self._listener is None:
            raise ClientStateError(f"consumer {self.group} has no listener; call listen() before start()")
        if not self.subscriptions:
            raise ClientStateError(f"consumer {self.group} has no subscription; call subscribe() before start()")
        self._assemble()
        self._state = "STARTING"
        try:
            await self.client.join_consumer(self)
        except BaseException:
            self._state = "CREATED"
            await self.client.leave_consumer(self)
            raise
        if self._state == "STARTING":  # not stopped meanwhile
            self._state = "RUNNING"
            self._timer.now()
            self._renewal.start(RENEW_SECONDS, now=False)

    def _assemble(self) -> None:
        if not self._broadcasting:
            topic = retry_topic(self.group)
            self.subscriptions.setdefault(topic, build_subscription(topic, SUB_ALL, sub_version=self.client.now_ms()))
        self._started_ms = self.client.now_ms()
        self.offsets = self._offset_store()
        self._send_back = SendBack(self.client, self.group, self.options.most_tries(orderly=self.orderly))
        self._rebalance = Rebalance(
            self.client, self.group, self.options, self.offsets, self.subscriptions, functools.partial(QueuePull, self)
        )
        locks = QueueLocks(self.client, self.group, self._held)
        self._renewal = task.LoopingCall(lambda: defer.Deferred.fromCoroutine(locks.renew()))
        self._renewal.clock = self._clock
        common = (self._clock, self._listener, self.group, self.options, self.offsets, self._send_back.give_back)
        if self.orderly:
            orderly = OrderlyConsumeService(*common, locks)
            self._rebalance.finished = orderly.finished
            self._rebalance.locks = None if self._broadcasting else locks
            self.consume_service: ConsumeService | OrderlyConsumeService = orderly
        else:
            self.consume_service = ConsumeService(*common)
        self._timer = RebalanceTimer(self._clock, self.options.rebalance_seconds, self._rebalance.run)

    def _held(self) -> dict[MessageQueue, ProcessQueue]:
        return {queue: pull.process_queue for queue, pull in self._rebalance.pulls.items()}

    def _offset_store(self) -> OffsetStore:
        if not self._broadcasting:
            return RemoteOffsetStore(self.group, self.client)
        path = self.options.offset_directory / self.client.client_id / self.group / "offsets.json"
        return LocalOffsetStore(path, self._in_thread)

    def _in_thread(self, function: Any, *arguments: Any) -> defer.Deferred[Any]:
        pool = getattr(self._clock, "getThreadPool", None)
        if pool is None:  # a Clock has no threads
            return defer.execute(function, *arguments)
        return threads.deferToThreadPool(self._clock, pool(), function, *arguments)

    async def _stop(self, finish_seconds: float) -> None:
        if self._state not in ("STARTING", "RUNNING"):
            return
        self._state = "STOPPED"
        self._timer.stop()
        if self._renewal.running:
            self._renewal.stop()
        for pull in self._rebalance.pulls.values():
            pull.stop()
        await self.consume_service.stop(finish_seconds)
        await self._rebalance.drop_all()
        await self.client.leave_consumer(self)

    # member of the client

    def topics(self) -> Iterable[str]:
        return list(self.subscriptions)

    def route_changed(self, topic: str, route: TopicRouteData) -> None:
        if self._state == "RUNNING" and topic in self.subscriptions:
            self._timer.now()

    def members_changed(self) -> None:
        if self._state == "RUNNING":
            self._timer.now()

    def consumer_data(self) -> ConsumerData:
        return ConsumerData(
            group_name=self.group,
            consume_type="CONSUME_PASSIVELY",
            message_model=self.options.message_model.value,
            consume_from_where=self.options.consume_from_where.value,
            subscription_data_set=[self.subscriptions[topic] for topic in sorted(self.subscriptions)],
        )

    async def persist_offsets(self) -> None:
        await self.offsets.persist(list(self._rebalance.pulls))

    def offset_illegal(self, queue: MessageQueue, next_offset: int) -> None:
        """Called by a pull: go on from the offset the broker named."""
        corrected = defer.Deferred.fromCoroutine(self._rebalance.give_up(queue, next_offset))
        corrected.addCallbacks(lambda _: self._timer.now(), self._report)

    def _report(self, reason: failure.Failure) -> None:
        self.log.failure("offset not corrected: group={group}", reason, group=self.group)

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
            "PROP_CONSUME_TYPE": "CONSUME_PASSIVELY",
            "PROP_THREADPOOL_CORE_SIZE": str(self.options.concurrency),
            "PROP_CONSUMER_START_TIMESTAMP": str(self._started_ms),
            "PROP_NAMESERVER_ADDR": ";".join(self.client.name_servers.addresses),
            "consumerGroup": self.group,
        }
        return ConsumerRunningInfo(
            properties=properties,
            subscription_set=[self.subscriptions[topic] for topic in sorted(self.subscriptions)],
            mq_table={queue: self._queue_info(queue, pull) for queue, pull in self._rebalance.pulls.items()},
        )

    def _queue_info(self, queue: MessageQueue, pull: QueuePull) -> ProcessQueueInfo:
        held = pull.process_queue
        return ProcessQueueInfo(
            commit_offset=self.offsets.remembered(queue) or 0,
            cached_msg_min_offset=max(0, held.min_offset),
            cached_msg_max_offset=max(0, held.max_offset) if held.count else 0,
            cached_msg_count=held.count,
            cached_msg_size_in_mib=held.size_bytes >> 20,
            locked=held.locked_at is not None,
            last_lock_timestamp=int((held.locked_at or 0) * 1000),
            dropped=held.dropped,
            last_pull_timestamp=int(held.last_pull_seconds * 1000),
        )

    async def consume_directly(self, message: MessageExt, broker_name: str | None) -> ConsumeMessageDirectlyResult:
        began = self.client.now_ms()
        queue = MessageQueue(message.topic, broker_name or "", message.queue_id)
        result, remark = "CR_RETURN_NULL", None
        try:
            context = ConsumeOrderlyContext(queue) if self.orderly else ConsumeContext(queue)
            status = await self.consume_service.calls.call([message], context)
            result = _DIRECT_RESULTS.get(status, result) if isinstance(status, enum.Enum) else result
        except Exception as error:  # the listener's own, for the administrator to read
            result, remark = "CR_THROW_EXCEPTION", f"{type(error).__name__}: {error}"
        return ConsumeMessageDirectlyResult(
            order=self.orderly, consume_result=result, remark=remark, spent_time_mills=self.client.now_ms() - began
        )
