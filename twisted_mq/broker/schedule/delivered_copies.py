"""Finds in the log what was delivered before the broker stopped.

A delayed message is delivered by putting a copy into its real queue; the progress is written down later. After a kill,
the copies in the log are the truth: a waiting message whose copy is there is not delivered again, but one whose copy was
lost with the log's end is. So nothing is lost or delivered twice, whatever the tables on disk say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from twisted_mq.broker.places_in_log import first_behind
from twisted_mq.broker.stored_message import StoredMessage
from twisted_mq.protocol.boundary_type import BoundaryType
from twisted_mq.protocol.errors import RecordError
from twisted_mq.protocol.text.properties import (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_REAL_TOPIC,
    PROPERTY_TIMER_DEL_UNIQKEY,
    PROPERTY_TIMER_OUT_MS,
    PROPERTY_TIMER_ROLL_TIMES,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
)
from twisted_mq.storage.interfaces import IMessageStore, InnerMessage, PutResult, PutStatus

Delivered = Callable[[InnerMessage, PutResult], None]
"""Called with a copy that was put into its real queue."""

Put = Callable[[InnerMessage], PutResult | None]
"""Takes a copy. Returns None while it is not known whether it is taken; then it is asked again."""

REFUSED_FOR_GOOD = (PutStatus.MESSAGE_ILLEGAL, PutStatus.PROPERTIES_SIZE_EXCEEDED)
"""A copy that the store will never accept: its message is skipped."""

_SLACK_MS = 1000
"""Copies are searched from a little before the due time: store times of one moment may differ."""
MOST_BEFORE = 10_000
"""The most entries that are read because a clock may have been set back: about 50 ms at a start after a kill."""
_READ_BYTES = 1 << 20
_READ_COUNT = 1000
_SAME_IN_COPIES = (
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    PROPERTY_REAL_TOPIC,
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_TIMER_OUT_MS,
    PROPERTY_TIMER_DEL_UNIQKEY,
)


def identity(message: StoredMessage, rolls: str | None) -> int:
    """Return a value that is equal for a waiting message and its copy; `rolls` is the copy's TIMER_ROLL_TIMES."""
    head, properties = message.head, message.properties
    names = [properties.get(name) for name in _SAME_IN_COPIES]
    return hash((*names, rolls, head.reconsume_times, head.body_crc, head.born_timestamp))


class DeliveredCopies:
    """The copies that were in the log when this was created. Queues are read when they are first asked about.

    Copies are after their messages in the log, and at or after `log_offset` if that is given. Without it, a queue is read
    from the message on, or from the message's time on if that saves more than MOST_BEFORE entries; times are right as
    long as no clock was set back.
    """

    def __init__(self, store: IMessageStore, log_offset: int | None = None) -> None:
        self._store = store
        self._log_offset = log_offset
        self.end_of_log = store.max_physical_offset()
        self._read_from: dict[tuple[str, int], int] = {}
        self._copies: dict[tuple[str, int], Counter[int]] = {}

    def take(self, message: StoredMessage, topic: str, queue_id: int, since_ms: int, rolls: str | None = None) -> bool:
        """Return True if that queue holds a copy of the message, stored from `since_ms` on; each copy counts for one message."""
        key = topic, queue_id
        self._read(key, self._first(key, message.head.physical_offset, since_ms - _SLACK_MS))
        copies, wanted = self._copies[key], identity(message, rolls)
        if not copies[wanted]:
            return False
        copies[wanted] -= 1
        return True

    def _first(self, key: tuple[str, int], physical_offset: int, since_ms: int) -> int:
        by_place = first_behind(self._store, *key, max(self._log_offset or 0, physical_offset))
        if self._log_offset is not None:
            return by_place
        by_time = self._store.offset_by_time(*key, since_ms, BoundaryType.LOWER)
        return by_time if by_time - by_place > MOST_BEFORE else by_place

    def _read(self, key: tuple[str, int], first: int) -> None:
        store = self._store
        copies = self._copies.setdefault(key, Counter())
        end = self._read_from.get(key, store.max_offset_in_queue(*key))
        first = offset = min(end, first)
        self._read_from[key] = first
        while offset < end:
            result = store.get_message(*key, offset, min(_READ_COUNT, end - offset), _READ_BYTES, None)
            for record in result.records:
                self._count(record, copies)
            if result.next_begin_offset <= offset:
                return
            offset = result.next_begin_offset

    def _count(self, record: memoryview | bytes, copies: Counter[int]) -> None:
        try:
            message = StoredMessage.read(record)
        except RecordError:
            return  # readers skip damage too; what is damaged was not delivered
        if message.head.physical_offset < self.end_of_log and PROPERTY_REAL_TOPIC in message.properties:
            copies[identity(message, message.properties.get(PROPERTY_TIMER_ROLL_TIMES))] += 1
