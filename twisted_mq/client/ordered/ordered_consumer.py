"""Consumes strictly ordered queues: in order, whichever broker fails, by one active consumer of the group a queue.

async def on_messages(messages, context):
    ...
    return ConsumeOrderlyStatus.SUCCESS

consumer = OrderedConsumer(reactor, group="audit", namesrv="127.0.0.1:9876", coordinator="127.0.0.1:2181/mq")
consumer.subscribe("Orders")
consumer.listen(on_messages)
await consumer.start()
await consumer.stop()
"""

from __future__ import annotations

import functools
import os
import random
from collections.abc import Callable, Iterable, Mapping, Sequence

from twisted.internet import defer, interfaces

from twisted_mq.client.consuming.consumer_options import (
    ConsumeFromWhere,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    MessageModel,
    OrderlyListener,
)
from twisted_mq.client.consuming.listener_calls import ListenerCalls
from twisted_mq.client.consuming.running_info import running_info
from twisted_mq.client.core.argument_checks import check_class, check_client_arguments, check_reactor_argument
from twisted_mq.client.core.client_options import ClientOptions
from twisted_mq.client.core.consume_rates import ConsumeRates
from twisted_mq.client.core.errors import ClientStateError
from twisted_mq.client.core.mq_client import MQClient
from twisted_mq.client.core.name_checks import check_group, check_topic
from twisted_mq.client.core.requirements import Require
from twisted_mq.client.core.together import together
from twisted_mq.client.ordered.coordinator_source import Connect, CoordinatorSource, Given
from twisted_mq.client.ordered.messages_deleted import MessagesDeleted
from twisted_mq.client.ordered.ordered_options import OrderedConsumerOptions
from twisted_mq.client.ordered.topic_units import read_topic
from twisted_mq.client.ordered.unit_consumer import Told, UnitConsumer
from twisted_mq.coordination.connect import coordinator_for
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
from twisted_mq.protocol.messages.subscription import SUB_ALL, build_subscription
from twisted_mq.remoting.client import Connect as ConnectBroker


