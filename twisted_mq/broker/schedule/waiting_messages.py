"""Runs the broker's waiting messages as a whole: started and stopped with it, their progress kept on disk.

The progress on disk says which messages need no delivery, so it is written once the commit log, with the copies in it, is
on disk up to that moment. A slave delivers nothing; its master does. While a slave acts for a lost master, other masters take
what comes due, and the table of escaped messages says which messages they have.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Protocol

from twisted.internet import defer, interfaces

from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.schedule.delivered_copies import Put
from twisted_mq.broker.schedule.delivery_loop import DeliveryLoop
from twisted_mq.broker.schedule.schedule_service import ScheduleMessageService
from twisted_mq.broker.schedule.timer_service import TimerService
from twisted_mq.broker.statistics.broker_statistics import BrokerStatistics
from twisted_mq.broker.statistics.delivery_counts import DeliveryCounts
from twisted_mq.protocol.bodies import DataVersion
from twisted_mq.protocol.names.system_topics import SCHEDULE_TOPIC, TIMER_TOPIC
from twisted_mq.reactor_threads import InThread, at_once
from twisted_mq.storage.interfaces import IMessageStore, InnerMessage, PutResult
from twisted_mq.storage.tables.escaped_table import EscapedLevel, EscapedMessages, EscapedTable, LastMessage
from twisted_mq.storage.tables.small_tables import DelayOffsetTable
from twisted_mq.storage.timer.timer_checkpoint import TimerCheckpoint
from twisted_mq.storage.timer.timer_files import TimerFiles

NOTE_SECONDS = 1.0
"""The interval at which an acting slave writes what escaped. What escaped since is sent again after it was killed."""
ACTING_VERSION_STEP = 1
"""Deliveries of an acting slave per data version: Apache's returning master takes progress over from a newer one only."""


class WaitingParts(Protocol):
    """The parts of the broker whose messages wait."""

    options: BrokerOptions
    clock: interfaces.IReactorTime
    now_ms: Callable[[], int]
    wall_ms: Callable[[], int]
    store: IMessageStore
    statistics: BrokerStatistics

    def dispatch(self) -> bool: ...

    def flushed(self, offset: int) -> defer.Deferred[bool]: ...


