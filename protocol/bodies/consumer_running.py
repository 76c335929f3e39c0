"""The report of a running consumer."""

from __future__ import annotations

import attrs
from attrs import field

from twisted_mq.protocol.bodies.heartbeat import SubscriptionData
from twisted_mq.protocol.bodies.queues import MessageQueue
from twisted_mq.protocol.bodies.types import CMResult, Int32, Int64, wire


@attrs.frozen
class ProcessQueueInfo:
    """The messages of a queue that a push consumer holds. Times in ms."""

    commit_offset: Int64 = 0
    cached_msg_min_offset: Int64 = 0
    cached_msg_max_offset: Int64 = 0
    cached_msg_count: Int32 = 0
    cached_msg_size_in_mib: Int32 = field(default=0, metadata=wire("cachedMsgSizeInMiB"))
    transaction_msg_min_offset: Int64 = 0
    transaction_msg_max_offset: Int64 = 0
    transaction_msg_count: Int32 = 0
    locked: bool = False
    try_unlock_times: Int64 = 0
    last_lock_timestamp: Int64 = 0
    dropped: bool = field(default=False, metadata=wire("droped"))
    last_pull_timestamp: Int64 = 0
    last_consume_timestamp: Int64 = 0


@attrs.frozen
class PopProcessQueueInfo:
    """The messages of a queue that a popping consumer holds."""

    wait_ack_count: Int32 = 0
    dropped: bool = field(default=False, metadata=wire("droped"))
    last_pop_timestamp: Int64 = 0


@attrs.frozen
class ConsumeStatus:
    """Rates of a consumer in a topic; times in ms."""

    pull_rt: float = field(default=0.0, metadata=wire("pullRT"))
    pull_tps: float = field(default=0.0, metadata=wire("pullTPS"))
    consume_rt: float = field(default=0.0, metadata=wire("consumeRT"))
    consume_ok_tps: float = field(default=0.0, metadata=wire("consumeOKTPS"))
    consume_failed_tps: float = field(default=0.0, metadata=wire("consumeFailedTPS"))
    consume_failed_msgs: Int64 = 0


@attrs.frozen
class ConsumerRunningInfo:
    """Answer to GET_CONSUMER_RUNNING_INFO."""

    properties: dict[str, str] = field(factory=dict)
    subscription_set: list[SubscriptionData] = field(factory=list)
    mq_table: dict[MessageQueue, ProcessQueueInfo] = field(factory=dict)
    mq_pop_table: dict[MessageQueue, PopProcessQueueInfo] = field(factory=dict)
    status_table: dict[str, ConsumeStatus] = field(factory=dict)
    user_consumer_info: dict[str, str] = field(factory=dict)
    jstack: str | None = None


@attrs.frozen
class ConsumeMessageDirectlyResult:
    """Answer to CONSUME_MESSAGE_DIRECTLY."""

    order: bool = False
    auto_commit: bool = True
    consume_result: CMResult | None = None
    remark: str | None = None
    spent_time_mills: Int64 = 0


@attrs.frozen
class ConsumeByWho:
    """The groups that consumed a message and those that did not."""

    consumed_group: list[str] = field(factory=list)
    not_consumed_group: list[str] = field(factory=list)
    topic: str | None = None
    queue_id: Int32 = 0
    offset: Int64 = 0
