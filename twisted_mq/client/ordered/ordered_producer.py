"""Sends to strictly ordered queues: in order, whichever broker fails, by one active producer of the group a queue.

producer = OrderedProducer(reactor, group="billing", namesrv="127.0.0.1:9876", coordinator="127.0.0.1:2181/mq")
await producer.start()
await producer.lead("Orders")                       # waits while another producer of the group leads
result = await producer.send(Message("Orders", b"paid"), key="order-1")
await producer.stop()
"""

from __future__ import annotations

import functools
import os
import random
from collections.abc import Callable, Iterable, Sequence

from twisted.internet import defer, interfaces

from twisted_mq.client.core.argument_checks import check_class, check_client_arguments, check_reactor_argument
from twisted_mq.client.core.client_options import ClientOptions
from twisted_mq.client.core.errors import ClientStateError, MessageIllegal
from twisted_mq.client.core.mq_client import MQClient
from twisted_mq.client.core.name_checks import check_group
from twisted_mq.client.core.requirements import Require
from twisted_mq.client.core.together import together
from twisted_mq.client.ordered.coordinator_source import Connect, CoordinatorSource, Given
from twisted_mq.client.ordered.errors import QueueUnknown
from twisted_mq.client.ordered.ordered_options import OrderedOptions
from twisted_mq.client.ordered.topic_units import DeclaredTopics, unit_of
from twisted_mq.client.ordered.unit_sender import Told, UnitSender
from twisted_mq.client.producing.calls_in_flight import CallsInFlight
from twisted_mq.client.producing.outgoing import check_message, outgoing
from twisted_mq.client.producing.send_result import SendResult
from twisted_mq.coordination.connect import coordinator_for
from twisted_mq.coordination.interfaces import ICoordinator
from twisted_mq.ordering.lists import OrderedTopic
from twisted_mq.protocol.bodies import TopicRouteData
from twisted_mq.protocol.messages.message import Message
from twisted_mq.protocol.text.java import java_hash
from twisted_mq.protocol.text.properties import (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_ORDERED,
    PROPERTY_TIMER_DELAY_MS,
    PROPERTY_TIMER_DELAY_SEC,
    PROPERTY_TIMER_DELIVER_MS,
    PROPERTY_TRANSACTION_PREPARED,
)
from twisted_mq.remoting.client import Connect as ConnectBroker

NOT_ORDERED = (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_TIMER_DELAY_MS,
    PROPERTY_TIMER_DELAY_SEC,
    PROPERTY_TIMER_DELIVER_MS,
    PROPERTY_TRANSACTION_PREPARED,
    PROPERTY_ORDERED,
)
"""Properties that messages of ordered queues can't have: they would be stored at another time, or by other rules."""


