"""Finds the first message of a queue after a place in the log.

A place in the log shows what came later. Store times do not, because they go back when the clock is set back.
"""

from __future__ import annotations

from twisted_mq.storage.interfaces import IMessageStore


def first_behind(store: IMessageStore, topic: str, queue_id: int, physical_offset: int) -> int:
    """Return the queue offset of the first message at or after that place, or else the queue's end."""
    high = store.max_offset_in_queue(topic, queue_id)
    low = min(high, store.min_offset_in_queue(topic, queue_id))
    while low < high:
        middle = (low + high) // 2
        entries = store.queue_entries(topic, queue_id, middle, 1)
        if entries and entries[0][0] < physical_offset:
            low = middle + 1
        else:
            high = middle
    return low
