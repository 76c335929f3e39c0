"""Serves consumer groups: members (38), committed offsets (14, 15), queue locks (41, 42), queues' ends and times (29 to 32).

Apache: ConsumerManageProcessor, and the parts of AdminBrokerProcessor on locks and offsets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from twisted_mq.broker.clients.client_names import MOST_CLIENT_ID, MOST_GROUP_NAME, check_name
from twisted_mq.broker.clients.consumer_manager import ConsumerManager
from twisted_mq.broker.clients.consumer_offset_manager import ConsumerOffsetManager
from twisted_mq.broker.clients.rebalance_lock import RebalanceLockManager
from twisted_mq.broker.clients.subscription_group_manager import SubscriptionGroupManager
from twisted_mq.broker.ordered_topics import Ordering
from twisted_mq.broker.request_bodies import RequestBodies
from twisted_mq.broker.topics.static_topics import StaticTopics
from twisted_mq.broker.topics.topic_config_manager import TopicConfigManager
from twisted_mq.protocol.bodies import (
    GetConsumerListByGroupResponseBody,
    LockBatchRequestBody,
    LockBatchResponseBody,
    MessageQueue,
    UnlockBatchRequestBody,
    encode_body,
)
from twisted_mq.protocol.boundary_type import BoundaryType
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import (
    GetConsumerListByGroupRequestHeader,
    GetEarliestMsgStoretimeRequestHeader,
    GetEarliestMsgStoretimeResponseHeader,
    GetMaxOffsetRequestHeader,
    GetMaxOffsetResponseHeader,
    GetMinOffsetRequestHeader,
    GetMinOffsetResponseHeader,
    QueryConsumerOffsetRequestHeader,
    QueryConsumerOffsetResponseHeader,
    SearchOffsetRequestHeader,
    SearchOffsetResponseHeader,
    UpdateConsumerOffsetRequestHeader,
)
from twisted_mq.protocol.names.system_topics import RETRY_PREFIX
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header, encode_header
from twisted_mq.remoting.channel import Answer, Channel
from twisted_mq.storage.interfaces import IMessageStore
from twisted_mq.turns import Work, outcome, then, while_connected

MOST_UNKNOWN_QUEUES = 64
"""The most queues that a topic does not have (any more) for which a group can still commit offsets."""

QUEUES_OF_SLICE = 4000
"""Queues that are locked or freed in one turn, which takes about 10 ms. A client locks a few."""


class ConsumerManageParts(Protocol):
    """The parts of the broker that consumers' questions use."""

    store: IMessageStore
    topics: TopicConfigManager
    groups: SubscriptionGroupManager
    offsets: ConsumerOffsetManager
    consumers: ConsumerManager
    locks: RebalanceLockManager
    ordering: Ordering
    static_topics: StaticTopics
    now_ms: Callable[[], int]
    bodies: RequestBodies


