"""Changes many topics or groups at once, and says which groups may read which topics: codes 18, 225, 353 (Apache:
AdminBrokerProcessor).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import attrs
from twisted.internet import defer

from twisted_mq.broker.clients.subscription_group_manager import SubscriptionGroupManager
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.processors.admin_topics import (
    DEFAULT_REMARK,
    check_group,
    check_message_type,
    check_queue_counts,
    check_topic,
    with_attributes,
)
from twisted_mq.broker.request_bodies import RequestBodies
from twisted_mq.broker.topics.topic_attributes import altered
from twisted_mq.broker.topics.topic_config_manager import TopicConfigManager
from twisted_mq.protocol.bodies import (
    CreateTopicListRequestBody,
    GroupForbidden,
    SubscriptionGroupConfig,
    SubscriptionGroupList,
    TopicConfig,
    encode_body,
)
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.headers import UpdateGroupForbiddenRequestHeader
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header
from twisted_mq.remoting.channel import Answer, Channel


class AdminListsParts(Protocol):
    """The parts of the broker that lists of topics and groups use."""

    options: BrokerOptions
    topics: TopicConfigManager
    groups: SubscriptionGroupManager
    registered: Callable[[], defer.Deferred[None]]
    bodies: RequestBodies


class AdminListsProcessor:
    """Checks everything first, then changes everything."""

    def __init__(self, broker: AdminListsParts) -> None:
        self._options = broker.options
        self._topics = broker.topics
        self._groups = broker.groups
        self._registered = broker.registered
        self._bodies = broker.bodies
        self.processors = {
            RequestCode.UPDATE_AND_CREATE_TOPIC_LIST: self.update_topics,
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: self.update_groups,
            RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN: self.group_forbidden,
        }

    def update_topics(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Create or alter topics, all or none. Unlike Apache's broker, go on after a topic that needs no change."""
        return self._bodies.read(
            CreateTopicListRequestBody,
            channel,
            command,
            lambda body: self._update_topics(command, body.topic_config_list),
        )

    def _update_topics(self, command: RemotingCommand, configs: list[TopicConfig]) -> Answer:
        for config in configs:
            check_topic(config.topic_name, self._options)
            check_queue_counts(config)
        topics = self._topics
        configs = [self._with_attributes(config) for config in configs]
        changed = [config for config in configs if topics.get(config.topic_name) != config]
        if changed:
            topics.update(changed)
        return self._registered().addCallback(lambda _: command.answer(remark=DEFAULT_REMARK))

    def _with_attributes(self, config: TopicConfig) -> TopicConfig:
        """Return the configuration with the topic's changed attributes. Given attributes are signed names (+name, -name),
        as for one topic.
        """
        known = self._topics.get(config.topic_name)
        check_message_type(config.attributes, self._options)
        return attrs.evolve(config, attributes=altered(known.attributes if known else None, config.attributes))

    def update_groups(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Create or alter groups, all or none."""
        return self._bodies.read(
            SubscriptionGroupList, channel, command, lambda body: self._update_groups(command, body.group_config_list)
        )

    def _update_groups(self, command: RemotingCommand, configs: list[SubscriptionGroupConfig]) -> Answer:
        for config in configs:
            check_group(config)
        for config in [with_attributes(config, self._groups) for config in configs]:
            self._groups.update(config)
        return command.answer()

    def group_forbidden(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Report whether a group may pull from a topic. If `readable` is given, set that first."""
        header = decode_header(UpdateGroupForbiddenRequestHeader, command)
        groups = self._groups
        if header.readable is not None:
            groups.forbid_reading(header.group, header.topic, forbidden=not header.readable)
        body = GroupForbidden(
            topic=header.topic, group=header.group, readable=not groups.may_not_read(header.group, header.topic)
        )
        return command.answer(remark="", body=encode_body(body))
