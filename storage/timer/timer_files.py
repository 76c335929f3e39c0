"""The files of messages that wait for their time: opens log, wheel, checkpoint and counters and makes them consistent.

    <root>/timerlog/00000000000000000000   which messages wait       <root>/config/timercheck     how far delivered
    <root>/timerwheel                      chains by tick            <root>/config/timermetrics   counters by topic

At a start the log is authoritative as far as its messages are in the commit log. The wheel is used unchanged only if
the broker was stopped cleanly and the wheel agrees with the log's last unit.
"""

from __future__ import annotations

import logging
import os
from array import array
from collections import Counter

import attrs

from twisted_mq.protocol.bodies import TimerMetricsSerializeWrapper
from twisted_mq.protocol.layouts.timer import LOG_UNIT_BYTES, MAGIC_DELETE, MAGIC_ROLL
from twisted_mq.protocol.text.java import java_hash
from twisted_mq.storage.files.system_calls import Allocate, Sync, fdatasync, posix_fallocate
from twisted_mq.storage.timer.timer_checkpoint import TimerCheckpoint
from twisted_mq.storage.timer.timer_log import NO_POSITION, TimerLog
from twisted_mq.storage.timer.timer_metrics import TimerMetrics
from twisted_mq.storage.timer.timer_wheel import SLOTS, Slot, TimerWheel

logger = logging.getLogger(__name__)

LOG_FILE_BYTES = 100 << 20
"""Apache: mappedFileSizeTimerLog."""


@attrs.frozen
class TimerProgress:
    """The timer's state at one moment, to be written once the commit log is on disk up to that moment."""

    checkpoint: TimerCheckpoint
    metrics: TimerMetricsSerializeWrapper


FAR_AHEAD_MS = 1 << 62
"""A time after every other."""


