"""Decides where a group starts on a queue that it never popped before (Apache: PopMessageProcessor.getInitOffset)."""

from __future__ import annotations

from twisted_mq.broker.pop.parts import ReadParts
from twisted_mq.protocol.names.system_topics import RETRY_PREFIX

FROM_FIRST = 0
"""Start at the first message (Apache: ConsumeInitMode.MIN); every other value means MAX, from the last message on."""


def init_offset(broker: ReadParts, topic: str, queue_id: int, init_mode: int) -> int:
    """Return the first message's offset, or the last one's; the first's also for a new queue that is in memory whole."""
    store = broker.store
    first = store.min_offset_in_queue(topic, queue_id)
    if init_mode == FROM_FIRST or topic.startswith(RETRY_PREFIX):
        return first
    if broker.options.init_pop_offset_by_check_msg_in_mem and first <= 0 and store.is_in_memory(topic, queue_id, 0):
        return 0
    return max(0, store.max_offset_in_queue(topic, queue_id) - 1)


def next_offset(broker: ReadParts, topic: str, group: str, queue_id: int) -> int:
    """Return the offset at which the group goes on; the queue's first offset if it never popped (Apache:
    NotificationProcessor).
    """
    offset = broker.offsets.query(group, topic, queue_id)
    return broker.store.min_offset_in_queue(topic, queue_id) if offset is None else offset
