"""The ordered units of one broker: whether it takes their sends, and whether it is the one that hands them out.

A broker takes sends of a unit only while it is the head of the send list as it knows it, by a promotion that this
process saw in this session, and while its session surely holds. Who learns that it is not, refuses what waits.
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

NOT_SURE = "its session with the coordinator is not sure at the moment"


@attrs.define(eq=False)
class BrokerUnit:
    """One unit before this broker. `epoch` is that in which this broker takes its sends, 0 where it takes none."""

    topic: str
    name: str
    lists: Lists = attrs.field(factory=Lists)
    problem: str | None = None
    """Why nobody knows its lists."""
    learned: bool = False
    """Whether its lists were known once."""
    seen_outside: bool = False
    """Whether this session saw the group outside the send list: what made it the head after that is news."""
    epoch: int = 0
    pipelines: Pipelines | None = None
    """Of the newest epoch in which this broker took sends."""
    pipelines_epoch: int = 0
    consumer_groups: frozenset[str] = frozenset()
    """The groups that the coordinator counts, as it was asked last: what they have not consumed is backlog."""
    unanswered: dict[defer.Deferred[Any], None] = attrs.field(factory=dict)
    """Sends that are stored, and whose answers would be acknowledgements. Who takes one out cancels it: then it is refused."""

    @property
    def together(self) -> bool:
        """Whether it is a whole topic."""
        return self.name == WHOLE_TOPIC

    def term_of(self, group: str) -> Term | None:
        """That of a group in the consume list."""
        return next((term for term in self.lists.consume if term.group == group), None)


class Units:
    """By topic and name. `group` is the broker's, `holds` says whether its session surely does.

    `problem_of(topic, name)` says why nobody knows the lists of a unit.
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
        """One that was declared."""
        return self._units.get(key)

    def of_queue(self, topic: str, mode: str, queue_id: int) -> BrokerUnit:
        """That of a topic's queue; `mode` is the topic's attribute. Raises BrokerError for one that is not declared."""
        name = WHOLE_TOPIC if mode == ORDER_TOGETHER else str(queue_id)
        unit = self._units.get((topic, name))
        if unit is None:
            problem = self._problem_of(topic, name) or "the coordinator has not told of it yet"
            raise BrokerError(ResponseCode.NO_PERMISSION, f"topic {topic} is ordered ({mode}): {problem}")
        return unit

    # what the coordinator says

    def declared(self, topics: Mapping[str, OrderedTopic]) -> None:
        """These are the topics now."""
        keys = {(topic, name) for topic, one in topics.items() for name in one.units}
        for key in self._units.keys() - keys:
            self._close(self._units.pop(key))
        for key in sorted(keys - self._units.keys()):
            self._units[key] = BrokerUnit(*key)

    def learn(self, unit: BrokerUnit, lists: Lists | None, problem: str | None) -> None:
        """The lists as they are now; None where nobody knows them. Who is no longer the head refuses what waits."""
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
        """The session is over: whatever made this broker a head counts no longer."""
        for unit in self:
            unit.seen_outside = False
            self._close(unit)

    def close(self, reason: str) -> None:
        """Take no more sends: the broker stops."""
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
        """Raises BrokerError unless this broker takes the unit's sends in that epoch, and surely still does."""
        if unit.epoch != epoch or not epoch or not self._holds():
            raise self.refusal(unit, epoch)

    def refusal(self, unit: BrokerUnit, epoch: int = 0) -> BrokerError:
        """Why a send is not taken here, and what to do."""
        what = f"topic {unit.topic}, {_spelled(unit.name)}: {self.group} does not take this send"
        if unit.problem is not None:
            return BrokerError(ResponseCode.NO_PERMISSION, f"{what}. {unit.problem}")
        if self._closed is not None:
            return BrokerError(ResponseCode.NO_PERMISSION, f"{what}, {self._closed}. Send to the head of the send list")
        lists = unit.lists
        fields = {} if lists.head is None else {ORDER_HEAD: lists.head, ORDER_EPOCH: str(lists.epoch)}
        if not self._holds():
            return BrokerError(ResponseCode.NO_PERMISSION, f"{what}, {NOT_SURE}. Wait, or send to the new head", fields)
        if unit.epoch and epoch:
            reason = f"epoch {epoch} is over. Send with epoch {lists.epoch}"
        elif lists.head is None:
            reason = "no group takes sends now. Wait until one does; mq order show says what it waits for"
        elif lists.head == self.group:
            reason = "it restarted. Wait for the next head"
        else:
            reason = f"{lists.head} takes them in epoch {lists.epoch}. Send there"
        return BrokerError(ResponseCode.NO_PERMISSION, f"{what}, {reason}", fields)


def _spelled(name: str) -> str:
    return "all its queues" if name == WHOLE_TOPIC else f"queue {name}"