class TimerFiles:
    """The timer's files, used by one thread; `write` may run in another. No file is created before a message waits.

    `rebuilt` after `open`: the log is missing, so all messages that the timer's topic may hold have to be added again.
    """

    def __init__(
        self,
        root: str,
        precision_ms: int,
        file_size: int = LOG_FILE_BYTES,
        slots: int = SLOTS,
        allocate: Allocate = posix_fallocate,
        sync: Sync = fdatasync,
    ) -> None:
        self.log = TimerLog(os.path.join(root, "timerlog"), file_size, allocate)
        self.wheel = TimerWheel(os.path.join(root, "timerwheel"), precision_ms, slots, allocate)
        self.metrics = TimerMetrics(os.path.join(root, "config", "timermetrics"))
        self.checkpoint = TimerCheckpoint()
        self.rebuilt = False
        self._checkpoint_path = os.path.join(root, "config", "timercheck")
        self._sync = sync
        self._flushed = self._built_from = 0
        self._open = False

    # at start

    def open(
        self, *, clean: bool, end_of_commit_log: int, end_of_queue: int, latest_read_ms: int = FAR_AHEAD_MS
    ) -> None:
        """Read everything, cut the log where its messages are lost, and fill the wheel if needed. Raises OSError.

        `end_of_queue` is the offset after the last message of the timer's topic. A checkpoint is not trusted if it says that
        ticks after `latest_read_ms` were delivered.
        """
        self.checkpoint = TimerCheckpoint.load(self._checkpoint_path)
        if self.checkpoint.last_read_time_ms > latest_read_ms:
            logger.error(
                "timer checkpoint ignored, its time is too far ahead: readMs=%d",
                self.checkpoint.last_read_time_ms,
            )
            self.checkpoint = attrs.evolve(self.checkpoint, last_read_time_ms=0)
        self._bound(end_of_queue)
        self.metrics.load()
        odd = self.log.load()
        if odd or (self.log.end and self._speaks_of_another_log()):
            logger.error("timer log rebuilt from its topic: path=%s", odd[0] if odd else self.log.directory)
            self.log.clear()
        self.rebuilt = self.log.end == 0
        if self.rebuilt:
            self._begin_anew()
            return
        known = self.wheel.open()
        self._open = True
        if not (clean and known and self._agrees()):
            self._replay(end_of_commit_log)
        self._flushed = self.log.end

    def _speaks_of_another_log(self) -> bool:
        """Return True if the checkpoint knows progress, and no place in the log: it is a master's that a slave copied, or a log
        that is being made again lacks what it names.

        A master's ticks may be delivered in its commit log only. The messages of the topic are looked at one by one then.
        """
        known = self.checkpoint
        return known.last_timer_log_flush_position == 0 and bool(
            known.last_timer_queue_offset or known.last_read_time_ms
        )

    def _bound(self, end_of_queue: int) -> None:
        """Move the checkpoint back, on disk too, if the topic lost its end: other messages will get those offsets."""
        offset = self.checkpoint.last_timer_queue_offset
        if offset > end_of_queue:
            logger.warning("timer offset lowered to the end of its queue: from=%d to=%d", offset, end_of_queue)
            self.checkpoint = attrs.evolve(self.checkpoint, last_timer_queue_offset=end_of_queue)
            self.checkpoint.save(self._checkpoint_path, self._sync)

    def _begin_anew(self) -> None:
        """Empty the wheel, and mark on disk, with position 0, that the log lacks what the checkpoint names."""
        if os.path.exists(self.wheel.path):
            self.wheel.open()
            self.wheel.clear()
            self._open = True
        self._built_from = self.checkpoint.last_timer_queue_offset
        self.checkpoint = attrs.evolve(self.checkpoint, last_timer_log_flush_position=0)
        if self._built_from:
            self.checkpoint.save(self._checkpoint_path, self._sync)
        for topic, metric in self.metrics.counts.items():
            self.metrics.counts[topic] = attrs.evolve(metric, count=0)

    def _agrees(self) -> bool:
        """Return whether the wheel has the last unit that the checkpoint names, and the log ends after it."""
        end = self.checkpoint.last_timer_log_flush_position
        last = self.log.unit(end - LOG_UNIT_BYTES)
        if last is None or self.log.unit(end) is not None:
            return False
        if self.wheel.get(last.slot_ms).last_position != end - LOG_UNIT_BYTES:
            return False
        self.log.cut(end)
        return True

    def _replay(self, end_of_commit_log: int) -> None:
        """Fill the wheel from the log, without the ticks that were delivered."""
        read_ms = self.checkpoint.last_read_time_ms
        self.wheel.clear()
        hashes: Counter[int] = Counter()
        end = self.log.start
        for position, unit in self.log.units():
            if unit.physical_offset + unit.record_size > end_of_commit_log:
                break
            end = position + LOG_UNIT_BYTES
            if unit.slot_ms >= read_ms:
                hashes[unit.topic_hash] += self._link(position, unit.slot_ms, unit.magic, self.wheel.get(unit.slot_ms))
        logger.info("timer wheel filled: logEnd=%d messages=%d", end, sum(hashes.values()))
        self.log.cut(end)
        for topic, metric in self.metrics.counts.items():
            count = hashes.get(java_hash(topic), 0)
            self.metrics.counts[topic] = attrs.evolve(metric, count=count)

    def _link(self, position: int, slot_ms: int, magic: int, slot: Slot) -> int:
        """Make a unit the last of its slot; return its count, which is negative for a recall."""
        number = -1 if magic & MAGIC_DELETE else 1
        first = position if slot.first_position == NO_POSITION else slot.first_position
        self.wheel.put(slot_ms, Slot(first, position, slot.waiting + number))
        return number

    # use

    def add(
        self, slot_ms: int, write_ms: int, magic: int, physical_offset: int, record_size: int, topic_hash: int
    ) -> None:
        """Let a message wait for a tick. Raises StoreFull; then it does not wait."""
        if not self._open:
            self.wheel.open()
            self._open = True
        self.wheel.reserve(slot_ms)
        slot = self.wheel.get(slot_ms)
        delay_ms = slot_ms - write_ms
        position = self.log.append(
            slot.last_position, magic, write_ms, delay_ms, physical_offset, record_size, topic_hash
        )
        self._link(position, slot_ms, magic, slot)

    def count(self, slot_ms: int) -> int:
        """Return how many messages wait for a tick, without those that are recalled."""
        return self.wheel.get(slot_ms).waiting if self._open else 0

    def count_between(self, start_ms: int, end_ms: int) -> int:
        """Return how many messages wait for the ticks from a time up to another one."""
        return self.wheel.waiting(start_ms, end_ms) if self._open else 0

    def positions(self, slot_ms: int) -> tuple[array[int], list[int]]:
        """Return the units of a tick, the first one first, 8 bytes a message; and those among them that are recalls.

        If the chain of a tick is damaged, these are the units after the damage.
        """
        found, recalls = array("q"), list[int]()
        position = self.wheel.get(slot_ms).last_position if self._open else NO_POSITION
        before = self.log.end
        while position < before:  # a damaged chain may lead forward, even in a circle
            unit = self.log.unit(position)
            if unit is None:
                break
            before = position
            found.append(position)
            if is_recall(unit.magic):
                recalls.append(position)
            position = unit.previous_position
        found.reverse()
        return found, recalls

    def last_physical_offset(self) -> int | None:
        """Return the offset in the commit log of the last message that was added; None without one."""
        unit = self.log.unit(self.log.end - LOG_UNIT_BYTES)
        return None if unit is None else unit.physical_offset

    # on disk

    def progress(self, read_ms: int, queue_offset: int, now_ms: int) -> TimerProgress:
        """Return the state to write, taken in the owner's thread. The mark stays until the log is as far as it was."""
        before = self.checkpoint
        if queue_offset < self._built_from:
            return TimerProgress(before, self.metrics.body())
        self.checkpoint = TimerCheckpoint(
            read_ms, self.log.end, queue_offset, queue_offset, 0, now_ms, before.counter + 1
        )
        return TimerProgress(self.checkpoint, self.metrics.body())

    def write(self, progress: TimerProgress) -> None:
        """Put the log on disk, then the rest. Raises OSError."""
        self.log.flush(self._flushed, self._sync)
        self._flushed = max(self._flushed, progress.checkpoint.last_timer_log_flush_position)
        progress.checkpoint.save(self._checkpoint_path, self._sync)
        self.metrics.save(progress.metrics)

    def close(self) -> None:
        """Put the wheel on disk and release the mappings. A second call does nothing."""
        if self._open:
            self.wheel.flush()
        self.wheel.close()
        self.log.release()
        self._open = False


def is_roll(magic: int) -> bool:
    """Return whether the tick is only an intermediate one on the way to the message's time."""
    return bool(magic & MAGIC_ROLL)


def is_recall(magic: int) -> bool:
    """Return whether the unit recalls another message of the same tick."""
    return bool(magic & MAGIC_DELETE) and not magic & MAGIC_ROLL
