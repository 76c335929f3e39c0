"""Kinds of topics: user topics first, system topics last."""

from __future__ import annotations

import enum

from pyspark.sql import Column

from twisted_mq.protocol.names.system_topics import (
    DLQ_PREFIX,
    REPLY_TOPIC_SUFFIX,
    RETRY_PREFIX,
    SYSTEM_TOPIC_PREFIX,
    SYSTEM_TOPICS,
)


class TopicKind(enum.IntEnum):
    """Kinds of topics, in the order of reports."""

    USER = 0
    RETRY = 1
    DEAD_LETTER = 2
    SYSTEM = 3

    @property
    def words(self) -> str:
        return self.name.lower().replace("_", " ")


_PREFIXES = {
    RETRY_PREFIX: TopicKind.RETRY,
    DLQ_PREFIX: TopicKind.DEAD_LETTER,
    SYSTEM_TOPIC_PREFIX: TopicKind.SYSTEM,
}
"""Apache: MixAll.RETRY_GROUP_TOPIC_PREFIX, DLQ_GROUP_TOPIC_PREFIX, TopicValidator.SYSTEM_TOPIC_PREFIX."""


def topic_kind(topic: str) -> TopicKind:
    """Return the kind of a topic."""
    if topic in SYSTEM_TOPICS:
        return TopicKind.SYSTEM
    for prefix, kind in _PREFIXES.items():
        if topic.startswith(prefix):
            return kind
    return TopicKind.USER


def report_order(topic: str) -> tuple[TopicKind, str]:
    """Sorts topics for a report."""
    return topic_kind(topic), topic


def is_brokers(topic: Column) -> Column:
    """Return a condition for system topics, including those of timer, pop and replies of the cluster."""
    prefixed = topic.startswith(SYSTEM_TOPIC_PREFIX) | topic.endswith(REPLY_TOPIC_SUFFIX)
    return topic.isin(*sorted(SYSTEM_TOPICS)) | prefixed
