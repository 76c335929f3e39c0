"""Finds a term in a broker's queue: from its first message on, up to what both brokers of the group hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from twisted_mq.broker.stored_message import StoredMessage
from twisted_mq.protocol.errors import RecordError
from twisted_mq.protocol.messages.order_mark import OrderMark
from twisted_mq.protocol.text.properties import PROPERTY_ORDERED
from twisted_mq.storage.interfaces import IMessageStore

STEP = 32
"""Entries read together, from a queue's end backwards."""

MOST_UNMARKED = 64
"""The most messages in a row without an epoch: messages postponed before the topic was ordered may be in between."""


class Terms:
    """The terms in one store. `confirmed` is the physical offset up to which messages may be handed out."""

    def __init__(self, store: IMessageStore, confirmed: Callable[[], int]) -> None:
        self._store = store
        self.confirmed = confirmed
        self._begins: dict[tuple[str, int], tuple[int, int]] = {}
        self._newest: dict[tuple[str, int], tuple[int, tuple[int, int]]] = {}

    def begin(self, topic: str, queue_id: int, epoch: int) -> int:
        """Return the offset of the first message of that epoch or a later one; the queue's end if there is no such
        message yet.
        """
        known = self._begins.get((topic, queue_id))
        if known is not None and known[0] == epoch:
            return known[1]
        low, end = self._search(topic, queue_id, epoch)
        if low < end:
            self._begins[topic, queue_id] = epoch, low
        return low

    def bounded(self, topic: str, queue_id: int, offset: int, epoch: int) -> int:
        """Return the offset, or that of the first message of a later epoch, or the queue's end, whichever is lowest."""
        offset = min(offset, self._store.max_offset_in_queue(topic, queue_id))
        first = self._store.min_offset_in_queue(topic, queue_id)
        if self._epoch_before(topic, queue_id, first, offset - 1) <= epoch:
            return offset
        return self._search(topic, queue_id, epoch + 1)[0]

    def stretches(self, topic: str, queue_id: int, begin: int, end: int, most: int) -> list[tuple[int, int, int]]:
        """Return (epoch, first offset, count) of each epoch's messages between two offsets; the last of `most` has the rest."""
        found: list[tuple[int, int, int]] = []
        at = max(begin, self._store.min_offset_in_queue(topic, queue_id))
        end = min(end, self._store.max_offset_in_queue(topic, queue_id))
        while at < end:
            places = range(at, min(end, at + MOST_UNMARKED))
            epoch = next((one for one in (self._epoch(topic, queue_id, place) for place in places) if one), None)
            if epoch is None:
                break
            behind = end if len(found) == most - 1 else min(end, self._search(topic, queue_id, epoch + 1)[0])
            found.append((epoch, at, behind - at))
            at = behind
        return found

    def _search(self, topic: str, queue_id: int, epoch: int) -> tuple[int, int]:
        """Like `begin`, with the queue's end."""
        first, end = self._store.min_offset_in_queue(topic, queue_id), self._store.max_offset_in_queue(topic, queue_id)
        low, high = first, end
        while low < high:
            middle = (low + high) // 2
            if self._epoch_before(topic, queue_id, low, middle) < epoch:
                low = middle + 1
            else:
                high = middle
        return low, end

    def _epoch_before(self, topic: str, queue_id: int, low: int, offset: int) -> int:
        """Return the epoch at an offset, or of the last message before it that has one, down to `low`; 0 if none has."""
        found = (
            self._epoch(topic, queue_id, place) for place in range(offset, max(low, offset - MOST_UNMARKED) - 1, -1)
        )
        return next((epoch for epoch in found if epoch is not None), 0)

    def _epoch(self, topic: str, queue_id: int, offset: int) -> int | None:
        """Return the epoch of the message at an offset; None if it has none."""
        mark = self._mark(topic, queue_id, offset)
        return None if mark is None else mark.epoch

    def _mark(self, topic: str, queue_id: int, offset: int) -> OrderMark | None:
        entries = self._store.queue_entries(topic, queue_id, offset, 1)
        record = self._store.look_message(entries[0][0]) if entries else None
        return None if record is None else _mark_of(record)

    @staticmethod
    def epoch_of(records: Sequence[memoryview | bytes]) -> int:
        """Return the epoch of the last record with a mark; 0 if none has one. Marks of a queue only rise."""
        marks = map(_mark_of, reversed(records))
        return next((mark.epoch for mark in marks if mark is not None), 0)

    def newest(self, topic: str, queue_id: int) -> tuple[int, int]:
        """Return epoch and leader's term of the last marked message, read from the log; zeros if none is marked.

        Marks of a queue only rise. Messages that were read before are not read again, unless the queue is shorter now.
        """
        key = topic, queue_id
        end = self._store.max_offset_in_queue(topic, queue_id)
        looked, newest = self._newest.get(key, (0, (0, 0)))
        if looked > end:
            looked, newest = 0, (0, 0)
        first = max(looked, self._store.min_offset_in_queue(topic, queue_id))
        marks = (self._mark(topic, queue_id, offset) for offset in range(end - 1, first - 1, -1))
        mark = next((mark for mark in marks if mark is not None), None)
        self._newest[key] = end, newest if mark is None else (mark.epoch, mark.leader)
        return self._newest[key][1]

    def end(self, topic: str, queue_id: int) -> int:
        """Return the offset after the last message that may be handed out."""
        store, confirmed = self._store, self.confirmed()
        end = store.max_offset_in_queue(topic, queue_id)
        if confirmed >= store.max_physical_offset():
            return end
        first = store.min_offset_in_queue(topic, queue_id)
        while end > first:
            low = max(first, end - STEP)
            entries = store.queue_entries(topic, queue_id, low, end - low)
            held = [place for place, (physical, size, _) in enumerate(entries) if physical + size <= confirmed]
            if held:
                return low + held[-1] + 1
            end = low
        return end


def _mark_of(record: memoryview | bytes) -> OrderMark | None:
    try:
        text = StoredMessage.read(record).properties.get(PROPERTY_ORDERED)
        return None if text is None else OrderMark.decode(text)
    except (RecordError, ValueError):
        return None
