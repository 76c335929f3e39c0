"""Delivers the messages of the delay levels, each level's queue in order (Apache: ScheduleMessageService).

Level n waits in queue n - 1 of SCHEDULE_TOPIC_XXXX. The first message of a queue that is not due yet holds the others
back: they were stored later, so they are due later. Offsets count messages of those queues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from twisted_mq.broker.schedule.copies_together import first_alike, together
from twisted_mq.broker.schedule.delivered_copies import REFUSED_FOR_GOOD, Delivered, DeliveredCopies, Put
from twisted_mq.broker.stored_message import StoredMessage
from twisted_mq.logs import Logger
from twisted_mq.protocol.errors import RecordError
from twisted_mq.protocol.messages.delay_levels import delivery_time, parse_delay_levels
from twisted_mq.protocol.names.system_topics import SCHEDULE_TOPIC
from twisted_mq.storage.interfaces import (
    GetResult,
    GetStatus,
    IMessageStore,
    InnerMessage,
    Places,
    PutResult,
    PutStatus,
)
from twisted_mq.storage.tables.escaped_table import EscapedTable
from twisted_mq.storage.tables.small_tables import DelayOffsetTable

MESSAGES_A_TURN = 32
"""Messages of one level in a turn; a level with more goes on in its next turn, so that the others and the clients get theirs."""
_READ_BYTES = 1 << 20
_QUIET = (GetStatus.OFFSET_OVERFLOW_ONE, GetStatus.NO_MESSAGE_IN_QUEUE)


class ScheduleMessageService:
    """Delivers the delay levels. `table` keeps the offsets on disk (twisted_mq.storage.tables.small_tables); `turn`
    is called repeatedly.
    """

    log = Logger()

    def __init__(
        self,
        store: IMessageStore,
        table: DelayOffsetTable,
        levels: str,
        now_ms: Callable[[], int],
        version_step: int = 200,
        *,
        delivered: Delivered = lambda message, result: None,
        delivered_together: Callable[[int, Places], None] = lambda level, places: None,
        put: Put | None = None,
        escaped: EscapedTable | None = None,
    ) -> None:
        """Create the service. `delivered` is called with each copy that was stored by itself, `delivered_together` with a
        level and the places of copies that were stored in one write.

        `put` takes the copies in place of the store: other masters do, for a slave that acts for its master. `escaped` has
        the messages that were taken so.
        """
        self._store = store
        self._other_put = put
        self._escaped = escaped
        self._table = table
        self._delays = parse_delay_levels(levels)
        self._now_ms = now_ms
        self._version_step = version_step
        self._delivered = delivered
        self._delivered_together = delivered_together
        self.moves = 0
        self._due: dict[int, int] = {}
        self._stuck: dict[int, int] = {}
        self._failing: set[int] = set()
        self._looked_ms = 0
        self.offsets: dict[int, int] = dict(table.offsets)
        self.data_version = table.data_version

    @property
    def levels(self) -> list[int]:
        """Return the configured levels, and those in which earlier configurations left messages."""
        queues = self._store.queue_ids(SCHEDULE_TOPIC)
        return sorted({*self._delays, *(queue_id + 1 for queue_id in queues)})

    # at start

    def start(self) -> None:
        """Bring the offsets into the queues' range, and past the messages that the log shows as delivered. Raises OSError."""
        self._bound()
        copies = DeliveredCopies(self._store, self._table.log_offset)
        for level in self.levels:
            offset = self.offsets.get(level)
            queue_min = self._store.min_offset_in_queue(SCHEDULE_TOPIC, level - 1)
            queue_max = self._store.max_offset_in_queue(SCHEDULE_TOPIC, level - 1)
            if offset is not None and not queue_min <= offset <= queue_max:
                self._corrected(level, offset, max(queue_min, min(offset, queue_max)))
            before = self.offsets.get(level, 0)
            while self._pass_delivered(level, copies):
                continue
            passed = self.offsets.get(level, 0) - before
            if passed:
                self.log.info(
                    "delayed messages were delivered before the restart: level={delay_level} count={n}",
                    delay_level=level,
                    n=passed,
                )

    def _bound(self) -> None:
        """Lower the offsets past the end of their queue, on disk too: other messages will get the lost offsets."""
        ends = {level: self._store.max_offset_in_queue(SCHEDULE_TOPIC, level - 1) for level in self.offsets}
        lowered = {level: ends[level] for level, offset in self.offsets.items() if offset > ends[level]}
        for level, end in lowered.items():
            self._corrected(level, self.offsets[level], end)
        if lowered:
            table, log_end = self._table, self._store.max_physical_offset()
            table.offsets = {**table.offsets, **lowered}
            table.log_offset = None if table.log_offset is None else min(table.log_offset, log_end)
            table.save_with_backup()

    def _pass_delivered(self, level: int, copies: DeliveredCopies) -> bool:
        """Move past the level's next messages that were delivered; True if more may follow."""
        offset = self.offsets.get(level, 0)
        result = self._read(level, offset)
        for record in result.records:
            message = self._message(level, record)
            if message is None:
                continue
            now, due_ms = self._now_ms(), self._due_ms(level, message.head.store_timestamp)
            if self._table.log_offset is None and self._waits(level, due_ms, now):
                return False
            since_ms = due_ms if due_ms <= now else min(due_ms, message.head.born_timestamp)
            if not (self._has_escaped(level, message) or self._was_delivered(message, copies, since_ms)):
                return False
            self._moved(level, message.head.queue_offset + 1)
        return bool(result.records)

    @staticmethod
    def _was_delivered(message: StoredMessage, copies: DeliveredCopies, since_ms: int) -> bool:
        place = message.real_place
        return place is not None and copies.take(message, *place, since_ms)

    def _has_escaped(self, level: int, message: StoredMessage) -> bool:
        """Return whether another master has the message."""
        return self._escaped is not None and self._escaped.has_of_level(level, message.head.queue_offset)

    # delivery

    def turn(self) -> bool:
        """Deliver what is due; True if more is due at once. A level that fails does not delay the others."""
        now = self._now_ms()
        if now < self._looked_ms:
            self._due.clear()
        self._looked_ms = now
        more = False
        for level in self.levels:
            end = self._store.max_offset_in_queue(SCHEDULE_TOPIC, level - 1)
            if self._due.get(level, 0) <= now and self.offsets.get(level, 0) != end:
                more |= self._try(level, now)
        return more

    def _try(self, level: int, now: int) -> bool:
        try:
            more = self._deliver(level, now)
        except Exception:
            if level not in self._failing:
                self.log.failure("delivery of a delay level failed, retrying: level={delay_level}", delay_level=level)
            self._failing.add(level)
            return False
        self._failing.discard(level)
        return more

    def _deliver(self, level: int, now: int) -> bool:
        offset = self.offsets.get(level, 0)
        result = self._read(level, offset)
        if not result.records:
            return self._pass_by(level, offset, result)
        left, alike = [*result.records], True
        while left:
            if alike:
                taken, alike = self._deliver_together(level, left, now)
                del left[:taken]
            if left and not self._deliver_one(level, left.pop(0), now):
                return False
        return True

    def _deliver_one(self, level: int, record: memoryview | bytes, now: int) -> bool:
        """Deliver a message if it is due; False if it is not, or if the store does not accept it now."""
        message = self._message(level, record)
        if message is None:
            return True
        due_ms = self._due_ms(level, message.head.store_timestamp)
        if self._waits(level, due_ms, now):
            self._due[level] = due_ms
            return False
        if not (self._has_escaped(level, message) or self._put(level, message)):
            return False
        self._moved(level, message.head.queue_offset + 1)
        return True

    def _deliver_together(self, level: int, records: Sequence[memoryview | bytes], now: int) -> tuple[int, bool]:
        """Deliver the first messages in one write. Return how many: those before one that has to be looked at by itself, and
        whether there may be others like them behind that.
        """
        if self._other_put is not None:
            return 0, False
        copies = first_alike(self._due_messages(level, records, now))
        if len(copies) < 2:
            return 0, False
        places = self._store.put_plain(together(copies))
        self._delivered_together(level, places)
        if places:
            last, _, _ = copies[len(places) - 1]
            self._moved(level, last.head.queue_offset + 1, len(places))
        return len(places), True

    def _due_messages(self, level: int, records: Iterable[memoryview | bytes], now: int) -> Iterator[StoredMessage]:
        """Yield the first messages, up to one that waits, see `_waits`, or that another master has, or that cannot be read."""
        escaped = self._escaped if self._escaped is not None and self._escaped.levels else None
        latest = now - self._delay(level)
        for record in records:
            try:
                message = StoredMessage.read(record)
            except RecordError:
                return
            head = message.head
            if latest < head.store_timestamp <= now:
                return
            if escaped is not None and escaped.has_of_level(level, head.queue_offset):
                return
            yield message

    def _read(self, level: int, offset: int) -> GetResult:
        return self._store.get_message(SCHEDULE_TOPIC, level - 1, offset, MESSAGES_A_TURN, _READ_BYTES, None)

    def _pass_by(self, level: int, offset: int, result: GetResult) -> bool:
        """Move past an offset without a message, to where there may be one."""
        if result.next_begin_offset == offset:
            return False
        if result.status not in _QUIET or offset > result.max_offset:
            self._corrected(level, offset, result.next_begin_offset)
        return result.status not in _QUIET

    def _message(self, level: int, record: memoryview | bytes) -> StoredMessage | None:
        try:
            return StoredMessage.read(record)
        except RecordError as error:
            self.log.error(
                "delayed message cannot be read: level={delay_level} error={error}", delay_level=level, error=error
            )
            self._moved(level, self.offsets.get(level, 0) + 1)
            return None

    def _delay(self, level: int) -> int:
        return delivery_time(level, 0, self._delays)

    def _due_ms(self, level: int, store_timestamp: int) -> int:
        return delivery_time(level, store_timestamp, self._delays)

    def _waits(self, level: int, due_ms: int, now: int) -> bool:
        """Return True if a message waits. One further away than the level's delay was stored while a clock was ahead: it
        does not wait.
        """
        return now < due_ms <= now + self._delay(level)

    def _put(self, level: int, message: StoredMessage) -> bool:
        """Put the copy into the real queue; False if the store does not accept it now."""
        head, place = message.head, message.real_place
        if place is None:
            self.log.error(
                "delayed message without a real queue skipped: level={delay_level} offset={offset} physicalOffset={at}",
                delay_level=level, offset=head.queue_offset, at=head.physical_offset,
            )  # fmt: skip
            return True
        copy = message.copy_to(*place)
        result = self._put_copy(copy)
        if result is None:
            return False  # on its way to another master
        if result.status is PutStatus.PUT_OK:
            if self._other_put is not None and self._escaped is not None:
                self._escaped.note_level(level, head.queue_offset, (head.physical_offset, head.store_timestamp))
            else:
                self._delivered(copy, result)
            return True
        if result.status in REFUSED_FOR_GOOD:
            self.log.error(
                "delayed message refused by the store for good: level={delay_level} offset={offset} topic={topic}"
                " status={status}",
                delay_level=level, offset=head.queue_offset, topic=place[0], status=result.status.name,
            )  # fmt: skip
            return True
        if self._stuck.get(level) != head.queue_offset:
            self._stuck[level] = head.queue_offset
            self.log.error(
                "delayed message not accepted by the store, retrying: level={delay_level} offset={offset} topic={topic}"
                " status={status}",
                delay_level=level, offset=head.queue_offset, topic=place[0], status=result.status.name,
            )  # fmt: skip
        return False

    def _put_copy(self, copy: InnerMessage) -> PutResult | None:
        return self._store.put_message(copy) if self._other_put is None else self._other_put(copy)

    # offsets

    def _corrected(self, level: int, offset: int, right: int) -> None:
        self.log.warn(
            "delay offset corrected: level={delay_level} from={offset} to={right}",
            delay_level=level,
            offset=offset,
            right=right,
        )
        self._moved(level, right)

    def _moved(self, level: int, offset: int, count: int = 1) -> None:
        self.offsets[level] = offset
        steps = self.moves // self._version_step
        self.moves += count
        for _ in range(steps, self.moves // self._version_step):
            self.data_version = self.data_version.next_version(self._now_ms())

    def running_stats(self) -> dict[str, str]:
        """Return rows for the broker's runtime info: `scheduleMessageOffset_1` is "20,25", delivered up to and stored up to."""
        return {
            f"scheduleMessageOffset_{level}": f"{offset},{self._store.max_offset_in_queue(SCHEDULE_TOPIC, level - 1)}"
            for level, offset in sorted(self.offsets.items())
        }

    def snapshot(self) -> Callable[[], None]:
        """Return a function that writes the offsets as they are now; call it once the log is on disk up to its present end.

        An offset on disk says that copies need not be made, so it must not get there before them.
        """
        offsets, version, end = dict(self.offsets), self.data_version, self._store.max_physical_offset()

        def save() -> None:
            self._table.offsets, self._table.data_version, self._table.log_offset = offsets, version, end
            self._table.save()

        return save