class WaitingMessages:
    """The waiting messages. Create it when the store is open, before the first client comes; call `save` once the store
    is closed.

    `clean` is True if the last broker stopped the store properly; `in_thread` runs work that waits for the disk.
    `times` is True if the timer runs: on a slave only while it acts for a lost master.
    """

    def __init__(
        self,
        broker: WaitingParts,
        delay_offset_table: DelayOffsetTable,
        escaped: EscapedTable,
        *,
        clean: bool = False,
        in_thread: InThread = at_once,
    ) -> None:
        options = broker.options
        self._broker = broker
        self._table = delay_offset_table
        self.escaped = escaped
        self._in_thread = in_thread
        self._delivers = not options.is_slave
        self._saved_moves = self._saved_changes = 0
        self._began_ms = self._timed_taken = 0
        self._noted_at = 0.0
        self._writing = defer.DeferredLock()
        """Held by a thread that writes the timer's files: each goes to a new file under one name first."""
        self.times = self._delivers and options.timer_wheel_enable
        self._trust_escaped()
        self.schedule = self._schedule()
        self.timer = self._timer()
        self._loop = self._prepared(broker.dispatch, clean=clean)
        self._hold: Callable[[], Awaitable[None]] | None = None

    def _schedule(self, put: Put | None = None) -> ScheduleMessageService:
        broker, options = self._broker, self._broker.options
        counts = DeliveryCounts(broker.statistics, SCHEDULE_TOPIC)
        return ScheduleMessageService(
            broker.store,
            self._table,
            options.message_delay_level,
            broker.wall_ms,
            options.delay_offset_update_version_step if put is None else ACTING_VERSION_STEP,
            delivered=counts.add,
            delivered_together=counts.add_together,
            put=put,
            escaped=self.escaped,
        )

    def _timer(self, put: Put | None = None) -> TimerService:
        broker, options = self._broker, self._broker.options
        counts = DeliveryCounts(broker.statistics, TIMER_TOPIC)
        return TimerService(
            broker.store,
            timer_files(options),
            options,
            broker.now_ms,
            delivered=counts.add,
            delivered_together=partial(counts.add_together, 1),
            put=put,
            escaped=self.escaped,
        )

    def _prepared(self, after: Callable[[], object], *, clean: bool) -> DeliveryLoop:
        """Start what delivers; return the loop that runs it, which does not run yet."""
        turns = [self.schedule.turn]
        if self._delivers:
            self.schedule.start()
        if self.times:
            self.timer.start(clean=clean)
            turns.append(self.timer.turn)
        return DeliveryLoop(self._broker.clock, turns, after)

    def crowd(self, deliver_ms: int) -> int:
        """Return how many messages wait for a second."""
        return self.timer.files.count(deliver_ms) if self.times else 0

    def start(self) -> None:
        """Deliver from now on."""
        if self._delivers:
            self._loop.start()

    def stop(self) -> None:
        """Deliver nothing more. A second call does nothing."""
        self._loop.stop()

    def save(self) -> None:
        """Write the progress and close the files; the log is on disk up to its end. Tries all, then raises OSError."""
        with contextlib.ExitStack() as each:
            each.callback(self.close)
            if self.times and self.timer.changes:
                each.callback(self.timer.files.write, self.timer.progress())
            if self._delivers:
                each.callback(self.schedule.snapshot())

    def close(self) -> None:
        """Close the files without writing the progress, because the log may lack the copies. Raises OSError."""
        self.timer.files.close()

    def save_delay_offsets(self) -> defer.Deferred[None]:
        """Write the progress of the delay levels."""
        moves = self.schedule.moves
        if not self._delivers or moves == self._saved_moves:
            return defer.succeed(None)
        save = self.schedule.snapshot()

        def saved(done: bool) -> None:
            if done:
                save()
                self._saved_moves = moves

        return self._flushed().addCallback(saved)

    def save_timer(self) -> defer.Deferred[None]:
        """Write the progress of the timer, and what it recorded."""
        changes = self.timer.changes
        if not self.times or changes == self._saved_changes:
            return defer.succeed(None)
        timer, progress = self.timer, self.timer.progress()

        async def save() -> None:
            if not await self._flushed():
                return
            async with self._writing:
                if self.times and timer is self.timer:
                    await self._in_thread(timer.files.write, progress)
                    self._saved_changes = changes

        return defer.Deferred.fromCoroutine(save())

    # in place of a lost master

    def act(self, put: Put, hold: Callable[[], Awaitable[None]]) -> None:
        """Have other masters take what comes due from now on: `put` and `hold` are an EscapeBridge's.

        The timer's files are made again from its topic: the master's checkpoint says what it delivered, and whether the
        copies are here, the log knows.
        """
        options = self._broker.options
        shutil.rmtree(os.path.join(options.store_path_root_dir, "timerlog"), ignore_errors=True)
        self._delivers, self.times = True, options.timer_wheel_enable
        self._hold = hold
        self._saved_moves = self._saved_changes = self._timed_taken = 0
        self._trust_escaped()

        def put_timed(message: InnerMessage) -> PutResult | None:
            result = put(message)
            self._timed_taken += result is not None
            return result

        self.schedule, self.timer = self._schedule(put), self._timer(put_timed)
        self._loop = self._prepared(self._note_now_and_then, clean=False)
        self._began_ms = self.timer.read_ms
        self._loop.start()

    def wake(self) -> None:
        """Go on: a message on its way to another master has arrived, or failed."""
        self._loop.wake()

    def cease(self) -> defer.Deferred[None]:
        """Deliver nothing more: the master is back. Fires when how far this slave came is on disk."""
        if not self._delivers:
            return defer.succeed(None)
        self._loop.stop()
        self._note()
        self._delivers, self.times, self._hold = False, False, None
        write_offsets, timer, progress = self.schedule.snapshot(), self.timer, self.timer.progress()

        async def save() -> None:
            flushed = await self._flushed()
            if flushed and not self._delivers:
                write_offsets()
            if self._broker.options.timer_wheel_enable:
                async with self._writing:
                    try:
                        if flushed:
                            await self._in_thread(timer.files.write, progress)
                    finally:
                        timer.files.close()

        return defer.Deferred.fromCoroutine(save())

    async def escaped_so_far(self) -> EscapedMessages:
        """Return what other masters have taken. On an acting slave nothing more leaves for some seconds (EscapeBridge.hold)."""
        if self._hold is not None:
            await self._hold()
        if self._hold is not None:
            self._note()
        return self.escaped.messages()

    def _note_now_and_then(self) -> None:
        now = self._broker.clock.seconds()
        if now - self._noted_at >= NOTE_SECONDS:
            self._noted_at = now
            self._note()

    def _note(self) -> None:
        """Write which messages other masters have taken."""
        timer = self.timer
        if self._timed_taken:
            self._note_ticks(self._began_ms, timer.read_ms, timer.queue_offset)
            self._note_ticks(timer.read_ms, timer.read_ms + self._broker.options.timer_precision_ms, timer.end_of_taken)
        self.escaped.save()

    def _note_ticks(self, from_ms: int, to_ms: int, end: int) -> None:
        """Note that other masters have the messages before a queue offset that were due in these ticks."""
        last = self._last_message(TIMER_TOPIC, 0, end - 1)
        if last is not None and from_ms < to_ms:
            self.escaped.note_ticks(from_ms, to_ms, end, last)

    def take_escaped(self, theirs: EscapedMessages) -> int:
        """Take over what an acting slave's messages became. Return how many runs of messages this log has, too."""
        self.escaped.take(theirs)
        self._trust_escaped()
        self.escaped.save()
        return len(self.escaped.levels) + len(self.escaped.ticks)

    def take_delay_offsets(self, theirs: Mapping[int, int]) -> None:
        """Take an acting slave at its word that it delivered the levels so far, in this log's queues."""
        for level, offset in theirs.items():
            mine = self.schedule.offsets.get(level, 0)
            last = self._last_message(SCHEDULE_TOPIC, level - 1, offset - 1)
            if offset > mine and last is not None:
                self.escaped.levels.append(EscapedLevel(level, mine, offset, *last))
        self.escaped.save()

    def take_checkpoint(self, theirs: TimerCheckpoint) -> None:
        """Take an acting slave at its word that its timer came so far."""
        end = min(theirs.master_timer_queue_offset, self._broker.store.max_offset_in_queue(TIMER_TOPIC, 0))
        last = self._last_message(TIMER_TOPIC, 0, end - 1)
        if last is not None and theirs.last_read_time_ms > self.timer.read_ms:
            self.escaped.note_ticks(self.timer.read_ms, theirs.last_read_time_ms, end, last)
        self.escaped.save()

    def _trust_escaped(self) -> None:
        """Drop what the log does not bear out, on disk too: other messages may have those places."""
        escaped = self.escaped
        if escaped.levels or escaped.ticks:
            dropped = escaped.trust(
                lambda level, offset: self._last_message(SCHEDULE_TOPIC, level - 1, offset),
                lambda offset: self._last_message(TIMER_TOPIC, 0, offset),
            )
            if dropped:
                escaped.save_with_backup()

    def _last_message(self, topic: str, queue_id: int, offset: int) -> LastMessage | None:
        store = self._broker.store
        entries = store.queue_entries(topic, queue_id, offset, 1) if offset >= 0 else []
        return (entries[0][0], store.store_timestamp(topic, queue_id, offset)) if entries else None

    def delay_offsets(self) -> tuple[dict[int, int], DataVersion]:
        """Return how far each delay level was delivered; on a slave as its master last said."""
        if self._delivers:
            return self.schedule.offsets, self.schedule.data_version
        return self._table.offsets, self._table.data_version

    def timer_checkpoint(self) -> TimerCheckpoint:
        """Return how far the timer came; on a slave as its master last said."""
        if self.times:
            return self.timer.progress().checkpoint
        return TimerCheckpoint.load(os.path.join(self._broker.options.store_path_root_dir, "config", "timercheck"))

    def clean(self) -> None:
        """Delete files of the timer's log in which no message waits any more."""
        if self.times:
            self.timer.clean()

    def _flushed(self) -> defer.Deferred[bool]:
        return self._broker.flushed(self._broker.store.max_physical_offset())


def timer_files(options: BrokerOptions) -> TimerFiles:
    """Return the timer's files in the broker's store."""
    return TimerFiles(options.store_path_root_dir, options.timer_precision_ms, options.mapped_file_size_timer_log)
