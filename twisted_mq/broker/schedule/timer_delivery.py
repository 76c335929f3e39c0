"""Delivers messages whose time has come: those of one tick of the timer, in order (Apache: TimerDequeueGetMessageService,
TimerDequeuePutMessageService).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable

import attrs

from twisted_mq.broker.schedule.delivered_copies import REFUSED_FOR_GOOD, Delivered, DeliveredCopies, Put
from twisted_mq.broker.stored_message import StoredMessage
from twisted_mq.logs import Logger
from twisted_mq.protocol.errors import RecordError
from twisted_mq.protocol.layouts.timer import LogUnit
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
from twisted_mq.storage.interfaces import IMessageStore, InnerMessage, PutResult, PutStatus
from twisted_mq.storage.timer.timer_files import TimerFiles, is_recall, is_roll

NEVER_ENQUEUED = str(2**63 - 1)
"""TIMER_ENQUEUE_MS of a message that came after its tick."""


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
        taken: Callable[[str], None] = lambda topic: None,
        put: Put | None = None,
        has_escaped: Callable[[StoredMessage], bool] = lambda message: False,
    ) -> None:
        """Create the delivery. `delivered` is called with each stored copy, `taken` with the topic of each message that
        left the timer.

        `put` takes the copies in place of the store; `has_escaped` says which messages another master has.
        """
        self._store = store
        self._other_put = put
        self._has_escaped = has_escaped
        self._files = files
        self._now_ms = now_ms
        self._delivered = delivered
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
        while tick.next < end:
            unit = self._files.log.unit(tick.positions[tick.next])
            if unit is not None and not is_recall(unit.magic) and not self._deliver_unit(tick, unit):
                return False
            tick.next += 1
        return True

    def _deliver_unit(self, tick: Tick, unit: LogUnit) -> bool:
        message = self._message(unit)
        if message is None:
            return True
        topic = message.properties[PROPERTY_REAL_TOPIC]
        if self._has_escaped(message):
            self._files.metrics.add(topic, -1, self._now_ms())
            return True
        key = message.properties.get(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX)
        if f"{topic}+{key}" in tick.recalled and not is_roll(unit.magic):
            return True
        deliver = self._roll if is_roll(unit.magic) or self._is_early(message) else self.deliver
        if not deliver(message, str(unit.write_time), unit.slot_ms):
            return False
        self._files.metrics.add(topic, -1, self._now_ms())
        return True

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
        record = self._store.look_message(unit.physical_offset)
        try:
            message = None if record is None else StoredMessage.read(record)
        except RecordError:
            message = None
        if message is None or message.topic != TIMER_TOPIC or message.real_place is None:
            self.log.error("timed message is not in the log any more: at={at}", at=unit.physical_offset)
            return None
        return message

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
        self._taken(message.properties[PROPERTY_REAL_TOPIC])
        return True

    def _put(
        self, message: StoredMessage, place: tuple[str, int], rolls: str | None, enqueue_ms: str
    ) -> PutResult | None:
        """Put a message with the timer's own properties; without them if there is no room left."""
        own = {PROPERTY_TIMER_ENQUEUE_MS: enqueue_ms, PROPERTY_TIMER_DEQUEUE_MS: str(self._now_ms())}
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

    def _put_copy(self, copy: InnerMessage) -> PutResult | None:
        return self._store.put_message(copy) if self._other_put is None else self._other_put(copy)

    def _was_delivered(self, message: StoredMessage, place: tuple[str, int], tick_ms: int, rolls: str | None) -> bool:
        """Return True if the log holds the copy. It can only do so for messages that were due before this start."""
        if message.head.physical_offset >= self.copies.end_of_log or tick_ms > self._started_ms:
            return False
        return self.copies.take(message, *place, tick_ms, rolls)


def next_roll(message: StoredMessage) -> str:
    """Return TIMER_ROLL_TIMES for a message that is put into the topic again."""
    return str((message.number(PROPERTY_TIMER_ROLL_TIMES) or 0) + 1)
