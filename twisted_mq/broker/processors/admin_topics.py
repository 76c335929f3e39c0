"""Changes and shows topics and groups for operators: codes 17, 21, 200, 201, 202, 207, 215, 305, 351, 352.

Apache: the parts of AdminBrokerProcessor on topic and group configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Protocol

import attrs
from twisted.internet import defer

from twisted_mq.broker.clients.consumer_offset_manager import ConsumerOffsetManager
from twisted_mq.broker.clients.subscription_group_manager import SubscriptionGroupManager, check_users_group
from twisted_mq.broker.long_answers import LongAnswers, check_rows, copied, in_slices
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.pop.pop_service import PopService
from twisted_mq.broker.request_bodies import short_body
from twisted_mq.broker.statistics.broker_statistics import BrokerStatistics
from twisted_mq.broker.topics.static_topics import StaticTopics
from twisted_mq.broker.topics.topic_attributes import GROUP_ATTRIBUTES, MESSAGE_TYPE, altered, parse_changes
from twisted_mq.broker.topics.topic_config_manager import MOST_QUEUES, TopicConfigManager
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import (
    MessageQueue,
    SubscriptionGroupConfig,
    SubscriptionGroupWrapper,
    TopicConfig,
    TopicConfigAndMappingSerializeWrapper,
    TopicConfigAndQueueMapping,
    TopicList,
    TopicOffset,
    TopicStatsTable,
    encode_body,
    encode_row,
    encode_with_rows,
)
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import (
    CreateTopicRequestHeader,
    DeleteSubscriptionGroupRequestHeader,
    DeleteTopicRequestHeader,
    GetSubscriptionGroupConfigRequestHeader,
    GetTopicConfigRequestHeader,
    GetTopicStatsInfoRequestHeader,
)
from twisted_mq.protocol.names.pop_topics import pop_retry_topics
from twisted_mq.protocol.names.system_topics import SYSTEM_TOPICS, is_system_topic
from twisted_mq.protocol.names.validation import group_fault, topic_fault
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header
from twisted_mq.remoting.channel import Answer, Channel
from twisted_mq.storage.interfaces import IMessageStore
from twisted_mq.storage.tables.kept_rows import KeptRows
from twisted_mq.turns import Work, then

GROUP_BYTES = 300
"""The least that a group takes in a table of all."""
DEFAULT_REMARK = "not set any response code"
"""The remark of a successful topic update, as Apache's broker leaves it."""


class AdminTopicsParts(Protocol):
    """The parts of the broker that changes of topics and groups use."""

    options: BrokerOptions
    store: IMessageStore
    topics: TopicConfigManager
    groups: SubscriptionGroupManager
    offsets: ConsumerOffsetManager
    pop: PopService
    static_topics: StaticTopics
    statistics: BrokerStatistics
    registered: Callable[[], defer.Deferred[None]]
    long_answers: LongAnswers


def _with_kept_rows(member: str) -> Callable[[attrs.AttrsInstance], bytes]:
    """Return an encoder of bodies that encodes again only those rows of their table `member` that have changed.

    A slave asks for the whole tables every few seconds; 5,000 groups take 0.2 s.
    """
    rows = KeptRows(encode_row)
    return lambda body: encode_with_rows(body, member, rows.texts(getattr(body, member)))


