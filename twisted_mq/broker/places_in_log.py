"""Where in a queue the messages begin that lie behind a place in the log.

Places in the log tell what came later; store times do not, as a clock that is set back makes later ones smaller.
"""

from __future__ import annotations

from twisted_mq.storage.interfaces import IMessageStore


def first_behind(store: IMessageStore, topic: str, queue_id: int, physical_offset: int) -> int:
    """The queue offset of the first message at or behind that place; the queue's end where there is none."""
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
