"""The parts of producers and consumers of ordered queues that are the same in each face."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Sequence
from typing import Generic

from twisted.internet import defer

from twisted_mq.client.consuming.deliveries import ORDERED, Deliveries, one_by_one
from twisted_mq.client.core.argument_checks import Topics, expressions
from twisted_mq.client.core.client_options import ClientOptions
from twisted_mq.client.core.requirements import Require
from twisted_mq.client.faces.consumers import AnyDeliveries, Iterates, ListenerT
from twisted_mq.client.faces.member import ClientMember, MQClientT
from twisted_mq.client.ordered import ordered_consumer, ordered_producer
from twisted_mq.client.ordered.coordinator_source import Given
from twisted_mq.client.ordered.ordered_options import OrderedConsumerOptions, OrderedOptions
from twisted_mq.protocol.messages.subscription import SUB_ALL

Told = Callable[[str, str, bool], object]
"""A listener: (topic, unit, whether this client leads it)."""


class OrderedProducer(ClientMember[MQClientT]):
    """A producer of one group, for ordered queues."""

    _core: ordered_producer.OrderedProducer

    def __init__(
        self,
        namesrv: str | Sequence[str] | None = None,
        *,
        group: str,
        coordinator: Given | None = None,
        options: OrderedOptions | None = None,
        client: MQClientT | None = None,
        client_options: ClientOptions | None = None,
        instance_name: str | None = None,
        ip: str | None = None,
    ) -> None:
        """Take the arguments of Producer. Without `coordinator`, the topic's brokers are asked for its address."""
        super().__init__(client)
        self._core = ordered_producer.OrderedProducer(
            self._reactor, group, namesrv, coordinator=coordinator, client=self._shared, options=options,
            client_options=client_options, instance_name=instance_name, ip=ip,
        )  # fmt: skip

    def leads(self, topic: str, queue: int = 0) -> bool:
        """Return whether this producer is certain to be the leader of the queue now."""
        return self._do(lambda: self._core.leads(topic, queue))


class OrderedConsumer(Iterates[MQClientT], Generic[MQClientT, ListenerT]):
    """A member of a consumer group, for ordered queues."""

    _core: ordered_consumer.OrderedConsumer

    def __init__(
        self,
        namesrv: str | Sequence[str] | None = None,
        *,
        group: str,
        topics: Topics | None = None,
        listener: ListenerT | None = None,
        auto_ack: bool = False,
        coordinator: Given | None = None,
        options: OrderedConsumerOptions | None = None,
        client: MQClientT | None = None,
        client_options: ClientOptions | None = None,
        instance_name: str | None = None,
        ip: str | None = None,
    ) -> None:
        """Take the arguments of PushConsumer. Without `coordinator`, the topic's brokers are asked for its address."""
        super().__init__(client)
        self._core = core = ordered_consumer.OrderedConsumer(
            self._reactor, group, namesrv, coordinator=coordinator, client=self._shared, options=options,
            client_options=client_options, instance_name=instance_name, ip=ip,
        )  # fmt: skip
        self._deliveries: AnyDeliveries = Deliveries(
            self._reactor, group, ORDERED, limit=math.inf, timeout_seconds=core.options.consume_timeout_seconds
        )
        self._receive(auto_ack)
        for topic, expression in expressions(topics).items():
            self.subscribe(topic, expression)
        if listener is not None:
            self.listen(listener)

    @abc.abstractmethod
    def _receive(self, auto_ack: bool) -> None:
        """Make what passes the deliveries on to iterations."""

    @abc.abstractmethod
    def listen(self, listener: ListenerT) -> None:
        """Set the listener: (list of messages, context) -> ConsumeOrderlyStatus."""

    def subscribe(self, topic: str, expression: str = SUB_ALL) -> None:
        """Consume a topic: all of it, or tags as "A || B".

        Raises ClientOptionIllegal, SubscriptionError or ClientStateError.
        """
        self._do(lambda: self._core.subscribe(topic, expression))

    def _start(self, require: Require | None) -> defer.Deferred[None]:
        if not self.listens:
            core = self._core
            core.options = one_by_one(core.options)
            core.listen(self._deliveries.listener)
        return super()._start(require)