class AdminTopicsProcessor:
    """Creates, alters, lists and deletes topics and groups."""

    log = Logger()

    def __init__(self, broker: AdminTopicsParts) -> None:
        self._options = broker.options
        self._store = broker.store
        self._topics = broker.topics
        self._groups = broker.groups
        self._offsets = broker.offsets
        self._pop = broker.pop
        self._static = broker.static_topics
        self._statistics = broker.statistics
        self._registered = broker.registered
        self._long = broker.long_answers
        self._encode_topics = _with_kept_rows("topic_config_table")
        self._encode_groups = _with_kept_rows("subscription_group_table")
        self.processors = {
            RequestCode.UPDATE_AND_CREATE_TOPIC: self.update_topic,
            RequestCode.DELETE_TOPIC_IN_BROKER: self.delete_topic,
            RequestCode.GET_ALL_TOPIC_CONFIG: self.all_topics,
            RequestCode.GET_TOPIC_CONFIG: self.topic,
            RequestCode.GET_TOPIC_STATS_INFO: self.topic_stats,
            RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: self.system_topics,
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: self.update_group,
            RequestCode.DELETE_SUBSCRIPTIONGROUP: self.delete_group,
            RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: self.all_groups,
            RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG: self.group,
        }

    def update_topic(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Create or alter a topic and register it. Answer when the name servers know it."""
        header = decode_header(CreateTopicRequestHeader, command)
        check_topic(header.topic, self._options)
        changes = parse_changes(header.attributes or "")
        check_message_type(changes, self._options)
        known = self._topics.get(header.topic)
        attributes = altered(known.attributes if known is not None else None, changes)
        config = requested_config(header, attributes)
        if known != config:
            self._topics.update([config])
        return self._registered().addCallback(lambda _: command.answer(remark=DEFAULT_REMARK))

    def delete_topic(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Delete a topic and its queues. With clearRetryTopicWhenDeleteTopic, also delete the retry topics that pops of
        its groups made.
        """
        topic = decode_header(DeleteTopicRequestHeader, command).topic
        if not topic or not topic.strip():
            raise BrokerError(ResponseCode.INVALID_PARAMETER, "The specified topic is blank.")
        if is_system_topic(topic):
            raise BrokerError(ResponseCode.INVALID_PARAMETER, f"The topic[{topic}] is conflict with system topic.")
        groups = self._offsets.groups_of(topic) if self._options.clear_retry_topic_when_delete_topic else []
        for name in (topic, *(retried for group in groups for retried in pop_retry_topics(topic, group))):
            self._delete(name, channel)
        return then(self._long.turns.run("files", files_deleted(self._store)), lambda _: command.answer())

    def _delete(self, topic: str, channel: Channel) -> None:
        if self._topics.delete(topic):
            self.log.info("topic deleted with its queues: topic={t} peer={p}", t=topic, p=channel.address)
            self._static.delete(topic)
            self._offsets.remove_topic(topic)
            self._pop.forget_topic(topic)
            self._store.delete_topics([topic])
            self._statistics.forget_topic(topic)

    def all_topics(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return the whole topic table with its version, for slaves and operators."""
        return self._long.shared(channel, command, self._all_topics, self._versions, self._encode_topics)

    def _versions(self) -> object:
        return self._topics.data_version, self._static.data_version

    def _all_topics(self) -> Work[object]:
        version, mapping_version, mappings = self._topics.data_version, self._static.data_version, self._static.topics
        table = yield from copied(self._topics.topics)
        return TopicConfigAndMappingSerializeWrapper(
            topic_config_table=table,
            data_version=version,
            topic_queue_mapping_detail_map=dict(mappings),
            mapping_data_version=mapping_version,
        )

    def topic(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return one topic's configuration, with its logical queues if they are asked for (lo)."""
        header = decode_header(GetTopicConfigRequestHeader, command)
        name = header.topic
        config = self._topics.get(name)
        if config is None:
            raise BrokerError(ResponseCode.TOPIC_NOT_EXIST, f"No topic in this broker. topic: {name}")
        mapping = self._static.get(name) if header.lo else None
        if mapping is not None:
            settings = attrs.asdict(config, recurse=False)
            config = TopicConfigAndQueueMapping(**settings, mapping_detail=mapping)
        return command.answer(body=encode_body(config))

    def topic_stats(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return each queue's first and last offset, and when its last message was stored (0 for an empty queue)."""
        topic = decode_header(GetTopicStatsInfoRequestHeader, command).topic
        config = self._topics.get(topic)
        if config is None:
            raise BrokerError(ResponseCode.TOPIC_NOT_EXIST, f"topic[{topic}] not exist")
        return self._long.report(channel, command, self._stats(config))

    def _stats(self, config: TopicConfig) -> Generator[None, None, TopicStatsTable]:
        topic = config.topic_name
        count = max(config.write_queue_nums, config.read_queue_nums)
        rows = yield from in_slices(count, lambda queue_id: self._queue_stats(topic, queue_id))
        return TopicStatsTable(offset_table=rows, topic_put_tps=self._statistics.topic_put_tps(topic))

    def _queue_stats(self, topic: str, queue_id: int) -> tuple[MessageQueue, TopicOffset]:
        store = self._store
        end = max(0, store.max_offset_in_queue(topic, queue_id))
        queue = MessageQueue(topic=topic, broker_name=self._options.broker_name, queue_id=queue_id)
        return queue, TopicOffset(
            min_offset=max(0, store.min_offset_in_queue(topic, queue_id)),
            max_offset=end,
            last_update_timestamp=store.store_timestamp(topic, queue_id, end - 1) if end else 0,
        )

    def system_topics(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return the broker's own topics."""
        return command.answer(body=encode_body(TopicList(topic_list=sorted(SYSTEM_TOPICS))))

    def update_group(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Create or alter a consumer group."""
        config = short_body(SubscriptionGroupConfig, command)
        check_group(config)
        self._groups.update(with_attributes(config, self._groups))
        return command.answer()

    def delete_group(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Delete a consumer group, and its offsets if the request asks for that."""
        header = decode_header(DeleteSubscriptionGroupRequestHeader, command)
        check_users_group(header.group_name)
        self._groups.delete(header.group_name)
        if header.clean_offset:
            self._offsets.remove_group(header.group_name)
            self._pop.forget_group(header.group_name)
        self._statistics.forget_group(header.group_name)
        return command.answer()

    def all_groups(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return the whole group table with its version."""
        return self._long.shared(
            channel, command, self._all_groups, lambda: self._groups.data_version, self._encode_groups
        )

    def _all_groups(self) -> Work[object]:
        version = self._groups.data_version
        check_rows(len(self._groups.groups), GROUP_BYTES)
        table = yield from copied(self._groups.groups)
        return SubscriptionGroupWrapper(subscription_group_table=table, data_version=version)

    def group(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return one group's configuration."""
        name = decode_header(GetSubscriptionGroupConfigRequestHeader, command).group
        config = self._groups.groups.get(name)
        if config is None:
            raise BrokerError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"No group in this broker. group: {name}")
        return command.answer(body=encode_body(config))


def check_topic(topic: str | None, options: BrokerOptions) -> None:
    """Check that users may create or alter a topic of that name. Raises BrokerError."""
    fault = topic_fault(topic)
    if fault is None and options.validate_system_topic_when_update_topic and is_system_topic(topic or ""):
        fault = f"The topic[{topic}] is conflict with system topic."
    if fault is not None:
        raise BrokerError(ResponseCode.INVALID_PARAMETER, fault)


def requested_config(header: CreateTopicRequestHeader, attributes: dict[str, str]) -> TopicConfig:
    """Return the topic that a request asks for. Raises BrokerError for more queues than a topic may have."""
    config = TopicConfig(
        topic_name=header.topic,
        read_queue_nums=header.read_queue_nums,
        write_queue_nums=header.write_queue_nums,
        perm=header.perm,
        topic_filter_type=header.topic_filter_type,
        topic_sys_flag=header.topic_sys_flag or 0,
        order=bool(header.order),
        attributes=attributes,
    )
    check_queue_counts(config)
    return config


def check_queue_counts(config: TopicConfig) -> None:
    """Check a topic's queue counts. Raises BrokerError for more queues than a topic may have."""
    _check_count("readQueueNums", config.read_queue_nums)
    _check_count("writeQueueNums", config.write_queue_nums)


def check_group(config: SubscriptionGroupConfig) -> None:
    """Check a group's name and its number of retry queues. Raises BrokerError."""
    fault = group_fault(config.group_name)
    if fault is not None:
        raise BrokerError(ResponseCode.INVALID_PARAMETER, f"groupName {config.group_name!r}: {fault}")
    _check_count("retryQueueNums", config.retry_queue_nums)


def with_attributes(config: SubscriptionGroupConfig, groups: SubscriptionGroupManager) -> SubscriptionGroupConfig:
    """Return the configuration with the group's changed attributes: those given are signed names. Raises BrokerError."""
    known = groups.groups.get(config.group_name)
    changed = altered(known.attributes if known else None, config.attributes or {}, GROUP_ATTRIBUTES)
    return attrs.evolve(config, attributes=changed)


def _check_count(name: str, value: int) -> None:
    if not 0 <= value <= MOST_QUEUES:
        raise BrokerError(ResponseCode.INVALID_PARAMETER, f"{name}: 0 to {MOST_QUEUES} queues, got {value}")


def files_deleted(store: IMessageStore) -> Generator[None, None, None]:
    """Delete the files of dropped queues, a few in each slice of work."""
    while store.delete_more():
        yield


def check_message_type(changes: Mapping[str, str], options: BrokerOptions) -> None:
    """Check that a topic of mixed messages is allowed: it needs enableMixedMessageType. Raises BrokerError.

    The type is kept for proxies, which compare messages with it. A broker takes messages of any type, as Apache's does.
    """
    if not options.enable_mixed_message_type and changes.get("+" + MESSAGE_TYPE) == "MIXED":
        raise BrokerError(ResponseCode.INVALID_PARAMETER, "MIXED message type is not supported.")
