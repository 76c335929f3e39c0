"""Tables of offsets."""

from __future__ import annotations

import attrs
from attrs import field

from twisted_mq.protocol.bodies.queues import MessageQueue, MessageQueueForC
from twisted_mq.protocol.bodies.types import Int32, Int64
from twisted_mq.protocol.bodies.versions import DataVersion


@attrs.frozen
class ConsumerOffsetSerializeWrapper:
    """Answer to GET_ALL_CONSUMER_OFFSET. Also the broker's file consumerOffset.json. `offset_table`: `topic@group` to
    queue id to offset. `group_topic_map`: group to its topics; only 5.x brokers write it.
    """

    offset_table: dict[str, dict[Int32, Int64]] = field(factory=dict)
    data_version: DataVersion | None = None
    group_topic_map: dict[str, list[str]] | None = None


@attrs.frozen
class DelayOffsetSerializeWrapper:
    """Answer to GET_ALL_DELAY_OFFSET. Also the broker's file delayOffset.json: delay level to queue offset."""

    offset_table: dict[Int32, Int64] = field(factory=dict)
    data_version: DataVersion | None = None


@attrs.frozen
class RocksDBOffsetSerializeWrapper:
    """Queue id to offset, as a value in RocksDB."""

    offset_table: dict[Int32, Int64] = field(factory=dict)


@attrs.frozen
class OffsetSerializeWrapper:
    """The file of a broadcasting consumer: offsets.json."""

    offset_table: dict[MessageQueue, Int64] = field(factory=dict)


@attrs.frozen
class ResetOffsetBody:
    """Request body of RESET_CONSUMER_CLIENT_OFFSET. Answer to INVOKE_BROKER_TO_RESET_OFFSET."""

    offset_table: dict[MessageQueue, Int64] = field(factory=dict)


@attrs.frozen
class ResetOffsetBodyForC:
    """The form of ResetOffsetBody that the C++ client reads."""

    offset_table: list[MessageQueueForC] = field(factory=list)


@attrs.frozen
class GetConsumerStatusBody:
    """Answer to GET_CONSUMER_STATUS_FROM_CLIENT, INVOKE_BROKER_TO_GET_CONSUMER_STATUS. `consumer_table`: client id to
    queue to offset.
    """

    message_queue_table: dict[MessageQueue, Int64] = field(factory=dict)
    consumer_table: dict[str, dict[MessageQueue, Int64]] = field(factory=dict)


@attrs.frozen
class QueryCorrectionOffsetBody:
    """Answer to QUERY_CORRECTION_OFFSET."""

    correction_offsets: dict[Int32, Int64] = field(factory=dict)


@attrs.frozen
class OffsetMovedEvent:
    """The message that a broker of 4.x sends to OFFSET_MOVED_EVENT."""

    consumer_group: str | None = None
    message_queue: MessageQueue | None = None
    offset_request: Int64 = 0
    offset_new: Int64 = 0
