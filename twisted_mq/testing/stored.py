"""Answers a test's questions about a broker: its messages, and how far a group has consumed them."""

from __future__ import annotations

from twisted_mq.broker.clients.client_requests import consumer_status
from twisted_mq.broker.controller import BrokerController
from twisted_mq.protocol.bodies import MessageQueue, TopicConfig
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.storage.interfaces import IMessageStore

AT_A_TIME = 32
MOST_BYTES = 1 << 30


def messages_of(store: IMessageStore, topic: str) -> list[MessageExt]:
    """Return all messages of a topic that consumers can see, in the order in which they were stored."""
    found = [message for queue_id in store.queue_ids(topic) for message in _messages_in(store, topic, queue_id)]
    return sorted(found, key=lambda message: message.physical_offset)


def _messages_in(store: IMessageStore, topic: str, queue_id: int) -> list[MessageExt]:
    found: list[MessageExt] = []
    offset, end = store.min_offset_in_queue(topic, queue_id), store.max_offset_in_queue(topic, queue_id)
    while offset < end:
        read = store.get_message(topic, queue_id, offset, AT_A_TIME, MOST_BYTES, None)
        found += [decode_message(record) for record in read.records]
        offset = max(offset + 1, read.next_begin_offset)
    return found


async def left_over(broker: BrokerController, topic: str, group: str) -> dict[int, int]:
    """Return how many messages the group has yet to consume, by queue id; queues without any are left out.

    It asks the members, because they send their offsets to the broker only at intervals.
    """
    tables = []
    if broker.consumers.groups.get(group) is not None:
        tables = list((await consumer_status(broker.consumers, topic, group, None)).values())
    waiting = {}
    for queue_id in broker.store.queue_ids(topic):
        queue = MessageQueue(topic, broker.options.broker_name, queue_id)
        taken = max([broker.offsets.query(group, topic, queue_id) or 0, *(table.get(queue, 0) for table in tables)])
        waiting[queue_id] = broker.store.max_offset_in_queue(topic, queue_id) - taken
    return {queue_id: count for queue_id, count in waiting.items() if count > 0}


async def make_topic(broker: BrokerController, topic: str, queues: int) -> None:
    """Create a topic; the name servers know it when this returns."""
    broker.topics.update([TopicConfig(topic_name=topic, read_queue_nums=queues, write_queue_nums=queues)])
    await broker.known()