class OrderedConsumer:
    """A member of a consumer group. It joins the leader election of each ordered queue of its topics.

    Only the leader of a queue consumes it; the group's other members are on standby and continue at its committed offset. A
    new group begins with the first message that any group has still to consume.
    """

    log = Logger()

    def __init__(
        self,
        reactor: interfaces.IReactorTime,
        group: str,
        namesrv: str | Sequence[str] | None = None,
        *,
        coordinator: Given | None = None,
        client: MQClient | None = None,
        options: OrderedConsumerOptions | None = None,
        client_options: ClientOptions | None = None,
        instance_name: str | None = None,
        ip: str | None = None,
        connect: ConnectBroker | None = None,
        connect_coordinator: Connect | None = None,
        rng: random.Random | None = None,
        get_pid: Callable[[], int] = os.getpid,
    ) -> None:
        """Takes the arguments of OrderedProducer."""
        check_reactor_argument(reactor)
        check_class(options, OrderedConsumerOptions, "options")
        check_client_arguments(client, client_options, MQClient, ClientOptions)
        check_group(group)
        self.group = group
        self.options = options or OrderedConsumerOptions()
        self.client = client or MQClient(
            reactor, namesrv, options=client_options, instance_name=instance_name, ip=ip, connect=connect, rng=rng,
            get_pid=get_pid,
        )  # fmt: skip
        self.subscriptions: dict[str, SubscriptionData] = {}
        self._clock = reactor
        self._source = CoordinatorSource(
            coordinator, self.client, connect_coordinator or functools.partial(coordinator_for, reactor=reactor)
        )
        self._units: list[UnitConsumer] = []
        self._listeners: list[Told] = []
        self._deleted_listeners: list[Callable[[MessagesDeleted], object]] = []
        self._listener: OrderlyListener | None = None
        self._calls: ListenerCalls[ConsumeOrderlyContext, ConsumeOrderlyStatus] | None = None
        self._state = "CREATED"
        self._started_ms = 0
        self.rates = ConsumeRates()

    # public calls

    def subscribe(self, topic: str, expression: str = SUB_ALL) -> None:
        """Consume a topic: all of it, or tags as "A || B". Raises ClientOptionIllegal, SubscriptionError, ClientStateError."""
        self._check_created()
        check_topic(topic)
        self.subscriptions[topic] = build_subscription(topic, expression, sub_version=self.client.now_ms())

    def listen(self, listener: OrderlyListener) -> None:
        """Set the listener: (list of messages, context) -> ConsumeOrderlyStatus, or a Deferred or coroutine of it.

        Each queue's messages come one call after the other. Messages that the listener refuses, or for which it raises, come
        again after a pause, and block their queue meanwhile: nothing is skipped.
        """
        self._check_created()
        self._listener = listener

    def on_lead(self, listener: Told) -> None:
        """Call `listener(topic, unit, leads)` when this consumer becomes the active one of a unit or ceases to be it."""
        self._listeners.append(listener)

    def on_deleted(self, listener: Callable[[MessagesDeleted], object]) -> None:
        """Call `listener(event)` before consumption continues after messages that a broker with a full disk deleted."""
        self._deleted_listeners.append(listener)

    def start(self, *, require: Require | None = None) -> defer.Deferred[None]:
        """Join the group and the leader elections.

        Fails with OrderedError, NoRoute, RemotingError, BrokerError or ClientStateError. `require` is as for
        PushConsumer.
        """
        return defer.Deferred.fromCoroutine(self._start(require))

    def stop(self, finish_seconds: float = 5.0) -> defer.Deferred[None]:
        """Let open listener calls finish for that long, commit, and let others continue. Stopping twice is harmless."""
        return defer.Deferred.fromCoroutine(self._stop(finish_seconds))

    # life cycle

    def _check_created(self) -> None:
        if self._state != "CREATED":
            raise ClientStateError(f"ordered consumer {self.group}: set topics and listener before start()")

    async def _start(self, require: Require | None) -> None:
        self.client.check_process()
        if self._state != "CREATED":
            raise ClientStateError(
                f"ordered consumer {self.group} is {self._state.lower()}; create a new one to start again"
            )
        if not self.subscriptions or self._listener is None:
            missing = "subscription; call subscribe()" if not self.subscriptions else "listener; call listen()"
            raise ClientStateError(f"ordered consumer {self.group} has no {missing} before start()")
        refusal = ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
        self._calls = ListenerCalls(
            self._clock, self._listener, self.group, self.options.consume_timeout_seconds, refusal, rates=self.rates
        )
        self._state, self._started_ms = "RUNNING", self.client.now_ms()
        try:
            await self.client.join_consumer(self, require)
            for subscription in self.subscriptions.values():
                self._units += await self._units_of(subscription, self._calls)
        except Exception:
            self._state = "CREATED"
            await self._source.stop()
            await self.client.leave_consumer(self)
            raise
        for unit in self._units:
            unit.start()

    async def _units_of(
        self,
        subscription: SubscriptionData,
        calls: ListenerCalls[ConsumeOrderlyContext, ConsumeOrderlyStatus],
    ) -> list[UnitConsumer]:
        coordinator = await self._source.of_topic(subscription.topic)
        declared = await read_topic(coordinator, subscription.topic)
        return [
            UnitConsumer(
                self.group, self.client, coordinator, self.options, calls, subscription, unit,
                range(declared.queues) if declared.together else (int(unit),), self._tell, self._deleted,
            )
            for unit in declared.units
        ]  # fmt: skip

    async def _stop(self, finish_seconds: float) -> None:
        if self._state != "RUNNING":
            return
        self._state = "STOPPED"
        finish: defer.Deferred[None] = defer.Deferred()
        timer = self._clock.callLater(finish_seconds, self._finish, finish)
        await together(unit.stop(_shared(finish)) for unit in self._units)
        if timer.active():
            timer.cancel()
        await self._source.stop()
        await self.client.leave_consumer(self)

    def _finish(self, finish: defer.Deferred[None]) -> None:
        """Cancel the listener's calls that are still open."""
        if self._calls is not None:
            self._calls.stopped = True
        finish.callback(None)

    def _tell(self, topic: str, unit: str, leads: bool) -> None:
        for listener in self._listeners:
            listener(topic, unit, leads)

    def _deleted(self, event: MessagesDeleted) -> None:
        self.log.error("messages were deleted before they were consumed: {event}", event=event)
        for listener in self._deleted_listeners:
            listener(event)

    # interface for the client

    def topics(self) -> Iterable[str]:
        return list(self.subscriptions)

    def route_changed(self, topic: str, route: TopicRouteData) -> None:
        """Do nothing: the coordinator says where to consume from, and addresses are looked up for each pull."""

    def members_changed(self) -> None:
        """Do nothing: the coordinator says which member consumes."""

    def consumer_data(self) -> ConsumerData:
        return ConsumerData(
            group_name=self.group,
            consume_type="CONSUME_PASSIVELY",
            message_model=MessageModel.CLUSTERING.value,
            consume_from_where=ConsumeFromWhere.FIRST_OFFSET.value,
            subscription_data_set=[self.subscriptions[topic] for topic in sorted(self.subscriptions)],
        )

    async def persist_offsets(self) -> None:
        self.rates.sample(self._clock.seconds())
        for unit in self._units:
            for consumption in unit.consumed():
                consumption.commit()

    async def reset_offsets(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:
        """Do nothing: the coordinator's lists determine what is consumed."""

    def consumed_offsets(self, topic: str) -> dict[MessageQueue, int]:
        consumed = (one for unit in self._units for one in unit.consumed())
        return {one.queue: one.offset for one in consumed if one.offset is not None and one.queue.topic == topic}

    def running_info(self) -> ConsumerRunningInfo:
        properties = {
            "PROP_CONSUMEORDERLY": "true",
            "PROP_CONSUME_TYPE": "CONSUME_PASSIVELY",
            "PROP_THREADPOOL_CORE_SIZE": "1",
            "PROP_CONSUMER_START_TIMESTAMP": str(self._started_ms),
            "PROP_NAMESERVER_ADDR": ";".join(self.client.name_servers.addresses),
            "consumerGroup": self.group,
        }
        offsets = {
            queue: offset for topic in self.subscriptions for queue, offset in self.consumed_offsets(topic).items()
        }
        return running_info(properties, self.subscriptions, {}, offsets, self.rates, self._clock.seconds())

    async def consume_directly(self, message: MessageExt, broker_name: str | None) -> ConsumeMessageDirectlyResult:
        raise BrokerError(ResponseCode.NO_PERMISSION, f"consumer {self.group} supports only orderly consumption")


def _shared(finish: defer.Deferred[None]) -> defer.Deferred[None]:
    """Return a Deferred of its own that fires with this one."""
    one: defer.Deferred[None] = defer.Deferred()

    def fire(result: None) -> None:
        if not one.called:
            one.callback(None)

    finish.addCallback(fire)
    return one
