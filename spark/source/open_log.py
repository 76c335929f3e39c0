"""A commit log file that is open for ranged reads, a bounded stretch of it in memory at a time.

A broker may be writing meanwhile, so what is read twice may differ: who finds no record looks again before he says so.
"""

from __future__ import annotations

from collections.abc import Iterator

from twisted_mq.protocol.layouts.record import BLANK_BYTES, MAGICS, PLACE_BYTES, SMALLEST_RECORD, unpack_place
from twisted_mq.spark.errors import LogFileGone
from twisted_mq.spark.source.stores import LogFile, Store, locate
from twisted_mq.storage.files.mapped_log import LogBytes

SEARCH_BYTES = 64 * 1024
"""What a search reads at a time, and the least of any read."""


class OpenLog:
    """One file. Positions count from the file's start; `limit` is the one at which reading ends."""

    def __init__(self, store: Store, file: LogFile, log_end: int | None = None) -> None:
        """`log_end`: the physical offset at which the log ends for this reader. Raises LogFileGone."""
        system, _ = locate(store.uri)
        try:
            self._input = system.open_input_file(file.path)
        except FileNotFoundError as error:
            raise LogFileGone(file.path) from error
        self.path = file.path
        self.first_offset = file.first_offset
        self.size = file.size
        self.limit = file.size if log_end is None else min(file.size, log_end - file.first_offset)
        self._kept = (0, b"")

    def window(self, position: int, length: int) -> LogBytes:
        """The bytes from there on, fewer at the limit."""
        data = self.read(position, length)
        return LogBytes(data, self.path, self.first_offset + position, self.size - position - len(data))

    def read(self, position: int, length: int) -> bytes:
        """The bytes from there on, fewer at the limit."""
        length = max(0, min(length, self.limit - position))
        begin, data = self._kept
        if not begin <= position <= position + length <= begin + len(data):
            begin, data = position, self._read(max(length, min(SEARCH_BYTES, self.limit - position)), position)
            if len(data) <= SEARCH_BYTES:
                self._kept = begin, data
        return data[position - begin : position - begin + length]

    def read_only(self, position: int, length: int) -> bytes:
        """These bytes and no more, fewer at the limit."""
        return self._read(max(0, min(length, self.limit - position)), position)

    def look_again(self) -> None:
        """Forget what was read."""
        self._kept = (0, b"")

    def _read(self, length: int, position: int) -> bytes:
        data: bytes = self._input.read_at(length, position)
        return data

    def record_size(self, position: int) -> int:
        """The size of the record that proves itself there; 0 where none does."""
        head = self.window(position, PLACE_BYTES)
        if head.size < PLACE_BYTES:
            return 0
        size, magic, physical_offset = unpack_place(head.data)
        if magic not in MAGICS or physical_offset != head.first_offset:
            return 0
        if not SMALLEST_RECORD <= size <= self.limit - position:
            return 0
        return size if self.window(position, size).is_record(0) else 0

    def records_from(self, position: int, end: int) -> Iterator[int]:
        """Where in [position, end) records prove themselves, found by their magic."""
        end = min(end, self.limit)
        while position < end:
            window = self.window(position, SEARCH_BYTES)
            for mark in window.marks(0, window.size):
                if position + mark >= end:
                    return
                if self.record_size(position + mark):
                    yield position + mark
            if window.size < SEARCH_BYTES:
                return
            position += window.size - BLANK_BYTES + 2  # the next window sees what of a magic reaches into it

    def first_record(self, position: int) -> int:
        """Where the first record at or behind a cut begins, the same for all who ask; the limit where none does.

        One that lies in another's body is passed over, unless something that looks like a record follows it there.
        """
        for start in self.records_from(position, self.limit):
            if self._goes_on(start + self.record_size(start)):
                return start
        return self.limit

    def _goes_on(self, position: int) -> bool:
        """Whether the log may go on there: with a record, the file's blank rest, or at the limit."""
        if position >= self.limit:
            return True
        window = self.window(position, PLACE_BYTES)
        if window.is_blank(0) or window.size < PLACE_BYTES:
            return True
        _, magic, physical_offset = unpack_place(window.data)
        return magic in MAGICS and physical_offset == window.first_offset

    def is_written(self, position: int, length: int) -> bool:
        """Whether any of these bytes is not zero."""
        return bool(self.read_only(position, length).strip(b"\0"))
