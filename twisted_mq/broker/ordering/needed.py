"""Finds the messages of ordered queues that retention keeps, because counted consumer groups have not consumed them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Protocol

from twisted_mq.broker.clients.consumer_offset_manager import ConsumerOffsetManager
from twisted_mq.broker.ordering.counted_groups import CountedGroups
from twisted_mq.broker.ordering.terms import Terms
from twisted_mq.broker.ordering.units import BrokerUnit, Units
from twisted_mq.broker.topics.topic_config_manager import TopicConfigManager
from twisted_mq.coordination.interfaces import CoordinationError
from twisted_mq.ordering.lists import WHOLE_TOPIC
from twisted_mq.protocol.bodies.topic_config import ORDER_TOGETHER
from twisted_mq.storage.interfaces import IMessageStore
from twisted_mq.storage.retention import Needed


class NeedingParts(Protocol):
    """The parts of the broker whose messages are kept."""

    store: IMessageStore
    offsets: ConsumerOffsetManager
    topics: TopicConfigManager


class NeededMessages:
    """Finds the first message of each ordered queue that a consumer group still needs.

    If the lists of a queue are unknown, everything from the lowest committed offset on is needed.
    """

    def __init__(self, broker: NeedingParts, units: Units, terms: Terms, groups: CountedGroups) -> None:
        self._broker = broker
        self._units = units
        self._terms = terms
        self._groups = groups

    async def find(self) -> list[Needed]:
        """Ask for the counted groups, and return the messages. If the coordinator does not answer, all groups with an
        offset count.
        """
        needed: list[Needed] = []
        for topic, config in tuple(self._broker.topics.topics.items()):
            if not config.attributes or config.order_mode is None:
                continue
            together, queues = config.order_mode == ORDER_TOGETHER, range(config.write_queue_nums)
            names = {WHOLE_TOPIC: queues} if together else {str(queue): (queue,) for queue in queues}
            for name, ids in names.items():
                unit = self._units.get((topic, name))
                if not self._is_settled(unit):
                    needed += self._of_unit(topic, unit, ids, await self._counted(topic, unit))
        return needed

    def _is_settled(self, unit: BrokerUnit | None) -> bool:
        """Return True if the lists are known and have no term of this group: nothing here is left to consume."""
        return unit is not None and unit.learned and unit.problem is None and unit.term_of(self._units.group) is None

    async def _counted(self, topic: str, unit: BrokerUnit | None) -> Collection[str]:
        try:
            if unit is not None:
                await self._groups.read(unit)
                return unit.consumer_groups
        except CoordinationError:
            pass  # the groups with an offset count
        return {*self._broker.offsets.groups_of(topic), *(unit.consumer_groups if unit is not None else ())}

    def _of_unit(
        self, topic: str, unit: BrokerUnit | None, queues: Iterable[int], groups: Collection[str]
    ) -> Iterator[Needed]:
        store, term = self._broker.store, None if unit is None else unit.term_of(self._units.group)
        for queue_id in queues:
            begin = store.min_offset_in_queue(topic, queue_id)
            if term is not None:
                begin = max(begin, self._terms.begin(topic, queue_id, term.epoch))
            committed = [self._broker.offsets.query(group, topic, queue_id) or 0 for group in groups]
            offset = max(begin, min(committed, default=begin))
            entries = store.queue_entries(topic, queue_id, offset, 1)
            if entries:
                yield Needed(topic, queue_id, offset, entries[0][0])
