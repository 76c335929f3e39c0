"""Popping messages, and acknowledging them."""

from __future__ import annotations

import attrs
from attrs import field

from twisted_mq.protocol.headers.base import TopicQueueRequestHeader
from twisted_mq.protocol.headers.fields import boolean, int32, int64, text


@attrs.frozen(kw_only=True)
class PopMessageRequestHeader(TopicQueueRequestHeader):
    """Request of POP_MESSAGE."""

    consumer_group: str = field(metadata=text("consumerGroup"))
    topic: str = field(metadata=text("topic"))
    queue_id: int = field(metadata=int32("queueId"))
    max_msg_nums: int = field(metadata=int32("maxMsgNums"))
    invisible_time: int = field(metadata=int64("invisibleTime"))
    poll_time: int = field(metadata=int64("pollTime"))
    born_time: int = field(metadata=int64("bornTime"))
    init_mode: int = field(metadata=int32("initMode"))
    exp_type: str | None = field(default=None, metadata=text("expType"))
    exp: str | None = field(default=None, metadata=text("exp"))
    order: bool = field(default=False, metadata=boolean("order"))
    attempt_id: str | None = field(default=None, metadata=text("attemptId"))


@attrs.frozen(kw_only=True)
class PopMessageResponseHeader:
    """Answer to POP_MESSAGE, PEEK_MESSAGE."""

    pop_time: int = field(metadata=int64("popTime"))
    invisible_time: int = field(metadata=int64("invisibleTime"))
    revive_qid: int = field(metadata=int32("reviveQid"))
    rest_num: int = field(metadata=int64("restNum"))
    start_offset_info: str | None = field(default=None, metadata=text("startOffsetInfo"))
    msg_offset_info: str | None = field(default=None, metadata=text("msgOffsetInfo"))
    order_count_info: str | None = field(default=None, metadata=text("orderCountInfo"))


@attrs.frozen(kw_only=True)
class PeekMessageRequestHeader(TopicQueueRequestHeader):
    """Request of PEEK_MESSAGE."""

    topic: str = field(metadata=text("topic"))
    queue_id: int = field(metadata=int32("queueId"))
    max_msg_nums: int = field(metadata=int32("maxMsgNums"))
    consumer_group: str = field(metadata=text("consumerGroup"))


@attrs.frozen(kw_only=True)
class AckMessageRequestHeader(TopicQueueRequestHeader):
    """Request of ACK_MESSAGE."""

    consumer_group: str = field(metadata=text("consumerGroup"))
    topic: str = field(metadata=text("topic"))
    queue_id: int = field(metadata=int32("queueId"))
    extra_info: str = field(metadata=text("extraInfo"))
    offset: int = field(metadata=int64("offset"))


@attrs.frozen(kw_only=True)
class ChangeInvisibleTimeRequestHeader(TopicQueueRequestHeader):
    """Request of CHANGE_MESSAGE_INVISIBLETIME."""

    consumer_group: str = field(metadata=text("consumerGroup"))
    topic: str = field(metadata=text("topic"))
    queue_id: int = field(metadata=int32("queueId"))
    extra_info: str = field(metadata=text("extraInfo"))
    offset: int = field(metadata=int64("offset"))
    invisible_time: int = field(metadata=int64("invisibleTime"))


@attrs.frozen(kw_only=True)
class ChangeInvisibleTimeResponseHeader:
    """Answer to CHANGE_MESSAGE_INVISIBLETIME."""

    pop_time: int = field(metadata=int64("popTime"))
    invisible_time: int = field(metadata=int64("invisibleTime"))
    revive_qid: int = field(metadata=int32("reviveQid"))


@attrs.frozen(kw_only=True)
class NotificationRequestHeader(TopicQueueRequestHeader):
    """Request of NOTIFICATION."""

    consumer_group: str = field(metadata=text("consumerGroup"))
    topic: str = field(metadata=text("topic"))
    queue_id: int = field(metadata=int32("queueId"))
    poll_time: int = field(metadata=int64("pollTime"))
    born_time: int = field(metadata=int64("bornTime"))
    order: bool = field(default=False, metadata=boolean("order"))
    attempt_id: str | None = field(default=None, metadata=text("attemptId"))


@attrs.frozen(kw_only=True)
class NotificationResponseHeader:
    """Answer to NOTIFICATION."""

    has_msg: bool = field(metadata=boolean("hasMsg"))
    polling_full: bool = field(default=False, metadata=boolean("pollingFull"))


@attrs.frozen(kw_only=True)
class PollingInfoRequestHeader(TopicQueueRequestHeader):
    """Request of POLLING_INFO."""

    consumer_group: str = field(metadata=text("consumerGroup"))
    topic: str = field(metadata=text("topic"))
    queue_id: int = field(metadata=int32("queueId"))


@attrs.frozen(kw_only=True)
class PollingInfoResponseHeader:
    """Answer to POLLING_INFO."""

    polling_num: int = field(metadata=int32("pollingNum"))
