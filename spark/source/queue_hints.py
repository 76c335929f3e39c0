"""Where records begin, as consume queues say it: hints for cutting a commit log file into splits.

The entries of one queue lie in the order of their records, so a binary search finds one near any physical offset with
a few page reads. A hint is only that: queues may be missing, damaged or behind the log. Whoever takes one checks that
a record is there.
"""

from __future__ import annotations

import bisect
import mmap
import os
import struct
from collections.abc import Iterator

from twisted_mq.protocol.layouts.queue_entry import BATCH_ENTRY, ENTRY, FILLER_SIZE
from twisted_mq.storage.files.paths import StorePaths, file_offset

QUEUES_ASKED = 8
"""The longest queues have an entry near most offsets; more of them would hardly add any."""
_BEYOND = 1 << 63


class QueueFile:
    """One file of a consume queue or batch queue, mapped for reading; an empty or vanished one has no entries."""

    def __init__(self, path: str, layout: struct.Struct = ENTRY) -> None:
        self._layout = layout
        self._data: mmap.mmap | bytes
        try:
            with open(path, "rb") as file:
                self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (FileNotFoundError, ValueError):
            self._data = b""
        self._entries = range(len(self._data) // layout.size)

    def _record_of(self, entry: int) -> int:
        """An entry's physical offset; beyond every log for one not written yet, before every log for a filler."""
        physical_offset, size, *_ = self._layout.unpack_from(self._data, entry * self._layout.size)
        if size == FILLER_SIZE:
            return -1
        return int(physical_offset) if size > 0 else _BEYOND

    def first(self) -> int:
        """The physical offset in the first entry."""
        return self._record_of(0) if self._entries else _BEYOND

    def first_from(self, physical_offset: int) -> int:
        """The first physical offset from there on; 1 << 63 where the file has none."""
        entry = bisect.bisect_left(self._entries, physical_offset, key=self._record_of)
        return self._record_of(entry) if entry < len(self._entries) else _BEYOND


class QueueHints:
    """The longest queues of a store. Files are opened when they are first looked into."""

    def __init__(self, root: str) -> None:
        self._paths = StorePaths(root)
        self._queues = _longest_queues(self._paths)
        self._open: dict[str, QueueFile] = {}

    def records_near(self, physical_offset: int, end: int) -> Iterator[int]:
        """Offsets in [physical_offset, end) at which a record should begin, at most one from each queue."""
        for paths in self._queues:
            behind = bisect.bisect_right(paths, physical_offset, key=lambda path: self._file(path).first())
            for path in paths[max(behind - 1, 0) : behind + 1]:
                found = self._file(path).first_from(physical_offset)
                if found < end:
                    yield found
                    break

    def _file(self, path: str) -> QueueFile:
        if path not in self._open:
            batched = path.startswith(self._paths.batch_consume_queues + os.sep)
            self._open[path] = QueueFile(path, BATCH_ENTRY if batched else ENTRY)
        return self._open[path]


def _longest_queues(paths: StorePaths) -> list[list[str]]:
    """The paths of each long queue's files in order."""
    queues = [_files(paths.queue(*key)) for key in paths.queue_directories()]
    queues += [_files(paths.batch_queue(*key)) for key in paths.batch_queue_directories()]
    return sorted((files for files in queues if files), key=len, reverse=True)[:QUEUES_ASKED]


def _files(directory: str) -> list[str]:
    names = sorted(name for name in os.listdir(directory) if file_offset(name) is not None)
    return [os.path.join(directory, name) for name in names]