class ConsumerManageProcessor:
    """Answers consumers' questions about their group and its queues."""

    def __init__(self, broker: ConsumerManageParts) -> None:
        self._store = broker.store
        self._topics = broker.topics
        self._groups = broker.groups
        self._offsets = broker.offsets
        self._consumers = broker.consumers
        self._locks = broker.locks
        self._ordering = broker.ordering
        self._static = broker.static_topics
        self._now_ms = broker.now_ms
        self._bodies = broker.bodies
        self.processors = {
            RequestCode.GET_CONSUMER_LIST_BY_GROUP: self.consumer_list,
            RequestCode.QUERY_CONSUMER_OFFSET: self.query_offset,
            RequestCode.UPDATE_CONSUMER_OFFSET: self.update_offset,
            RequestCode.LOCK_BATCH_MQ: self.lock,
            RequestCode.UNLOCK_BATCH_MQ: self.unlock,
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: self.search_offset,
            RequestCode.GET_MAX_OFFSET: self.max_offset,
            RequestCode.GET_MIN_OFFSET: self.min_offset,
            RequestCode.GET_EARLIEST_MSG_STORETIME: self.earliest_message_time,
        }

    def consumer_list(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return the client ids of a group; SYSTEM_ERROR for a group without consumers, as Apache does."""
        group = decode_header(GetConsumerListByGroupRequestHeader, command).consumer_group
        info = self._consumers.groups.get(group)
        if info is None:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, f"no consumer for this group, {group}")
        body = GetConsumerListByGroupResponseBody(consumer_id_list=info.client_ids())
        return command.answer(body=encode_body(body))

    def query_offset(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return a group's committed offset; for a group without one, 0 if the queue still has its first message."""
        header = decode_header(QueryConsumerOffsetRequestHeader, command)
        offset = self._offsets.query(header.consumer_group, header.topic, header.queue_id)
        config = self._topics.get(header.topic)
        if config is not None and config.order_mode is not None:
            offset = max(offset or 0, self._ordering.asked(header.topic).reads.begin(config, header.queue_id))
        if offset is not None:
            return command.answer(ext_fields=encode_header(QueryConsumerOffsetResponseHeader(offset=offset)))
        if header.set_zero_if_not_found is False:
            raise BrokerError(
                ResponseCode.QUERY_NOT_FOUND, "Not found, do not set to zero, maybe this group boot first"
            )
        if self._begins_at_zero(header.topic, header.queue_id):
            return command.answer(ext_fields=encode_header(QueryConsumerOffsetResponseHeader(offset=0)))
        raise BrokerError(
            ResponseCode.QUERY_NOT_FOUND, "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first"
        )

    def _begins_at_zero(self, topic: str, queue_id: int) -> bool:
        """Return True if a new group misses nothing by starting at 0 and has little to catch up.

        For an empty queue, Apache answers that there is no offset. Its clients then ask for the greatest one, and never
        see messages that arrive in between. On a retry topic they start at 0 by themselves.
        """
        store = self._store
        if store.min_offset_in_queue(topic, queue_id) > 0:
            return False
        if store.max_offset_in_queue(topic, queue_id) == 0:
            return self._topics.has_queue(topic, queue_id) and not topic.startswith(RETRY_PREFIX)
        return store.is_in_memory(topic, queue_id, 0)

    def update_offset(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Commit an offset of a known group and topic."""
        header = decode_header(UpdateConsumerOffsetRequestHeader, command)
        if self._groups.find(header.consumer_group, channel.share_address) is None:
            raise BrokerError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"Group {header.consumer_group} not exist!")
        config = self._topics.get(header.topic)
        if config is None:
            raise BrokerError(ResponseCode.TOPIC_NOT_EXIST, f"Topic {header.topic} not exist!")
        self._check_room(header.consumer_group, header.topic, header.queue_id)
        if self._offsets.has_reset(header.consumer_group, header.topic, header.queue_id):
            return command.answer(remark="Offset has been previously reset")
        offset = self._ordering.noted(
            config, header.queue_id, header.consumer_group, header.commit_offset, command.ext_fields
        )
        self._offsets.commit(header.consumer_group, header.topic, header.queue_id, offset)
        return command.answer()

    def _check_room(self, group: str, topic: str, queue_id: int) -> None:
        """Raise BrokerError if a group has offsets on too many queues that the topic does not have; Apache stores all."""
        if self._topics.has_queue(topic, queue_id):
            return
        if self._offsets.queue_count(group, topic) >= MOST_UNKNOWN_QUEUES + self._topics.queue_count(topic):
            raise BrokerError(ResponseCode.INVALID_PARAMETER, f"queueId: topic {topic} has no queue {queue_id}")

    def lock(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Lock queues for one client. The answer lists the locked ones, and never a queue that the topic does not have."""
        return self._bodies.read(
            LockBatchRequestBody, channel, command, lambda body: self._lock(channel, command, body)
        )

    def _lock(self, channel: Channel, command: RemotingCommand, body: LockBatchRequestBody) -> Answer:
        check_name("consumerGroup", body.consumer_group, MOST_GROUP_NAME)
        check_name("clientId", body.client_id, MOST_CLIENT_ID)
        locked = while_connected(channel, self._locked(body, channel.share_address))
        encoded = self._bodies.turns.run(("locks", channel), locked)
        return then(encoded, lambda data: command.answer(body=data))

    def _locked(self, body: LockBatchRequestBody, address: str) -> Work[bytes]:
        held: list[MessageQueue] = []
        asked = list(body.mq_set)
        for first in range(0, len(asked), QUEUES_OF_SLICE):
            if first:
                yield None
            queues = [queue for queue in asked[first : first + QUEUES_OF_SLICE] if self._has(queue)]
            held += self._locks.try_lock(body.consumer_group, queues, body.client_id, self._now_ms(), address)
        answer = LockBatchResponseBody(lock_ok_mq_set=held)
        if len(held) <= QUEUES_OF_SLICE:
            return encode_body(answer)
        return (yield from outcome(self._bodies.in_thread(encode_body, answer)))

    def _has(self, queue: MessageQueue) -> bool:
        """Return True for a logical queue that this broker leads, or else for a queue of the topic."""
        if self._static.get(queue.topic) is not None:
            return self._static.led(queue.topic, queue.queue_id) is not None
        return self._topics.has_queue(queue.topic, queue.queue_id)

    def unlock(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Free the queues that the client holds."""
        return self._bodies.read(
            UnlockBatchRequestBody, channel, command, lambda body: self._unlock(channel, command, body)
        )

    def _unlock(self, channel: Channel, command: RemotingCommand, body: UnlockBatchRequestBody) -> Answer:
        return then(self._bodies.turns.run(("locks", channel), self._unlocked(body)), lambda _: command.answer())

    def _unlocked(self, body: UnlockBatchRequestBody) -> Work[None]:
        queues = list(body.mq_set)
        for first in range(0, len(queues), QUEUES_OF_SLICE):
            if first:
                yield None
            self._locks.unlock(body.consumer_group, queues[first : first + QUEUES_OF_SLICE], body.client_id)

    def search_offset(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return the queue offset of the message stored at a time."""
        header = decode_header(SearchOffsetRequestHeader, command)
        boundary = header.boundary_type or BoundaryType.LOWER
        offset = self._store.offset_by_time(header.topic, header.queue_id, header.timestamp, boundary)
        return command.answer(ext_fields=encode_header(SearchOffsetResponseHeader(offset=offset)))

    def max_offset(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return the offset after the queue's last message."""
        header = decode_header(GetMaxOffsetRequestHeader, command)
        offset = self._store.max_offset_in_queue(header.topic, header.queue_id)
        return command.answer(ext_fields=encode_header(GetMaxOffsetResponseHeader(offset=offset)))

    def min_offset(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return the offset of the queue's first message."""
        header = decode_header(GetMinOffsetRequestHeader, command)
        offset = self._store.min_offset_in_queue(header.topic, header.queue_id)
        return command.answer(remark="", ext_fields=encode_header(GetMinOffsetResponseHeader(offset=offset)))

    def earliest_message_time(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return the time when the queue's first message was stored, in ms; -1 if the queue is empty."""
        header = decode_header(GetEarliestMsgStoretimeRequestHeader, command)
        timestamp = self._store.earliest_message_time(header.topic, header.queue_id)
        return command.answer(ext_fields=encode_header(GetEarliestMsgStoretimeResponseHeader(timestamp=timestamp)))
