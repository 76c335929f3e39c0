"""Looking at stored messages and queues."""

from __future__ import annotations

import attrs
from attrs import field

from twisted_mq.protocol.headers.base import TopicQueueRequestHeader, TopicRequestHeader
from twisted_mq.protocol.headers.fields import int32, int64, text


@attrs.frozen(kw_only=True)
class QueryMessageRequestHeader(TopicRequestHeader):
    """Request of QUERY_MESSAGE."""

    topic: str = field(metadata=text("topic"))
    key: str = field(metadata=text("key"))
    max_num: int = field(metadata=int32("maxNum"))
    begin_timestamp: int = field(metadata=int64("beginTimestamp"))
    end_timestamp: int = field(metadata=int64("endTimestamp"))


@attrs.frozen(kw_only=True)
class QueryMessageResponseHeader:
    """Answer to QUERY_MESSAGE."""

    index_last_update_timestamp: int = field(metadata=int64("indexLastUpdateTimestamp"))
    index_last_update_phyoffset: int = field(metadata=int64("indexLastUpdatePhyoffset"))


@attrs.frozen(kw_only=True)
class ViewMessageRequestHeader:
    """Request of VIEW_MESSAGE_BY_ID."""

    topic: str | None = field(default=None, metadata=text("topic"))
    offset: int = field(metadata=int64("offset"))


@attrs.frozen(kw_only=True)
class QueryConsumeQueueRequestHeader(TopicQueueRequestHeader):
    """Request of QUERY_CONSUME_QUEUE."""

    topic: str | None = field(default=None, metadata=text("topic"))
    queue_id: int = field(default=0, metadata=int32("queueId"))
    index: int = field(default=0, metadata=int64("index"))
    count: int = field(default=0, metadata=int32("count"))
    consumer_group: str | None = field(default=None, metadata=text("consumerGroup"))


@attrs.frozen(kw_only=True)
class QueryConsumeTimeSpanRequestHeader(TopicRequestHeader):
    """Request of QUERY_CONSUME_TIME_SPAN."""

    topic: str = field(metadata=text("topic"))
    group: str = field(metadata=text("group"))


@attrs.frozen(kw_only=True)
class CheckRocksdbCqWriteProgressRequestHeader:
    """Request of CHECK_ROCKSDB_CQ_WRITE_PROGRESS."""

    topic: str = field(metadata=text("topic"))
    check_store_time: int = field(default=0, metadata=int64("checkStoreTime"))
