"""Decides what a broker hands out of ordered topics: only the term that is consumed now, if it is its own group's.

It hands out nothing of earlier terms, which was consumed or never acknowledged, and nothing of later ones, whatever the log
has. It hands out nothing that the slave does not hold yet, so that no consumer sees messages that a failover takes away.
Other pulls wait as at an empty queue. A group that subscribes gets its node in the coordinator before its first message:
messages that it has not consumed are backlog on any broker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import attrs

from twisted_mq.broker.clients.consumer_manager import ConsumerManager
from twisted_mq.broker.clients.consumer_offset_manager import ConsumerOffsetManager
from twisted_mq.broker.ordering.counted_groups import CountedGroups
from twisted_mq.broker.ordering.passed_over import PassedOverMessages
from twisted_mq.broker.ordering.terms import Terms
from twisted_mq.broker.ordering.units import BrokerUnit, Units
from twisted_mq.ordering.lists import Term
from twisted_mq.protocol.bodies import TopicConfig
from twisted_mq.protocol.bodies.types import BROADCASTING
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.layouts.record import read_head
from twisted_mq.storage.interfaces import GetResult, GetStatus, IMessageStore

EARLIER_TERM = "of an earlier term, which has ended"
"""The reason that a group with a lower offset is sent to the beginning of the current term."""


class ReadingParts(Protocol):
    """The parts of the broker that reads use."""

    store: IMessageStore
    consumers: ConsumerManager
    offsets: ConsumerOffsetManager


class HandedOut:
    """The reads of one broker; see ordered_topics.OrderedReads."""

    def __init__(
        self, broker: ReadingParts, units: Units, terms: Terms, groups: CountedGroups, passed_over: PassedOverMessages
    ) -> None:
        self._store = broker.store
        self._consumers = broker.consumers
        self._offsets = broker.offsets
        self._units = units
        self._terms = terms
        self._groups = groups
        self._passed_over = passed_over
        self.held_back: dict[tuple[str, int], None] = {}
        """Queues on which a read found messages that the slave did not hold yet."""

    def read(
        self, config: TopicConfig, queue_id: int, offset: int, consumer_group: str, read: Callable[[], GetResult]
    ) -> GetResult:
        """See ordered_topics.OrderedReads."""
        unit = self._unit(config, queue_id)
        if unit.problem is not None:
            raise BrokerError(ResponseCode.NO_PERMISSION, f"topic {config.topic_name}: {unit.problem}")
        topic, term = config.topic_name, unit.lists.consumed
        if term is None or term.group != self._units.group or not self._counts(unit, consumer_group):
            return self._elsewhere(topic, queue_id, offset, consumer_group, read)
        begin = self._begin(unit, queue_id, term)
        if offset < begin:
            committed = self._offsets.query(consumer_group, topic, queue_id)
            if committed is not None:
                self._passed_over.tell(consumer_group, topic, queue_id, max(offset, committed), begin, EARLIER_TERM)
            return attrs.evolve(self._nothing(topic, queue_id, begin), status=GetStatus.OFFSET_RESET)
        found = read()
        if _is_behind_the_end(offset, found):
            return self._back(found, topic, queue_id, consumer_group, begin)
        if self._terms.epoch_of(found.records) > term.epoch:
            return self._of_term(topic, queue_id, offset, found, term)
        return self._held_by_both(topic, queue_id, offset, found)

    def _elsewhere(
        self, topic: str, queue_id: int, offset: int, consumer_group: str, read: Callable[[], GetResult]
    ) -> GetResult:
        """Let the consumer wait. Send it back if the log lost its end: it would go on amid the messages of a later term."""
        nothing = self._nothing(topic, queue_id, offset)
        found = read() if offset > nothing.max_offset else nothing
        return self._back(found, topic, queue_id, consumer_group, 0) if _is_behind_the_end(offset, found) else nothing

    def _of_term(self, topic: str, queue_id: int, offset: int, found: GetResult, term: Term) -> GetResult:
        """Return what was found, without a later term's messages: this broker has them before it knows that the term is over.

        A slave copies its master's log even while it is cut off from the coordinator.
        """
        later = self._terms.begin(topic, queue_id, term.epoch + 1)
        count = sum(read_head(record).queue_offset < later for record in found.records)
        if not count:
            return self._nothing(topic, queue_id, offset)
        return self._held_by_both(topic, queue_id, offset, _first(found, count, later))

    def _back(self, found: GetResult, topic: str, queue_id: int, consumer_group: str, begin: int) -> GetResult:
        """Send the consumer back, because the log lost its end. Apache's client drops what it pulled, and goes on at the
        new offset.
        """
        committed = self._offsets.query(consumer_group, topic, queue_id) or 0
        return attrs.evolve(found, next_begin_offset=max(begin, min(committed, found.max_offset)))

    def begin(self, config: TopicConfig, queue_id: int) -> int:
        """See ordered_topics.OrderedReads: the begin of the group's term that is or will be consumed here; 0 while it is unknown.

        A read before the term is sent to its beginning. No group may start after it only because this broker knows nothing yet.
        """
        unit = self._unit(config, queue_id)
        term = unit.term_of(self._units.group)
        return 0 if term is None else self._begin(unit, queue_id, term)

    def committed(self, config: TopicConfig, queue_id: int, consumer_group: str, offset: int, epoch: int | None) -> int:
        """See ordered_topics.OrderedReads. A member's offset may be out of date.

        Other members of its group may have consumed further elsewhere. Or it consumed messages that this group's log
        lost, and whose queue offsets a later term used again.
        """
        for unit in self._units:
            if unit.topic == config.topic_name and consumer_group not in unit.consumer_groups:
                self._groups.note(unit, consumer_group)
        unit = self._unit(config, queue_id)
        term = unit.term_of(self._units.group)
        if epoch is not None:
            offset = self._terms.bounded(config.topic_name, queue_id, offset, epoch)
        if term is None or (epoch is not None and epoch < term.epoch):
            offset = max(offset, self._offsets.query(consumer_group, config.topic_name, queue_id) or 0)
        if term is None:
            return offset
        return max(offset, self._begin(unit, queue_id, term))

    def _unit(self, config: TopicConfig, queue_id: int) -> BrokerUnit:
        return self._units.of_queue(config.topic_name, config.order_mode or "", queue_id)

    def _begin(self, unit: BrokerUnit, queue_id: int, term: Term) -> int:
        return self._terms.begin(unit.topic, queue_id, term.epoch)

    def _counts(self, unit: BrokerUnit, consumer_group: str) -> bool:
        """Return True if the group may get messages: it is counted, or does not share the topic. Otherwise have it counted."""
        if consumer_group in unit.consumer_groups:
            return True
        info = self._consumers.groups.get(consumer_group)
        if info is None or unit.topic not in info.subscriptions or info.message_model == BROADCASTING:
            return True
        self._groups.note(unit, consumer_group)
        return False

    def _nothing(self, topic: str, queue_id: int, offset: int) -> GetResult:
        first, end = self._store.min_offset_in_queue(topic, queue_id), self._store.max_offset_in_queue(topic, queue_id)
        return GetResult(GetStatus.OFFSET_OVERFLOW_ONE, offset, first, end)

    def _held_by_both(self, topic: str, queue_id: int, offset: int, found: GetResult) -> GetResult:
        """Return what was found, without what the slave does not hold."""
        confirmed = self._terms.confirmed()
        if confirmed >= self._store.max_physical_offset() or not found.records:
            return found
        count = len(found.records)
        while count and (head := read_head(found.records[count - 1])).physical_offset + head.size > confirmed:
            count -= 1
            behind = head.queue_offset
        if count == len(found.records):
            return found
        self.held_back[topic, queue_id] = None
        if not count:
            return self._nothing(topic, queue_id, offset)
        return _first(found, count, behind)


def _is_behind_the_end(offset: int, found: GetResult) -> bool:
    """Return whether the log lost its end since the consumer was at that offset. What waits for its flush is not lost."""
    return offset > found.max_offset and found.status is not GetStatus.OFFSET_OVERFLOW_ONE


def _first(found: GetResult, count: int, next_begin_offset: int) -> GetResult:
    """Return only the first records that were found."""
    records = found.records[:count]
    return attrs.evolve(found, records=records, size_bytes=sum(map(len, records)), next_begin_offset=next_begin_offset)
