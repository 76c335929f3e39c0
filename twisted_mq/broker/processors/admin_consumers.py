"""Reports how far consumer groups are: codes 208, 303, 317, 343, 345. Apache: the parts of AdminBrokerProcessor on
consume stats.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Protocol

from twisted_mq.broker.clients.consumer_manager import ConsumerManager
from twisted_mq.broker.clients.consumer_offset_manager import ConsumerOffsetManager
from twisted_mq.broker.clients.subscription_group_manager import SubscriptionGroupManager
from twisted_mq.broker.long_answers import LongAnswers, check_rows, in_slices
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.statistics.broker_statistics import BrokerStatistics
from twisted_mq.broker.topics.topic_config_manager import TopicConfigManager
from twisted_mq.protocol.bodies import (
    ConsumeStats,
    ConsumeStatsList,
    MessageQueue,
    OffsetWrapper,
    QueryConsumeTimeSpanBody,
    QuerySubscriptionResponseBody,
    QueueTimeSpan,
    TopicList,
    encode_body,
)
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import (
    GetConsumeStatsInBrokerHeader,
    GetConsumeStatsRequestHeader,
    QueryConsumeTimeSpanRequestHeader,
    QuerySubscriptionByConsumerRequestHeader,
    QueryTopicsByConsumerRequestHeader,
)
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header
from twisted_mq.remoting.channel import Answer, Channel
from twisted_mq.storage.interfaces import IMessageStore

GROUPS_OF_SLICE = 128


class AdminConsumersParts(Protocol):
    """The parts of the broker that comparisons of offsets use."""

    options: BrokerOptions
    wall_ms: Callable[[], int]
    store: IMessageStore
    topics: TopicConfigManager
    groups: SubscriptionGroupManager
    offsets: ConsumerOffsetManager
    consumers: ConsumerManager
    statistics: BrokerStatistics
    long_answers: LongAnswers

    @property
    def address(self) -> str: ...


class AdminConsumersProcessor:
    """Compares committed offsets with the queues."""

    def __init__(self, broker: AdminConsumersParts) -> None:
        self._options = broker.options
        self._wall_ms = broker.wall_ms
        self._store = broker.store
        self._topics = broker.topics
        self._groups = broker.groups
        self._offsets = broker.offsets
        self._consumers = broker.consumers
        self._statistics = broker.statistics
        self._address = broker.address
        self._long = broker.long_answers
        self.processors = {
            RequestCode.GET_CONSUME_STATS: self.consume_stats,
            RequestCode.GET_BROKER_CONSUME_STATS: self.all_consume_stats,
            RequestCode.QUERY_CONSUME_TIME_SPAN: self.consume_time_span,
            RequestCode.QUERY_TOPICS_BY_CONSUMER: self.topics_of_group,
            RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER: self.subscription_of_group,
        }

    def consume_stats(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return a group's offsets and lag on a topic, on several (separated by semicolons), or on all that it consumes."""
        header = decode_header(GetConsumeStatsRequestHeader, command)
        return self._long.report(channel, command, self._stats_on(header))

    def _stats_on(self, header: GetConsumeStatsRequestHeader) -> Generator[None, None, ConsumeStats]:
        table: dict[MessageQueue, OffsetWrapper] = {}
        tps = 0.0
        for topic in self._topics_asked_for(header):
            config = self._topics.get(topic)
            if config is None:
                continue
            check_rows(len(table) + config.read_queue_nums)
            table |= yield from self._queues(header.consumer_group, topic, config.read_queue_nums)
            tps += self._statistics.group_get_tps(header.consumer_group, topic)
        return ConsumeStats(offset_table=table, consume_tps=tps)

    def _topics_asked_for(self, header: GetConsumeStatsRequestHeader) -> Iterable[str]:
        """Yield the topics asked for, without those that a connected group does not subscribe to unless a list names them."""
        named = [topic for topic in (header.topic_list or "").split(";") if topic.strip()]
        if named:
            return dict.fromkeys(named)
        group = header.consumer_group
        topic = (header.topic or "").strip()
        topics = [topic] if topic else self._offsets.topics_of(group)
        return [topic for topic in topics if self._consumes(group, topic)]

    def _consumes(self, group: str, topic: str) -> bool:
        """Return True if a group may consume a topic now: it subscribed to it, or none of its consumers is connected."""
        info = self._consumers.groups.get(group)
        return info is None or not info.subscriptions or topic in info.subscriptions

    def _queues(self, group: str, topic: str, count: int) -> Generator[None, None, dict[MessageQueue, OffsetWrapper]]:
        return in_slices(count, lambda queue_id: self._queue(group, topic, queue_id))

    def _queue(self, group: str, topic: str, queue_id: int) -> tuple[MessageQueue, OffsetWrapper]:
        store, offsets = self._store, self._offsets
        queue = MessageQueue(topic=topic, broker_name=self._options.broker_name, queue_id=queue_id)
        consumed = offsets.query(group, topic, queue_id) or 0
        last = store.store_timestamp(topic, queue_id, consumed - 1) if consumed else 0
        return queue, OffsetWrapper(
            broker_offset=max(0, store.max_offset_in_queue(topic, queue_id)),
            consumer_offset=consumed,
            pull_offset=max(consumed, offsets.pulled(group, topic, queue_id) or 0),
            last_timestamp=max(0, last),
        )

    def all_consume_stats(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return offsets and lag of all groups; with isOrder only on ordered topics."""
        ordered_only = decode_header(GetConsumeStatsInBrokerHeader, command).is_order
        return self._long.report(channel, command, self._all_stats(ordered_only))

    def _all_stats(self, ordered_only: bool) -> Generator[None, None, ConsumeStatsList]:
        stats: dict[str, list[ConsumeStats]] = {}
        count = 0
        topics = yield from self._offsets.topics_by_group()
        for number, group in enumerate(list(self._groups.groups), 1):
            stats[group] = yield from self._stats_of(group, sorted(topics.get(group, ())), ordered_only, count)
            count += sum(len(one.offset_table) for one in stats[group])
            if number % GROUPS_OF_SLICE == 0:
                yield
        queues = [one for listed in stats.values() for each in listed for one in each.offset_table.values()]
        return ConsumeStatsList(
            consume_stats_list=[{group: listed} for group, listed in stats.items()],
            broker_addr=self._address,
            total_diff=sum(one.broker_offset - one.consumer_offset for one in queues),
            total_inflight_diff=sum(one.pull_offset - one.consumer_offset for one in queues),
        )

    def _stats_of(
        self, group: str, topics: Iterable[str], ordered_only: bool, count: int
    ) -> Generator[None, None, list[ConsumeStats]]:
        """Return the stats of a group; `count` is the number of rows of the groups before it."""
        found = []
        for topic in topics:
            config = self._topics.get(topic)
            if config is None or (ordered_only and not config.order) or not self._consumes(group, topic):
                continue
            count += config.write_queue_nums
            check_rows(count)
            table = yield from self._queues(group, topic, config.write_queue_nums)
            tps = self._statistics.group_get_tps(group, topic)
            found.append(ConsumeStats(offset_table=table, consume_tps=tps))
        return found

    def consume_time_span(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return the times of each queue's first and last messages, and of the one that the group consumed last."""
        header = decode_header(QueryConsumeTimeSpanRequestHeader, command)
        config = self._topics.get(header.topic)
        if config is None:
            raise BrokerError(ResponseCode.TOPIC_NOT_EXIST, f"topic[{header.topic}] not exist")
        return self._long.report(channel, command, self._spans(header, config.write_queue_nums))

    def _spans(
        self, header: QueryConsumeTimeSpanRequestHeader, count: int
    ) -> Generator[None, None, QueryConsumeTimeSpanBody]:
        spans = yield from in_slices(
            count, lambda queue_id: (queue_id, self._span(header.group, header.topic, queue_id))
        )
        return QueryConsumeTimeSpanBody(consume_time_span_set=list(spans.values()))

    def _span(self, group: str, topic: str, queue_id: int) -> QueueTimeSpan:
        store = self._store
        end = store.max_offset_in_queue(topic, queue_id)
        first = store.earliest_message_time(topic, queue_id)
        consumed = self._offsets.query(group, topic, queue_id)
        consumed = -1 if consumed is None else consumed
        behind = consumed < end
        return QueueTimeSpan(
            message_queue=MessageQueue(topic=topic, broker_name=self._options.broker_name, queue_id=queue_id),
            min_time_stamp=first,
            max_time_stamp=store.store_timestamp(topic, queue_id, end - 1),
            consume_time_stamp=store.store_timestamp(topic, queue_id, consumed - 1) if consumed > 0 else first,
            delay_time=self._wall_ms() - store.store_timestamp(topic, queue_id, consumed) if behind else 0,
        )

    def topics_of_group(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return the topics on which a group has an offset."""
        group = decode_header(QueryTopicsByConsumerRequestHeader, command).group
        body = TopicList(topic_list=self._offsets.topics_of(group), broker_addr=self._address)
        return command.answer(body=encode_body(body))

    def subscription_of_group(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return a group's subscription to a topic; empty if the group is not connected."""
        header = decode_header(QuerySubscriptionByConsumerRequestHeader, command)
        subscription = self._consumers.subscription(header.group, header.topic or "")
        body = QuerySubscriptionResponseBody(subscription_data=subscription, group=header.group, topic=header.topic)
        return command.answer(body=encode_body(body))