class OrderedProducer:
    """A producer of one group. It joins the leader election of an ordered queue with its first `send` or `lead`.

    Several producers of one group are on standby for each other: only the leader of a queue sends to it.
    """

    def __init__(
        self,
        reactor: interfaces.IReactorTime,
        group: str,
        namesrv: str | Sequence[str] | None = None,
        *,
        coordinator: Given | None = None,
        client: MQClient | None = None,
        options: OrderedOptions | None = None,
        client_options: ClientOptions | None = None,
        instance_name: str | None = None,
        ip: str | None = None,
        connect: ConnectBroker | None = None,
        connect_coordinator: Connect | None = None,
        rng: random.Random | None = None,
        get_pid: Callable[[], int] = os.getpid,
    ) -> None:
        """Raises ClientOptionIllegal for a bad group or address; nothing is connected before `start`.

        Without `coordinator`, the topic's brokers are asked for its address. A given ICoordinator is started and stopped by its
        owner. The arguments from `instance_name` on are those of an MQClient of its own.
        """
        check_reactor_argument(reactor)
        check_class(options, OrderedOptions, "options")
        check_client_arguments(client, client_options, MQClient, ClientOptions)
        check_group(group)
        self.group = group
        self.options = options or OrderedOptions()
        self.client = client or MQClient(
            reactor, namesrv, options=client_options, instance_name=instance_name, ip=ip, connect=connect, rng=rng,
            get_pid=get_pid,
        )  # fmt: skip
        self._clock = reactor
        self._source = CoordinatorSource(
            coordinator, self.client, connect_coordinator or functools.partial(coordinator_for, reactor=reactor)
        )
        self._topics = DeclaredTopics(self._source)
        self._units: dict[tuple[str, str], UnitSender] = {}
        self._listeners: list[Told] = []
        self._started = False
        self._calls = CallsInFlight(group)

    # life cycle

    def start(self, *, require: Require | None = None) -> defer.Deferred[None]:
        """Begin. Asks nothing of the network yet; fails with ClientStateError when started already.

        `require` is as for Producer.
        """
        return defer.Deferred.fromCoroutine(self._start(require))

    async def _start(self, require: Require | None) -> None:
        self.client.check_process()
        if self._started:
            raise ClientStateError(f"ordered producer {self.group} is already started")
        await self.client.join_producer(self, require)
        self._started = True
        self._calls.open()

    def stop(self, finish_seconds: float = 3.0) -> defer.Deferred[None]:
        """Let sends finish for that long, then let others lead. Unfinished sends fail with ClientStateError."""
        return defer.Deferred.fromCoroutine(self._stop(finish_seconds))

    async def _stop(self, finish_seconds: float) -> None:
        if not self._started:
            return
        self._started = False
        await self._calls.finish(finish_seconds, self._clock)
        self._calls.cancel()
        units, self._units = self._units, {}
        await together(unit.stop() for unit in units.values())
        await self._source.stop()
        await self.client.leave_producer(self)

    # public calls

    def send(
        self,
        message: Message,
        queue: int | None = None,
        *,
        key: object = None,
        timeout_seconds: float | None = None,
    ) -> defer.Deferred[SendResult]:
        """Send one message after all that were sent to its queue before; fires when master and slave have it.

        It goes to `queue`, or to the queue of `key` (the same that Producer.send_by_key takes among as many queues). A topic of
        one queue needs neither. Messages of a queue are acknowledged, and fail, in the order of the calls: if one fails, the
        messages that wait after it fail, too.

        Fails with MessageIllegal, OrderedError (NotLeader, NoHead, SendTimedOut, SendGivenUp, TooMuchWaits, ...), NoRoute,
        BrokerError (refused for good) or ClientStateError. A send that was cancelled may still be stored.
        """
        return self._calls.run(self._send(message, queue, key, timeout_seconds))

    def lead(self, topic: str, queue: int | None = None) -> defer.Deferred[None]:
        """Join the leader election; fires when this producer leads the queue, or all of the topic. Fails as `send` does."""
        return self._calls.run(self._lead(topic, queue))

    def leads(self, topic: str, queue: int = 0) -> bool:
        """Return whether this producer surely is the active sender of the queue now."""
        found = self._topics.known(topic)
        unit = None if found is None else self._units.get((topic, unit_of(found[0], queue)))
        return unit is not None and unit.leads

    def on_lead(self, listener: Told) -> None:
        """Call `listener(topic, unit, leads)` when this producer becomes the leader of a unit or ceases to be it."""
        self._listeners.append(listener)

    # interface for the client

    def topics(self) -> Iterable[str]:
        return {topic for topic, _ in self._units}

    def route_changed(self, topic: str, route: TopicRouteData) -> None:
        """Do nothing: heads come from the coordinator, and addresses are looked up for each run."""

    # sending

    async def _send(
        self, message: Message, queue: int | None, key: object, timeout_seconds: float | None
    ) -> SendResult:
        self.client.check_process()
        options = self.options
        check_message(message, options.limits)
        for name in NOT_ORDERED:
            if name in message.properties:
                raise MessageIllegal(f"property {name}: not allowed in messages of ordered topics")
        found = self._topics.known(message.topic) or await self._topics.find(message.topic)
        queue_id = _queue_of(found[0], queue, key)
        ready = outgoing(message, self.client.unique_key(), options.limits)
        seconds = options.send_timeout_seconds if timeout_seconds is None else timeout_seconds
        return await self._unit(*found, queue_id).submit(queue_id, ready, seconds)

    async def _lead(self, topic: str, queue: int | None) -> None:
        found = self._topics.known(topic) or await self._topics.find(topic)
        queues = range(found[0].queues) if queue is None else (queue,)
        for unit in [self._unit(*found, one) for one in queues]:  # all join before the first one's turn is awaited
            await unit.turn()

    def _unit(self, declared: OrderedTopic, coordinator: ICoordinator, queue_id: int) -> UnitSender:
        name = unit_of(declared, queue_id)
        unit = self._units.get((declared.topic, name))
        if unit is None:
            unit = UnitSender(
                self.group,
                self.client,
                coordinator,
                self.options,
                declared.topic,
                name,
                self._tell,
                self._topics.forget,
            )
            self._units[declared.topic, name] = unit
            unit.start()
        return unit

    def _tell(self, topic: str, unit: str, leads: bool) -> None:
        for listener in self._listeners:
            listener(topic, unit, leads)


def _queue_of(declared: OrderedTopic, queue: int | None, key: object) -> int:
    if queue is not None:
        return queue
    if key is not None:
        return abs(java_hash(str(key))) % declared.queues
    if declared.queues > 1:
        raise QueueUnknown(
            f"topic {declared.topic} has {declared.queues} ordered queues: choose one with queue= or key="
        )
    return 0
