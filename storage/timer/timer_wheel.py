"""The timer's wheel: for each tick of the next days the chain of messages due in it (Apache: TimerWheel).

The file `timerwheel` has 2 * 604,800 slots of 32 bytes (twisted_mq.protocol.layouts.timer). A tick is a slot's number modulo
their count; a slot with another time is empty. The file is an index over the timer's log: it is written through a
mapping, never flushed, and rebuilt from the log if it cannot be trusted.
"""

from __future__ import annotations

import mmap
import os
from typing import NamedTuple

from twisted_mq.protocol.layouts.timer import WHEEL_SLOT, WHEEL_SLOT_BYTES
from twisted_mq.storage.errors import StoreFull
from twisted_mq.storage.files.system_calls import Allocate, data_ranges, posix_fallocate

SLOTS = 7 * 24 * 3600
"""Apache: TIMER_WHEEL_TTL_DAY in seconds; whatever the precision. The file has twice as many."""
_PAGE = mmap.PAGESIZE


class Slot(NamedTuple):
    """The positions of the first and last unit in the timer's log, and the number of waiting messages: -1, -1, 0 if empty."""

    first_position: int = -1
    last_position: int = -1
    waiting: int = 0


EMPTY = Slot()


class TimerWheel:
    """Slots by time in ms. Disk space for a page is taken before its first write."""

    def __init__(self, path: str, precision_ms: int, slots: int = SLOTS, allocate: Allocate = posix_fallocate) -> None:
        self.path = path
        self.precision_ms = precision_ms
        self.slot_count = 2 * slots
        self._allocate = allocate
        self._size = self.slot_count * WHEEL_SLOT_BYTES
        self._taken: set[int] = set()
        self._present: set[int] = set()
        """Pages with data. Reading other pages takes memory on a file system in memory, and kills the process if that is full."""
        self._map: mmap.mmap | None = None

    @property
    def span_ms(self) -> int:
        """The time after which two ticks share a slot, in ms."""
        return self.slot_count * self.precision_ms

    def open(self) -> bool:
        """Map the file; return False if it is new or had another size, so that it has to be filled. Raises OSError."""
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            known = os.fstat(descriptor).st_size == self._size
            if not known:
                os.ftruncate(descriptor, 0)
                os.ftruncate(descriptor, self._size)
            for start, end in data_ranges(descriptor, 0, self._size):
                self._present.update(range(start // _PAGE, -(-end // _PAGE)))
            self._map = mmap.mmap(descriptor, self._size)
        finally:
            os.close(descriptor)
        return known

    def clear(self) -> None:
        """Empty all slots. Raises OSError."""
        self.close()
        os.truncate(self.path, 0)
        self.open()

    def get(self, time_ms: int) -> Slot:
        """Return the slot for the tick of a time."""
        assert self._map is not None
        tick = time_ms // self.precision_ms
        position = tick % self.slot_count * WHEEL_SLOT_BYTES
        if position // _PAGE not in self._present:
            return EMPTY
        time, first, last, waiting, _ = WHEEL_SLOT.unpack_from(self._map, position)
        return Slot(first, last, waiting) if time == tick else EMPTY

    def waiting(self, start_ms: int, end_ms: int) -> int:
        """Return how many messages wait in the ticks from a time up to another one, at most `span_ms` later."""
        assert self._map is not None
        tick, end, total = start_ms // self.precision_ms, end_ms // self.precision_ms, 0
        while tick < end:
            number = tick % self.slot_count
            position = number * WHEEL_SLOT_BYTES
            count = min(end - tick, self.slot_count - number, (_PAGE - position % _PAGE) // WHEEL_SLOT_BYTES)
            if position // _PAGE in self._present:
                page = self._map[position : position + count * WHEEL_SLOT_BYTES]
                rows = enumerate(WHEEL_SLOT.iter_unpack(page), tick)
                total += sum(waiting for expected, (time, _, _, waiting, _) in rows if time == expected)
            tick += count
        return total

    def put(self, time_ms: int, slot: Slot) -> None:
        """Set the slot for the tick of a time. Raises StoreFull; then nothing was written."""
        assert self._map is not None
        tick = time_ms // self.precision_ms
        position = tick % self.slot_count * WHEEL_SLOT_BYTES
        self.reserve(time_ms)
        WHEEL_SLOT.pack_into(self._map, position, tick, *slot, 0)

    def reserve(self, time_ms: int) -> None:
        """Take disk space for a tick. Raises StoreFull."""
        page = time_ms // self.precision_ms % self.slot_count * WHEEL_SLOT_BYTES // _PAGE
        if page in self._taken:
            return
        descriptor = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        try:
            self._allocate(descriptor, page * _PAGE, min(_PAGE, self._size - page * _PAGE))
        except OSError as error:
            raise StoreFull(self.path, error) from error
        finally:
            os.close(descriptor)
        self._taken.add(page)
        self._present.add(page)

    def flush(self) -> None:
        """Put the slots on disk, at a clean end. Raises OSError."""
        if self._map is not None:
            self._map.flush()

    def close(self) -> None:
        """Release the mapping. A second call does nothing."""
        mapped, self._map = self._map, None
        if mapped is not None:
            mapped.close()
        self._taken.clear()
        self._present.clear()
