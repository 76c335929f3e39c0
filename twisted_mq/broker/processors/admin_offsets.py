"""Changes and compares committed offsets for operators: codes 43, 222, 308, 314.

Apache: the parts of AdminBrokerProcessor on offsets. By default the broker itself applies a reset: the offset becomes the
committed one at once, and the next pull is sent there. Without useServerSideResetOffset, the connected consumers get the
offset and go there; consumers that are not connected are not reset.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator
from typing import Protocol

from twisted_mq.broker.clients.client_requests import push_reset
from twisted_mq.broker.clients.consumer_manager import ConsumerManager
from twisted_mq.broker.clients.consumer_offset_manager import ConsumerOffsetManager
from twisted_mq.broker.clients.subscription_group_manager import SubscriptionGroupManager, check_users_group
from twisted_mq.broker.long_answers import LongAnswers, check_rows, in_slices
from twisted_mq.broker.long_polling import LongPolling
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.topics.topic_config_manager import TopicConfigManager
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import (
    ConsumerOffsetSerializeWrapper,
    MessageQueue,
    QueryCorrectionOffsetBody,
    ResetOffsetBody,
    TopicConfig,
)
from twisted_mq.protocol.boundary_type import BoundaryType
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import (
    CloneGroupOffsetRequestHeader,
    QueryCorrectionOffsetHeader,
    ResetOffsetRequestHeader,
)
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header
from twisted_mq.remoting.channel import Answer, Channel
from twisted_mq.storage.interfaces import IMessageStore

UNCOMPARABLE = (1 << 63) - 1
"""The correction of a queue on which the compared group is further (Java's Long.MAX_VALUE)."""

OFFSETS_OF_SLICE = 4096
OFFSET_BYTES = 4
"""The least that an offset takes in a table of all."""


class AdminOffsetsParts(Protocol):
    """The parts of the broker that changes of offsets use."""

    options: BrokerOptions
    store: IMessageStore
    topics: TopicConfigManager
    groups: SubscriptionGroupManager
    offsets: ConsumerOffsetManager
    consumers: ConsumerManager
    polling: LongPolling
    long_answers: LongAnswers


class AdminOffsetsProcessor:
    """Resets, clones, compares and exports offsets."""

    log = Logger()

    def __init__(self, broker: AdminOffsetsParts) -> None:
        self._options = broker.options
        self._store = broker.store
        self._topics = broker.topics
        self._groups = broker.groups
        self._offsets = broker.offsets
        self._consumers = broker.consumers
        self._polling = broker.polling
        self._long = broker.long_answers
        self.processors = {
            RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: self.reset_offset,
            RequestCode.QUERY_CORRECTION_OFFSET: self.correction_offset,
            RequestCode.CLONE_GROUP_OFFSET: self.clone_offset,
            RequestCode.GET_ALL_CONSUMER_OFFSET: self.all_offsets,
        }

    # resets

    def reset_offset(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Reset a group on a topic: one queue to an offset, or one or all queues to a time (below 0: to their ends)."""
        header = decode_header(ResetOffsetRequestHeader, command)
        check_users_group(header.group)
        config = self._topics.get(header.topic)
        if config is None:
            raise BrokerError(ResponseCode.TOPIC_NOT_EXIST, f"Topic {header.topic} does not exist")
        return self._long.done(command, self._reset(header, config))

    def _reset(self, header: ResetOffsetRequestHeader, config: TopicConfig) -> Generator[None, None, ResetOffsetBody]:
        by_broker = self._options.use_server_side_reset_offset
        reset = self._reset_by_broker if by_broker else self._reset_by_consumers
        offsets = yield from reset(header, config)
        name = self._options.broker_name
        table = {
            MessageQueue(topic=header.topic, broker_name=name, queue_id=queue_id): offset
            for queue_id, offset in offsets.items()
        }
        if not by_broker:
            yield from push_reset(self._consumers, header, table)
        self.log.info(
            "offset reset: group={group} topic={topic} queues={n} offsets={offsets}",
            group=header.group, topic=header.topic, n=len(offsets), offsets=dict(itertools.islice(offsets.items(), 16)),
        )  # fmt: skip
        return ResetOffsetBody(offset_table=table)

    def _reset_by_broker(
        self, header: ResetOffsetRequestHeader, config: TopicConfig
    ) -> Generator[None, None, dict[int, int]]:
        if self._groups.groups.get(header.group) is None:
            raise BrokerError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"Group {header.group} does not exist")
        if header.queue_id >= 0:
            return {header.queue_id: self._sent_to(header, header.queue_id, self._asked_offset(header))}
        if not config.read_queue_nums:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, "No queues to reset.")
        return (
            yield from in_slices(
                config.read_queue_nums,
                lambda queue_id: (queue_id, self._sent_to(header, queue_id, self._at_time(header, queue_id))),
            )
        )

    def _sent_to(self, header: ResetOffsetRequestHeader, queue_id: int, offset: int) -> int:
        """Reset one queue to an offset; returns it."""
        self._offsets.reset(header.group, header.topic, queue_id, offset)
        self._polling.answer_queue(header.topic, queue_id)
        return offset

    def _asked_offset(self, header: ResetOffsetRequestHeader) -> int:
        offset, store = header.offset, self._store
        if offset is None or offset == -1:
            return self._at_time(header, header.queue_id)
        first = store.min_offset_in_queue(header.topic, header.queue_id)
        end = store.max_offset_in_queue(header.topic, header.queue_id)
        if not first <= offset <= end + 1:
            remark = f"Target offset {offset} not in consume queue range [{first}-{end}]"
            raise BrokerError(ResponseCode.SYSTEM_ERROR, remark)
        return offset

    def _at_time(self, header: ResetOffsetRequestHeader, queue_id: int) -> int:
        store = self._store
        if header.timestamp < 0:
            return max(0, store.max_offset_in_queue(header.topic, queue_id))
        return max(0, store.offset_by_time(header.topic, queue_id, header.timestamp, BoundaryType.LOWER))

    def _reset_by_consumers(
        self, header: ResetOffsetRequestHeader, config: TopicConfig
    ) -> Generator[None, None, dict[int, int]]:
        return (
            yield from in_slices(config.write_queue_nums, lambda queue_id: (queue_id, self._back_to(header, queue_id)))
        )

    def _back_to(self, header: ResetOffsetRequestHeader, queue_id: int) -> int:
        """Return the offset at the requested time, or without force the committed one if that is lower.

        Raises BrokerError for a group without an offset on the queue.
        """
        now = self._offsets.query(header.group, header.topic, queue_id)
        if now is None:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, f"THe consumer group <{header.group}> not exist")
        at_time = self._at_time(header, queue_id)
        return at_time if header.is_force or at_time < now else now

    # comparing and copying

    def correction_offset(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return the lowest offset of each queue over all groups except the filtered ones; Long.MAX_VALUE if the compared
        group is further.

        Filtered groups are only skipped; Apache's broker deletes their offsets.
        """
        header = decode_header(QueryCorrectionOffsetHeader, command)
        return self._long.report(channel, command, self._corrections(header))

    def _corrections(self, header: QueryCorrectionOffsetHeader) -> Generator[None, None, QueryCorrectionOffsetBody]:
        passed_over = set(filter(None, (header.filter_groups or "").split(",")))
        lowest = yield from self._lowest(header.topic, passed_over)
        compared = self._offsets.offsets.get(f"{header.topic}@{header.compare_group}", {})
        for queue_id, offset in compared.items():
            if lowest.get(queue_id, UNCOMPARABLE) > offset:
                lowest[queue_id] = UNCOMPARABLE
        return QueryCorrectionOffsetBody(correction_offsets=lowest)

    def _lowest(self, topic: str, passed_over: set[str]) -> Generator[None, None, dict[int, int]]:
        lowest: dict[int, int] = {}
        groups = (group for group in self._offsets.groups_of(topic) if group not in passed_over)
        of_groups = (self._offsets.offsets.get(f"{topic}@{group}", {}) for group in groups)
        rows = (row for queues in of_groups for row in list(queues.items()))
        for number, (queue_id, offset) in enumerate(rows, 1):
            if offset >= self._store.min_offset_in_queue(topic, queue_id):
                lowest[queue_id] = min(offset, lowest.get(queue_id, offset))
            if number % OFFSETS_OF_SLICE == 0:
                yield
        return lowest

    def clone_offset(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Give a group the offsets of another group, on one topic or on all topics that the other group consumes."""
        header = decode_header(CloneGroupOffsetRequestHeader, command)
        check_users_group(header.dest_group)
        named = (header.topic or "").strip()
        info = self._consumers.groups.get(header.src_group)
        for topic in [named] if named else self._offsets.topics_of(header.src_group):
            subscribes = info is None or not info.subscriptions or topic in info.subscriptions
            if self._topics.get(topic) is not None and (header.offline or subscribes):
                self._offsets.clone(header.src_group, header.dest_group, topic)
        return command.answer()

    def all_offsets(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return all committed offsets, for slaves and operators."""
        return self._long.shared(channel, command, self._all_offsets)

    def _all_offsets(self) -> Generator[None, None, ConsumerOffsetSerializeWrapper]:
        table: dict[str, dict[int, int]] = {}
        copied = of_slice = 0
        for key in list(self._offsets.offsets):
            queues = self._offsets.offsets.get(key)
            if queues is None:
                continue
            table[key] = dict(queues)
            copied += 1 + len(queues)
            of_slice += 1 + len(queues)
            if of_slice > OFFSETS_OF_SLICE:
                check_rows(copied, OFFSET_BYTES)
                of_slice = 0
                yield
        return ConsumerOffsetSerializeWrapper(offset_table=table, data_version=self._offsets.data_version)
