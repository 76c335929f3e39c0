"""Registers and unregisters clients: heartbeat (34), unregister (35), check of a subscription (46). Apache:
ClientManageProcessor.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from twisted.internet.defer import Deferred

from twisted_mq.broker.clients.client_names import MEMBER_BYTES, check_names, size_of
from twisted_mq.broker.clients.consumer_manager import ConsumerManager
from twisted_mq.broker.clients.producer_manager import (
    GROUPS_OF_SLICE,
    SLICE_MS,
    ClientChannelInfo,
    ProducerManager,
    client_lane,
)
from twisted_mq.broker.clients.subscription_group_manager import SubscriptionGroupManager
from twisted_mq.broker.filter.consumer_filter_data import compile_filter
from twisted_mq.broker.filter.consumer_filter_manager import CompileRoom, ConsumerFilterManager
from twisted_mq.broker.filter.errors import ExpressionError
from twisted_mq.broker.filter.selection import check_served
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.request_bodies import RequestBodies, short_body
from twisted_mq.broker.statistics.broker_statistics import BrokerStatistics
from twisted_mq.broker.topics.topic_config_manager import TopicConfigManager
from twisted_mq.clocks import ClockSteps
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import CheckClientRequestBody, ConsumerData, HeartbeatData, TopicConfig
from twisted_mq.protocol.bodies.types import ACTIVELY
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.flags import TopicSysFlag
from twisted_mq.protocol.headers import UnregisterClientRequestHeader
from twisted_mq.protocol.messages.subscription import is_tag_type
from twisted_mq.protocol.names.validation import retry_topic
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header
from twisted_mq.protocol.wire.signature import ACCESS_KEY
from twisted_mq.remoting.channel import Answer, Channel
from twisted_mq.turns import Turns, Work


class ClientManageParts(Protocol):
    """The parts of the broker that clients that come and go use."""

    options: BrokerOptions
    now_ms: Callable[[], int]
    steps: ClockSteps
    topics: TopicConfigManager
    groups: SubscriptionGroupManager
    consumers: ConsumerManager
    producers: ProducerManager
    filters: ConsumerFilterManager
    statistics: BrokerStatistics
    turns: Turns
    bodies: RequestBodies


class ClientManageProcessor:
    """Keeps the tables of producers and consumers."""

    log = Logger()

    def __init__(self, broker: ClientManageParts) -> None:
        self._turns = broker.turns
        self._bodies = broker.bodies
        self._options = broker.options
        self._now_ms = broker.now_ms
        self._latest_ms = broker.steps.latest_ms
        self._topics = broker.topics
        self._groups = broker.groups
        self._consumers = broker.consumers
        self._producers = broker.producers
        self._filters = broker.filters
        self._statistics = broker.statistics
        self._fingerprints: dict[str, int] = {}
        self.processors = {
            RequestCode.HEART_BEAT: self.heartbeat,
            RequestCode.UNREGISTER_CLIENT: self.unregister,
            RequestCode.CHECK_CLIENT_CONFIG: self.check_client_config,
        }

    def heartbeat(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Register the client's producers and consumers; a group's first heartbeat creates its retry topic.

        Raises BrokerError for an expression that cannot be parsed, after everything else is registered. Apache only logs it.
        """
        return self._bodies.read(HeartbeatData, channel, command, lambda data: self._heartbeat(channel, command, data))

    def _heartbeat(self, channel: Channel, command: RemotingCommand, data: HeartbeatData) -> Answer:
        account = command.ext_fields.get(ACCESS_KEY)
        check_names(data)
        client = ClientChannelInfo(channel, data.client_id, command.language, command.version, self._now_ms(), account)
        answer: RemotingCommand | Deferred[RemotingCommand]
        answer = self._turns.run(client_lane(channel), self._registered(command, data, client))
        return answer

    def _registered(
        self, command: RemotingCommand, data: HeartbeatData, client: ClientChannelInfo
    ) -> Work[RemotingCommand]:
        """Return the answer once everything is registered, unless the client's connection is lost before."""
        fingerprint, slice_end = data.heartbeat_fingerprint or 0, self._slice_end()
        changed, refused, room = fingerprint == 0, dict[str, ExpressionError](), CompileRoom()
        yield from self._make_retry_topics(data.consumer_data_set, client.channel.share_address)
        for number, consumer in enumerate(data.consumer_data_set, 1):
            if not client.channel.connected_now:
                return command.answer()
            known = self._fingerprints.get(consumer.group_name)
            changed |= known is not None and known != fingerprint
            client.channel.remember((consumer.group_name, True), size_of(consumer, data.client_id))
            with self._counted("CONSUMER"):
                refused |= self._register_consumer(
                    consumer, client, room, without_sub=bool(fingerprint and data.without_sub)
                )
            if consumer.group_name in self._groups.groups:
                self._fingerprints[consumer.group_name] = fingerprint
            if not number % GROUPS_OF_SLICE or self._now_ms() >= slice_end:
                yield None
                slice_end = self._slice_end()
        yield from self._register_producers(data, client)
        if refused:
            remark = "; ".join(f"topic {topic}: {error}" for topic, error in refused.items())
            raise BrokerError(ResponseCode.SUBSCRIPTION_PARSE_FAILED, remark)
        fields = {"IS_SUPPORT_HEART_BEAT_V2": "true", "IS_SUB_CHANGE": "true" if changed else "false"}
        return command.answer(ResponseCode.SUCCESS, None, fields)

    def _slice_end(self) -> int:
        return self._now_ms() + SLICE_MS

    def _register_producers(self, data: HeartbeatData, client: ClientChannelInfo) -> Work[None]:
        for number, producer in enumerate(data.producer_data_set, 1):
            if not client.channel.connected_now:
                return
            client.channel.remember(
                (producer.group_name, False), MEMBER_BYTES + len(data.client_id) + len(producer.group_name)
            )
            with self._counted("PRODUCER"):
                self._producers.register(producer.group_name, client)
            if not number % GROUPS_OF_SLICE:
                yield None

    @contextlib.contextmanager
    def _counted(self, kind: str) -> Iterator[None]:
        """Count a registration and the time it takes."""
        began = self._now_ms()
        yield
        self._statistics.registrations[kind].add(1, 0, self._now_ms() - began)

    def _make_retry_topics(self, consumers: Iterable[ConsumerData], address: str) -> Work[None]:
        """Create the groups' missing retry topics together: with one write of the table and one registration."""
        wanted = []
        for number, data in enumerate(consumers, 1):
            config = self._retry_topic(data, address)
            if config is not None:
                wanted.append(config)
            if not number % GROUPS_OF_SLICE:
                yield None
        missing = {one.topic_name: one for one in wanted if one is not self._topics.get(one.topic_name)}
        if missing:
            self._topics.update(missing.values())

    def _retry_topic(self, data: ConsumerData, address: str) -> TopicConfig | None:
        group = self._groups.find(data.group_name, address)
        if group is None:
            return None
        configs = [self._topics.get(one.topic) for one in data.subscription_data_set]
        order = any(config is not None and config.order for config in configs)
        sys_flag = TopicSysFlag.FLAG_UNIT_SUB if data.unit_mode else 0
        return self._topics.for_group(retry_topic(data.group_name), group.retry_queue_nums, sys_flag, order)

    def _register_consumer(
        self, data: ConsumerData, client: ClientChannelInfo, room: CompileRoom, *, without_sub: bool
    ) -> dict[str, ExpressionError]:
        """Register a consumer. Returns the topics whose expression is refused, with the reason."""
        if self._options.reject_pull_consumer_enable and data.consume_type == ACTIVELY:
            return {}
        group = self._groups.find(data.group_name, client.channel.share_address)
        if group is None:
            self.log.warn("heartbeat of an unknown group skipped: group={g}", g=data.group_name)
            return {}
        notify = group.notify_consumer_ids_changed_enable
        self._consumers.register(data, client, notify=notify, without_sub=without_sub)
        if without_sub or not self._options.enable_property_filter:
            return {}
        subscriptions, address = data.subscription_data_set, client.channel.share_address
        return self._filters.register(data.group_name, subscriptions, self._latest_ms(), room, address)

    def unregister(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Remove a client from a producer or consumer group."""
        header = decode_header(UnregisterClientRequestHeader, command)
        if header.producer_group is not None:
            self._producers.unregister(header.producer_group, channel)
            channel.remember((header.producer_group, False), 0)
        if header.consumer_group is not None:
            group = self._groups.find(header.consumer_group)
            notify = group is None or group.notify_consumer_ids_changed_enable
            self._consumers.unregister(header.consumer_group, channel, notify=notify)
            channel.remember((header.consumer_group, True), 0)
        return command.answer()

    def check_client_config(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Check that this broker can filter as a subscription asks for. Raises BrokerError."""
        body = short_body(CheckClientRequestBody, command)
        subscription = body.subscription_data
        if subscription is None or is_tag_type(subscription.expression_type):
            return command.answer()
        check_served(self._options, subscription.expression_type)
        try:
            compile_filter(subscription.expression_type, subscription.sub_string)
        except ExpressionError as error:
            raise BrokerError(ResponseCode.SUBSCRIPTION_PARSE_FAILED, str(error)) from error
        return command.answer()
