"""Topics that belong to the broker itself, and the prefixes of those it makes for groups (Apache: TopicValidator, MixAll)."""

from __future__ import annotations

RETRY_PREFIX = "%RETRY%"
DLQ_PREFIX = "%DLQ%"
LMQ_PREFIX = "%LMQ%"
SYSTEM_TOPIC_PREFIX = "rmq_sys_"
SYNC_BROKER_MEMBER_PREFIX = "rmq_sys_SYNC_BROKER_MEMBER_"
"""Before a broker's name; routes of these topics show the members as they are (TopicValidator)."""

AUTO_CREATE_TOPIC = "TBW102"
"""What new topics inherit from."""
BENCHMARK_TOPIC = "BenchmarkTest"
CHECK_MAX_TIME_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"
HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
OFFSET_MOVED_TOPIC = "OFFSET_MOVED_EVENT"
OP_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
SELF_TEST_TOPIC = "SELF_TEST_TOPIC"
TIMER_TOPIC = "rmq_sys_wheel_timer"

NOT_ALLOWED_SEND_TOPICS = frozenset(
    {OFFSET_MOVED_TOPIC, HALF_TOPIC, OP_TOPIC, SCHEDULE_TOPIC, SELF_TEST_TOPIC, CHECK_MAX_TIME_TOPIC}
)
SYSTEM_TOPICS = NOT_ALLOWED_SEND_TOPICS | {
    BENCHMARK_TOPIC,
    "CHECKPOINT_TOPIC",
    "RMQ_SYS_TRACE_TOPIC",
    AUTO_CREATE_TOPIC,
}


def is_system_topic(topic: str) -> bool:
    """Topics of the broker itself, which users neither create nor delete."""
    return topic in SYSTEM_TOPICS or topic.startswith(SYSTEM_TOPIC_PREFIX)


def is_lmq(topic: str) -> bool:
    """Light message queues, which have no topic configuration (MixAll.isLmq)."""
    return topic.startswith(LMQ_PREFIX)


def reply_topic(cluster: str) -> str:
    """Where answers to request messages are sent (MixAll.getReplyTopic)."""
    return f"{cluster}_REPLY_TOPIC"
