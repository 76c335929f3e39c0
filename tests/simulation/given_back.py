"""Messages that consumers returned to a broker, and their places in its log."""

from __future__ import annotations

from collections.abc import Iterator

from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.names.system_topics import RETRY_PREFIX, SCHEDULE_TOPIC
from twisted_mq.protocol.text.properties import PROPERTY_REAL_TOPIC
from twisted_mq.storage.interfaces import IMessageStore


def given_back(store: IMessageStore, end: int) -> Iterator[MessageExt]:
    """Messages that wait to be consumed again, or are about to be, and lie from `end` on."""
    for topic in store.topics():
        if topic == SCHEDULE_TOPIC or topic.startswith(RETRY_PREFIX):
            for queue_id in store.queue_ids(topic):
                yield from _behind(store, topic, queue_id, end)


def _behind(store: IMessageStore, topic: str, queue_id: int, end: int) -> Iterator[MessageExt]:
    first = store.min_offset_in_queue(topic, queue_id)
    for physical, *_ in store.queue_entries(topic, queue_id, first, store.max_offset_in_queue(topic, queue_id) - first):
        record = store.look_message(physical) if physical >= end else None
        if record is None:
            continue
        message = decode_message(record)
        if (message.properties or {}).get(PROPERTY_REAL_TOPIC, topic).startswith(RETRY_PREFIX):
            yield message
