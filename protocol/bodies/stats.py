"""Statistics of topics, groups and brokers."""

from __future__ import annotations

import attrs
from attrs import field

from twisted_mq.protocol.bodies.heartbeat import SubscriptionData
from twisted_mq.protocol.bodies.queues import MessageQueue
from twisted_mq.protocol.bodies.types import Int32, Int64


@attrs.frozen
class TopicOffset:
    """The ends of a queue, and when its last message was stored (ms)."""

    min_offset: Int64 = 0
    max_offset: Int64 = 0
    last_update_timestamp: Int64 = 0


@attrs.frozen
class TopicStatsTable:
    """Answer to GET_TOPIC_STATS_INFO."""

    topic_put_tps: float = 0.0
    offset_table: dict[MessageQueue, TopicOffset] = field(factory=dict)


@attrs.frozen
class OffsetWrapper:
    """The end of a queue, and how far a group is. `last_timestamp` is the store time of the message before the group's
    offset (ms).
    """

    broker_offset: Int64 = 0
    consumer_offset: Int64 = 0
    pull_offset: Int64 = 0
    last_timestamp: Int64 = 0


@attrs.frozen
class ConsumeStats:
    """Answer to GET_CONSUME_STATS."""

    offset_table: dict[MessageQueue, OffsetWrapper] = field(factory=dict)
    consume_tps: float = 0.0


@attrs.frozen
class ConsumeStatsList:
    """Answer to GET_BROKER_CONSUME_STATS."""

    consume_stats_list: list[dict[str, list[ConsumeStats]]] = field(factory=list)
    broker_addr: str | None = None
    total_diff: Int64 = 0
    total_inflight_diff: Int64 = 0


@attrs.frozen
class RollbackStats:
    """The result of a reset by time in a queue."""

    broker_name: str | None = None
    queue_id: Int64 = 0
    broker_offset: Int64 = 0
    consumer_offset: Int64 = 0
    timestamp_offset: Int64 = 0
    rollback_offset: Int64 = 0


@attrs.frozen
class BrokerStatsItem:
    """A counter over a time: its sum, its rate a second, and the average a call."""

    sum: Int64 = 0
    tps: float = 0.0
    avgpt: float = 0.0


@attrs.frozen
class BrokerStatsData:
    """Answer to VIEW_BROKER_STATS_DATA."""

    stats_minute: BrokerStatsItem | None = None
    stats_hour: BrokerStatsItem | None = None
    stats_day: BrokerStatsItem | None = None


@attrs.frozen
class QueueTimeSpan:
    """From when to when the messages of a queue are (ms). Apache also writes each time as text; that is not read."""

    message_queue: MessageQueue | None = None
    min_time_stamp: Int64 = 0
    max_time_stamp: Int64 = 0
    consume_time_stamp: Int64 = 0
    delay_time: Int64 = 0


@attrs.frozen
class QueryConsumeTimeSpanBody:
    """Answer to QUERY_CONSUME_TIME_SPAN."""

    consume_time_span_set: list[QueueTimeSpan] = field(factory=list)


@attrs.frozen
class ConsumeQueueData:
    """An entry of a consume queue. `msg` tells why the message could not be read."""

    physic_offset: Int64 = 0
    physic_size: Int32 = 0
    tags_code: Int64 = 0
    extend_data_json: str | None = None
    bit_map: str | None = None
    eval: bool = False
    msg: str | None = None


@attrs.frozen
class QueryConsumeQueueResponseBody:
    """Answer to QUERY_CONSUME_QUEUE."""

    subscription_data: SubscriptionData | None = None
    filter_data: str | None = None
    queue_data: list[ConsumeQueueData] | None = None
    max_queue_index: Int64 = 0
    min_queue_index: Int64 = 0
