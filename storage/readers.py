"""Reading a store's files without its lock and without changing them: for `mq store` and for Spark.

A broker may be writing meanwhile: what is not written yet is simply not there. File sizes are taken from the files, so
no configuration is needed. Views stay valid as long as somebody holds them.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator

from protocol.errors import RecordError
from protocol.message import MessageExt
from protocol.message_record import decode_message
from protocol.queue_layout import BATCH_ENTRY, ENTRY
from storage.batch_consume_queue import BatchEntry
from storage.errors import NoStore
from storage.interfaces import Inconsistency
from storage.log_scan import LogScan, StopReason, intact_behind
from storage.paths import StorePaths, file_offset

Entry = tuple[int, int, int]


class ReadOnlyFile:
    """A file of a run of files, mapped for reading at first use; `first_offset` is what its name says."""

    def __init__(self, path: str, first_offset: int) -> None:
        self.path = path
        self.first_offset = first_offset
        self.size = os.stat(path).st_size
        self._readable: memoryview | None = None

    @property
    def readable(self) -> memoryview:
        """The whole file."""
        if self._readable is None:
            with open(self.path, "rb") as file:
                mapped = mmap.mmap(file.fileno(), self.size, access=mmap.ACCESS_READ) if self.size else b""
                self._readable = memoryview(mapped)
        return self._readable

    def find_all(self, data: bytes, position: int) -> Iterator[int]:
        """The positions from `position` on where these bytes lie."""
        mapped = self.readable.obj
        assert isinstance(mapped, mmap.mmap | bytes)
        found = mapped.find(data, position)
        while found >= 0:
            yield found
            found = mapped.find(data, found + 1)


def files_in(directory: str) -> list[ReadOnlyFile]:
    """The files whose names are offsets, in order; empty files and missing directories have none."""
    try:
        names = sorted(name for name in os.listdir(directory) if file_offset(name) is not None)
    except (FileNotFoundError, NotADirectoryError):
        return []
    files = [ReadOnlyFile(os.path.join(directory, name), int(name)) for name in names]
    return [file for file in files if file.size]


class EntryFiles:
    """The files of one queue: entries of one size up to the first one that was not written, counted in `places`."""

    layout = ENTRY

    def __init__(self, topic: str, queue_id: int, directory: str) -> None:
        self.topic = topic
        self.queue_id = queue_id
        self.directory = directory
        self.entry_bytes = self.layout.size
        self._files = [file for file in files_in(directory) if file.size >= self.entry_bytes]
        self.file_size = self._files[0].size if self._files else 0
        self._first = self._files[0].first_offset if self._files else 0
        self._by_number = {(file.first_offset - self._first) // self.file_size: file for file in self._files}
        self.begin_place = self._first // self.entry_bytes
        self.end_place = self._find_end()

    @property
    def size_bytes(self) -> int:
        """The length of all files."""
        return sum(file.size for file in self._files)

    def problems(self) -> Iterator[Inconsistency]:
        """Files of another size than the first, and files that are missing between others."""
        expected = self._files[0].first_offset if self._files else 0
        for file in self._files:
            if file.size != self.file_size or file.size % self.entry_bytes:
                yield Inconsistency(file.path, file.first_offset, f"is {file.size} bytes long, not {self.file_size}")
            if file.first_offset != expected:
                yield Inconsistency(file.path, file.first_offset, f"the file before it is missing, at {expected}")
            expected = file.first_offset + self.file_size

    def _find_end(self) -> int:
        """Behind the last entry: entries are written in order and have a size, the rest of a file is zeros."""
        for file in reversed(self._files):
            low = file.first_offset // self.entry_bytes
            high = low + file.size // self.entry_bytes
            if not self._is_written(low):
                continue
            while low < high:
                middle = (low + high) // 2
                if self._is_written(middle):
                    low = middle + 1
                else:
                    high = middle
            return low
        return self.begin_place

    def _is_written(self, place: int) -> bool:
        entry = self._read(place)
        return entry is not None and entry[1] > 0

    def _read(self, place: int) -> tuple[int, ...] | None:
        number, inside = divmod(place * self.entry_bytes - self._first, self.file_size)
        file = self._by_number.get(number)
        if file is None or inside + self.entry_bytes > file.size:
            return None
        return self.layout.unpack_from(file.readable, inside)

    @property
    def first_physical_offset(self) -> int | None:
        """What the first entry leads to; None without one."""
        entry = self._read(self.begin_place) if self.begin_place < self.end_place else None
        return None if entry is None else entry[0]

    def path_of(self, number: int) -> str | None:
        """The path of the queue's n-th file, counted from the first one that is there; None where there is none."""
        file = self._by_number.get(number)
        return None if file is None else file.path


