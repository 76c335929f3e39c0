"""A unit of an ordered consumer: its leadership, the term that is consumed, and its queues."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from twisted.internet import defer
from twisted.python import failure

from twisted_mq.client.consuming.consumer_options import ConsumeOrderlyContext, ConsumeOrderlyStatus
from twisted_mq.client.consuming.listener_calls import ListenerCalls
from twisted_mq.client.core.errors import BrokerGone
from twisted_mq.client.core.mq_client import MQClient
from twisted_mq.client.ordered.messages_deleted import MessagesDeleted
from twisted_mq.client.ordered.ordered_options import OrderedConsumerOptions
from twisted_mq.client.ordered.queue_consumption import QueueConsumption
from twisted_mq.client.ordered.serving_member import ServingMember
from twisted_mq.client.ordered.unit_watch import UnitWatch
from twisted_mq.coordination.election import Candidate
from twisted_mq.coordination.interfaces import ICoordinator
from twisted_mq.logs import Logger
from twisted_mq.ordering.lists import Term
from twisted_mq.ordering.paths import consumer_group_path
from twisted_mq.protocol.bodies import MessageQueue, SubscriptionData

Told = Callable[[str, str, bool], object]
"""(topic, unit, whether it leads)"""


class UnitConsumer:
    """Takes part in the leader election from `start` on, and consumes while it leads."""

    log = Logger()

    def __init__(
        self,
        group: str,
        client: MQClient,
        coordinator: ICoordinator,
        options: OrderedConsumerOptions,
        calls: ListenerCalls[ConsumeOrderlyContext, ConsumeOrderlyStatus],
        subscription: SubscriptionData,
        unit: str,
        queues: Sequence[int],
        told: Told,
        deleted: Callable[[MessagesDeleted], object],
    ) -> None:
        self.group = group
        self.deleted = deleted
        self.client = client
        self.options = options
        self.calls = calls
        self.subscription = subscription
        self.topic = subscription.topic
        self._coordinator = coordinator
        self._unit = unit
        self._queues = queues
        self._told = told
        self._term: Term | None = None
        self._serving: ServingMember | None = None
        self._consumed: list[QueueConsumption] = []
        self._leaving: list[QueueConsumption] = []
        self._settles = self._again = self._stopped = False
        self._settled: list[defer.Deferred[None]] = []
        self._watch = UnitWatch(coordinator, self.topic, unit, self._changed)
        self._candidate = Candidate(
            coordinator,
            consumer_group_path(group, self.topic, unit),
            leads=self._leads,
            lost=self._lost,
            data=client.client_id.encode(),
        )

    @property
    def leads(self) -> bool:
        return self._candidate.is_leader

    @property
    def problem(self) -> Exception | None:
        """The reason why it can't be consumed, if an operator's help is needed; else None."""
        return self._watch.problem or self._candidate.problem

    def start(self) -> None:
        """Join the election. Needs no connection yet."""
        self._watch.start()
        self._candidate.start()

    async def stop(self, finish: defer.Deferred[None]) -> None:
        """Let the listener's open calls end, but not past `finish`; commit, and let others lead."""
        self._stopped = True
        self._watch.stop()
        self._changed()
        if self._settles:
            settled: defer.Deferred[None] = defer.Deferred()
            self._settled.append(settled)
            await defer.DeferredList([settled, finish], fireOnOneCallback=True)
            for consumption in self._leaving:
                consumption.abandon()
        await self._candidate.stop()

    def consumed(self) -> Iterable[QueueConsumption]:
        """Return the consumptions that are under way."""
        return tuple(self._consumed)

    async def address(self) -> str:
        if self._serving is None:
            raise BrokerGone(self.topic, self.client.name_servers.addresses)
        return await self._serving.address()

    def unreached(self, address: str) -> None:
        if self._serving is not None:
            self._serving.unreached(address)

    @property
    def patience_seconds(self) -> float:
        return float(self._coordinator.session_seconds) / 2

    # events

    def _leads(self, term: int) -> None:
        self._told(self.topic, self._unit, True)
        self._changed()

    def _lost(self) -> None:
        self._told(self.topic, self._unit, False)
        self._changed()

    def _changed(self) -> None:
        """Change terms one at a time: the next change begins when the listener has ended with the one before."""
        self._again = True
        if not self._settles:
            self._settles = True
            defer.Deferred.fromCoroutine(self._settle()).addErrback(self._failed)

    async def _settle(self) -> None:
        try:
            while self._again:
                self._again = False
                wanted = self._wanted()
                if wanted != self._term:
                    await self._leave_term()
                    self._begin(self._wanted())
        finally:
            self._settles = False
            settled, self._settled = self._settled, []
            for one in settled:
                one.callback(None)

    def _wanted(self) -> Term | None:
        lists = self._watch.lists
        if self._stopped or lists is None or self._candidate.term is None:
            return None
        return lists.consumed

    async def _leave_term(self) -> None:
        self._term = None
        self._leaving, self._consumed = self._consumed, []
        await defer.DeferredList([one.stop() for one in self._leaving])
        self._leaving = []
        if self._serving is not None:
            self._serving.stop()
            self._serving = None

    def _begin(self, term: Term | None) -> None:
        self._term = term
        if term is None:
            return
        self._serving = ServingMember(self.client, self._coordinator, self.topic, term.group, self._look_again)
        for queue_id in self._queues:
            queue = MessageQueue(topic=self.topic, broker_name=term.group, queue_id=queue_id)
            self._consumed.append(QueueConsumption(self, queue, term))
        for consumption in self._consumed:
            consumption.start()

    def _look_again(self) -> None:
        for consumption in self._consumed:
            consumption.look_again()

    def _failed(self, reason: failure.Failure) -> None:
        self.log.failure("unit not consumed: topic={topic} unit={unit}", reason, topic=self.topic, unit=self._unit)
