"""Offsets of queues and of consumer groups."""

from __future__ import annotations

import attrs
from attrs import field

from twisted_mq.protocol.boundary_type import BoundaryType
from twisted_mq.protocol.headers.base import RpcRequestHeader, TopicQueueRequestHeader, TopicRequestHeader
from twisted_mq.protocol.headers.fields import boolean, boundary, int32, int64, text


@attrs.frozen(kw_only=True)
class QueryConsumerOffsetRequestHeader(TopicQueueRequestHeader):
    """Request of QUERY_CONSUMER_OFFSET."""

    consumer_group: str = field(metadata=text("consumerGroup"))
    topic: str = field(metadata=text("topic"))
    queue_id: int = field(metadata=int32("queueId"))
    set_zero_if_not_found: bool | None = field(default=None, metadata=boolean("setZeroIfNotFound"))


@attrs.frozen(kw_only=True)
class QueryConsumerOffsetResponseHeader:
    """Answer to QUERY_CONSUMER_OFFSET."""

    offset: int = field(metadata=int64("offset"))


@attrs.frozen(kw_only=True)
class UpdateConsumerOffsetRequestHeader(TopicQueueRequestHeader):
    """Request of UPDATE_CONSUMER_OFFSET."""

    consumer_group: str = field(metadata=text("consumerGroup"))
    topic: str = field(metadata=text("topic"))
    queue_id: int = field(metadata=int32("queueId"))
    commit_offset: int = field(metadata=int64("commitOffset"))


@attrs.frozen(kw_only=True)
class GetMaxOffsetRequestHeader(TopicQueueRequestHeader):
    """Request of GET_MAX_OFFSET.

    `committed`: the end of the consume queue; False: the next queue offset, also where the log is ahead of the
    queue.
    """

    topic: str = field(metadata=text("topic"))
    queue_id: int = field(metadata=int32("queueId"))
    committed: bool = field(default=True, metadata=boolean("committed"))


@attrs.frozen(kw_only=True)
class GetMaxOffsetResponseHeader:
    """Answer to GET_MAX_OFFSET."""

    offset: int = field(metadata=int64("offset"))


@attrs.frozen(kw_only=True)
class GetMinOffsetRequestHeader(TopicQueueRequestHeader):
    """Request of GET_MIN_OFFSET."""

    topic: str = field(metadata=text("topic"))
    queue_id: int = field(metadata=int32("queueId"))


@attrs.frozen(kw_only=True)
class GetMinOffsetResponseHeader:
    """Answer to GET_MIN_OFFSET."""

    offset: int = field(metadata=int64("offset"))


@attrs.frozen(kw_only=True)
class SearchOffsetRequestHeader(TopicQueueRequestHeader):
    """Request of SEARCH_OFFSET_BY_TIMESTAMP.

    Timestamps in milliseconds. An absent `boundary_type` means LOWER.
    """

    topic: str = field(metadata=text("topic"))
    queue_id: int = field(metadata=int32("queueId"))
    timestamp: int = field(metadata=int64("timestamp"))
    boundary_type: BoundaryType | None = field(default=None, metadata=boundary("boundaryType"))


@attrs.frozen(kw_only=True)
class SearchOffsetResponseHeader:
    """Answer to SEARCH_OFFSET_BY_TIMESTAMP."""

    offset: int = field(metadata=int64("offset"))


@attrs.frozen(kw_only=True)
class GetEarliestMsgStoretimeRequestHeader(TopicQueueRequestHeader):
    """Request of GET_EARLIEST_MSG_STORETIME."""

    topic: str = field(metadata=text("topic"))
    queue_id: int = field(metadata=int32("queueId"))


@attrs.frozen(kw_only=True)
class GetEarliestMsgStoretimeResponseHeader:
    """Answer to GET_EARLIEST_MSG_STORETIME."""

    timestamp: int = field(metadata=int64("timestamp"))


@attrs.frozen(kw_only=True)
class ResetOffsetRequestHeader(TopicQueueRequestHeader):
    """Request of RESET_CONSUMER_CLIENT_OFFSET, INVOKE_BROKER_TO_RESET_OFFSET.

    `queue_id` -1 means all queues; a `timestamp` of -1 for the end of the queue.
    """

    group: str = field(metadata=text("group"))
    topic: str = field(metadata=text("topic"))
    queue_id: int = field(default=-1, metadata=int32("queueId"))
    offset: int | None = field(default=None, metadata=int64("offset"))
    timestamp: int = field(metadata=int64("timestamp"))
    is_force: bool = field(metadata=boolean("isForce"))


@attrs.frozen(kw_only=True)
class CloneGroupOffsetRequestHeader(RpcRequestHeader):
    """Request of CLONE_GROUP_OFFSET."""

    src_group: str = field(metadata=text("srcGroup"))
    dest_group: str = field(metadata=text("destGroup"))
    topic: str | None = field(default=None, metadata=text("topic"))
    offline: bool = field(default=False, metadata=boolean("offline"))


@attrs.frozen(kw_only=True)
class QueryCorrectionOffsetHeader(TopicRequestHeader):
    """Request of QUERY_CORRECTION_OFFSET."""

    filter_groups: str | None = field(default=None, metadata=text("filterGroups"))
    compare_group: str = field(metadata=text("compareGroup"))
    topic: str = field(metadata=text("topic"))
