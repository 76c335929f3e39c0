"""Converts tables that Apache's broker keeps in RocksDB into the tables of a store in files. The caller reads RocksDB.

v1  config/topics, config/subscriptionGroups, config/consumerOffsets: a database each, JSON under each name
v2  config/rdb: one database, keys as protocol/layouts/config_keys.py has them
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import attrs

from twisted_mq.protocol.bodies import SubscriptionGroupConfig, TopicConfig, decode_body
from twisted_mq.protocol.layouts.config_keys import TableId, data_key, json_of, name_of, offset_name_of, offset_of
from twisted_mq.protocol.text.fastjson import loads
from twisted_mq.storage.tables.config_tables import (
    TOPIC_GROUP_SEPARATOR,
    ConsumerOffsetTable,
    SubscriptionGroupTable,
    TopicTable,
)

Items = Iterable[tuple[bytes, bytes]]


@attrs.define
class RocksTables:
    """The tables of a broker. `offsets` maps "topic@group" to queue id to offset."""

    topics: dict[str, TopicConfig] = attrs.field(factory=dict)
    groups: dict[str, SubscriptionGroupConfig] = attrs.field(factory=dict)
    forbidden: dict[str, dict[str, int]] = attrs.field(factory=dict)
    offsets: dict[str, dict[int, int]] = attrs.field(factory=dict)

    def write(self, folder: str) -> None:
        """Write topics.json, subscriptionGroup.json and consumerOffset.json. Raises OSError."""
        topics = TopicTable(os.path.join(folder, "topics.json"))
        topics.topics = dict(self.topics)
        groups = SubscriptionGroupTable(os.path.join(folder, "subscriptionGroup.json"))
        groups.groups, groups.forbidden = dict(self.groups), dict(self.forbidden)
        offsets = ConsumerOffsetTable(os.path.join(folder, "consumerOffset.json"))
        offsets.offsets = dict(self.offsets)
        for table in (topics, groups, offsets):
            table.save()


def tables_of_v1(topics: Items, groups: Items, forbidden: Items, offsets: Items) -> RocksTables:
    """Return the tables from the three databases of v1. Raises BodyError, ValueError for values that are no such JSON."""
    return RocksTables(
        topics={key.decode(): decode_body(TopicConfig, value) for key, value in topics},
        groups={key.decode(): decode_body(SubscriptionGroupConfig, value) for key, value in groups},
        forbidden={key.decode(): _numbers(loads(value)) for key, value in forbidden},
        offsets={key.decode(): _offsets(value) for key, value in offsets},
    )


def tables_of_v2(items: Items) -> RocksTables:
    """Return the tables from the one database of v2. Raises ConfigKeyError, BodyError."""
    found = RocksTables()
    for key, value in items:
        known = data_key(key)
        if known is None:
            continue
        table, rest = known
        if table == TableId.TOPIC:
            found.topics[name_of(rest)] = decode_body(TopicConfig, json_of(value))
        elif table == TableId.SUBSCRIPTION_GROUP:
            found.groups[name_of(rest)] = decode_body(SubscriptionGroupConfig, json_of(value))
        elif table == TableId.CONSUMER_OFFSET:
            name = offset_name_of(rest)
            queues = found.offsets.setdefault(f"{name.topic}{TOPIC_GROUP_SEPARATOR}{name.group}", {})
            queues[name.queue_id] = offset_of(value)
    return found


def _offsets(value: bytes) -> dict[int, int]:
    """Return the offsets in {"offsetTable":{0:5,1:7}}."""
    wrapper = loads(value)
    table = wrapper.get("offsetTable") if isinstance(wrapper, dict) else None
    return {int(queue): offset for queue, offset in _numbers(table).items()}


def _numbers(value: object) -> dict[str, int]:
    """Return the value as a map of names to numbers. Raises ValueError if it is no such map."""
    if not isinstance(value, dict) or not all(type(number) is int for number in value.values()):
        raise ValueError(f"{value!r} is not a table of numbers")
    return {str(key): number for key, number in value.items()}
