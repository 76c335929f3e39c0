"""Creates and changes static topics for operators: code 513 (UPDATE_AND_CREATE_STATIC_TOPIC). Apache: AdminBrokerProcessor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from twisted.internet import defer

from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.processors.admin_topics import check_topic, requested_config
from twisted_mq.broker.request_bodies import RequestBodies
from twisted_mq.broker.topics.static_topics import StaticTopics
from twisted_mq.broker.topics.topic_config_manager import TopicConfigManager
from twisted_mq.protocol.bodies import TopicQueueMappingDetail
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import CreateTopicRequestHeader
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header
from twisted_mq.remoting.channel import Answer, Channel


class AdminStaticTopicsParts(Protocol):
    """The parts of the broker that static topics use."""

    options: BrokerOptions
    topics: TopicConfigManager
    static_topics: StaticTopics
    registered: Callable[[], defer.Deferred[None]]
    bodies: RequestBodies


class AdminStaticTopicsProcessor:
    """Creates static topics and moves their logical queues."""

    def __init__(self, broker: AdminStaticTopicsParts) -> None:
        self._options = broker.options
        self._topics = broker.topics
        self._static = broker.static_topics
        self._registered = broker.registered
        self._bodies = broker.bodies
        self.processors = {RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC: self.update}

    def update(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Apply a mapping and the topic's queues. Answer when both are on disk and the name servers know them."""
        header = decode_header(CreateTopicRequestHeader, command)
        return self._bodies.read(
            TopicQueueMappingDetail, channel, command, lambda mapping: self._update(command, header, mapping)
        )

    def _update(
        self, command: RemotingCommand, header: CreateTopicRequestHeader, mapping: TopicQueueMappingDetail
    ) -> Answer:
        check_topic(header.topic, self._options)
        if mapping.topic != header.topic:
            remark = f"The topic name is not match for broker  {mapping.topic} != {header.topic}"
            raise BrokerError(ResponseCode.INVALID_PARAMETER, remark)
        known = self._topics.get(header.topic)
        config = requested_config(header, {} if known is None else known.attributes)
        try:
            self._static.update(mapping, force=bool(header.force))
        except ValueError as error:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, str(error)) from error
        self._topics.update([config])
        return self._registered().addCallback(lambda _: command.answer())
