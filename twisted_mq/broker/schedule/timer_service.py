"""Delivers messages at any time, to the tick of a second (Apache: TimerMessageStore).

Messages wait in queue 0 of rmq_sys_wheel_timer. The timer's files record each for its tick, TIMER_OUT_MS. If that is
further away than the roll window, they record it for a tick on the way, at which it is put into the topic again. A tick
is delivered once it is over. A recall is a message of the same tick that names another one, which is then dropped.

Only the messages of the current tick are in memory, with 8 bytes each; the others wait on disk.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable

from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.schedule.delivered_copies import Delivered, Put
from twisted_mq.broker.schedule.timer_delivery import NEVER_ENQUEUED, READ_BYTES, Tick, TimerDelivery, next_roll
from twisted_mq.broker.statistics.delivery_counts import TimerCounts
from twisted_mq.broker.stored_message import StoredMessage
from twisted_mq.logs import Logger
from twisted_mq.protocol.errors import RecordError
from twisted_mq.protocol.layouts.timer import MAGIC_DEFAULT, MAGIC_DELETE, MAGIC_ROLL
from twisted_mq.protocol.names.system_topics import TIMER_TOPIC
from twisted_mq.protocol.text.java import java_hash
from twisted_mq.protocol.text.properties import PROPERTY_REAL_TOPIC, PROPERTY_TIMER_DEL_UNIQKEY, PROPERTY_TIMER_OUT_MS
from twisted_mq.storage.errors import StoreFull
from twisted_mq.storage.interfaces import GetStatus, IMessageStore, Places
from twisted_mq.storage.tables.escaped_table import EscapedTable
from twisted_mq.storage.timer.timer_files import TimerFiles, TimerProgress

MESSAGES_A_TURN = 64
TICKS_A_TURN = 20_000
"""Empty ticks that are passed in one turn: after a stop of a day there are 86,400."""
SPARE_TICKS = 60
"""Slots of the wheel that are never used (Apache: TIMER_BLANK_SLOTS)."""
_topic_hash = functools.lru_cache(maxsize=4096)(java_hash)


MOST_AHEAD_MS = 86_400_000
"""The most that a clock may have been set back behind the checkpoint; a checkpoint further ahead is damaged, here or at
the master.
"""


class TimerService:
    """Delivers the timer's messages. `files` are open from `start` to `close`; `turn` is called repeatedly.

    `read_ms` is the first tick that is not delivered whole, `queue_offset` the first message that is not recorded;
    `changes` counts changes that are worth saving, `counts` what was recorded and taken since the start.
    """

    log = Logger()

    def __init__(
        self,
        store: IMessageStore,
        files: TimerFiles,
        options: BrokerOptions,
        now_ms: Callable[[], int],
        delivered: Delivered = lambda message, result: None,
        delivered_together: Callable[[Places], None] = lambda places: None,
        put: Put | None = None,
        escaped: EscapedTable | None = None,
    ) -> None:
        """Create the service. `delivered` is called with each copy that was stored by itself, `delivered_together` with
        the places of copies that were stored in one write.

        `put` takes the copies in place of the store; `escaped` has the messages that other masters have taken.
        """
        self._store = store
        self._put_copy = put
        self._escaped = escaped
        self._options = options
        self._delivered = delivered
        self._delivered_together = delivered_together
        self._now_ms = now_ms
        self._precision_ms = options.timer_precision_ms
        longest = files.wheel.slot_count // 2 - SPARE_TICKS
        window = options.timer_roll_window_slot
        self._window = window if 2 <= window <= longest else longest
        self._delivery: TimerDelivery
        self._tick: Tick | None = None
        self._known_offset = self._known_read_ms = 0
        self._stored_until_ms = 0
        self._caught_up = False
        self._full = False
        self._noted = Counter[str]()
        self.counts = TimerCounts()
        self.files = files
        self.queue_offset = 0
        self.read_ms = 0
        self.changes = 0

    # at start

    def start(self, *, clean: bool) -> None:
        """Continue where the log and the files say that it ended. Raises OSError."""
        store, files = self._store, self.files
        self._delivery = TimerDelivery(
            store,
            files,
            self._now_ms,
            self._delivered,
            self._delivered_together,
            self.counts.take,
            self._put_copy,
            self._has_escaped,
        )
        low, high = store.min_offset_in_queue(TIMER_TOPIC, 0), store.max_offset_in_queue(TIMER_TOPIC, 0)
        files.open(
            clean=clean,
            end_of_commit_log=store.max_physical_offset(),
            end_of_queue=high,
            latest_read_ms=self._now_ms() + MOST_AHEAD_MS,
        )
        checkpoint = files.checkpoint
        self._known_offset = checkpoint.last_timer_queue_offset
        self._known_read_ms = checkpoint.last_read_time_ms
        self.read_ms = self._floor(checkpoint.last_read_time_ms or self._first_tick())
        self.queue_offset = 0 if files.rebuilt else self._next_queue_offset()
        self.queue_offset = max(low, min(self.queue_offset, high))
        if high:
            self.log.info(
                "timer continues: readMs={read} queueOffset={offset} queueEnd={end} rebuilt={rebuilt}",
                read=self.read_ms, offset=self.queue_offset, end=high, rebuilt=files.rebuilt,
            )  # fmt: skip

    def _first_tick(self) -> int:
        """Return the first tick without a checkpoint: now, or when the first message that may still wait was stored."""
        stored = self._store.earliest_message_time(TIMER_TOPIC, 0)
        now = self._now_ms()
        return min(now, stored) if stored >= 0 else now

    def _next_queue_offset(self) -> int:
        """Return the offset after the message of the log's last unit; the checkpoint may be further, never wrongly so."""
        at = self.files.last_physical_offset()
        return max(self._offset_after(None if at is None else self._store.look_message(at)), self._known_offset)

    @staticmethod
    def _offset_after(record: memoryview | bytes | None) -> int:
        """Return the queue offset after a record's; 0 if it cannot be read."""
        try:
            return StoredMessage.read(record).head.queue_offset + 1 if record is not None else 0
        except RecordError:
            return 0

    def _floor(self, time_ms: int) -> int:
        return time_ms // self._precision_ms * self._precision_ms

    # turns

    def turn(self) -> bool:
        """Record new messages and deliver what is due; True if more is to do at once.

        A tick is delivered when all messages for it are recorded. A message is stored before its tick is over, so later
        messages are for later ticks.
        """
        now = self._floor(self._now_ms())
        must_be_read = now + (self._window + SPARE_TICKS) * self._precision_ms - self.files.wheel.span_ms
        if self.read_ms < must_be_read:
            return self._dequeue(must_be_read) or self.read_ms >= must_be_read
        self._caught_up = True
        more = not self._options.timer_stop_enqueue and self._enqueue()
        if not self._options.timer_stop_dequeue:
            more |= self._dequeue(now if self._caught_up else min(now, self._floor(self._stored_until_ms)))
        return more

    def _enqueue(self) -> bool:
        """Record the next messages of the timer's topic; True if there may be more."""
        offset = self.queue_offset
        result = self._store.get_message(TIMER_TOPIC, 0, offset, MESSAGES_A_TURN, READ_BYTES, None)
        self._caught_up = result.status is not GetStatus.FOUND
        try:
            for record in result.records:
                if not self._take(record):
                    return False
                self.changes += 1
        finally:
            self._count_noted()
        if not result.records and result.next_begin_offset != offset:
            self.log.warn("timer offset corrected: from={a} to={b}", a=offset, b=result.next_begin_offset)
            self.queue_offset = result.next_begin_offset
        return result.status is GetStatus.FOUND

    def _take(self, record: memoryview | bytes) -> bool:
        """Record one message; False if that cannot be done now."""
        try:
            message = StoredMessage.read(record)
        except RecordError as error:
            self.log.error(
                "timed message cannot be read: offset={offset} error={error}", offset=self.queue_offset, error=error
            )
            self.queue_offset += 1
            return True
        head = message.head
        due_ms = message.number(PROPERTY_TIMER_OUT_MS)
        if due_ms is None or message.real_place is None:
            self.log.error(
                "message without time or queue in the timer's topic skipped: at={at}", at=head.physical_offset
            )
        elif not self._note(message, self._floor(due_ms)):
            return False
        else:
            self.counts.note(message.properties[PROPERTY_REAL_TOPIC], due_ms - head.born_timestamp)
        self.queue_offset = head.queue_offset + 1
        self._stored_until_ms = head.store_timestamp
        return True

    def _has_escaped(self, message: StoredMessage) -> bool:
        """Return whether another master has the message."""
        if self._escaped is None or not self._escaped.ticks:
            return False
        due_ms = message.number(PROPERTY_TIMER_OUT_MS)
        return due_ms is not None and self._escaped.has_of_timer(message.head.queue_offset, self._floor(due_ms))

    def _note(self, message: StoredMessage, due_ms: int) -> bool:
        head, properties = message.head, message.properties
        if self._has_escaped(message):
            return True
        is_delete = PROPERTY_TIMER_DEL_UNIQKEY in properties
        if due_ms < self.read_ms or (due_ms == self.read_ms and self._tick is not None):
            handled = head.queue_offset < self._known_offset and due_ms < self._known_read_ms
            if is_delete or handled:
                return True
            return self._delivery.deliver(message, NEVER_ENQUEUED, due_ms)
        now = self._floor(self._now_ms())
        tick_ms, magic = self._tick_of(due_ms, now)
        if self._has_rolled(message, due_ms):
            return True
        try:
            self.files.add(
                tick_ms, now, magic | (MAGIC_DELETE if is_delete else 0), head.physical_offset, head.size,
                _topic_hash(properties[PROPERTY_REAL_TOPIC]),
            )  # fmt: skip
        except StoreFull as error:
            if not self._full:
                self.log.error("timer accepts no messages: {error}", error=error)
            self._full = True
            return False
        self._full = False
        self._noted[properties[PROPERTY_REAL_TOPIC]] += -1 if is_delete else 1
        return True

    def _count_noted(self) -> None:
        """Add what was put on the wheel to the numbers of waiting messages, once a turn."""
        for topic, number in self._noted.items():
            self.files.metrics.add(topic, number, self._now_ms())
        self._noted.clear()

    def _tick_of(self, due_ms: int, now: int) -> tuple[int, int]:
        """Return the tick to wait for, and its magic (Apache: TimerMessageStore.doEnqueue)."""
        window_ms = self._window * self._precision_ms
        ahead_ms = due_ms - now
        if ahead_ms < window_ms:
            return due_ms, MAGIC_DEFAULT
        if ahead_ms - window_ms < self._window // 3 * self._precision_ms:
            return now + self._window // 2 * self._precision_ms, MAGIC_DEFAULT | MAGIC_ROLL
        return now + window_ms, MAGIC_DEFAULT | MAGIC_ROLL

    def _has_rolled(self, message: StoredMessage, due_ms: int) -> bool:
        """Return True if a later message of the topic replaces this one, when messages are recorded again after a kill."""
        head = message.head
        copies = self._delivery.copies
        if head.physical_offset >= copies.end_of_log:
            return False
        if due_ms - head.store_timestamp < (self._window - 1) * self._precision_ms:
            return False
        return copies.take(message, TIMER_TOPIC, 0, head.store_timestamp, next_roll(message))

    # delivery

    def _dequeue(self, end: int) -> bool:
        """Deliver the ticks before `end`; True if more is to do at once."""
        left = MESSAGES_A_TURN
        for _ in range(TICKS_A_TURN):
            if self.read_ms >= end or self.queue_offset <= self._delivery.last_roll:
                return False
            tick = self._tick = self._tick or self._delivery.tick(self.read_ms)
            if tick is not None:
                before = tick.next
                taken = self._delivery.deliver_some(tick, left)
                left -= tick.next - before
                self.changes += 1
                if not taken:
                    return False
                if tick.next < len(tick.positions):
                    return True
                self._tick = None
            self.read_ms += self._precision_ms
            if left <= 0:
                return True
        return True

    @property
    def end_of_taken(self) -> int:
        """Return the offset in the timer's queue after the last message of the tick `read_ms` that was taken; 0 before any."""
        tick = self._tick
        unit = self.files.log.unit(tick.positions[tick.next - 1]) if tick is not None and tick.next else None
        record = None if unit is None else self._store.look_message(unit.physical_offset)
        return self._offset_after(record)

    def has_caught_up(self) -> bool:
        """Return True if everything that was due, or stored, a tick ago is delivered or recorded."""
        before = self._now_ms() - 2 * self._precision_ms
        next_stored = self._store.store_timestamp(TIMER_TOPIC, 0, self.queue_offset)
        return self.read_ms > before and not 0 <= next_stored <= before

    # on disk

    def progress(self) -> TimerProgress:
        """Return the progress, to be written once the commit log is on disk up to its present end."""
        return self.files.progress(self.read_ms, self.queue_offset, self._now_ms())

    def clean(self) -> None:
        """Delete log files whose messages have left the commit log."""
        self.files.log.delete_before(self._store.min_physical_offset())
