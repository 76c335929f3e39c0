"""Tells name servers about ordered topics whose queues move as one, so that any client finds the right broker.

A topic is writable at the send list's head, and readable at the consume list's head. A slave whose master is
gone registers as its replacement: a name server with supportActingMaster=true shows it under id 0, where orderly
consumers lock, pull and commit.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from twisted_mq.broker.ordering.units import Units
from twisted_mq.ordering.lists import WHOLE_TOPIC
from twisted_mq.protocol.bodies import TopicConfig
from twisted_mq.protocol.bodies.topic_config import ORDER_TOGETHER
from twisted_mq.protocol.flags import PERM_READ, PERM_WRITE


class ShownRoutes:
    """The routes of one broker; see ordered_topics.OrderedRoutes. `changed` is called when the broker has to register again."""

    def __init__(self, units: Units, *, is_master: bool, changed: Callable[[], object]) -> None:
        self.version = 0
        self.acting = False
        self._units = units
        self._is_master = is_master
        self._changed = changed
        self._shown: tuple[bool, int, dict[str, int]] = (False, 0, {})

    def shown(self, configs: list[TopicConfig]) -> list[TopicConfig]:
        """See ordered_topics.OrderedRoutes."""
        return [
            attrs.evolve(config, perm=config.perm & self._position(config.topic_name))
            if config.attributes and config.order_mode == ORDER_TOGETHER
            else config
            for config in configs
        ]

    def _position(self, topic: str) -> int:
        """Return this broker's permission on the topic, which tells clients what to do here."""
        unit = self._units.get((topic, WHOLE_TOPIC))
        if unit is None:
            return 0
        takes = PERM_WRITE if self._is_master and unit.epoch else 0
        consumed = unit.lists.consumed
        hands_out = PERM_READ if consumed is not None and consumed.group == self._units.group else 0
        return takes | hands_out

    def look(self, *, master_is_gone: bool, lowest_id: int) -> None:
        """Compare with the last registration, because positions or the other brokers may have changed.

        A name server accepts a slave's topics only while its id is the lowest that it knows, and only with a new version.
        """
        self.acting = master_is_gone and not self._is_master
        wholes = [unit.topic for unit in self._units if unit.together]
        shown = (self.acting, lowest_id, {topic: self._position(topic) for topic in wholes})
        if wholes and shown != self._shown:
            self._shown = shown
            self.version += 1
            self._changed()
