"""Kinds of topics: users' own first, what the broker makes for itself last."""

from __future__ import annotations

import enum

SYSTEM_TOPICS = frozenset(
    {
        "BenchmarkTest",
        "CHECKPOINT_TOPIC",
        "OFFSET_MOVED_EVENT",
        "RMQ_SYS_TRACE_TOPIC",
        "RMQ_SYS_TRANS_HALF_TOPIC",
        "RMQ_SYS_TRANS_OP_HALF_TOPIC",
        "SCHEDULE_TOPIC_XXXX",
        "SELF_TEST_TOPIC",
        "TBW102",
        "TRANS_CHECK_MAX_TIME_TOPIC",
    }
)
"""Apache: TopicValidator.SYSTEM_TOPIC_SET."""


class TopicKind(enum.IntEnum):
    """In the order of reports."""

    USER = 0
    RETRY = 1
    DEAD_LETTER = 2
    SYSTEM = 3

    @property
    def words(self) -> str:
        return self.name.lower().replace("_", " ")


_PREFIXES = {
    "%RETRY%": TopicKind.RETRY,
    "%DLQ%": TopicKind.DEAD_LETTER,
    "rmq_sys_": TopicKind.SYSTEM,
}
"""Apache: MixAll.RETRY_GROUP_TOPIC_PREFIX, DLQ_GROUP_TOPIC_PREFIX, TopicValidator.SYSTEM_TOPIC_PREFIX."""


def topic_kind(topic: str) -> TopicKind:
    """What a topic is for."""
    if topic in SYSTEM_TOPICS:
        return TopicKind.SYSTEM
    for prefix, kind in _PREFIXES.items():
        if topic.startswith(prefix):
            return kind
    return TopicKind.USER


def report_order(topic: str) -> tuple[TopicKind, str]:
    """Sorts topics for a report."""
    return topic_kind(topic), topic
