"""Pulling messages from a queue."""

from __future__ import annotations

import attrs
from attrs import field

from twisted_mq.protocol.headers.base import TopicQueueRequestHeader
from twisted_mq.protocol.headers.fields import int32, int64, text


@attrs.frozen(kw_only=True)
class PullMessageRequestHeader(TopicQueueRequestHeader):
    """Request of PULL_MESSAGE, LITE_PULL_MESSAGE."""

    consumer_group: str = field(metadata=text("consumerGroup"))
    topic: str = field(metadata=text("topic"))
    queue_id: int = field(metadata=int32("queueId"))
    queue_offset: int = field(metadata=int64("queueOffset"))
    max_msg_nums: int = field(metadata=int32("maxMsgNums"))
    sys_flag: int = field(metadata=int32("sysFlag"))
    commit_offset: int = field(metadata=int64("commitOffset"))
    suspend_timeout_millis: int = field(metadata=int64("suspendTimeoutMillis"))
    subscription: str | None = field(default=None, metadata=text("subscription"))
    sub_version: int = field(metadata=int64("subVersion"))
    expression_type: str | None = field(default=None, metadata=text("expressionType"))
    max_msg_bytes: int | None = field(default=None, metadata=int32("maxMsgBytes"))
    request_source: int | None = field(default=None, metadata=int32("requestSource"))
    proxy_forward_client_id: str | None = field(default=None, metadata=text("proxyFrowardClientId"))


@attrs.frozen(kw_only=True)
class PullMessageResponseHeader:
    """Answer to PULL_MESSAGE, LITE_PULL_MESSAGE.

    Present for every pull result, also for those without messages.
    """

    suggest_which_broker_id: int = field(metadata=int64("suggestWhichBrokerId"))
    next_begin_offset: int = field(metadata=int64("nextBeginOffset"))
    min_offset: int = field(metadata=int64("minOffset"))
    max_offset: int = field(metadata=int64("maxOffset"))
    offset_delta: int | None = field(default=None, metadata=int64("offsetDelta"))
    topic_sys_flag: int | None = field(default=None, metadata=int32("topicSysFlag"))
    group_sys_flag: int | None = field(default=None, metadata=int32("groupSysFlag"))
    forbidden_type: int | None = field(default=None, metadata=int32("forbiddenType"))
