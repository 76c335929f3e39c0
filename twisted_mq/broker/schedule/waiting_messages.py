"""Runs the broker's waiting messages as a whole: started and stopped with it, their progress kept on disk.

The progress on disk says which messages need no delivery, so it is written once the commit log, with the copies in it, is
on disk up to that moment. A slave delivers nothing; its master does.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Protocol

from twisted.internet import defer, interfaces

from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.schedule.delivery_loop import DeliveryLoop
from twisted_mq.broker.schedule.schedule_service import ScheduleMessageService
from twisted_mq.broker.schedule.timer_service import TimerService
from twisted_mq.broker.statistics.broker_statistics import BrokerStatistics
from twisted_mq.broker.statistics.delivery_counts import DeliveryCounts
from twisted_mq.protocol.names.system_topics import SCHEDULE_TOPIC, TIMER_TOPIC
from twisted_mq.reactor_threads import InThread, at_once
from twisted_mq.storage.interfaces import IMessageStore
from twisted_mq.storage.tables.delay_offset_table import DelayOffsetTable
from twisted_mq.storage.timer.timer_files import TimerFiles


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
    `times` is True if the timer runs: not on a slave.
    """

    def __init__(
        self,
        broker: WaitingParts,
        delay_offset_table: DelayOffsetTable,
        *,
        clean: bool = False,
        in_thread: InThread = at_once,
    ) -> None:
        options = broker.options
        self._broker = broker
        self._in_thread = in_thread
        self._delivers = not options.is_slave
        self._saved_moves = self._saved_changes = 0
        self.schedule = ScheduleMessageService(
            broker.store,
            delay_offset_table,
            options.message_delay_level,
            broker.wall_ms,
            options.delay_offset_update_version_step,
            delivered=DeliveryCounts(broker.statistics, SCHEDULE_TOPIC).add,
        )
        timed = DeliveryCounts(broker.statistics, TIMER_TOPIC).add
        self.timer = TimerService(broker.store, timer_files(options), options, broker.now_ms, timed)
        self._turns = [self.schedule.turn]
        self.times = self._delivers and options.timer_wheel_enable
        if self._delivers:
            self.schedule.start()
        if self.times:
            self.timer.start(clean=clean)
            self._turns.append(self.timer.turn)
        self._loop = DeliveryLoop(broker.clock, self._turns, broker.dispatch)

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
        progress = self.timer.progress()

        async def save() -> None:
            if await self._flushed():
                await self._in_thread(self.timer.files.write, progress)
                self._saved_changes = changes

        return defer.Deferred.fromCoroutine(save())

    def clean(self) -> None:
        """Delete files of the timer's log in which no message waits any more."""
        if self.times:
            self.timer.clean()

    def _flushed(self) -> defer.Deferred[bool]:
        return self._broker.flushed(self._broker.store.max_physical_offset())


def timer_files(options: BrokerOptions) -> TimerFiles:
    """Return the timer's files in the broker's store."""
    return TimerFiles(options.store_path_root_dir, options.timer_precision_ms, options.mapped_file_size_timer_log)
