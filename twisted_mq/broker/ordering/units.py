"""Keeps the ordered units of one broker: whether it takes their sends, and whether it hands them out.

A broker takes sends of a unit only while it is the head of the send list as it knows it, by a promotion that this
process saw in this session, and while its session surely holds. When it learns that it is not the head, it refuses the
sends that wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs
from twisted.internet import defer

from twisted_mq.broker.ordering.pipelines import Pipelines
from twisted_mq.ordering.lists import WHOLE_TOPIC, Lists, OrderedTopic, Term
from twisted_mq.protocol.bodies.topic_config import ORDER_TOGETHER
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.messages.order_mark import ORDER_EPOCH, ORDER_HEAD

UnitKey = tuple[str, str]

NOT_SURE = "its session with the coordinator is not confirmed at the moment"


@attrs.define(eq=False)
class BrokerUnit:
    """A unit as this broker sees it. `epoch` is the epoch in which this broker takes its sends, 0 if it takes none."""

    topic: str
    name: str
    lists: Lists = attrs.field(factory=Lists)
    problem: str | None = None
    """The reason that its lists are unknown."""
    learned: bool = False
    """True if its lists were known once."""
    seen_outside: bool = False
    """True if this session saw the group outside the send list: a promotion after that is a new one."""
    epoch: int = 0
    pipelines: Pipelines | None = None
    """The pipelines of the newest epoch in which this broker took sends."""
    pipelines_epoch: int = 0
    consumer_groups: frozenset[str] = frozenset()
    """The consumer groups that the coordinator counts, as last read: what they have not consumed is backlog."""
    unanswered: dict[defer.Deferred[Any], None] = attrs.field(factory=dict)
    """Stored sends whose answers would be acknowledgements. Cancel one when you remove it: then it is refused."""

    @property
    def together(self) -> bool:
        """True if the unit is a whole topic."""
        return self.name == WHOLE_TOPIC

    def term_of(self, group: str) -> Term | None:
        """Return a group's term in the consume list."""
        return next((term for term in self.lists.consume if term.group == group), None)


class Units:
    """Units by topic and name. `group` is the broker's; `holds` returns True while its session surely holds.

    `problem_of(topic, name)` returns why the lists of a unit are unknown.
    """

    def __init__(
        self, group: str, holds: Callable[[], bool], problem_of: Callable[[str, str], str | None] = lambda *unit: None
    ) -> None:
        self.group = group
        self._problem_of = problem_of
        self._holds = holds
        self._units: dict[UnitKey, BrokerUnit] = {}
        self._closed: str | None = None

    def __iter__(self) -> Iterator[BrokerUnit]:
        return iter(self._units.values())

    def get(self, key: UnitKey) -> BrokerUnit | None:
        """Return a declared unit."""
        return self._units.get(key)

    def of_queue(self, topic: str, mode: str, queue_id: int) -> BrokerUnit:
        """Return the unit of a topic's queue; `mode` is the topic's attribute. Raises BrokerError if it is not declared."""
        name = WHOLE_TOPIC if mode == ORDER_TOGETHER else str(queue_id)
        unit = self._units.get((topic, name))
        if unit is None:
            problem = self._problem_of(topic, name) or "it has not been read from the coordinator yet"
            raise BrokerError(ResponseCode.NO_PERMISSION, f"topic {topic} is ordered ({mode}): {problem}")
        return unit

    # what the coordinator says

    def declared(self, topics: Mapping[str, OrderedTopic]) -> None:
        """Set the topics that are declared now."""
        keys = {(topic, name) for topic, one in topics.items() for name in one.units}
        for key in self._units.keys() - keys:
            self._close(self._units.pop(key))
        for key in sorted(keys - self._units.keys()):
            self._units[key] = BrokerUnit(*key)

    def learn(self, unit: BrokerUnit, lists: Lists | None, problem: str | None) -> None:
        """Set the current lists; None if they are unknown. If this broker is not the head any more, refuse the sends that
        wait.
        """
        unit.lists, unit.problem = lists or Lists(), problem
        if lists is not None and self.group not in lists.send:
            unit.seen_outside = True
        is_head = unit.lists.head == self.group and unit.seen_outside and self._closed is None
        epoch = unit.lists.epoch if is_head else 0
        if epoch != unit.epoch:
            self._close(unit)
            unit.epoch = epoch
        if epoch and epoch != unit.pipelines_epoch:
            unit.pipelines, unit.pipelines_epoch = None, epoch
        unit.learned = unit.learned or lists is not None

    def forget_session(self) -> None:
        """End the session: no earlier promotion of this broker counts any more."""
        for unit in self:
            unit.seen_outside = False
            self._close(unit)

    def close(self, reason: str) -> None:
        """Take no more sends, because the broker stops."""
        self._closed = reason
        for unit in self:
            self._close(unit)

    def _close(self, unit: BrokerUnit) -> None:
        unit.epoch = 0
        waiting, unit.unanswered = unit.unanswered, {}
        for one in waiting:
            one.cancel()

    # the fence

    def check_head(self, unit: BrokerUnit, epoch: int) -> None:
        """Raise BrokerError unless this broker takes the unit's sends in that epoch, and surely still does."""
        if unit.epoch != epoch or not epoch or not self._holds():
            raise self.refusal(unit, epoch)

    def refusal(self, unit: BrokerUnit, epoch: int = 0) -> BrokerError:
        """Return why a send is not taken here, and what to do."""
        what = f"topic {unit.topic}, {_spelled(unit.name)}: {self.group} does not accept this send"
        if unit.problem is not None:
            return BrokerError(ResponseCode.NO_PERMISSION, f"{what}. {unit.problem}")
        if self._closed is not None:
            return BrokerError(ResponseCode.NO_PERMISSION, f"{what}, {self._closed}. Send to the head of the send list")
        lists = unit.lists
        fields = {} if lists.head is None else {ORDER_HEAD: lists.head, ORDER_EPOCH: str(lists.epoch)}
        if not self._holds():
            return BrokerError(ResponseCode.NO_PERMISSION, f"{what}, {NOT_SURE}. Wait, or send to the new head", fields)
        if unit.epoch and epoch:
            reason = f"epoch {epoch} has ended. Send with epoch {lists.epoch}"
        elif lists.head is None:
            reason = "no group accepts sends now. Wait until one does; mq order show shows the reason"
        elif lists.head == self.group:
            reason = "it restarted. Wait for the next head"
        else:
            reason = f"{lists.head} accepts them in epoch {lists.epoch}. Send there"
        return BrokerError(ResponseCode.NO_PERMISSION, f"{what}, {reason}", fields)


def _spelled(name: str) -> str:
    return "all its queues" if name == WHOLE_TOPIC else f"queue {name}"
