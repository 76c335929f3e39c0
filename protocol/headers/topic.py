"""Topics of a broker."""

from __future__ import annotations

import attrs
from attrs import field

from twisted_mq.protocol.headers.base import RpcRequestHeader, TopicRequestHeader
from twisted_mq.protocol.headers.fields import boolean, int32, text


@attrs.frozen(kw_only=True)
class CreateTopicRequestHeader(TopicRequestHeader):
    """Request of UPDATE_AND_CREATE_TOPIC, UPDATE_AND_CREATE_STATIC_TOPIC.

    Order of the numbers of queues: read, write. `perm` as PermName.
    """

    topic: str = field(metadata=text("topic"))
    default_topic: str = field(metadata=text("defaultTopic"))
    read_queue_nums: int = field(metadata=int32("readQueueNums"))
    write_queue_nums: int = field(metadata=int32("writeQueueNums"))
    perm: int = field(metadata=int32("perm"))
    topic_filter_type: str = field(metadata=text("topicFilterType", allowed=("SINGLE_TAG", "MULTI_TAG")))
    topic_sys_flag: int | None = field(default=None, metadata=int32("topicSysFlag"))
    order: bool = field(metadata=boolean("order"))
    attributes: str | None = field(default=None, metadata=text("attributes"))
    force: bool = field(default=False, metadata=boolean("force"))


@attrs.frozen(kw_only=True)
class CreateTopicListRequestHeader(RpcRequestHeader):
    """Request of UPDATE_AND_CREATE_TOPIC_LIST, without fields of its own."""


@attrs.frozen(kw_only=True)
class DeleteTopicRequestHeader(TopicRequestHeader):
    """Request of DELETE_TOPIC_IN_BROKER."""

    topic: str = field(metadata=text("topic"))


@attrs.frozen(kw_only=True)
class GetTopicConfigRequestHeader(TopicRequestHeader):
    """Request of GET_TOPIC_CONFIG."""

    topic: str = field(metadata=text("topic"))


@attrs.frozen(kw_only=True)
class GetTopicStatsInfoRequestHeader(TopicRequestHeader):
    """Request of GET_TOPIC_STATS_INFO."""

    topic: str = field(metadata=text("topic"))


@attrs.frozen(kw_only=True)
class QueryTopicConsumeByWhoRequestHeader(TopicRequestHeader):
    """Request of QUERY_TOPIC_CONSUME_BY_WHO."""

    topic: str = field(metadata=text("topic"))


@attrs.frozen(kw_only=True)
class QueryTopicsByConsumerRequestHeader(RpcRequestHeader):
    """Request of QUERY_TOPICS_BY_CONSUMER."""

    group: str = field(metadata=text("group"))
