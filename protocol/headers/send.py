"""Sending messages: plain, batch, reply, back to the broker for a retry, recall of a delayed one."""

from __future__ import annotations

import attrs
from attrs import field

from twisted_mq.protocol.headers.base import RpcRequestHeader, TopicQueueRequestHeader, TopicRequestHeader
from twisted_mq.protocol.headers.fields import boolean, int32, int64, text


@attrs.frozen(kw_only=True)
class SendMessageRequestHeader(TopicQueueRequestHeader):
    """Request of SEND_MESSAGE, SEND_REPLY_MESSAGE."""

    producer_group: str = field(metadata=text("producerGroup"))
    topic: str = field(metadata=text("topic"))
    default_topic: str = field(metadata=text("defaultTopic"))
    default_topic_queue_nums: int = field(metadata=int32("defaultTopicQueueNums"))
    queue_id: int = field(metadata=int32("queueId"))
    sys_flag: int = field(metadata=int32("sysFlag"))
    born_timestamp: int = field(metadata=int64("bornTimestamp"))
    flag: int = field(metadata=int32("flag"))
    properties: str | None = field(default=None, metadata=text("properties"))
    reconsume_times: int | None = field(default=None, metadata=int32("reconsumeTimes"))
    unit_mode: bool | None = field(default=None, metadata=boolean("unitMode"))
    batch: bool | None = field(default=None, metadata=boolean("batch"))
    max_reconsume_times: int | None = field(default=None, metadata=int32("maxReconsumeTimes"))


@attrs.frozen(kw_only=True)
class SendMessageRequestHeaderV2(TopicQueueRequestHeader):
    """Request of SEND_MESSAGE_V2, SEND_BATCH_MESSAGE, SEND_REPLY_MESSAGE_V2.

    The fields of SendMessageRequestHeader under one-letter names; `n` carries the broker's name. `l` is left out by
    a plain producer.
    """

    producer_group: str = field(metadata=text("a"))
    topic: str = field(metadata=text("b"))
    default_topic: str = field(metadata=text("c"))
    default_topic_queue_nums: int = field(metadata=int32("d"))
    queue_id: int = field(metadata=int32("e"))
    sys_flag: int = field(metadata=int32("f"))
    born_timestamp: int = field(metadata=int64("g"))
    flag: int = field(metadata=int32("h"))
    properties: str | None = field(default=None, metadata=text("i"))
    reconsume_times: int | None = field(default=None, metadata=int32("j"))
    unit_mode: bool | None = field(default=None, metadata=boolean("k"))
    max_reconsume_times: int | None = field(default=None, metadata=int32("l"))
    batch: bool | None = field(default=None, metadata=boolean("m"))
    broker_name: str | None = field(default=None, metadata=text("n"))


@attrs.frozen(kw_only=True)
class SendMessageResponseHeader:
    """Answer to SEND_MESSAGE, SEND_MESSAGE_V2, SEND_BATCH_MESSAGE, SEND_REPLY_MESSAGE, SEND_REPLY_MESSAGE_V2."""

    msg_id: str = field(metadata=text("msgId"))
    queue_id: int = field(metadata=int32("queueId"))
    queue_offset: int = field(metadata=int64("queueOffset"))
    transaction_id: str | None = field(default=None, metadata=text("transactionId"))
    batch_uniq_id: str | None = field(default=None, metadata=text("batchUniqId"))
    recall_handle: str | None = field(default=None, metadata=text("recallHandle"))


@attrs.frozen(kw_only=True)
class ReplyMessageRequestHeader(TopicQueueRequestHeader):
    """Request of PUSH_REPLY_MESSAGE_TO_CLIENT."""

    producer_group: str = field(metadata=text("producerGroup"))
    topic: str = field(metadata=text("topic"))
    default_topic: str = field(metadata=text("defaultTopic"))
    default_topic_queue_nums: int = field(metadata=int32("defaultTopicQueueNums"))
    queue_id: int = field(metadata=int32("queueId"))
    sys_flag: int = field(metadata=int32("sysFlag"))
    born_timestamp: int = field(metadata=int64("bornTimestamp"))
    flag: int = field(metadata=int32("flag"))
    properties: str | None = field(default=None, metadata=text("properties"))
    reconsume_times: int | None = field(default=None, metadata=int32("reconsumeTimes"))
    unit_mode: bool = field(default=False, metadata=boolean("unitMode"))
    born_host: str = field(metadata=text("bornHost"))
    store_host: str = field(metadata=text("storeHost"))
    store_timestamp: int = field(metadata=int64("storeTimestamp"))


@attrs.frozen(kw_only=True)
class ConsumerSendMsgBackRequestHeader(RpcRequestHeader):
    """Request of CONSUMER_SEND_MSG_BACK."""

    offset: int = field(metadata=int64("offset"))
    group: str = field(metadata=text("group"))
    delay_level: int = field(metadata=int32("delayLevel"))
    origin_msg_id: str | None = field(default=None, metadata=text("originMsgId"))
    origin_topic: str | None = field(default=None, metadata=text("originTopic"))
    unit_mode: bool = field(default=False, metadata=boolean("unitMode"))
    max_reconsume_times: int | None = field(default=None, metadata=int32("maxReconsumeTimes"))


@attrs.frozen(kw_only=True)
class RecallMessageRequestHeader(TopicRequestHeader):
    """Request of RECALL_MESSAGE."""

    producer_group: str | None = field(default=None, metadata=text("producerGroup"))
    topic: str = field(metadata=text("topic"))
    recall_handle: str = field(metadata=text("recallHandle"))


@attrs.frozen(kw_only=True)
class RecallMessageResponseHeader:
    """Answer to RECALL_MESSAGE."""

    msg_id: str = field(metadata=text("msgId"))