class QueueFiles(EntryFiles):
    """One consume queue as it lies on disk; its places are queue offsets."""

    @property
    def min_offset(self) -> int:
        """The queue offset of the first entry."""
        return self.begin_place

    @property
    def max_offset(self) -> int:
        """The queue offset behind the last entry."""
        return self.end_place

    def entry(self, offset: int) -> Entry | None:
        """(physical offset, size, tags code) at a queue offset; None outside the written ones."""
        entry = self._read(offset) if self.begin_place <= offset < self.end_place else None
        return None if entry is None else (entry[0], entry[1], entry[2])

    def entries(self) -> Iterator[tuple[int, Entry]]:
        """(queue offset, entry) from the first to the last."""
        for offset in range(self.begin_place, self.end_place):
            entry = self.entry(offset)
            if entry is not None:
                yield offset, entry


class BatchQueueFiles(EntryFiles):
    """One batch queue as it lies on disk."""

    layout = BATCH_ENTRY

    def batch_entries(self) -> Iterator[BatchEntry]:
        """All entries, see storage.batch_consume_queue."""
        for place in range(self.begin_place, self.end_place):
            entry = self._read(place)
            if entry is not None:
                yield entry[0], entry[1], entry[2], entry[3], entry[4], entry[5]

    @property
    def max_offset(self) -> int:
        """The queue offset behind the last message; 0 without one."""
        last = self._read(self.end_place - 1) if self.end_place > self.begin_place else None
        return 0 if last is None else last[4] + last[5]


class StoreReader:
    """A store directory; `commit_log` where that lies elsewhere. Raises NoStore where no commit log is."""

    def __init__(self, root: str, commit_log: str | None = None) -> None:
        self.paths = StorePaths(root, commit_log)
        self.directory = self.paths.commit_log
        if not os.path.isdir(self.directory):
            raise NoStore(root)
        self.files = files_in(self.directory)
        self.problems: list[Inconsistency] = []

    @property
    def min_offset(self) -> int:
        """The log's first byte."""
        return self.files[0].first_offset if self.files else 0

    def messages(self, *, check_crc: bool = True, decompress: bool = True) -> Iterator[MessageExt]:
        """Every message of the log in order; `problems` names what could not be read, and reading goes on behind it."""
        for offset, view, position in self._places():
            try:
                yield decode_message(view, position, check_crc=check_crc, decompress=decompress)
            except RecordError as error:
                self.problems.append(Inconsistency(self.directory, offset, error.reason))

    def records(self) -> Iterator[tuple[int, memoryview]]:
        """(physical offset, stored bytes) of every sound record; damaged ones as in `messages`."""
        for offset, view, position in self._places():
            size = int.from_bytes(view[position : position + 4], "big")
            yield offset, view[position : position + size]

    def _places(self) -> Iterator[tuple[int, memoryview, int]]:
        """(physical offset, its file's bytes, position there) of every sound record."""
        start: int | None = self.min_offset
        while start is not None:
            scan = LogScan(self.files, start)
            for record in scan:
                file = self._file_of(record.physical_offset)
                yield record.physical_offset, file.readable, record.physical_offset - file.first_offset
            start = intact_behind(self.files, scan.end_offset)
            if scan.stop_reason is StopReason.DAMAGED:
                self.problems.append(Inconsistency(self.directory, scan.end_offset, scan.problem))
            elif start is not None:
                problem = f"nothing is written here, the next record is at {start}"
                self.problems.append(Inconsistency(self.directory, scan.end_offset, problem))

    def _file_of(self, offset: int) -> ReadOnlyFile:
        return next(file for file in reversed(self.files) if file.first_offset <= offset)

    def queues(self) -> Iterator[QueueFiles]:
        """Every consume queue, sorted by topic and queue id."""
        for topic, queue_id in self.paths.queue_directories():
            yield QueueFiles(topic, queue_id, self.paths.queue(topic, queue_id))

    def batch_queues(self) -> Iterator[BatchQueueFiles]:
        """Every batch queue, sorted by topic and queue id."""
        for topic, queue_id in self.paths.batch_queue_directories():
            yield BatchQueueFiles(topic, queue_id, self.paths.batch_queue(topic, queue_id))
