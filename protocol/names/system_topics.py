"""Topics that belong to the broker itself (Apache: TopicValidator, MixAll)."""

from __future__ import annotations

SYSTEM_TOPIC_PREFIX = "rmq_sys_"
LMQ_PREFIX = "%LMQ%"

NOT_ALLOWED_SEND_TOPICS = frozenset(
    {
        "OFFSET_MOVED_EVENT",
        "RMQ_SYS_TRANS_HALF_TOPIC",
        "RMQ_SYS_TRANS_OP_HALF_TOPIC",
        "SCHEDULE_TOPIC_XXXX",
        "SELF_TEST_TOPIC",
        "TRANS_CHECK_MAX_TIME_TOPIC",
    }
)
SYSTEM_TOPICS = NOT_ALLOWED_SEND_TOPICS | {"BenchmarkTest", "CHECKPOINT_TOPIC", "RMQ_SYS_TRACE_TOPIC", "TBW102"}


def is_system_topic(topic: str) -> bool:
    """Topics of the broker itself, which users neither create nor delete."""
    return topic in SYSTEM_TOPICS or topic.startswith(SYSTEM_TOPIC_PREFIX)


def is_lmq(topic: str) -> bool:
    """Light message queues, which have no topic configuration (MixAll.isLmq)."""
    return topic.startswith(LMQ_PREFIX)
