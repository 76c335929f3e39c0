"""Checks pulls and returns their group, topic and selection, in Apache's order and with its codes
(PullMessageProcessor.processRequest).
"""

from __future__ import annotations

from typing import Protocol

from twisted_mq.broker.clients.consumer_manager import ConsumerManager
from twisted_mq.broker.clients.subscription_group_manager import SubscriptionGroupManager
from twisted_mq.broker.filter.selection import (
    EVERY_MESSAGE,
    EVERYTHING,
    FilterParts,
    Selection,
    group_selection,
    own_selection,
)
from twisted_mq.broker.topics.topic_config_manager import TopicConfigManager
from twisted_mq.protocol.bodies import SubscriptionGroupConfig, TopicConfig
from twisted_mq.protocol.bodies.types import ACTIVELY, BROADCASTING
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.flags import PERM_READ
from twisted_mq.protocol.headers import PullMessageRequestHeader
from twisted_mq.protocol.names.system_topics import BROKERS_GROUPS, TOOLS_GROUPS
from twisted_mq.protocol.remarks import FAQ
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.channel import Channel

FLAG_SUBSCRIPTION = 4
_LITE_PULL = int(RequestCode.LITE_PULL_MESSAGE)
BROKER_FORBIDDEN, GROUP_FORBIDDEN, TOPIC_FORBIDDEN, BROADCASTING_FORBIDDEN, SUBSCRIPTION_FORBIDDEN = 1, 2, 3, 4, 5


class CheckedParts(FilterParts, Protocol):
    """The parts of the broker that the checks of pulls use."""

    topics: TopicConfigManager
    groups: SubscriptionGroupManager
    consumers: ConsumerManager
    advertised_ip: str


def _forbidden(remark: str, forbidden_type: int) -> BrokerError:
    """Return the refusal of a pull, with the field that says what forbids it."""
    return BrokerError(ResponseCode.NO_PERMISSION, remark, {"forbiddenType": str(forbidden_type)})


class PullChecks:
    """Checks the pulls of one broker."""

    def __init__(self, broker: CheckedParts) -> None:
        self._broker = broker

    def check(
        self, channel: Channel, command: RemotingCommand, header: PullMessageRequestHeader
    ) -> tuple[SubscriptionGroupConfig, TopicConfig]:
        """Return the group that pulls and the topic that it pulls from. Raises BrokerError."""
        broker, options = self._broker, self._broker.options
        if not options.broker_permission & PERM_READ:
            raise _forbidden(f"the broker[{broker.advertised_ip}] pulling message is forbidden", BROKER_FORBIDDEN)
        if command.code == _LITE_PULL and not options.lite_pull_message_enable:
            raise _forbidden(
                f"the broker[{broker.advertised_ip}] for lite pull consumer is forbidden", BROKER_FORBIDDEN
            )
        group = broker.groups.groups.get(header.consumer_group)
        if group is None or header.consumer_group in BROKERS_GROUPS:
            group = broker.groups.find(header.consumer_group, channel.share_address)
        if group is None:
            raise BrokerError(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
                f"subscription group [{header.consumer_group}] does not exist, {FAQ}",
            )
        if not group.consume_enable:
            raise _forbidden(f"subscription group no permission, {header.consumer_group}", GROUP_FORBIDDEN)
        topic = broker.topics.get(header.topic)
        if topic is None:
            raise BrokerError(
                ResponseCode.TOPIC_NOT_EXIST, f"topic[{header.topic}] not exist, apply first please! {FAQ}"
            )
        if options.reject_pull_consumer_enable:
            self._refuse_puller(channel, header.consumer_group)
        if not topic.perm & PERM_READ:
            raise _forbidden(f"the topic[{header.topic}] pulling message is forbidden", TOPIC_FORBIDDEN)
        if not 0 <= header.queue_id < topic.read_queue_nums:
            raise BrokerError(
                ResponseCode.INVALID_PARAMETER,
                f"queueId[{header.queue_id}] is illegal, topic:[{header.topic}]"
                f" topicConfig.readQueueNums:[{topic.read_queue_nums}] consumer:[/{channel.address}]",
            )
        return group, topic

    def _refuse_puller(self, channel: Channel, group: str) -> None:
        """Refuse a client that is not a member of a group of push consumers. Raises BrokerError."""
        info = self._broker.consumers.groups.get(group)
        is_pushed = info is not None and (info.consume_type != ACTIVELY or channel in info.clients)
        if not is_pushed and group not in TOOLS_GROUPS and not group.startswith("CID_RMQ_SYS_"):
            raise BrokerError(
                ResponseCode.SUBSCRIPTION_NOT_EXIST,
                f"the consumer's group info not exist, or the pull consumer is rejected by server.{FAQ}",
            )

    def selection(self, header: PullMessageRequestHeader, group: SubscriptionGroupConfig) -> Selection:
        """Return the selection by the subscription in the pull, or else by the group's heartbeats. Raises BrokerError."""
        if header.sys_flag & FLAG_SUBSCRIPTION:
            if (header.subscription, header.expression_type) in EVERY_MESSAGE:
                return EVERYTHING
            return own_selection(self._broker, header)
        info = self._broker.consumers.groups.get(header.consumer_group)
        if info is None:
            raise BrokerError(ResponseCode.SUBSCRIPTION_NOT_EXIST, f"the consumer's group info not exist{FAQ}")
        if info.message_model == BROADCASTING and not group.consume_broadcast_enable:
            raise _forbidden(
                f"the consumer group[{header.consumer_group}] can not consume by broadcast way", BROADCASTING_FORBIDDEN
            )
        if self._broker.groups.may_not_read(header.consumer_group, header.topic):
            raise _forbidden(
                f"the consumer group[{header.consumer_group}] is forbidden for topic[{header.topic}]",
                SUBSCRIPTION_FORBIDDEN,
            )
        subscription = info.subscriptions.get(header.topic)
        if subscription is None:
            raise BrokerError(ResponseCode.SUBSCRIPTION_NOT_EXIST, f"the consumer's subscription not exist{FAQ}")
        if subscription.sub_version < header.sub_version:
            raise BrokerError(ResponseCode.SUBSCRIPTION_NOT_LATEST, "the consumer's subscription not latest")
        return group_selection(self._broker, header, subscription)
