"""Delivers messages whose time has come: those of one tick of the timer, in order (Apache: TimerDequeueGetMessageService,
TimerDequeuePutMessageService).
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import attrs

from twisted_mq.broker.schedule.copies_together import first_alike, together
from twisted_mq.broker.schedule.delivered_copies import REFUSED_FOR_GOOD, Delivered, DeliveredCopies, Put
from twisted_mq.broker.stored_message import StoredMessage
from twisted_mq.logs import Logger
from twisted_mq.protocol.errors import RecordError
from twisted_mq.protocol.layouts.timer import LOG_UNIT_BYTES, LogUnit
from twisted_mq.protocol.names.system_topics import TIMER_TOPIC
from twisted_mq.protocol.text.properties import (
    PROPERTY_REAL_TOPIC,
    PROPERTY_TIMER_DEL_UNIQKEY,
    PROPERTY_TIMER_DEQUEUE_MS,
    PROPERTY_TIMER_ENQUEUE_MS,
    PROPERTY_TIMER_OUT_MS,
    PROPERTY_TIMER_ROLL_TIMES,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
)
from twisted_mq.storage.interfaces import IMessageStore, InnerMessage, Places, PutResult, PutStatus
from twisted_mq.storage.timer.timer_files import TimerFiles, is_recall, is_roll

NEVER_ENQUEUED = str(2**63 - 1)
"""TIMER_ENQUEUE_MS of a message that came after its tick."""
READ_BYTES = 1 << 20
FEW = 4
"""Units that follow each other, with fewer behind them, are read one by one."""


@attrs.define(eq=False)
class Tick:
    """A tick whose messages are being delivered: their units, the keys that recalls name, and the next unit."""

    positions: array[int]
    recalled: set[str]
    next: int = 0


class TimerDelivery:
    """Copies messages out of the timer's topic; `copies` are those that existed before this start.

    `last_roll` is the queue offset of the last message that was put into the timer's topic again, -1 before the first.
    """

    log = Logger()

    def __init__(
        self,
        store: IMessageStore,
        files: TimerFiles,
        now_ms: Callable[[], int],
        delivered: Delivered = lambda message, result: None,
        delivered_together: Callable[[Places], None] = lambda places: None,
        taken: Callable[[str, int], None] = lambda topic, count: None,
        put: Put | None = None,
        has_escaped: Callable[[StoredMessage], bool] = lambda message: False,
    ) -> None:
        """Create the delivery. `delivered` is called with each copy that was stored by itself, `delivered_together` with
        the places of copies that were stored in one write; `taken` with a topic and how many of its messages left the timer.

        `put` takes the copies in place of the store; `has_escaped` says which messages another master has.
        """
        self._store = store
        self._other_put = put
        self._has_escaped = has_escaped
        self._files = files
        self._now_ms = now_ms
        self._delivered = delivered
        self._delivered_together = delivered_together
        self._taken = taken
        self._stuck = False
        self._started_ms = now_ms()
        self.copies = DeliveredCopies(store)
        self.last_roll = -1

    def tick(self, time_ms: int) -> Tick | None:
        """Return the messages that wait for a tick; None for an empty one."""
        positions, recalls = self._files.positions(time_ms)
        return Tick(positions, self._recalled(recalls)) if positions else None

    def _recalled(self, recalls: list[int]) -> set[str]:
        """Return the keys, topic+uniqueKey, that the recalls of a tick name: only of their own topics, because clients
        can write any.
        """
        units = (self._files.log.unit(position) for position in recalls)
        messages = (self._message(unit) for unit in units if unit is not None)
        named = (
            (one.properties[PROPERTY_REAL_TOPIC], one.properties.get(PROPERTY_TIMER_DEL_UNIQKEY, ""))
            for one in messages
            if one is not None
        )
        return {key for topic, key in named if key.startswith(f"{topic}+")}

    def deliver_some(self, tick: Tick, count: int) -> bool:
        """Deliver at most `count` messages of a tick; False if the store does not accept the next one now."""
        end = min(len(tick.positions), tick.next + count)
        alike = self._other_put is None
        while tick.next < end:
            alike = alike and self._deliver_together(tick, end)
            if tick.next < end and not self._deliver_next(tick):
                return False
        return True

    def _deliver_next(self, tick: Tick) -> bool:
        unit = self._files.log.unit(tick.positions[tick.next])
        if unit is not None and not is_recall(unit.magic) and not self._deliver_unit(tick, unit):
            return False
        tick.next += 1
        return True

    def _deliver_together(self, tick: Tick, end: int) -> bool:
        """Deliver the next messages of a tick in one write: those before one that has to be looked at by itself.

        Returns whether there may be others like them behind that.
        """
        copies = first_alike(self._plain_messages(tick, end))
        if len(copies) < 2:
            return False
        places = self._store.put_plain(together(copies))
        self._delivered_together(places)
        now = self._now_ms()
        for topic, count in Counter(place[0] for _, place, _ in copies[: len(places)]).items():
            self._files.metrics.add(topic, -count, now)
            self._taken(topic, count)
        self._stuck = self._stuck and not places
        tick.next += len(places)
        return True

    def _plain_messages(self, tick: Tick, end: int) -> Iterator[StoredMessage]:
        """Yield the next messages of a tick, with the timer's own properties, up to one that is not just due."""
        for unit, message in self._messages(tick.positions[tick.next : end]):
            if is_roll(unit.magic) or is_recall(unit.magic) or self._is_special(tick, unit, message):
                return
            message.properties |= self._own(str(unit.write_time))
            yield message

    def _messages(self, positions: Sequence[int]) -> Iterator[tuple[LogUnit, StoredMessage]]:
        """Yield units and their messages, up to one that is lost. Units that follow each other are of messages that follow
        each other in the timer's queue: those are read together.
        """
        behind: Iterator[memoryview | bytes] = iter(())
        for index, position in enumerate(positions):
            unit = self._files.log.unit(position)
            if unit is None:
                return
            message = _reached(behind, unit.physical_offset)
            if message is None:
                message = self._readable(unit)
                if message is None:
                    return
                count = _count_adjacent(positions, index)
                if count >= FEW:
                    offset = message.head.queue_offset + 1
                    result = self._store.get_message(TIMER_TOPIC, 0, offset, count, READ_BYTES, None)
                    behind = iter(result.records)
            yield unit, message

    def _is_special(self, tick: Tick, unit: LogUnit, message: StoredMessage) -> bool:
        """Return whether a message may be early, recalled, with another master, or delivered already."""
        due_ms = message.number(PROPERTY_TIMER_OUT_MS)
        return (
            (due_ms is not None and due_ms > self._now_ms())
            or self._is_recalled(tick, message)
            or self._has_escaped(message)
            or self._may_be_delivered(message, unit.slot_ms)
        )

    def _deliver_unit(self, tick: Tick, unit: LogUnit) -> bool:
        message = self._message(unit)
        if message is None:
            return True
        topic = message.properties[PROPERTY_REAL_TOPIC]
        if self._has_escaped(message):
            self._files.metrics.add(topic, -1, self._now_ms())
            return True
        if self._is_recalled(tick, message) and not is_roll(unit.magic):
            return True
        deliver = self._roll if is_roll(unit.magic) or self._is_early(message) else self.deliver
        if not deliver(message, str(unit.write_time), unit.slot_ms):
            return False
        self._files.metrics.add(topic, -1, self._now_ms())
        return True

    @staticmethod
    def _is_recalled(tick: Tick, message: StoredMessage) -> bool:
        if not tick.recalled:
            return False
        properties = message.properties
        topic, key = properties.get(PROPERTY_REAL_TOPIC), properties.get(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX)
        return f"{topic}+{key}" in tick.recalled

    def _is_early(self, message: StoredMessage) -> bool:
        """Return True if the message's own time is still ahead, whatever the timer's files say."""
        due_ms = message.number(PROPERTY_TIMER_OUT_MS)
        early = due_ms is not None and due_ms > self._now_ms()
        if early:
            self.log.error(
                "timer files have a message too early, it waits again: at={at}", at=message.head.physical_offset
            )
        return early

    def _message(self, unit: LogUnit) -> StoredMessage | None:
        message = self._readable(unit)
        if message is None:
            self.log.error("timed message is not in the log any more: at={at}", at=unit.physical_offset)
        return message

    def _readable(self, unit: LogUnit) -> StoredMessage | None:
        """Return the message of a unit; None if the log does not have it any more."""
        record = self._store.look_message(unit.physical_offset)
        try:
            message = None if record is None else StoredMessage.read(record)
        except RecordError:
            return None
        return message if message is not None and message.topic == TIMER_TOPIC and message.real_place else None

    def deliver(self, message: StoredMessage, enqueue_ms: str, tick_ms: int) -> bool:
        """Put the copy into the real queue; False if the store does not accept it now."""
        place = message.real_place
        assert place is not None
        return self._copy(message, place, message.properties.get(PROPERTY_TIMER_ROLL_TIMES), enqueue_ms, tick_ms)

    def _roll(self, message: StoredMessage, enqueue_ms: str, tick_ms: int) -> bool:
        """Put a message into the timer's topic again, because its time is still ahead."""
        return self._copy(message, (TIMER_TOPIC, 0), next_roll(message), enqueue_ms, tick_ms)

    def _copy(
        self, message: StoredMessage, place: tuple[str, int], rolls: str | None, enqueue_ms: str, tick_ms: int
    ) -> bool:
        if self._was_delivered(message, place, tick_ms, rolls):
            return True
        result = self._put(message, place, rolls, enqueue_ms)
        if result is None:
            return False  # on its way to another master
        if result.status is PutStatus.PUT_OK:
            if place[0] == TIMER_TOPIC and self._other_put is None:
                self.last_roll = result.queue_offset
        elif result.status in REFUSED_FOR_GOOD:
            self.log.error(
                "timed message refused by the store for good: topic={t} status={s} at={at}",
                t=place[0], s=result.status.name, at=message.head.physical_offset,
            )  # fmt: skip
        else:
            if not self._stuck:
                self.log.error(
                    "timed message not accepted by the store, retrying: topic={t} status={s}",
                    t=place[0], s=result.status.name,
                )  # fmt: skip
            self._stuck = True
            return False
        self._stuck = False
        self._taken(message.properties[PROPERTY_REAL_TOPIC], 1)
        return True

    def _put(
        self, message: StoredMessage, place: tuple[str, int], rolls: str | None, enqueue_ms: str
    ) -> PutResult | None:
        """Put a message with the timer's own properties; without them if there is no room left."""
        own = self._own(enqueue_ms)
        if rolls is not None:
            own[PROPERTY_TIMER_ROLL_TIMES] = rolls
        plain = message.properties
        message.properties = {**plain, **own}
        copy = message.copy_to(*place)
        message.properties = plain
        result = self._put_copy(copy)
        if result is not None and result.status is PutStatus.PROPERTIES_SIZE_EXCEEDED:
            copy = message.copy_to(*place)
            result = self._put_copy(copy)
        if result is not None and result.status is PutStatus.PUT_OK and self._other_put is None:
            self._delivered(copy, result)
        return result

    def _own(self, enqueue_ms: str) -> dict[str, str]:
        """Return the properties that tell when the timer got a message and gave it away."""
        return {PROPERTY_TIMER_ENQUEUE_MS: enqueue_ms, PROPERTY_TIMER_DEQUEUE_MS: str(self._now_ms())}

    def _put_copy(self, copy: InnerMessage) -> PutResult | None:
        return self._store.put_message(copy) if self._other_put is None else self._other_put(copy)

    def _was_delivered(self, message: StoredMessage, place: tuple[str, int], tick_ms: int, rolls: str | None) -> bool:
        """Return True if the log holds the copy. It can only do so for messages that were due before this start."""
        return self._may_be_delivered(message, tick_ms) and self.copies.take(message, *place, tick_ms, rolls)

    def _may_be_delivered(self, message: StoredMessage, tick_ms: int) -> bool:
        return message.head.physical_offset < self.copies.end_of_log and tick_ms <= self._started_ms


def _reached(records: Iterator[memoryview | bytes], physical_offset: int) -> StoredMessage | None:
    """Return the message at a place, which lies among or behind the next records; None if it is not among them."""
    for record in records:
        try:
            message = StoredMessage.read(record)
        except RecordError:
            continue
        if message.head.physical_offset >= physical_offset:
            return message if message.head.physical_offset == physical_offset else None
    return None


def _count_adjacent(positions: Sequence[int], index: int) -> int:
    """Return how many units follow the one at `index` without a gap."""
    end = index + 1
    while end < len(positions) and positions[end] - positions[end - 1] == LOG_UNIT_BYTES:
        end += 1
    return end - index - 1


def next_roll(message: StoredMessage) -> str:
    """Return TIMER_ROLL_TIMES for a message that is put into the topic again."""
    return str((message.number(PROPERTY_TIMER_ROLL_TIMES) or 0) + 1)
