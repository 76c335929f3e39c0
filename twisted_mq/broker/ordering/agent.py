"""Represents a broker at the coordinator: its session and node there, the lists that it reads, the events that it reports.

Only two things run periodically, a few times a second: the check of the broker's own health, and the check of the
messages still to be consumed in a term that waits for it. Nothing is written while nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from twisted.internet import defer, interfaces
from twisted.python import failure

from twisted_mq.broker.clients.subscription_group_manager import SubscriptionGroupManager
from twisted_mq.broker.long_polling import LongPolling
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.ordered_topics import OrderedParts, Ordering
from twisted_mq.broker.ordering.backlog import Backlog, BacklogParts
from twisted_mq.broker.ordering.counted_groups import CountedGroups
from twisted_mq.broker.ordering.duties import Standpoint, duty
from twisted_mq.broker.ordering.member_node import MemberNode
from twisted_mq.broker.ordering.needed import NeededMessages
from twisted_mq.broker.ordering.own_health import HealthParts, MasterHealth, SlaveHealth
from twisted_mq.broker.ordering.passed_over import PassedOverMessages
from twisted_mq.broker.ordering.reads import HandedOut, ReadingParts
from twisted_mq.broker.ordering.routes import ShownRoutes
from twisted_mq.broker.ordering.sends import SendingParts, TakenSends
from twisted_mq.broker.ordering.terms import Terms
from twisted_mq.broker.ordering.units import BrokerUnit, Units
from twisted_mq.broker.ordering.unreached import UnreachedReports
from twisted_mq.broker.tables import BrokerTables
from twisted_mq.broker.topics.topic_config_manager import TopicConfigManager
from twisted_mq.coordination.election import Candidate
from twisted_mq.coordination.interfaces import (
    Conflict,
    CoordinationError,
    ICoordinator,
    NoAnswer,
    SessionEvent,
    SessionLost,
)
from twisted_mq.coordination.nodes import make_paths
from twisted_mq.logs import Logger
from twisted_mq.ordering.changes import catch_up, change, is_absent
from twisted_mq.ordering.documents import BrokerMember, DocumentFault
from twisted_mq.ordering.health import MASTER, SLAVE
from twisted_mq.ordering.lists import OrderedTopic, StoreMark, Term
from twisted_mq.ordering.paths import KEEPER, ROOTS, member_path
from twisted_mq.ordering.rules import Drained, Event, Lost, Ready, Refused, Reported, Unreached, apply
from twisted_mq.ordering.view import OrderView
from twisted_mq.periodic import PeriodicJob
from twisted_mq.protocol.bodies import TopicConfig
from twisted_mq.protocol.bodies.topic_config import ORDER, ORDER_QUEUES, ORDER_TOGETHER
from twisted_mq.protocol.flags import PermName
from twisted_mq.remoting.channel import Invoke

LOOK_SECONDS = 0.25
"""The interval at which the broker's own health is checked, and what is still to be consumed."""

LOOKS_UNTIL_ALL = 8
"""The number of checks after which everything is checked: what failed is tried again."""

RETRY_SECONDS = 2.0
"""The pause after a first connection that failed."""

STOP_SECONDS = 2.0
"""The time a stop waits for the coordinator to take the group out of the send lists, and for the session's end."""

STOPS = "it stops"


class AgentParts(SendingParts, ReadingParts, BacklogParts, HealthParts, Protocol):
    """The parts of the broker that the agent uses."""

    options: BrokerOptions
    clock: interfaces.IReactorTime
    groups: SubscriptionGroupManager
    polling: LongPolling
    topics: TopicConfigManager
    ordering: Ordering
    tables: BrokerTables
    now_ms: Callable[[], int]
    min_broker_id: int

    @property
    def address(self) -> str: ...

    @property
    def is_slave(self) -> bool: ...


