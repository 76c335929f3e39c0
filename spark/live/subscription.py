"""Queues to read now: those of the given topics, or of all topics that match a pattern."""

from __future__ import annotations

from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.names.system_topics import DLQ_PREFIX, RETRY_PREFIX, is_brokers_own, is_system_topic
from twisted_mq.spark.live.cluster import Cluster
from twisted_mq.spark.live.errors import TopicUnknown
from twisted_mq.spark.live.options import LiveOptions

_OF_GROUPS = (RETRY_PREFIX, DLQ_PREFIX)


def subscribed_queues(cluster: Cluster, options: LiveOptions, *, missing_ok: bool = False) -> list[MessageQueue]:
    """Return the queues, sorted. Raises TopicUnknown, unless a topic may be missing because a stream waits for it."""
    queues: list[MessageQueue] = []
    for topic in _topics(cluster, options):
        try:
            queues += cluster.readable_queues(topic)
        except TopicUnknown:
            if not missing_ok and options.pattern is None:
                raise
    return sorted(queues)


def _topics(cluster: Cluster, options: LiveOptions) -> list[str]:
    if options.pattern is None:
        return list(options.topics)
    of_groups = options.pattern.pattern.startswith("%")
    return [
        topic
        for topic in cluster.topics()
        if options.pattern.fullmatch(topic)
        and not is_system_topic(topic)
        and not is_brokers_own(topic)
        and (of_groups or not topic.startswith(_OF_GROUPS))
    ]
