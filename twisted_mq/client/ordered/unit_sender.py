"""A unit of an ordered producer: its leadership, its head, and the queues that are sent to."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet import defer, task

from twisted_mq.client.core.mq_client import MQClient
from twisted_mq.client.ordered.errors import (
    CoordinatorUnreachable,
    NoHead,
    NotLeader,
    OrderedError,
    OrderedTopicUnknown,
    SendTimedOut,
)
from twisted_mq.client.ordered.group_states import read_groups, reasons_without_head
from twisted_mq.client.ordered.head_reports import HeadReports
from twisted_mq.client.ordered.ordered_options import OrderedOptions
from twisted_mq.client.ordered.queue_sender import QueueSender, Target
from twisted_mq.client.ordered.topic_units import read_topic
from twisted_mq.client.ordered.unit_watch import UnitWatch
from twisted_mq.client.producing.outgoing import Outgoing
from twisted_mq.client.producing.send_result import SendResult
from twisted_mq.coordination.election import Candidate
from twisted_mq.coordination.interfaces import CoordinationError, ICoordinator
from twisted_mq.ordering.paths import producers_path

STAND_AGAIN_SECONDS = 1.0
"""Pause of a producer before it joins the election again, after a broker names another leader."""

Told = Callable[[str, str, bool], object]
"""(topic, unit, whether it leads)"""


class UnitSender:
    """Takes part in the leader election from `start` on."""

    def __init__(
        self,
        group: str,
        client: MQClient,
        coordinator: ICoordinator,
        options: OrderedOptions,
        topic: str,
        unit: str,
        told: Told,
        gone: Callable[[str], object],
    ) -> None:
        """`gone` is called with the topic when it is no longer declared."""
        self.group = group
        self.topic = topic
        self.client = client
        self.options = options
        self.epoch = 0
        self._coordinator = coordinator
        self._unit = unit
        self._told = told
        self._gone = gone
        self._queues: dict[int, QueueSender] = {}
        self._target: Target | None = None
        self._turns: list[defer.Deferred[None]] = []
        self._reports = HeadReports(client, coordinator, topic, unit)
        self._watch = UnitWatch(coordinator, self.topic, unit, self._changed)
        self._stopped = False
        self._standing: defer.Deferred[None] = defer.succeed(None)
        self._last_term = -1
        """Messages are numbered from 1 under each term, so no term is used twice."""
        self._candidate = self._new_candidate()

    def start(self) -> None:
        """Join the election. Needs no connection yet."""
        self._watch.start()
        self._candidate.start()

    async def stop(self) -> None:
        """Leave the election, so that others lead. Messages that wait are not failed here."""
        self._watch.stop()
        self._stopped = True
        self._standing.cancel()
        for queue in self._queues.values():
            queue.stop()
        await self._candidate.stop()

    @property
    def leads(self) -> bool:
        """True if this producer surely is the active sender now."""
        return self._candidate.is_leader

    def turn(self) -> defer.Deferred[None]:
        """Fires when this producer leads."""
        waiting: defer.Deferred[None] = defer.Deferred(self._turns.remove)
        if self.leads:
            waiting.callback(None)
        else:
            self._turns.append(waiting)
        return waiting

    def submit(self, queue_id: int, message: Outgoing, seconds: float) -> defer.Deferred[SendResult]:
        """Send after all that was submitted before to that queue. Raises NotLeader or TooMuchWaits."""
        candidate = self._candidate
        if candidate.term is None and candidate.leader is not None and not self.options.stand_by:
            raise self._not_leader()
        queue = self._queues.get(queue_id)
        if queue is None:
            queue = self._queues[queue_id] = QueueSender(self, queue_id)
        return queue.submit(message, seconds)

    # interface for queues

    def target(self) -> Target | None:
        return self._target if self._candidate.is_leader else None

    @property
    def patience_seconds(self) -> float:
        return float(self._coordinator.session_seconds) / 2

    def heard(self, target: Target, answers: bool) -> None:
        if answers:
            self._reports.reached()
        else:
            self._reports.unreached(target.group, target.epoch)

    def is_led_by_another(self) -> None:
        """End this term: join the election again after a moment, behind the other candidates."""
        self._stand_anew(STAND_AGAIN_SECONDS)
        self._candidate.leader = "another producer"
        self._stands_behind()

    def step_back(self) -> None:
        """Join the election again behind others: they may reach the brokers better. Does nothing without leadership."""
        if self._candidate.term is not None:
            self._stand_anew(0)

    def _stand_anew(self, pause_seconds: float) -> None:
        candidate, self._candidate = self._candidate, self._new_candidate()
        self._no_longer()
        stopping = candidate.stop()
        stopping.addCallback(lambda _: task.deferLater(self.client.reactor, pause_seconds, self._stand))
        self._standing = stopping.addErrback(lambda reason: reason.trap(defer.CancelledError) and None)

    def _stand(self) -> None:
        if not self._stopped:
            self._candidate.start()

    async def why(self, queue_id: int, seconds: float, last: Exception | None) -> Exception:
        if self._watch.problem is not None:
            return self._watch.problem
        place = f"topic {self.topic} queue {self._unit}"
        if self._candidate.problem is not None:
            return CoordinatorUnreachable(place, self._candidate.problem)
        if not self._coordinator.holds():
            return CoordinatorUnreachable(place, TimeoutError("it does not confirm the session"))
        lists = self._watch.lists
        if self._candidate.term is None:
            return self._not_leader()
        if lists is None or lists.head is not None:
            return SendTimedOut(self.topic, queue_id, seconds, last)
        try:
            declared = await read_topic(self._coordinator, self.topic)
            states = await read_groups(self._coordinator, declared.groups)
        except OrderedError as error:
            return error
        except CoordinationError as error:
            return CoordinatorUnreachable(place, error)
        return NoHead(self.topic, self._unit, seconds, reasons_without_head(lists, states.values()))

    # events

    def _new_candidate(self) -> Candidate:
        return Candidate(
            self._coordinator,
            producers_path(self.topic, self._unit),
            leads=self._leads,
            lost=self._lost,
            behind=lambda leader: self._stands_behind(),
            refused=self._refused,
            name=self.group,
            data=self.client.client_id.encode(),
        )

    def _leads(self, term: int) -> None:
        if term <= self._last_term:  # its previous place, which no coordinator could be asked to remove
            self._stand_anew(STAND_AGAIN_SECONDS)
            return
        self._last_term = term
        self._aim()
        for queue in self._queues.values():
            queue.renew()
            queue.resume()
        self._told(self.topic, self._unit, True)
        turns, self._turns = self._turns, []
        for turn in turns:
            turn.callback(None)

    def _lost(self) -> None:
        self._no_longer()
        self._stands_behind()

    def _no_longer(self) -> None:
        self._aim()
        for queue in self._queues.values():
            queue.resume()
        self._told(self.topic, self._unit, False)

    def _stands_behind(self) -> None:
        for queue in self._queues.values():
            queue.resume()
            if not self.options.stand_by:
                queue.fail(self._not_leader())

    def _refused(self, problem: CoordinationError) -> None:
        error = CoordinatorUnreachable(f"topic {self.topic} queue {self._unit}", problem)
        for queue in self._queues.values():
            queue.fail(error)
        turns, self._turns = self._turns, []
        for turn in turns:
            turn.errback(error)

    def _not_leader(self) -> NotLeader:
        leader = self._candidate.leader
        why = f"{leader} leads" if leader else "its session with the coordinator was lost"
        return NotLeader(self.topic, self._unit, self.group, why)

    def _changed(self) -> None:
        self._aim()
        problem = self._watch.problem
        if isinstance(problem, OrderedTopicUnknown):
            self._gone(self.topic)
        for queue in self._queues.values():
            queue.resume()
            if isinstance(problem, OrderedTopicUnknown):
                queue.fail(problem)

    def _aim(self) -> None:
        """Determine again where sends go."""
        lists, term = self._watch.lists, self._candidate.term
        self.epoch = max(self.epoch, 0 if lists is None else lists.epoch)
        aim = None
        if lists is not None and lists.head is not None and term is not None:
            aim = Target(lists.head, lists.epoch, term)
        if aim != self._target:
            self._target = aim
