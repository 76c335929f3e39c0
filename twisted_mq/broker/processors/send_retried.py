"""Takes sends to retry topics: a message that was retried too often becomes a dead letter (Apache:
SendMessageProcessor.handleRetryAndDLQ).

So does a message that an ordered group gives back, because waiting would break the group's order.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from twisted_mq.broker.clients.rebalance_lock import RebalanceLockManager
from twisted_mq.broker.clients.subscription_group_manager import SubscriptionGroupManager
from twisted_mq.broker.processors.send_checks import SendHeader, SendTarget
from twisted_mq.broker.topics.dead_letters import dead_letter_topic, most_times, subscription_group
from twisted_mq.broker.topics.topic_config_manager import TopicConfigManager
from twisted_mq.protocol.names.system_topics import RETRY_PREFIX
from twisted_mq.protocol.text.properties import PROPERTY_DELAY_TIME_LEVEL, PROPERTY_SEPARATOR, delete_property

_NEVER = f"{PROPERTY_DELAY_TIME_LEVEL}\x01-1\x02"


@attrs.frozen(eq=False)
class RetriedSends:
    """Takes the retried sends of one broker."""

    topics: TopicConfigManager
    groups: SubscriptionGroupManager
    locks: RebalanceLockManager
    now_ms: Callable[[], int]

    def dead_letters(self, header: SendHeader, version: int) -> SendTarget | None:
        """Return the group's dead letter topic, created if missing; None if the message may be retried.

        `version` is the client's. Raises BrokerError for an unknown group.
        """
        name = header.topic[len(RETRY_PREFIX) :]
        group = subscription_group(self.groups, name)
        tried_too_often = (header.reconsume_times or 0) > most_times(group, version, header.max_reconsume_times)
        if not tried_too_often and self.locks.is_all_expired(name, self.now_ms()):
            return None
        return SendTarget(dead_letter_topic(self.topics, name))


def undelayed(text: str) -> str:
    """Return the properties of a dead letter, without those that make it wait."""
    rest = delete_property(text, PROPERTY_DELAY_TIME_LEVEL)
    end = "" if not rest or rest.endswith(PROPERTY_SEPARATOR) else PROPERTY_SEPARATOR
    return f"{rest}{end}{_NEVER}"