class OrderAgent:
    """The agent of one broker. `changed` registers the broker again. `invoke` sends requests to other brokers."""

    log = Logger()

    def __init__(
        self,
        broker: AgentParts,
        coordinator: ICoordinator,
        invoke: Invoke,
        changed: Callable[[], object],
        monotonic: Callable[[], float],
    ) -> None:
        options = broker.options
        self.group = options.broker_name
        self.view = OrderView(coordinator, self._unit_told, self._others_told)
        self.units = Units(self.group, coordinator.holds, self.view.problem_of)
        self.is_master = not broker.is_slave
        self._broker = broker
        self._coordinator = coordinator
        self._health = MasterHealth(broker, monotonic) if self.is_master else SlaveHealth(broker, invoke, self._master)
        self._fault: str | None = None
        self._terms = Terms(broker.store, self._confirmed)
        passed_over = PassedOverMessages(broker.tables.passed_over, self._terms, broker.now_ms)
        self._backlog = Backlog(broker, self._terms, passed_over)
        self._groups = CountedGroups(coordinator, self._offer, self._groups_with_offsets)
        self._reads = HandedOut(broker, self.units, self._terms, self._groups, passed_over)
        self._needs = NeededMessages(broker, self.units, self._terms, self._groups)
        self._routes = ShownRoutes(self.units, is_master=self.is_master, changed=changed)
        self._sends = TakenSends(broker, self.units, coordinator)
        self._unreached = UnreachedReports(self.group, coordinator, monotonic, self._do_duty)
        self._node = MemberNode(coordinator, self.group, options.broker_id, self._node_deleted)
        self._keeper = Candidate(coordinator, KEEPER, leads=lambda term: self._look_at_all(), lost=lambda: None)
        self._busy: dict[BrokerUnit, bool] = {}
        self._looks = 0
        self._running = False
        self._fresh = False
        """True if what was read is no older than this session."""
        self._job: PeriodicJob | None = None
        self._unlisten: Callable[[], None] = lambda: None

    # life

    def start(self) -> None:
        """Connect, and take part from then on. A coordinator that cannot be reached is tried again until it can."""
        self._running = True
        broker = self._broker
        broker.ordering.parts = OrderedParts(self._sends, self._reads, self._routes, self._needs)
        broker.ha.on_replicated.append(self._replicated)
        broker.ha.master_session = lambda: self._coordinator.session_id
        broker.groups.on_delete.append(self._group_deleted)
        self._unlisten = self._coordinator.listen(self._session_event)
        self.view.start(self.group)
        self._keeper.start()
        self._connect()
        self._job = PeriodicJob("check of ordered queues", broker.clock, LOOK_SECONDS, self._look)

    def _connect(self) -> None:
        if self._running:
            self._coordinator.start().addErrback(self._not_connected)

    def _not_connected(self, reason: failure.Failure) -> None:
        reason.trap(CoordinationError)
        self.log.error("ordered queues are blocked, retrying the coordinator: {e}", e=reason.value)
        self._broker.clock.callLater(RETRY_SECONDS, self._connect)

    def stop(self) -> defer.Deferred[None]:
        """Take no more ordered sends, leave the send lists, end the session. Fires when that is done, within a bounded time."""
        if not self._running:
            return defer.succeed(None)
        self._running = False
        self.units.close(STOPS)
        if self._job is not None:
            self._job.stop()
        leaving = defer.ensureDeferred(self._leave())
        leaving.addTimeout(STOP_SECONDS, self._broker.clock)
        leaving.addErrback(self._not_left)
        return leaving.addBoth(self._end)

    async def _leave(self) -> None:
        if self.is_master:
            left = [self._leave_unit(unit) for unit in self.units if self.group in unit.lists.send]
            await defer.DeferredList(left)

    def _leave_unit(self, unit: BrokerUnit) -> defer.Deferred[None]:
        return defer.ensureDeferred(self._apply(unit, Lost(self.group))).addErrback(self._not_left)

    def _not_left(self, reason: failure.Failure) -> None:
        """Ignore a timeout: the keeper takes the group out when the session is over."""
        if not reason.check(defer.TimeoutError, defer.CancelledError):
            self._failed(reason)

    def _end(self, result: object) -> defer.Deferred[None]:
        self._unlisten()
        self.view.stop()
        self._unreached.stop()
        self._node.stop()
        self._broker.ha.on_replicated.remove(self._replicated)
        self._broker.groups.on_delete.remove(self._group_deleted)
        keeper = self._keeper.stop()
        ended = defer.gatherResults([keeper, self._coordinator.stop()], consumeErrors=True)
        ended.addTimeout(STOP_SECONDS, self._broker.clock)
        ended.addErrback(lambda reason: self.log.warn("session not ended: {e}", e=reason.value))
        return ended.addCallback(lambda _: None)

    def lacks_topic(self) -> bool:
        """Return whether the coordinator has an ordered topic of this group that this broker does not know."""
        known = self._broker.topics.is_ordered
        return any(self.group in one.groups and not known(topic) for topic, one in self.view.topics.items())

    # changes that it reads

    def _session_event(self, event: SessionEvent) -> None:
        if event is SessionEvent.LOST:
            self.log.warn("session with the coordinator ended: no ordered sends before the next")
            self._fresh = False
            self.view.forget()
            self.units.forget_session()
            for unit in self.units:
                self._unreached.look(unit)
            self._show_routes()
        elif event is SessionEvent.CONNECTED and not self._fresh:
            defer.ensureDeferred(self._begin_session()).addErrback(self._failed)

    async def _begin_session(self) -> None:
        """Read what an earlier session and other brokers changed before this session, before anything is done."""
        session = self._coordinator.session_id
        try:
            await make_paths(self._coordinator, ROOTS)
            await catch_up(self._coordinator)
        except CoordinationError as error:
            self.log.info("session not started, retrying at the next connection: {e}", e=error)
            return
        if session == self._coordinator.session_id and not self._fresh:
            self._fresh = True
            self.view.read_again()

    def _unit_told(self, topic: str, name: str) -> None:
        unit = self.units.get((topic, name))
        if unit is not None:
            self._learn(unit)
            self._show_routes()
            self._do_duty(unit)

    def _others_told(self) -> None:
        if self._running:
            if not self.is_master:
                self._confirm_master()
                self._make_topics()
            self.units.declared(self.view.topics)
            for unit in self.units:
                self._learn(unit)
            self._show_routes()
            self._look_at_all()

    def _confirm_master(self) -> None:
        """Acknowledge ordered messages in the session whose node the master has, and in none while it has no node.

        In a new session of this slave, nothing changes until all is read again. Until then this slave does not report for
        the group either.
        """
        client = self._broker.ha.client
        if client is None or not self._speaks or not self._fresh or not self.view.is_complete:
            return
        master = self.view.members.get(self.group, {}).get(MASTER)
        known = master is not None and master.asks_session
        client.confirm(self.view.sessions[self.group, MASTER] if known else 0)

    @property
    def _speaks(self) -> bool:
        """Return whether this is the slave that confirms its master's sends, and may report in its place."""
        return self._broker.options.broker_id == SLAVE

    def _node_deleted(self) -> None:
        """Handle a deletion of this broker's node while its session goes on: what made it a head counts no longer."""
        self.log.warn("the node of this broker was deleted by hand, it leaves the send lists: {p}", p=self._node.path)
        self.units.forget_session()

    def _make_topics(self) -> None:
        """Create missing topics. A slave copies its master's once a minute, and may have to serve a new one before that."""
        topics = self._broker.topics
        declared = (one for one in self.view.topics.values() if self.group in one.groups)
        missing = [_config(one) for one in declared if topics.get(one.topic) is None]
        if missing:
            topics.update(missing)

    def _learn(self, unit: BrokerUnit) -> None:
        before = unit.lists.consumed
        lists = self.view.units.get((unit.topic, unit.name))
        if not self._fresh or (lists is None and not self.view.is_complete):
            return
        problem = self.view.problem_of(unit.topic, unit.name)
        if lists is not None and self.is_master and lists.is_behind(self._mark(unit)):
            lists, problem = (
                None,
                f"{unit.topic} {unit.name}: {self.group} has messages of an epoch that is not in the lists",
            )
        self.units.learn(unit, lists, problem)
        self._unreached.look(unit)
        if unit.lists.consumed != before:
            self._offer(unit)

    def _show_routes(self) -> None:
        members = self.view.members.get(self.group)
        master_is_gone = members is not None and MASTER not in members
        self._routes.look(master_is_gone=master_is_gone, lowest_id=self._broker.min_broker_id)

    def _master(self) -> str | None:
        """Return the master's address, from its node."""
        master = self.view.members.get(self.group, {}).get(MASTER)
        return None if master is None else master.address

    def _confirmed(self) -> int:
        health = self._health
        return health.confirmed if isinstance(health, MasterHealth) else self._broker.store.max_physical_offset()

    def _replicated(self) -> None:
        """Hand out what the slave has acknowledged in this session, once it is read in this session what is consumed now.

        Sends are answered before that, so it is noted at once: the term is not consumed without it.
        """
        if not isinstance(self._health, MasterHealth):
            return
        self._health.note()
        if not self._fresh or not self.view.is_complete:
            return
        if self._health.acknowledged() and self._reads.held_back:
            waiting, self._reads.held_back = self._reads.held_back, {}
            for topic, queue_id in waiting:
                self._broker.polling.offer_queue(topic, queue_id)

    def _offer(self, unit: BrokerUnit) -> None:
        for queue_id in self._queues(unit):
            self._broker.polling.offer_queue(unit.topic, queue_id)

    def _queues(self, unit: BrokerUnit) -> range:
        if not unit.together:
            return range(int(unit.name), int(unit.name) + 1)
        declared = self.view.topics.get(unit.topic)
        return range(declared.queues if declared is not None else 0)

    # events that it reports

    def _look(self) -> None:
        """Check the broker's own health, and what waits to be consumed."""
        if self.is_master:
            self._replicated()
        else:
            self._confirm_master()
        fault = self._health.look()
        if fault != self._fault:
            self.log.info("group {g}: {f}", g=self.group, f=fault or "healthy as far as this broker knows")
        all_due, self._fault = fault != self._fault or self._looks % LOOKS_UNTIL_ALL == 0, fault
        self._looks += 1
        if all_due:
            self._show_routes()
        self._node.show(BrokerMember(self._broker.address, fault, self._health.complete))
        for unit in self.units:
            term = unit.lists.consumed
            if all_due or (term is not None and term.group == self.group and unit.lists.head != self.group):
                self._do_duty(unit)

    def _look_at_all(self) -> None:
        for unit in self.units:
            self._do_duty(unit)

    def _do_duty(self, unit: BrokerUnit) -> None:
        """Do the duty of a unit. Only one duty of a unit runs at a time."""
        if unit in self._busy:
            self._busy[unit] = True
        elif self._duty(unit) is not None:
            self._busy[unit] = False
            defer.ensureDeferred(self._do(unit)).addErrback(self._failed)

    async def _do(self, unit: BrokerUnit) -> None:
        try:
            event = self._duty(unit)
            if isinstance(event, Drained | Ready):
                await self._groups.read(unit)
                event = self._duty(unit)
            if isinstance(event, Ready):
                self._backlog.pass_over(unit.topic, self._queues(unit), unit.consumer_groups)
            if event is not None:
                await self._apply(unit, event)
        except (NoAnswer, SessionLost):
            pass  # everything is checked again after the next connection
        finally:
            again = self._busy.pop(unit)
        if again:
            self._do_duty(unit)

    def _mark(self, unit: BrokerUnit) -> StoreMark:
        marks = [self._terms.newest(unit.topic, queue_id) for queue_id in self._queues(unit)]
        epochs, leaders = zip(*marks, strict=True) if marks else ((0,), (0,))
        return StoreMark(self.group, max(epochs), max(leaders))

    def _report(self, unit: BrokerUnit) -> Reported | None:
        """Return a report of what this broker's store holds if it is newer than the lists; None otherwise.

        Lists that do not count because another store holds something newer are compared too.
        """
        key = unit.topic, unit.name
        lists = self.view.overtaken.get(key) or self.view.units.get(key)
        if lists is None or unit.epoch:
            return None
        report = Reported(self._mark(unit))
        return None if apply(lists, report, self._fault_of) is lists else report

    def _duty(self, unit: BrokerUnit) -> Event | None:
        if not self._running or not self._fresh or not self.view.is_complete:
            return None
        report = self._report(unit)
        if report is not None or unit.problem is not None:
            return report
        unreached = self._unreached.event(unit, self._fault_of)
        if unreached is not None:
            return unreached
        declared = self.view.topics.get(unit.topic)
        who = Standpoint(
            group=self.group,
            is_master=self.is_master,
            is_keeper=self._keeper.is_leader,
            declared=declared is not None and self.group in declared.groups,
            seen_outside=unit.seen_outside,
            has_consumed=lambda term: self._has_consumed(unit, term),
        )
        return duty(unit.lists, who, self._fault_of)

    def _fault_of(self, group: str) -> str | None:
        if group == self.group and not self._running:
            return STOPS
        own = (
            self._fault if group == self.group and self.is_master else None
        )  # a slave's report counts once its master can see it
        return own or self.view.fault(group)

    def _has_consumed(self, unit: BrokerUnit, term: Term) -> bool:
        """Return whether a term is consumed. False for a master that takes sends, and for a slave unless its master is gone.

        Such a slave no longer confirms that master's sends.
        """
        if unit.epoch or not self._health.complete:
            return False
        if not self.is_master:
            members = self.view.members.get(self.group)
            if not self._speaks or members is None or MASTER in members:
                return False
            self._confirm_master()
        self._replicated()
        return self._backlog.is_consumed(unit.topic, self._queues(unit), term, unit.consumer_groups)

    async def _apply(self, unit: BrokerUnit, event: Event) -> None:
        alone = isinstance(event, Drained) and not self.is_master
        also = is_absent(member_path(self.group, MASTER)) if alone else ()
        try:
            after = await change(self._coordinator, unit.topic, unit.name, event, self._fault_of, also)
        except (Refused, Conflict, DocumentFault) as reason:
            self.log.info("not done: topic={t} unit={u} {event} {r}", t=unit.topic, u=unit.name, event=event, r=reason)
            return
        except CoordinationError as error:
            if self._running:
                raise
            self.log.warn(
                "topic={t} unit={u} {event} not reported: {e}", t=unit.topic, u=unit.name, event=event, e=error
            )
            return
        if isinstance(event, Unreached) and after.head != self.group:
            self._unreached.left(unit)
        self.log.info("topic={t} unit={u} {event}: {after}", t=unit.topic, u=unit.name, event=event, after=after)

    def _groups_with_offsets(self, topic: str) -> list[str]:
        existing = self._broker.groups.groups
        return [group for group in self._broker.offsets.groups_of(topic) if group in existing]

    def _group_deleted(self, consumer_group: str) -> None:
        for unit in self.units:
            self._groups.forget(unit, consumer_group)

    def _failed(self, reason: failure.Failure) -> None:
        self.log.failure("a task of ordered queues failed", reason)


def _config(declared: OrderedTopic) -> TopicConfig:
    return TopicConfig(
        topic_name=declared.topic,
        read_queue_nums=declared.queues,
        write_queue_nums=declared.queues,
        perm=PermName.PERM_READ | PermName.PERM_WRITE,
        attributes={ORDER: ORDER_TOGETHER if declared.together else ORDER_QUEUES},
    )
