"""Decides which messages a pull gets, and which groups a message matches.

Apache: ExpressionMessageFilter, ExpressionForRetryMessageFilter, CommitLogDispatcherCalcBitMap.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from twisted_mq.broker.filter.consumer_filter_data import ConsumerFilterData, compile_filter
from twisted_mq.broker.filter.consumer_filter_manager import ConsumerFilterManager
from twisted_mq.protocol.bodies import SubscriptionData
from twisted_mq.protocol.messages.subscription import is_tag_type, selected_codes
from twisted_mq.protocol.names.system_topics import RETRY_PREFIX
from twisted_mq.protocol.text.properties import PROPERTY_RETRY_TOPIC

POP_RETRY_SEPARATOR = "+"


def request_filter(topic: str, group: str, expression: str, kind: str, version: int, now_ms: int) -> ConsumerFilterData:
    """Return the filter of a subscription in a request, without positions (Apache: ConsumerFilterManager.build).

    Raises ExpressionError.
    """
    compiled = compile_filter(kind, expression)
    return ConsumerFilterData(group, topic, expression, kind, now_ms, version, compiled=compiled)


@attrs.frozen(eq=False)
class MessageFilter:
    """The two tests of a subscription: by the queue's entry, then by the message's properties. `data` is None for tags.

    With `support_retry` (filterSupportRetry) the messages of a retry topic are tested by the filter of their original
    topic; without it, all of them match.
    """

    subscription: SubscriptionData
    data: ConsumerFilterData | None
    manager: ConsumerFilterManager
    support_retry: bool = False

    def matches_entry(self, tags_code: int | None, store_timestamp: int = 0, bit_map: bytes | None = None) -> bool:
        """Return False only if the message cannot match. Time and bit map are those of the entry's extension, if it has one."""
        codes = selected_codes(self.subscription)
        if codes is not None:
            return tags_code is None or tags_code in codes
        data = self.data
        if bit_map is None or data is None or self.subscription.class_filter_mode:
            return True
        positions, bloom = data.bloom_filter_data, self.manager.bloom_filter
        if positions is None or not bloom.is_valid(positions) or len(bit_map) * 8 != positions.bit_num:
            return True
        if not data.was_there_at(store_timestamp) or data.compiled is None:
            return True
        return bloom.is_hit(bit_map, positions.bit_pos)

    @property
    def needs_properties(self) -> bool:
        """Return True if `matches_properties` may refuse a message, so that its properties have to be read."""
        by_tags = self.subscription.class_filter_mode or is_tag_type(self.subscription.expression_type)
        return not by_tags and (self._retried or self.data is not None)

    def matches_properties(self, properties: Mapping[str, str]) -> bool:
        """Return True if the expression is true for a message with these properties."""
        if not self.needs_properties:
            return True
        data = self._origin(properties) if self._retried else self.data
        compiled = data.compiled if data is not None else None
        return compiled is None or compiled.evaluate(properties)

    @property
    def _retried(self) -> bool:
        return self.support_retry and self.subscription.topic.startswith(RETRY_PREFIX)

    def _origin(self, properties: Mapping[str, str]) -> ConsumerFilterData | None:
        return self.manager.get(properties.get(PROPERTY_RETRY_TOPIC, ""), group_of_retry(self.subscription.topic))


def group_of_retry(topic: str) -> str:
    """Return the group of %RETRY%group and of pop's %RETRY%group+topic (Apache: KeyBuilder.parseGroup)."""
    name = topic.removeprefix(RETRY_PREFIX)
    parts = name.split(POP_RETRY_SEPARATOR)
    return parts[0] if len(parts) == 2 and parts[1] else name


def filter_bit_map(manager: ConsumerFilterManager, topic: str, properties: Mapping[str, str]) -> bytes | None:
    """Return the bits of all groups whose expression a new message matches; None for a topic without filters.

    Used only with enableCalcFilterBitMap; the bits go into the extension of the queue's entry.
    """
    filters = manager.of_topic(topic)
    if not filters:
        return None
    bits = manager.bloom_filter.new_bits()
    for data in filters:
        compiled, positions = data.compiled, data.bloom_filter_data
        if compiled is not None and positions is not None and compiled.evaluate(properties):
            manager.bloom_filter.set_bits(bits, positions.bit_pos)
    return bytes(bits)
