"""Keeps retry and dead-letter topics of consumer groups, and decides when a message becomes a dead letter.

Apache: AbstractSendMessageProcessor.consumerSendMsgBack, SendMessageProcessor.handleRetryAndDLQ.
"""

from __future__ import annotations

from twisted_mq.broker.clients.subscription_group_manager import SubscriptionGroupManager
from twisted_mq.broker.topics.topic_config_manager import TopicConfigManager
from twisted_mq.protocol.bodies import SubscriptionGroupConfig
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.names.system_topics import DLQ_PREFIX
from twisted_mq.protocol.remarks import FAQ

DEAD_LETTER_QUEUES = 1
"""Apache: DLQ_NUMS_PER_GROUP."""
MAX_TIMES_SINCE_VERSION = 121
"""From version V3_4_9 on, a client itself says how often it wants a message again."""


def subscription_group(groups: SubscriptionGroupManager, name: str) -> SubscriptionGroupConfig:
    """Return the group's configuration. Raises BrokerError if the group does not exist and may not be created."""
    group = groups.find(name)
    if group is None:
        remark = f"subscription group not exist, {name} {FAQ}"
        raise BrokerError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, remark)
    return group


def most_times(group: SubscriptionGroupConfig, version: int, asked: int | None) -> int:
    """Return how often a message may be consumed again: as the client says, or the group's retryMaxTimes."""
    if asked is not None and version >= MAX_TIMES_SINCE_VERSION:
        return asked
    return group.retry_max_times


def dead_letter_topic(topics: TopicConfigManager, group: str) -> str:
    """Return %DLQ%group, created if it is missing."""
    topic = DLQ_PREFIX + group
    topics.create_for_group(topic, DEAD_LETTER_QUEUES)
    return topic
