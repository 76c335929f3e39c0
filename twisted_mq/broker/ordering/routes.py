"""What name servers are told of ordered topics whose queues move as one, so that any client finds the right broker.

Writable is the topic where the send list's head is, readable where the consume list's head is. A slave whose master is
gone registers as one that acts for it: a name server with supportActingMaster=true shows it under id 0, where orderly
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
    """Of one broker; see ordered_topics.OrderedRoutes. `changed` is called when name servers have to be told anew."""

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
        """What this broker is for the topic's clients, as a permission."""
        unit = self._units.get((topic, WHOLE_TOPIC))
        if unit is None:
            return 0
        takes = PERM_WRITE if self._is_master and unit.epoch else 0
        consumed = unit.lists.consumed
        hands_out = PERM_READ if consumed is not None and consumed.group == self._units.group else 0
        return takes | hands_out

    def look(self, *, master_is_gone: bool, lowest_id: int) -> None:
        """Positions may have changed, or who is there.

        A name server takes a slave's topics only while its id is the lowest that it knows, and only with a new version.
        """
        self.acting = master_is_gone and not self._is_master
        wholes = [unit.topic for unit in self._units if unit.together]
        shown = (self.acting, lowest_id, {topic: self._position(topic) for topic in wholes})
        if wholes and shown != self._shown:
            self._shown = shown
            self.version += 1
            self._changed()
