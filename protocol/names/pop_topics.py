"""Names that pop consumption makes of topics and groups (Apache: KeyBuilder, PopAckConstants).

    %RETRY%GroupA_TopicA                 messages of TopicA that GroupA did not acknowledge, version 1
    %RETRY%GroupA+TopicA                 the same, version 2 (enableRetryTopicV2): separated by what no name has
    rmq_sys_REVIVE_LOG_DefaultCluster    what was popped and acknowledged

Receipts name a topic of the three kinds by a mark: 0 as it is, 1 and 2 the retry topic of that version.
"""

from __future__ import annotations

from twisted_mq.protocol.names.system_topics import RETRY_PREFIX, REVIVE_TOPIC_PREFIX

ORIGIN_MARK, RETRY_MARK, RETRY_MARK_V2 = "0", "1", "2"
ORDER_REVIVE_QUEUE = 999
"""The number in place of the revive log's queue in receipts of ordered pops, which have no check points."""

_SEPARATORS = {RETRY_MARK: "_", RETRY_MARK_V2: "+"}


def revive_topic(cluster: str) -> str:
    """Return the revive log of a cluster."""
    return REVIVE_TOPIC_PREFIX + cluster


def pop_retry_topic(topic: str, group: str, version_2: bool) -> str:
    """Return the topic in which a topic's messages come back for a group."""
    return f"{RETRY_PREFIX}{group}{_SEPARATORS[RETRY_MARK_V2 if version_2 else RETRY_MARK]}{topic}"


def pop_retry_topics(topic: str, group: str) -> tuple[str, str]:
    """Return the retry topics of both versions."""
    return pop_retry_topic(topic, group, False), pop_retry_topic(topic, group, True)


def retry_mark(topic: str) -> str:
    """Return the mark of a topic, whatever its name means."""
    if not topic.startswith(RETRY_PREFIX):
        return ORIGIN_MARK
    return RETRY_MARK_V2 if _SEPARATORS[RETRY_MARK_V2] in topic else RETRY_MARK


def marked_topic(topic: str, group: str, mark: str) -> str:
    """Return the topic that a receipt's mark means. Raises ValueError for another mark."""
    if mark == ORIGIN_MARK:
        return topic
    if mark not in _SEPARATORS:
        raise ValueError(f"0, 1 or 2 is needed, got {mark!r}")
    return pop_retry_topic(topic, group, mark == RETRY_MARK_V2)


def origin_topic(topic: str, group: str) -> str:
    """Return the topic that messages of a group's retry topic come from; other topics are their own."""
    for retried in pop_retry_topics("", group):
        if topic.startswith(retried):
            return topic.removeprefix(retried)
    return topic
