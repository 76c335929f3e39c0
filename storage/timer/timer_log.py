"""The timer's log: the waiting messages, in the order in which the timer took them (Apache: TimerLog).

Units of 52 bytes (twisted_mq.protocol.layouts.timer) in files of one size below `timerlog/`. A unit never crosses the end of
a file; the rest of a file is a blank: 4 bytes size, 8 zeros, 4 bytes magic. A position is the byte offset of a unit in the
log. Each unit names the one before it in its slot, so a slot is a chain that ends in its last unit.
"""

from __future__ import annotations

from collections.abc import Iterator

from twisted_mq.protocol.layouts.record import MAGIC_BLANK
from twisted_mq.protocol.layouts.timer import LOG_BLANK_BYTES, LOG_UNIT, LOG_UNIT_BYTES, LogUnit, encode_log_blank
from twisted_mq.storage.files.mapped_file_queue import MappedFileQueue
from twisted_mq.storage.files.system_calls import Allocate, Sync, fdatasync, posix_fallocate

_STEP = 1 << 20
NO_POSITION = -1


class TimerLog:
    """A log that one thread appends to and reads; `flush` may run in another."""

    def __init__(self, directory: str, file_size: int, allocate: Allocate = posix_fallocate) -> None:
        self.directory = directory
        self.end = 0
        self._files = MappedFileQueue(directory, file_size, allocate)

    def load(self) -> list[str]:
        """Find the files and return the paths of those that do not fit; `cut` then sets the log's end."""
        odd = self._files.load()
        self.end = self._files.max_offset
        return [one.path for one in odd] + ([gap] if (gap := self._files.missing()) else [])

    @property
    def start(self) -> int:
        """The position of the first unit that is still kept."""
        return self._files.min_offset

    def append(
        self,
        previous: int,
        magic: int,
        write_time: int,
        delay_time: int,
        physical_offset: int,
        size: int,
        topic_hash: int,
    ) -> int:
        """Append a unit and return its position. Raises StoreFull; then nothing was written."""
        file_size = self._files.file_size
        position = self.end
        room = file_size - position % file_size
        file = self._files.find(position)
        if file is not None and room < LOG_UNIT_BYTES + LOG_BLANK_BYTES:
            if room >= LOG_BLANK_BYTES:
                file.reserve(file_size, _STEP)
                file.view[file_size - room : file_size - room + LOG_BLANK_BYTES] = encode_log_blank(room)
            file.wrote = file_size
            position += room
            file = None
        if file is None:
            file = self._files.find(position) or self._files.append_file(position)
        start = position - file.first_offset
        if start + LOG_UNIT_BYTES > file.allocated:
            file.reserve(start + LOG_UNIT_BYTES, _STEP)
        LOG_UNIT.pack_into(
            file.view,
            start,
            LOG_UNIT_BYTES,
            previous,
            magic,
            write_time,
            delay_time,
            physical_offset,
            size,
            topic_hash,
            0,
        )
        file.wrote = start + LOG_UNIT_BYTES
        self.end = position + LOG_UNIT_BYTES
        return position

    def unit(self, position: int) -> LogUnit | None:
        """Return the unit at a position; None if the log does not hold it (any more)."""
        file = self._files.find(position) if 0 <= position < self.end else None
        if file is None:
            return None
        start = position - file.first_offset
        if start % LOG_UNIT_BYTES or start + LOG_UNIT_BYTES > file.size:
            return None
        found = LogUnit._make(LOG_UNIT.unpack_from(file.readable, start))
        return found if found.is_whole else None

    def units(self) -> Iterator[tuple[int, LogUnit]]:
        """Yield (position, unit) from the first on, up to bytes that no broker wrote."""
        for file in list(self._files.files):
            whole = file.size - file.size % LOG_UNIT_BYTES
            position = file.first_offset
            for values in LOG_UNIT.iter_unpack(file.readable[:whole]):
                unit = LogUnit._make(values)
                if not unit.is_whole:
                    if unit.magic == MAGIC_BLANK:
                        break
                    return
                yield position, unit
                position += LOG_UNIT_BYTES

    def cut(self, position: int) -> None:
        """Forget everything from a position on; the log continues there."""
        self._files.truncate(position)
        self.end = position

    def clear(self) -> None:
        """Delete all files."""
        self._files.destroy_all()
        self.end = 0

    def delete_before(self, physical_offset: int) -> int:
        """Delete the files whose messages all lie before an offset of the commit log; return how many."""
        files, deleted = self._files.files, 0
        while len(files) > 1:
            unit = self._last_unit_of_first_file()
            if unit is None or unit.physical_offset >= physical_offset:
                break
            files.pop(0).delete()
            deleted += 1
        return deleted

    def _last_unit_of_first_file(self) -> LogUnit | None:
        file = self._files.files[0]
        count = (file.size - LOG_BLANK_BYTES) // LOG_UNIT_BYTES
        return self.unit(file.first_offset + (count - 1) * LOG_UNIT_BYTES)

    def flush(self, begin: int, sync: Sync = fdatasync) -> None:
        """Put everything appended from a position on on disk. Raises OSError."""
        for file in list(self._files.from_offset(begin)):
            file.sync(sync)

    def release(self) -> None:
        """Release the mappings."""
        self._files.release()
