"""Topics and groups that belong to the broker itself, and the prefixes of topics that it makes for groups.

Apache: TopicValidator, MixAll, TimerMessageStore, PopAckConstants, TransactionalMessageUtil.
"""

from __future__ import annotations

RETRY_PREFIX = "%RETRY%"
DLQ_PREFIX = "%DLQ%"
LMQ_PREFIX = "%LMQ%"
SYSTEM_TOPIC_PREFIX = "rmq_sys_"
REVIVE_TOPIC_PREFIX = "rmq_sys_REVIVE_LOG_"
"""Before a cluster's name; what was popped and acknowledged (PopAckConstants)."""
REPLY_TOPIC_SUFFIX = "_REPLY_TOPIC"
"""Behind a cluster's name (MixAll.REPLY_TOPIC_POSTFIX)."""
SYNC_BROKER_MEMBER_PREFIX = "rmq_sys_SYNC_BROKER_MEMBER_"
"""Before a broker's name; routes of these topics show the members as they are (TopicValidator)."""

AUTO_CREATE_TOPIC = "TBW102"
"""The topic from which new topics inherit."""
BENCHMARK_TOPIC = "BenchmarkTest"
CHECK_MAX_TIME_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"
HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
OFFSET_MOVED_TOPIC = "OFFSET_MOVED_EVENT"
OP_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
SELF_TEST_TOPIC = "SELF_TEST_TOPIC"
TIMER_TOPIC = "rmq_sys_wheel_timer"
TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"

NOT_ALLOWED_SEND_TOPICS = frozenset(
    {OFFSET_MOVED_TOPIC, HALF_TOPIC, OP_TOPIC, SCHEDULE_TOPIC, SELF_TEST_TOPIC, CHECK_MAX_TIME_TOPIC}
)
"""The topics to which 5.3.3's broker refuses sends, and its clients do not send."""
SYSTEM_TOPICS = NOT_ALLOWED_SEND_TOPICS | {
    BENCHMARK_TOPIC,
    "CHECKPOINT_TOPIC",
    TRACE_TOPIC,
    AUTO_CREATE_TOPIC,
}


REVIVE_GROUP = "CID_RMQ_SYS_REVIVE_GROUP"
"""The group under which brokers note how far they read revive logs."""
TRANSACTION_GROUP = "CID_RMQ_SYS_TRANS"
"""The group whose offsets on half messages and operations say how far the broker has checked."""
TOOLS_GROUPS = frozenset(
    {
        "DEFAULT_CONSUMER", "TOOLS_CONSUMER", "SCHEDULE_CONSUMER", "FILTERSRV_CONSUMER", "__MONITOR_CONSUMER",
        "SELF_TEST_C_GROUP", "CID_ONS-HTTP-PROXY", "CID_ONSAPI_PERMISSION", "CID_ONSAPI_OWNER", "CID_ONSAPI_PULL",
        "CID_RMQ_SYS_TRANS",
    }
)  # fmt: skip
"""Groups of servers and tools (MixAll.isSysConsumerGroupPullMessage); all that begin with CID_RMQ_SYS_ are, too."""

BROKERS_GROUPS = frozenset({REVIVE_GROUP, TRANSACTION_GROUP})
"""Their offsets say what the broker itself has done; no client reads or moves them."""


def is_brokers_own(topic: str) -> bool:
    """Return True for topics that only brokers write; 5.3.3 accepts sends to its timer's and its revive log's all the same."""
    return topic in NOT_ALLOWED_SEND_TOPICS or topic == TIMER_TOPIC or topic.startswith(REVIVE_TOPIC_PREFIX)


def is_system_topic(topic: str) -> bool:
    """Return True for topics of the broker itself, which users neither create nor delete."""
    return topic in SYSTEM_TOPICS or topic.startswith(SYSTEM_TOPIC_PREFIX)


def is_lmq(topic: str) -> bool:
    """Return True for light message queues, which have no topic configuration (MixAll.isLmq)."""
    return topic.startswith(LMQ_PREFIX)


def reply_topic(cluster: str) -> str:
    """Return the topic of the answers to request messages (MixAll.getReplyTopic)."""
    return f"{cluster}{REPLY_TOPIC_SUFFIX}"
